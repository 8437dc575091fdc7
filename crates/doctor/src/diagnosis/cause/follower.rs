//! The pod must run on the node of another pod, and that node takes no new pods.
//!
//! Without that other pod no node would do either: only a pod that matches its own affinity
//! may be the first of its like (`satisfyPodAffinity` in `plugins/interpodaffinity`).

use super::{Cause, Purpose, Steps, SuggestedAction, named, wait};
use crate::diagnosis::health::Examined;
use crate::diagnosis::messages::NO_POD_TO_FOLLOW;
use crate::diagnosis::waiting_pod::WaitingPod;
use engine::model::live_pod::Pod;
use engine::model::workload::WorkloadKind;

pub(super) const CAUSE: Cause = Cause {
    code: "follower",
    title: "The pod must run on the node of another pod, and that node takes no new pods",
    passes: false,
    judge,
    steps: Steps::FromFacts(steps),
};

/// The pod that it follows, and the node of that.
fn followed<'a>(stuck: &WaitingPod<'a>) -> Option<(&'a Pod, Examined)> {
    let may_be_first = stuck.workload().is_some_and(|it| stuck.matches_itself(it));
    if stuck.pod.node.is_some() || !stuck.is_said(NO_POD_TO_FOLLOW) || may_be_first {
        return None;
    }
    let own = stuck.pod.workload();
    let mut others = stuck.staying();
    let other = others.find(|other| other.workload() != own)?;
    Some((other, Examined::of(stuck.index, other.node.as_ref()?)))
}

fn judge(stuck: &WaitingPod<'_>) -> Option<String> {
    let (other, node) = followed(stuck)?;
    let takes_none = match node.cordoned {
        true => ", is cordoned and takes no new pods",
        false => " and does not accept it",
    };
    Some(format!(
        "By its affinity, pod {} must run where {} runs. That is node {}, which has the volume{takes_none}. Without {} no node would do.",
        stuck.pod.meta.name,
        named(other),
        node.name,
        other.meta.name,
    ))
}

fn steps(stuck: &WaitingPod<'_>) -> Vec<SuggestedAction> {
    let Some((other, node)) = followed(stuck) else {
        return Vec::new();
    };
    let (kind, name) = other.workload();
    let stop = SuggestedAction::note(&format!(
        "Do not scale {kind} {name} to 0: with no pod to follow, pod {} stays Pending.",
        stuck.pod.meta.name
    ));
    if !node.cordoned {
        return vec![
            SuggestedAction::new(
                Purpose::Check,
                stuck.kubectl(&["describe", "node", &node.name]),
                "Nothing. Its allocated resources and taints say what it lacks for the pod.",
            ),
            stop,
            wait(
                stuck,
                Purpose::WayOut,
                "Time. The pod starts as soon as that node has room for it.",
            ),
        ];
    }
    let uncordon = SuggestedAction::new(
        Purpose::WayOut,
        stuck.kubectl(&["uncordon", &node.name]),
        &format!(
            "Nothing stops. Pod {} starts there; cordon the node again once it runs.",
            stuck.pod.meta.name
        ),
    );
    let is_made_again = matches!(
        WorkloadKind::from_name(&kind),
        Some(WorkloadKind::Deployment | WorkloadKind::StatefulSet | WorkloadKind::ReplicaSet)
    );
    let may_leave = is_made_again && !stuck.used.keeps_its_node() && stuck.owner_pod().is_none();
    let delete = may_leave.then(|| {
        SuggestedAction::new(
            Purpose::WayOut,
            stuck.in_namespace(&["delete", &format!("pod/{}", other.meta.name)]),
            &format!(
                "{kind} {name} stops for as long as its pod takes to move: the next one goes to another node, and pod {} follows it.",
                stuck.pod.meta.name
            ),
        )
    });
    let ways = [uncordon].into_iter().chain(delete);
    ways.chain([stop]).collect()
}
