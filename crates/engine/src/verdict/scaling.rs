//! Judging autoscalers and requests to scale.

use std::borrow::Cow;

use super::{Evaluation, Verdict, existing_violations};
use crate::analysis::{Analysis, Facts};
use crate::model::Text;
use crate::model::autoscaler::{Autoscaler, Scale};
use crate::model::object::{Object, ObjectKind};
use crate::model::workload::Workload;
use crate::rules::{Scaling, Subject, judge, judge_workload};

/// The workload with the replicas for which it is judged: one if it has none, and at most those that
/// its autoscaler allows, because a larger number is scaled down at once.
pub(super) fn as_judged<'a>(workload: Cow<'a, Workload>, facts: Facts<'_>) -> Cow<'a, Workload> {
    if is_stopped(&workload, facts) {
        return Cow::Owned(workload.with_replicas(1));
    }
    let has_volumes = !workload.template.volumes.is_empty() || !workload.claim_templates.is_empty();
    if workload.replicas <= 1 || !has_volumes {
        return workload;
    }
    match facts.view.autoscalers(&workload).iter().filter_map(|autoscaler| autoscaler.cap()).min() {
        Some(most) if most < workload.replicas => Cow::Owned(workload.with_replicas(most)),
        _ => workload,
    }
}

/// Whether the workload has no pods now and is meant to have some: otherwise nobody would write it,
/// unless for a Rollout that takes its template.
pub(super) fn is_stopped(workload: &Workload, facts: Facts<'_>) -> bool {
    workload.replicas == 0 && workload.kind.scales() && facts.view.rollouts_of(workload).is_empty()
}

impl Evaluation<'_> {
    pub(super) fn autoscaler(&self, autoscaler: &Autoscaler) -> Option<Verdict> {
        let (metadata, view) = (&autoscaler.metadata, self.facts.view);
        let keda = autoscaler.scaled_object();
        let is_known =
            |name: &Text| view.is_known(ObjectKind::ScaledObject, &metadata.namespace, name);
        if !autoscaler.spec.is_scaled_object && keda.is_some_and(is_known) {
            return None;
        }
        let target = &autoscaler.spec.scale_target_ref;
        let stored =
            view.workload(target.workload_kind()?, &metadata.namespace, &target.name).found()?;
        let workload = &*view.with_template(stored)?;
        let scaled = |by: &Autoscaler| {
            let scaled = workload.with_replicas(by.most(workload.replicas));
            judge(Subject::Scaled(&Scaling {
                analysis: Analysis::of(&scaled, None, self.facts),
                before: workload.replicas,
                autoscaler: Some(by),
            }))
        };
        let hazards = scaled(autoscaler);
        let before = match self.review.old {
            Some(Object::Autoscaler(old)) if old.spec.scale_target_ref.name == target.name => {
                scaled(old)
            }
            _ => Vec::new(),
        };
        let is_owned = || self.owner_is_real(metadata);
        let kind = autoscaler.kind().name();
        let verdict = self.decided(&hazards, metadata, kind, is_owned, |finding, hazard, _| {
            if !existing_violations::is_new(hazard, &before) {
                finding.only_warn();
            }
        });
        Some(verdict)
    }

    pub(super) fn scale(&self, scale: &Scale) -> Option<Verdict> {
        let (target, view) = (&scale.metadata, self.facts.view);
        let stored = view.workload(self.review.scaled?, &target.namespace, &target.name).found()?;
        let workload = &*view.with_template(stored)?;
        let scaled = workload.with_replicas(scale.spec.replicas);
        if self.is_judged_in_owner(&scaled) {
            return None;
        }
        let scaling = Scaling {
            analysis: Analysis::of(&scaled, None, self.facts),
            // The request shows the number of replicas more exactly than a cache.
            before: match self.review.old {
                Some(Object::Scale(old)) => old.spec.replicas,
                _ => workload.replicas,
            },
            autoscaler: None,
        };
        // The workload was judged as with one pod when it was written.
        let of_start = match scaling.before {
            ..=0 => judge_workload(&Analysis::of(&workload.with_replicas(1), None, self.facts)),
            _ => Vec::new(),
        };
        let mut hazards = judge(Subject::Scaled(&scaling));
        hazards.retain(|hazard| existing_violations::is_new(hazard, &of_start));
        hazards.extend_from_slice(&of_start);
        let (metadata, kind) = (&workload.metadata, workload.kind.name());
        let is_owned = || self.owner_is_real(metadata);
        let verdict = self.decided(&hazards, metadata, kind, is_owned, |finding, hazard, _| {
            if of_start.contains(hazard) {
                finding.only_warn();
            }
        });
        Some(verdict)
    }
}
