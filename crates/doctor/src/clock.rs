//! The time by which Leases are judged. Kubelets stamp them with the clocks of their nodes.

use std::collections::HashSet;

use jiff::Timestamp;

use engine::model::lease::DURATION_SECONDS;
use engine::model::observed::Observed;

/// The time by which Leases are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// The time by the clocks of the nodes.
    pub of_nodes: Timestamp,
    /// The number of seconds by which those clocks are ahead of the clock of the API server, if
    /// that matters; negative if they are behind.
    pub skew: Option<i64>,
}

impl Clock {
    /// Compares `now` with the Leases of nodes that are Ready. At least one of those was renewed a
    /// moment ago, whatever its node's clock says.
    pub fn of(observed: &Observed, now: Timestamp) -> Self {
        let ready: HashSet<&str> = observed
            .nodes
            .iter()
            .filter(|node| node.status.ready == Some(true))
            .map(|node| node.metadata.name.as_str())
            .collect();
        let renewed = observed
            .leases
            .iter()
            .filter(|lease| ready.contains(lease.metadata.name.as_str()))
            .filter_map(|lease| lease.spec.renew_time)
            .max();
        let skew = renewed
            .map(|renewed| renewed.as_second() - now.as_second())
            .filter(|ahead| ahead.abs() > DURATION_SECONDS);
        Self { of_nodes: renewed.filter(|_| skew.is_some()).unwrap_or(now), skew }
    }
}
