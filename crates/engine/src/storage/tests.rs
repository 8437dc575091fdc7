//! The cases about conditions and provisioners in `cases.yaml`.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::condition::{Claimant, Condition};
use super::*;
use crate::model::access_mode::{AccessMode, AccessModes, VolumeMode};
use crate::model::in_tree::csi_driver_of;
use crate::model::labels::Labels;
use crate::model::metadata::Metadata;
use crate::model::storage_class::{CsiDriver, CsiDriverSpec, StorageClass};
use crate::snapshot::Lookup;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cases {
    states: Vec<(When, Option<String>, String)>,
    clauses: Vec<(When, String)>,
    refused: Vec<(When, String)>,
    provisioners: Vec<Provisioner>,
}

/// The text of a condition's `when`.
type When = serde_json::Value;

/// The expected answers about a provisioner; missing ones are not checked.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Provisioner {
    of: String,
    #[serde(default, rename = "in")]
    volume_mode: VolumeMode,
    #[serde(default)]
    with: BTreeMap<String, String>,
    #[serde(default)]
    copied: bool,
    gives: Option<String>,
    asks: Option<String>,
    hint: Option<String>,
    reach: Option<String>,
    node_local: Option<String>,
    second_use: Option<String>,
    /// `attachRequired` of the live object.
    csi_driver: Option<bool>,
    attach: Option<String>,
}

fn cases() -> Cases {
    let options = serde_saphyr::options! { budget: None };
    serde_saphyr::from_str_with_options(include_str!("cases.yaml"), options).unwrap()
}

fn condition(when: &When) -> Result<Condition, serde_saphyr::Error> {
    serde_saphyr::from_str(&serde_json::json!({ "when": when }).to_string())
}

#[test]
fn conditions_are_read_and_tested() {
    let Cases { states, clauses, refused, .. } = cases();
    for (when, value, expected) in states {
        let parameters: Labels = std::iter::once(("other", "io2"))
            .chain(value.iter().map(|word| ("type", word.as_str())))
            .collect();
        let state = condition(&when).unwrap().state(&parameters, Claimant::default());
        assert_eq!(format!("{state:?}"), expected, "{when} with {value:?}");
    }
    for (when, expected) in clauses {
        assert_eq!(condition(&when).unwrap().when.to_string(), expected, "{when}");
    }
    for (when, expected) in refused {
        let error = condition(&when).unwrap_err().to_string();
        assert!(error.contains(&expected), "{when}: {error}");
    }
}

fn letter(support: &Support) -> char {
    match support {
        Support::Supported => 'S',
        Support::NotAsConfigured { .. } => 'P',
        Support::Refused { .. } => 'R',
        Support::Unproven { .. } => 'U',
        Support::Unknown => '?',
    }
}

#[test]
fn provisioners_can_do_what_is_said_of_them() {
    let stated = ProvisionerOverride {
        name: "stated.example.com".into(),
        attach_required: Some(false),
        ..ProvisionerOverride::default()
    };
    let catalog = Catalog::embedded().unwrap().with_overrides(vec![stated]);
    let mut wrong = Vec::new();
    for case in cases().provisioners {
        let parameters: Labels =
            case.with.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        let claim = Claimant { has_data_source: Some(case.copied), ..Claimant::default() };
        let capability = catalog.capability_for(&case.of, &parameters, case.volume_mode, claim);
        let judge = |mode| capability.judge(AccessModes::of(&[mode]));
        let hint =
            case.asks.as_deref().map(|mode| match judge(AccessMode::from_name(mode).unwrap()) {
                Support::NotAsConfigured { hint, .. } | Support::Unproven { hint, .. } => hint,
                other => format!("{other:?}"),
            });
        let class = StorageClass {
            metadata: Metadata { name: "fast".into(), ..Metadata::default() },
            provisioner: case.of.as_str().into(),
            parameters: parameters.clone(),
            ..StorageClass::default()
        };
        let object = case.csi_driver.map(|required| CsiDriver {
            metadata: Metadata { name: csi_driver_of(&case.of).into(), ..Metadata::default() },
            spec: CsiDriverSpec { attach_required: Some(required), ..CsiDriverSpec::default() },
            ..CsiDriver::default()
        });
        let attach = catalog.attach(&case.of, |driver| match &object {
            None => Lookup::Absent,
            Some(object) => {
                assert_eq!(driver, object.metadata.name);
                Lookup::Found(object)
            }
        });
        let notes = ClassSummary::new(&catalog, &class, ClassModes::default(), attach).notes;
        let second_use = notes
            .iter()
            .map(crate::model::Text::as_str)
            .find(|note| note.starts_with("Nothing attaches"))
            .unwrap_or("");
        let reach = catalog.reach(&case.of, &parameters);
        let node_local = catalog.node_local(&case.of, &parameters);
        for (said, found) in [
            (&case.gives, AccessMode::ALL.map(|mode| letter(&judge(mode))).iter().collect()),
            (&case.hint, hint.unwrap_or_default()),
            (&case.reach, format!("{reach:?}")),
            (&case.node_local, format!("{node_local:?}")),
            (&case.attach, format!("{attach:?}")),
        ] {
            if said.as_ref().is_some_and(|said| *said != found) {
                wrong.push(format!("{case:?}: {found}"));
            }
        }
        if let Some(said) = &case.second_use {
            let agrees = second_use.contains(said) && said.is_empty() == second_use.is_empty();
            assert!(agrees, "{case:?}: {second_use}");
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
