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

/// The merge patch that leaves the object one pod; `None` if the rule is about something else, or
/// if the object has no such number.
pub(super) fn patch(rule: &str, object: &Object) -> Option<Value> {
    if !OF_MANY.contains(&rule) {
        return None;
    }
    Some(match object {
        Object::Workload(workload) => match workload.kind {
            WorkloadKind::Deployment
            | WorkloadKind::ReplicaSet
            | WorkloadKind::ReplicationController
            | WorkloadKind::StatefulSet => json!({"spec": {"replicas": 1}}),
            WorkloadKind::Job => json!({"spec": {"parallelism": 1}}),
            WorkloadKind::CronJob => json!({"spec": {"jobTemplate": {"spec": {"parallelism": 1}}}}),
            WorkloadKind::ScaledJob => json!({"spec": {"maxReplicaCount": 1}}),
            _ => return None,
        },
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
