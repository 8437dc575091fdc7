//! Whether the SELinux labels of two pods on one volume conflict: Kubernetes'
//! selinux-warning-controller judges every pair of the pods in [`PODS`], and so does `check`.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "in a test, the panic and its message are the report"
)]

#[path = "harness/mod.rs"]
mod harness;

use std::collections::BTreeSet;
use std::process::Command;
use std::time::Duration;

use harness::control_plane::Options;
use harness::{Needs, wait_until};
use serde_json::{Value, json};

const DRIVER: &str = "labelled.csi.example.com";

/// Longer than anything here takes, also where the machine is busy.
const WITHIN: Duration = Duration::from_secs(300);

/// The security context of a pod, those of its containers, and whether it is certain what label
/// its volume is mounted with: an admission plugin may add a label where there is none, and the
/// container runtime chooses a level.
const PODS: [(&str, &[&str], bool); 15] = [
    ("{}", &["{}"], false),
    (r#"{"seLinuxOptions": {}}"#, &["{}"], false),
    (r#"{"seLinuxOptions": {"level": "s0:c1"}}"#, &["{}"], true),
    (r#"{"seLinuxOptions": {"level": "s0:c2"}}"#, &["{}"], true),
    (
        r#"{"seLinuxOptions": {"type": "one_t", "level": "s0:c1"}}"#,
        &["{}"],
        true,
    ),
    (
        r#"{"seLinuxOptions": {"type": "two_t", "level": "s0:c1"}}"#,
        &["{}"],
        true,
    ),
    (
        r#"{"seLinuxOptions": {"user": "one_u", "role": "one_r", "level": "s0:c1"}}"#,
        &["{}"],
        true,
    ),
    (r#"{"seLinuxOptions": {"type": "one_t"}}"#, &["{}"], false),
    (r#"{"seLinuxChangePolicy": "Recursive"}"#, &["{}"], true),
    (
        r#"{"seLinuxChangePolicy": "Recursive", "seLinuxOptions": {"level": "s0:c1"}}"#,
        &["{}"],
        true,
    ),
    (
        r#"{"seLinuxChangePolicy": "MountOption", "seLinuxOptions": {"level": "s0:c1"}}"#,
        &["{}"],
        true,
    ),
    (
        r#"{"seLinuxOptions": {"level": "s0:c1"}}"#,
        &[r#"{"seLinuxOptions": {"level": "s0:c2"}}"#],
        true,
    ),
    (
        r#"{"seLinuxOptions": {"level": "s0:c2"}}"#,
        &[r#"{"privileged": true}"#],
        true,
    ),
    (
        "{}",
        &[r#"{"seLinuxOptions": {"level": "s0:c1"}}"#, "{}"],
        false,
    ),
    (
        "{}",
        &[
            r#"{"seLinuxOptions": {"level": "s0:c1"}}"#,
            r#"{"seLinuxOptions": {"level": "s0:c2"}}"#,
        ],
        false,
    ),
];

/// The spec of such a pod that mounts the claim.
fn spec(pod: usize, claim: &str) -> Value {
    let read = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let containers = PODS[pod].1.iter().enumerate().map(|(at, security)| {
        json!({
            "name": format!("main-{at}"), "image": "example.com/app:1",
            "securityContext": read(security),
            "volumeMounts": [{"name": "data", "mountPath": "/data"}],
        })
    });
    json!({
        "securityContext": read(PODS[pod].0),
        "containers": containers.collect::<Vec<_>>(),
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}],
    })
}

/// The claim of a pair, and its volume.
fn storage(namespace: &str, pair: &str) -> [Value; 2] {
    let (modes, capacity) = (["ReadWriteMany"], json!({"storage": "1Gi"}));
    let volume = format!("{namespace}-{pair}");
    [
        json!({
            "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": volume},
            "spec": {
                "accessModes": modes, "capacity": capacity,
                "csi": {"driver": DRIVER, "volumeHandle": volume},
                "claimRef": {"namespace": namespace, "name": pair},
            },
        }),
        json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": pair, "namespace": namespace},
            "spec": {
                "accessModes": modes, "storageClassName": "", "volumeName": volume,
                "resources": {"requests": capacity},
            },
        }),
    ]
}

fn name(pair: (usize, usize)) -> String {
    format!("pair-{}-{}", pair.0, pair.1)
}

fn pairs() -> impl Iterator<Item = (usize, usize)> {
    (0..PODS.len()).flat_map(|one| (0..PODS.len()).map(move |other| (one, other)))
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
            let labels = json!({"app": format!("{claim}-{at}")});
            items.push(json!({
                "apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": {"name": format!("{claim}-{at}"), "namespace": "selinux"},
                "spec": {
                    "selector": {"matchLabels": labels},
                    "template": {"metadata": {"labels": labels}, "spec": spec(pod, &claim)},
                },
            }));
        }
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("pairs.json"), list(&items)).unwrap();
    let run = Command::new(env!("CARGO_BIN_EXE_multi-attach-guard"))
        .args(["check", "--exit-zero", "--format=json", "pairs.json"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    let report: Value = serde_json::from_slice(&run.stdout).unwrap();
    let findings = report["findings"].as_array().unwrap().iter();
    let findings = findings.filter(|it| it["rule"] == "selinux-label-conflict");
    findings
        .map(|it| pair_of(it["object"]["name"].as_str().unwrap()))
        .collect()
}

/// Without the letter of the pod.
fn pair_of(name: &str) -> String {
    name.rsplit_once('-').unwrap().0.to_owned()
}

#[test]
fn labels_conflict_where_the_warning_controller_says_so() {
    let options = Options {
        controllers: true,
        // Until 1.37 it takes `MountOption` only so.
        api_server_flags: vec!["--feature-gates=SELinuxMount=true".to_owned()],
        controller_manager_flags: vec!["--controllers=selinux-warning-controller".to_owned()],
    };
    let Some(plane) = harness::start_control_plane_with(Needs::Controllers, &options) else {
        return;
    };
    let driver = json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": DRIVER},
        "spec": {"attachRequired": false, "seLinuxMount": true},
    });
    let namespace = plane.namespace("selinux");
    let create = |items: Vec<Value>| {
        let create = ["create", "-n", &namespace, "-f", "-"];
        plane.kubectl(&create, Some(&list(&items))).success();
    };
    // The controller does all pods in turn, so this pair is the last; it surely conflicts.
    let last = "pair-last-last".to_owned();
    let names = || pairs().map(name).chain([last.clone()]);
    let claims = names().flat_map(|it| storage(&namespace, &it));
    create([driver.clone()].into_iter().chain(claims).collect());
    let bound = "--for=jsonpath={.status.phase}=Bound";
    let wait = [
        "wait",
        "-n",
        &namespace,
        bound,
        "pvc",
        "--all",
        "--timeout=300s",
    ];
    plane.kubectl(&wait, None).success();
    let pod = |kind: usize, claim: &str, at: &str| {
        let mut spec = spec(kind, claim);
        spec["schedulingGates"] = json!([{"name": "example.com/never"}]);
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": format!("{claim}-{at}")}, "spec": spec,
        })
    };
    let of_pair = |(one, other): (usize, usize)| {
        let claim = name((one, other));
        [pod(one, &claim, "a"), pod(other, &claim, "b")]
    };
    create(pairs().flat_map(of_pair).collect());
    create(vec![pod(2, &last, "a"), pod(3, &last, "b")]);

    let seen = wait_until("the last pair to conflict", WITHIN, || {
        let get = ["get", "events", "-n", &namespace, "-o=json"];
        let events = plane.kubectl(&get, None).success().stdout;
        let events: Value = serde_json::from_str(&events).map_err(|it| it.to_string())?;
        let events = events["items"].as_array().into_iter().flatten();
        let conflicts = events.filter(|it| {
            let reason = it["reason"].as_str().unwrap_or_default();
            ["SELinuxLabelConflict", "SELinuxChangePolicyConflict"].contains(&reason)
        });
        let pods = conflicts.filter_map(|it| it["involvedObject"]["name"].as_str());
        let seen: BTreeSet<String> = pods.map(pair_of).collect();
        match seen.contains(&last) {
            true => Ok(seen),
            false => Err(format!("{} pairs do", seen.len())),
        }
    })
    .unwrap();
    let found = found_by_check(&driver);
    let is_certain = |&(one, other): &(usize, usize)| PODS[one].2 && PODS[other].2;
    let expected: BTreeSet<String> = pairs()
        .filter(is_certain)
        .map(name)
        .filter(|it| seen.contains(it))
        .collect();
    assert_eq!(found, expected);
    println!(
        "{} pairs, of which {} conflict; {} are found, the others are not certain",
        pairs().count(),
        seen.len() - 1,
        found.len()
    );
}
