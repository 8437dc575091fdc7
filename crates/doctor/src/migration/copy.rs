//! The Job that copies the files of one claim into another.

use serde_json::{Value, json};

use super::Wanted;
use super::subject::Subject;
use super::target::Target;
use crate::diagnosis::span;
use engine::observed::NodeState;
use engine::policy::keys;
use engine::rules::codes;

/// The image of the Job where none is named. Its package manager adds rsync.
pub const DEFAULT_IMAGE: &str = "alpine:3.22";

/// Copies, then reads both sides again and compares. It refuses to write over files that
/// it did not copy: run once more by mistake, it would put old data over new.
const SCRIPT: &str = include_str!("copy.sh");

/// The bytes that storage in a network may copy in a second, for want of anything better.
const BYTES_A_SECOND: u128 = 100_000_000;

/// Why the guard is to let the Job share the old claim.
const REASON: &str = "It is applied when what uses the claim is stopped, and runs to its end.";

/// What taints begin with that Kubernetes sets by itself: they come and go.
const OWN_TAINTS: &str = "node.kubernetes.io/";

/// The node on which the Job runs: the one that has the volume, if it takes pods. There
/// the volume need not be detached, and pods that were forgotten are no obstacle.
pub(super) fn node<'a>(subject: &Subject<'a>) -> Option<&'a NodeState> {
    subject
        .node
        .filter(|node| node.ready == Some(true) && !node.cordoned)
}

/// How long it takes to copy the whole volume and to compare it, at a usual speed.
pub(super) fn takes(subject: &Subject<'_>) -> String {
    let seconds = subject.size.0.saturating_mul(2) / BYTES_A_SECOND;
    span(i64::try_from(seconds).unwrap_or(i64::MAX).max(1))
}

/// The Job `name`, which copies into claim `to`.
pub(super) fn manifest(
    name: &str,
    to: &str,
    subject: &Subject<'_>,
    target: &Target<'_>,
    wanted: Wanted<'_>,
) -> Value {
    let mut spec = json!({
        "restartPolicy": "Never",
        "automountServiceAccountToken": false,
        "securityContext": {
            // Nobody else may give files to their owners.
            "runAsUser": 0,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [{
            "name": "copy",
            "image": wanted.image,
            "command": ["sh", "-c", SCRIPT],
            "env": [{"name": "RSYNC_FLAGS", "value": target.kept.flags}],
            "securityContext": {"allowPrivilegeEscalation": false},
            "resources": {
                "requests": {"cpu": "250m", "memory": "256Mi"},
                "limits": {"cpu": "2", "memory": "2Gi"},
            },
            "volumeMounts": [
                {"name": "from", "mountPath": "/from", "readOnly": true},
                {"name": "to", "mountPath": "/to"},
            ],
        }],
        "volumes": [
            {"name": "from", "persistentVolumeClaim": {"claimName": wanted.claim}},
            {"name": "to", "persistentVolumeClaim": {"claimName": to}},
        ],
    });
    if let Some(node) = node(subject) {
        // Not by nodeName: past the scheduler, nobody would choose a node for a claim that
        // waits for its first pod.
        spec["affinity"] = json!({"nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{
                "matchFields": [
                    {"key": "metadata.name", "operator": "In", "values": [node.name]},
                ],
            }]},
        }});
        let tolerations: Vec<Value> = node
            .taints
            .iter()
            .filter(|taint| !taint.key.starts_with(OWN_TAINTS))
            .map(|taint| {
                json!({"key": taint.key, "operator": "Equal", "value": taint.value,
                    "effect": taint.effect})
            })
            .collect();
        if !tolerations.is_empty() {
            spec["tolerations"] = Value::Array(tolerations);
        }
    }
    let mut metadata = json!({"name": name, "namespace": wanted.namespace});
    if subject.is_used() {
        // Said of its file long before it is applied, as in a repository: then, what uses
        // the claim still runs.
        let mut annotations = serde_json::Map::new();
        annotations.insert(
            keys::IGNORE.to_owned(),
            json!(codes::WORKLOADS_SHARE_VOLUME),
        );
        annotations.insert(keys::REASON.to_owned(), json!(REASON));
        metadata["annotations"] = Value::Object(annotations);
    }
    json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {
            "backoffLimit": 2,
            "template": {
                // A proxy beside it would go on forever, and the Job with it.
                "metadata": {
                    "labels": {"sidecar.istio.io/inject": "false"},
                    "annotations": {"linkerd.io/inject": "disabled"},
                },
                "spec": spec,
            },
        },
    })
}
