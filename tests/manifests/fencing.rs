//! Nodes, alive and dead, and what a real API server lets be done to them.
//!
//! Part of one test with the counted requests: what is refused here is refused in the
//! same cluster in which nothing is asked that cannot matter.

use std::time::Duration;

use serde_json::json;

use crate::harness::output::has;
use crate::harness::{FakeNodes, seen, sum, until, wait_until};
use crate::installed::{DEADLINE, account};
use crate::requests::{Snapshot, counts, workload};

const TAINT: &str = "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute";

/// A kubelet that died is missed after 12 s here, and its pods are evicted soon after.
const DEATH: Duration = Duration::from_secs(120);

/// By whom attachments are deleted in normal life.
const CONTROLLER: &str = "--as=system:serviceaccount:kube-system:attachdetach-controller";

/// The whole story of one pod with a volume, whose node dies in the end.
pub(crate) fn a_node_is_held_while_it_is_alive(cluster: &Snapshot, nodes: &FakeNodes<'_>) {
    let (node, attachment) = settled(cluster);
    let (node, attachment) = (node.as_str(), attachment.as_str());
    daily_life_asks_nothing(cluster, node, attachment);

    let asked = cluster.asked(|| {
        for request in fencing(node, attachment) {
            let refused = cluster.run(&request, None);
            assert_ne!(refused.status, 0, "{request:?}");
            has(&refused.stderr, "fencing-live-node");
            has(&refused.stderr, "is alive and has 1 volume attached");
        }
    });
    assert_eq!(asked, counts(&[("fencing validating", 3)]));
    // And none of what controllers did before, in all their rollouts.
    assert_eq!(refused(cluster), 3);

    an_override_is_heard(cluster, node, attachment);
    without_the_right_nothing_is_refused(cluster, node);
    let before = refused(cluster);
    dead(cluster, nodes, node);
    let taint = ["taint", "node", node, TAINT];
    cluster.run(&taint, None).success();
    // The way out is open, and it is one.
    cluster.until_rolled_out("held");
    let (elsewhere, _) = settled(cluster);
    assert_ne!(elsewhere, node);
    cluster.run(&["delete", "node", node], None).success();
    // Whatever the controllers did meanwhile, none of it was refused.
    assert_eq!(refused(cluster), before);
}

/// How many requests the entry has refused, as the API server counts them.
fn refused(cluster: &Snapshot) -> u64 {
    let rejections = "apiserver_admission_webhook_rejection_count";
    let entry = "name=\"fencing.multi-attach-guard.dev\"";
    sum(&cluster.plane.exposition(), rejections, &[entry])
}

/// The three ways to take the volume from the node.
fn fencing<'a>(node: &'a str, attachment: &'a str) -> [Vec<&'a str>; 3] {
    [
        vec!["taint", "node", node, TAINT],
        vec!["delete", "node", node, "--wait=false"],
        vec!["delete", "volumeattachment", attachment, "--wait=false"],
    ]
}

/// A pod that leaves a dead node soon, once it runs and its node says what it holds: the
/// names of the node and of the VolumeAttachment.
fn settled(cluster: &Snapshot) -> (String, String) {
    let leave = |key: &str| json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 2});
    let tolerations =
        ["not-ready", "unreachable"].map(|it| leave(&format!("node.kubernetes.io/{it}")));
    let with = json!({"spec": {
        "strategy": {"type": "Recreate"},
        "template": {"spec": {"tolerations": tolerations, "terminationGracePeriodSeconds": 1}},
    }});
    let manifest = workload("Deployment", "held", &["two"], &with);
    cluster
        .run(&["apply", "-f", "-"], Some(&manifest))
        .success();
    cluster.until_rolled_out("held");
    wait_until("the node to say what it holds", DEADLINE, || {
        let attachments = cluster.plane.get(&["volumeattachments"]);
        let held = attachments["items"].as_array().unwrap().iter().find(|it| {
            it.pointer("/spec/source/persistentVolumeName")
                == Some(&json!(format!("{}-two", cluster.namespace)))
                && it.pointer("/status/attached") == Some(&json!(true))
        });
        let held = held.ok_or_else(|| attachments.to_string())?;
        let text = |pointer: &str| held.pointer(pointer).unwrap().as_str().unwrap().to_owned();
        let node = text("/spec/nodeName");
        let object = cluster.plane.get(&["node", &node]);
        match object.pointer("/status/volumesAttached") {
            Some(_) => Ok((node, text("/metadata/name"))),
            None => Err(object["status"].to_string()),
        }
    })
    .unwrap()
}

/// Heartbeats, labels and other taints, and what the attach-detach controller does.
fn daily_life_asks_nothing(cluster: &Snapshot, node: &str, attachment: &str) {
    let renewed = || {
        let lease = cluster.plane.get(&["lease", node, "-n=kube-node-lease"]);
        lease["spec"]["renewTime"].to_string()
    };
    let asked = cluster.asked(|| {
        let run = |arguments: &[&str]| drop(cluster.run(arguments, None).success());
        let mut last = renewed();
        for _ in 0..2 {
            last = until("a heartbeat", DEADLINE, || {
                let now = renewed();
                seen(now != last, now)
            });
        }
        run(&["label", "node", node, "rack=7"]);
        run(&["cordon", node]);
        run(&["taint", "node", node, "maintenance=soon:PreferNoSchedule"]);
        run(&["uncordon", node]);
        let delete = ["delete", "volumeattachment", attachment, "--dry-run=server"];
        let controller = [CONTROLLER, "--as-group=system:masters"];
        run(&[&delete[..], &controller].concat());
    });
    assert_eq!(asked, counts(&[]), "daily life");
}

/// Nothing is stored: the node is needed.
fn an_override_is_heard(cluster: &Snapshot, node: &str, attachment: &str) {
    let kinds = [("node", node), ("volumeattachment", attachment)];
    let ignore = "multi-attach-guard.dev/ignore";
    let reason = "multi-attach-guard.dev/reason";
    for (kind, name) in kinds {
        let silence = format!("{ignore}=fencing-live-node");
        let why = format!("{reason}=the plug is in my hand");
        cluster
            .run(&["annotate", kind, name, &silence, &why], None)
            .success();
    }
    for request in fencing(node, attachment) {
        let dry = [&request[..], &["--dry-run=server"]].concat();
        cluster.run(&dry, None).success();
    }
    for (kind, name) in kinds {
        let take_back = [format!("{ignore}-"), format!("{reason}-")];
        let [ignore, reason] = take_back.each_ref().map(String::as_str);
        cluster
            .run(&["annotate", kind, name, ignore, reason], None)
            .success();
    }
    let log = cluster.guard.program.log();
    let overrides = log
        .lines()
        .filter(|it| it.contains("the plug is in my hand"));
    assert_eq!(overrides.count(), 3);
}

/// Where the Lease may not be read, an administrator is warned and not stopped.
fn without_the_right_nothing_is_refused(cluster: &Snapshot, node: &str) {
    let binding = "rolebinding/multi-attach-guard-fencing";
    let delete = ["delete", binding, "-n=kube-node-lease"];
    cluster.run(&delete, None).success();
    let taint = ["taint", "node", node, TAINT, "--dry-run=server"];
    // The API server learns of rights through a cache.
    let warning = until("the right to be gone", DEADLINE, || {
        let said = cluster.run(&taint, None);
        match said.status {
            0 => Ok(said.stderr),
            _ => Err(said.stderr),
        }
    });
    has(&warning, "Warning: fencing-live-node");
    has(&warning, "Lease kube-node-lease/");
    account(&cluster.plane);
    until("the right to be back", DEADLINE, || {
        let said = cluster.run(&taint, None);
        seen(said.status != 0, said)
    });
}

/// Until the control plane knows that the node is dead, and its pod is to go.
fn dead(cluster: &Snapshot, nodes: &FakeNodes<'_>, node: &str) {
    nodes.die(node);
    until("the node to be missed", DEATH, || {
        let object = cluster.plane.get(&["node", node]);
        let conditions = object["status"]["conditions"].as_array().unwrap();
        let ready = conditions.iter().find(|it| it["type"] == "Ready").unwrap();
        let held = ["pods", "-l=app=held", "-n", &cluster.namespace];
        let pods = cluster.plane.get(&held);
        let mut pods = pods["items"].as_array().unwrap().iter();
        let leaves = pods.any(|pod| pod["metadata"]["deletionTimestamp"].is_string());
        seen(ready["status"] == "Unknown" && leaves, ready.clone())
    });
}
