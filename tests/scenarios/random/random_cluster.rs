//! A small cluster as data, and its random generation.

use std::fmt;

use proptest::prelude::*;
use proptest::sample::select;
use serde::{Deserialize, Serialize};

/// Nodes, one volume, one or two workloads, and a later version of the first one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RandomCluster {
    pub(crate) nodes: Vec<Node>,
    pub(crate) volume: Disk,
    pub(crate) workloads: Vec<Pods>,
    /// The first workload after an update at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) update: Option<Pods>,
}

/// A node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Node {
    pub(crate) zone: u8,
    /// Whether the node has a taint, which only some pods tolerate.
    #[serde(default)]
    pub(crate) tainted: bool,
}

/// The volume behind the claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Disk {
    pub(crate) mode: Mode,
    /// Whether the driver attaches.
    pub(crate) attaches: bool,
    pub(crate) reach: Place,
    /// Whether the zone is written as a label of the volume, instead of node affinity.
    #[serde(default)]
    pub(crate) by_labels: bool,
}

/// The access mode of volume and claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Mode {
    /// ReadWriteOnce.
    Exclusive,
    /// ReadWriteMany.
    Shared,
    /// ReadWriteOncePod.
    SinglePod,
}

/// A subset of the nodes. A number that is too large stands for the last node or zone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Place {
    #[default]
    Everywhere,
    Zone(u8),
    Node(u8),
    /// All nodes except this one.
    NotNode(u8),
}

/// The kind of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Kind {
    Recreate,
    Rolling { surge: u8, unavailable: u8 },
    StatefulSet,
    ReplicationController,
    DaemonSet,
    Job,
}

/// A workload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pods {
    pub(crate) kind: Kind,
    pub(crate) replicas: u8,
    #[serde(default)]
    pub(crate) place: Place,
    /// Whether the pods tolerate the nodes' taint.
    #[serde(default)]
    pub(crate) tolerates: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) near: Option<Near>,
    /// Required anti-affinity to the workload's own pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) apart: Option<Topology>,
    /// A spread of the workload's own pods with `maxSkew: 1` and `whenUnsatisfiable:
    /// DoNotSchedule`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) spread: Option<Topology>,
    /// Whether the pods use a host port.
    #[serde(default)]
    pub(crate) port: bool,
    #[serde(default)]
    pub(crate) without_volume: bool,
}

/// Pod affinity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Near {
    pub(crate) whom: Whom,
    pub(crate) over: Topology,
    #[serde(default)]
    pub(crate) only_preferred: bool,
    /// `matchLabelKeys: [pod-template-hash]`.
    #[serde(default)]
    pub(crate) within_revision: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Whom {
    Itself,
    /// The other workload: for the first one, the second, and vice versa.
    TheOther,
    Both,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Topology {
    Hostname,
    Zone,
}

impl RandomCluster {
    /// The number of zones.
    pub(crate) fn zones(&self) -> u8 {
        let last = self.nodes.iter().map(|node| node.zone).max();
        last.map_or(0, |zone| zone + 1)
    }

    fn has(&self, place: Place, node: usize) -> bool {
        let last = self.nodes.len() - 1;
        match place {
            Place::Everywhere => true,
            Place::Zone(zone) => self.nodes[node].zone == zone.min(self.zones() - 1),
            Place::Node(only) => usize::from(only).min(last) == node,
            Place::NotNode(all_but) => usize::from(all_but).min(last) != node,
        }
    }

    /// Whether the pods' selector, tolerations and volume leave a node. If not, the fault is not
    /// about a second node.
    fn places(&self, pods: &Pods) -> bool {
        let reaches = |node| pods.without_volume || self.has(self.volume.reach, node);
        (0..self.nodes.len()).any(|node| {
            self.has(pods.place, node)
                && (pods.tolerates || !self.nodes[node].tainted)
                && reaches(node)
        })
    }

    /// Whether the cluster is worth playing.
    fn makes_sense(&self) -> bool {
        let all = || self.workloads.iter().chain(&self.update);
        let numbered = !self.volume.by_labels || matches!(self.volume.reach, Place::Zone(_));
        // The case of a DaemonSet on a volume of few nodes is described in
        // docs/evidence/ground-truth.md.
        let everywhere = self.volume.reach == Place::Everywhere;
        numbered
            && self.workloads.iter().any(|workload| !workload.without_volume)
            && all().all(|workload| {
                self.places(workload) && (everywhere || workload.kind != Kind::DaemonSet)
            })
    }

    /// A strategy for any cluster.
    pub(crate) fn any() -> impl Strategy<Value = Self> {
        let node =
            (0..3u8, prop::bool::weighted(0.15)).prop_map(|(zone, tainted)| Node { zone, tainted });
        let second = prop::option::weighted(0.25, pods(true));
        (
            prop::collection::vec(node, 1..=4),
            disk(),
            pods(false),
            second,
            prop::option::weighted(0.7, changed()),
        )
            .prop_map(|(nodes, volume, first, second, change)| {
                let update = change.and_then(|change| change.of(&first));
                Self {
                    nodes,
                    volume,
                    workloads: std::iter::once(first).chain(second).collect(),
                    update,
                }
            })
            .prop_filter("a cluster to play", Self::makes_sense)
    }
}

fn place() -> impl Strategy<Value = Place> {
    prop_oneof![
        4 => Just(Place::Everywhere),
        2 => (0..3u8).prop_map(Place::Zone),
        3 => (0..4u8).prop_map(Place::Node),
        1 => (0..4u8).prop_map(Place::NotNode),
    ]
}

fn disk() -> impl Strategy<Value = Disk> {
    let mode = prop_oneof![
        6 => Just(Mode::Exclusive),
        1 => Just(Mode::Shared),
        2 => Just(Mode::SinglePod),
    ];
    let reach = prop_oneof![3 => Just(Place::Everywhere), 2 => place()];
    (mode, prop::bool::weighted(0.85), reach, any::<bool>()).prop_map(
        |(mode, attaches, reach, by_labels)| Disk {
            mode,
            attaches,
            reach,
            by_labels: by_labels && matches!(reach, Place::Zone(_)),
        },
    )
}

fn topology() -> impl Strategy<Value = Topology> {
    select(vec![Topology::Hostname, Topology::Hostname, Topology::Zone])
}

fn near(second: bool) -> impl Strategy<Value = Near> {
    let whom = if second {
        select(vec![Whom::Itself, Whom::TheOther, Whom::Both])
    } else {
        select(vec![Whom::Itself, Whom::Itself, Whom::Both])
    };
    let rarely = || prop::bool::weighted(0.15);
    (whom, topology(), rarely(), rarely()).prop_map(
        |(whom, over, only_preferred, within_revision)| Near {
            whom,
            over,
            only_preferred,
            within_revision,
        },
    )
}

fn kind(second: bool) -> BoxedStrategy<Kind> {
    let deployment = prop_oneof![
        2 => Just(Kind::Recreate),
        5 => Just(Kind::Rolling { surge: 1, unavailable: 0 }),
        2 => Just(Kind::Rolling { surge: 0, unavailable: 1 }),
        1 => Just(Kind::Rolling { surge: 1, unavailable: 1 }),
    ];
    // A Job cannot be the first workload, because it would end before anything else happens.
    let job = u32::from(second);
    prop_oneof![
        8 => deployment,
        2 => Just(Kind::StatefulSet),
        1 => Just(Kind::ReplicationController),
        1 => Just(Kind::DaemonSet),
        job => Just(Kind::Job),
    ]
    .boxed()
}

fn pods(second: bool) -> impl Strategy<Value = Pods> {
    (
        kind(second),
        prop_oneof![14 => Just(1u8), 4 => Just(2), 1 => Just(3)],
        place(),
        prop::bool::weighted(0.4),
        prop::option::weighted(0.5, near(second)),
        prop::option::weighted(0.2, topology()),
        prop::option::weighted(0.2, topology()),
        prop::bool::weighted(0.2),
        prop::bool::weighted(if second { 0.2 } else { 0.0 }),
    )
        .prop_map(
            |(kind, replicas, place, tolerates, near, apart, spread, port, without_volume)| Pods {
                kind,
                replicas: replicas.max(u8::from(matches!(kind, Kind::Job))),
                place,
                tolerates,
                near,
                apart,
                spread,
                port,
                without_volume,
            },
        )
}

/// The change that an update makes.
#[derive(Clone, Copy, Debug)]
enum Change {
    Place(Place),
    Near(Option<Near>),
    Toleration,
    Kind(Kind),
    Replicas(u8),
}

fn changed() -> impl Strategy<Value = Change> {
    prop_oneof![
        4 => place().prop_map(Change::Place),
        2 => prop::option::of(near(false)).prop_map(Change::Near),
        1 => Just(Change::Toleration),
        1 => kind(false).prop_map(Change::Kind),
        1 => (1..3u8).prop_map(Change::Replicas),
    ]
}

impl Change {
    /// The workload after the change, if that is an update and not the creation of another object.
    fn of(self, pods: &Pods) -> Option<Pods> {
        let mut after = pods.clone();
        match self {
            Self::Place(place) => after.place = place,
            Self::Near(near) => after.near = near,
            Self::Toleration => after.tolerates = !pods.tolerates,
            Self::Kind(kind) => after.kind = kind,
            Self::Replicas(replicas) => after.replicas = replicas,
        }
        let deployment = |kind| matches!(kind, Kind::Recreate | Kind::Rolling { .. });
        let same_kind = pods.kind == after.kind || deployment(pods.kind) && deployment(after.kind);
        (same_kind && after != *pods).then_some(after)
    }
}

/// Writes one line of JSON, which can be added to [`super::KEPT`].
impl fmt::Display for RandomCluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let json = serde_json::to_string(self).map_err(|_| fmt::Error)?;
        f.write_str(&json)
    }
}
