//! Plays a cluster on the real control plane, and records for each step the engine's prediction and
//! the result.

use serde_json::Value;

use super::random_cluster::{Kind, Pods, RandomCluster};
use crate::outcome::Outcome;
use crate::scenario::{Action, Nodes};
use crate::scenario_run::{ScenarioRun, Testbed};

/// A user's action, the engine's prediction and the result.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    /// The action, for example `w0 is rolled out`.
    pub(crate) what: String,
    /// The engine's findings about the object, as the webhook would judge it.
    pub(crate) said: Vec<String>,
    /// The gravest outcome of the findings.
    pub(crate) foreseen: Outcome,
    /// The outcome after this step, including all steps before it.
    pub(crate) happened: Outcome,
    /// The objects that waited at the end.
    pub(crate) waiting: Vec<String>,
}

/// Plays the cluster to the end, or until something is stuck: each workload is created and rolled
/// out, then the first one is updated and rolled out again.
///
/// The first pods start on the node with the number `first`.
pub(crate) fn play(
    shared: &Testbed,
    cluster: &RandomCluster,
    first: usize,
) -> Result<Vec<Step>, String> {
    let mut run = ScenarioRun::build(shared, &cluster.scenario(), None, Nodes::Simulated)?;
    let mut steps = Vec::new();
    for (what, object) in objects(cluster, first) {
        let opinion = run.forecast(&object)?;
        run.act(&Action::Write(object))?;
        let rest = run.rest()?;
        let stuck = rest.outcome >= Outcome::Stuck;
        steps.push(Step {
            what,
            said: opinion.messages,
            foreseen: opinion.outcome,
            happened: rest.outcome,
            waiting: rest.waiting,
        });
        if stuck {
            break;
        }
    }
    Ok(steps)
}

/// The objects in the order in which they are written, each with a short description.
fn objects(cluster: &RandomCluster, first: usize) -> Vec<(String, Value)> {
    let object = |number, pods: &Pods, revision| cluster.workload(number, pods, revision, first);
    let rolls_out = |pods: &Pods| !matches!(pods.kind, Kind::ReplicationController | Kind::Job);
    let mut all = Vec::new();
    for (number, pods) in cluster.workloads.iter().enumerate() {
        all.push((format!("w{number} is made"), object(number, pods, 1)));
    }
    for (number, pods) in cluster.workloads.iter().enumerate() {
        if rolls_out(pods) {
            all.push((format!("w{number} is rolled out"), object(number, pods, 2)));
        }
    }
    if let Some(update) = &cluster.update {
        all.push(("w0 is changed".to_owned(), object(0, update, 2)));
        if rolls_out(update) {
            all.push(("w0, changed, is rolled out".to_owned(), object(0, update, 3)));
        }
    }
    all
}
