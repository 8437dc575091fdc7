//! How much one judgement may look at.

use std::cell::Cell;

/// What is left of the work that one judgement may make. A step is one object
/// looked at or one comparison, less than 100 ns (`benches/knots.rs`).
///
/// Where they end, a [`View`](super::View) ends whatever it was listing, so that a
/// judgement comes to its end soon. What it then says is worth nothing: whoever gave
/// the steps asks [`WorkBudget::are_used_up`] before believing it.
#[derive(Debug)]
pub struct WorkBudget(Cell<usize>);

impl WorkBudget {
    /// So many steps.
    #[must_use]
    pub const fn new(count: usize) -> Self {
        Self(Cell::new(count))
    }

    /// Takes so many, or the rest; whether there were so many and more.
    pub(super) fn take(&self, count: usize) -> bool {
        let left = self.0.get().saturating_sub(count);
        self.0.set(left);
        left > 0
    }

    /// Whether none is left.
    #[must_use]
    pub(crate) fn are_used_up(&self) -> bool {
        self.0.get() == 0
    }
}
