//! A world as Kubernetes objects.

use serde_json::{Value, json};

use super::world::{Disk, Kind, Mode, Near, Place, Pods, Topology, Whom, World};
use crate::harness::control_plane::STEERED_SCHEDULER;
use crate::harness::fake_nodes::SHARED_DRIVER;
use crate::manifests::{HOSTNAME, Volume, Workload, ZONE, in_values};
use crate::scenario::Scenario;

/// The taint of a world's tainted nodes.
pub(crate) const TAINT: &str = "example.com/special";

/// How long the pods of a Job run: long enough to be met by others.
const JOB_SECONDS: u32 = 6;

/// Which of the nodes that Kubernetes allows the pods get: those without other pods of
/// this world first, and among these the ones from `first` on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Steering {
    pub(crate) first: usize,
}

impl World {
    /// The nodes and the volume, before any workload.
    pub(crate) fn scenario(&self) -> Scenario {
        let mut scenario = Scenario::new("world", "");
        scenario.zones = self.nodes.iter().map(|node| zone(node.zone)).collect();
        let nodes = self.nodes.iter().enumerate();
        scenario.tainted = nodes
            .filter(|(_, node)| node.tainted)
            .map(|(at, _)| at)
            .collect();
        scenario.volume(self.volume(&self.volume))
    }

    fn volume(&self, disk: &Disk) -> Volume {
        let mode = match disk.mode {
            Mode::Exclusive => "ReadWriteOnce",
            Mode::Shared => "ReadWriteMany",
            Mode::SinglePod => "ReadWriteOncePod",
        };
        let mut volume = Volume::new(&[mode]);
        if !disk.attaches {
            volume = volume.driver(SHARED_DRIVER);
        }
        match (disk.reach, disk.by_labels) {
            (Place::Zone(number), true) => {
                volume.labelled(json!({ ZONE: zone(number.min(self.zones() - 1)) }))
            }
            (reach, _) => match self.expression(reach) {
                Some(expression) => volume.reaching(&json!([expression])),
                None => volume,
            },
        }
    }

    /// The world with a volume that everybody may have everywhere: what goes wrong with it
    /// has nothing to do with the volume. One that all nodes of a zone may have at a time
    /// stays there: it asks no more of pods than a node selector does.
    pub(crate) fn without_contention(&self) -> Self {
        let disk = self.volume;
        let is_refused = match disk.mode {
            Mode::Exclusive => disk.attaches,
            Mode::Shared => false,
            Mode::SinglePod => true,
        };
        let keeps_one_node = matches!(disk.reach, Place::Node(_));
        let stays = !is_refused && !keeps_one_node;
        let mut free = self.clone();
        free.volume = Disk {
            mode: Mode::Shared,
            attaches: false,
            reach: if stays { disk.reach } else { Place::Everywhere },
            by_labels: stays && disk.by_labels,
        };
        free
    }

    /// The object of a workload, the one with this number; `revision` is its image.
    pub(crate) fn workload(
        &self,
        number: usize,
        pods: &Pods,
        revision: u32,
        steering: Steering,
    ) -> Value {
        let name = format!("w{number}");
        let mut workload = match pods.kind {
            Kind::Recreate => Workload::deployment(&name).recreate(),
            Kind::Rolling { surge, unavailable } => {
                Workload::deployment(&name).rolling(&json!(surge), &json!(unavailable))
            }
            Kind::StatefulSet => Workload::stateful_set(&name),
            Kind::ReplicationController => Workload::replication_controller(&name),
            Kind::DaemonSet => Workload::daemon_set(&name),
            Kind::Job => Workload::job(&name)
                .spec("parallelism", json!(pods.replicas))
                .spec("completions", json!(pods.replicas))
                .ends_after(JOB_SECONDS),
        };
        if !matches!(pods.kind, Kind::DaemonSet | Kind::Job) {
            workload = workload.replicas(u32::from(pods.replicas));
        }
        if let Some(expression) = self.expression(pods.place) {
            workload = workload.on_nodes(&json!([expression]));
        }
        if pods.tolerates {
            workload = workload.tolerating(TAINT);
        }
        if let Some(near) = pods.near {
            workload = drawn(workload, number, near);
        }
        if let Some(topology) = pods.apart {
            workload = workload.apart_over(key(topology));
        }
        if let Some(topology) = pods.spread {
            workload = workload.spread(key(topology), &json!({}));
        }
        if pods.port {
            workload = workload.host_port(8080);
        }
        if pods.without_volume {
            workload = workload.without_volume();
        }
        self.steered(workload, steering)
            .image(revision)
            .cpus("10m")
            .manifest()
    }

    fn steered(&self, workload: Workload, steering: Steering) -> Workload {
        let everybody = json!({ "labelSelector": { "matchLabels": { "part-of": "{run}" } } });
        let nodes = self.nodes.len();
        let workload = workload
            .pod("schedulerName", json!(STEERED_SCHEDULER))
            .rather_apart(everybody);
        (0..nodes).fold(workload, |workload, rank| {
            let weight = u32::try_from(100 - 20 * rank).unwrap_or(1);
            workload.rather_on_node(letter((steering.first + rank) % nodes), weight)
        })
    }

    /// The node label that keeps to a place.
    fn expression(&self, place: Place) -> Option<Value> {
        let last = self.nodes.len() - 1;
        let host = |node: u8| format!("{{run}}-{}", letter(usize::from(node).min(last)));
        match place {
            Place::Everywhere => None,
            Place::Zone(number) => Some(in_values(ZONE, zone(number.min(self.zones() - 1)))),
            Place::Node(node) => Some(in_values(HOSTNAME, &host(node))),
            Place::NotNode(node) => {
                Some(json!({ "key": HOSTNAME, "operator": "NotIn", "values": [host(node)] }))
            }
        }
    }
}

fn drawn(workload: Workload, number: usize, near: Near) -> Workload {
    let selector = match near.whom {
        Whom::Itself => json!({ "app": format!("w{number}") }),
        Whom::TheOther => json!({ "app": format!("w{}", 1 - number) }),
        Whom::Both => json!({ "part-of": "{run}" }),
    };
    let mut term = json!({ "labelSelector": { "matchLabels": selector } });
    if near.within_revision {
        term["matchLabelKeys"] = json!(["pod-template-hash"]);
    }
    if near.only_preferred {
        workload.rather_near(key(near.over), term, 1)
    } else {
        workload.near_over(key(near.over), term)
    }
}

const fn key(topology: Topology) -> &'static str {
    match topology {
        Topology::Hostname => HOSTNAME,
        Topology::Zone => ZONE,
    }
}

const fn zone(number: u8) -> &'static str {
    match number {
        0 => "zone-1",
        1 => "zone-2",
        _ => "zone-3",
    }
}

const fn letter(node: usize) -> &'static str {
    match node {
        0 => "a",
        1 => "b",
        2 => "c",
        _ => "d",
    }
}
