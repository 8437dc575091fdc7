//! Judging autoscalers and requests to scale.

use std::borrow::Cow;

use super::{Evaluation, Verdict, existing_violations};
use crate::analysis::{Analysis, Facts};
use crate::model::Text;
use crate::model::autoscaler::{Autoscaler, Scale};
use crate::model::object::{Object, ObjectKind};
use crate::model::workload::Workload;
use crate::rules::{Hazard, Outcome, Scaling, Subject, judge, judge_workload};

/// The workload with at most the replicas that its autoscaler allows: a larger number is scaled
/// down at once.
pub(super) fn capped<'a>(workload: Cow<'a, Workload>, facts: Facts<'_>) -> Cow<'a, Workload> {
    if workload.replicas <= 1 || workload.template.volumes.is_empty() {
        return workload;
    }
    let autoscalers = facts.view.autoscalers(&workload);
    let most = autoscalers
        .iter()
        .filter_map(|autoscaler| autoscaler.cap())
        .filter(|most| *most < workload.replicas)
        .min();
    match most {
        Some(replicas) => Cow::Owned(workload.with_replicas(replicas)),
        None => workload,
    }
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
        let kind = target.workload_kind()?;
        let workload = view.workload(kind, &metadata.namespace, &target.name);
        let workload = &*view.with_template(workload.found()?)?;
        let scaled = |by: &Autoscaler| self.scaled(workload, by.most(workload.replicas), Some(by));
        let hazards = scaled(autoscaler);
        let before = match self.review.old {
            Some(Object::Autoscaler(old)) if old.spec.scale_target_ref.name == target.name => {
                scaled(old)
            }
            _ => Vec::new(),
        };
        Some(self.decided(
            &hazards,
            metadata,
            autoscaler.kind().name(),
            || self.owner_is_real(metadata),
            |finding, hazard, _| {
                if !existing_violations::is_new(hazard, &before) {
                    finding.only_warn();
                }
            },
        ))
    }

    pub(super) fn scale(&self, scale: &Scale) -> Option<Verdict> {
        let (metadata, view) = (&scale.metadata, self.facts.view);
        let kind = self.review.scaled?;
        let workload = view.workload(kind, &metadata.namespace, &metadata.name);
        let workload = &*view.with_template(workload.found()?)?;
        if self.is_judged_in_owner(&workload.with_replicas(scale.spec.replicas)) {
            return None;
        }
        // The request shows the number of replicas more exactly than a cache.
        let current = match self.review.old {
            Some(Object::Scale(old)) => workload.with_replicas(old.spec.replicas),
            _ => Workload::clone(workload),
        };
        let of_scaling = self.scaled(&current, scale.spec.replicas, None);
        // A start from 0 is judged like a new object, because a workload without pods is not
        // judged.
        let mut of_rollouts = Vec::new();
        if current.replicas <= 0 {
            let started = workload.with_replicas(scale.spec.replicas);
            of_rollouts = judge_workload(&Analysis::of(&started, None, self.facts));
            of_rollouts.retain(|hazard| hazard.outcome == Outcome::Deadlock);
        }
        let hazards = [&*of_scaling, &of_rollouts].concat();
        Some(self.decided(
            &hazards,
            &workload.metadata,
            workload.kind.name(),
            || self.owner_is_real(&workload.metadata),
            |finding, hazard, _| {
                // An autoscaler did not write the workload, and would try again forever.
                if of_rollouts.contains(hazard) && self.is_from_a_service_account() {
                    finding.only_warn();
                }
            },
        ))
    }

    /// The hazards of `workload` with `replicas` pods.
    fn scaled(
        &self,
        workload: &Workload,
        replicas: i64,
        autoscaler: Option<&Autoscaler>,
    ) -> Vec<Hazard> {
        let scaled = workload.with_replicas(replicas);
        judge(Subject::Scaled(&Scaling {
            analysis: Analysis::of(&scaled, None, self.facts),
            before: workload.replicas,
            autoscaler,
        }))
    }
}
