//! The objects scenarios are made of. `{run}` stands for the scenario's namespace,
//! whose name also keeps cluster-wide objects and nodes of different runs apart.

use serde_json::{Value, json};

use crate::harness::fake_nodes::ATTACHING_DRIVER;

/// A claim, its volume and its class.
#[derive(Clone, Debug)]
pub(crate) struct Volume {
    claim: String,
    claim_modes: Vec<&'static str>,
    volume_modes: Vec<&'static str>,
    source: Value,
    node: Option<&'static str>,
    binding: Binding,
    /// Whether the claim exists before the user does anything.
    pub(crate) claimed: bool,
}

/// How claim and volume find each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Binding {
    /// The volume names the claim, as after dynamic provisioning.
    Volume,
    /// Each names the other.
    Both,
    /// Neither does: the controller matches them.
    None,
}

impl Volume {
    /// A claim `data` and its volume on a driver that attaches, both with these modes.
    pub(crate) fn new(modes: &[&'static str]) -> Self {
        Self {
            claim: "data".to_owned(),
            claim_modes: modes.to_vec(),
            volume_modes: modes.to_vec(),
            source: json!({ "csi": { "driver": ATTACHING_DRIVER, "volumeHandle": "{run}-data" } }),
            node: None,
            binding: Binding::Volume,
            claimed: true,
        }
    }

    /// Without the claim: one of the scenario's actions will make it.
    pub(crate) fn unclaimed(mut self) -> Self {
        self.claimed = false;
        self
    }

    /// The claim's name.
    pub(crate) fn claim_name(&self) -> &str {
        &self.claim
    }

    /// Another name for the claim.
    pub(crate) fn claim(mut self, name: &str) -> Self {
        name.clone_into(&mut self.claim);
        self
    }

    /// Modes the volume has and the claim does not ask for, or the other way round.
    pub(crate) fn asking(mut self, modes: &[&'static str]) -> Self {
        self.claim_modes = modes.to_vec();
        self
    }

    /// Another CSI driver.
    pub(crate) fn driver(mut self, driver: &str) -> Self {
        self.source = json!({ "csi": { "driver": driver, "volumeHandle": "{run}-data" } });
        self
    }

    /// A directory of one node instead of a CSI volume.
    pub(crate) fn local(mut self) -> Self {
        self.source = json!({ "local": { "path": "/mnt/data" } });
        self
    }

    /// A volume that exists on one node only: `a`, `b` or `c`.
    pub(crate) fn on_node(mut self, node: &'static str) -> Self {
        self.node = Some(node);
        self
    }

    /// See [`Binding`].
    pub(crate) fn binding(mut self, binding: Binding) -> Self {
        self.binding = binding;
        self
    }

    /// The class and the volume: what an administrator or a provisioner made.
    pub(crate) fn storage(&self) -> Vec<Value> {
        let mut spec = self.source.clone();
        spec["capacity"] = json!({ "storage": "1Gi" });
        spec["accessModes"] = json!(self.volume_modes);
        spec["storageClassName"] = json!("{run}");
        if self.binding != Binding::None {
            spec["claimRef"] = json!({ "namespace": "{run}", "name": self.claim });
        }
        if let Some(node) = self.node {
            spec["nodeAffinity"] = json!({ "required": { "nodeSelectorTerms": [{
                "matchExpressions": [{
                    "key": "kubernetes.io/hostname",
                    "operator": "In",
                    "values": [format!("{{run}}-{node}")],
                }],
            }]}});
        }
        let driver = spec.pointer("/csi/driver").cloned();
        vec![
            json!({
                "apiVersion": "storage.k8s.io/v1",
                "kind": "StorageClass",
                "metadata": { "name": "{run}" },
                "provisioner": driver.unwrap_or_else(|| json!("kubernetes.io/no-provisioner")),
                "volumeBindingMode": "Immediate",
            }),
            json!({
                "apiVersion": "v1",
                "kind": "PersistentVolume",
                "metadata": { "name": "{run}-data" },
                "spec": spec,
            }),
        ]
    }

    /// The claim, as its user wrote it.
    pub(crate) fn request(&self) -> Value {
        let mut claim = json!({
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": { "name": self.claim },
            "spec": {
                "accessModes": self.claim_modes,
                "storageClassName": "{run}",
                "resources": { "requests": { "storage": "1Gi" } },
            },
        });
        if self.binding == Binding::Both {
            claim["spec"]["volumeName"] = json!("{run}-data");
        }
        claim
    }
}

/// A workload whose pods mount claim `data`, to be changed until it is the one the
/// scenario is about.
#[derive(Clone, Debug)]
pub(crate) struct Workload {
    kind: &'static str,
    name: String,
    spec: Value,
    /// The pod template.
    template: Value,
}

impl Workload {
    /// A Deployment of one replica with nothing said about its strategy.
    pub(crate) fn deployment(name: &str) -> Self {
        // The usual ten minutes are long for a verdict.
        Self::new(
            "Deployment",
            name,
            json!({ "replicas": 1, "progressDeadlineSeconds": 8 }),
        )
    }

    /// A DaemonSet.
    pub(crate) fn daemon_set(name: &str) -> Self {
        Self::new("DaemonSet", name, json!({}))
    }

    /// A StatefulSet of one replica.
    pub(crate) fn stateful_set(name: &str) -> Self {
        Self::new(
            "StatefulSet",
            name,
            json!({ "replicas": 1, "serviceName": name }),
        )
    }

    /// A Job whose pods do not end.
    pub(crate) fn job(name: &str) -> Self {
        let mut job = Self::new("Job", name, json!({}));
        job.template["spec"]["restartPolicy"] = json!("Never");
        job
    }

    fn new(kind: &'static str, name: &str, spec: Value) -> Self {
        let template = json!({
            "metadata": { "labels": { "app": name, "part-of": "{run}" } },
            "spec": {
                "terminationGracePeriodSeconds": 3,
                // Keeps the pods to the scenario's own nodes; all others are tainted.
                "tolerations": [{
                    "key": "scenario",
                    "operator": "Equal",
                    "value": "{run}",
                    "effect": "NoSchedule",
                }],
                "containers": [{
                    "name": "app",
                    "image": "example.com/app:1",
                    "volumeMounts": [{ "name": "data", "mountPath": "/data" }],
                    // Enough for the scheduler to prefer an emptier node.
                    "resources": { "requests": { "cpu": "1" } },
                }],
                "volumes": [{ "name": "data", "persistentVolumeClaim": { "claimName": "data" } }],
            },
        });
        Self {
            kind,
            name: name.to_owned(),
            spec,
            template,
        }
    }

    /// Sets a field of the workload's `spec`.
    pub(crate) fn spec(mut self, field: &str, value: Value) -> Self {
        self.spec[field] = value;
        self
    }

    /// Sets a field of the pod template's `spec`.
    pub(crate) fn pod(mut self, field: &str, value: Value) -> Self {
        self.template["spec"][field] = value;
        self
    }

    /// `spec.replicas`.
    pub(crate) fn replicas(self, replicas: u32) -> Self {
        self.spec("replicas", json!(replicas))
    }

    /// `spec.strategy: Recreate`.
    pub(crate) fn recreate(self) -> Self {
        self.spec("strategy", json!({ "type": "Recreate" }))
    }

    /// `spec.strategy: RollingUpdate` with these bounds, numbers or percentages.
    pub(crate) fn rolling(self, max_surge: &Value, max_unavailable: &Value) -> Self {
        let bounds = json!({ "maxSurge": max_surge, "maxUnavailable": max_unavailable });
        self.spec(
            "strategy",
            json!({ "type": "RollingUpdate", "rollingUpdate": bounds }),
        )
    }

    /// Required pod affinity on the hostname, as one term.
    pub(crate) fn near(self, term: Value) -> Self {
        self.pod(
            "affinity",
            json!({ "podAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [on_hostname(term)],
            }}),
        )
    }

    /// Required pod affinity on the hostname to its own pods.
    pub(crate) fn near_itself(self) -> Self {
        let term = json!({ "labelSelector": { "matchLabels": { "app": self.name } } });
        self.near(term)
    }

    /// Preferred pod affinity on the hostname to its own pods.
    pub(crate) fn rather_near_itself(self) -> Self {
        let term = json!({ "labelSelector": { "matchLabels": { "app": self.name } } });
        self.pod(
            "affinity",
            json!({ "podAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    { "weight": 100, "podAffinityTerm": on_hostname(term) },
                ],
            }}),
        )
    }

    /// Hard spread of its own pods over a topology.
    pub(crate) fn spread(self, topology_key: &str, further: &Value) -> Self {
        let mut constraint = json!({
            "maxSkew": 1,
            "topologyKey": topology_key,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": { "matchLabels": { "app": self.name } },
        });
        merge(&mut constraint, further);
        self.pod("topologySpreadConstraints", json!([constraint]))
    }

    /// Keeps the pods on one host.
    pub(crate) fn on_node(self, node: &str) -> Self {
        self.pod(
            "nodeSelector",
            json!({ "kubernetes.io/hostname": format!("{{run}}-{node}") }),
        )
    }

    /// CPUs each pod asks for; a node has 8.
    pub(crate) fn cpus(mut self, cpus: &str) -> Self {
        self.template["spec"]["containers"][0]["resources"]["requests"]["cpu"] = json!(cpus);
        self
    }

    /// Another claim than `data`.
    pub(crate) fn claim(mut self, claim: &str) -> Self {
        self.template["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"] = json!(claim);
        self
    }

    /// `readOnly: true` on the pod's claim source.
    pub(crate) fn read_only(mut self) -> Self {
        self.template["spec"]["volumes"][0]["persistentVolumeClaim"]["readOnly"] = json!(true);
        self
    }

    /// Pods without any volume.
    pub(crate) fn without_volume(self) -> Self {
        let mut this = self.pod("volumes", json!([]));
        this.template["spec"]["containers"][0]["volumeMounts"] = json!([]);
        this
    }

    /// Pods that leave an unreachable node after two seconds, not the usual five
    /// minutes.
    pub(crate) fn leaving_dead_nodes_soon(mut self) -> Self {
        for key in [
            "node.kubernetes.io/not-ready",
            "node.kubernetes.io/unreachable",
        ] {
            let toleration = json!({
                "key": key,
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": 2,
            });
            if let Some(tolerations) = self.template["spec"]["tolerations"].as_array_mut() {
                tolerations.push(toleration);
            }
        }
        self
    }

    /// The manifest.
    pub(crate) fn manifest(&self) -> Value {
        let mut spec = self.spec.clone();
        spec["template"] = self.template.clone();
        if self.kind != "Job" {
            spec["selector"] = json!({ "matchLabels": { "app": self.name } });
        }
        json!({
            "apiVersion": if self.kind == "Job" { "batch/v1" } else { "apps/v1" },
            "kind": self.kind,
            "metadata": { "name": self.name },
            "spec": spec,
        })
    }
}

fn on_hostname(mut term: Value) -> Value {
    term["topologyKey"] = json!("kubernetes.io/hostname");
    term
}

fn merge(into: &mut Value, from: &Value) {
    for (field, value) in from.as_object().into_iter().flatten() {
        into[field] = value.clone();
    }
}
