//! Checks that the catalog file agrees with itself and with Kubernetes' names.

use std::collections::BTreeMap;

use jiff::civil::Date;
use serde::Deserialize;

use super::condition::{Claimant, Effect, When};
use super::entry::{Confidence, Entry};
use super::*;
use crate::model::access_mode::{AccessMode, AccessModes, VolumeMode};
use crate::model::in_tree::{Attaching, InTreeType, csi_driver_of};
use crate::model::labels::Labels;
use crate::model::storage_class::NO_PROVISIONER;

fn catalog() -> &'static Catalog {
    Catalog::embedded().unwrap()
}

const BOTH: [VolumeMode; 2] = [VolumeMode::Filesystem, VolumeMode::Block];

/// The parts of an entry that are for readers of the file.
#[derive(Deserialize)]
struct Provenance {
    kind: Kind,
    #[serde(default)]
    provisions: Provisions,
    #[serde(default)]
    replaces: Vec<String>,
    #[serde(default)]
    examples: Vec<String>,
    basis: Basis,
    sources: Vec<String>,
    read: Option<String>,
}

/// The sort of provisioner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    Csi,
    External,
    InTree,
    PvSource,
}

/// Whether it makes volumes for claims.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Provisions {
    #[default]
    ForClaims,
    ByHand,
    Unknown,
}

/// The source of the lists of modes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Basis {
    DriverCode,
    K8sDocs,
    VendorDocs,
    KubevirtCdi,
    CsiDocsTable,
    Inference,
}

/// Every entry, with the provenance that the file gives.
fn entries() -> Vec<(&'static Entry, Provenance)> {
    #[derive(Deserialize)]
    struct File {
        provisioners: BTreeMap<String, Provenance>,
    }
    let file: File = serde_saphyr::from_str(catalog::EMBEDDED).unwrap();
    let find = |(name, provenance): (String, _)| (catalog().named(&name).unwrap(), provenance);
    file.provisioners.into_iter().map(find).collect()
}

#[test]
fn every_key_is_one_that_the_header_explains() {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct File {
        gathered: String,
        provisioners: BTreeMap<String, BTreeMap<String, serde_json::Value>>,
    }
    let file: File = serde_saphyr::from_str(catalog::EMBEDDED).unwrap();
    assert_eq!(file.gathered, "2026-11-20");
    for (name, entry) in &file.provisioners {
        for key in entry.keys() {
            let explained = catalog::EMBEDDED.contains(&format!("\n# {key} "));
            assert!(explained, "{name}: {key}");
        }
    }
}

#[test]
fn the_file_holds_every_provisioner_once() {
    let mut kinds = BTreeMap::new();
    for (_, provenance) in entries() {
        *kinds.entry(provenance.kind).or_insert(0) += 1;
    }
    let expected =
        [(Kind::Csi, 207), (Kind::External, 18), (Kind::InTree, 16), (Kind::PvSource, 6)];
    assert_eq!(kinds, expected.into());
    let provisioners: usize = kinds.values().sum::<usize>() - kinds[&Kind::PvSource];
    let readme = include_str!("../../../../README.md");
    let glossary = include_str!("../../../../docs/glossary.md");
    for (name, text, words) in [
        ("README.md", readme, format!("a catalog of {provisioners} provisioners")),
        ("glossary.md", glossary, format!("What {provisioners} provisioners can do")),
    ] {
        let text: Vec<&str> = text.split_whitespace().collect();
        assert!(text.join(" ").contains(&words), "{name} does not say {words:?}");
    }
}

#[test]
fn what_was_read_later_says_when() {
    let gathered: Date = "2026-11-20".parse().unwrap();
    for (entry, provenance) in entries() {
        let read = provenance.read.map(|read| read.parse::<Date>().unwrap());
        let is_later = read.is_none_or(|read| read > gathered);
        assert!(is_later, "{}", entry.name);
    }
}

#[test]
fn who_makes_volumes_for_claims_says_how() {
    for (entry, provenance) in entries() {
        let by_hand = provenance.kind == Kind::PvSource || entry.name == NO_PROVISIONER;
        assert!(!by_hand || provenance.provisions != Provisions::ForClaims, "{}", entry.name);
    }
}

#[test]
fn a_condition_changes_something_and_grants_only_what_it_is_asked_about() {
    for (entry, _) in entries() {
        for condition in &entry.conditions {
            let effects = BOTH.map(|mode| condition.effect(mode));
            let changes = effects != [Effect::default(); 2]
                || condition.node_local.is_some()
                || condition.reach.is_some()
                || condition.second_use.is_some()
                || condition.note.is_some();
            assert!(changes, "{}: {} does nothing", entry.name, condition.when);
            assert!(
                condition.pv_node_affinity.is_none() || condition.node_local == Some(true),
                "{}: {} is of no node",
                entry.name,
                condition.when
            );
            for (mode, effect) in BOTH.into_iter().zip(effects) {
                let list = entry.modes(mode);
                if effect != Effect::default() {
                    assert!(
                        list.granted.is_some(),
                        "{}: a condition on {mode} without a list to change",
                        entry.name
                    );
                }
                assert!(
                    effect.grants().is_subset(list.possible.unwrap_or_default()),
                    "{}: {mode}",
                    entry.name
                );
            }
            if let When::ClaimAsks(mode) = condition.when {
                for effect in effects {
                    assert!(
                        effect.grants().is_subset(AccessModes::of(&[mode])),
                        "{}: asking for {mode} grants something else",
                        entry.name
                    );
                }
            }
        }
    }
}

#[test]
fn what_is_verified_says_where_and_from_what() {
    for (entry, Provenance { basis, sources, .. }) in entries() {
        let name = &entry.name;
        assert!(!sources.is_empty(), "{name}");
        let firm = entry.modes(VolumeMode::Filesystem).confidence.is_firm();
        let read = matches!(basis, Basis::DriverCode | Basis::K8sDocs | Basis::VendorDocs);
        assert!(!firm || read, "{name}: verified from {basis:?}");
        let readable = sources.iter().any(|source| source.contains('/'));
        assert!(!firm || readable, "{name}: {sources:?}");
        let table = basis == Basis::CsiDocsTable;
        let table_confidence =
            entry.modes(VolumeMode::Filesystem).confidence == Confidence::CsiDocsTable;
        assert_eq!(table, table_confidence, "{name}");
    }
}

#[test]
fn node_local_entries_reach_no_further_than_their_node() {
    let mut pinned = 0;
    for (entry, _) in entries() {
        let scheduled = entry.own_scheduler;
        assert!(
            !scheduled || (entry.node_local && entry.pv_node_affinity == Some(false)),
            "{}",
            entry.name
        );
        if entry.node_local {
            assert_eq!(entry.reach, Some(Reach::Node), "{}", entry.name);
            pinned += usize::from(entry.pv_node_affinity == Some(true));
        } else {
            assert_eq!(entry.pv_node_affinity, None, "{}", entry.name);
        }
    }
    assert_eq!(pinned, 21);
}

#[test]
fn successors_and_predecessors_name_each_other_as_kubernetes_does() {
    for (entry, provenance) in entries() {
        for old in &provenance.replaces {
            let old = catalog().get(old).unwrap();
            assert_eq!(old.replaced_by.as_ref(), Some(&entry.name));
        }
        let Some(successor) = &entry.replaced_by else {
            continue;
        };
        let (_, new) = entries().into_iter().find(|(other, _)| other.name == *successor).unwrap();
        assert!(new.replaces.contains(&entry.name.to_string()), "{successor}");
        // Kubernetes never finished the migration of RBD.
        if entry.name != "kubernetes.io/rbd" {
            assert_eq!(csi_driver_of(&entry.name), successor.as_str());
        }
    }
}

#[test]
fn in_tree_types_are_in_the_catalog_and_agree_with_it() {
    for in_tree in InTreeType::all() {
        let field = in_tree.field;
        let entry = catalog().get(in_tree.provisioner).unwrap();
        assert_eq!(entry.name, in_tree.provisioner);
        match in_tree.attaching {
            Attaching::AsDriver(driver) => {
                assert_eq!(entry.replaced_by.as_deref(), Some(driver), "{field}");
            }
            Attaching::Always => assert_eq!(entry.attach_required, Some(true), "{field}"),
            Attaching::Never => assert_ne!(entry.attach_required, Some(true), "{field}"),
            Attaching::BySetup => assert_eq!(entry.attach_required, None, "{field}"),
        }
    }
}

#[test]
fn examples_are_found_by_their_pattern_and_exact_entries_by_themselves() {
    for (entry, provenance) in entries() {
        for example in &provenance.examples {
            assert_eq!(catalog().get(example), Some(entry), "{example}");
        }
        if !entry.name.contains('*') {
            assert_eq!(catalog().get(&entry.name), Some(entry));
        }
    }
}

#[test]
fn nothing_is_refused_on_weak_evidence() {
    let all = AccessModes::of(&AccessMode::ALL);
    for (entry, _) in entries() {
        for mode in BOTH {
            let claim = Claimant { has_data_source: Some(false), ..Claimant::default() };
            let none = Labels::default();
            let capability = catalog().capability_for(&entry.name, &none, mode, claim);
            if let Support::Refused { modes } = capability.judge(all) {
                let list = entry.modes(mode);
                assert!(list.confidence.is_firm(), "{}", entry.name);
                assert_eq!(modes, modes.minus(list.possible.unwrap()), "{}", entry.name);
            }
        }
    }
}
