//! An autoscaler, or a request to scale, brings more pods than the volume can serve.
//!
//! # Fires on
//!
//! A HorizontalPodAutoscaler by its `maxReplicas`, a KEDA ScaledObject by its `maxReplicaCount`
//! (100 by default), or a request to scale by its `replicas`. The number exceeds the workload's
//! own, and would cause `replicas-share-volume`, or the `stuck` of `single-pod-volume` or
//! `co-location-impossible`. It is reported on the autoscaler or the request, or on the workload
//! if that arrives later.
//!
//! # Why
//!
//! `kubectl scale` and autoscalers change the number of replicas without touching the pod
//! template. A Deployment that was made safe for one pod gets a permanent Multi-Attach error with
//! the second.
//!
//! # Example
//!
//! ```yaml
//! apiVersion: autoscaling/v2
//! kind: HorizontalPodAutoscaler
//! metadata: {name: web}
//! spec:
//!   scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
//!   maxReplicas: 5
//! ---
//! apiVersion: apps/v1
//! kind: Deployment
//! metadata: {name: web}
//! spec:
//!   strategy: {type: Recreate}
//!   template:
//!     spec:
//!       volumes:
//!       - name: data
//!         persistentVolumeClaim: {claimName: data}
//! ---
//! apiVersion: v1
//! kind: PersistentVolumeClaim
//! metadata: {name: data}
//! spec: {accessModes: [ReadWriteOnce], storageClassName: gp3}
//! ```
//!
//! # What to do
//!
//! Keep `maxReplicas` (or the scale) at 1, or move the data to a ReadWriteMany
//! volume, or keep all pods on one node with required pod affinity on
//! `kubernetes.io/hostname`.
//!
//! # Claims
//!
//! * Named by the pod template: read.
//! * A StatefulSet's own: not read, because each new pod gets its own.
//!
//! # Silent on
//!
//! Scaling down. Workloads that are not there, that have the same hazard without the autoscaler,
//! or that have no replicas, which a new HorizontalPodAutoscaler leaves alone. Autoscalers that never
//! scale up (`selectPolicy: Disabled`), and a ScaledObject that is paused.

use super::{Hazard, On, Outcome, Rule, Scaling, messages};
use crate::analysis::Analysis;
use crate::analysis::constraints::{Together, contradiction};
use crate::model::autoscaler::Autoscaler;

pub(super) const RULE: Rule = Rule {
    code: "autoscaler-exceeds-volume",
    at_fault: "the volume does not serve so many pods",
    on: &[On::Scaled(judge), On::Workload(judge_workload)],
};

fn judge(scaling: &Scaling<'_>, found: &mut Vec<Hazard>) {
    let analysis = &scaling.analysis;
    let (kind, name) = (analysis.workload.kind, &analysis.workload.metadata.name);
    let pods = analysis.pods();
    let (who, fewer) = match scaling.autoscaler {
        Some(autoscaler) => (
            format!("it may scale {kind} {name} to {pods} pods"),
            set_to_one(autoscaler, "spec.", ""),
        ),
        None => (format!("{pods} pods are requested"), "Scale to 1".to_owned()),
    };
    let field = scaling.field();
    found.extend(find(analysis, scaling.before, &field, &who, &fewer));
}

/// The hazard of an autoscaler that exists before its workload.
fn judge_workload(analysis: &Analysis<'_>, found: &mut Vec<Hazard>) {
    let workload = analysis.workload;
    if !workload.has_pods() || analysis.volumes.is_empty() {
        return;
    }
    let Some(autoscaler) = analysis.highest_autoscaler() else {
        return;
    };
    let kind = autoscaler.kind().name();
    let scaled = workload.with_replicas(autoscaler.most(workload.replicas));
    // The clone keeps the assumptions about unknown volumes.
    let analysis = Analysis { workload: &scaled, ..analysis.clone() };
    let (name, pods) = (&autoscaler.metadata.name, scaled.replicas);
    let who = format!("{kind} {name} may scale it to {pods} pods");
    let field = workload.kind.pods_field();
    let fewer = set_to_one(autoscaler, "", &format!(" of the {kind}"));
    found.extend(find(&analysis, workload.replicas, field, &who, &fewer));
}

/// The advice to keep the autoscaler at one replica, as the beginning of a sentence. The fields
/// have `before` before them and `after` behind them.
fn set_to_one(autoscaler: &Autoscaler, before: &str, after: &str) -> String {
    let [fewest, most] = autoscaler.fields();
    match autoscaler.fewest() {
        ..=1 => format!("Set {before}{most}{after} to 1"),
        _ => format!("Set {before}{fewest} and {before}{most}{after} to 1"),
    }
}

/// The hazard of the replicas in `analysis` that `before` did not have. `who` says what sets them,
/// `fewer` how to set one.
fn find(
    analysis: &Analysis<'_>,
    before: i64,
    field: &str,
    who: &str,
    fewer: &str,
) -> Option<Hazard> {
    if analysis.workload.replicas <= before.max(1) {
        return None;
    }
    let pods = analysis.pods();
    let (volumes, what, advice, brief) = if analysis.replicas_share_exclusive() {
        let volumes = messages::volumes(analysis.exclusive());
        let first = messages::first_of(analysis.exclusive());
        let eligible = &analysis.placement.eligible;
        let or_together = messages::or_together(analysis);
        let or_move = messages::shared_class(analysis);
        (
            messages::names(analysis.exclusive()),
            format!(
                "{who}, but {volumes} and {eligible}, so every pod on a second node stays in ContainerCreating with a Multi-Attach error."
            ),
            format!("{fewer}{or_together}, or use a ReadWriteMany volume.{or_move}"),
            format!(
                "{first} serves one node, but {pods} pods may be on several; the others never start"
            ),
        )
    } else if pods > 1 && analysis.single_pod().next().is_some() {
        let volumes = messages::volumes(analysis.single_pod());
        let first = messages::first_of(analysis.single_pod());
        (
            messages::names(analysis.single_pod()),
            format!(
                "{who}, but {volumes}, which only one pod in the whole cluster may use at a time, so all but one stay Pending."
            ),
            format!("{fewer}, or use another access mode if several pods must have the data."),
            format!("{first} is ReadWriteOncePod: only one of {pods} pods can ever run"),
        )
    } else {
        let contradiction = contradiction(analysis)?;
        if contradiction.pods == Together::Rollout {
            return None;
        }
        (
            messages::names(analysis.volumes_in_one_place()),
            format!(
                "{who}, but {}, so they must share a node, and {} keeps them apart: all but the first can never start.",
                messages::in_one_place(analysis),
                contradiction.text,
            ),
            format!("{fewer}, or remove what keeps the pods apart, or use a ReadWriteMany volume."),
            format!(
                "{} needs the {pods} pods on one node, which their own constraints forbid",
                messages::first_of(analysis.volumes_in_one_place())
            ),
        )
    };
    Some(Hazard {
        field_path: field.to_owned(),
        volumes,
        excess: pods,
        what,
        advice,
        brief,
        ..RULE.hazard(Outcome::Stuck)
    })
}
