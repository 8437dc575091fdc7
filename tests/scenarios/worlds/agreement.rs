//! Whether the engine says of a world what happens in it.
//!
//! The engine speaks of the worst that may happen, and one play shows one thing that
//! does. So nothing may happen that the engine has not foreseen, in any play; and what it
//! foresees must happen in one of them, in which the scheduler, wherever it has a choice,
//! is asked to keep pods apart, and the first pods begin on another node each time.

use std::fmt;

use super::objects::Steering;
use super::play::{Step, play};
use super::world::World;
use crate::outcome::Outcome;
use crate::stage;

/// What comes of comparing.
#[derive(Clone, Debug)]
pub(crate) enum Comparison {
    /// What was foreseen happened, and nothing worse.
    Agrees(Outcome),
    /// Pods have no place in it even where the volume forbids nothing, so that it says
    /// nothing about the volume.
    NoPlace,
    /// The engine was silent, or foresaw less.
    Missed(Vec<Step>),
    /// It never happened.
    FalseAlarm(Vec<Step>),
}

impl Comparison {
    /// Whether engine and control plane contradict each other.
    pub(crate) const fn differs(&self) -> bool {
        matches!(self, Self::Missed(_) | Self::FalseAlarm(_))
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, steps) = match self {
            Self::Agrees(outcome) => return write!(f, "agrees: {outcome}"),
            Self::NoPlace => return f.write_str("no place for the pods, whatever the volume"),
            Self::Missed(steps) => ("The engine has missed it", steps),
            Self::FalseAlarm(steps) => ("It never happened", steps),
        };
        writeln!(f, "{what}:")?;
        for step in steps {
            let Step {
                what,
                said,
                foreseen,
                happened,
                waiting,
            } = step;
            writeln!(
                f,
                "- {what}: {foreseen} foreseen {said:?}, {happened} happened {waiting:?}"
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
        let steps = play(shared, world, Steering { first })?;
        let happened = worst(&steps, |step| step.happened);
        // A workload is as good as all that is said of it until something happens.
        let foreseen = worst(&steps, |step| step.foreseen);
        if happened > foreseen && !same_gravity(happened, foreseen) {
            return control(shared, world, happened, Comparison::Missed(steps));
        }
        if happened == foreseen || same_gravity(happened, foreseen) {
            return Ok(Comparison::Agrees(happened));
        }
        last = steps;
    }
    Ok(Comparison::FalseAlarm(last))
}

/// The same world with a volume that forbids nothing.
fn control(
    shared: &stage::World,
    world: &World,
    happened: Outcome,
    otherwise: Comparison,
) -> Result<Comparison, String> {
    let free = world.without_contention();
    for first in 0..world.nodes.len() {
        let steps = play(shared, &free, Steering { first })?;
        if worst(&steps, |step| step.happened) >= happened {
            return Ok(Comparison::NoPlace);
        }
    }
    Ok(otherwise)
}

fn worst(steps: &[Step], of: impl Fn(&Step) -> Outcome) -> Outcome {
    steps.iter().map(of).max().unwrap_or(Outcome::None)
}

/// Stuck and deadlocked pods wait for ever; which of the words fits depends on what was
/// there when it began.
fn same_gravity(one: Outcome, other: Outcome) -> bool {
    one.min(other) >= Outcome::Stuck
}
