//! Judging autoscalers and requests to scale.

use std::borrow::Cow;

use super::{Evaluation, Verdict, existing_violations};
use crate::analysis::{Analysis, Facts};
use crate::model::autoscaler::{Autoscaler, AutoscalerKind, Scale};
use crate::model::object::Object;
use crate::model::workload::{Workload, WorkloadKind};
use crate::rules::{Hazard, Outcome, Scaling, judge_scaling, judge_workload};

/// The workload with at most the replicas that its autoscaler allows: a larger number is scaled
/// down at once.
pub(super) fn capped<'a>(workload: Cow<'a, Workload>, facts: Facts<'_>) -> Cow<'a, Workload> {
    if workload.replicas <= 1 || workload.template.volumes.is_empty() {
        return workload;
    }
    let metadata = &workload.metadata;
    let most = facts
        .view
        .autoscalers_of(workload.kind, &metadata.namespace, &metadata.name)
        .iter()
        .filter_map(|autoscaler| autoscaler.cap())
        .filter(|most| *most < workload.replicas)
        .min();
    match most {
        Some(replicas) => Cow::Owned(Workload {
            replicas,
            ..workload.into_owned()
        }),
        None => workload,
    }
}

impl Evaluation<'_> {
    pub(super) fn autoscaler(&self, autoscaler: &Autoscaler) -> Verdict {
        let metadata = &autoscaler.metadata;
        let keda = autoscaler.scaled_object();
        let is_made = autoscaler.kind == AutoscalerKind::Horizontal;
        if is_made
            && keda.is_some_and(|name| self.facts.view.has_scaled_object(&metadata.namespace, name))
        {
            return Verdict::default();
        }
        let target = &autoscaler.spec.scale_target_ref;
        let kind = WorkloadKind::find(&target.kind, target.group());
        let workload = kind.and_then(|it| self.scalable(it, &metadata.namespace, &target.name));
        let Some(workload) = workload else {
            return Verdict::default();
        };
        let workload = &*workload;
        let hazards = self.scaled(
            workload,
            autoscaler.most(workload.replicas),
            Some(autoscaler),
        );
        let before = match self.review.old {
            Some(Object::Autoscaler(old)) if old.spec.scale_target_ref.name == target.name => {
                self.scaled(workload, old.most(workload.replicas), Some(old))
            }
            _ => Vec::new(),
        };
        if hazards.is_empty() {
            return Verdict::default();
        }
        self.with_policy(
            &autoscaler.metadata,
            autoscaler.kind.name(),
            self.owner_is_real(&autoscaler.metadata),
            |resolved| {
                let mut verdict = self.plain(&hazards, resolved);
                for (finding, hazard) in verdict.findings.iter_mut().zip(&hazards) {
                    if !existing_violations::is_new(hazard, &before) {
                        finding.only_warn();
                    }
                }
                verdict
            },
        )
    }

    /// The workload that is scaled, with its pod template.
    fn scalable(
        &self,
        kind: WorkloadKind,
        namespace: &str,
        name: &str,
    ) -> Option<Cow<'_, Workload>> {
        let view = self.facts.view;
        view.with_template(view.workload(kind, namespace, name).found()?)
    }

    pub(super) fn scale(&self, scale: &Scale) -> Verdict {
        let Some(kind) = self.review.scaled else {
            return Verdict::default();
        };
        let metadata = &scale.metadata;
        let found = self.scalable(kind, &metadata.namespace, &metadata.name);
        let Some(workload) = found.as_deref() else {
            return Verdict::default();
        };
        if self.is_judged_in_owner(&workload.with_replicas(scale.spec.replicas)) {
            return Verdict::default();
        }
        // The request knows better than a cache how many replicas there are.
        let current = match self.review.old {
            Some(Object::Scale(old)) => workload.with_replicas(old.spec.replicas),
            _ => Workload::clone(workload),
        };
        let mut hazards = self.scaled(&current, scale.spec.replicas, None);
        let asked = hazards.len();
        if current.replicas <= 0 {
            hazards.extend(self.of_a_start(&current, scale.spec.replicas));
        }
        if hazards.is_empty() {
            return Verdict::default();
        }
        self.with_policy(
            &workload.metadata,
            workload.kind.name(),
            self.owner_is_real(&workload.metadata),
            |resolved| {
                let mut verdict = self.plain(&hazards, resolved);
                // An autoscaler did not write the workload, and would try again forever.
                if self.is_from_a_service_account() {
                    for finding in verdict.findings.iter_mut().skip(asked) {
                        finding.only_warn();
                    }
                }
                verdict
            },
        )
    }

    /// What the rollouts of the first pods of `workload` will come to: a start is judged like a
    /// new object, as one without pods was not.
    fn of_a_start(&self, workload: &Workload, replicas: i64) -> Vec<Hazard> {
        let started = workload.with_replicas(replicas);
        let mut hazards = judge_workload(&Analysis::of(&started, None, self.facts));
        hazards.retain(|hazard| hazard.outcome == Outcome::Deadlock);
        hazards
    }

    /// The verdict on `replicas` pods of `workload`.
    fn scaled(
        &self,
        workload: &Workload,
        replicas: i64,
        autoscaler: Option<&Autoscaler>,
    ) -> Vec<Hazard> {
        let scaled = workload.with_replicas(replicas);
        judge_scaling(&Scaling {
            analysis: Analysis::of(&scaled, None, self.facts),
            before: workload.replicas,
            autoscaler,
        })
    }
}
