//! What one connection holds of what all share, and how much it may.
//!
//! One may hold a multiple of what is left, so that something is always left for a newcomer.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many times what is left of the memory the bodies of one connection may hold, and
/// likewise its reviews of the slots. A connection that is alone has seven eighths, and of
/// two that want all there is each seven fifteenths: a fifteenth is left for the third.
const OF_WHAT_IS_LEFT: usize = 7;

/// The same for all connections of one address, whose number would otherwise leave nothing.
const OF_WHAT_IS_LEFT_FOR_AN_ADDRESS: usize = 15;

/// What the requests of one connection hold, and with them those of its address.
#[derive(Debug, Default)]
pub(super) struct Account {
    own: Held,
    of_address: Arc<Held>,
}

#[derive(Debug, Default)]
struct Held {
    bytes: AtomicUsize,
    /// In which reviews are judged.
    slots: AtomicUsize,
}

impl Account {
    /// Of another connection of the same address.
    pub(super) fn beside(&self) -> Self {
        Self {
            own: Held::default(),
            of_address: Arc::clone(&self.of_address),
        }
    }

    /// Whether it may hold `more` bytes, where so many are left then.
    pub(super) fn may_hold(&self, more: usize, left: usize) -> bool {
        self.is_within(|held| &held.bytes, more, left, 0)
    }

    /// Whether it may take one more slot, where so many are left now; as many as `always`
    /// it may hold however few those are.
    pub(super) fn may_take_a_slot(&self, left: usize, always: usize) -> bool {
        self.is_within(|held| &held.slots, 1, left, always)
    }

    fn is_within(
        &self,
        of: impl Fn(&Held) -> &AtomicUsize,
        more: usize,
        left: usize,
        always: usize,
    ) -> bool {
        let times = [OF_WHAT_IS_LEFT, OF_WHAT_IS_LEFT_FOR_AN_ADDRESS];
        std::iter::zip(self.both(), times).all(|(held, times)| {
            let sum = of(held).load(Ordering::Relaxed).saturating_add(more);
            sum <= left.saturating_mul(times).max(always)
        })
    }

    fn both(&self) -> [&Held; 2] {
        [&self.own, &self.of_address]
    }

    /// Counts bytes.
    pub(super) fn bytes_taken(&self, bytes: usize) {
        for held in self.both() {
            held.bytes.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    /// Counts bytes no more.
    pub(super) fn bytes_given_back(&self, bytes: usize) {
        for held in self.both() {
            held.bytes.fetch_sub(bytes, Ordering::Relaxed);
        }
    }

    /// Counts a slot.
    pub(super) fn slot_taken(&self) {
        for held in self.both() {
            held.slots.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts a slot no more.
    pub(super) fn slot_freed(&self) {
        for held in self.both() {
            held.slots.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
