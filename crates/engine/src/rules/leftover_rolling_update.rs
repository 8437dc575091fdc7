//! The strategy is Recreate but a `rollingUpdate` block was left beside it, which the API server refuses.
//!
//! # Fires on
//!
//! A Deployment or StatefulSet with `type: Recreate` and a `rollingUpdate` block that is not
//! null. The outcome is `refused`.
//!
//! # Why
//!
//! The API server fills in `rollingUpdate` when a Deployment has no strategy. A later `type:
//! Recreate` alone, by server-side apply or a patch, gets `spec.strategy.rollingUpdate: Forbidden:
//! may not be specified when strategy type is 'Recreate'`. Tools that apply on the server's side
//! (Helm 4, Flux, Argo CD) meet this with every repaired chart.
//!
//! In a StatefulSet, `Recreate` is on by default since Kubernetes 1.38; an older API server refuses
//! it with or without the block. Every live StatefulSet has the block, and there plain `kubectl
//! apply` does not remove it either: `only allowed for updateStrategy 'RollingUpdate'`.
//!
//! # Example
//!
//! ```yaml
//! apiVersion: apps/v1
//! kind: Deployment
//! metadata: {name: web}
//! spec:
//!   strategy:
//!     type: Recreate
//!     rollingUpdate: {maxSurge: 25%, maxUnavailable: 25%}
//!   template:
//!     spec:
//!       containers: [{name: web, image: nginx}]
//! ```
//!
//! # What to do
//!
//! In a manifest, replace the whole strategy with `{type: Recreate}`. In a live Deployment or
//! StatefulSet, remove the block once:
//!
//! ```sh
//! kubectl -n NAMESPACE patch deployment NAME --type=merge -p '{"spec":{"strategy":{"type":"Recreate","rollingUpdate":null}}}'
//! kubectl -n NAMESPACE patch sts NAME --type=merge -p '{"spec":{"updateStrategy":{"type":"Recreate","rollingUpdate":null}}}'
//! ```
//!
//! Then every way of applying `{type: Recreate}` passes. `rollingUpdate: null` in the manifest does
//! not help with server-side apply: only the API server owns the block. `RollingUpdate` with
//! `maxSurge: 0` and `maxUnavailable: 1` always passes. The webhook does all that by itself.
//!
//! # Claims
//!
//! * Named by the pod template: not read.
//! * A StatefulSet's own: not read.
//!
//! # Silent on
//!
//! `rollingUpdate: null`.

use super::{Hazard, On, Outcome, Rule, strategies};
use crate::analysis::Analysis;
use crate::model::strategy::Strategy;
use crate::model::workload::WorkloadKind;

pub(super) const RULE: Rule = Rule {
    code: "leftover-rolling-update",
    at_fault: "no block for rolling updates may stand beside Recreate",
    on: &[On::Workload(judge)],
};

fn judge(analysis: &Analysis<'_>, found: &mut Vec<Hazard>) {
    let workload = analysis.workload;
    // An older API server refuses Recreate in a StatefulSet with or without the block.
    let knows_recreate =
        matches!(workload.kind, WorkloadKind::Deployment | WorkloadKind::StatefulSet);
    if !knows_recreate || workload.strategy != (Strategy::Recreate { leftover: true }) {
        return;
    }
    let field = strategies::field(workload);
    let metadata = &workload.metadata;
    let namespace = match metadata.namespace.as_str() {
        "" => "NAMESPACE",
        namespace => namespace,
    };
    found.push(Hazard {
        field_path: format!("{field}.rollingUpdate"),
        what: format!(
            "{field} is Recreate but still has a rollingUpdate block beside it, and the API server refuses the two together."
        ),
        advice: format!(
            "Run {} once if it lives already. In the manifest, replace the whole strategy with {{type: Recreate}}.",
            strategies::recreate_once(workload.kind, Some(namespace), &metadata.shown_name()),
        ),
        brief: "a rollingUpdate block was left beside strategy Recreate; set it to null".to_owned(),
        ..RULE.hazard(Outcome::Refused)
    });
}
