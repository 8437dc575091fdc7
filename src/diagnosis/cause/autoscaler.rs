//! An autoscaler asks for more pods than the volume can have.

use super::replicas;
use super::{Cause, Purpose, Step, another_storage, limit, named, whereabouts};
use crate::diagnosis::stuck::Stuck;

pub(super) const CAUSE: Cause = Cause {
    code: "autoscaler",
    title: "The autoscaler asks for more pods than the volume can have",
    passes: false,
    judge,
    steps: |stuck, _| steps(stuck),
};

fn judge(stuck: &Stuck<'_>) -> Option<String> {
    let autoscaler = stuck.autoscaler()?;
    let other = stuck.siblings().next()?;
    Some(format!(
        "HorizontalPodAutoscaler {} may give {} up to {} pods, but {}; {} {} has it.",
        autoscaler.metadata.name,
        Stuck::target_of(stuck.pod),
        autoscaler.spec.max_replicas,
        limit(stuck),
        named(other),
        whereabouts(other),
    ))
}

/// The autoscaler brings the workload down to its maximum at once, whatever the load
/// (`reconcileAutoscaler` in `pkg/controller/podautoscaler/horizontal.go`).
fn steps(stuck: &Stuck<'_>) -> Vec<Step> {
    let Some(autoscaler) = stuck.autoscaler() else {
        return replicas::CAUSE.steps(stuck, None);
    };
    let target = format!("hpa/{}", autoscaler.metadata.name);
    vec![
        Step::new(
            Purpose::WayOut,
            stuck.in_namespace(&[
                "patch",
                &target,
                "--type=merge",
                "-p",
                r#"{"spec":{"minReplicas":1,"maxReplicas":1}}"#,
            ]),
            "The autoscaler brings the workload down to one pod and adds none under load. The pod that runs goes on.",
        ),
        another_storage(stuck),
    ]
}
