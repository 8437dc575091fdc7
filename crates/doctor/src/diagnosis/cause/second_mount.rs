//! The driver refuses to mount the volume for a second pod, even on the same node.

use super::{Judgement, SuggestedAction, describe, exclusive_use};
use crate::diagnosis::waiting_pod::WaitingPod;

pub(super) fn judge(waiting: &WaitingPod<'_>) -> Option<Judgement> {
    if !waiting.refuses_second_mount() {
        return None;
    }
    let node = waiting.pod.node.as_ref()?;
    let other = match waiting.users().find(|user| user.node.as_ref() == Some(node)) {
        Some(other) => format!("{} on the same node has it", describe(other)),
        None => "something on that node still has it".to_owned(),
    };
    let refused = format!(
        "The driver refuses to mount the volume on node {node} for a second pod, and {other}."
    );
    if let Some(Judgement { explanation, steps }) = exclusive_use(waiting) {
        return Some(Judgement { explanation: format!("{refused} {explanation}"), steps });
    }
    let on_node = format!("--field-selector=spec.nodeName={node}");
    let steps = vec![
        SuggestedAction::check(
            waiting.kubectl(&["get", "pods", "-A", "-o", "wide", &on_node]),
            "Nothing. It lists the pods of that node.",
        ),
        SuggestedAction::note(&format!(
            "No pod of claim \"{}\" that could be read is on node {node}. A pod that was deleted may have left the mount behind: the log of the driver's node plugin there says so, and a restart of the kubelet unmounts it.",
            waiting.claim
        )),
    ];
    Some(Judgement { explanation: refused, steps })
}
