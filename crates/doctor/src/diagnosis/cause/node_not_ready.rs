//! The node on which the pod is to start is not Ready, so that time alone does not help.

use super::{Judgement, SuggestedAction, may_move, wait};
use crate::diagnosis::health::{Examined, Health};
use crate::diagnosis::waiting_pod::WaitingPod;

pub(super) fn judge(waiting: &WaitingPod<'_>) -> Option<Judgement> {
    let node = waiting.pod.node.as_deref().filter(|_| !waiting.pod.is_ending())?;
    if Examined::of(waiting.index, node).health != Health::NotReady {
        return None;
    }
    let explanation = format!(
        "Pod {} is to start on node {node}, which is not Ready: its kubelet lacks something without which it starts no pod, for example its network or its container runtime. Time alone does not end that. If the node falls silent as well, a volume that is attached there stays there.",
        waiting.pod.meta.name
    );
    let look = SuggestedAction::check(
        waiting.kubectl(&["describe", "node", node]),
        "Nothing. The message of its condition Ready says what it lacks.",
    );
    let wait = wait(
        waiting,
        "Time, once the node has what it lacks. The pod then starts by itself, and nothing else stops.",
    );
    let moves = may_move(waiting, waiting.workload().map(|workload| workload.kind)).then(|| {
        SuggestedAction::way_out(
            waiting.delete(waiting.pod),
            "The pod has not started. Its controller makes another one, which goes to a node that is Ready. A volume that is attached here follows once the kubelet has let it go.",
        )
    });
    Some(Judgement { explanation, steps: [look, wait].into_iter().chain(moves).collect() })
}
