//! Plays a scenario as it stands, with nobody guarding the cluster.

use std::time::{Duration, Instant};

use crate::engine::Opinion;
use crate::outcome::{Outcome, Rest};
use crate::scenario::{Nodes, Scenario};
use crate::stage::{Stage, World};

/// Longer than a way out takes until everything runs: the attach-detach controller waits six
/// minutes for a dead node to unmount (`maxWaitForUnmountDuration`), and a kubelet looks for a
/// volume that it has waited for every two minutes.
const WAY_OUT: Duration = Duration::from_secs(600);

/// What came of a scenario.
#[derive(Clone, Debug)]
pub(crate) struct Played {
    /// The worst outcome of its actions.
    pub(crate) outcome: Outcome,
    /// All Multi-Attach events, the recovery's included.
    pub(crate) multi_attach: Vec<String>,
    /// What waited for good.
    pub(crate) waiting: Vec<String>,
    /// What the engine says of the objects as they were before the way out.
    pub(crate) opinion: Opinion,
    /// The worst that the engine has said after any action.
    pub(crate) foreseen: Outcome,
    /// How long the way out took until everything ran.
    pub(crate) way_out_took: Option<Duration>,
}

/// Plays the scenario.
///
/// # Errors
///
/// A sentence when an action cannot be done, or the way out does not lead out.
pub(crate) fn play(world: &World, scenario: &Scenario, nodes: Nodes) -> Result<Played, String> {
    let mut stage = Stage::build(world, scenario, None, nodes)?;
    let mut worst: Option<Rest> = None;
    let mut opinions = Vec::new();
    for action in &scenario.steps {
        let command = stage.act(action)?;
        if let Some(output) = &command {
            output.done()?;
        }
        if !action.rests() {
            continue;
        }
        // Before too, as a Job may be over when everything has come to rest.
        let before = command.as_ref().map(|_| stage.opinion()).transpose()?;
        let rest = stage.rest()?;
        if let Some(before) = before {
            let after = stage.opinion()?;
            let forewarned = before.outcome > after.outcome;
            opinions.push(if forewarned { before } else { after });
        }
        if worst
            .as_ref()
            .is_none_or(|worst| rest.outcome >= worst.outcome)
        {
            worst = Some(rest);
        }
    }
    let worst = worst.ok_or("The scenario never came to rest.")?;
    let foreseen = opinions.iter().map(|opinion| opinion.outcome).max();
    let opinion = opinions.pop();

    let mut multi_attach = worst.multi_attach;
    let started = Instant::now();
    for action in &scenario.then {
        if let Some(output) = stage.act(action)? {
            output.done()?;
        }
        if action.rests() {
            let nowhere = |reason| format!("The way out leads nowhere: {reason}");
            multi_attach = stage.heal(WAY_OUT).map_err(nowhere)?.multi_attach;
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
