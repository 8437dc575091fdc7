//! The time by which Leases are judged. Kubelets stamp them with the clocks of their nodes.

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
        let is_ready = |name: &str| {
            let mut nodes = observed.nodes.iter();
            nodes.any(|node| node.metadata.name == name && node.status.ready == Some(true))
        };
        // The newest Lease comes first, so that few nodes are looked up.
        let mut leases: Vec<_> = observed.leases.iter().collect();
        leases.sort_unstable_by_key(|lease| std::cmp::Reverse(lease.spec.renew_time));
        let renewed = leases.into_iter().find_map(|lease| {
            let renewed = lease.spec.renew_time?;
            is_ready(&lease.metadata.name).then_some(renewed)
        });
        let skew = renewed.map(|renewed| renewed.as_second() - now.as_second());
        let skew = skew.filter(|ahead| ahead.abs() > DURATION_SECONDS);
        Self {
            of_nodes: renewed.filter(|_| skew.is_some()).unwrap_or(now),
            skew,
        }
    }
}
