//! Compares the engine's findings about a cluster with the control plane.
//!
//! The engine predicts the worst that may happen, and one play shows one thing that does happen. So
//! nothing may happen in any play that the engine has not predicted. And its prediction must come
//! true in at least one play: the scheduler is asked to keep pods apart wherever it has a choice,
//! and the first pods start on another node each time.

use std::fmt;

use super::play::{Step, play};
use super::random_cluster::RandomCluster;
use crate::outcome::Outcome;
use crate::scenario_run::Testbed;

/// The result of a comparison.
#[derive(Clone, Debug)]
pub(crate) struct Comparison {
    /// The category of the result, for the tally, as the end of a sentence about clusters.
    pub(crate) words: String,
    /// The steps of a play in which engine and control plane contradict each other.
    contradiction: Vec<Step>,
}

impl Comparison {
    fn new(words: &str, contradiction: Vec<Step>) -> Self {
        let words = words.to_owned();
        Self { words, contradiction }
    }

    /// Whether engine and control plane contradict each other.
    pub(crate) const fn differs(&self) -> bool {
        !self.contradiction.is_empty()
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Its steps {}:", self.words)?;
        for step in &self.contradiction {
            writeln!(
                f,
                "- {}: {} foreseen {:?}, {} happened {:?}",
                step.what, step.foreseen, step.said, step.happened, step.waiting
            )?;
        }
        Ok(())
    }
}

/// Plays a cluster as often as the comparison needs.
///
/// # Errors
///
/// A sentence if it cannot be played.
pub(crate) fn compare(shared: &Testbed, cluster: &RandomCluster) -> Result<Comparison, String> {
    let mut last = Vec::new();
    for first in 0..cluster.nodes.len() {
        let steps = play(shared, cluster, first)?;
        let happened = worst(&steps, |step| step.happened);
        // A prediction may come true at any later step, so the worst of all steps counts.
        let foreseen = worst(&steps, |step| step.foreseen);
        if happened > foreseen && !same_gravity(happened, foreseen) {
            return control(shared, cluster, happened, steps);
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

/// Plays the same cluster with a volume that forbids nothing. If the same happens, the
/// cluster shows nothing about the volume. Otherwise the engine has missed it.
fn control(
    shared: &Testbed,
    cluster: &RandomCluster,
    happened: Outcome,
    missed: Vec<Step>,
) -> Result<Comparison, String> {
    let free = cluster.without_contention();
    for first in 0..cluster.nodes.len() {
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

/// Whether both outcomes are stuck or deadlocked. Both mean that pods wait forever; the distinction
/// depends on the objects at the beginning.
fn same_gravity(one: Outcome, other: Outcome) -> bool {
    one.min(other) >= Outcome::Stuck
}
