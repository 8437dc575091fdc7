//! Whether the engine says of a world what happens in it.
//!
//! The engine speaks of the worst that may happen, and one play shows one thing that
//! does. So nothing may happen that the engine has not foreseen, in any play; and what it
//! foresees must happen in one of them, in which the scheduler, wherever it has a choice,
//! is asked to keep pods apart, and the first pods begin on another node each time.

use std::fmt;

use super::play::{Step, play};
use super::world::World;
use crate::outcome::Outcome;
use crate::stage;

/// What comes of comparing.
#[derive(Clone, Debug)]
pub(crate) struct Comparison {
    /// What worlds do of which this comes, for the tally.
    pub(crate) words: String,
    /// The steps of a play in which engine and control plane contradict each other.
    contradiction: Vec<Step>,
}

impl Comparison {
    fn new(words: &str, contradiction: Vec<Step>) -> Self {
        let words = words.to_owned();
        Self {
            words,
            contradiction,
        }
    }

    /// Whether engine and control plane contradict each other.
    pub(crate) const fn differs(&self) -> bool {
        !self.contradiction.is_empty()
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Its steps {}:", self.words)?;
        for it in &self.contradiction {
            writeln!(
                f,
                "- {}: {} foreseen {:?}, {} happened {:?}",
                it.what, it.foreseen, it.said, it.happened, it.waiting
            )?;
        }
        Ok(())
    }
}

/// Plays a world as often as it takes to compare it.
///
/// # Errors
///
/// A sentence when it cannot be played.
pub(crate) fn compare(shared: &stage::World, world: &World) -> Result<Comparison, String> {
    let mut last = Vec::new();
    for first in 0..world.nodes.len() {
        let steps = play(shared, world, first)?;
        let happened = worst(&steps, |step| step.happened);
        // A workload is as good as all that is said of it until something happens.
        let foreseen = worst(&steps, |step| step.foreseen);
        if happened > foreseen && !same_gravity(happened, foreseen) {
            return control(shared, world, happened, steps);
        }
        if happened == foreseen || same_gravity(happened, foreseen) {
            let words = format!("agree on {happened}");
            return Ok(Comparison::new(&words, Vec::new()));
        }
        last = steps;
    }
    let never = "never show what the engine foresees";
    Ok(Comparison::new(never, last))
}

/// Plays the same world with a volume that forbids nothing: where its pods have no place even so,
/// it says nothing about the volume, and otherwise the engine was silent, or foresaw less.
fn control(
    shared: &stage::World,
    world: &World,
    happened: Outcome,
    missed: Vec<Step>,
) -> Result<Comparison, String> {
    let free = world.without_contention();
    for first in 0..world.nodes.len() {
        let steps = play(shared, &free, first)?;
        if worst(&steps, |step| step.happened) >= happened {
            let no_place = "have no place for their pods, whatever the volume";
            return Ok(Comparison::new(no_place, Vec::new()));
        }
    }
    Ok(Comparison::new("show what the engine has missed", missed))
}

fn worst(steps: &[Step], of: impl Fn(&Step) -> Outcome) -> Outcome {
    steps.iter().map(of).max().unwrap_or(Outcome::None)
}

/// Stuck and deadlocked pods wait for ever; which of the words fits depends on what was
/// there when it began.
fn same_gravity(one: Outcome, other: Outcome) -> bool {
    one.min(other) >= Outcome::Stuck
}
