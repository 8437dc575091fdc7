//! Whether a node is alive.

use serde::Serialize;

use super::index::Index;
use crate::model::lease::DURATION_SECONDS;
use crate::model::node::{OUT_OF_SERVICE, Taint};

/// Whether a node is alive, as far as the cluster knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Health {
    /// It is Ready.
    Alive,
    /// It is not Ready, but its kubelet renews its Lease.
    NotReady,
    /// Nobody has heard of it for a while. Whether the machine is off, nobody here knows.
    Lost,
    /// There is no such Node object any more.
    Gone,
    /// The cluster does not let it be seen.
    Unknown,
}

impl Health {
    /// Whether its volumes wait for a node that does not answer.
    #[must_use]
    pub const fn is_lost(self) -> bool {
        matches!(self, Self::Lost | Self::Gone)
    }
}

/// A node and what is known of its health.
#[derive(Clone, Debug)]
pub(super) struct Examined {
    pub(super) name: String,
    pub(super) health: Health,
    pub(super) ready: Option<String>,
    /// How many seconds ago its Lease was renewed.
    pub(super) lease: Option<i64>,
    pub(super) taints: Vec<String>,
    pub(super) cordoned: bool,
    pub(super) out_of_service: bool,
}

impl Examined {
    pub(super) fn of(index: &Index<'_>, name: &str) -> Self {
        let observed = index.facts.observed;
        let lease = index.leases.get(name).map(|renewed| {
            let age = index.clock.of_nodes.as_second() - renewed.as_second();
            age.max(0)
        });
        let Some(node) = index.nodes.get(name) else {
            let health = if observed.has_read("nodes") {
                Health::Gone
            } else {
                Health::Unknown
            };
            return Self {
                name: name.to_owned(),
                health,
                ready: None,
                lease,
                taints: Vec::new(),
                cordoned: false,
                out_of_service: false,
            };
        };
        let renews = lease.is_some_and(|age| age <= DURATION_SECONDS);
        let health = match node.ready.as_str() {
            "True" => Health::Alive,
            _ if renews => Health::NotReady,
            // Of a Lease that cannot be read nothing is concluded.
            "False" if !observed.has_read("leases") => Health::NotReady,
            _ => Health::Lost,
        };
        Self {
            name: name.to_owned(),
            health,
            ready: Some(node.ready.to_string()),
            lease,
            taints: node.taints.iter().map(shown).collect(),
            cordoned: node.cordoned,
            out_of_service: node.taints.iter().any(|taint| taint.key == OUT_OF_SERVICE),
        }
    }
}

/// `key=value:effect`, as kubectl takes it.
fn shown(taint: &Taint) -> String {
    if taint.value.is_empty() {
        format!("{}:{}", taint.key, taint.effect)
    } else {
        format!("{}={}:{}", taint.key, taint.value, taint.effect)
    }
}
