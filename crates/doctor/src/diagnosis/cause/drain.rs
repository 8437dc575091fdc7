//! The node was drained, and affinity keeps the new pod waiting for a pod that is gone.
//!
//! A pod that must run where pods like it run may be the first of them anywhere, but the scheduler
//! is not woken when the last old one goes (kubernetes/kubernetes#141354): it looks again
//! after about five minutes.

use super::{Cause, Purpose, Steps, SuggestedAction};
use crate::diagnosis::health::Examined;
use crate::diagnosis::span;
use crate::diagnosis::waiting_pod::WaitingPod;

/// After so many seconds the scheduler looks again at pods that it was not woken for
/// (`DefaultPodMaxInUnschedulablePodsDuration` in `pkg/scheduler/backend/queue`).
const LOOKS_AGAIN: i64 = 300;

/// After so many it has looked again several times, and something else keeps the pod off.
const GIVEN_UP: i64 = 4 * LOOKS_AGAIN;

pub(super) const CAUSE: Cause = Cause {
    code: "drain-with-co-location",
    title: "The scheduler has not noticed that the old pod is gone",
    passes: true,
    judge,
    steps: Steps::FromFacts(steps),
};

fn judge(waiting: &WaitingPod<'_>) -> Option<String> {
    let now = waiting.index.facts.now;
    let since = waiting.pod.waits_since();
    let waited = since.map_or(0, |since| now.as_second() - since.as_second());
    if !waiting.may_be_first_of_its_like() || waited > GIVEN_UP {
        return None;
    }
    let cordoned = waiting.holding_nodes().into_iter();
    let cordoned = cordoned
        .map(|name| Examined::of(waiting.index, &name))
        .find(|node| node.cordoned);
    let left = match cordoned {
        Some(node) => format!("node {}, which takes no new pods", node.name),
        None => "its node".to_owned(),
    };
    let again = match LOOKS_AGAIN - waited {
        left @ 1.. => format!("in {} or a little later", span(left)),
        _ => "any moment now".to_owned(),
    };
    Some(format!(
        "Affinity sends pod {} to the node of pods like it, and the last of those has left {left}. It may go anywhere now, but a leaving pod does not wake the scheduler (kubernetes/kubernetes#141354); it tries again {again}.",
        waiting.pod.meta.name
    ))
}

fn steps(waiting: &WaitingPod<'_>) -> Vec<SuggestedAction> {
    vec![SuggestedAction::new(
        Purpose::WayOut,
        waiting.delete(waiting.pod),
        "Nothing stops: the pod has not started. Its controller creates another, and the scheduler looks at that one at once.",
    )]
}
