//! Clients with many addresses send reviews whose denials have to be confirmed, while the API server
//! is slow.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Instant;

use axum::http::Method;
use futures_util::future::join_all;
use serde_json::json;
use tokio::task::JoinSet;

use crate::Played;
use crate::fault_test::{FaultTest, deployment};
use crate::harness::shorthand::list;
use crate::harness::{GuardOptions, WebhookOptions, patient, webhooks};
use crate::load::{DEADLINE, Tally};
use crate::proxy::Proxy;

/// The number of addresses, and the number of reviews of each at a time.
const ADDRESSES: u8 = 40;
const OF_EACH: usize = 5;

/// The number of denials that the API server asks for at once.
const DENIALS: usize = 10;

/// The namespaces of an API server that the guard knows, besides that of the denials.
const FURTHER: usize = 4;

const APPLICATION: &str = "
- {kind: PersistentVolumeClaim, name: kept}
- {kind: Deployment, name: kept, uses: [kept], strategy: Recreate}
";

pub(crate) fn flood(test: &'static FaultTest) -> Result<Played, String> {
    let plane = test.plane;
    let proxy = Proxy::start(plane);
    let mut namespaces = vec![test.namespace.clone()];
    for _ in 0..FURTHER {
        let namespace = plane.namespace("further");
        plane.apply(&namespace, &list(APPLICATION));
        namespaces.push(namespace);
    }
    let guard = plane.guard("flooded", &GuardOptions::default().kubeconfig(&proxy.kubeconfig));
    guard.until_heard(plane);
    let names: Vec<&str> = namespaces.iter().map(String::as_str).collect();
    let webhooks = WebhookOptions { timeout_seconds: 5, ..WebhookOptions::new(&guard.url, &names) };
    let _registration = plane.register_webhooks("strangers", &webhooks);
    for namespace in &namespaces {
        let path = format!("/apis/apps/v1/namespaces/{namespace}/deployments/kept");
        let mut object = deployment("kept", "kept", "Recreate");
        object["metadata"]["annotations"] = json!({"example.com/deployed": "today"});
        plane.send(Method::PUT, &path, &object).map_err(|error| error.to_string())?;
    }

    proxy.slow_down();
    let mut review = deployment("web", "data", "RollingUpdate");
    review["metadata"]["namespace"] = json!(test.namespace);
    let review = Arc::new(webhooks::review(&review, None));
    let mut flood = JoinSet::new();
    for last in 1..=ADDRESSES {
        let address = IpAddr::V4(Ipv4Addr::new(127, 0, 2, last));
        let client = plane.pki.http_client_builder().local_address(address).build().unwrap();
        for _ in 0..OF_EACH {
            let (client, review) = (client.clone(), Arc::clone(&review));
            let url = format!("{}/validate?timeout=5s", guard.url);
            let ask = async move {
                loop {
                    let _ = client.post(&url).json(&*review).send().await;
                }
            };
            flood.spawn_on(ask, plane.runtime().handle());
        }
    }
    plane.block_on(proxy.until_slow(patient(DEADLINE)))?;
    let mut tally = Tally::default();
    let sent = Instant::now();
    // The requests with odd numbers must be denied.
    let denials = (0..DENIALS).map(|number| test.ask_the_api_server(2 * number + 1));
    for came in plane.block_on(join_all(denials)) {
        tally.count(sent, came);
    }
    tally.took = sent.elapsed();
    Ok(Played::answered(
        tally,
        format!("{ADDRESSES} addresses, {OF_EACH} reviews of each at a time"),
    ))
}
