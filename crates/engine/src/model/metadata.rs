//! The metadata of an object.

use jiff::Timestamp;
use serde::de::Deserializer;
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

use super::Text;
use super::de::{Borrowed, LONGEST_NAME, for_each, name, nullable};
use super::labels::{Labels, filtered};
use super::object::group_of;
use super::ser::is_default;
use super::uid::Uid;

/// The prefix of the project's own annotations and labels.
pub(crate) const PREFIX: &str = "multi-attach-guard.dev/";

/// The annotation that makes a class the default one (Kubernetes documentation,
/// "Change the default StorageClass").
pub(crate) const DEFAULT_CLASS: &str = "storageclass.kubernetes.io/is-default-class";

/// The older name of [`DEFAULT_CLASS`], still honoured by Kubernetes.
pub(crate) const DEFAULT_CLASS_BETA: &str = "storageclass.beta.kubernetes.io/is-default-class";

/// The older way to name a claim's class, which Kubernetes still honours and which takes
/// precedence over the field (`GetPersistentVolumeClaimClass` in its source).
pub(crate) const CLASS_BETA: &str = "volume.beta.kubernetes.io/storage-class";

/// The label that the API server gives every namespace: its name (Kubernetes documentation,
/// "Well-Known Labels").
pub(crate) const NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";

/// The annotation of a namespace whose labels, as `key=value,…`, every node of its pods must have
/// in OpenShift.
pub(crate) const NODE_SELECTOR: &str = "openshift.io/node-selector";

/// The annotation that makes KEDA leave a workload's replicas as they are (KEDA's documentation,
/// "Pause autoscaling").
pub(super) const KEDA_PAUSED: &str = "autoscaling.keda.sh/paused";

/// The annotation that makes KEDA keep a workload at a number of replicas.
pub(crate) const KEDA_PAUSED_REPLICAS: &str = "autoscaling.keda.sh/paused-replicas";

/// The annotation that makes KEDA never add replicas.
pub(super) const KEDA_PAUSED_SCALE_OUT: &str = "autoscaling.keda.sh/paused-scale-out";

/// Finalizers of Nodes whose controllers drain the node and wait for its volumes to be
/// detached before they remove the finalizer (Karpenter's documentation, "Disruption").
pub(crate) const DRAINING: [&str; 1] = ["karpenter.sh/termination"];

/// Whether an object can have this name: a DNS subdomain name (RFC 1123), as Kubernetes requires
/// of all kinds here.
pub fn is_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    name.len() <= LONGEST_NAME
        && name.split('.').all(|part| {
            part.starts_with(is_plain)
                && part.ends_with(is_plain)
                && part.chars().all(|c| is_plain(c) || c == '-')
        })
}

/// The metadata that decisions and messages use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Metadata {
    /// The name; empty if the API server will generate one.
    #[serde(deserialize_with = "name", skip_serializing_if = "is_default")]
    pub name: Text,
    /// The prefix of the generated name.
    #[serde(deserialize_with = "name", skip_serializing_if = "is_default")]
    pub generate_name: Text,
    /// The namespace; empty for objects that have none.
    #[serde(deserialize_with = "name", skip_serializing_if = "is_default")]
    pub namespace: Text,
    /// The uid; unknown if the object does not exist yet.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_default")]
    pub uid: Uid,
    /// The creation time as RFC 3339 in UTC with whole seconds, as the API server writes it, so
    /// that texts compare like times; empty if unknown.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_default")]
    pub creation_timestamp: Text,
    /// All labels.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_default")]
    pub labels: Labels,
    /// The annotations that the guard reads; others are skipped.
    #[serde(deserialize_with = "relevant_annotations", skip_serializing_if = "is_default")]
    pub annotations: Labels,
    /// The controller, if there is one. Boxed, because few objects in a snapshot have one.
    #[serde(
        rename = "ownerReferences",
        deserialize_with = "controlling",
        serialize_with = "only_owner",
        skip_serializing_if = "is_default"
    )]
    pub controller: Option<Box<Controller>>,
    /// Whether a controller drains the node before the object is gone: it has one of the
    /// finalizers in `DRAINING`.
    #[serde(rename = "finalizers", deserialize_with = "any_that_drains", skip_serializing)]
    pub drained_first: bool,
    /// The time of the deletion or, for a pod, the end of its grace period; `None` unless the
    /// object is being deleted.
    #[serde(deserialize_with = "time", skip_serializing_if = "is_default")]
    pub deletion_timestamp: Option<Timestamp>,
}

impl Metadata {
    /// Whether the object is being deleted.
    pub const fn is_being_deleted(&self) -> bool {
        self.deletion_timestamp.is_some()
    }

    /// The creation time, if it is known.
    pub fn created(&self) -> Option<Timestamp> {
        self.creation_timestamp.parse().ok()
    }

    /// Whether an annotation of KEDA's is set. A value that Go does not read as a boolean counts as
    /// true (`getBoolAnnotation` in KEDA's `apis/keda/v1alpha1/scaledobject_types.go`).
    pub(super) fn is_set(&self, annotation: &str) -> bool {
        let value = self.annotations.get(annotation);
        value.is_some_and(|value| !matches!(value, "0" | "f" | "F" | "false" | "False" | "FALSE"))
    }

    /// The name for messages: the real one, or the prefix with `*` for a generated one.
    pub fn shown_name(&self) -> Text {
        if self.name.is_empty() && !self.generate_name.is_empty() {
            format!("{}*", self.generate_name).into()
        } else {
            self.name.clone()
        }
    }
}

/// The owner that controls the object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Controller {
    /// The `apiVersion` of the owner, `apps/v1` for example.
    pub api_version: Text,
    /// The owner's kind, `Deployment` for example.
    pub kind: Text,
    /// The owner's name.
    pub name: Text,
    /// The owner's uid.
    #[serde(deserialize_with = "nullable")]
    pub uid: Uid,
    /// Whether it is the controller: other owners are not kept.
    #[serde(deserialize_with = "nullable")]
    pub(crate) controller: bool,
}

impl Controller {
    /// The owner's API group, `apps` for example, empty for the core one.
    pub fn group(&self) -> &str {
        group_of(&self.api_version)
    }
}

/// Reads the annotations that the guard reads.
fn relevant_annotations<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Labels, D::Error> {
    const RELEVANT: [&str; 7] = [
        DEFAULT_CLASS,
        DEFAULT_CLASS_BETA,
        CLASS_BETA,
        NODE_SELECTOR,
        KEDA_PAUSED,
        KEDA_PAUSED_REPLICAS,
        KEDA_PAUSED_SCALE_OUT,
    ];
    filtered(deserializer, |key| key.starts_with(PREFIX) || RELEVANT.contains(&key))
}

fn any_that_drains<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    let mut drains = false;
    for_each(deserializer, "a list", |Borrowed(finalizer)| {
        drains |= DRAINING.contains(&&*finalizer);
    })?;
    Ok(drains)
}

/// Reads a time; `None` for an invalid text, which the API server refuses and so never sends.
pub(crate) fn time<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Timestamp>, D::Error> {
    let text = Option::<Borrowed<'_>>::deserialize(deserializer)?;
    Ok(text.and_then(|Borrowed(text)| rfc_3339(&text)))
}

/// The time, if Go reads the text as one (`time.RFC3339`): `2026-01-01T00:00:00Z`, possibly with a
/// fraction of a second or another offset.
fn rfc_3339(text: &str) -> Option<Timestamp> {
    let shape = |(at, byte): (usize, u8)| match at {
        4 | 7 => byte == b'-',
        10 => byte == b'T',
        13 | 16 => byte == b':',
        0..19 => byte.is_ascii_digit(),
        19 => matches!(byte, b'.' | b'Z' | b'+' | b'-'),
        _ => byte.is_ascii_digit() || matches!(byte, b'Z' | b'+' | b'-' | b':'),
    };
    if text.len() > 19 && text.bytes().enumerate().all(shape) { text.parse().ok() } else { None }
}

/// Reads the owner whose controller writes the object.
fn controlling<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Box<Controller>>, D::Error> {
    let mut controller = None;
    for_each(deserializer, "a list", |owner: Controller| {
        if controller.is_none() && owner.controller {
            controller = Some(Box::new(owner));
        }
    })?;
    Ok(controller)
}

#[allow(clippy::ref_option, reason = "serde passes references")]
fn only_owner<S: Serializer>(
    controller: &Option<Box<Controller>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(controller)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_objects_may_have() {
        for name in ["a", "data-rwx", "data.v2", "0"] {
            assert!(is_name(name), "{name}");
        }
        let long = "a".repeat(254);
        for name in ["", "-a", "a-", "a..b", "A", "a_b", "a b", "../a", &long] {
            assert!(!is_name(name), "{name}");
        }
    }

    #[test]
    fn only_a_time_says_that_an_object_is_being_deleted() {
        let cases = [
            ("\"2026-01-01T00:00:00Z\"", Some(true)),
            ("\"2026-01-01T00:00:00.5Z\"", Some(true)),
            ("\"2026-01-01T00:00:00+02:00\"", Some(true)),
            ("null", Some(false)),
            ("\"\"", Some(false)),
            ("\"yes\"", Some(false)),
            ("\"2026-01-01\"", Some(false)),
            ("\"2026-01-01 00:00:00Z\"", Some(false)),
            ("\"2026-01-01t00:00:00z\"", Some(false)),
            ("\"2026-01-01T00:00:00\"", Some(false)),
            ("\"2026-13-01T00:00:00Z\"", Some(false)),
            ("\"2026-01-01T00:00:00Z[UTC]\"", Some(false)),
            ("true", None),
            ("{}", None),
        ];
        for (time, expected) in cases {
            let deleted =
                serde_json::from_str::<Metadata>(&format!(r#"{{"deletionTimestamp":{time}}}"#))
                    .ok()
                    .map(|metadata| metadata.is_being_deleted());
            assert_eq!(deleted, expected, "{time}");
        }
    }

    #[test]
    fn only_what_matters_is_kept() {
        let metadata: Metadata = serde_json::from_str(
            r#"{"name":"web","namespace":"shop","labels":{"b":"2","a":"1"},
                "annotations":{"kubectl.kubernetes.io/last-applied-configuration":"long","multi-attach-guard.dev/action":"warn"},
                "managedFields":[{"x":1}],"creationTimestamp":null,
                "ownerReferences":[{"kind":"Shop","name":"s","controller":true}],
                "deletionTimestamp":"2026-01-01T00:00:00Z"}"#,
        )
        .unwrap();
        assert_eq!(metadata.labels.iter().collect::<Vec<_>>(), [("a", "1"), ("b", "2")]);
        assert_eq!(metadata.annotations.iter().count(), 1);
        assert!(metadata.is_being_deleted());
        assert_eq!(metadata.controller.unwrap().kind, "Shop");
    }
}
