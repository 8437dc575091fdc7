//! The objects of cases, in shorthand. `{ns}` is replaced by the case's namespace, whose name also
//! distinguishes the cluster-wide objects of different cases, `{big}` by 1.4 MB and `{large}` by
//! 250 KB of `<`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::harness::shorthand::{Claim, Shorthand, Storage};

/// A driver that attaches volumes, used by the class `disk`.
pub(crate) const DISK: &str = "disk.csi.example.com";
/// A driver that does not attach volumes, used by the class `share`.
pub(crate) const SHARE: &str = "share.csi.example.com";

/// The claims, by the names that cases use.
const CLAIMS: &str = "
rwo: {volume: [ReadWriteOnce]}
# Its volume can be ReadWriteMany too.
rwx: {volume: [ReadWriteOnce, ReadWriteMany]}
rwop: {modes: [ReadWriteOncePod], volume: [ReadWriteOncePod]}
on-node-a:
  volume: [ReadWriteOnce]
  volume_with: {spec: {nodeAffinity: {required: {nodeSelectorTerms: [
    {matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [node-a]}]}]}}}}
unattached:
  class: share
  volume: [ReadWriteOnce]
  volume_with: {spec: {csi: {driver: share.csi.example.com}}}
unbound: {}
";

/// The claim with this name in [`CLAIMS`], and its volume if it is bound.
pub(crate) fn claim(called: &str, namespace: &str, name: &str) -> (Option<Value>, Value) {
    let claims: BTreeMap<String, Claim> = serde_saphyr::from_str(CLAIMS).unwrap();
    let claim = &claims[called];
    let prefix = format!("{namespace}-");
    let storage =
        Storage { namespace, class: "disk", driver: DISK, volumes: &prefix, handles: &prefix };
    if claim.volume.is_none() {
        return (None, claim.manifest(name, &storage));
    }
    let [volume, claim] = claim.bound(name, &storage);
    (Some(volume), claim)
}

/// An object: a whole manifest if it has an `apiVersion`, otherwise shorthand. By default, its pods
/// use the claim `data`.
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
        shorthand.uses.get_or_insert_with(|| vec!["data".to_owned()]);
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

    /// Whether a controller owns it.
    pub(crate) fn is_owned(&self) -> bool {
        self.0.pointer("/metadata/ownerReferences").is_some()
    }
}

/// Replaces the placeholders in braces.
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
