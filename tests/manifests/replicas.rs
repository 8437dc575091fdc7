//! Two replicas behind one address: what the API server makes of one that ends, or dies,
//! while it asks all the time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{Api, PostParams};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::harness::fake_nodes::ATTACHING_DRIVER;
use crate::harness::{self, ControlPlane, Guard, GuardOptions, Needs, Options, WebhookOptions};
use crate::installed::DEADLINE;
use crate::monitoring::OF_THE_API_SERVER;
use crate::requests::{label, series};
use crate::service::Service;

/// Requests that are under way at the same time.
const ASKING: usize = 4;

/// Requests after which a change has been felt: each connection was asked, and more.
const OFTEN: usize = 40;

/// What became of the requests, each of which is one that the guard denies.
#[derive(Clone, Debug, Default, PartialEq)]
struct LiveLookups {
    denied: usize,
    /// Let through, though it is to be denied.
    admitted: usize,
    /// The API server could not ask.
    failed: Vec<String>,
}

/// Asks until it is stopped.
struct Asking<'a> {
    plane: &'a ControlPlane,
    stop: watch::Sender<bool>,
    /// How many were answered.
    count: Arc<AtomicUsize>,
    workers: JoinSet<LiveLookups>,
}

impl<'a> Asking<'a> {
    fn start(plane: &'a ControlPlane, namespace: &str) -> Self {
        let (stop, stopped) = watch::channel(false);
        let count = Arc::new(AtomicUsize::new(0));
        let mut workers = JoinSet::new();
        for _ in 0..ASKING {
            let api = Api::<Deployment>::namespaced(plane.client(), namespace);
            let (stopped, count) = (stopped.clone(), Arc::clone(&count));
            let worker = async move {
                let dry_run = PostParams {
                    dry_run: true,
                    ..PostParams::default()
                };
                let deployment = deployment();
                let mut asked = LiveLookups::default();
                while !*stopped.borrow() {
                    match api.create(&dry_run, &deployment).await {
                        Ok(_) => asked.admitted += 1,
                        Err(kube::Error::Api(error)) => match error.message {
                            message if message.contains("denied the request") => asked.denied += 1,
                            message => asked.failed.push(message),
                        },
                        Err(error) => panic!("the API server itself is away: {error}"),
                    }
                    count.fetch_add(1, Ordering::Relaxed);
                }
                asked
            };
            workers.spawn_on(worker, plane.runtime().handle());
        }
        Self {
            plane,
            stop,
            count,
            workers,
        }
    }

    fn goes_on(&self) {
        let enough = self.count.load(Ordering::Relaxed) + OFTEN;
        harness::wait_until("more requests", DEADLINE, || {
            let count = self.count.load(Ordering::Relaxed);
            (count >= enough).then_some(()).ok_or(format!("{count}"))
        })
        .unwrap();
    }

    fn end(mut self) -> LiveLookups {
        self.goes_on();
        self.stop.send(true).unwrap();
        let mut all = LiveLookups::default();
        while let Some(asked) = self.plane.block_on(self.workers.join_next()) {
            let asked = asked.unwrap();
            all.denied += asked.denied;
            all.admitted += asked.admitted;
            all.failed.extend(asked.failed);
        }
        all
    }
}

/// Rolling updates of it deadlock.
fn deployment() -> Deployment {
    serde_json::from_value(json!({
        "metadata": {"generateName": "web-"},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {
                    "containers": [{"name": "web", "image": "web", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}],
                    "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
                },
            },
        },
    }))
    .unwrap()
}

fn storage(namespace: &str) -> [Value; 5] {
    let node = |name: &str| {
        json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        })
    };
    [
        node("node-a"),
        node("node-b"),
        json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver",
            "metadata": {"name": ATTACHING_DRIVER}, "spec": {"attachRequired": true},
        }),
        json!({
            "apiVersion": "v1", "kind": "PersistentVolume",
            "metadata": {"name": "data"},
            "spec": {
                "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
                "storageClassName": "", "claimRef": {"namespace": namespace, "name": "data"},
                "csi": {"driver": ATTACHING_DRIVER, "volumeHandle": "data"},
            },
        }),
        json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data"},
            "spec": {
                "accessModes": ["ReadWriteOnce"], "storageClassName": "", "volumeName": "data",
                "resources": {"requests": {"storage": "1Gi"}},
            },
        }),
    ]
}

/// Objects that the API server let pass because it could not ask the validating webhook.
fn passed(plane: &ControlPlane) -> usize {
    let exposition = plane.kubectl(&["get", "--raw=/metrics"], None).success();
    series(&exposition.stdout, OF_THE_API_SERVER[0])
        .filter(|(labels, _)| label(labels, "type") == "validating")
        .map(|(_, count)| usize::try_from(count).unwrap())
        .sum()
}

/// One that ends loses nothing. One that dies takes along what it was being asked, and
/// what it is asked until it is no endpoint any more: then the failure policy decides, and
/// nothing is answered wrongly.
#[test]
fn one_of_two_replicas_is_enough() {
    let options = Options::of(Needs::ApiServer);
    let Some(plane) = harness::start_control_plane_with(Needs::ApiServer, &options) else {
        return;
    };
    let namespace = plane.namespace("replicas");
    for object in storage(&namespace) {
        plane.apply(&namespace, &object.to_string());
    }
    let start = |name: &str| {
        let guard = plane.guard(name, &GuardOptions::default());
        guard.until_heard(&plane);
        guard
    };
    let service = Service::start(&plane);
    let (mut one, mut other) = (start("one"), start("other"));
    for failure_policy in ["Fail", "Ignore"] {
        service.leads_to(&[&one, &other]);
        let options = WebhookOptions {
            failure_policy,
            ..WebhookOptions::new(&format!("https://{}", service.address), &[&namespace])
        };
        let registration = plane.register_webhooks("replicas", &options);

        let asking = Asking::start(&plane, &namespace);
        asking.goes_on();
        one.program.signal("TERM");
        until_not_ready(&plane, &one);
        service.leads_to(&[&other]);
        let ended = one.program.wait(DEADLINE).unwrap();
        assert!(ended.success(), "{}", one.program.log_tail());
        asking.goes_on();
        one = start(&format!("one-after-{failure_policy}"));
        service.leads_to(&[&one, &other]);
        let asked = asking.end();
        eprintln!("{failure_policy}, SIGTERM: {}", summary(&asked));
        assert_eq!((asked.admitted, asked.failed), (0, Vec::new()));

        let before = passed(&plane);
        let asking = Asking::start(&plane, &namespace);
        asking.goes_on();
        other.program.signal("KILL");
        other.program.wait(DEADLINE).unwrap();
        // Until the endpoints change, new connections lead there as well.
        asking.goes_on();
        service.leads_to(&[&one]);
        let meanwhile = asking.end();
        eprintln!("{failure_policy}, SIGKILL: {}", summary(&meanwhile));
        match failure_policy {
            "Fail" => assert_eq!(meanwhile.admitted, 0),
            // All that passed did so unasked.
            _ => assert!(meanwhile.admitted <= passed(&plane) - before),
        }
        let unasked = |error: &String| error.contains("failed calling webhook");
        assert!(meanwhile.failed.iter().all(unasked), "{meanwhile:?}");

        let asking = Asking::start(&plane, &namespace);
        other = start(&format!("other-after-{failure_policy}"));
        service.leads_to(&[&one, &other]);
        let asked = asking.end();
        assert_eq!((asked.admitted, asked.failed), (0, Vec::new()));
        drop(registration);
    }
}

fn until_not_ready(plane: &ControlPlane, guard: &Guard) {
    let url = format!("{}/readyz", guard.admin_url);
    harness::wait_until("the replica to be no longer ready", DEADLINE, || {
        let answer = plane.block_on(plane.http().get(&url).send());
        match answer {
            Ok(answer) if answer.status().is_success() => Err("ready".to_owned()),
            _ => Ok(()),
        }
    })
    .unwrap();
}

fn summary(asked: &LiveLookups) -> String {
    let mut failures = asked.failed.clone();
    failures.sort_unstable();
    failures.dedup();
    format!(
        "{} denied, {} admitted, {} failed {failures:?}",
        asked.denied,
        asked.admitted,
        asked.failed.len()
    )
}
