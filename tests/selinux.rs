//! Conflicts between the SELinux labels of two pods on one volume: Kubernetes'
//! selinux-warning-controller judges every pair of the pods in `selinux.yaml`, a kubelet judges the
//! pairs with certain labels, and `check` must agree with both. The kubelet needs `PLAY=once`, as
//! in tests/scenarios.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "in a test, the panic and its message are the report"
)]

#[path = "harness/mod.rs"]
mod harness;

use std::collections::BTreeSet;
use std::sync::LazyLock;
use std::time::Duration;

use harness::control_plane::Options;
use harness::hollow_nodes::Kubelet;
use harness::output::{fed, findings, program};
use harness::programs::with_kubelets;
use harness::shorthand::{Claim, object};
use harness::{ControlPlane, Namespace, Needs, NodeSpec, seen, until};
use serde_json::{Value, json};

const DRIVER: &str = "labelled.csi.example.com";

/// The time limit for waits, generous even on a busy machine.
const WITHIN: Duration = Duration::from_secs(300);

/// The security context of a pod, those of its containers, and whether its label is certain.
type Pod = (Value, Vec<Value>, bool);

static KINDS: LazyLock<Vec<Pod>> =
    LazyLock::new(|| serde_saphyr::from_str(include_str!("selinux.yaml")).unwrap());

/// These pods differ only in the type, which is the type of processes. Files get another type
/// (`InitLabels` in `github.com/opencontainers/selinux`), so the kubelet mounts both with the same
/// label, but the controller compares the type nevertheless.
const ONE_LABEL: [(usize, usize); 2] = [(4, 5), (5, 4)];

/// The spec of a pod of this kind that mounts the claim.
fn spec(pod: usize, claim: &str) -> Value {
    let (of_pod, of_containers, _) = &KINDS[pod];
    let containers: Vec<Value> = of_containers
        .iter()
        .enumerate()
        .map(|(at, security)| {
            json!({
                "name": format!("main-{at}"), "image": "example.com/app:1",
                "securityContext": security,
                "volumeMounts": [{"name": "data", "mountPath": "/data"}],
            })
        })
        .collect();
    json!({
        "automountServiceAccountToken": false,
        "securityContext": of_pod,
        "containers": containers,
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}],
    })
}

/// The volume of a pair, and its claim.
fn storage(namespace: &str, pair: &str) -> [Value; 2] {
    Claim::with_mode("ReadWriteMany").bound_in(namespace, pair, ["", DRIVER])
}

fn name(pair: (usize, usize)) -> String {
    format!("pair-{}-{}", pair.0, pair.1)
}

fn pairs() -> impl Iterator<Item = (usize, usize)> {
    (0..KINDS.len()).flat_map(|one| (0..KINDS.len()).map(move |other| (one, other)))
}

/// The pairs in which both pods suit.
fn pairs_of(suits: impl Fn(usize) -> bool) -> impl Iterator<Item = (usize, usize)> {
    pairs().filter(move |(one, other)| suits(*one) && suits(*other))
}

fn list(items: &[Value]) -> String {
    json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string()
}

/// The names of the pairs in which `check` finds a conflict.
fn found_by_check(driver: &Value) -> BTreeSet<String> {
    let mut items = vec![driver.clone()];
    for pair in pairs() {
        let claim = name(pair);
        items.extend(storage("selinux", &claim));
        for (pod, at) in [(pair.0, "a"), (pair.1, "b")] {
            let name = format!("{claim}-{at}");
            items.push(object(json!({"kind": "Deployment", "namespace": "selinux",
                "name": name, "pod": spec(pod, &claim)})));
        }
    }
    let mut check = program(&["check", "--exit-zero", "--format=json", "-"]);
    findings(&fed(&mut check, &list(&items)))
        .iter()
        .filter(|finding| finding["rule"] == "selinux-label-conflict")
        .map(|finding| pair_of(finding["object"]["name"].as_str().unwrap()))
        .collect()
}

/// The name of the pair, without the letter of the pod.
fn pair_of(name: &str) -> String {
    name.rsplit_once('-').unwrap().0.to_owned()
}

/// Whether the label of the pod's mount is certain, and the hollow node reads every part of the
/// label as a node with SELinux does.
fn suits_a_hollow_node(pod: usize) -> bool {
    KINDS[pod].2 && !(4..=6).contains(&pod)
}

/// The names of the pairs whose second pod does not start on the node of the first.
fn refused_by_a_kubelet(plane: &ControlPlane) -> BTreeSet<String> {
    let namespace = Namespace::new(plane, "kubelet");
    let node = NodeSpec { name: format!("{namespace}-node"), ..NodeSpec::default() };
    let kubelet = Kubelet {
        drivers: vec![DRIVER.to_owned()],
        selinux: true,
        gates: [("SELinuxMount".to_owned(), true)].into(),
        ..Kubelet::default()
    };
    let nodes = plane.hollow_nodes();
    nodes.add(std::slice::from_ref(&node), &kubelet).unwrap();
    let pairs: Vec<_> = pairs_of(suits_a_hollow_node).collect();
    let claims = pairs.iter().flat_map(|pair| storage(&namespace, &name(*pair)));
    create(&namespace, &claims.collect::<Vec<_>>());
    let pods = |letter: &str| -> Vec<Value> {
        let there = json!({"nodeName": node.name});
        let pod = |pair: &(usize, usize)| {
            let kind = if letter == "a" { pair.0 } else { pair.1 };
            pod(kind, &name(*pair), letter, &there)
        };
        pairs.iter().map(pod).collect()
    };
    let listed = |kind: &str| namespace.list(kind).unwrap();
    let running = || -> BTreeSet<String> {
        listed("pods")
            .iter()
            .filter(|pod| pod["status"]["phase"] == "Running")
            .map(|pod| pod["metadata"]["name"].as_str().unwrap().to_owned())
            .collect()
    };
    create(&namespace, &pods("a"));
    until("the first pods to run", WITHIN, || {
        let count = running().len();
        seen(count == pairs.len(), count)
    });
    create(&namespace, &pods("b"));
    let refused = until("the second pods to run or to be refused", WITHIN, || {
        let refused: BTreeSet<String> = listed("events")
            .iter()
            .filter(|event| event["message"].to_string().contains("conflicting SELinux labels"))
            .filter_map(|event| event["involvedObject"]["name"].as_str().map(str::to_owned))
            .collect();
        let ended = running().len() + refused.len();
        seen(ended == 2 * pairs.len(), refused)
    });
    refused.iter().map(|pod| pair_of(pod)).collect()
}

/// A pod of a pair; `with` is merged into its spec.
fn pod(kind: usize, claim: &str, letter: &str, with: &Value) -> Value {
    let (name, with) = (format!("{claim}-{letter}"), json!({"spec": with}));
    object(json!({"kind": "Pod", "name": name, "pod": spec(kind, claim), "with": with}))
}

fn create(namespace: &Namespace<'_>, items: &[Value]) {
    let create = ["create", "-f", "-"];
    namespace.kubectl(&create, Some(&list(items))).success();
}

#[test]
fn labels_conflict_where_the_warning_controller_says_so() {
    let options = Options {
        controllers: true,
        // Until 1.37 the API server accepts `MountOption` only with this gate.
        api_server_flags: vec!["--feature-gates=SELinuxMount=true".to_owned()],
        controller_manager_flags: vec!["--controllers=selinux-warning-controller".to_owned()],
    };
    let plane = harness::or_skip!(harness::start_control_plane_with(Needs::Controllers, &options));
    let mounts = json!({"spec": {"attachRequired": false, "seLinuxMount": true}});
    let driver = object(json!({"kind": "CSIDriver", "name": DRIVER, "with": mounts}));
    let namespace = Namespace::new(&plane, "selinux");
    // The controller handles all pods in sequence, so this pair is the last one; it surely
    // conflicts.
    let last = "pair-last-last".to_owned();
    let names = || pairs().map(name).chain([last.clone()]);
    let claims = names().flat_map(|pair| storage(&namespace, &pair));
    let storage = [driver.clone()].into_iter().chain(claims);
    create(&namespace, &storage.collect::<Vec<_>>());
    let bound = "wait --for=jsonpath={.status.phase}=Bound pvc --all --timeout=300s";
    plane.run(&format!("{bound} -n {namespace}"));
    let never = json!({"schedulingGates": [{"name": "example.com/never"}]});
    let of_pair = |(one, other): (usize, usize)| {
        let claim = name((one, other));
        [(one, "a"), (other, "b")].map(|(kind, letter)| pod(kind, &claim, letter, &never))
    };
    let pods: Vec<Value> = pairs().flat_map(of_pair).collect();
    create(&namespace, &pods);
    let surely = [pod(2, &last, "a", &never), pod(3, &last, "b", &never)];
    create(&namespace, &surely);

    let conflicting = until("the last pair to conflict", WITHIN, || {
        let events = namespace.list("events")?;
        let found: BTreeSet<String> = events
            .iter()
            .filter(|event| {
                let reason = event["reason"].as_str().unwrap_or_default();
                ["SELinuxLabelConflict", "SELinuxChangePolicyConflict"].contains(&reason)
            })
            .filter_map(|event| event["involvedObject"]["name"].as_str().map(pair_of))
            .collect();
        seen(found.contains(&last), found)
    });
    let found = found_by_check(&driver);
    let expected: BTreeSet<String> = pairs_of(|pod| KINDS[pod].2)
        .filter(|pair| !ONE_LABEL.contains(pair))
        .map(name)
        .filter(|pair| conflicting.contains(pair))
        .collect();
    assert_eq!(found, expected);
    println!(
        "{} pairs; {} conflict, {} are found",
        pairs().count(),
        conflicting.len() - 1,
        found.len()
    );
    let skip = || harness::skip("Without PLAY=once there are no nodes with kubelets.");
    harness::or_skip!(with_kubelets().then_some(()).or_else(skip));
    let refused: BTreeSet<String> =
        pairs_of(suits_a_hollow_node).map(name).filter(|pair| found.contains(pair)).collect();
    assert_eq!(refused_by_a_kubelet(&plane), refused);
    println!("A kubelet refuses {} of the pods.", refused.len());
}
