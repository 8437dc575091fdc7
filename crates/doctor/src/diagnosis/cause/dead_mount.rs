//! A mount of the volume on the pod's node is dead, and does not come back by itself.
//!
//! The driver mounts a volume once for a node (`NodeStageVolume`) and once for each pod. A pod gets
//! a new mount when it is made anew, and the node when no pod of it uses the volume any more.

use super::{Judgement, SuggestedAction, describe, is_made_again};
use crate::diagnosis::waiting_pod::WaitingPod;

pub(super) fn judge(waiting: &WaitingPod<'_>) -> Option<Judgement> {
    waiting.dead_mount()?;
    let node = waiting.pod.node.as_deref().filter(|_| !waiting.pod.is_ending())?;
    let explanation = format!(
        "A mount of the volume on node {node} is dead: its server was away, or the driver's process behind it has ended. Such a mount does not come back by itself."
    );
    Some(Judgement { explanation, steps: steps(waiting, node) })
}

fn steps(waiting: &WaitingPod<'_>, node: &str) -> Vec<SuggestedAction> {
    let driver = waiting.driver();
    let look = SuggestedAction::check(
        waiting.in_namespace(&["describe", &format!("pod/{}", waiting.pod.meta.name)]),
        "Nothing. Its Events hold the words, and when they were said.",
    );
    let mend = SuggestedAction::condition(&format!(
        "First mend what serves the volume: its server must answer node {node}, and the node plugin of {driver} must run there. Otherwise the next mount is dead as well."
    ));
    let delete = is_made_again(waiting.pod).then(|| {
        SuggestedAction::way_out(
            waiting.delete(waiting.pod),
            "The pod does not run. Its controller makes another one, for which the volume is mounted anew.",
        )
    });
    let by_hand = delete.is_none().then(|| {
        SuggestedAction::note(&format!(
            "The volume is mounted anew for a new pod. No controller that is known here replaces {}: let whoever made it make it again.",
            describe(waiting.pod)
        ))
    });
    let shared = waiting.users().find(|user| user.node.as_deref() == Some(node)).map(|other| {
        SuggestedAction::note(&format!(
            "On {node}, {} uses the volume too. If the new pod finds the same dead mount, that pod keeps it there: replace it as well, or have the new pod start on another node.",
            describe(other)
        ))
    });
    [look, mend].into_iter().chain(delete).chain(by_hand).chain(shared).collect()
}
