//! The objects of cases, in shorthand. `{ns}` stands for the case's namespace, whose
//! name also keeps cluster-wide objects of different cases apart; `{big}` for 1.4 MB
//! and `{large}` for 250 KB of `<`.

use serde::Deserialize;
use serde_json::{Value, json};

/// A driver whose volumes are attached, and its class `disk`.
pub(crate) const DISK: &str = "disk.csi.example.com";
/// A driver whose volumes are not attached, and its class `share`.
pub(crate) const SHARE: &str = "share.csi.example.com";

/// A claim that exists.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Claim {
    /// ReadWriteOnce, bound to a volume with the same mode that is attached.
    Rwo,
    /// ReadWriteOnce, but its volume can be ReadWriteMany too.
    Rwx,
    /// ReadWriteOncePod, bound.
    Rwop,
    /// ReadWriteOnce, its volume on `node-a` alone.
    OnNodeA,
    /// ReadWriteOnce, its volume not attached.
    Unattached,
    /// ReadWriteOnce of class `disk`, not bound.
    Unbound,
}

impl Claim {
    const fn claim_mode(self) -> &'static str {
        match self {
            Self::Rwop => "ReadWriteOncePod",
            _ => "ReadWriteOnce",
        }
    }

    const fn class(self) -> &'static str {
        match self {
            Self::Unattached => "share",
            _ => "disk",
        }
    }

    /// The volume it is bound to, if it is.
    pub(crate) fn volume(self, namespace: &str, name: &str) -> Option<Value> {
        let modes = match self {
            Self::Unbound => return None,
            Self::Rwx => json!(["ReadWriteOnce", "ReadWriteMany"]),
            _ => json!([self.claim_mode()]),
        };
        let mut spec = json!({
            "capacity": { "storage": "1Gi" },
            "accessModes": modes,
            "storageClassName": self.class(),
            "persistentVolumeReclaimPolicy": "Retain",
            "claimRef": { "namespace": namespace, "name": name },
            "csi": {
                "driver": if matches!(self, Self::Unattached) { SHARE } else { DISK },
                "volumeHandle": format!("{namespace}-{name}"),
            },
        });
        if matches!(self, Self::OnNodeA) {
            spec["nodeAffinity"] = json!({ "required": { "nodeSelectorTerms": [{
                "matchExpressions": [{
                    "key": "kubernetes.io/hostname",
                    "operator": "In",
                    "values": ["node-a"],
                }],
            }]}});
        }
        Some(json!({
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": { "name": format!("{namespace}-{name}") },
            "spec": spec,
        }))
    }

    /// The claim.
    pub(crate) fn manifest(self, namespace: &str, name: &str) -> Value {
        let mut claim = json!({
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": { "name": name },
            "spec": {
                "accessModes": [self.claim_mode()],
                "storageClassName": self.class(),
                "resources": { "requests": { "storage": "1Gi" } },
            },
        });
        if !matches!(self, Self::Unbound) {
            claim["spec"]["volumeName"] = json!(format!("{namespace}-{name}"));
        }
        claim
    }
}

/// An object: a whole manifest when it has an `apiVersion`, otherwise shorthand.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "Value")]
pub(crate) struct Object(Value);

impl TryFrom<Value> for Object {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        if value.get("apiVersion").is_some() {
            return Ok(Self(value));
        }
        let shorthand: Shorthand =
            serde_json::from_value(value).map_err(|error| error.to_string())?;
        shorthand.expand().map(Self)
    }
}

impl Object {
    /// The manifest.
    pub(crate) fn manifest(&self, namespace: &str) -> Value {
        let mut manifest = self.0.clone();
        fill(&mut manifest, namespace);
        manifest
    }
}

/// Puts in what the words in braces stand for.
pub(crate) fn fill(value: &mut Value, namespace: &str) {
    match value {
        Value::String(text) => match text.as_str() {
            "{big}" => *text = "<".repeat(1_400_000),
            "{large}" => *text = "<".repeat(250_000),
            _ => *text = text.replace("{ns}", namespace),
        },
        Value::Array(items) => items.iter_mut().for_each(|item| fill(item, namespace)),
        Value::Object(fields) => fields.values_mut().for_each(|field| fill(field, namespace)),
        _ => {}
    }
}

/// An object in few words.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Shorthand {
    kind: String,
    /// `web` unless it says otherwise; claims are called `data`.
    #[serde(default)]
    name: Option<String>,
    /// The claims its pods use; `data` unless it says otherwise.
    #[serde(default)]
    uses: Option<Vec<String>>,
    /// `spec.replicas`, or a Job's `spec.parallelism`.
    #[serde(default)]
    replicas: Option<i64>,
    /// `spec.strategy`, or its type alone.
    #[serde(default)]
    strategy: Value,
    /// Required affinity to pods labelled `app` with this value, on the hostname.
    #[serde(default)]
    beside: Option<String>,
    /// The kind of its controller, whose account then asks for it.
    #[serde(default)]
    owner: Option<String>,
    /// Merged into the pods' spec.
    #[serde(default)]
    pod: Value,
    /// Merged into the object.
    #[serde(default)]
    with: Value,
}

impl Shorthand {
    fn expand(&self) -> Result<Value, String> {
        let name = match (&self.name, self.kind.as_str()) {
            (Some(name), _) => name,
            (None, "PersistentVolumeClaim") => "data",
            (None, _) => "web",
        };
        let labels = json!({ "app": name });
        let mut template = json!({ "metadata": { "labels": labels }, "spec": self.pod_spec() });
        let selector = json!({ "matchLabels": labels });
        let (api_version, spec) = match self.kind.as_str() {
            "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet" => (
                "apps/v1",
                json!({ "selector": selector, "template": template }),
            ),
            "Job" | "CronJob" => {
                template["spec"]["restartPolicy"] = json!("Never");
                let mut job = json!({ "template": template });
                if let Some(parallelism) = self.replicas {
                    job["parallelism"] = json!(parallelism);
                }
                let spec = match self.kind.as_str() {
                    "Job" => job,
                    _ => json!({ "schedule": "0 3 * * *", "jobTemplate": { "spec": job } }),
                };
                ("batch/v1", spec)
            }
            "Pod" => ("v1", template["spec"].take()),
            "HorizontalPodAutoscaler" => (
                "autoscaling/v2",
                json!({
                    "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "web" },
                    "maxReplicas": 5,
                }),
            ),
            "PersistentVolumeClaim" => (
                "v1",
                json!({
                    "accessModes": ["ReadWriteOnce"],
                    "storageClassName": "disk",
                    "resources": { "requests": { "storage": "1Gi" } },
                }),
            ),
            other => return Err(format!("there is no shorthand for a {other}")),
        };
        let mut object = json!({
            "apiVersion": api_version,
            "kind": self.kind,
            "metadata": { "name": name, "labels": labels },
            "spec": spec,
        });
        if let Some(replicas) = self.replicas
            && !matches!(self.kind.as_str(), "Job" | "CronJob")
        {
            object["spec"]["replicas"] = json!(replicas);
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
        Ok(object)
    }

    fn pod_spec(&self) -> Value {
        let data = vec!["data".to_owned()];
        let volumes: Vec<Value> = self
            .uses
            .as_ref()
            .unwrap_or(&data)
            .iter()
            .map(|claim| json!({ "name": claim, "persistentVolumeClaim": { "claimName": claim } }))
            .collect();
        let mut spec = json!({ "containers": [{ "name": "main", "image": "example.com/app:1" }] });
        if !volumes.is_empty() {
            spec["volumes"] = Value::Array(volumes);
        }
        if let Some(app) = &self.beside {
            spec["affinity"] = json!({ "podAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [{
                    "labelSelector": { "matchLabels": { "app": app } },
                    "topologyKey": "kubernetes.io/hostname",
                }],
            }});
        }
        merge(&mut spec, &self.pod);
        spec
    }
}

/// Merges what is given, if anything is.
pub(crate) fn merge(object: &mut Value, with: &Value) {
    if !with.is_null() {
        json_patch::merge(object, with);
    }
}
