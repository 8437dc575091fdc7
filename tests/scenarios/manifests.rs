//! The objects scenarios are made of. `{run}` stands for the scenario's namespace,
//! whose name also keeps cluster-wide objects and nodes of different runs apart.

use serde_json::{Value, json};

use crate::harness::fake_nodes::{ATTACHING_DRIVER, ENDS_AFTER};

pub(crate) const HOSTNAME: &str = "kubernetes.io/hostname";
pub(crate) const ZONE: &str = "topology.kubernetes.io/zone";

/// A claim and its volume.
#[derive(Clone, Debug)]
pub(crate) struct Volume {
    /// What the volume's name ends with; the claim's too where nothing else is said.
    name: String,
    claim: String,
    claim_modes: Vec<&'static str>,
    volume_modes: Vec<&'static str>,
    source: Value,
    size: &'static str,
    labels: Value,
    affinity: Option<Value>,
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
            name: "data".to_owned(),
            claim: "data".to_owned(),
            claim_modes: modes.to_vec(),
            volume_modes: modes.to_vec(),
            source: csi(ATTACHING_DRIVER),
            size: "1Gi",
            labels: json!({}),
            affinity: None,
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

    /// Another name for the volume and the claim.
    pub(crate) fn named(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self.claim(name)
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
        self.source = csi(driver);
        self
    }

    /// The disk that the volume of this name is, too.
    pub(crate) fn same_disk_as(mut self, volume: &str) -> Self {
        self.source["csi"]["volumeHandle"] = json!(format!("{{run}}-{volume}"));
        self
    }

    /// A directory of one node instead of a CSI volume.
    pub(crate) fn local(mut self) -> Self {
        self.source = json!({ "local": { "path": "/mnt/data" } });
        self
    }

    /// A volume that exists on one node only: `a`, `b` or `c`.
    pub(crate) fn on_node(self, node: &'static str) -> Self {
        self.reaching(&json!([in_values(HOSTNAME, &format!("{{run}}-{node}"))]))
    }

    /// A volume for nodes whose labels fit these expressions.
    pub(crate) fn reaching(mut self, expressions: &Value) -> Self {
        self.affinity = Some(json!({ "required": {
            "nodeSelectorTerms": [{ "matchExpressions": expressions }],
        }}));
        self
    }

    /// Labels of the volume.
    pub(crate) fn labelled(mut self, labels: Value) -> Self {
        self.labels = labels;
        self
    }

    /// How large the volume is; the claim asks for 1Gi.
    pub(crate) fn size(mut self, size: &'static str) -> Self {
        self.size = size;
        self
    }

    /// See [`Binding`].
    pub(crate) fn binding(mut self, binding: Binding) -> Self {
        self.binding = binding;
        self
    }

    /// The volume: what an administrator or a provisioner made.
    pub(crate) fn storage(&self) -> Value {
        let mut spec = self.source.clone();
        if spec.pointer("/csi/volumeHandle") == Some(&Value::Null) {
            spec["csi"]["volumeHandle"] = json!(format!("{{run}}-{}", self.name));
        }
        spec["capacity"] = json!({ "storage": self.size });
        spec["accessModes"] = json!(self.volume_modes);
        spec["storageClassName"] = json!("{run}");
        if self.binding != Binding::None {
            spec["claimRef"] = json!({ "namespace": "{run}", "name": self.claim });
        }
        if let Some(affinity) = &self.affinity {
            spec["nodeAffinity"] = affinity.clone();
        }
        json!({
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": { "name": format!("{{run}}-{}", self.name), "labels": self.labels },
            "spec": spec,
        })
    }

    /// The provisioner of a class for such volumes.
    pub(crate) fn provisioner(&self) -> Value {
        let driver = self.source.pointer("/csi/driver").cloned();
        driver.unwrap_or_else(|| json!("kubernetes.io/no-provisioner"))
    }

    /// The claim, as its user wrote it.
    pub(crate) fn request(&self) -> Value {
        let mut claim = request(&self.claim, &self.claim_modes);
        if self.binding == Binding::Both {
            claim["spec"]["volumeName"] = json!(format!("{{run}}-{}", self.name));
        }
        claim
    }
}

/// A claim of the scenario's class.
pub(crate) fn request(name: &str, modes: &[&str]) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": { "name": name },
        "spec": claim_spec(modes),
    })
}

/// What a claim of the scenario's class asks for.
pub(crate) fn claim_spec(modes: &[&str]) -> Value {
    json!({
        "accessModes": modes,
        "storageClassName": "{run}",
        "resources": { "requests": { "storage": "1Gi" } },
    })
}

/// The handle is filled in once the volume has its name.
fn csi(driver: &str) -> Value {
    json!({ "csi": { "driver": driver, "volumeHandle": null } })
}

/// The scenario's class, `{run}`.
#[derive(Clone, Debug)]
pub(crate) struct Class {
    provisioner: Value,
    binding: &'static str,
    zones: Vec<&'static str>,
}

impl Class {
    /// A class that binds at once and may be served in every zone.
    pub(crate) fn new(provisioner: &Value) -> Self {
        Self {
            provisioner: provisioner.clone(),
            binding: "Immediate",
            zones: Vec::new(),
        }
    }

    /// Binds when the first pod of a claim is scheduled.
    pub(crate) fn waiting(mut self) -> Self {
        self.binding = "WaitForFirstConsumer";
        self
    }

    /// `allowedTopologies`: these zones only.
    pub(crate) fn in_zones(mut self, zones: &[&'static str]) -> Self {
        self.zones = zones.to_vec();
        self
    }

    /// The manifest.
    pub(crate) fn manifest(&self) -> Value {
        let mut class = json!({
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": { "name": "{run}" },
            "provisioner": self.provisioner,
            "volumeBindingMode": self.binding,
        });
        if !self.zones.is_empty() {
            class["allowedTopologies"] = json!([{
                "matchLabelExpressions": [{ "key": ZONE, "values": self.zones }],
            }]);
        }
        class
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
        Self::new("Job", name, json!({})).pod("restartPolicy", json!("Never"))
    }

    /// A CronJob whose time comes in the next leap year.
    pub(crate) fn cron_job(name: &str) -> Self {
        Self::new("CronJob", name, json!({ "schedule": "0 0 29 2 *" }))
            .pod("restartPolicy", json!("Never"))
    }

    /// A ReplicationController of one replica.
    pub(crate) fn replication_controller(name: &str) -> Self {
        Self::new("ReplicationController", name, json!({ "replicas": 1 }))
    }

    /// A pod that nobody replaces.
    pub(crate) fn bare_pod(name: &str) -> Self {
        Self::new("Pod", name, json!({})).pod("restartPolicy", json!("Never"))
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

    /// Adds a term to one of the six lists of `affinity`.
    fn affine(mut self, to: &str, strength: &str, term: Value) -> Self {
        let terms = &mut self.template["spec"]["affinity"][to][strength];
        match terms.as_array_mut() {
            Some(terms) => terms.push(term),
            None => *terms = json!([term]),
        }
        self
    }

    /// Required pod affinity on the hostname, as one term.
    pub(crate) fn near(self, term: Value) -> Self {
        self.near_over(HOSTNAME, term)
    }

    /// Required pod affinity on a topology, as one term.
    pub(crate) fn near_over(self, topology_key: &str, term: Value) -> Self {
        self.affine("podAffinity", REQUIRED, over(topology_key, term))
    }

    /// Required pod affinity on the hostname to its own pods.
    pub(crate) fn near_itself(self) -> Self {
        let own = self.own_pods();
        self.near(own)
    }

    /// Preferred pod affinity on the hostname to its own pods.
    pub(crate) fn rather_near_itself(self) -> Self {
        let own = self.own_pods();
        self.rather_near(HOSTNAME, own, 100)
    }

    /// Preferred pod affinity, as one term of this weight.
    pub(crate) fn rather_near(self, topology_key: &str, term: Value, weight: u32) -> Self {
        self.affine(
            "podAffinity",
            PREFERRED,
            weighted(topology_key, term, weight),
        )
    }

    /// Preferred anti-affinity on the hostname, as one term of the greatest weight.
    pub(crate) fn rather_apart(self, term: Value) -> Self {
        self.affine("podAntiAffinity", PREFERRED, weighted(HOSTNAME, term, 100))
    }

    /// Required anti-affinity on a topology to its own pods.
    pub(crate) fn apart_over(self, topology_key: &str) -> Self {
        let own = self.own_pods();
        self.apart(topology_key, own)
    }

    /// Required anti-affinity on a topology, as one term.
    pub(crate) fn apart(self, topology_key: &str, term: Value) -> Self {
        self.affine("podAntiAffinity", REQUIRED, over(topology_key, term))
    }

    /// The selector of its own pods, as the beginning of a term.
    fn own_pods(&self) -> Value {
        json!({ "labelSelector": { "matchLabels": { "app": self.name } } })
    }

    /// Required node affinity: one term with these expressions.
    pub(crate) fn on_nodes(mut self, expressions: &Value) -> Self {
        self.template["spec"]["affinity"]["nodeAffinity"][REQUIRED] =
            json!({ "nodeSelectorTerms": [{ "matchExpressions": expressions }] });
        self
    }

    /// Preferred node affinity to one host.
    pub(crate) fn rather_on_node(self, node: &str, weight: u32) -> Self {
        let host = in_values(HOSTNAME, &format!("{{run}}-{node}"));
        self.affine(
            "nodeAffinity",
            PREFERRED,
            json!({ "weight": weight, "preference": { "matchExpressions": [host] } }),
        )
    }

    /// Tolerates one more taint.
    pub(crate) fn tolerating(mut self, taint: &str) -> Self {
        if let Some(tolerations) = self.template["spec"]["tolerations"].as_array_mut() {
            tolerations.push(json!({ "key": taint, "operator": "Exists" }));
        }
        self
    }

    /// The revision of its image.
    pub(crate) fn image(self, revision: u32) -> Self {
        self.container("image", json!(format!("example.com/app:{revision}")))
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
            json!({ HOSTNAME: format!("{{run}}-{node}") }),
        )
    }

    /// Binds the pods to one node without the scheduler.
    pub(crate) fn bound_to(self, node: &str) -> Self {
        self.pod("nodeName", json!(format!("{{run}}-{node}")))
    }

    /// A port of the node.
    pub(crate) fn host_port(self, port: u16) -> Self {
        self.container(
            "ports",
            json!([{ "containerPort": port, "hostPort": port }]),
        )
    }

    /// The node's network, and a port in it.
    pub(crate) fn host_network(self, port: u16) -> Self {
        self.pod("hostNetwork", json!(true))
            .container("ports", json!([{ "containerPort": port }]))
    }

    /// Sets a field of its container.
    fn container(mut self, field: &str, value: Value) -> Self {
        self.template["spec"]["containers"][0][field] = value;
        self
    }

    /// One more resource that each pod asks for.
    pub(crate) fn resource(mut self, name: &str, amount: &str) -> Self {
        let resources = &mut self.template["spec"]["containers"][0]["resources"];
        resources["requests"][name] = json!(amount);
        resources["limits"][name] = json!(amount);
        self
    }

    /// Pods whose containers end by themselves after so many seconds.
    pub(crate) fn ends_after(mut self, seconds: u32) -> Self {
        self.template["metadata"]["annotations"] = json!({ ENDS_AFTER: seconds.to_string() });
        self
    }

    /// One more claim that the pods mount.
    pub(crate) fn also(mut self, claim: &str) -> Self {
        let spec = &mut self.template["spec"];
        let volume = json!({ "name": claim, "persistentVolumeClaim": { "claimName": claim } });
        let mount = json!({ "name": claim, "mountPath": format!("/{claim}") });
        if let Some(volumes) = spec["volumes"].as_array_mut() {
            volumes.push(volume);
        }
        if let Some(mounts) = spec["containers"][0]["volumeMounts"].as_array_mut() {
            mounts.push(mount);
        }
        self
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

    /// Pods that take as long to end as Kubernetes gives them by default, so that whoever
    /// waits for them is there, and told so, before they have gone.
    pub(crate) fn ends_slowly(self) -> Self {
        self.pod("terminationGracePeriodSeconds", json!(30))
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
        let labels = json!({ "app": self.name });
        let mut spec = self.spec.clone();
        match self.kind {
            "Pod" => return self.pod_manifest(),
            "CronJob" => {
                spec["jobTemplate"]["spec"]["template"] = self.template.clone();
            }
            _ => spec["template"] = self.template.clone(),
        }
        match self.kind {
            "Job" | "CronJob" => {}
            "ReplicationController" => spec["selector"] = labels,
            _ => spec["selector"] = json!({ "matchLabels": labels }),
        }
        json!({
            "apiVersion": match self.kind {
                "Job" | "CronJob" => "batch/v1",
                "ReplicationController" => "v1",
                _ => "apps/v1",
            },
            "kind": self.kind,
            "metadata": { "name": self.name },
            "spec": spec,
        })
    }

    fn pod_manifest(&self) -> Value {
        let mut pod = self.template.clone();
        pod["apiVersion"] = json!("v1");
        pod["kind"] = json!("Pod");
        pod["metadata"]["name"] = json!(self.name);
        pod
    }
}

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

fn over(topology_key: &str, mut term: Value) -> Value {
    term["topologyKey"] = json!(topology_key);
    term
}

fn weighted(topology_key: &str, term: Value, weight: u32) -> Value {
    json!({ "weight": weight, "podAffinityTerm": over(topology_key, term) })
}

/// A node's label has this value.
pub(crate) fn in_values(label: &str, value: &str) -> Value {
    json!({ "key": label, "operator": "In", "values": [value] })
}

fn merge(into: &mut Value, from: &Value) {
    for (field, value) in from.as_object().into_iter().flatten() {
        into[field] = value.clone();
    }
}
