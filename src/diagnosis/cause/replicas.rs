//! More pods of one workload than the volume can have on their nodes.

use super::{Cause, fewer_pods, limit, named, whereabouts};
use crate::diagnosis::stuck::Stuck;

pub(super) const CAUSE: Cause = Cause {
    code: "too-many-replicas",
    title: "More pods than the volume can have",
    passes: false,
    judge,
    steps: |stuck, _| fewer_pods(stuck),
};

fn judge(stuck: &Stuck<'_>) -> Option<String> {
    let (kind, name) = stuck.pod.workload();
    let other = stuck.siblings().next()?;
    let wanted = stuck.workload().map(|workload| workload.replicas);
    let wanted = match wanted.filter(|count| *count > 1) {
        Some(count) => format!("{kind} {name} wants {count} pods"),
        None => format!("{kind} {name} wants a pod on each of its nodes, or more than one"),
    };
    Some(format!(
        "{wanted}, but {}; {} {} has it.",
        limit(stuck),
        named(other),
        whereabouts(other),
    ))
}
