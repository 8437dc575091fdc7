//! The configurations that are explored in addition to the observed scenarios.

use std::collections::HashMap;

use crate::configuration::{
    Access, Affinity, Amount, Binding, Configuration, Kind, NODES, NodeSet, Spread, Strategy,
    Volume, Workload,
};

/// The nodes, and which of them the pods and the volume may use.
#[derive(Clone, Copy)]
struct Layout {
    zones: &'static [u8],
    selected: &'static [usize],
    tolerated: &'static [usize],
    volume: &'static [usize],
}

const ALL: &[usize] = &[0, 1, 2, 3];

const LAYOUTS: &[Layout] = &[
    layout(&[0]),
    layout(&[0, 0]),
    layout(&[0, 1]),
    layout(&[0, 0, 0]),
    layout(&[0, 0, 1]),
    layout(&[0, 1, 2]),
    layout(&[0, 0, 0, 0]),
    layout(&[0, 0, 1, 1]),
    layout(&[0, 1, 2, 3]),
    // A node selector that leaves one node, two in one zone, or two in two zones.
    layout(&[0, 0, 1]).selecting(&[0]),
    layout(&[0, 0, 1]).selecting(&[0, 1]),
    layout(&[0, 0, 1]).selecting(&[0, 2]),
    // Taints that leave one node, or two in one zone.
    layout(&[0, 0, 1]).tolerating(&[0]),
    layout(&[0, 0, 1]).tolerating(&[0, 1]),
    // A volume on one node, or in one of two zones.
    layout(&[0, 0, 1]).with_volume_on(&[0]),
    layout(&[0, 0, 1, 1]).with_volume_on(&[0, 1]),
    // Selector, taints and volume each leave several nodes, but together only one.
    layout(&[0, 0, 1, 1]).selecting(&[0, 1, 2]).tolerating(&[0, 1, 3]).with_volume_on(&[0, 2, 3]),
];

const fn layout(zones: &'static [u8]) -> Layout {
    Layout { zones, selected: ALL, tolerated: ALL, volume: ALL }
}

/// Every combination of access and attaching.
const VOLUMES: [(Access, bool); 6] = [
    (Access::Exclusive, true),
    (Access::Exclusive, false),
    (Access::Shared, true),
    (Access::Shared, false),
    (Access::SinglePod, true),
    (Access::SinglePod, false),
];

const OWN: Affinity = Affinity::required(0b01, false);
const OWN_REVISION: Affinity = Affinity::required(0b01, true);

/// The workload with every combination of anti-affinity and spreads with `maxSkew: 1`, and with
/// each spread with `maxSkew: 2` alone.
fn apart(workload: Workload) -> Vec<Workload> {
    let spread = |max_skew, own_revision| Some(Spread { max_skew, own_revision });
    let mut all = Vec::new();
    for anti_affinity in [false, true] {
        for hostname_spread in [None, spread(1, false), spread(1, true)] {
            for zone_spread in [None, spread(1, false)] {
                all.push(Workload { anti_affinity, hostname_spread, zone_spread, ..workload });
            }
        }
    }
    all.push(Workload { hostname_spread: spread(2, false), ..workload });
    all.push(Workload { zone_spread: spread(2, false), ..workload });
    all
}

/// Every configuration of the grids, of one workload and of two. Configurations that differ only in
/// the volume are neighbours.
pub(crate) fn asked() -> Vec<Configuration> {
    let ports: Vec<Workload> =
        few().into_iter().map(|workload| Workload { port: true, ..workload }).collect();
    [alone(&workloads()), pairs(), unbound(), alone(&ports)].concat()
}

/// Each workload alone, with each volume in each layout.
fn alone(workloads: &[Workload]) -> Vec<Configuration> {
    let mut all = Vec::new();
    for layout in LAYOUTS {
        for workload in workloads {
            all.extend(VOLUMES.map(|volume| layout.configuration(volume, &[*workload])));
        }
    }
    all
}

/// A small selection: workloads of nearly every kind, small and large, with and without affinity to
/// their own pods.
fn few() -> Vec<Workload> {
    let deployments = [
        Strategy::Recreate,
        Strategy::rolling(1, 0),
        Strategy::rolling(0, 1),
        Strategy::rolling(1, 1),
    ];
    let others = [Kind::StatefulSet, Kind::ReplicaSet, Kind::Job { completions: 2 }];
    let kinds = deployments.map(Kind::Deployment).into_iter().chain(others);
    let sizes = kinds.flat_map(|kind| (1..=3).map(move |replicas| Workload::new(kind, replicas)));
    let affinities = [Affinity::None, OWN, OWN_REVISION];
    sizes.flat_map(|workload| affinities.map(|affinity| workload.near(affinity))).collect()
}

/// Claims without a bound PV: one that a PV reserves, and one of zonal storage, in zones of one and
/// more nodes.
fn unbound() -> Vec<Configuration> {
    let layouts = [
        layout(&[0, 1, 2]),
        layout(&[0, 0, 1]),
        layout(&[0, 0, 1, 1]),
        layout(&[0, 1, 2, 3]),
        // Layouts in which one of a zone's two nodes is excluded.
        layout(&[0, 0, 1]).tolerating(&[0, 2]),
        layout(&[0, 0, 1, 1]).selecting(&[0, 2, 3]),
    ];
    let volumes = [
        ((Access::Exclusive, true), Binding::Zonal),
        ((Access::Exclusive, true), Binding::Reserved),
        ((Access::SinglePod, true), Binding::Reserved),
    ];
    let mut all = Vec::new();
    for layout in layouts {
        for workload in few() {
            for (volume, binding) in volumes {
                let mut configuration = layout.configuration(volume, &[workload]);
                configuration.volume.binding = binding;
                all.push(configuration);
            }
        }
    }
    all
}

/// Updates that move the pods of one workload on three nodes, as pairs of before and after.
pub(crate) fn moves() -> Vec<(Configuration, Configuration)> {
    let layout = layout(&[0, 0, 0]);
    let volumes = [(Access::Exclusive, true), (Access::SinglePod, true)];
    let places: [&[usize]; 5] = [ALL, &[0], &[1], &[0, 1], &[1, 2]];
    let mut moves = Vec::new();
    for workload in few().into_iter().filter(|workload| workload.kind.rolls_out()) {
        if workload.replicas > 2 {
            continue;
        }
        for volume in volumes {
            for (before, after) in places.iter().flat_map(|from| places.map(|to| (*from, to))) {
                let apart = Workload { anti_affinity: true, ..workload };
                let tolerating = |nodes| Workload { tolerated: NodeSet::of(nodes), ..workload };
                let updates = [
                    (workload.near(Affinity::None).on(before), workload.on(after)),
                    (workload.near(OWN).on(before), workload.on(after)),
                    // The update removes the anti-affinity.
                    (apart.on(before), workload.on(after)),
                    // The update changes the taints that the pods tolerate.
                    (tolerating(before), tolerating(after)),
                ];
                let configuration = |version| layout.configuration(volume, &[version]);
                moves.extend(updates.map(|(old, new)| (configuration(old), configuration(new))));
            }
        }
    }
    moves
}

/// One configuration of each set that is equal to the model. The choice is pseudorandom, so that
/// every way to write a configuration is tried.
pub(crate) fn chosen(asked: &[Configuration]) -> Vec<Configuration> {
    let mut best: HashMap<Configuration, (u64, &Configuration)> = HashMap::new();
    for (number, configuration) in asked.iter().enumerate() {
        let candidate = (mixed(number), configuration);
        let entry = best.entry(configuration.normal()).or_insert(candidate);
        if candidate.0 < entry.0 {
            *entry = candidate;
        }
    }
    let mut chosen: Vec<(u64, &Configuration)> = best.into_values().collect();
    chosen.sort_unstable_by_key(|(lot, _)| *lot);
    chosen.into_iter().map(|(_, configuration)| configuration.clone()).collect()
}

/// A pseudorandom number that is always the same for the same `number`.
fn mixed(number: usize) -> u64 {
    (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Pairs of workloads on three nodes. Either both use the claim, or the second is connected to the
/// first only by affinity.
fn pairs() -> Vec<Configuration> {
    let layout = layout(&[0, 0, 0]);
    let recreate = Kind::Deployment(Strategy::Recreate);
    let surge = Kind::Deployment(Strategy::rolling(1, 0));
    let no_surge = Kind::Deployment(Strategy::rolling(0, 1));
    let job = Kind::Job { completions: 2 };
    let firsts =
        [recreate, surge, no_surge, Kind::StatefulSet, Kind::ReplicaSet, Kind::DaemonSet, job];
    let seconds = placed(&[recreate, surge, job], 1, &[ALL, &[0], &[1]]);
    let mut all = Vec::new();
    for first in placed(&firsts, 0, &[ALL, &[0]]) {
        for second in &seconds {
            let idle = Workload { uses_volume: false, ..*second };
            all.extend([
                layout.configuration((Access::Exclusive, true), &[first, *second]),
                layout.configuration((Access::SinglePod, true), &[first, *second]),
                layout.configuration((Access::Exclusive, true), &[first, idle]),
            ]);
        }
    }
    all
}

/// The kinds with one and two replicas, each affinity that makes a difference to a pair, on each of
/// the sets of nodes.
fn placed(kinds: &[Kind], workload: u8, places: &[&[usize]]) -> Vec<Workload> {
    let (own, other) = (1 << workload, 0b11 & !(1 << workload));
    let affinities = [
        Affinity::None,
        Affinity::required(own, false),
        Affinity::required(own, true),
        Affinity::required(0b11, false),
        Affinity::required(other, false),
    ];
    let mut all = Vec::new();
    for kind in kinds {
        let most = if *kind == Kind::DaemonSet { 1 } else { 2 };
        for replicas in 1..=most {
            for affinity in affinities {
                for place in places {
                    all.push(Workload::new(*kind, replicas).near(affinity).on(place));
                }
            }
        }
    }
    all
}

impl Layout {
    const fn selecting(self, selected: &'static [usize]) -> Self {
        Self { selected, ..self }
    }

    const fn tolerating(self, tolerated: &'static [usize]) -> Self {
        Self { tolerated, ..self }
    }

    const fn with_volume_on(self, volume: &'static [usize]) -> Self {
        Self { volume, ..self }
    }

    fn configuration(
        &self,
        (access, attach_required): (Access, bool),
        workloads: &[Workload],
    ) -> Configuration {
        let place = |mut workload: Workload| {
            workload.selected = workload.selected.and(NodeSet::of(self.selected));
            workload.tolerated = workload.tolerated.and(NodeSet::of(self.tolerated));
            workload
        };
        Configuration {
            zones: self.zones.to_vec(),
            volume: Volume {
                access,
                attach_required,
                nodes: NodeSet::of(self.volume),
                binding: Binding::Bound,
            },
            workloads: workloads.iter().copied().map(place).collect(),
            capacity: None,
        }
    }
}

/// Every kind and size, with every constraint.
fn workloads() -> Vec<Workload> {
    let affinities = [Affinity::None, Affinity::Preferred, OWN, OWN_REVISION];
    let kinds = kinds().into_iter();
    let near = kinds.flat_map(|workload| affinities.map(|affinity| workload.near(affinity)));
    near.flat_map(apart).collect()
}

/// Every kind, strategy and size. What has no pods is judged as with one.
fn kinds() -> Vec<Workload> {
    let most = u8::try_from(NODES).unwrap();
    let mut all = vec![Workload::new(Kind::DaemonSet, 0)];
    for replicas in 1..=most {
        let deployments = strategies(replicas).map(Kind::Deployment);
        let jobs = (1..=2).map(|completions| Kind::Job { completions });
        let sets = [Kind::StatefulSet, Kind::ReplicaSet];
        let kinds = deployments.chain(sets).chain(jobs);
        all.extend(kinds.map(|kind| Workload::new(kind, replicas)));
    }
    all
}

/// The default strategy, and every valid strategy that results in other numbers than the ones
/// before it.
fn strategies(replicas: u8) -> impl Iterator<Item = Strategy> {
    let numbers = (0..=replicas).map(Amount::Number);
    let percents = [1, 10, 25, 26, 34, 50, 51, 75, 100].map(Amount::Percent);
    let amounts: Vec<Amount> = percents.into_iter().chain(numbers).collect();
    let mut all = vec![Strategy::Recreate, Strategy::DEFAULT];
    for surge in &amounts {
        for unavailable in &amounts {
            let strategy = Strategy::RollingUpdate { surge: *surge, unavailable: *unavailable };
            let known =
                all.iter().any(|other| other.resolve(replicas) == strategy.resolve(replicas));
            if strategy.is_valid() && !known {
                all.push(strategy);
            }
        }
    }
    all.into_iter()
}
