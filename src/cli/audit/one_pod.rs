//! The change to one pod, for findings about several pods that no remedy repairs.

use serde_json::{Map, Value, json};

use engine::model::object::Object;
use engine::model::workload::WorkloadKind;
use engine::rules::codes;

/// The rules about too many pods.
const OF_MANY: [&str; 4] = [
    codes::REPLICAS_SHARE_VOLUME,
    codes::SINGLE_POD_VOLUME,
    codes::AUTOSCALER_EXCEEDS_VOLUME,
    codes::CO_LOCATION_IMPOSSIBLE,
];

/// The kinds without a number of pods, and those whose rollouts have strategies of their own.
const LEFT_OUT: [WorkloadKind; 5] = [
    WorkloadKind::Pod,
    WorkloadKind::DaemonSet,
    WorkloadKind::Rollout,
    WorkloadKind::DeploymentConfig,
    WorkloadKind::CloneSet,
];

/// The merge patch that leaves the object one pod; `None` if the rule is about something else, or
/// if the kind is left out.
pub(super) fn patch(rule: &str, object: &Object) -> Option<Value> {
    if !OF_MANY.contains(&rule) {
        return None;
    }
    Some(match object {
        Object::Workload(workload) if !LEFT_OUT.contains(&workload.kind) => {
            let fields = workload.kind.pods_field().rsplit('.');
            fields.fold(json!(1), |value, field| json!({field: value}))
        }
        Object::Autoscaler(autoscaler) => {
            let [fewest, most] = autoscaler.fields();
            let mut spec = Map::from_iter([(most.to_owned(), json!(1))]);
            if autoscaler.fewest() > 1 {
                spec.insert(fewest.to_owned(), json!(1));
            }
            json!({"spec": spec})
        }
        _ => return None,
    })
}
