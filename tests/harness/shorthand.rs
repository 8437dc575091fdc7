//! A shorthand for the objects of test cases: workloads, claims and their volumes.

use serde::Deserialize;
use serde_json::{Value, json};

/// The shorthand of a claim and its volume.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Claim {
    /// The access modes that the claim requests.
    pub(crate) modes: Vec<String>,
    /// The access modes of its volume; `None` if there is no volume.
    pub(crate) volume: Option<Vec<String>>,
    /// Merged into the volume's manifest.
    pub(crate) volume_with: Value,
    /// The class, if it differs from [`Storage::class`].
    pub(crate) class: Option<String>,
    /// Merged into the claim's manifest.
    pub(crate) with: Value,
    /// Whether a later step of the test makes the claim; its volume exists from the start.
    pub(crate) later: bool,
}

impl Default for Claim {
    fn default() -> Self {
        Self {
            modes: vec!["ReadWriteOnce".to_owned()],
            volume: None,
            volume_with: Value::Null,
            class: None,
            with: Value::Null,
            later: false,
        }
    }
}

/// The common properties of the claims of a cluster.
pub(crate) struct Storage<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) class: &'a str,
    pub(crate) driver: &'a str,
    /// The prefix of volume names; the claim's name follows.
    pub(crate) volumes: &'a str,
    /// The prefix of volume handles.
    pub(crate) handles: &'a str,
}

impl Claim {
    /// A ReadWriteOnce claim with a ReadWriteOnce volume.
    pub(crate) fn exclusive() -> Self {
        Self::with_mode("ReadWriteOnce")
    }

    /// A claim with this access mode, and a volume with the same.
    pub(crate) fn with_mode(mode: &str) -> Self {
        let modes = vec![mode.to_owned()];
        Self { volume: Some(modes.clone()), modes, ..Self::default() }
    }

    fn class<'a>(&'a self, storage: &Storage<'a>) -> &'a str {
        self.class.as_deref().unwrap_or(storage.class)
    }

    /// The claim as its user wrote it.
    pub(crate) fn manifest(&self, name: &str, storage: &Storage<'_>) -> Value {
        let mut claim = json!({
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": { "name": name, "namespace": storage.namespace },
            "spec": {
                "accessModes": self.modes,
                "storageClassName": self.class(storage),
                "resources": { "requests": { "storage": "1Gi" } },
            },
        });
        merge(&mut claim, &self.with);
        claim
    }

    /// The volume, which names its claim as a provisioner would.
    pub(crate) fn volume(&self, name: &str, storage: &Storage<'_>) -> Option<Value> {
        let mut volume = json!({
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": { "name": format!("{}{name}", storage.volumes) },
            "spec": {
                "accessModes": self.volume.as_ref()?,
                "capacity": { "storage": "1Gi" },
                "storageClassName": self.class(storage),
                "csi": {
                    "driver": storage.driver,
                    "volumeHandle": format!("{}{name}", storage.handles),
                },
                "claimRef": { "namespace": storage.namespace, "name": name },
            },
        });
        merge(&mut volume, &self.volume_with);
        Some(volume)
    }

    /// The volume, and the claim with the volume's name.
    pub(crate) fn bound(&self, name: &str, storage: &Storage<'_>) -> [Value; 2] {
        let volume = self.volume(name, storage).unwrap();
        let mut claim = self.manifest(name, storage);
        claim["spec"]["volumeName"] = volume["metadata"]["name"].clone();
        [volume, claim]
    }

    /// The volume and the claim of a class; the volume is called `NAMESPACE-NAME`.
    pub(crate) fn bound_in(
        &self,
        namespace: &str,
        name: &str,
        [class, driver]: [&str; 2],
    ) -> [Value; 2] {
        let prefix = format!("{namespace}-");
        let storage = Storage { namespace, class, driver, volumes: &prefix, handles: &prefix };
        self.bound(name, &storage)
    }
}

/// A ReadWriteOnce claim and its volume, bound to each other. The volume is called
/// `NAMESPACE-NAME`.
pub(crate) fn bound_claim(namespace: &str, name: &str, driver: &str) -> [Value; 2] {
    Claim::exclusive().bound_in(namespace, name, ["", driver])
}

/// The manifest of an object in shorthand.
pub(crate) fn object(shorthand: Value) -> Value {
    let shorthand: Shorthand = serde_json::from_value(shorthand).unwrap();
    shorthand.manifest()
}

/// The manifest of a YAML list of objects in shorthand.
pub(crate) fn list(shorthand: &str) -> String {
    let objects: Vec<Shorthand> = serde_saphyr::from_str(shorthand).unwrap();
    let items: Vec<Value> = objects.iter().map(Shorthand::manifest).collect();
    json!({ "apiVersion": "v1", "kind": "List", "items": items }).to_string()
}

/// The shorthand of an object: its kind, the claims that its pods use, and anything else to merge.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Shorthand {
    kind: String,
    /// By default `web`; for claims `data`.
    #[serde(default)]
    name: Option<String>,
    /// `None` if the request that creates the object sets the namespace.
    #[serde(default)]
    pub(crate) namespace: Option<String>,
    /// The claims its pods use.
    #[serde(default)]
    pub(crate) uses: Option<Vec<String>>,
    /// `spec.replicas`, or a Job's `spec.parallelism`.
    #[serde(default)]
    replicas: Option<i64>,
    /// `spec.strategy`, or its type alone.
    #[serde(default)]
    strategy: Value,
    /// Required affinity to pods with these labels, on the host name.
    #[serde(default)]
    beside: Option<Value>,
    /// Required anti-affinity to pods with these labels, on the host name.
    #[serde(default)]
    apart_from: Option<Value>,
    /// The labels of the object and its pods; by default `app` with the name.
    #[serde(default)]
    labels: Option<Value>,
    /// The kind of its controller.
    #[serde(default)]
    owner: Option<String>,
    /// Merged into the pods' spec.
    #[serde(default)]
    pod: Value,
    /// Merged into the pods' container.
    #[serde(default)]
    container: Value,
    /// Merged into the object.
    #[serde(default)]
    with: Value,
}

impl Shorthand {
    /// The manifest.
    pub(crate) fn manifest(&self) -> Value {
        let name = match (self.name.as_deref(), self.kind.as_str()) {
            (Some(name), _) => name,
            (None, "PersistentVolumeClaim") => "data",
            (None, _) => "web",
        };
        let labels = self.labels.clone().unwrap_or(json!({ "app": name }));
        let template = json!({ "metadata": { "labels": labels }, "spec": self.pod_spec() });
        let mut object = json!({
            "apiVersion": self.api_version(),
            "kind": self.kind,
            "metadata": { "name": name, "labels": labels },
        });
        if let Some(spec) = self.spec(&labels, template) {
            object["spec"] = spec;
        }
        if let Some(namespace) = &self.namespace {
            object["metadata"]["namespace"] = json!(namespace);
        }
        match &self.strategy {
            Value::Null => {}
            Value::String(kind) => object["spec"]["strategy"] = json!({ "type": kind }),
            whole => object["spec"]["strategy"] = whole.clone(),
        }
        if let Some(kind) = &self.owner {
            object["metadata"]["ownerReferences"] = json!([{
                "apiVersion": match kind.as_str() {
                    "Deployment" | "ReplicaSet" => "apps/v1",
                    "CronJob" => "batch/v1",
                    _ => "example.com/v1",
                },
                "kind": kind,
                "name": "owner",
                "uid": "00000000-0000-4000-8000-000000000000",
                "controller": true,
            }]);
        }
        merge(&mut object, &self.with);
        object
    }

    fn api_version(&self) -> &'static str {
        match self.kind.as_str() {
            "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet" => "apps/v1",
            "Job" | "CronJob" => "batch/v1",
            "HorizontalPodAutoscaler" => "autoscaling/v2",
            "Scale" => "autoscaling/v1",
            "StorageClass" | "CSIDriver" | "CSINode" | "VolumeAttachment" => "storage.k8s.io/v1",
            "Lease" => "coordination.k8s.io/v1",
            "RuntimeClass" => "node.k8s.io/v1",
            "Rollout" => "argoproj.io/v1alpha1",
            "ScaledObject" | "ScaledJob" => "keda.sh/v1alpha1",
            "DeploymentConfig" => "apps.openshift.io/v1",
            "CloneSet" => "apps.kruise.io/v1alpha1",
            _ => "v1",
        }
    }

    /// The required spec of the kind; `None` if it requires nothing.
    fn spec(&self, labels: &Value, mut template: Value) -> Option<Value> {
        let replicas = |mut spec: Value, field: &str| {
            if let Some(replicas) = self.replicas {
                spec[field] = json!(replicas);
            }
            spec
        };
        Some(match self.kind.as_str() {
            "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet" | "Rollout" | "CloneSet" => {
                replicas(
                    json!({ "selector": { "matchLabels": labels }, "template": template }),
                    "replicas",
                )
            }
            "ReplicationController" | "DeploymentConfig" => {
                replicas(json!({ "selector": labels, "template": template }), "replicas")
            }
            "Job" | "CronJob" => {
                template["spec"]["restartPolicy"] = json!("Never");
                let job = replicas(json!({ "template": template }), "parallelism");
                match self.kind.as_str() {
                    "Job" => job,
                    _ => json!({ "schedule": "0 3 * * *", "jobTemplate": { "spec": job } }),
                }
            }
            "ScaledJob" => {
                template["spec"]["restartPolicy"] = json!("Never");
                json!({ "jobTargetRef": { "template": template } })
            }
            "Pod" => template["spec"].take(),
            "ScaledObject" => json!({ "scaleTargetRef": { "name": "web" } }),
            "HorizontalPodAutoscaler" => json!({
                "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "web" },
                "maxReplicas": 5,
            }),
            "PersistentVolumeClaim" => json!({
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "disk",
                "resources": { "requests": { "storage": "1Gi" } },
            }),
            _ => return None,
        })
    }

    fn pod_spec(&self) -> Value {
        let volumes: Vec<Value> = self
            .uses
            .iter()
            .flatten()
            .map(|claim| json!({ "name": claim, "persistentVolumeClaim": { "claimName": claim } }))
            .collect();
        let mut container = json!({ "name": "main", "image": "example.com/app:1" });
        merge(&mut container, &self.container);
        let mut spec = json!({ "containers": [container] });
        if !volumes.is_empty() {
            spec["volumes"] = Value::Array(volumes);
        }
        for (labels, field) in
            [(&self.beside, "podAffinity"), (&self.apart_from, "podAntiAffinity")]
        {
            if let Some(labels) = labels {
                spec["affinity"][field] = json!({ "requiredDuringSchedulingIgnoredDuringExecution": [{
                    "labelSelector": { "matchLabels": labels },
                    "topologyKey": "kubernetes.io/hostname",
                }]});
            }
        }
        merge(&mut spec, &self.pod);
        mount_all(&mut spec);
        spec
    }
}

/// Mounts every volume in the first container, unless the container names its mounts.
fn mount_all(spec: &mut Value) {
    let volumes = spec["volumes"].as_array().into_iter().flatten();
    let mounts: Vec<Value> = volumes
        .map(|volume| json!({ "name": volume["name"], "mountPath": format!("/mnt/{}", volume["name"].as_str().unwrap_or_default()) }))
        .collect();
    let container = spec.pointer_mut("/containers/0").and_then(Value::as_object_mut);
    if let Some(container) = container
        && !mounts.is_empty()
    {
        container.entry("volumeMounts").or_insert(Value::Array(mounts));
    }
}

/// Merges `with` into the object, unless it is null.
pub(crate) fn merge(object: &mut Value, with: &Value) {
    if !with.is_null() {
        json_patch::merge(object, with);
    }
}
