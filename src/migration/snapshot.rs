//! The snapshot from which a new claim is filled.

use serde::Deserialize;
use serde_json::{Value, json};

use super::error::MigrationBlocked;
use super::subject::Subject;
use super::target::Target;
use super::{MigrationInput, Wanted};
use crate::model::Text;
use crate::model::de::nullable;
use crate::model::labels::Labels;

/// The annotation of the class that snapshots without one get (external-snapshotter,
/// `IsDefaultSnapshotClassAnnotation`).
const DEFAULT: &str = "snapshot.storage.kubernetes.io/is-default-class";

/// A VolumeSnapshotClass.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct SnapshotClass {
    metadata: Metadata,
    /// The driver that makes its snapshots.
    #[serde(deserialize_with = "nullable")]
    driver: Text,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Metadata {
    name: Text,
    #[serde(deserialize_with = "nullable")]
    annotations: Labels,
}

/// The class with which the claim is snapshotted so that `target` can restore it; `None`
/// where it is not known whether there is one, and the default one is left to decide.
pub(super) fn class<'a>(
    subject: &Subject<'_>,
    target: &Target<'_>,
    wanted: Wanted<'_>,
    facts: MigrationInput<'a>,
) -> Result<Option<&'a Text>, MigrationBlocked> {
    let is_known = !subject.driver.is_empty() && !target.driver.is_empty();
    if is_known && subject.driver != target.driver {
        return Err(MigrationBlocked::SnapshotOfAnotherDriver {
            claim: wanted.claim.to_owned(),
            from: subject.driver.to_string(),
            class: target.class.to_string(),
            to: target.driver.to_string(),
        });
    }
    let Some(classes) = facts.snapshot_classes else {
        return Ok(None);
    };
    let suited = classes.iter().filter(|it| it.driver == subject.driver);
    let is_default = |it: &SnapshotClass| it.metadata.annotations.get(DEFAULT) == Some("true");
    suited
        .min_by_key(|it| (!is_default(it), it.metadata.name.clone()))
        .map(|it| Some(&it.metadata.name))
        .ok_or_else(|| MigrationBlocked::NoSnapshotClass(subject.driver.to_string()))
}

/// The snapshot `name` of the claim.
pub(super) fn manifest(name: &str, class: Option<&Text>, wanted: Wanted<'_>) -> Value {
    let mut snapshot = json!({
        "apiVersion": "snapshot.storage.k8s.io/v1",
        "kind": "VolumeSnapshot",
        "metadata": {"name": name, "namespace": wanted.namespace},
        "spec": {"source": {"persistentVolumeClaimName": wanted.claim}},
    });
    if let Some(class) = class {
        snapshot["spec"]["volumeSnapshotClassName"] = json!(class);
    }
    snapshot
}
