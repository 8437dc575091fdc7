//! `recreate`: stop the old pod before the new one is started.

use json_patch::Patch;
use serde_json::{Map, Value, json};

use super::{Remedy, edit};
use crate::analysis::Analysis;
use crate::model::workload::{Workload, WorkloadKind};
use crate::rules::codes;

const KINDS: &[WorkloadKind] =
    &[WorkloadKind::Deployment, WorkloadKind::DeploymentConfig, WorkloadKind::StatefulSet];

/// The rules about rollouts, whose hazards end if the old pod stops first.
pub(super) const OF_ROLLOUTS: &[&str] = &[
    codes::ROLLING_UPDATE_OVERLAP,
    codes::UNGUARDED_VOLUME,
    codes::MISLABELLED_VOLUME,
    codes::SINGLE_POD_VOLUME,
    codes::CO_LOCATION_IMPOSSIBLE,
];

/// Whether every API server knows the strategy for the kind.
pub(super) fn suits(kind: WorkloadKind) -> bool {
    KINDS.contains(&kind) && kind != WorkloadKind::StatefulSet
}

pub(super) const REMEDY: Remedy = Remedy {
    name: "recreate",
    cost: "Each rollout has a short downtime, and a new pod on another node waits a moment until the volume is detached from the old one.",
    change: "set the strategy to {type: Recreate}",
    effect: "the strategy was set to Recreate",
    cures: OF_ROLLOUTS,
    kinds: KINDS,
    works,
    patch,
};

/// Whether the API server accepts the strategy for the kind.
fn works(analysis: &Analysis<'_>) -> bool {
    suits(analysis.workload.kind) || analysis.facts.view.server().recreates_stateful_sets()
}

/// The strategy is replaced as a whole, because the API server refuses `rollingUpdate` beside
/// `Recreate`.
pub(super) fn patch(workload: &Workload, raw: &Value, _pods_there: i64) -> Option<Patch> {
    let strategy = match workload.kind {
        WorkloadKind::DeploymentConfig => of_deployment_config(raw),
        _ => json!({"type": "Recreate"}),
    };
    let field = match workload.kind {
        WorkloadKind::StatefulSet => "updateStrategy",
        _ => "strategy",
    };
    Some(edit::set(raw, &["spec", field], strategy))
}

/// The other fields of a DeploymentConfig's strategy stay: the deadline and resources of its
/// deployer pods, and the time limit and hooks that both strategies have.
fn of_deployment_config(raw: &Value) -> Value {
    let mut strategy =
        raw.pointer("/spec/strategy").and_then(Value::as_object).cloned().unwrap_or_default();
    let mut params = match strategy.remove("rollingParams") {
        Some(Value::Object(params)) => params,
        _ => Map::new(),
    };
    let shared = ["timeoutSeconds", "pre", "post"];
    params.retain(|key, value| shared.contains(&key.as_str()) && !value.is_null());
    if !params.is_empty() && !strategy.contains_key("recreateParams") {
        strategy.insert("recreateParams".to_owned(), Value::Object(params));
    }
    strategy.insert("type".to_owned(), json!("Recreate"));
    Value::Object(strategy)
}
