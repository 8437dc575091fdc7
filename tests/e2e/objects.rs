//! The objects of cases, in shorthand. `{ns}` stands for the case's namespace, whose
//! name also keeps cluster-wide objects of different cases apart; `{big}` for 1.4 MB
//! and `{large}` for 250 KB of `<`.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::harness::shorthand::Shorthand;

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

/// An object: a whole manifest when it has an `apiVersion`, otherwise shorthand, whose
/// pods use the claim `data` unless it says otherwise.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "Value")]
pub(crate) struct Object(Value);

impl TryFrom<Value> for Object {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        if value.get("apiVersion").is_some() {
            return Ok(Self(value));
        }
        let mut shorthand: Shorthand =
            serde_json::from_value(value).map_err(|error| error.to_string())?;
        shorthand
            .uses
            .get_or_insert_with(|| vec!["data".to_owned()]);
        Ok(Self(shorthand.manifest()))
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
