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

use crate::harness::shorthand::object;
use crate::harness::{self, ControlPlane, GuardOptions, Needs};
use crate::{SOON, cluster, objects};

const NAMESPACES: usize = 500;
const CLAIMS: usize = 100;
const REQUESTS: usize = 10_000;
/// The claims of the largest namespace whose facts are written.
const LARGE: usize = 17_000;

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

/// What the API server's clock says of the validating step of all creates that it has admitted,
/// or refused, since it was started: the median and the p99. All validating plugins are in it,
/// so the difference between two series is what the policies take.
fn validating_step(plane: &ControlPlane, is_refused: bool) -> [Duration; 2] {
    let metrics = plane
        .kubectl(&["get", "--raw", "/metrics"], None)
        .success()
        .stdout;
    ["0.5", "0.99"].map(|quantile| {
        let series = format!(
            "apiserver_admission_step_admission_duration_seconds_summary{{operation=\"CREATE\",\
             rejected=\"{is_refused}\",type=\"validate\",quantile=\"{quantile}\"}} "
        );
        let value = metrics.lines().find_map(|line| line.strip_prefix(&series));
        Duration::from_secs_f64(value.unwrap().parse().unwrap())
    })
}

/// Creates the object in these namespaces in turn, and prints the times of the client and of
/// the API server, which is started again to count nothing else.
fn create(plane: &ControlPlane, what: &str, object: &Value, namespaces: &[String]) {
    plane.api_server().signal("KILL");
    plane.api_server().wait(SOON).unwrap();
    plane.start_api_server_again().unwrap();
    let denied = objects::deployment(&json!({}), &["data-7"]);
    let shop = create_path("shop-0");
    harness::until("a denial", SOON, || match send(plane, &shop, &denied) {
        Ok(()) => Err("nothing is refused".to_owned()),
        Err(error) if error.to_string().contains("rolling-update") => Ok(()),
        Err(error) => Err(error.to_string()),
    });
    let mut times = Vec::new();
    let mut refused = 0;
    for namespace in namespaces.iter().cycle().take(REQUESTS) {
        let path = create_path(namespace);
        let began = Instant::now();
        refused += usize::from(send(plane, &path, object).is_err());
        times.push(began.elapsed());
    }
    assert!(refused % REQUESTS == 0, "{what}: {refused} were refused");
    let [median, most] = [50, 99].map(|percent| percentile(&mut times, percent));
    let [step_median, step_most] = validating_step(plane, refused > 0);
    println!(
        "{what}: client p50 {median:?}, p99 {most:?}; \
         API server's validating step p50 {step_median:?}, p99 {step_most:?}"
    );
}

fn create_path(namespace: &str) -> String {
    format!("/apis/apps/v1/namespaces/{namespace}/deployments?dryRun=All")
}

/// The facts of a namespace with so many claims.
fn facts(claims: usize) -> Value {
    let claims: serde_json::Map<String, Value> = (0..claims)
        .map(|at| (format!("data-{at}"), json!("OneNode-1f2e3d4c")))
        .collect();
    let is = "is ReadWriteOnce (ebs.csi.aws.com)";
    json!({
        "apiVersion": "multi-attach-guard.dev/v1alpha1",
        "kind": "VolumeFacts",
        "metadata": {"name": "volumes"},
        "spec": {
            "claims": claims,
            "constraints": {"OneNode-1f2e3d4c": {"reach": "zone", "is": is, "nodes": "3 nodes are eligible"}},
            "denied": {"Deployment": ["rolling-update-overlap", "replicas-share-volume", "single-pod-volume"]},
            "existing": "Deny",
            "overrides": true,
        },
    })
}

#[test]
#[ignore = "a measurement"]
fn measure_the_latency_of_the_policies() {
    let plane = harness::or_skip!(harness::start_control_plane(Needs::ApiServer));
    apply_policies(&plane);
    namespace(&plane, "plain");
    let shops = (0..NAMESPACES).map(|number| (format!("shop-{number}"), CLAIMS));
    for (name, claims) in std::iter::once(("large".to_owned(), LARGE)).chain(shops) {
        namespace(&plane, &name);
        let path = format!("/apis/multi-attach-guard.dev/v1alpha1/namespaces/{name}/volumefacts");
        harness::until("the definition", SOON, || {
            send(&plane, &path, &facts(claims)).map_err(|error| error.to_string())
        });
    }
    let passes = objects::deployment(&json!({"strategy": {"type": "Recreate"}}), &["data-7"]);
    let denied = objects::deployment(&json!({}), &["data-7"]);
    let shops: Vec<String> = (0..NAMESPACES).map(|it| format!("shop-{it}")).collect();
    let [plain, large] = ["plain", "large"].map(|it| [it.to_owned()]);
    for round in 1..=2 {
        println!("Round {round}");
        create(&plane, "without the policies", &passes, &plain);
        create(
            &plane,
            "passes, 500 namespaces of 100 claims",
            &passes,
            &shops,
        );
        create(
            &plane,
            "denied, 500 namespaces of 100 claims",
            &denied,
            &shops,
        );
        create(
            &plane,
            "passes, one namespace of 17,000 claims",
            &passes,
            &large,
        );
        create(
            &plane,
            "denied, one namespace of 17,000 claims",
            &denied,
            &large,
        );
    }
}

#[test]
#[ignore = "a measurement"]
fn measure_the_writes_under_200_changes_a_second() {
    const SECONDS: u64 = 20;
    let plane = harness::or_skip!(harness::start_control_plane(Needs::ApiServer));
    apply_policies(&plane);
    let options = GuardOptions::default().with(&["--admission-policies"]);
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
                    let name = format!("data-{number}");
                    let claim = object(json!({"kind": "PersistentVolumeClaim", "name": name}));
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
