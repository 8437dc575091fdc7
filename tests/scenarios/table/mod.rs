//! The table of ground truth, row by row.

mod binding;
mod co_location;
mod constraints;
mod ends;
mod moves;
mod node_loss;
mod rollouts;
mod sharing;
mod single_pod;

use serde_json::Value;

use crate::manifests::Workload;
use crate::outcome::Outcome::{Deadlock, Delay, None as Nothing, Stuck};
use crate::scenario::{Action, Scenario};

/// Every scenario. Those that take longest come first, so that the others run beside
/// them.
pub(crate) fn all() -> Vec<Scenario> {
    let groups = [
        node_loss::scenarios(),
        rollouts::scenarios(),
        sharing::scenarios(),
        single_pod::scenarios(),
        co_location::scenarios(),
        moves::scenarios(),
        binding::scenarios(),
        constraints::scenarios(),
        ends::scenarios(),
    ];
    groups.into_iter().flatten().collect()
}

const RWO: &str = "ReadWriteOnce";
const RWX: &str = "ReadWriteMany";
const ROX: &str = "ReadOnlyMany";
const RWOP: &str = "ReadWriteOncePod";

/// Two pods of this size do not fit on one node.
const MOST_OF_A_NODE: &str = "5";

/// A rollout of Deployment `web`.
const NEW_IMAGE: [&str; 4] = ["set", "image", "deployment/web", "app=example.com/app:2"];

fn web() -> Workload {
    Workload::deployment("web")
}
