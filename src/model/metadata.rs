//! What is read of an object's metadata.

use serde::Deserialize;
use serde::de::Deserializer;

use super::Text;
use super::de::{nullable, present};
use super::labels::{Labels, filtered};

/// The prefix of the project's own annotations and labels.
pub const PREFIX: &str = "multi-attach-guard.dev/";

/// Annotation that makes a class the default one (Kubernetes documentation,
/// "Change the default StorageClass").
pub const DEFAULT_CLASS: &str = "storageclass.kubernetes.io/is-default-class";

/// The older name of [`DEFAULT_CLASS`], still honoured by Kubernetes.
pub const DEFAULT_CLASS_BETA: &str = "storageclass.beta.kubernetes.io/is-default-class";

/// The older way to name a claim's class, still honoured by Kubernetes and
/// stronger than the field (`GetPersistentVolumeClaimClass` in its source).
pub const CLASS_BETA: &str = "volume.beta.kubernetes.io/storage-class";

/// The metadata that decisions and messages use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Metadata {
    /// The name; empty where the API server will generate one.
    #[serde(default, deserialize_with = "nullable")]
    pub name: Text,
    /// The prefix of a name to be generated.
    #[serde(default, deserialize_with = "nullable")]
    pub generate_name: Text,
    /// The namespace; empty for objects that have none.
    #[serde(default, deserialize_with = "nullable")]
    pub namespace: Text,
    /// All labels.
    #[serde(default, deserialize_with = "nullable")]
    pub labels: Labels,
    /// The annotations that mean something here; the others are not kept.
    #[serde(default, deserialize_with = "relevant_annotations")]
    pub annotations: Labels,
    /// Who controls the object, where somebody does. Apart, as few that are kept have one.
    #[serde(default, rename = "ownerReferences", deserialize_with = "controller")]
    pub controller: Option<Box<Controller>>,
    /// Whether the object is being deleted.
    #[serde(default, rename = "deletionTimestamp", deserialize_with = "present")]
    pub deleting: bool,
}

impl Metadata {
    /// The name to show: the real one, or the prefix with `*` for what will be generated.
    #[must_use]
    pub fn shown_name(&self) -> Text {
        if self.name.is_empty() && !self.generate_name.is_empty() {
            let mut shown = self.generate_name.clone();
            shown.push('*');
            shown
        } else {
            self.name.clone()
        }
    }
}

/// The owner whose controller writes the object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Controller {
    /// The owner's API group, `apps` for example, empty for the core one.
    pub group: Text,
    /// The owner's kind, `Deployment` for example.
    pub kind: Text,
    /// The owner's name.
    pub name: Text,
}

/// Reads annotations, keeping those that mean something here.
pub(super) fn relevant_annotations<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Labels, D::Error> {
    filtered(deserializer, |key| {
        key.starts_with(PREFIX)
            || key == DEFAULT_CLASS
            || key == DEFAULT_CLASS_BETA
            || key == CLASS_BETA
    })
}

fn controller<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Box<Controller>>, D::Error> {
    #[derive(Deserialize)]
    struct Owner {
        #[serde(default, rename = "apiVersion")]
        api_version: Text,
        #[serde(default)]
        kind: Text,
        #[serde(default)]
        name: Text,
        #[serde(default)]
        controller: Option<bool>,
    }

    let owners = Option::<Vec<Owner>>::deserialize(deserializer)?.unwrap_or_default();
    Ok(owners
        .into_iter()
        .find(|owner| owner.controller == Some(true))
        .map(|owner| {
            Box::new(Controller {
                group: owner
                    .api_version
                    .split_once('/')
                    .map_or_else(Text::default, |(group, _)| group.into()),
                kind: owner.kind,
                name: owner.name,
            })
        }))
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(
            metadata.labels.iter().collect::<Vec<_>>(),
            [("a", "1"), ("b", "2")]
        );
        assert_eq!(metadata.annotations.iter().count(), 1);
        assert_eq!(metadata.controller.unwrap().kind, "Shop");
        assert!(metadata.deleting);
    }
}
