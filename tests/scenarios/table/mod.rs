//! The table of ground truth, row by row.

mod co_location;
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
    ];
    groups.into_iter().flatten().collect()
}

const RWO: &str = "ReadWriteOnce";
const RWX: &str = "ReadWriteMany";
const ROX: &str = "ReadOnlyMany";
const RWOP: &str = "ReadWriteOncePod";

/// A rollout of Deployment `web`.
const NEW_IMAGE: [&str; 4] = ["set", "image", "deployment/web", "app=example.com/app:2"];

fn web() -> Workload {
    Workload::deployment("web")
}
