//! Writes configurations as Kubernetes objects.
//!
//! The cluster does not depend on its workloads: every node has its own taint, and a label for each
//! set of nodes that it belongs to. Any workload can therefore select and tolerate any set.
//!
//! Large values are assigned instead of being written into `json!`, which would copy them.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::{Value, json};

use crate::configuration::{
    Access, Affinity, Amount, Binding, Configuration, Kind, NODES, NodeSet, Spread, Strategy,
    Volume,
};

pub(crate) const NAMESPACE: &str = "shop";
pub(crate) const CLAIM: &str = "data";
pub(crate) const HOSTNAME: &str = "kubernetes.io/hostname";
pub(crate) const ZONE: &str = "topology.kubernetes.io/zone";
const DRIVER: &str = "csi.example.com";
/// A driver whose volumes are zonal, according to the catalog.
const ZONAL_DRIVER: &str = "ebs.csi.aws.com";
const CLASS: &str = "standard";
const VOLUME: &str = "pv-data";
/// The affinity mask that matches the pods of all workloads.
const EVERYBODY: u8 = 0b11;

/// The nodes, the volume with its claim, the class and the driver.
pub(crate) fn cluster(zones: &[u8], volume: &Volume) -> Vec<Value> {
    let mut objects: Vec<Value> = zones.iter().enumerate().map(node).collect();
    let modes = json!([match volume.access {
        Access::Exclusive => "ReadWriteOnce",
        Access::Shared => "ReadWriteMany",
        Access::SinglePod => "ReadWriteOncePod",
    }]);
    let all = NodeSet::first(zones.len());
    let zonal = volume.binding == Binding::Zonal;
    let driver = if zonal { ZONAL_DRIVER } else { DRIVER };
    let mut persistent = json!({
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": VOLUME},
        "spec": {
            "accessModes": modes,
            "capacity": {"storage": "1Gi"},
            "storageClassName": CLASS,
            "claimRef": {"namespace": NAMESPACE, "name": CLAIM},
            "csi": {"driver": driver, "volumeHandle": "1"},
        },
    });
    if volume.nodes.and(all) != all {
        persistent["spec"]["nodeAffinity"] = json!({"required": on_hosts(volume.nodes)});
    }
    if !zonal {
        objects.push(persistent);
    }
    let mut claim = json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": CLAIM, "namespace": NAMESPACE},
        "spec": {
            "accessModes": modes,
            "storageClassName": CLASS,
            "resources": {"requests": {"storage": "1Gi"}},
        },
        "status": {"phase": "Pending"},
    });
    if volume.binding == Binding::Bound {
        claim["spec"]["volumeName"] = json!(VOLUME);
        claim["status"] = json!({"phase": "Bound", "accessModes": modes});
    }
    objects.push(claim);
    let mut class = json!({
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": CLASS},
        "provisioner": driver,
        "volumeBindingMode": "WaitForFirstConsumer",
    });
    if zonal && volume.nodes.and(all) != all {
        let allowed: Vec<_> = zones
            .iter()
            .enumerate()
            .filter(|(node, _)| volume.nodes.has(*node))
            .map(|(_, zone)| format!("zone-{zone}"))
            .collect();
        class["allowedTopologies"] =
            json!([{"matchLabelExpressions": [{"key": ZONE, "values": allowed}]}]);
    }
    objects.push(class);
    objects.push(json!({
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIDriver",
        "metadata": {"name": driver},
        "spec": {"attachRequired": volume.attach_required},
    }));
    objects
}

fn node((node, zone): (usize, &u8)) -> Value {
    let mut labels = json!({HOSTNAME: host(node), ZONE: format!("zone-{zone}")});
    for set in (0..1 << NODES).map(NodeSet).filter(|set| set.has(node)) {
        labels[set_label(set)] = json!("yes");
    }
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": host(node), "labels": labels},
        "spec": {"taints": [{"key": taint(node), "effect": "NoSchedule"}]},
    })
}

pub(crate) fn host(node: usize) -> String {
    format!("node-{node}")
}

/// The label of the nodes in a set.
pub(crate) fn set_label(set: NodeSet) -> String {
    format!("example.com/set-{}", set.0)
}

pub(crate) fn taint(node: usize) -> String {
    format!("example.com/taint-{node}")
}

fn on_hosts(nodes: NodeSet) -> Value {
    let hosts: Vec<String> = (0..NODES).filter(|node| nodes.has(*node)).map(host).collect();
    json!({"nodeSelectorTerms": [
        {"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": hosts}]},
    ]})
}

/// Different ways to write the same configuration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Style {
    /// The required node affinity selects nodes by host name, instead of a label in the node
    /// selector.
    by_hosts: bool,
    /// Pod affinity is written as two terms. A pod counts only if it matches both.
    two_terms: bool,
}

impl Style {
    /// The style of a configuration. It does not depend on the volume.
    pub(crate) fn of(configuration: &Configuration) -> Self {
        let mut hasher = DefaultHasher::new();
        (&configuration.zones, &configuration.workloads).hash(&mut hasher);
        let lot = hasher.finish();
        Self { by_hosts: lot & 1 != 0, two_terms: lot & 2 != 0 }
    }
}

/// The name of the workload with this index.
pub(crate) fn name(workload: usize) -> String {
    format!("w{workload}")
}

/// The workload with this index as the API server would store it.
pub(crate) fn workload(configuration: &Configuration, index: usize, style: Style) -> Value {
    let workload = &configuration.workloads[index];
    let own = json!({"app": name(index)});
    let mut spec = json!({});
    spec["template"] = template(configuration, index, style);
    let (api_version, kind) = match workload.kind {
        Kind::Deployment(strategy) => {
            spec["strategy"] = self::strategy(strategy);
            ("apps/v1", "Deployment")
        }
        Kind::StatefulSet => ("apps/v1", "StatefulSet"),
        Kind::DaemonSet => ("apps/v1", "DaemonSet"),
        Kind::ReplicaSet => ("apps/v1", "ReplicaSet"),
        Kind::Job { completions } => {
            spec["parallelism"] = json!(workload.replicas);
            spec["completions"] = json!(completions);
            ("batch/v1", "Job")
        }
    };
    if !workload.kind.ends() {
        spec["selector"] = json!({"matchLabels": own});
        if workload.kind != Kind::DaemonSet {
            spec["replicas"] = json!(workload.replicas);
        }
    }
    let mut object = json!({
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": name(index), "namespace": NAMESPACE},
    });
    object["spec"] = spec;
    object
}

fn strategy(strategy: Strategy) -> Value {
    let amount = |amount| match amount {
        Amount::Number(number) => json!(number),
        Amount::Percent(percent) => json!(format!("{percent}%")),
    };
    match strategy {
        Strategy::Recreate => json!({"type": "Recreate"}),
        Strategy::RollingUpdate { surge, unavailable } => json!({
            "type": "RollingUpdate",
            "rollingUpdate": {"maxSurge": amount(surge), "maxUnavailable": amount(unavailable)},
        }),
    }
}

fn template(configuration: &Configuration, index: usize, style: Style) -> Value {
    let workload = &configuration.workloads[index];
    let all = configuration.nodes();
    let mut spec = json!({"containers": [{"name": "main", "image": "example.com/image"}]});
    if workload.port {
        spec["containers"][0]["ports"] = json!([{"containerPort": 80, "hostPort": 80}]);
    }
    if workload.uses_volume {
        spec["volumes"] = json!([
            {"name": "data", "persistentVolumeClaim": {"claimName": CLAIM}},
        ]);
        spec["containers"][0]["volumeMounts"] = json!([{"name": "data", "mountPath": "/data"}]);
    }
    if workload.selected.and(all) != all {
        let set = workload.selected.and(all);
        if style.by_hosts {
            spec["affinity"]["nodeAffinity"] =
                json!({"requiredDuringSchedulingIgnoredDuringExecution": on_hosts(set)});
        } else {
            spec["nodeSelector"] = json!({set_label(set): "yes"});
        }
    }
    spec["tolerations"] = if workload.tolerated.and(all) == all {
        json!([{"operator": "Exists"}])
    } else {
        (0..configuration.zones.len())
            .filter(|node| workload.tolerated.has(*node))
            .map(|node| json!({"key": taint(node), "operator": "Exists"}))
            .collect()
    };
    let own = json!({"matchLabels": {"app": name(index)}});
    match workload.affinity {
        Affinity::None => {}
        Affinity::Preferred => {
            spec["affinity"]["podAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"] = json!([
                {"weight": 100, "podAffinityTerm": {"labelSelector": own, "topologyKey": HOSTNAME}},
            ]);
        }
        Affinity::Required { workloads, own_revision } => {
            let term = |apps| json!({"labelSelector": selector(apps), "topologyKey": HOSTNAME});
            let mut terms = vec![term(workloads)];
            if style.two_terms {
                terms.insert(0, term(EVERYBODY));
            }
            match_label_keys(&mut terms[0], own_revision);
            spec["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] =
                Value::Array(terms);
        }
    }
    if workload.anti_affinity {
        spec["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] =
            json!([{"labelSelector": own, "topologyKey": HOSTNAME}]);
    }
    let spreads: Vec<Value> = [(HOSTNAME, workload.hostname_spread), (ZONE, workload.zone_spread)]
        .into_iter()
        .filter_map(|(key, spread)| Some(self::spread(key, spread?, &own)))
        .collect();
    if !spreads.is_empty() {
        spec["topologySpreadConstraints"] = Value::Array(spreads);
    }
    let mut template = json!({"metadata": {"labels": {"app": name(index), "part-of": "shop"}}});
    template["spec"] = spec;
    template
}

/// A selector for the pods of one workload, or of all.
fn selector(workloads: u8) -> Value {
    match workloads {
        0b01 => json!({"matchLabels": {"app": name(0)}}),
        0b10 => json!({"matchLabels": {"app": name(1)}}),
        _ => {
            json!({"matchExpressions": [{"key": "part-of", "operator": "In", "values": ["shop"]}]})
        }
    }
}

fn spread(key: &str, spread: Spread, selector: &Value) -> Value {
    let mut constraint = json!({
        "maxSkew": spread.max_skew,
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": selector,
    });
    match_label_keys(&mut constraint, spread.own_revision);
    constraint
}

fn match_label_keys(constraint: &mut Value, own_revision: bool) {
    if own_revision {
        constraint["matchLabelKeys"] = json!(["pod-template-hash"]);
    }
}
