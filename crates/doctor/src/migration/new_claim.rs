//! The new claim, and the names of what is made for it.

use serde_json::{Value, json};

use super::error::MigrationBlocked;
use super::subject::Subject;
use super::target::Target;
use super::{MigrationInput, Wanted};
use engine::model::access_mode::VolumeMode;
use engine::model::metadata::is_name;
use engine::model::object::ObjectKind;
use engine::model::quantity::Quantity;
use engine::snapshot::Lookup;

/// The most characters that a Job's name may have: its pods carry it as a label.
const LONGEST_LABEL: usize = 63;

/// The name of the new claim.
pub(super) fn name(
    wanted: Wanted<'_>,
    facts: MigrationInput<'_>,
) -> Result<String, MigrationBlocked> {
    let name = match wanted.name {
        Some(name) => name.to_owned(),
        None => format!("{}-{}", wanted.claim, wanted.mode.short().to_lowercase()),
    };
    if !is_name(&name) {
        return Err(MigrationBlocked::Name(name));
    }
    let view = facts.cluster.objects.view;
    match view.claim(wanted.namespace, &name) {
        Lookup::Found(_) => Err(MigrationBlocked::NameTaken(name)),
        Lookup::Absent | Lookup::NotSynced => Ok(name),
    }
}

/// The name of an object that belongs to the new claim, short enough for a label.
pub(super) fn name_of(claim: &str, what: &str) -> String {
    let most = LONGEST_LABEL - what.len() - 1;
    let plain = claim.replace('.', "-");
    let start = plain.get(..most).unwrap_or(&plain);
    format!("{}-{what}", start.trim_end_matches('-'))
}

/// The new claim; `snapshot` is what it is filled from. It carries no labels of the old
/// one: those of a GitOps tool would have it deleted as an object that is in no manifest.
pub(super) fn manifest(
    name: &str,
    subject: &Subject<'_>,
    target: &Target<'_>,
    wanted: Wanted<'_>,
    snapshot: Option<&str>,
) -> Value {
    let kind = ObjectKind::Claim;
    let mut claim = json!({
        "apiVersion": kind.api_version(),
        "kind": kind.name(),
        "metadata": {"name": name, "namespace": wanted.namespace},
        "spec": {
            "accessModes": [wanted.mode.name()],
            "storageClassName": target.class,
            "resources": {"requests": {"storage": size(subject.size)}},
        },
    });
    if subject.claim.spec.volume_mode == VolumeMode::Block {
        claim["spec"]["volumeMode"] = json!(VolumeMode::Block.name());
    }
    if let Some(snapshot) = snapshot {
        claim["spec"]["dataSource"] = json!({
            "apiGroup": "snapshot.storage.k8s.io",
            "kind": "VolumeSnapshot",
            "name": snapshot,
        });
    }
    claim
}

/// A size in the largest binary unit in which it is a whole number: `10Gi`.
pub(super) fn size(size: Quantity) -> String {
    let units = ["Ki", "Mi", "Gi", "Ti"];
    let mut rest = size.0;
    let mut unit = "";
    for next in units {
        if rest == 0 || !rest.is_multiple_of(1024) {
            break;
        }
        rest /= 1024;
        unit = next;
    }
    format!("{rest}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_written_in_whole_units() {
        let cases = [
            ("10Gi", "10Gi"),
            ("1.5Gi", "1536Mi"),
            ("1500M", "1500000000"),
            ("10G", "9765625Ki"),
            ("1001", "1001"),
            ("0", "0"),
            ("2048Ti", "2048Ti"),
        ];
        for (text, expected) in cases {
            assert_eq!(size(Quantity::parse(text).unwrap()), expected, "{text}");
        }
    }

    #[test]
    fn names_of_what_is_made_for_it_are_short() {
        assert_eq!(name_of("data.v2", "copy"), "data-v2-copy");
        let long = name_of(&"a".repeat(200), "copy");
        assert_eq!((long.len(), long.ends_with("-copy")), (63, true));
    }
}
