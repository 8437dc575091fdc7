//! The number of pods that workloads may have, and the autoscalers that scale them.

use serde::Serialize;

use super::{Members, VolumeFacts, probe};
use crate::analysis::{Analysis, Certainty, Facts};
use crate::model::Text;
use crate::model::autoscaler::{Scale, ScaleSpec};
use crate::model::metadata::Metadata;
use crate::model::object::{Object, ObjectKind};
use crate::model::workload::{Workload, WorkloadKind};
use crate::policy::Action;
use crate::rules::{Scaling, Subject, codes, judge};
use crate::verdict::{EffectivePolicy, Mode, Review, evaluate};

/// The reason for which a workload may not have more than one pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Limit {
    /// The number of pods that it is to have now.
    pub pods: i64,
    /// The reason for no more pods, as a clause.
    pub because: String,
}

/// The words for a request for two pods, as the beginning of a sentence.
const TWO_PODS: &str = "2 pods are requested, but ";

impl VolumeFacts {
    pub(super) fn add_scaling(
        &mut self,
        namespace: &str,
        members: &Members,
        facts: Facts<'_>,
        effective: &EffectivePolicy,
    ) {
        for (kind, name) in &members.workloads {
            if kind.scales()
                && let Some(limit) = limit(namespace, *kind, name, facts, effective)
            {
                self.limits.insert(format!("{kind}/{name}"), limit);
            }
        }
        for (kind, name) in &members.scaled {
            let autoscalers = facts.view.autoscalers_of(*kind, namespace, name);
            if let Some(cap) = autoscalers.iter().filter_map(|autoscaler| autoscaler.cap()).min() {
                self.caps.insert(format!("{kind}/{name}"), cap);
            }
        }
    }
}

/// The reason for which the workload may not have a second pod; `None` if it may.
fn limit(
    namespace: &str,
    kind: WorkloadKind,
    name: &Text,
    facts: Facts<'_>,
    effective: &EffectivePolicy,
) -> Option<Limit> {
    let workload = facts.view.workload(kind, namespace, name).found()?;
    let workload = &*facts.view.with_template(workload)?;
    if workload.template.volumes.is_empty() || !is_denied(workload, facts, effective) {
        return None;
    }
    let scaled = workload.with_replicas(2);
    let hazards = judge(Subject::Scaled(&Scaling {
        analysis: Analysis::of(&scaled, None, facts),
        before: 1,
        autoscaler: None,
    }));
    let hazard = hazards.iter().find(|hazard| hazard.rule == codes::AUTOSCALER_EXCEEDS_VOLUME)?;
    let because = hazard.what.strip_prefix(TWO_PODS)?.strip_suffix('.')?;
    Some(Limit { pods: workload.replicas.max(0), because: because.to_owned() })
}

/// Whether a request for a second pod is denied.
fn is_denied(workload: &Workload, facts: Facts<'_>, effective: &EffectivePolicy) -> bool {
    let metadata = &workload.metadata;
    let scale = |replicas| {
        Object::Scale(Scale {
            metadata: Metadata {
                name: metadata.name.clone(),
                namespace: metadata.namespace.clone(),
                ..Metadata::default()
            },
            spec: ScaleSpec { replicas },
            ..Scale::default()
        })
    };
    let reference = ObjectKind::Scale.reference(&metadata.namespace, &metadata.name);
    let review = Review {
        object: &scale(2),
        old: Some(&scale(1)),
        reference: &reference,
        scaled: Some(workload.kind),
        document: &probe::Nothing,
        mode: Mode::Judge,
    };
    let verdict = evaluate(&review, facts.view, effective);
    let mut denials = verdict.with(Action::Deny);
    denials.any(|finding| finding.certainty == Certainty::Verified)
}
