//! The update strategy has a type that the API server refuses.
//!
//! # Fires on
//!
//! In manifests: a Deployment whose `spec.strategy.type` is neither `Recreate` nor
//! `RollingUpdate`, and a StatefulSet or DaemonSet whose `spec.updateStrategy.type` is neither
//! `RollingUpdate` nor `OnDelete`. The outcome is `refused`, and the built-in policy warns. The
//! webhook leaves it to the API server.
//!
//! # Why
//!
//! The API server answers `Unsupported value`, so the intended repair never reaches the cluster.
//! Types are case-sensitive: `recreate` is refused. DaemonSets know no `Recreate`: they stop a pod
//! before they start its successor anyway.
//!
//! # Example
//!
//! ```yaml
//! apiVersion: apps/v1
//! kind: Deployment
//! metadata: {name: sessions}
//! spec:
//!   strategy: {type: recreate}
//!   template:
//!     spec:
//!       containers: [{name: sessions, image: redis}]
//! ```
//!
//! # What to do
//!
//! Write `Recreate`. In a DaemonSet use `RollingUpdate` with `maxSurge: 0`, which stops the old
//! pod first.
//!
//! # Claims
//!
//! * Named by the pod template: not read.
//! * A StatefulSet's own: not read.
//!
//! # Silent on
//!
//! The types that the API server knows for the kind, and none at all, which means
//! `RollingUpdate`. `Recreate` in a StatefulSet, unless the API server is older than 1.37: version
//! 1.37 has it behind the feature gate `StatefulSetRecreateStrategy` (KEP-3541), and since 1.38 it
//! is on. Files name no version; `--facts` does, as `snapshot` writes it.

use super::{Hazard, On, Outcome, Rule, strategies};
use crate::analysis::Analysis;
use crate::model::strategy::Strategy;
use crate::model::workload::WorkloadKind;

pub(super) const RULE: Rule = Rule {
    code: "unsupported-strategy",
    at_fault: "the API server knows no such type here",
    on: &[On::Workload(judge)],
};

fn judge(analysis: &Analysis<'_>, found: &mut Vec<Hazard>) {
    let workload = analysis.workload;
    let word = match &workload.strategy {
        Strategy::RollingUpdate { .. } | Strategy::SideBySide(_) => return,
        Strategy::Recreate { .. } => "Recreate",
        Strategy::Other(word) => word,
    };
    let field = strategies::field(workload);
    let known = match workload.kind {
        WorkloadKind::Deployment => ["Recreate", "RollingUpdate"],
        WorkloadKind::StatefulSet
            if word == "Recreate"
                && !analysis.facts.view.server().refuses_to_recreate_stateful_sets() =>
        {
            return;
        }
        WorkloadKind::StatefulSet | WorkloadKind::DaemonSet => ["RollingUpdate", "OnDelete"],
        _ => return,
    };
    if known.contains(&word) {
        return;
    }
    let advice = match known.into_iter().find(|name| name.eq_ignore_ascii_case(word)) {
        Some(meant) => format!("Write {meant}."),
        None if word == "Recreate" => {
            "Use RollingUpdate with maxSurge 0, which stops the old pod first.".to_owned()
        }
        None => format!("Write {} or {}.", known[0], known[1]),
    };
    found.push(Hazard {
        field_path: format!("{field}.type"),
        what: format!(
            "{field}.type is \"{word}\", and the API server knows only {} and {}.",
            known[0], known[1]
        ),
        brief: format!("the API server refuses {field}.type \"{word}\""),
        advice,
        ..RULE.hazard(Outcome::Refused)
    });
}
