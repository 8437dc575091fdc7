//! The remedies: changes of an object after which a hazard is gone or milder, one in each file.
//!
//! A remedy only writes a patch; the patched object is judged again to see whether it helps.
//! Patches are computed on the JSON that was received, so that fields unknown here survive.

pub mod applied;
mod colocate;
mod drop_leftover;
pub mod edit;
mod recreate;
mod zero_surge;

use json_patch::Patch;
use serde_json::Value;

use crate::analysis::Analysis;
use crate::model::uid::Uid;
use crate::model::workload::{Workload, WorkloadKind};

/// A remedy: its public name, its cost and the patch it writes.
#[derive(Debug)]
pub struct Remedy {
    /// The public name, which never changes.
    pub name: &'static str,
    /// The cost: a sentence, shown wherever the remedy is offered.
    pub cost: &'static str,
    /// The instruction for a change by hand with the same effect: the start of a sentence.
    pub change: &'static str,
    /// The effect: the end of a sentence, shown when the remedy was applied.
    pub effect: &'static str,
    /// The rules whose hazards it may cure.
    cures: &'static [&'static str],
    /// The kinds of workload it can be applied to.
    kinds: &'static [WorkloadKind],
    /// Whether the remedy achieves its purpose in the patched workload.
    pub(crate) works: fn(&Analysis<'_>) -> bool,
    /// The patch for a workload, from the object as it was received and the number of pods that it
    /// has already, on unknown nodes; `None` if the object lacks what the remedy needs.
    patch: fn(&Workload, &Value, i64) -> Option<Patch>,
}

impl Remedy {
    /// Whether the remedy may cure a hazard of `rule` on some kind of workload.
    pub fn cures(&self, rule: &str) -> bool {
        self.cures.contains(&rule)
    }

    /// Whether the remedy may cure a hazard of `rule` on that kind of workload.
    pub fn suits(&self, rule: &str, kind: WorkloadKind) -> bool {
        self.kinds.contains(&kind) && self.cures.contains(&rule)
    }

    /// The patch for `workload`, which was received as `raw`; `None` if the object lacks what the
    /// remedy needs, or if nothing would change. The pods of `previous`, the workload before the
    /// update, exist. Without it, an object that has a uid is assumed to have its pods.
    pub fn patch(
        &self,
        workload: &Workload,
        raw: &Value,
        previous: Option<&Workload>,
    ) -> Option<Patch> {
        let pods_there = match previous {
            Some(old) if old.has_pods() => old.replicas,
            None if workload.metadata.uid != Uid::default() => workload.replicas,
            _ => 0,
        };
        (self.patch)(workload, raw, pods_there).filter(|patch| !patch.0.is_empty())
    }
}

/// Every remedy, the one with the fewest side effects first.
pub static REMEDIES: [Remedy; 4] =
    [drop_leftover::REMEDY, recreate::REMEDY, zero_surge::REMEDY, colocate::REMEDY];

/// The remedy of that name.
pub fn named(name: &str) -> Option<&'static Remedy> {
    REMEDIES.iter().find(|remedy| remedy.name == name)
}
