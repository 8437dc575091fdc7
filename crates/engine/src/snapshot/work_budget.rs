//! Limits the work of one judgement.

use std::cell::Cell;

/// The steps that one judgement has left. A step is one object visited or one comparison, less
/// than 100 ns (`benches/knots.rs`).
///
/// Once it is exhausted, a [`View`](super::View) ends every iteration, so that the judgement ends
/// soon. Its result is then meaningless, so the caller has to check `WorkBudget::is_exhausted`.
#[derive(Debug)]
pub(crate) struct WorkBudget(Cell<usize>);

impl WorkBudget {
    /// A budget of `steps`.
    pub(crate) const fn new(steps: usize) -> Self {
        Self(Cell::new(steps))
    }

    /// Spends `steps`, or all that are left. Returns whether any are left afterwards.
    pub(super) fn spend(&self, steps: usize) -> bool {
        let left = self.0.get().saturating_sub(steps);
        self.0.set(left);
        left > 0
    }

    /// Whether no steps are left.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.0.get() == 0
    }
}
