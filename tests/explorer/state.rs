//! One state of an exploration, small enough to keep many.
//!
//! Pods of one class (a workload's revision) on one node in one phase cannot be distinguished, so a
//! state only counts them.

use std::hash::{Hash, Hasher};

use crate::configuration::{NODES, WORKLOADS};

/// The number of classes of pods: each workload has its present revision and, during its rollout,
/// the next one.
pub(crate) const CLASSES: usize = 2 * WORKLOADS;

/// The class of a workload's present (0) or next (1) revision.
pub(crate) fn class(workload: usize, revision: usize) -> usize {
    2 * workload + revision
}

/// The classes of both revisions of the workload that this class belongs to.
pub(crate) fn revisions(class: usize) -> [usize; 2] {
    [class & !1, class | 1]
}

/// The phases of a pod that has a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    /// Scheduled, waiting for its volume.
    Waiting = 0,
    /// Running and ready.
    Running = 1,
    /// Deleted, but still there: it counts for affinity, for ReadWriteOncePod and for the volume
    /// until it is gone.
    Terminating = 2,
}

pub(crate) const PHASES: [Phase; 3] = [Phase::Waiting, Phase::Running, Phase::Terminating];
/// The phases that a ReplicaSet counts.
pub(crate) const ACTIVE: [Phase; 2] = [Phase::Waiting, Phase::Running];

const COUNT_BITS: u32 = 4;
const COUNT_MASK: u64 = 0xf;
const ATTACHED: u64 = 1 << 48;

/// A state. Each node has a word with counters (4 bits for each class and phase) and a bit for the
/// attachment. The pods without a node are counted separately.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct State {
    columns: [u64; NODES],
    /// For each class, the number of pending (unscheduled) pods and of finished pods, 4 bits each.
    outside: u32,
}

impl State {
    pub(crate) const EMPTY: Self = Self { columns: [0; NODES], outside: 0 };

    fn shift(class: usize, phase: Phase) -> u32 {
        (class as u32 * 3 + phase as u32) * COUNT_BITS
    }

    pub(crate) fn count(&self, class: usize, phase: Phase, node: usize) -> u8 {
        ((self.columns[node] >> Self::shift(class, phase)) & COUNT_MASK) as u8
    }

    pub(crate) fn add(&mut self, class: usize, phase: Phase, node: usize) {
        self.columns[node] += 1 << Self::shift(class, phase);
    }

    pub(crate) fn remove(&mut self, class: usize, phase: Phase, node: usize) {
        self.columns[node] -= 1 << Self::shift(class, phase);
    }

    pub(crate) fn pending(&self, class: usize) -> u8 {
        ((self.outside >> (class * 8)) & 0xf) as u8
    }

    pub(crate) fn set_pending(&mut self, class: usize, pods: u8) {
        self.outside = self.outside & !(0xf << (class * 8)) | u32::from(pods) << (class * 8);
    }

    pub(crate) fn finished(&self, class: usize) -> u8 {
        ((self.outside >> (class * 8 + 4)) & 0xf) as u8
    }

    pub(crate) fn finish(&mut self, class: usize) {
        self.outside += 1 << (class * 8 + 4);
    }

    pub(crate) fn attached(&self, node: usize) -> bool {
        self.columns[node] & ATTACHED != 0
    }

    pub(crate) fn attach(&mut self, node: usize) {
        self.columns[node] |= ATTACHED;
    }

    pub(crate) fn detach(&mut self, node: usize) {
        self.columns[node] &= !ATTACHED;
    }

    /// The number of pods of the class in these phases on the node.
    pub(crate) fn on_node(&self, class: usize, phases: &[Phase], node: usize) -> u8 {
        phases.iter().map(|phase| self.count(class, *phase, node)).sum()
    }

    /// The number of pods of the class in this phase on all nodes.
    pub(crate) fn total(&self, class: usize, phase: Phase) -> u8 {
        (0..NODES).map(|node| self.count(class, phase, node)).sum()
    }

    /// The number of pods that their controller counts: neither Terminating nor finished.
    pub(crate) fn active(&self, class: usize) -> u8 {
        self.pending(class) + self.total(class, Phase::Waiting) + self.total(class, Phase::Running)
    }

    /// Sorts the contents of these nodes, which must be in ascending order.
    pub(crate) fn sort(&mut self, nodes: &[usize]) {
        for end in 1..nodes.len() {
            for at in (0..end).rev() {
                let (left, right) = (nodes[at], nodes[at + 1]);
                if self.columns[left] <= self.columns[right] {
                    break;
                }
                self.columns.swap(left, right);
            }
        }
    }

    /// The same state with its nodes renamed: node `n` of the result is node `order[n]`.
    pub(crate) fn renamed(&self, order: &[usize; NODES]) -> Self {
        Self { columns: order.map(|node| self.columns[node]), outside: self.outside }
    }
}

impl Hash for State {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let mix =
            |hash: u64, word: u64| (hash.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let hash = self.columns.iter().fold(u64::from(self.outside), |hash, word| mix(hash, *word));
        hasher.write_u64(hash);
    }
}
