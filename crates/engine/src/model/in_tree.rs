//! The in-tree volume types of Kubernetes, and how Kubernetes treats each.
//!
//! Read in Kubernetes v1.36.2:
//!
//! * The types that `csi-translation-lib` translates are handled by their CSI drivers
//!   (`translate.go`, `plugins/*.go`; all seven unconditionally, `IsMigrationEnabledForPlugin` in
//!   `pkg/volume/csimigration/plugin_manager.go`). Of the others, `fc`, `iscsi` and FlexVolumes
//!   have an attacher (`AttachableVolumePlugin` under `pkg/volume`); `rbd` (gone since 1.31) and
//!   `photonPersistentDisk` had one; the rest never had one.
//! * If a pod has such a volume inline, without a claim, the translation *invents* access modes
//!   (`TranslateInTreeInlineVolumeToCSI`): ReadWriteOnce for `awsElasticBlockStore`, `azureDisk`,
//!   `cinder` and `vsphereVolume`, whatever their `readOnly` says; for `gcePersistentDisk` and
//!   `portworxVolume` only if `readOnly` is not set, else ReadOnlyMany; ReadWriteMany for
//!   `azureFile`. A type that is not translated has no PersistentVolume, and without one
//!   `IsMultiAttachAllowed` (`pkg/volume/util/util.go`) returns true.
//! * The scheduler keeps two pods with the same disk off *one node*
//!   (`volumerestrictions/volume_restrictions.go`, `isVolumeConflict`): `awsElasticBlockStore`
//!   always; `gcePersistentDisk`, `iscsi` and `rbd` unless both pods mount it read-only. It
//!   compares only inline volumes, and only those of pods on that node.
//!
//! An inline EBS volume is thus more restricted than a ReadWriteOnce claim: the controller refuses
//! a second pod on every other node and the scheduler refuses it on the same node, so pod affinity
//! does not help.

use super::access_mode::{AccessMode, AccessModes};

/// An in-tree volume type.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct InTreeType {
    /// Its field in `PersistentVolume.spec` and in a pod's `volumes`, `awsElasticBlockStore` for
    /// example.
    pub field: &'static str,
    /// Its provisioner, `kubernetes.io/aws-ebs` for example, or `pv-source:` and the field for a
    /// type that never had one. The catalog uses this name.
    pub provisioner: &'static str,
    /// Whether its volumes are attached.
    pub attaching: Attaching,
    writable: Inline,
    read_only: Inline,
}

/// Whether the attach-detach controller attaches a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Attaching {
    /// It does if it attaches for the CSIDriver with this name, to which the type is translated.
    AsDriver(&'static str),
    /// It always does.
    Always,
    /// It never does: no second node is ever refused.
    Never,
    /// It does if the FlexVolume driver is installed next to the controller and supports it,
    /// which no object shows.
    BySetup,
}

/// The restrictions on an inline volume of a pod template, without a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Inline {
    /// The access modes of its translation; empty if it is not translated, so that nothing is
    /// refused.
    pub access_modes: AccessModes,
    /// Whether the scheduler refuses a second pod with it on the same node.
    pub one_pod_a_node: bool,
}

impl Inline {
    /// Nothing is refused.
    pub(crate) const FREE: Self = Self { access_modes: AccessModes::EMPTY, one_pod_a_node: false };
    const ONE_NODE: Self =
        Self { access_modes: AccessModes::of(&[AccessMode::ReadWriteOnce]), ..Self::FREE };
    const ONE_POD_A_NODE: Self = Self { one_pod_a_node: true, ..Self::FREE };
    const ONE_NODE_AND_POD: Self = Self { one_pod_a_node: true, ..Self::ONE_NODE };
}

const fn row(
    field: &'static str,
    provisioner: &'static str,
    attaching: Attaching,
    writable: Inline,
    read_only: Inline,
) -> InTreeType {
    InTreeType { field, provisioner, attaching, writable, read_only }
}

use Attaching::{Always, AsDriver, BySetup, Never};

/// Every type; the last two columns are for an inline volume that is writable and one with
/// `readOnly: true`.
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
    /// The type with this field in a PersistentVolume or a pod's volume; `None` for any other
    /// field.
    pub(crate) fn of_field(field: &str) -> Option<&'static Self> {
        TYPES.iter().find(|each| each.field == field)
    }

    /// Every type.
    pub fn all() -> &'static [Self] {
        &TYPES
    }

    /// The restrictions on an inline volume of this type; `read_only` is its field `readOnly`.
    pub(crate) const fn inline(&self, read_only: bool) -> Inline {
        if read_only { self.read_only } else { self.writable }
    }

    /// The access modes that the attach-detach controller sees on a PersistentVolume of this
    /// type with `modes`.
    ///
    /// They are the same for every type except `gcePersistentDisk`, whose translation keeps
    /// ReadOnlyMany only if it is the only mode and replaces anything else by ReadWriteOnce
    /// (`csi-translation-lib`, `gce_pd.go`, `backwardCompatibleAccessModes`): such a volume is
    /// exclusive even if its PersistentVolume says ReadWriteMany.
    pub(crate) fn effective_modes(&self, modes: AccessModes) -> AccessModes {
        let read_only_many = AccessModes::of(&[AccessMode::ReadOnlyMany]);
        if self.field != "gcePersistentDisk" || modes.is_empty() || modes == read_only_many {
            modes
        } else {
            AccessModes::of(&[AccessMode::ReadWriteOnce])
        }
    }
}

/// The name under which Kubernetes looks for the CSIDriver object of a provisioner: the CSI driver
/// that replaced an in-tree provisioner, if there is one, else the name itself.
pub fn csi_driver_of(provisioner: &str) -> &str {
    let in_tree = TYPES.iter().find(|each| each.provisioner == provisioner);
    match in_tree.map(|each| each.attaching) {
        Some(AsDriver(driver)) => driver,
        Some(Always | Never | BySetup) | None => provisioner,
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
            let twice = TYPES[..at].iter().any(|earlier| earlier.provisioner == each.provisioner);
            assert!(!twice, "{}", each.provisioner);
        }
        for field in ["emptyDir", "ephemeral", "persistentVolumeClaim", "csi", "ISCSI", ""] {
            assert_eq!(InTreeType::of_field(field), None, "{field}");
        }
    }

    #[test]
    fn only_what_a_driver_attaches_is_refused_to_a_second_node() {
        for each in &TYPES {
            let modes = each.inline(false).access_modes;
            let refused = modes.contains(ReadWriteOnce);
            assert!(!refused || matches!(each.attaching, AsDriver(_)), "{}", each.field);
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
            ("gcePersistentDisk", &[ReadWriteOnce][..], &[ReadWriteOnce][..]),
            ("gcePersistentDisk", &[ReadWriteOnce, ReadOnlyMany], &[ReadWriteOnce]),
            ("gcePersistentDisk", &[ReadWriteMany], &[ReadWriteOnce]),
            ("gcePersistentDisk", &[ReadOnlyMany], &[ReadOnlyMany]),
            ("gcePersistentDisk", &[], &[]),
            ("gcePersistentDisk", &[ReadWriteOncePod], &[ReadWriteOnce]),
            ("awsElasticBlockStore", &[ReadWriteMany], &[ReadWriteMany]),
            ("iscsi", &[ReadWriteOnce, ReadOnlyMany], &[ReadWriteOnce, ReadOnlyMany]),
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
