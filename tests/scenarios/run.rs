//! Plays a scenario without a guard.

use std::time::{Duration, Instant};

use crate::engine::Opinion;
use crate::outcome::{Outcome, Rest};
use crate::scenario::{Nodes, Scenario};
use crate::scenario_run::{ScenarioRun, Testbed};

/// A limit that is longer than any way out takes until everything runs: the attach-detach
/// controller waits six minutes for a dead node to unmount (`maxWaitForUnmountDuration`), and a
/// kubelet checks for a missing volume every two minutes.
const WAY_OUT: Duration = Duration::from_secs(600);

/// The result of a scenario.
#[derive(Clone, Debug)]
pub(crate) struct Played {
    /// The worst outcome of its actions.
    pub(crate) outcome: Outcome,
    /// All Multi-Attach events, including those of the recovery.
    pub(crate) multi_attach: Vec<String>,
    /// The objects that waited forever.
    pub(crate) waiting: Vec<String>,
    /// The engine's findings about the objects before the way out.
    pub(crate) opinion: Opinion,
    /// The worst outcome that the engine predicted after any action.
    pub(crate) foreseen: Outcome,
    /// The time from the way out until everything ran.
    pub(crate) way_out_took: Option<Duration>,
}

/// Plays the scenario.
///
/// # Errors
///
/// A sentence if an action fails, or if the way out does not help.
pub(crate) fn play(testbed: &Testbed, scenario: &Scenario, nodes: Nodes) -> Result<Played, String> {
    let mut run = ScenarioRun::build(testbed, scenario, None, nodes)?;
    let mut worst: Option<Rest> = None;
    let mut opinions = Vec::new();
    for action in &scenario.steps {
        let command = run.act(action)?;
        if let Some(output) = &command {
            output.done()?;
        }
        if !action.rests() {
            continue;
        }
        // Asks the engine before the rest too, because a Job may have ended by then.
        let before = command.as_ref().map(|_| run.opinion()).transpose()?;
        let rest = run.rest()?;
        if let Some(before) = before {
            let after = run.opinion()?;
            let forewarned = before.outcome > after.outcome;
            opinions.push(if forewarned { before } else { after });
        }
        if worst.as_ref().is_none_or(|worst| rest.outcome >= worst.outcome) {
            worst = Some(rest);
        }
    }
    let worst = worst.ok_or("The scenario never came to rest.")?;
    let foreseen = opinions.iter().map(|opinion| opinion.outcome).max();
    let opinion = opinions.pop();

    let mut multi_attach = worst.multi_attach;
    let started = Instant::now();
    for action in &scenario.then {
        if let Some(output) = run.act(action)? {
            output.done()?;
        }
        if action.rests() {
            let nowhere = |reason| format!("The way out leads nowhere: {reason}");
            multi_attach = run.heal(WAY_OUT).map_err(nowhere)?.multi_attach;
        }
    }
    Ok(Played {
        outcome: worst.outcome,
        multi_attach,
        waiting: worst.waiting,
        opinion: opinion.ok_or("The user did nothing.")?,
        foreseen: foreseen.ok_or("The user did nothing.")?,
        way_out_took: (!scenario.then.is_empty()).then(|| started.elapsed()),
    })
}
