//! The snapshot from which a new claim is filled.

use engine::model::Text;
use serde_json::{Value, json};

use super::error::MigrationBlocked;
use super::subject::Subject;
use super::target::Target;
use super::{MigrationInput, Wanted};

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
    suited
        .min_by_key(|it| (!it.is_default(), it.name().clone()))
        .map(|it| Some(it.name()))
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
