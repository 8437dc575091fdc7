//! A small world as data, and how one is drawn by lot.

use std::fmt;

use proptest::prelude::*;
use proptest::sample::select;
use serde::{Deserialize, Serialize};

/// Nodes, one volume, one or two workloads, and what the first becomes later.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct World {
    pub(crate) nodes: Vec<Node>,
    pub(crate) volume: Disk,
    pub(crate) workloads: Vec<Pods>,
    /// What an update makes of the first workload, at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) update: Option<Pods>,
}

/// A node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Node {
    pub(crate) zone: u8,
    /// Whether it has a taint that not everybody tolerates.
    #[serde(default)]
    pub(crate) tainted: bool,
}

/// The volume behind the claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Disk {
    pub(crate) mode: Mode,
    /// Whether its driver attaches.
    pub(crate) attaches: bool,
    pub(crate) reach: Place,
    /// How the volume says so.
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

/// Some of the nodes. A number beyond the nodes or zones there are stands for the last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Place {
    #[default]
    Everywhere,
    Zone(u8),
    Node(u8),
    /// All but this one.
    NotNode(u8),
}

/// What makes the pods.
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
    /// Whether it tolerates the nodes' taint.
    #[serde(default)]
    pub(crate) tolerates: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) near: Option<Near>,
    /// Required anti-affinity to its own pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) apart: Option<Topology>,
    /// A hard spread of its own pods with a skew of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) spread: Option<Topology>,
    /// Whether it has a port of the node.
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
    /// The first workload, seen from the second, and the other way round.
    TheOther,
    Both,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Topology {
    Hostname,
    Zone,
}

impl World {
    /// The zones there are.
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

    /// Whether there is a node for the pods' selector, tolerations and volume. Where there
    /// is none, nothing is about the volume's second node.
    fn places(&self, pods: &Pods) -> bool {
        let reaches = |node| pods.without_volume || self.has(self.volume.reach, node);
        (0..self.nodes.len()).any(|node| {
            self.has(pods.place, node)
                && (pods.tolerates || !self.nodes[node].tainted)
                && reaches(node)
        })
    }

    /// Whether the world is one to play.
    fn makes_sense(&self) -> bool {
        let all = || self.workloads.iter().chain(&self.update);
        let numbered = !self.volume.by_labels || matches!(self.volume.reach, Place::Zone(_));
        // The pods of a DaemonSet on a volume of few nodes: docs/evidence/ground-truth.md.
        let everywhere = self.volume.reach == Place::Everywhere;
        numbered
            && self.workloads.iter().any(|it| !it.without_volume)
            && all().all(|it| self.places(it) && (everywhere || it.kind != Kind::DaemonSet))
    }

    /// Any world.
    pub(crate) fn any() -> impl Strategy<Value = Self> {
        let node = (0..3u8, prop::bool::weighted(0.15));
        let node = node.prop_map(|(zone, tainted)| Node { zone, tainted });
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
            .prop_filter("a world to play", Self::makes_sense)
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
    // A Job that comes first is over before anything else happens.
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
        prop_oneof![1 => Just(0u8), 14 => Just(1), 4 => Just(2), 1 => Just(3)],
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

/// What an update changes.
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
        1 => (0..3u8).prop_map(Change::Replicas),
    ]
}

impl Change {
    /// The workload after it, where that is an update and not something else's creation.
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

/// One line of JSON, to be kept among the cases.
impl fmt::Display for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let json = serde_json::to_string(self).map_err(|_| fmt::Error)?;
        f.write_str(&json)
    }
}
