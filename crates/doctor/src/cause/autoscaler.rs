//! An autoscaler asks for more pods than the volume can have.

use serde_json::json;

use super::Judgement;
use super::changed::Changed;
use crate::told::merged;
use crate::waiting_pod::WaitingPod;

pub(super) fn judge(waiting: &WaitingPod<'_>) -> Option<Judgement> {
    let autoscaler = waiting.autoscaler()?;
    let other = waiting.siblings().next()?;
    // An autoscaler immediately scales its workload down to its maximum, whatever the load
    // (`reconcileAutoscaler` in `pkg/controller/podautoscaler/horizontal.go`). KEDA writes its
    // autoscalers from ScaledObjects. It refuses a minimum above the maximum
    // (`CheckReplicaCountBoundsAreValid` in KEDA's `apis/keda/v1alpha1`), and the minimum may be 0,
    // so a minimum of at most 1 stays unchanged.
    let spec = match (autoscaler.scaled_object(), autoscaler.fewest()) {
        (None, _) => json!({"minReplicas": 1, "maxReplicas": 1}),
        (Some(_), ..=1) => json!({"maxReplicaCount": 1}),
        (Some(_), _) => json!({"minReplicaCount": 1, "maxReplicaCount": 1}),
    };
    let values = json!({
        "autoscaler": autoscaler.metadata.name,
        "most": autoscaler.spec.max_replicas,
        "patch": {"spec": spec},
    });
    let changed = Changed::scaling(autoscaler, waiting);
    Some(changed.judged(waiting, "autoscaler", merged(values, waiting.to_one(other))))
}
