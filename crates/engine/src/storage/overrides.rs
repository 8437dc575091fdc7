//! Provisioners that a policy file adds or corrects.

use serde::Deserialize;

use super::catalog::Catalog;
use super::entry::{AttachSource, Entry};
use super::glob::Glob;
use super::modes;
use crate::model::Text;
use crate::model::access_mode::AccessModes;

/// One provisioner as the policy file states it. Missing fields stay as in the catalog; stated ones
/// count as verified.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProvisionerOverride {
    /// The provisioner's name, or a pattern in which `*` stands for any text.
    pub name: Text,
    /// Every access mode that its file systems can have, whatever the class parameters; `[]` if it
    /// makes no file systems.
    #[serde(default, deserialize_with = "modes::exact")]
    pub filesystem: Option<AccessModes>,
    /// Every access mode that its raw block devices can have.
    #[serde(default, deserialize_with = "modes::exact")]
    pub block: Option<AccessModes>,
    /// Whether its volumes are attached; a live CSIDriver object takes precedence.
    pub attach_required: Option<bool>,
    /// Whether its volumes live on one node and carry the node affinity that keeps pods there.
    pub node_local: Option<bool>,
}

impl ProvisionerOverride {
    fn correct(&self, entry: &mut Entry) {
        entry.stated.filesystem = self.filesystem.or(entry.stated.filesystem);
        entry.stated.block = self.block.or(entry.stated.block);
        if self.attach_required.is_some() {
            entry.attach_required = self.attach_required;
            entry.attach_by = AttachSource::Policy;
        }
        if let Some(node_local) = self.node_local {
            entry.node_local = node_local;
            entry.pv_node_affinity = node_local.then_some(true);
            // A user's statement holds whatever the parameters.
            for condition in &mut entry.conditions {
                condition.node_local = None;
            }
        }
    }

    /// The reason for which the entry cannot be used, if it states nothing or has no name.
    pub fn fault(&self) -> Option<String> {
        let Self { name, .. } = self;
        if name.trim().is_empty() {
            return Some(
                "a provisioner in the policy has an empty name; give it the name its StorageClasses carry in `provisioner`"
                    .to_owned(),
            );
        }
        let states_modes = self.filesystem.is_some() || self.block.is_some();
        let says_something =
            states_modes || self.attach_required.is_some() || self.node_local.is_some();
        (!says_something).then(|| {
            format!(
                "the policy says nothing about provisioner {name:?}; state `filesystem`, `block`, `attachRequired` or `nodeLocal`, or drop it"
            )
        })
    }
}

impl Catalog {
    /// This catalog with a policy's provisioners added or corrected.
    ///
    /// An exact name corrects the entry that the catalog finds for it, whether that has an exact
    /// name or a pattern. A pattern corrects every entry whose name fits it, and applies to names
    /// without an entry. If several fit, the more precise one takes precedence, and an exact name
    /// over all patterns.
    pub fn with_overrides(&self, mut overrides: Vec<ProvisionerOverride>) -> Self {
        // Broad patterns come first, so that precise ones and exact names overrule them.
        overrides.sort_by_key(|each| {
            Glob::new(&each.name).map_or((true, 0), |glob| (false, glob.fixed_len()))
        });

        let mut catalog = self.clone();
        for each in &overrides {
            if let Some(glob) = Glob::new(&each.name) {
                for entry in catalog.entries_mut() {
                    if glob.matches(&entry.name) {
                        each.correct(entry);
                    }
                }
                if catalog.named(&each.name).is_some() {
                    continue;
                }
            }
            let mut entry = catalog.get(&each.name).cloned().unwrap_or_default();
            entry.name = each.name.clone();
            if entry.title.is_empty() {
                entry.title = each.name.clone();
            }
            each.correct(&mut entry);
            catalog.put(entry);
        }
        catalog
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::access_mode::AccessMode::{ReadOnlyMany, ReadWriteMany, ReadWriteOnce};
    use crate::model::access_mode::VolumeMode;
    use crate::model::labels::Labels;
    use crate::storage::NodeLocal;
    use crate::storage::entry::Confidence;

    fn overrides(text: &str) -> Vec<ProvisionerOverride> {
        serde_saphyr::from_str(text).unwrap()
    }

    fn catalog(text: &str) -> Catalog {
        let embedded = Catalog::embedded().unwrap();
        embedded.with_overrides(overrides(text))
    }

    #[test]
    fn what_is_stated_replaces_and_what_is_not_stays() {
        let catalog = catalog("- {name: ebs.csi.aws.com, block: [ReadWriteMany, RWO]}");
        let entry = catalog.get("ebs.csi.aws.com").unwrap();
        let original = Catalog::embedded().unwrap().get("ebs.csi.aws.com").unwrap();

        let block = entry.modes(VolumeMode::Block);
        let stated = AccessModes::of(&[ReadWriteOnce, ReadWriteMany]);
        assert_eq!(block.granted, Some(stated));
        assert_eq!(block.possible, Some(stated));
        assert_eq!(block.confidence, Confidence::Stated);
        assert_eq!(entry.modes(VolumeMode::Filesystem), original.modes(VolumeMode::Filesystem));
        assert_eq!(entry.attach_required, Some(true));
    }

    #[test]
    fn the_more_precise_name_has_the_last_word() {
        let catalog = catalog(
            "- {name: rook-ceph.rbd.csi.ceph.com, nodeLocal: true}\n\
             - {name: '*.rbd.csi.ceph.com', filesystem: [RWO]}\n\
             - {name: '*.csi.ceph.com', filesystem: [ROX], attachRequired: false}\n\
             - {name: '*.example.com', filesystem: [RWX]}\n",
        );
        let cases = [
            (
                "an exact name, upon both patterns",
                "rook-ceph.rbd.csi.ceph.com",
                ReadWriteOnce,
                Some(false),
                true,
            ),
            (
                "a pattern of the catalog, corrected by both",
                "x.rbd.csi.ceph.com",
                ReadWriteOnce,
                Some(false),
                false,
            ),
            (
                "an exact entry that the broad one fits",
                "nfs.csi.ceph.com",
                ReadOnlyMany,
                Some(false),
                false,
            ),
            ("a name of no entry", "new.csi.ceph.com", ReadOnlyMany, Some(false), false),
            ("a pattern of its own", "disk.example.com", ReadWriteMany, None, false),
        ];
        for (case, name, mode, attach_required, node_local) in cases {
            let entry = catalog.get(name).unwrap();
            assert_eq!(
                entry.modes(VolumeMode::Filesystem).granted,
                Some(AccessModes::of(&[mode])),
                "{case}"
            );
            assert_eq!(entry.attach_required, attach_required, "{case}");
            assert_eq!(entry.node_local, node_local, "{case}");
        }
        assert_eq!(catalog.get("disk.example.org"), None);
    }

    #[test]
    fn a_word_on_node_local_data_holds_whatever_the_parameters() {
        let corrected = catalog("- {name: rancher.io/local-path, nodeLocal: true}");
        let rack = Labels::from_iter([("nodeAffinityKey", "rack")]);
        let local = |catalog: &Catalog| catalog.node_local("rancher.io/local-path", &rack);
        assert_eq!(local(&corrected), NodeLocal::Pinned);
        assert_eq!(local(Catalog::embedded().unwrap()), NodeLocal::No);
    }

    #[test]
    fn a_mode_that_is_none_is_refused_with_its_line() {
        let error = serde_saphyr::from_str::<Vec<ProvisionerOverride>>(
            "- name: a\n  filesystem: [ReadWriteSometimes]\n",
        )
        .unwrap_err()
        .to_string();
        assert!(error.contains("ReadWriteSometimes"), "{error}");
        assert!(error.contains("line 2"), "{error}");
    }
}
