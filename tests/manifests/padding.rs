//! Objects padded to what etcd takes: no list makes one pass unjudged.
//!
//! What they cost the API server is measured, and not asserted:
//!
//! ```text
//! cargo test --release --test manifests measure -- --ignored --nocapture
//! ```

use std::time::{Duration, Instant};

use axum::http::{Method, Request};
use kube::Error;
use serde_json::{Value, json};

use crate::harness::{self, ControlPlane, GuardOptions};
use crate::installed::{DEADLINE, client_config, register_changed};
use crate::requests::{Snapshot, workload};

/// Bytes of padding; etcd takes 1.5 MiB of the object as the API server encodes it.
const PADDING: usize = 1_100_000;

/// A list of a pod that may still run on every node, an entry of it, and how it is put into the pod.
type Case = (&'static str, fn(usize) -> Value, fn(&mut Value, Vec<Value>));

const LISTS: [Case; 16] = [
    (
        "volumes",
        |at| json!({"name": format!("e{at}"), "emptyDir": {}}),
        |pod, mut list| {
            // What decides comes last.
            list.extend(pod["volumes"].as_array().into_iter().flatten().cloned());
            pod["volumes"] = list.into();
        },
    ),
    (
        "containers",
        |at| json!({"name": format!("c{at}"), "image": "i"}),
        |pod, list| pod["containers"].as_array_mut().unwrap().extend(list),
    ),
    (
        "environment",
        |at| json!({"name": format!("E{at}"), "value": ""}),
        |pod, list| pod["containers"][0]["env"] = list.into(),
    ),
    (
        "mounts",
        |at| json!({"name": "one", "mountPath": format!("/m{at}")}),
        |pod, list| pod["containers"][0]["volumeMounts"] = list.into(),
    ),
    (
        "tolerations",
        |at| json!({"key": format!("k{at}"), "operator": "Exists"}),
        |pod, list| pod["tolerations"] = list.into(),
    ),
    (
        "preferences",
        |at| {
            let expression = json!({"key": format!("k{at}"), "operator": "Exists"});
            json!({"weight": 1, "preference": {"matchExpressions": [expression]}})
        },
        |pod, list| {
            pod["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"] =
                list.into();
        },
    ),
    (
        "values",
        |at| json!(format!("v{at}")),
        |pod, list| {
            let expression = json!({"key": "k", "operator": "NotIn", "values": list});
            pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] =
                json!({"nodeSelectorTerms": [{"matchExpressions": [expression]}]});
        },
    ),
    (
        "spread constraints",
        |at| json!({"maxSkew": 1, "topologyKey": format!("k{at}"), "whenUnsatisfiable": "ScheduleAnyway"}),
        |pod, list| pod["topologySpreadConstraints"] = list.into(),
    ),
    (
        "readiness gates",
        |at| json!({"conditionType": format!("k{at}")}),
        |pod, list| pod["readinessGates"] = list.into(),
    ),
    (
        "init containers",
        |at| json!({"name": format!("i{at}"), "image": "i"}),
        |pod, list| pod["initContainers"] = list.into(),
    ),
    (
        "projected sources",
        |at| json!({"configMap": {"name": format!("k{at}")}}),
        |pod, list| {
            let volume = json!({"name": "p", "projected": {"sources": list}});
            pod["volumes"].as_array_mut().unwrap().insert(0, volume);
        },
    ),
    (
        "ephemeral volumes",
        |at| {
            let spec = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1"}}});
            json!({"name": format!("e{at}"), "ephemeral": {"volumeClaimTemplate": {"spec": spec}}})
        },
        |pod, list| pod["volumes"].as_array_mut().unwrap().extend(list),
    ),
    (
        "node selector terms",
        |at| json!({"matchExpressions": [{"key": format!("k{at}"), "operator": "DoesNotExist"}]}),
        |pod, list| {
            pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] =
                json!({"nodeSelectorTerms": list});
        },
    ),
    (
        "terms of pod anti-affinity",
        |at| json!({"topologyKey": format!("k{at}"), "labelSelector": {"matchLabels": {"a": "b"}}}),
        |pod, list| {
            pod["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] =
                list.into();
        },
    ),
    (
        "pull secrets",
        |at| json!({"name": format!("s{at}")}),
        |pod, list| pod["imagePullSecrets"] = list.into(),
    ),
    (
        "host aliases",
        |at| json!({"ip": "10.0.0.1", "hostnames": [format!("k{at}")]}),
        |pod, list| pod["hostAliases"] = list.into(),
    ),
];

/// A Deployment with a list of so many bytes whose pod may run on either node.
fn padded(name: &str, (_, entry, put): Case, bytes: usize, spec: &Value) -> Value {
    let one = entry(0).to_string().len() + 5;
    let object = workload("Deployment", name, &["one"], &json!({ "spec": spec }));
    let mut object: Value = serde_json::from_str(&object).unwrap();
    let list = (0..bytes / one).map(entry).collect();
    put(&mut object["spec"]["template"]["spec"], list);
    object
}

fn two_nodes(plane: &ControlPlane) {
    for name in ["padded-a", "padded-b"] {
        let labels = json!({"kubernetes.io/hostname": name});
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}});
        plane
            .kubectl(&["create", "-f", "-"], Some(&node.to_string()))
            .success();
    }
}

/// What the API server makes of a Deployment.
fn send(
    plane: &ControlPlane,
    method: Method,
    (namespace, rest): (&str, &str),
    body: &[u8],
) -> Result<(), Error> {
    let content = match method {
        Method::PATCH => "application/merge-patch+json",
        _ => "application/json",
    };
    let request = Request::builder()
        .method(method)
        .uri(format!(
            "/apis/apps/v1/namespaces/{namespace}/deployments{rest}"
        ))
        .header("content-type", content)
        .body(body.to_vec())
        .map_err(Error::HttpError)?;
    plane
        .block_on(plane.client().request_text(request))
        .map(drop)
}

#[test]
fn no_list_makes_an_object_pass_unjudged() {
    let cluster = harness::or_skip!(Snapshot::start());
    let plane = &cluster.plane;
    two_nodes(plane);
    // A debug build is slow, and whether it is in time is no question here.
    register_changed(plane, "fencing", |_, webhook| {
        webhook["clientConfig"] = client_config(plane, &cluster.guard, webhook);
        webhook["timeoutSeconds"] = json!(30);
    });
    let mut passed = Vec::new();
    for (at, case) in LISTS.into_iter().enumerate() {
        let mut expect_denial = |what: &str, sent: Result<(), Error>| {
            let said = sent.map_or_else(|error| error.to_string(), |()| "passed".to_owned());
            if !said.contains("multi-attach-guard.dev\" denied the request") {
                let said: String = said.chars().take(500).collect();
                passed.push(format!("{}, {what}: {said}", case.0));
            }
        };
        let name = format!("padded-{at}");
        let object = padded(&name, case, PADDING, &json!({})).to_string();
        let created = (&*cluster.namespace, "?dryRun=All");
        expect_denial(
            "created",
            send(plane, Method::POST, created, object.as_bytes()),
        );
        // Without pods it passes, so that it is stored; with its defaults it may be too large.
        let idle = json!({"replicas": 0, "paused": true});
        let store = |bytes: usize| {
            let idle = padded(&name, case, bytes, &idle).to_string();
            send(
                plane,
                Method::POST,
                (&cluster.namespace, ""),
                idle.as_bytes(),
            )
        };
        store(PADDING).or_else(|_| store(PADDING / 2)).unwrap();
        let started = format!("/{name}?dryRun=All");
        let change = br#"{"spec": {"replicas": 1}}"#;
        let started = (&*cluster.namespace, &*started);
        expect_denial("updated", send(plane, Method::PATCH, started, change));
    }
    assert!(passed.is_empty(), "{passed:#?}");
}

/// Turns of creates without the guard and with it. Each lasts so long that the API server's clock,
/// which counts hundredths of a second, tells them apart.
const TURNS: usize = 3;
const OF_A_TURN: Duration = Duration::from_millis(1500);

/// A namespace that neither the webhooks nor the policies look at.
const LEFT_OUT: &str = "multi-attach-guard";

#[test]
#[ignore = "a measurement"]
fn measure_the_time_of_the_largest_objects() {
    let cluster = harness::or_skip!(Snapshot::start());
    let plane = &cluster.plane;
    two_nodes(plane);
    println!("| list | bytes | strategy | refused | ms | with | ratio | CPU ms | with | ratio |");
    println!("|---|---|---|---|---|---|---|---|---|---|");
    print_times(&cluster, "webhooks");
    let component = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/manifests/components/admission-policies"
    );
    for file in ["crd.yaml", "policies.yaml"] {
        let file = format!("{component}/{file}");
        plane.kubectl(&["apply", "-f", &file], None).success();
    }
    let options = GuardOptions::default().with(&["--admission-policies"]);
    let _writer = plane.guard("facts", &options);
    harness::until("the facts about the claim", DEADLINE, || {
        let facts = cluster.run(&["get", "volumefacts", "-o=json"], None);
        let is_there = facts.stdout.contains("\"one\"");
        is_there.then_some(()).ok_or_else(|| format!("{facts:?}"))
    });
    print_times(&cluster, "webhooks and policies");
}

/// The medians of a create, and the API server's CPU time for one, which other programs on the
/// machine change least.
fn print_times(cluster: &Snapshot, what: &str) {
    let plane = &cluster.plane;
    for case in LISTS {
        for strategy in ["Recreate", "RollingUpdate"] {
            let object = padded(
                "padded",
                case,
                PADDING,
                &json!({"strategy": {"type": strategy}}),
            );
            let body = object.to_string().into_bytes();
            let mut spent = [(); 2].map(|()| (Vec::new(), 0.0));
            let mut refused = 0;
            for _ in 0..TURNS {
                for (namespace, (times, cpu)) in
                    [LEFT_OUT, &cluster.namespace].iter().zip(&mut spent)
                {
                    let before = cpu_seconds(plane);
                    let turn = Instant::now();
                    while turn.elapsed() < OF_A_TURN {
                        let began = Instant::now();
                        let sent = send(plane, Method::POST, (namespace, "?dryRun=All"), &body);
                        times.push(began.elapsed());
                        assert!(sent.is_ok() || *namespace != LEFT_OUT, "{sent:?}");
                        refused += usize::from(sent.is_err());
                    }
                    *cpu += cpu_seconds(plane) - before;
                }
            }
            let all = spent[1].0.len();
            let [without, with] = spent.map(|(times, cpu)| {
                let of_one = cpu * 1e3 / times.len() as f64;
                [median_in_ms(times), of_one]
            });
            let columns = [0, 1].map(|at| {
                let (without, with) = (without[at], with[at]);
                format!("{without:.0} | {with:.0} | {:.2}", with / without)
            });
            println!(
                "| {}, {what} | {} | {strategy} | {refused} of {all} | {} |",
                case.0,
                body.len(),
                columns.join(" | "),
            );
        }
    }
}

fn cpu_seconds(plane: &ControlPlane) -> f64 {
    let request = Request::get("/metrics").body(Vec::new()).unwrap();
    let metrics = plane
        .block_on(plane.client().request_text(request))
        .unwrap();
    let mut lines = metrics.lines();
    let seconds = lines.find_map(|line| line.strip_prefix("process_cpu_seconds_total "));
    seconds.unwrap().parse().unwrap()
}

fn median_in_ms(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1e3
}
