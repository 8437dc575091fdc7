//! What the policies cost the API server, and what the guard writes for them. Prints figures,
//! and asserts none:
//!
//! ```text
//! cargo test --test admission_policies measure -- --ignored --nocapture
//! ```

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use axum::http::Request;
use futures_util::StreamExt;
use futures_util::stream;
use serde_json::{Value, json};

use crate::harness::{self, ControlPlane, GuardOptions, Needs};
use crate::{cluster, objects};

const NAMESPACES: usize = 500;
const CLAIMS: usize = 100;
const REQUESTS: usize = 2_000;

fn send(plane: &ControlPlane, path: &str, object: &Value) -> Result<(), kube::Error> {
    let request = Request::post(path)
        .header("Content-Type", "application/json")
        .body(object.to_string().into_bytes())
        .unwrap();
    plane
        .block_on(plane.client().request_text(request))
        .map(drop)
}

fn percentile(times: &mut [Duration], percent: usize) -> Duration {
    times.sort_unstable();
    times[(times.len() - 1) * percent / 100]
}

/// The policies of the component; `plain`, besides, is a namespace that they leave alone.
fn apply_policies(plane: &ControlPlane) {
    let component =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("manifests/components/admission-policies");
    for file in ["crd.yaml", "policies.yaml"] {
        let text = fs::read_to_string(component.join(file)).unwrap();
        let text = text.replace(
            "values: [kube-system, multi-attach-guard]",
            "values: [kube-system, multi-attach-guard, plain]",
        );
        plane.kubectl(&["apply", "-f", "-"], Some(&text)).success();
    }
}

fn namespace(plane: &ControlPlane, name: &str) {
    let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    send(plane, "/api/v1/namespaces", &object).unwrap();
}

/// The buckets of a histogram of the API server's, summed over its labels.
fn histogram(plane: &ControlPlane, name: &str) -> String {
    let metrics = plane
        .kubectl(&["get", "--raw", "/metrics"], None)
        .success()
        .stdout;
    let lines = metrics
        .lines()
        .filter(|line| line.starts_with(name) && line.contains("workloads.multi-attach-guard.dev"));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
#[ignore = "a measurement"]
fn measure_the_latency_of_the_policies() {
    let Some(plane) = harness::start_control_plane(Needs::ApiServer) else {
        return;
    };
    apply_policies(&plane);
    namespace(&plane, "plain");
    let claims: serde_json::Map<String, Value> = (0..CLAIMS)
        .map(|at| (format!("data-{at}"), json!("OneNode:zone")))
        .collect();
    for number in 0..NAMESPACES {
        let name = format!("shop-{number}");
        namespace(&plane, &name);
        let facts = json!({
            "apiVersion": "multi-attach-guard.dev/v1alpha1",
            "kind": "VolumeFacts",
            "metadata": {"name": "volumes"},
            "spec": {"claims": claims, "limits": {}, "denied": ["rolling-update-overlap",
                "replicas-share-volume", "single-pod-volume", "autoscaler-exceeds-volume"]},
        });
        let path = format!("/apis/multi-attach-guard.dev/v1alpha1/namespaces/{name}/volumefacts");
        send(&plane, &path, &facts).unwrap();
    }
    let object = objects::deployment(&json!({"strategy": {"type": "Recreate"}}), &["data-7"]);
    let denied = objects::deployment(&json!({}), &["data-7"]);
    let path =
        |namespace: &str| format!("/apis/apps/v1/namespaces/{namespace}/deployments?dryRun=All");
    let last = path(&format!("shop-{}", NAMESPACES - 1));
    harness::wait_until("a denial", Duration::from_secs(60), || {
        match send(&plane, &last, &denied) {
            Ok(()) => Err("nothing is refused".to_owned()),
            Err(error) => error
                .to_string()
                .contains("rolling-update")
                .then_some(())
                .ok_or_else(|| error.to_string()),
        }
    })
    .unwrap();
    let [mut with, mut without] = [Vec::new(), Vec::new()];
    for number in 0..REQUESTS {
        for (namespace, times) in [
            (format!("shop-{}", number % NAMESPACES), &mut with),
            ("plain".to_owned(), &mut without),
        ] {
            let began = Instant::now();
            send(&plane, &path(&namespace), &object).unwrap();
            times.push(began.elapsed());
        }
    }
    for percent in [50, 99] {
        let [with, without] = [&mut with, &mut without].map(|times| percentile(times, percent));
        println!(
            "p{percent} of {REQUESTS} creates: {with:?} with the policies, {without:?} without"
        );
    }
    println!(
        "{}",
        histogram(
            &plane,
            "apiserver_validating_admission_policy_check_duration_seconds"
        )
    );
}

#[test]
#[ignore = "a measurement"]
fn measure_the_writes_under_200_changes_a_second() {
    const SECONDS: u64 = 20;
    let Some(plane) = harness::start_control_plane(Needs::ApiServer) else {
        return;
    };
    apply_policies(&plane);
    let options = GuardOptions {
        arguments: vec!["--admission-policies".to_owned()],
        ..GuardOptions::default()
    };
    let guard = plane.guard("writes", &options);
    let first = plane.namespace("first");
    plane.apply(&first, &cluster());
    for number in 0..50 {
        namespace(&plane, &format!("shop-{number}"));
    }
    let series = "multi_attach_guard_volume_facts_writes_total";
    let before = guard.count(&plane, series);
    let began = Instant::now();
    let mut ticks = 0_u64;
    let client = plane.client();
    let created = plane.block_on(async {
        let mut interval = tokio::time::interval(Duration::from_millis(5));
        let changes = stream::poll_fn(|context| interval.poll_tick(context).map(Some))
            .take_while(|_| std::future::ready(began.elapsed() < Duration::from_secs(SECONDS)))
            .map(|_| {
                ticks += 1;
                let (client, number) = (client.clone(), ticks);
                async move {
                    let claim = json!({
                        "apiVersion": "v1",
                        "kind": "PersistentVolumeClaim",
                        "metadata": {"name": format!("data-{number}")},
                        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "disk",
                            "resources": {"requests": {"storage": "1Gi"}}},
                    });
                    let path = format!(
                        "/api/v1/namespaces/shop-{}/persistentvolumeclaims",
                        number % 50
                    );
                    let request = Request::post(path)
                        .header("Content-Type", "application/json")
                        .body(claim.to_string().into_bytes())
                        .unwrap();
                    client.request_text(request).await.is_ok()
                }
            })
            .buffer_unordered(64);
        changes
            .filter(|made| std::future::ready(*made))
            .count()
            .await
    });
    let took = began.elapsed().as_secs_f64();
    let writes = guard.count(&plane, series) - before;
    let rate = |count: f64| count / took;
    println!(
        "{:.0} changes a second in 50 namespaces: {:.1} writes a second, {:.2} a second and namespace",
        rate(created as f64),
        rate(writes as f64),
        rate(writes as f64) / 50.0
    );
}
