//! The volume types that Kubernetes has itself, and what it does with each.
//!
//! Read in Kubernetes v1.36.2:
//!
//! * The types that `csi-translation-lib` knows are handed to their CSI drivers
//!   before anything else happens (`translate.go`, `plugins/*.go`; all seven
//!   without a way back, `IsMigrationEnabledForPlugin` in
//!   `pkg/volume/csimigration/plugin_manager.go`). Of the others, `fc`, `iscsi`
//!   and FlexVolumes have an attacher (`AttachableVolumePlugin` under
//!   `pkg/volume`), and so had `rbd` (gone since 1.31) and
//!   `photonPersistentDisk`; the rest never had one.
//! * Where a pod names such a volume without a claim, the translation *invents*
//!   access modes (`TranslateInTreeInlineVolumeToCSI`): ReadWriteOnce for
//!   `awsElasticBlockStore`, `azureDisk`, `cinder` and `vsphereVolume`, whatever
//!   their `readOnly` says; for `gcePersistentDisk` and `portworxVolume` only
//!   where `readOnly` is not set, else ReadOnlyMany; ReadWriteMany for
//!   `azureFile`. A type that is not translated has no PersistentVolume, and
//!   without one `IsMultiAttachAllowed` (`pkg/volume/util/util.go`) says yes.
//! * The scheduler keeps two pods with the same disk off *one node*
//!   (`volumerestrictions/volume_restrictions.go`, `isVolumeConflict`):
//!   `awsElasticBlockStore` always; `gcePersistentDisk`, `iscsi` and `rbd`
//!   unless both pods mount it read-only. It compares volumes that pods name
//!   themselves, on that node only.
//!
//! An EBS volume in a pod is thus worse off than a ReadWriteOnce claim: a second
//! pod is refused on every other node by the controller and on the same node by
//! the scheduler, so pod affinity does not help it.

use super::access_mode::{AccessMode, AccessModes};

/// A volume type of Kubernetes itself.
#[derive(Debug, PartialEq, Eq)]
pub struct InTreeType {
    /// The field that carries it in `PersistentVolume.spec` and in a pod's
    /// `volumes`, `awsElasticBlockStore` for example.
    pub field: &'static str,
    /// Its provisioner, `kubernetes.io/aws-ebs` for example, or `pv-source:` and
    /// the field for a type that never had one: its name in the catalog.
    pub provisioner: &'static str,
    /// Who says whether its volumes are attached.
    pub attaching: Attaching,
    writable: Inline,
    read_only: Inline,
}

/// Who says whether the attach-detach controller acts for a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attaching {
    /// The CSIDriver of this name: the type is handed to it.
    AsDriver(&'static str),
    /// It always acts.
    Always,
    /// It never acts: no second node is ever refused.
    Never,
    /// It acts if the FlexVolume driver is installed beside the controller and
    /// says that it attaches; no object shows that.
    BySetup,
}

/// What a volume means that a pod template names itself, without a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Inline {
    /// The access modes that Kubernetes gives it on handing it to a CSI driver;
    /// empty where it does not, and nothing is refused.
    pub access_modes: AccessModes,
    /// Whether the scheduler keeps a second pod with it off the same node.
    pub one_pod_a_node: bool,
}

impl Inline {
    /// Nothing is refused.
    const FREE: Self = Self {
        access_modes: AccessModes::EMPTY,
        one_pod_a_node: false,
    };
    const ONE_NODE: Self = Self {
        access_modes: AccessModes::of(&[AccessMode::ReadWriteOnce]),
        ..Self::FREE
    };
    const ONE_POD_A_NODE: Self = Self {
        one_pod_a_node: true,
        ..Self::FREE
    };
    const ONE_NODE_AND_POD: Self = Self {
        one_pod_a_node: true,
        ..Self::ONE_NODE
    };
}

const fn row(
    field: &'static str,
    provisioner: &'static str,
    attaching: Attaching,
    writable: Inline,
    read_only: Inline,
) -> InTreeType {
    InTreeType {
        field,
        provisioner,
        attaching,
        writable,
        read_only,
    }
}

use Attaching::{Always, AsDriver, BySetup, Never};

/// Every type; a pod's two last columns are for a volume it may write and for
/// one with `readOnly: true`.
#[rustfmt::skip]
static TYPES: [InTreeType; 21] = [
    row("awsElasticBlockStore", "kubernetes.io/aws-ebs", AsDriver("ebs.csi.aws.com"), Inline::ONE_NODE_AND_POD, Inline::ONE_NODE_AND_POD),
    row("azureDisk", "kubernetes.io/azure-disk", AsDriver("disk.csi.azure.com"), Inline::ONE_NODE, Inline::ONE_NODE),
    row("azureFile", "kubernetes.io/azure-file", AsDriver("file.csi.azure.com"), Inline::FREE, Inline::FREE),
    row("cephfs", "kubernetes.io/cephfs", Never, Inline::FREE, Inline::FREE),
    row("cinder", "kubernetes.io/cinder", AsDriver("cinder.csi.openstack.org"), Inline::ONE_NODE, Inline::ONE_NODE),
    row("fc", "pv-source:fc", Always, Inline::FREE, Inline::FREE),
    row("flexVolume", "pv-source:flexVolume", BySetup, Inline::FREE, Inline::FREE),
    row("flocker", "kubernetes.io/flocker", Never, Inline::FREE, Inline::FREE),
    row("gcePersistentDisk", "kubernetes.io/gce-pd", AsDriver("pd.csi.storage.gke.io"), Inline::ONE_NODE_AND_POD, Inline::FREE),
    row("glusterfs", "kubernetes.io/glusterfs", Never, Inline::FREE, Inline::FREE),
    row("hostPath", "pv-source:hostPath", Never, Inline::FREE, Inline::FREE),
    row("iscsi", "pv-source:iscsi", Always, Inline::ONE_POD_A_NODE, Inline::FREE),
    row("local", "pv-source:local", Never, Inline::FREE, Inline::FREE),
    row("nfs", "pv-source:nfs", Never, Inline::FREE, Inline::FREE),
    row("photonPersistentDisk", "kubernetes.io/photon-pd", Always, Inline::FREE, Inline::FREE),
    row("portworxVolume", "kubernetes.io/portworx-volume", AsDriver("pxd.portworx.com"), Inline::ONE_NODE, Inline::FREE),
    row("quobyte", "kubernetes.io/quobyte", Never, Inline::FREE, Inline::FREE),
    row("rbd", "kubernetes.io/rbd", Always, Inline::ONE_POD_A_NODE, Inline::FREE),
    row("scaleIO", "kubernetes.io/scaleio", Never, Inline::FREE, Inline::FREE),
    row("storageos", "kubernetes.io/storageos", Never, Inline::FREE, Inline::FREE),
    row("vsphereVolume", "kubernetes.io/vsphere-volume", AsDriver("csi.vsphere.vmware.com"), Inline::ONE_NODE, Inline::ONE_NODE),
];

impl InTreeType {
    /// The type that a field of a PersistentVolume or of a pod's volume stands
    /// for; `None` for any other field, those of pod-bound volumes included.
    #[must_use]
    pub(crate) fn of_field(field: &str) -> Option<&'static Self> {
        TYPES.iter().find(|each| each.field == field)
    }

    /// Every type.
    #[must_use]
    pub fn all() -> &'static [Self] {
        &TYPES
    }

    /// What a volume of this type means in a pod template; `read_only` is its
    /// `readOnly` field.
    #[must_use]
    pub(crate) const fn inline(&self, read_only: bool) -> Inline {
        if read_only {
            self.read_only
        } else {
            self.writable
        }
    }

    /// Whether something may be refused to pods that name such a volume.
    #[must_use]
    pub fn counts_in_pods(&self) -> bool {
        self.writable != Inline::FREE
    }

    /// The access modes by which the attach-detach controller judges a
    /// PersistentVolume of this type that carries `modes`.
    ///
    /// They are the same for every type but `gcePersistentDisk`, whose
    /// translation leaves ReadOnlyMany only where it stands alone and makes
    /// ReadWriteOnce of anything else (`csi-translation-lib`, `gce_pd.go`,
    /// `backwardCompatibleAccessModes`): such a volume is exclusive even if its
    /// PersistentVolume says ReadWriteMany.
    #[must_use]
    pub(crate) fn effective_modes(&self, modes: AccessModes) -> AccessModes {
        let read_only_many = AccessModes::of(&[AccessMode::ReadOnlyMany]);
        if self.field != "gcePersistentDisk" || modes.is_empty() || modes == read_only_many {
            modes
        } else {
            AccessModes::of(&[AccessMode::ReadWriteOnce])
        }
    }
}

/// The name under which Kubernetes looks for the CSIDriver object of a
/// provisioner: the successor for an in-tree name that has one, else the name itself.
#[must_use]
pub fn csi_driver_of(provisioner: &str) -> &str {
    // Every other provisioner leaves at once.
    if !provisioner.starts_with("kubernetes.io/") {
        return provisioner;
    }
    match TYPES.iter().find(|each| each.provisioner == provisioner) {
        Some(InTreeType {
            attaching: AsDriver(driver),
            ..
        }) => driver,
        _ => provisioner,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use AccessMode::{ReadOnlyMany, ReadWriteMany, ReadWriteOnce, ReadWriteOncePod};

    #[test]
    fn fields_are_found_and_each_is_there_once() {
        for (at, each) in TYPES.iter().enumerate() {
            assert_eq!(InTreeType::of_field(each.field), Some(each));
            let twice = TYPES[..at]
                .iter()
                .any(|earlier| earlier.provisioner == each.provisioner);
            assert!(!twice, "{}", each.provisioner);
        }
        for field in [
            "emptyDir",
            "ephemeral",
            "persistentVolumeClaim",
            "csi",
            "ISCSI",
            "",
        ] {
            assert_eq!(InTreeType::of_field(field), None, "{field}");
        }
    }

    #[test]
    fn only_what_a_driver_attaches_is_refused_to_a_second_node() {
        for each in &TYPES {
            let modes = each.inline(false).access_modes;
            let refused = modes.contains(ReadWriteOnce);
            assert!(
                !refused || matches!(each.attaching, AsDriver(_)),
                "{}",
                each.field
            );
            assert_eq!(modes.is_empty(), !refused, "{}", each.field);
        }
    }

    #[test]
    fn names_translate_to_those_of_the_drivers() {
        let cases = [
            ("kubernetes.io/aws-ebs", "ebs.csi.aws.com"),
            ("kubernetes.io/portworx-volume", "pxd.portworx.com"),
            ("ebs.csi.aws.com", "ebs.csi.aws.com"),
            ("kubernetes.io/rbd", "kubernetes.io/rbd"),
            ("kubernetes.io/unheard-of", "kubernetes.io/unheard-of"),
        ];
        for (name, driver) in cases {
            assert_eq!(csi_driver_of(name), driver);
        }
    }

    #[test]
    fn a_google_disk_is_exclusive_unless_it_is_read_only_for_all() {
        let cases = [
            (
                "gcePersistentDisk",
                &[ReadWriteOnce][..],
                &[ReadWriteOnce][..],
            ),
            (
                "gcePersistentDisk",
                &[ReadWriteOnce, ReadOnlyMany],
                &[ReadWriteOnce],
            ),
            ("gcePersistentDisk", &[ReadWriteMany], &[ReadWriteOnce]),
            ("gcePersistentDisk", &[ReadOnlyMany], &[ReadOnlyMany]),
            ("gcePersistentDisk", &[], &[]),
            ("gcePersistentDisk", &[ReadWriteOncePod], &[ReadWriteOnce]),
            ("awsElasticBlockStore", &[ReadWriteMany], &[ReadWriteMany]),
            (
                "iscsi",
                &[ReadWriteOnce, ReadOnlyMany],
                &[ReadWriteOnce, ReadOnlyMany],
            ),
        ];
        for (field, modes, expected) in cases {
            let in_tree = InTreeType::of_field(field).unwrap();
            assert_eq!(
                in_tree.effective_modes(AccessModes::of(modes)),
                AccessModes::of(expected),
                "{field} {modes:?}"
            );
        }
    }
}
