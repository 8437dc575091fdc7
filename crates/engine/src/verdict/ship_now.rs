//! The one command after which an update passes, although the workload was at fault before.

use super::Evaluation;
use super::workload::Decisions;
use crate::analysis::Analysis;
use crate::model::object::ObjectRef;
use crate::model::strategy::Strategy;
use crate::model::workload::{Workload, WorkloadKind};
use crate::policy::Action;
use crate::rules::{RECREATE_ONCE, judge_workload, patch_once};

/// A change of the live object that starts no rollout, so it always passes. It sets `rollingUpdate`
/// to null: the API server has filled that block in and would refuse the patch otherwise.
pub(super) struct ShipNow {
    /// The number of replicas, if the change sets it.
    replicas: Option<i64>,
    patch: &'static str,
    /// The cost, in a few words.
    cost: &'static str,
}

static CHANGES: [ShipNow; 2] = [
    ShipNow { replicas: None, patch: RECREATE_ONCE, cost: "short downtime" },
    ShipNow {
        replicas: Some(1),
        patch: r#"{"spec":{"replicas":1,"strategy":{"type":"Recreate","rollingUpdate":null}}}"#,
        cost: "one pod, short downtime",
    },
];

impl ShipNow {
    /// Tells the user what to do, in a sentence. A manifest or a chart that states a strategy would
    /// revert the patch, so the strategy must be changed there first. `stated` is `None` if nothing
    /// shows whether they state one.
    pub(super) fn sentence(&self, object: &ObjectRef, stated: Option<bool>) -> String {
        let command = patch_once("deploy", object.namespace.as_deref(), &object.name, self.patch);
        let replicas = match self.replicas {
            Some(_) => " and replicas to 1",
            None => "",
        };
        match stated {
            Some(false) => {
                format!("Ship it now ({}): {command}, then repeat your change.", self.cost)
            }
            Some(true) => format!(
                "Set strategy.type to Recreate{replicas} in the manifest or the chart's values."
            ),
            None => format!(
                "Set strategy.type to Recreate{replicas} in the manifest or values; if neither states it, run {command} and repeat."
            ),
        }
    }
}

impl Evaluation<'_> {
    /// The first of [`CHANGES`] after which nothing about the update from `old` to `workload` is
    /// denied; `None` if the update itself changes the strategy or adds replicas.
    pub(super) fn ship_now(
        &self,
        workload: &Workload,
        old: &Workload,
        decisions: &Decisions<'_>,
    ) -> Option<&'static ShipNow> {
        let [replicas, before] = [workload, old].map(|workload| workload.replicas.max(1));
        if workload.kind != WorkloadKind::Deployment
            || workload.strategy != old.strategy
            || replicas > before
            || !self.review.document.changes_template()
        {
            return None;
        }
        let is_scaled = || !self.facts.view.autoscalers(workload).is_empty();
        CHANGES.iter().find(|change| {
            let changed = Workload {
                strategy: Strategy::Recreate { leftover: false },
                replicas: change.replicas.unwrap_or(replicas),
                ..workload.clone()
            };
            let analysis = Analysis::of(&changed, Some(old), self.facts);
            (change.replicas.is_none() || !is_scaled())
                && judge_workload(&analysis)
                    .iter()
                    .all(|hazard| decisions.of(hazard).action != Action::Deny)
        })
    }
}
