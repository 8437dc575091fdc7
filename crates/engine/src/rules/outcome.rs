//! How a hazard ends when nobody steps in.

use crate::model::words::words;

words! {
    /// The outcome of a hazard if nobody intervenes.
    ///
    /// Ordered by severity: the gravest is the smallest, so that sorting findings puts it first.
    Outcome {
        /// Two nodes write to one volume at the same time and its data is damaged.
        DataLoss = "data-loss",
        /// The rollout can never finish.
        Deadlock = "deadlock",
        /// Some pod can never start.
        Stuck = "stuck",
        /// The API server itself refuses the object.
        Refused = "refused",
        /// It heals by itself once the old pod is gone.
        Delay = "delay",
        /// A fact on which the verdict depends is missing.
        Unknown = "unknown",
    }
}

impl Outcome {
    /// The outcome for pods that wait until others stop: only a delay if those end by themselves.
    pub(super) const fn of_waiting(ends: bool) -> Self {
        if ends { Self::Delay } else { Self::Stuck }
    }
}
