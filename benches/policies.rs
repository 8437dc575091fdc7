//! The cost of the policies for the API server, the guard's writes for them, and the cost of the
//! largest objects with policies and webhooks. Prints the requested parts:
//!
//! ```text
//! cargo bench --bench policies -- latency writes padding
//! ```

#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a bench that cannot run has nothing else to say"
)]

#[path = "../tests/harness/mod.rs"]
mod harness;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use axum::http::{Method, Request};
use futures_util::stream::{self, StreamExt};
use harness::padding::{PADDING, lists, padded};
use harness::shorthand::{bound_claim, object};
use harness::{ControlPlane, GuardOptions, Needs, WebhookOptions, asking, until};
use serde_json::{Map, Value, json};

const DRIVER: &str = "ebs.csi.aws.com";

const SOON: Duration = Duration::from_secs(60);

fn main() {
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            "latency" => latency(),
            "writes" => writes(),
            "padding" => padding(),
            // cargo itself adds this argument.
            "--bench" => {}
            other => panic!("{other:?} is none of latency, writes and padding"),
        }
    }
}

/// A control plane with two nodes and a class whose volumes attach to one node.
fn start() -> Option<ControlPlane> {
    let plane = harness::start_control_plane(Needs::ApiServer)?;
    let node = |name: &str| json!({"kind": "Node", "name": name, "labels": {"kubernetes.io/hostname": name}});
    let attached = json!({"spec": {"attachRequired": true}});
    for shorthand in [
        node("node-a"),
        node("node-b"),
        json!({"kind": "StorageClass", "name": "disk", "with": {"provisioner": DRIVER}}),
        json!({"kind": "CSIDriver", "name": DRIVER, "with": attached}),
    ] {
        plane.apply("default", &object(shorthand).to_string());
    }
    Some(plane)
}

/// Applies the policies of the component, and excludes the namespace `plain` from them.
fn apply_policies(plane: &ControlPlane) {
    let component =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("manifests/components/admission-policies");
    for file in ["crd.yaml", "policies.yaml"] {
        let text = fs::read_to_string(component.join(file)).unwrap().replace(
            "values: [kube-system, multi-attach-guard]",
            "values: [kube-system, multi-attach-guard, plain]",
        );
        plane.kubectl(&["apply", "-f", "-"], Some(&text)).success();
    }
}

fn namespace(plane: &ControlPlane, name: &str) {
    let object = object(json!({"kind": "Namespace", "name": name}));
    plane.send(Method::POST, "/api/v1/namespaces", &object).unwrap();
}

fn deployments(namespace: &str) -> String {
    format!("/apis/apps/v1/namespaces/{namespace}/deployments?dryRun=All")
}

/// A Deployment with a claim.
fn deployment(strategy: &str) -> Value {
    object(json!({"kind": "Deployment", "uses": ["data-7"], "strategy": strategy}))
}

fn percentile(times: &mut [Duration], percent: usize) -> Duration {
    times.sort_unstable();
    times[(times.len() - 1) * percent / 100]
}

/// The value of one of the API server's series.
fn counted(plane: &ControlPlane, series: &str) -> f64 {
    let exposition = plane.exposition();
    let value =
        exposition.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' ')).unwrap();
    value.parse().unwrap()
}

const NAMESPACES: usize = 500;
const CLAIMS: usize = 100;
const REQUESTS: usize = 10_000;
/// The number of claims in the largest namespace whose facts are written.
const LARGE: usize = 17_000;

/// The time that the policies add to a create.
fn latency() {
    let Some(plane) = start() else { return };
    apply_policies(&plane);
    namespace(&plane, "plain");
    let shops: Vec<String> = (0..NAMESPACES).map(|number| format!("shop-{number}")).collect();
    let small = shops.iter().map(|name| (name.as_str(), CLAIMS));
    for (name, claims) in [("large", LARGE)].into_iter().chain(small) {
        namespace(&plane, name);
        let path = format!("/apis/multi-attach-guard.dev/v1alpha1/namespaces/{name}/volumefacts");
        until("the definition", SOON, || {
            plane.send(Method::POST, &path, &facts(claims)).map_err(|error| error.to_string())
        });
    }
    let [passes, denied] = ["Recreate", "RollingUpdate"].map(deployment);
    let [plain, large] = ["plain", "large"].map(|name| [name.to_owned()]);
    for round in 1..=2 {
        println!("Round {round}");
        for (what, object, namespaces) in [
            ("without the policies", &passes, &plain[..]),
            ("passes, 500 namespaces of 100 claims", &passes, &shops),
            ("denied, 500 namespaces of 100 claims", &denied, &shops),
            ("passes, one namespace of 17,000 claims", &passes, &large),
            ("denied, one namespace of 17,000 claims", &denied, &large),
        ] {
            create(&plane, what, object, namespaces);
        }
    }
}

/// The facts of a namespace with this number of claims.
fn facts(claims: usize) -> Value {
    let claim = |at| (format!("data-{at}"), json!("OneNode-1f2e3d4c"));
    let claims: Map<String, Value> = (0..claims).map(claim).collect();
    let is = format!("is ReadWriteOnce ({DRIVER})");
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

/// Creates the object in these namespaces in turn, and prints the times of the client and of the
/// API server's validating step, which includes all validating plugins. The difference between two
/// rows is the time of the policies. The API server is restarted so that it counts nothing else.
fn create(plane: &ControlPlane, what: &str, object: &Value, namespaces: &[String]) {
    plane.api_server().signal("KILL");
    plane.api_server().wait(SOON).unwrap();
    plane.start_api_server_again().unwrap();
    let send = |namespace: &str, body| plane.send(Method::POST, &deployments(namespace), body);
    let denied = deployment("RollingUpdate");
    until("a denial", SOON, || match send("shop-0", &denied) {
        Ok(()) => Err("nothing is refused".to_owned()),
        Err(error) if error.to_string().contains("rolling-update") => Ok(()),
        Err(error) => Err(error.to_string()),
    });
    let mut times = Vec::new();
    let mut refused = 0;
    for namespace in namespaces.iter().cycle().take(REQUESTS) {
        let began = Instant::now();
        refused += usize::from(send(namespace, object).is_err());
        times.push(began.elapsed());
    }
    assert!(refused % REQUESTS == 0, "{what}: {refused} were refused");
    let [median, most] = [50, 99].map(|percent| percentile(&mut times, percent));
    let [step_median, step_most] = ["0.5", "0.99"].map(|quantile| {
        let series = format!(
            "apiserver_admission_step_admission_duration_seconds_summary{{operation=\"CREATE\",\
             rejected=\"{}\",type=\"validate\",quantile=\"{quantile}\"}}",
            refused > 0
        );
        Duration::from_secs_f64(counted(plane, &series))
    });
    println!(
        "{what}: client p50 {median:?}, p99 {most:?}; \
         API server's validating step p50 {step_median:?}, p99 {step_most:?}"
    );
}

/// The guard's writes at 200 new claims per second.
fn writes() {
    const SECONDS: u64 = 20;
    let Some(plane) = start() else { return };
    apply_policies(&plane);
    let options = GuardOptions::default().with(&["--admission-policies"]);
    let guard = plane.guard("writes", &options);
    for number in 0..50 {
        namespace(&plane, &format!("shop-{number}"));
    }
    let series = "multi_attach_guard_volume_facts_writes_total";
    let before = guard.count(&plane, series);
    let began = Instant::now();
    let client = plane.client();
    let created = plane.block_on(async {
        let mut interval = tokio::time::interval(Duration::from_millis(5));
        let ticks = stream::poll_fn(|context| interval.poll_tick(context).map(Some))
            .take_while(|_| std::future::ready(began.elapsed() < Duration::from_secs(SECONDS)));
        let changes = ticks.enumerate().map(|(number, _)| {
            let client = client.clone();
            async move {
                let name = format!("data-{number}");
                let claim = object(json!({"kind": "PersistentVolumeClaim", "name": name}));
                let shop = number % 50;
                let path = format!("/api/v1/namespaces/shop-{shop}/persistentvolumeclaims");
                let request = asking::request(Method::POST, &path, &claim);
                client.request_text(request).await.is_ok()
            }
        });
        changes.buffer_unordered(64).filter(|made| std::future::ready(*made)).count().await
    });
    let took = began.elapsed().as_secs_f64();
    let rate = |count: f64| count / took;
    let written = rate((guard.count(&plane, series) - before) as f64);
    println!(
        "{:.0} changes a second in 50 namespaces: {written:.1} writes a second, {:.2} a second and namespace",
        rate(created as f64),
        written / 50.0
    );
}

/// The number of turns of creates without and with the guard. Each is long enough to be measured
/// with the API server's CPU clock, which counts hundredths of a second.
const TURNS: usize = 3;
const OF_A_TURN: Duration = Duration::from_millis(1500);

/// The largest objects, in a reviewed namespace and in an excluded one.
fn padding() {
    let Some(plane) = start() else { return };
    let [left_out, looked_at] = ["multi-attach-guard", "padded"];
    for name in [left_out, looked_at] {
        namespace(&plane, name);
    }
    for object in bound_claim(looked_at, "one", DRIVER) {
        plane.apply(looked_at, &object.to_string());
    }
    let options = GuardOptions::default().with(&["--admission-policies"]);
    let guard = plane.guard("padding", &options);
    let webhooks = WebhookOptions::new(&guard.url, &[looked_at]);
    let _registration = plane.register_webhooks("padding", &webhooks);
    println!("| list | bytes | strategy | refused | ms | with | ratio | CPU ms | with | ratio |");
    println!("|---|---|---|---|---|---|---|---|---|---|");
    print_times(&plane, [left_out, looked_at], "webhooks");
    apply_policies(&plane);
    until("the facts about the claim", SOON, || {
        let get = ["get", "volumefacts", "-n", looked_at, "-o=json"];
        let facts = plane.kubectl(&get, None);
        harness::seen(facts.stdout.contains("\"one\""), facts)
    });
    print_times(&plane, [left_out, looked_at], "webhooks and policies");
}

/// The median time of a create, and the API server's CPU time for one, which other programs on the
/// machine affect least.
fn print_times(plane: &ControlPlane, namespaces: [&str; 2], what: &str) {
    for (list, strategy) in
        lists().iter().flat_map(|list| [(list, "Recreate"), (list, "RollingUpdate")])
    {
        let object = padded("padded", list, PADDING, &json!({"strategy": {"type": strategy}}));
        let requests =
            namespaces.map(|name| asking::request(Method::POST, &deployments(name), &object));
        let mut spent = [(); 2].map(|()| (Vec::new(), 0.0));
        let mut refused = [0; 2];
        for at in [0, 1].repeat(TURNS) {
            let before = cpu_seconds(plane);
            let turn = Instant::now();
            while turn.elapsed() < OF_A_TURN {
                let request: Request<Vec<u8>> = requests[at].clone();
                let began = Instant::now();
                let sent = plane.block_on(plane.client().request_text(request));
                spent[at].0.push(began.elapsed());
                refused[at] += usize::from(sent.is_err());
            }
            spent[at].1 += cpu_seconds(plane) - before;
        }
        assert_eq!(refused[0], 0, "{} is refused where nobody looks", list.name);
        let all = spent[1].0.len();
        let [without, with] = spent.map(|(mut times, cpu)| {
            let median = percentile(&mut times, 50).as_secs_f64() * 1e3;
            [median, cpu * 1e3 / times.len() as f64]
        });
        let columns = [0, 1].map(|at| {
            let (without, with) = (without[at], with[at]);
            format!("{without:.0} | {with:.0} | {:.2}", with / without)
        });
        println!(
            "| {}, {what} | {} | {strategy} | {} of {all} | {} |",
            list.name,
            object.to_string().len(),
            refused[1],
            columns.join(" | "),
        );
    }
}

fn cpu_seconds(plane: &ControlPlane) -> f64 {
    counted(plane, "process_cpu_seconds_total")
}
