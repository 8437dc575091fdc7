//! Whether a node is alive.

use serde::Serialize;
use serde_json::{Value, json};

use super::index::Index;
use super::span::span;
use engine::analysis::{Heartbeat, Life};
use engine::model::node::{OUT_OF_SERVICE, Taint};
use engine::snapshot::Lookup;

/// Whether a node is alive, as far as the cluster knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Health {
    /// It is Ready.
    Alive,
    /// It is not Ready, but its kubelet renews its Lease.
    NotReady,
    /// Nothing has been heard from it for a while. Whether the machine is off is not known.
    Lost,
    /// The Node object no longer exists.
    Gone,
    /// Its state could not be read.
    Unknown,
}

/// The taint of the cloud's controller, which sees whether the machine runs
/// (`pkg/controllers/nodelifecycle` of `k8s.io/cloud-provider`).
const SHUT_DOWN: &str = "node.cloudprovider.kubernetes.io/shutdown";

/// The taints of a node that does not respond (`pkg/controller/nodelifecycle`), and of a node that
/// its cloud has shut down. They outweigh a Lease that looks fresh, because clocks differ.
const LOST: [&str; 2] = ["node.kubernetes.io/unreachable", SHUT_DOWN];

/// A node and its health.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Examined {
    /// Its name.
    pub name: String,
    /// Whether it is alive.
    pub health: Health,
    /// The status of its condition Ready.
    pub ready: Option<&'static str>,
    /// The number of seconds since its Lease was renewed.
    pub lease_seconds: Option<i64>,
    /// Whether it is closed to new pods.
    pub cordoned: bool,
    /// All its taints, as `key=value:effect`.
    pub taints: Vec<String>,
    #[serde(skip)]
    pub(super) out_of_service: bool,
}

impl Examined {
    pub(super) fn of(index: &Index<'_>, name: &str) -> Self {
        let observed = index.facts.observed;
        let now = index.clock.of_nodes;
        let lease = Lookup::of(index.leases.get(name).copied(), observed.has_read("leases"));
        let node = index.nodes.get(name).copied();
        let ready = Lookup::of(node.map(|node| node.status.ready), observed.has_read("nodes"));
        let taints = node.map(|node| node.spec.taints.as_slice()).unwrap_or_default();
        let is_given_up = taints.iter().any(|taint| LOST.contains(&taint.key.as_str()));
        let health = match (ready, Heartbeat::seen(ready, lease, now).life()) {
            (Lookup::Absent, _) => Health::Gone,
            (Lookup::NotSynced, _) => Health::Unknown,
            (Lookup::Found(Some(true)), _) => Health::Alive,
            _ if is_given_up => Health::Lost,
            // A Lease without a usable time proves nothing.
            (_, Life::Alive) | (Lookup::Found(Some(false)), Life::Unknown) => Health::NotReady,
            (_, Life::Silent | Life::Unknown) => Health::Lost,
        };
        Self {
            name: name.to_owned(),
            health,
            ready: node.map(|node| match node.status.ready {
                Some(true) => "True",
                Some(false) => "False",
                None => "Unknown",
            }),
            lease_seconds: lease
                .found()
                .and_then(|lease| lease.age(now))
                .map(|age| age.as_secs().max(0)),
            taints: taints.iter().map(format_taint).collect(),
            cordoned: node.is_some_and(|node| node.spec.unschedulable),
            out_of_service: taints.iter().any(|taint| taint.key == OUT_OF_SERVICE),
        }
    }

    /// The values of sentences about this node.
    pub(super) fn values(&self) -> Value {
        json!({
            "there": self.name,
            "health": self.health,
            "out-of-service": self.out_of_service,
            "shut-down": self.taints.iter().any(|taint| taint.starts_with(SHUT_DOWN)),
            "ready": self.ready,
            "lease-age": self.lease_seconds.map(span),
        })
    }
}

/// `key=value:effect`, as kubectl takes it.
fn format_taint(taint: &Taint) -> String {
    if taint.value.is_empty() {
        format!("{}:{}", taint.key, taint.effect)
    } else {
        format!("{}={}:{}", taint.key, taint.value, taint.effect)
    }
}
