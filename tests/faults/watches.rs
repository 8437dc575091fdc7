//! The watch of each resource in turn falls silent: the connection stays open, and no event
//! arrives.

use std::sync::{Arc, Mutex};

use axum::http::Method;
use serde_json::json;

use crate::Played;
use crate::fault_test::{self, FaultTest, STRAIGHT};
use crate::harness::shorthand::object;
use crate::load::Load;
use crate::proxy::Proxy;

/// The number of requests for each resource.
const SOME: usize = 30;

pub(crate) fn each_is_frozen(test: &'static FaultTest) -> Result<Played, String> {
    let plane = test.plane;
    let proxy = Proxy::start(plane);
    let guard = plane.guard("frozen", &fault_test::sure().kubeconfig(&proxy.kubeconfig));

    let claim = Arc::new(Mutex::new("data".to_owned()));
    let (url, newest) = (guard.url.clone(), Arc::clone(&claim));
    let load = Load::start(plane.runtime().handle(), STRAIGHT, move |number| {
        let url = url.clone();
        let name = newest.lock().unwrap().clone();
        async move { test.ask_the_guard(plane.http(), &url, &name, number).await }
    });
    load.until_more(SOME)?;
    let watched = proxy.watched();
    for (number, path) in watched.iter().enumerate() {
        proxy.freeze(Some(path.as_str()));
        // The guard gets no watch event about this claim or its class.
        *claim.lock().unwrap() = late_claim(test, &format!("late-{number}"));
        load.until_more(SOME)?;
        proxy.freeze(None);
    }
    load.until_more(SOME)?;
    Ok(Played::answered(load.end(), format!("{} resources", watched.len())))
}

/// Makes a class and a claim with it; returns the name of both.
fn late_claim(test: &FaultTest, name: &str) -> String {
    let provisioner = json!({"provisioner": "disk.csi.example.com"});
    let class = object(json!({"kind": "StorageClass", "name": name, "with": provisioner}));
    let of_it = json!({"spec": {"storageClassName": name}});
    let claim = object(json!({"kind": "PersistentVolumeClaim", "name": name, "with": of_it}));
    let namespace = &test.namespace;
    let claims = format!("/api/v1/namespaces/{namespace}/persistentvolumeclaims");
    for (path, object) in [("/apis/storage.k8s.io/v1/storageclasses", class), (&claims, claim)] {
        test.plane.send(Method::POST, path, &object).unwrap();
    }
    name.to_owned()
}
