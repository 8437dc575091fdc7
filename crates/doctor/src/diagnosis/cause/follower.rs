//! The pod must run on the node of another pod, and that node takes no new pods.
//!
//! Without the other pod, no node would suit either: only a pod that matches its own affinity may
//! be the first of such pods (`satisfyPodAffinity` in `plugins/interpodaffinity`).

use serde_json::json;

use super::changed::{self, Changed};
use super::{Admits, Judgement, SuggestedAction, delete_unready, describe, may_move, wait};
use crate::diagnosis::health::Examined;
use crate::diagnosis::messages::NO_POD_TO_FOLLOW;
use crate::diagnosis::waiting_pod::WaitingPod;
use engine::model::live_pod::Pod;
use engine::model::workload::WorkloadKind;

pub(super) fn judge(waiting: &WaitingPod<'_>) -> Option<Judgement> {
    let may_be_first = waiting.workload().is_some_and(|workload| waiting.matches_itself(workload));
    if waiting.pod.node.is_some() || !waiting.is_said(NO_POD_TO_FOLLOW) || may_be_first {
        return None;
    }
    let other = waiting.other_workload()?;
    let node = Examined::of(waiting.index, other.node.as_ref()?);
    let admits = Admits::of(waiting.workload(), other.node.as_deref(), waiting);
    let takes_none = match admits {
        Admits::WithoutSelector => {
            let labels = waiting
                .workload()
                .into_iter()
                .flat_map(|workload| workload.template.node_selector.iter())
                .map(|(key, value)| format!("{key}={value}"))
                .collect::<Vec<_>>()
                .join(",");
            format!(", and its own nodeSelector ({labels}) keeps it off")
        }
        Admits::No => {
            ", and its own template keeps it off: node affinity or missing tolerations".to_owned()
        }
        Admits::Yes if node.cordoned => ", is cordoned and takes no new pods".to_owned(),
        Admits::Yes => " and does not accept it".to_owned(),
    };
    let explanation = format!(
        "By its affinity, pod {} must run where {} runs. That is node {}, which has the volume{takes_none}. Without {} no node would do.",
        waiting.pod.meta.name,
        describe(other),
        node.name,
        other.meta.name,
    );
    Some(Judgement { explanation, steps: steps(waiting, other, &node, admits) })
}

fn steps(
    waiting: &WaitingPod<'_>,
    other: &Pod,
    node: &Examined,
    admits: Admits,
) -> Vec<SuggestedAction> {
    let (kind, name) = other.workload();
    let stop = SuggestedAction::note(&format!(
        "Do not scale {kind} {name} to 0: with no pod to follow, pod {} stays Pending.",
        waiting.pod.meta.name
    ));
    if admits != Admits::Yes {
        let mut steps = off(waiting, admits, &node.name);
        steps.push(stop);
        return steps;
    }
    if !node.cordoned {
        return vec![
            SuggestedAction::check(
                waiting.kubectl(&["describe", "node", &node.name]),
                "Nothing. Its allocated resources and taints say what it lacks for the pod.",
            ),
            stop,
            wait(waiting, "Time. The pod starts as soon as that node has room for it."),
        ];
    }
    let uncordon = SuggestedAction::way_out(
        waiting.kubectl(&["uncordon", &node.name]),
        &format!(
            "Nothing stops. Pod {} starts there; cordon the node again once it runs.",
            waiting.pod.meta.name
        ),
    );
    let delete = may_move(waiting, WorkloadKind::from_name(&kind)).then(|| {
        SuggestedAction::way_out(
            waiting.delete(other),
            &format!(
                "{kind} {name} stops for as long as its pod takes to move: the next one goes to another node, and pod {} follows it.",
                waiting.pod.meta.name
            ),
        )
    });
    [uncordon].into_iter().chain(delete).chain([stop]).collect()
}

/// The steps that let the pod run on a node that its own template excludes.
fn off(waiting: &WaitingPod<'_>, admits: Admits, node: &str) -> Vec<SuggestedAction> {
    let own = Changed::behind(waiting.pod, waiting);
    if admits == Admits::WithoutSelector && own.kind == Some(WorkloadKind::Deployment) {
        let patch = json!({"spec": {"template": {"spec": {"nodeSelector": null}}}});
        let way = own.change(
            waiting.patch(&own.name, &patch),
            &format!(
                "{} loses its nodeSelector and restarts on node {node}, if that has room for it.",
                own.display_name
            ),
        );
        return changed::with_delivery_steps(waiting, vec![way]);
    }
    let change = SuggestedAction::note(&format!(
        "Change the nodeSelector, the node affinity or the tolerations of {} so that its pods may be on node {node}.",
        own.display_name
    ));
    [change].into_iter().chain(delete_unready(waiting)).collect()
}
