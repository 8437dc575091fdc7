//! The catalog file against itself, against Kubernetes' names, and against the
//! collection of facts it was made from.

use std::collections::BTreeMap;

use super::*;
use crate::model::access_mode::{AccessMode, AccessModes, VolumeMode};

fn catalog() -> &'static Catalog {
    Catalog::embedded().unwrap()
}

const BOTH: [VolumeMode; 2] = [VolumeMode::Filesystem, VolumeMode::Block];

#[test]
fn the_file_holds_every_provisioner_once() {
    let mut kinds = BTreeMap::new();
    for entry in catalog().entries() {
        *kinds.entry(format!("{:?}", entry.kind)).or_insert(0) += 1;
        assert_eq!(catalog().named(&entry.name), Some(entry));
    }
    let expected = [
        ("Some(Csi)", 192),
        ("Some(External)", 18),
        ("Some(InTree)", 16),
        ("Some(PvSource)", 6),
    ];
    assert_eq!(
        kinds,
        expected
            .map(|(kind, count)| (kind.to_owned(), count))
            .into()
    );
    assert_eq!(catalog().entries().count(), 232);
    assert_eq!(catalog().gathered(), "2026-11-20");
}

/// The digest was taken over the collection the file was made from. It changes
/// with the file: when a fact was found to be wrong, correct both.
#[test]
fn modes_attach_and_confidence_are_those_that_were_gathered() {
    let list = |modes: Option<AccessModes>| match modes {
        None => "-".to_owned(),
        Some(modes) => modes
            .iter()
            .map(AccessMode::short)
            .collect::<Vec<_>>()
            .join(","),
    };
    let mut entries: Vec<&Entry> = catalog().entries().collect();
    entries.sort_by_key(|entry| &entry.name);
    let lines: Vec<String> = entries
        .into_iter()
        .map(|entry| {
            let [filesystem, block] = BOTH.map(|mode| entry.modes(mode));
            let attach = entry
                .attach_required
                .map_or("unknown".to_owned(), |attach| attach.to_string());
            let confidence = match filesystem.confidence {
                Confidence::Stated => "stated",
                Confidence::Verified => "verified",
                Confidence::CsiDocsTable => "csi-docs-table",
                Confidence::Believed => "believed",
            };
            let rwop = match entry.rwop {
                Rwop::Native => "native",
                Rwop::Mapped => "mapped",
                Rwop::Accepted => "accepted",
                Rwop::Refused => "no",
                Rwop::UnsupportedByVendor => "unsupported-by-vendor",
                Rwop::Unknown => "unknown",
            };
            [
                entry.name.to_string(),
                list(filesystem.granted),
                list(block.granted),
                list(filesystem.possible),
                list(block.possible),
                attach,
                entry.node_local.to_string(),
                confidence.to_owned(),
                rwop.to_owned(),
            ]
            .join("|")
        })
        .collect();
    // FNV-1a, 64 bits.
    let digest = lines
        .iter()
        .flat_map(|line| line.bytes().chain([b'\n']))
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
    assert_eq!(
        digest,
        0xa0cd_7f45_43ef_b528,
        "{digest:#x}\n{}",
        lines.join("\n")
    );
}

#[test]
fn a_condition_changes_something_and_grants_only_what_it_is_asked_about() {
    for entry in catalog().entries() {
        for condition in &entry.conditions {
            let effects = BOTH.map(|mode| condition.effect(mode));
            let changes = effects != [Effect::default(); 2]
                || condition.node_local.is_some()
                || condition.note.is_some();
            assert!(changes, "{}: {} does nothing", entry.name, condition.when);
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
    for entry in catalog().entries() {
        let name = &entry.name;
        assert!(!entry.sources.is_empty(), "{name}");
        let firm = entry.modes(VolumeMode::Filesystem).confidence.is_firm();
        let basis = entry.basis.unwrap();
        let read = matches!(
            basis,
            Basis::DriverCode | Basis::K8sDocs | Basis::VendorDocs
        );
        assert!(!firm || read, "{name}: verified from {basis:?}");
        let readable = entry.sources.iter().any(|source| source.contains('/'));
        assert!(!firm || readable, "{name}: {:?}", entry.sources);
        let table = basis == Basis::CsiDocsTable;
        let table_confidence =
            entry.modes(VolumeMode::Filesystem).confidence == Confidence::CsiDocsTable;
        assert_eq!(table, table_confidence, "{name}");
    }
}

#[test]
fn node_local_entries_reach_no_further_than_their_node() {
    let mut pinned = 0;
    for entry in catalog().entries() {
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
    for entry in catalog().entries() {
        for old in &entry.replaces {
            let old = catalog().get(old).unwrap();
            assert_eq!(old.replaced_by.as_ref(), Some(&entry.name));
        }
        let Some(successor) = &entry.replaced_by else {
            continue;
        };
        let new = catalog().get(successor).unwrap();
        assert!(new.replaces.contains(&entry.name), "{successor}");
        // Kubernetes never finished the migration of RBD.
        if entry.name != "kubernetes.io/rbd" {
            assert_eq!(csi_driver_of(&entry.name), successor.as_str());
        }
    }
    for (plugin, driver) in in_tree::MIGRATED {
        assert_eq!(
            catalog().get(plugin).unwrap().replaced_by.as_deref(),
            Some(driver)
        );
    }
}

#[test]
fn examples_are_found_by_their_pattern_and_exact_entries_by_themselves() {
    for entry in catalog().entries() {
        for example in &entry.examples {
            assert_eq!(catalog().get(example), Some(entry), "{example}");
        }
        if !entry.name.contains('*') {
            assert_eq!(catalog().get(&entry.name), Some(entry));
        }
    }
}
