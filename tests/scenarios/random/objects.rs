//! Writes a cluster as Kubernetes objects.

use serde_json::{Value, json};

use super::random_cluster::{Disk, Kind, Mode, Near, Place, Pods, RandomCluster, Topology, Whom};
use crate::harness::control_plane::STEERED_SCHEDULER;
use crate::harness::fake_nodes::{ENDS_AFTER, SHARED_DRIVER};
use crate::harness::shorthand::{Claim, merge};
use crate::manifests::{HOSTNAME, Manifest, ZONE, in_values};
use crate::scenario::Scenario;

/// The taint of a cluster's tainted nodes.
pub(crate) const TAINT: &str = "example.com/special";

/// The run time of a Job's pods: long enough to overlap with other pods.
const JOB_SECONDS: u32 = 6;

impl RandomCluster {
    /// The nodes and the volume, before any workload.
    pub(crate) fn scenario(&self) -> Scenario {
        let zones: Vec<String> = self.nodes.iter().map(|node| zone(node.zone)).collect();
        let claims = [("data".to_owned(), self.claim())];
        let mut scenario = Scenario::new("random", &zones, claims.into());
        let nodes = self.nodes.iter().enumerate();
        let tainted = nodes.filter(|(_, node)| node.tainted);
        scenario.tainted = tainted.map(|(at, _)| at).collect();
        scenario
    }

    fn claim(&self) -> Claim {
        let disk = &self.volume;
        let modes = vec![
            match disk.mode {
                Mode::Exclusive => "ReadWriteOnce",
                Mode::Shared => "ReadWriteMany",
                Mode::SinglePod => "ReadWriteOncePod",
            }
            .to_owned(),
        ];
        let mut volume = json!({});
        if !disk.attaches {
            volume["spec"]["csi"]["driver"] = json!(SHARED_DRIVER);
        }
        match (disk.reach, disk.by_labels) {
            (Place::Zone(number), true) => {
                volume["metadata"]["labels"] = json!({ ZONE: zone(number.min(self.zones() - 1)) });
            }
            (reach, _) => {
                if let Some(expression) = self.expression(reach) {
                    volume["spec"]["nodeAffinity"]["required"] = terms(&expression);
                }
            }
        }
        Claim { volume: Some(modes.clone()), modes, volume_with: volume, ..Claim::default() }
    }

    /// The cluster with a volume that any number of pods can use on any node, so that faults in it do
    /// not come from the volume. A volume that several nodes of a zone may use at a time stays in
    /// its zone, because it restricts pods no more than a node selector does.
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

    /// The object of the workload with this number; `revision` is its image.
    pub(crate) fn workload(
        &self,
        number: usize,
        pods: &Pods,
        revision: u32,
        first: usize,
    ) -> Value {
        let name = format!("w{number}");
        let own = json!({ "labelSelector": { "matchLabels": { "app": name } } });
        let mut pod = json!({
            "schedulerName": STEERED_SCHEDULER,
            "affinity": self.preferences(first),
        });
        if let Some(expression) = self.expression(pods.place) {
            pod["affinity"]["nodeAffinity"][REQUIRED] = terms(&expression);
        }
        if pods.tolerates {
            pod["tolerations"] = json!([{ "key": TAINT, "operator": "Exists" }]);
        }
        if let Some(near) = pods.near {
            let (strength, term) = drawn(number, near);
            pod["affinity"]["podAffinity"][strength] = json!([term]);
        }
        if let Some(topology) = pods.apart {
            pod["affinity"]["podAntiAffinity"][REQUIRED] =
                json!([over(key(topology), own.clone())]);
        }
        if let Some(topology) = pods.spread {
            let mut spread = over(key(topology), own);
            spread["maxSkew"] = json!(1);
            spread["whenUnsatisfiable"] = json!("DoNotSchedule");
            pod["topologySpreadConstraints"] = json!([spread]);
        }
        let mut container = json!({
            "image": format!("example.com/app:{revision}"),
            "resources": { "requests": { "cpu": "10m" } },
        });
        if pods.port {
            container["ports"] = json!([{ "containerPort": 8080, "hostPort": 8080 }]);
        }
        let mut object = json!({ "name": name, "pod": pod, "container": container });
        if pods.without_volume {
            object["uses"] = json!([]);
        }
        if pods.kind != Kind::DaemonSet {
            object["replicas"] = json!(pods.replicas);
        }
        kind(pods, &mut object);
        Manifest::try_from(object).unwrap().0
    }

    /// The order in which the pods prefer the allowed nodes: nodes without other pods of this cluster
    /// come first, and among these the nodes from `first` on.
    fn preferences(&self, first: usize) -> Value {
        let everybody = json!({ "labelSelector": { "matchLabels": { "part-of": "{run}" } } });
        let nodes = self.nodes.len();
        let ranks = (0..nodes).map(|rank| {
            let host = in_values(HOSTNAME, &host((first + rank) % nodes));
            json!({ "weight": 100 - 20 * rank, "preference": { "matchExpressions": [host] } })
        });
        json!({
            "nodeAffinity": { PREFERRED: ranks.collect::<Vec<_>>() },
            "podAntiAffinity": {
                PREFERRED: [{ "weight": 100, "podAffinityTerm": over(HOSTNAME, everybody) }],
            },
        })
    }

    /// The node label requirement for a place.
    fn expression(&self, place: Place) -> Option<Value> {
        let last = self.nodes.len() - 1;
        let host = |node: u8| host(usize::from(node).min(last));
        match place {
            Place::Everywhere => None,
            Place::Zone(number) => Some(in_values(ZONE, &zone(number.min(self.zones() - 1)))),
            Place::Node(node) => Some(in_values(HOSTNAME, &host(node))),
            Place::NotNode(node) => {
                Some(json!({ "key": HOSTNAME, "operator": "NotIn", "values": [host(node)] }))
            }
        }
    }
}

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// Adds the fields that are specific to the kind of workload, in shorthand.
fn kind(pods: &Pods, object: &mut Value) {
    let (kind, with) = match pods.kind {
        Kind::Recreate => ("Deployment", json!({ "strategy": "Recreate" })),
        Kind::Rolling { surge, unavailable } => {
            let bounds = json!({ "maxSurge": surge, "maxUnavailable": unavailable });
            let strategy = json!({ "type": "RollingUpdate", "rollingUpdate": bounds });
            ("Deployment", json!({ "strategy": strategy }))
        }
        Kind::StatefulSet => ("StatefulSet", json!({})),
        Kind::ReplicationController => ("ReplicationController", json!({})),
        Kind::DaemonSet => ("DaemonSet", json!({})),
        Kind::Job => {
            let ends = json!({ ENDS_AFTER: JOB_SECONDS.to_string() });
            let template = json!({ "metadata": { "annotations": ends } });
            let spec = json!({ "completions": pods.replicas, "template": template });
            ("Job", json!({ "with": { "spec": spec } }))
        }
    };
    object["kind"] = json!(kind);
    merge(object, &with);
}

/// Affinity to other pods: its strength and its term.
fn drawn(number: usize, near: Near) -> (&'static str, Value) {
    let selector = match near.whom {
        Whom::Itself => json!({ "app": format!("w{number}") }),
        Whom::TheOther => json!({ "app": format!("w{}", 1 - number) }),
        Whom::Both => json!({ "part-of": "{run}" }),
    };
    let mut term = json!({ "labelSelector": { "matchLabels": selector } });
    if near.within_revision {
        term["matchLabelKeys"] = json!(["pod-template-hash"]);
    }
    let term = over(key(near.over), term);
    if near.only_preferred {
        (PREFERRED, json!({ "weight": 1, "podAffinityTerm": term }))
    } else {
        (REQUIRED, term)
    }
}

fn over(topology_key: &str, mut term: Value) -> Value {
    term["topologyKey"] = json!(topology_key);
    term
}

/// A node selector of one expression.
fn terms(expression: &Value) -> Value {
    json!({ "nodeSelectorTerms": [{ "matchExpressions": [expression] }] })
}

const fn key(topology: Topology) -> &'static str {
    match topology {
        Topology::Hostname => HOSTNAME,
        Topology::Zone => ZONE,
    }
}

fn zone(number: u8) -> String {
    format!("zone-{}", number + 1)
}

fn host(node: usize) -> String {
    format!("{{run}}-{}", char::from(b"abcd"[node]))
}
