//! The configurations that are explored beside the observed scenarios.

use std::collections::HashMap;

use crate::configuration::{
    Access, Affinity, Amount, Binding, Configuration, Kind, NODES, NodeSet, Spread, Strategy,
    Volume, Workload,
};

/// Which nodes there are, and which of them the pods and the volume may use.
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
    // A node selector that leaves one node, two in one zone, two in two zones.
    Layout {
        selected: &[0],
        ..layout(&[0, 0, 1])
    },
    Layout {
        selected: &[0, 1],
        ..layout(&[0, 0, 1])
    },
    Layout {
        selected: &[0, 2],
        ..layout(&[0, 0, 1])
    },
    // Taints that leave one node, two in one zone.
    Layout {
        tolerated: &[0],
        ..layout(&[0, 0, 1])
    },
    Layout {
        tolerated: &[0, 1],
        ..layout(&[0, 0, 1])
    },
    // A volume on one node, in one of two zones.
    Layout {
        volume: &[0],
        ..layout(&[0, 0, 1])
    },
    Layout {
        volume: &[0, 1],
        ..layout(&[0, 0, 1, 1])
    },
    // Each of selector, taint and volume leaves several nodes, together they leave one.
    Layout {
        selected: &[0, 1, 2],
        tolerated: &[0, 1, 3],
        volume: &[0, 2, 3],
        ..layout(&[0, 0, 1, 1])
    },
];

const fn layout(zones: &'static [u8]) -> Layout {
    Layout {
        zones,
        selected: ALL,
        tolerated: ALL,
        volume: ALL,
    }
}

/// Access modes and attaching: every combination.
const VOLUMES: [(Access, bool); 6] = [
    (Access::Exclusive, true),
    (Access::Exclusive, false),
    (Access::Shared, true),
    (Access::Shared, false),
    (Access::SinglePod, true),
    (Access::SinglePod, false),
];

const OWN: Affinity = Affinity::Required {
    workloads: 0b01,
    own_revision: false,
};
const OWN_REVISION: Affinity = Affinity::Required {
    workloads: 0b01,
    own_revision: true,
};

/// What keeps a workload's pods apart.
#[derive(Clone, Copy)]
struct Apart {
    anti_affinity: bool,
    hostname_spread: Option<Spread>,
    zone_spread: Option<Spread>,
}

/// Every combination of anti-affinity and spreads that allow a skew of one, and each spread that allows two, alone.
fn apart() -> Vec<Apart> {
    let spread = |max_skew, own_revision| {
        Some(Spread {
            max_skew,
            own_revision,
        })
    };
    let mut all = Vec::new();
    for anti_affinity in [false, true] {
        for hostname_spread in [None, spread(1, false), spread(1, true)] {
            for zone_spread in [None, spread(1, false)] {
                all.push(Apart {
                    anti_affinity,
                    hostname_spread,
                    zone_spread,
                });
            }
        }
    }
    for (hostname_spread, zone_spread) in [(spread(2, false), None), (None, spread(2, false))] {
        all.push(Apart {
            anti_affinity: false,
            hostname_spread,
            zone_spread,
        });
    }
    all
}

/// Everything that is asked: a workload alone, and two of them. Those that differ in the volume only are neighbours.
pub(crate) fn asked() -> Vec<Configuration> {
    alone()
        .chain(pairs())
        .chain(unbound())
        .chain(with_ports())
        .collect()
}

/// A few workloads of every kind, small and large, alone and held together.
fn few() -> Vec<Workload> {
    let deployments = [
        Strategy::Recreate,
        Strategy::rolling(1, 0),
        Strategy::rolling(0, 1),
        Strategy::rolling(1, 1),
    ];
    let others = [
        Kind::StatefulSet,
        Kind::ReplicaSet,
        Kind::Job { completions: 2 },
    ];
    let kinds = deployments.map(Kind::Deployment).into_iter().chain(others);
    let sizes = kinds.flat_map(|kind| (1..=3).map(move |replicas| Workload::new(kind, replicas)));
    sizes
        .flat_map(|workload| {
            [Affinity::None, OWN, OWN_REVISION].map(|affinity| Workload {
                affinity,
                ..workload
            })
        })
        .collect()
}

/// Claims without a PV that is bound to them: reserved by one, or of zonal storage, in zones of one and more nodes.
fn unbound() -> impl Iterator<Item = Configuration> {
    let layouts = [
        layout(&[0, 1, 2]),
        layout(&[0, 0, 1]),
        layout(&[0, 0, 1, 1]),
        layout(&[0, 1, 2, 3]),
        // Of a zone of two nodes one is left.
        Layout {
            tolerated: &[0, 2],
            ..layout(&[0, 0, 1])
        },
        Layout {
            selected: &[0, 2, 3],
            ..layout(&[0, 0, 1, 1])
        },
    ];
    let volumes = [
        ((Access::Exclusive, true), Binding::Zonal),
        ((Access::Exclusive, true), Binding::Reserved),
        ((Access::SinglePod, true), Binding::Reserved),
    ];
    layouts.into_iter().flat_map(move |layout| {
        few().into_iter().flat_map(move |workload| {
            volumes.map(|(volume, binding)| {
                let mut world = layout.world(volume, &[workload]);
                world.volume.binding = binding;
                world
            })
        })
    })
}

/// Workloads whose pods have a port of their node.
fn with_ports() -> impl Iterator<Item = Configuration> {
    LAYOUTS.iter().flat_map(|layout| {
        few().into_iter().flat_map(move |workload| {
            let workload = Workload {
                port: true,
                ..workload
            };
            VOLUMES.map(|volume| layout.world(volume, &[workload]))
        })
    })
}

/// Updates that move the pods: before and after, of one workload on three nodes.
pub(crate) fn moves() -> Vec<(Configuration, Configuration)> {
    let layout = layout(&[0, 0, 0]);
    let volumes = [(Access::Exclusive, true), (Access::SinglePod, true)];
    let places: [&[usize]; 5] = [ALL, &[0], &[1], &[0, 1], &[1, 2]];
    let mut moves = Vec::new();
    for workload in few().into_iter().filter(|it| it.kind.rolls_out()) {
        if workload.replicas > 2 {
            continue;
        }
        for volume in volumes {
            for (before, after) in places.iter().flat_map(|it| places.map(|to| (*it, to))) {
                for affinity in [Affinity::None, OWN] {
                    let old = Workload {
                        affinity,
                        ..workload
                    };
                    moves.push((
                        layout.world(volume, &[old.on(before)]),
                        layout.world(volume, &[workload.on(after)]),
                    ));
                }
                // The anti-affinity that the old pods have and the new ones do not.
                let apart = Workload {
                    anti_affinity: true,
                    ..workload
                };
                moves.push((
                    layout.world(volume, &[apart.on(before)]),
                    layout.world(volume, &[workload.on(after)]),
                ));
                // The taints that the old pods tolerate and the new ones do not.
                let tolerating = |nodes| Workload {
                    tolerated: NodeSet::of(nodes),
                    ..workload
                };
                moves.push((
                    layout.world(volume, &[tolerating(before)]),
                    layout.world(volume, &[tolerating(after)]),
                ));
            }
        }
    }
    moves
}

/// One workload alone with the volume: every kind, strategy, size, place and constraint.
fn alone() -> impl Iterator<Item = Configuration> {
    LAYOUTS.iter().flat_map(|layout| {
        workloads().into_iter().flat_map(move |workload| {
            VOLUMES
                .into_iter()
                .map(move |volume| layout.world(volume, &[workload]))
        })
    })
}

/// Of those asked, one of each set that is the same to the model. Which one follows no pattern, so that every way of
/// saying something gets its turn.
pub(crate) fn chosen(asked: &[Configuration]) -> Vec<Configuration> {
    let mut chosen: HashMap<Configuration, (u64, &Configuration)> = HashMap::new();
    for (number, configuration) in asked.iter().enumerate() {
        let candidate = (mixed(number), configuration);
        let best = chosen.entry(configuration.normal()).or_insert(candidate);
        if candidate.0 < best.0 {
            *best = candidate;
        }
    }
    let mut chosen: Vec<(u64, &Configuration)> = chosen.into_values().collect();
    chosen.sort_unstable_by_key(|(lot, _)| *lot);
    chosen.into_iter().map(|(_, it)| it.clone()).collect()
}

/// A number without any pattern for each number, always the same.
fn mixed(number: usize) -> u64 {
    (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Two workloads on three nodes that share the claim, or where the second only shares the first one's affinity.
fn pairs() -> impl Iterator<Item = Configuration> {
    let layout = layout(&[0, 0, 0]);
    let recreate = Kind::Deployment(Strategy::Recreate);
    let surge = Kind::Deployment(Strategy::rolling(1, 0));
    let no_surge = Kind::Deployment(Strategy::rolling(0, 1));
    let job = Kind::Job { completions: 2 };
    let firsts = [
        recreate,
        surge,
        no_surge,
        Kind::StatefulSet,
        Kind::ReplicaSet,
        Kind::DaemonSet,
        job,
    ];
    let firsts = placed(&firsts, 0, &[ALL, &[0]]);
    let seconds = placed(&[recreate, surge, job], 1, &[ALL, &[0], &[1]]);
    firsts.into_iter().flat_map(move |first| {
        seconds.clone().into_iter().flat_map(move |second| {
            let idle = Workload {
                uses_volume: false,
                ..second
            };
            let worlds = [
                ((Access::Exclusive, true), second),
                ((Access::SinglePod, true), second),
                ((Access::Exclusive, true), idle),
            ];
            worlds
                .into_iter()
                .map(move |(volume, second)| layout.world(volume, &[first, second]))
        })
    })
}

/// These kinds with one and two replicas, each affinity that makes a difference to a pair, on each of these nodes.
fn placed(kinds: &[Kind], workload: u8, places: &[&[usize]]) -> Vec<Workload> {
    let required = |workloads, own_revision| Affinity::Required {
        workloads,
        own_revision,
    };
    let (own, other) = (1 << workload, 0b11 & !(1 << workload));
    let affinities = [
        Affinity::None,
        required(own, false),
        required(own, true),
        required(0b11, false),
        required(other, false),
    ];
    let mut all = Vec::new();
    for kind in kinds {
        let most = if *kind == Kind::DaemonSet { 1 } else { 2 };
        for replicas in 1..=most {
            for affinity in affinities {
                for place in places {
                    all.push(Workload {
                        affinity,
                        ..Workload::new(*kind, replicas).on(place)
                    });
                }
            }
        }
    }
    all
}

impl Layout {
    fn world(
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

/// Every kind and size with every constraint.
fn workloads() -> Vec<Workload> {
    let mut all = Vec::new();
    for (kind, replicas) in kinds() {
        for affinity in [Affinity::None, Affinity::Preferred, OWN, OWN_REVISION] {
            all.extend(apart().into_iter().map(|apart| Workload {
                affinity,
                anti_affinity: apart.anti_affinity,
                hostname_spread: apart.hostname_spread,
                zone_spread: apart.zone_spread,
                ..Workload::new(kind, replicas)
            }));
        }
    }
    all
}

fn kinds() -> Vec<(Kind, u8)> {
    let most = u8::try_from(NODES).unwrap();
    let mut all = vec![(Kind::DaemonSet, 0)];
    for replicas in 0..=most {
        all.extend(strategies(replicas).map(|strategy| (Kind::Deployment(strategy), replicas)));
        all.extend([Kind::StatefulSet, Kind::ReplicaSet].map(|kind| (kind, replicas)));
        all.extend((1..=2).map(|completions| (Kind::Job { completions }, replicas)));
    }
    all
}

/// Every strategy that the API server takes and that comes to other numbers than the ones before, and the default.
fn strategies(replicas: u8) -> impl Iterator<Item = Strategy> {
    let numbers = (0..=replicas).map(Amount::Number);
    let percents = [1, 10, 25, 26, 34, 50, 51, 75, 100].map(Amount::Percent);
    let amounts: Vec<Amount> = percents.into_iter().chain(numbers).collect();
    let mut all = vec![Strategy::Recreate, Strategy::DEFAULT];
    for surge in &amounts {
        for unavailable in &amounts {
            let strategy = Strategy::RollingUpdate {
                surge: *surge,
                unavailable: *unavailable,
            };
            let known = all
                .iter()
                .any(|other| other.resolve(replicas) == strategy.resolve(replicas));
            if strategy.is_valid() && !known {
                all.push(strategy);
            }
        }
    }
    all.into_iter()
}
