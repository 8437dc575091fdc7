//! Requests about a living node that a real API server refuses.
//!
//! This is part of one test with the counted requests: the fencing webhook refuses requests in the
//! same cluster in which irrelevant requests are not sent to the guard. Nodes that die are in
//! `tests/scenarios`.

use serde_json::json;

use crate::harness::output::has;
use crate::harness::{seen, sum, until};
use crate::installed::DEADLINE;
use crate::requests::{Cluster, counts, workload};

const TAINT: &str = "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute";

/// The user that normally deletes attachments.
const CONTROLLER: &str = "--as=system:serviceaccount:kube-system:attachdetach-controller \
    --as-group=system:masters";

/// Follows one pod with a volume.
pub(crate) fn a_node_is_held_while_it_is_alive(cluster: &Cluster) {
    let (node, attachment) = settled(cluster);
    let (node, attachment) = (node.as_str(), attachment.as_str());
    daily_life_asks_nothing(cluster, node, attachment);

    let asked = cluster.asked(|| {
        // The three requests that take the volume from the node.
        for request in [
            format!("taint node {node} {TAINT}"),
            format!("delete node {node} --wait=false"),
            format!("delete volumeattachment {attachment} --wait=false"),
        ] {
            let words: Vec<&str> = request.split(' ').collect();
            let refused = cluster.run(&words, None).failure();
            has(&refused.stderr, "fencing-live-node");
            has(&refused.stderr, "is alive and has 1 volume attached");
        }
    });
    assert_eq!(asked, counts(&[("fencing validating", 3)]));
    // None of the controllers' earlier requests, in all their rollouts, was refused.
    let rejections = "apiserver_admission_webhook_rejection_count";
    let entry = "name=\"fencing.multi-attach-guard.dev\"";
    assert_eq!(sum(&cluster.plane.exposition(), rejections, &[entry]), 3);
}

/// Waits for a running pod whose node reports its attached volume; returns the names of the node
/// and of the VolumeAttachment.
fn settled(cluster: &Cluster) -> (String, String) {
    let recreate = json!({"spec": {"strategy": {"type": "Recreate"}}});
    let manifest = workload("Deployment", "held", &["two"], &recreate);
    cluster.plane.apply(&cluster.namespace, &manifest);
    cluster.until_rolled_out("held");
    until("the node to say what it holds", DEADLINE, || {
        let attachments = cluster.plane.get(&["volumeattachments"]);
        let held = attachments["items"]
            .as_array()
            .unwrap()
            .iter()
            .find(|attachment| {
                attachment.pointer("/spec/source/persistentVolumeName")
                    == Some(&json!(format!("{}-two", cluster.namespace)))
                    && attachment.pointer("/status/attached") == Some(&json!(true))
            })
            .ok_or_else(|| attachments.to_string())?;
        let text = |pointer: &str| held.pointer(pointer).unwrap().as_str().unwrap().to_owned();
        let node = text("/spec/nodeName");
        let object = cluster.plane.get(&["node", &node]);
        match object.pointer("/status/volumesAttached") {
            Some(_) => Ok((node, text("/metadata/name"))),
            None => Err(object["status"].to_string()),
        }
    })
}

/// Heartbeats, labels, other taints and the attach-detach controller's requests are not sent to the
/// guard.
fn daily_life_asks_nothing(cluster: &Cluster, node: &str, attachment: &str) {
    let renewed = || {
        let lease = cluster.plane.get(&["lease", node, "-n=kube-node-lease"]);
        lease["spec"]["renewTime"].to_string()
    };
    let asked = cluster.asked(|| {
        let mut last = renewed();
        for _ in 0..2 {
            last = until("a heartbeat", DEADLINE, || {
                let now = renewed();
                seen(now != last, now)
            });
        }
        for request in [
            format!("label node {node} rack=7"),
            format!("cordon {node}"),
            format!("taint node {node} maintenance=soon:PreferNoSchedule"),
            format!("uncordon {node}"),
            format!("delete volumeattachment {attachment} --dry-run=server {CONTROLLER}"),
        ] {
            cluster.plane.run(&request);
        }
    });
    assert_eq!(asked, counts(&[]), "daily life");
}
