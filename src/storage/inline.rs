//! What a volume means that a pod template names itself, without any claim.
//!
//! Read in Kubernetes v1.36.2:
//!
//! * The attach-detach controller translates a migrated type into a CSI volume
//!   before it does anything else, and the translation *invents* access modes
//!   (`csi-translation-lib`, `TranslateInTreeInlineVolumeToCSI`): ReadWriteOnce
//!   for `awsElasticBlockStore`, `azureDisk`, `cinder` and `vsphereVolume`,
//!   whatever their `readOnly` says; ReadOnlyMany for `gcePersistentDisk` and
//!   `portworxVolume` with `readOnly: true`, else ReadWriteOnce; ReadWriteMany
//!   for `azureFile`. From then on they are judged like a PersistentVolume.
//! * A type that is not migrated has no PersistentVolume, and without one
//!   `IsMultiAttachAllowed` (`pkg/volume/util/util.go`) says yes: for `iscsi`,
//!   `rbd`, `fc` and FlexVolumes a second node is *not* refused, and two nodes
//!   write to one disk. Its only exceptions, `azureDisk` and `cinder`, are
//!   migrated and exclusive anyhow.
//! * The scheduler keeps two pods with the same disk off *one node*
//!   (`volumerestrictions/volume_restrictions.go`, `isVolumeConflict`):
//!   `awsElasticBlockStore` always; `gcePersistentDisk`, `iscsi` and `rbd`
//!   unless both pods mount it read-only. It compares with pods of that node
//!   only, and only volumes written inline, so neither claims nor the other
//!   types are concerned.
//! * `csi` inline is an ephemeral volume of its pod and never attached
//!   (`csi_plugin.go`, `CanAttach`); `local` cannot stand in a pod.
//!
//! An inline EBS volume is thus worse off than a ReadWriteOnce claim: a second
//! pod is refused on every other node by the controller and on the same node by
//! the scheduler, so pod affinity does not help it.

use super::volume_source::VolumeSource;
use crate::model::access_mode::{AccessMode, AccessModes};

/// What an inline volume allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inline {
    /// What happens to a pod on a second node.
    pub second_node: SecondNode,
    /// What happens to a second pod on the same node.
    pub same_node: SameNode,
    /// The access modes Kubernetes gives the volume on translating it to CSI;
    /// `None` for types that are not translated.
    pub access_modes: Option<AccessModes>,
}

/// What happens to a pod on a second node that names the same inline volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecondNode {
    /// Refused with a Multi-Attach error, provided that this CSI driver attaches.
    RefusedIfAttached(&'static str),
    /// Let through, and both nodes write: nothing guards the data.
    Unguarded,
    /// Let through, as the storage is made for it or both only read.
    Shared,
    /// It finds another directory of the same path.
    NodeLocal,
    /// It has a volume of its own.
    PodOwn,
}

/// What happens to a second pod on the same node that names the same inline volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SameNode {
    /// It runs.
    Allowed,
    /// The scheduler keeps it away from the node.
    Refused,
}

impl VolumeSource {
    /// What a volume of this type means inside a pod; `read_only` is its
    /// `readOnly` field. `None` for `local`, which cannot stand in a pod.
    #[must_use]
    pub const fn inline(self, read_only: bool) -> Option<Inline> {
        let (second_node, access_mode) = match self {
            Self::AwsElasticBlockStore => (
                SecondNode::RefusedIfAttached("ebs.csi.aws.com"),
                Some(AccessMode::ReadWriteOnce),
            ),
            Self::AzureDisk => (
                SecondNode::RefusedIfAttached("disk.csi.azure.com"),
                Some(AccessMode::ReadWriteOnce),
            ),
            Self::Cinder => (
                SecondNode::RefusedIfAttached("cinder.csi.openstack.org"),
                Some(AccessMode::ReadWriteOnce),
            ),
            Self::VsphereVolume => (
                SecondNode::RefusedIfAttached("csi.vsphere.vmware.com"),
                Some(AccessMode::ReadWriteOnce),
            ),
            Self::GcePersistentDisk | Self::PortworxVolume if read_only => {
                (SecondNode::Shared, Some(AccessMode::ReadOnlyMany))
            }
            Self::GcePersistentDisk => (
                SecondNode::RefusedIfAttached("pd.csi.storage.gke.io"),
                Some(AccessMode::ReadWriteOnce),
            ),
            Self::PortworxVolume => (
                SecondNode::RefusedIfAttached("pxd.portworx.com"),
                Some(AccessMode::ReadWriteOnce),
            ),
            Self::AzureFile => (SecondNode::Shared, Some(AccessMode::ReadWriteMany)),
            Self::Cephfs | Self::Glusterfs | Self::Nfs | Self::Quobyte => {
                (SecondNode::Shared, None)
            }
            Self::Fc | Self::FlexVolume | Self::Iscsi | Self::Rbd if read_only => {
                (SecondNode::Shared, None)
            }
            Self::Fc
            | Self::FlexVolume
            | Self::Flocker
            | Self::Iscsi
            | Self::PhotonPersistentDisk
            | Self::Rbd
            | Self::ScaleIo
            | Self::StorageOs => (SecondNode::Unguarded, None),
            Self::HostPath => (SecondNode::NodeLocal, None),
            Self::Csi => (SecondNode::PodOwn, None),
            Self::Local => return None,
        };
        let same_node = match self {
            Self::AwsElasticBlockStore => SameNode::Refused,
            Self::GcePersistentDisk | Self::Iscsi | Self::Rbd if !read_only => SameNode::Refused,
            _ => SameNode::Allowed,
        };
        Some(Inline {
            second_node,
            same_node,
            access_modes: match access_mode {
                Some(mode) => Some(AccessModes::of(&[mode])),
                None => None,
            },
        })
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
    pub fn effective_modes(self, modes: AccessModes) -> AccessModes {
        let read_only_many = AccessModes::of(&[AccessMode::ReadOnlyMany]);
        if self != Self::GcePersistentDisk || modes.is_empty() || modes == read_only_many {
            modes
        } else {
            AccessModes::of(&[AccessMode::ReadWriteOnce])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::Attaching;
    use AccessMode::{ReadOnlyMany, ReadWriteMany, ReadWriteOnce, ReadWriteOncePod};
    use VolumeSource as Source;

    const fn exclusive(driver: &'static str, same_node: SameNode) -> Option<Inline> {
        Some(Inline {
            second_node: SecondNode::RefusedIfAttached(driver),
            same_node,
            access_modes: Some(AccessModes::of(&[ReadWriteOnce])),
        })
    }

    const fn plain(second_node: SecondNode, same_node: SameNode) -> Option<Inline> {
        Some(Inline {
            second_node,
            same_node,
            access_modes: None,
        })
    }

    #[test]
    fn inline_volumes() {
        use SameNode::{Allowed, Refused};
        let read_only_many = Some(Inline {
            second_node: SecondNode::Shared,
            same_node: Allowed,
            access_modes: Some(AccessModes::of(&[ReadOnlyMany])),
        });
        let cases = [
            (
                Source::AwsElasticBlockStore,
                false,
                exclusive("ebs.csi.aws.com", Refused),
            ),
            (
                Source::AwsElasticBlockStore,
                true,
                exclusive("ebs.csi.aws.com", Refused),
            ),
            (
                Source::AzureDisk,
                false,
                exclusive("disk.csi.azure.com", Allowed),
            ),
            (
                Source::AzureDisk,
                true,
                exclusive("disk.csi.azure.com", Allowed),
            ),
            (
                Source::Cinder,
                true,
                exclusive("cinder.csi.openstack.org", Allowed),
            ),
            (
                Source::VsphereVolume,
                false,
                exclusive("csi.vsphere.vmware.com", Allowed),
            ),
            (
                Source::GcePersistentDisk,
                false,
                exclusive("pd.csi.storage.gke.io", Refused),
            ),
            (Source::GcePersistentDisk, true, read_only_many),
            (
                Source::PortworxVolume,
                false,
                exclusive("pxd.portworx.com", Allowed),
            ),
            (Source::PortworxVolume, true, read_only_many),
            (Source::Iscsi, false, plain(SecondNode::Unguarded, Refused)),
            (Source::Iscsi, true, plain(SecondNode::Shared, Allowed)),
            (Source::Rbd, false, plain(SecondNode::Unguarded, Refused)),
            (Source::Rbd, true, plain(SecondNode::Shared, Allowed)),
            (Source::Fc, false, plain(SecondNode::Unguarded, Allowed)),
            (Source::Fc, true, plain(SecondNode::Shared, Allowed)),
            (
                Source::FlexVolume,
                false,
                plain(SecondNode::Unguarded, Allowed),
            ),
            (Source::Nfs, false, plain(SecondNode::Shared, Allowed)),
            (
                Source::HostPath,
                false,
                plain(SecondNode::NodeLocal, Allowed),
            ),
            (Source::Csi, false, plain(SecondNode::PodOwn, Allowed)),
            (Source::Local, false, None),
        ];
        for (source, read_only, expected) in cases {
            assert_eq!(
                source.inline(read_only),
                expected,
                "{source:?}, readOnly {read_only}"
            );
        }
    }

    #[test]
    fn only_what_goes_by_a_driver_is_refused_by_one() {
        for source in Source::ALL {
            let Some(Inline {
                second_node: SecondNode::RefusedIfAttached(driver),
                ..
            }) = source.inline(false)
            else {
                continue;
            };
            assert_eq!(source.attaching(), Attaching::AsDriver(driver));
        }
    }

    #[test]
    fn a_google_disk_is_exclusive_unless_it_is_read_only_for_all() {
        let cases = [
            (
                Source::GcePersistentDisk,
                &[ReadWriteOnce][..],
                &[ReadWriteOnce][..],
            ),
            (
                Source::GcePersistentDisk,
                &[ReadWriteOnce, ReadOnlyMany],
                &[ReadWriteOnce],
            ),
            (
                Source::GcePersistentDisk,
                &[ReadWriteMany],
                &[ReadWriteOnce],
            ),
            (Source::GcePersistentDisk, &[ReadOnlyMany], &[ReadOnlyMany]),
            (Source::GcePersistentDisk, &[], &[]),
            (
                Source::GcePersistentDisk,
                &[ReadWriteOncePod],
                &[ReadWriteOnce],
            ),
            (
                Source::AwsElasticBlockStore,
                &[ReadWriteMany],
                &[ReadWriteMany],
            ),
            (
                Source::Iscsi,
                &[ReadWriteOnce, ReadOnlyMany],
                &[ReadWriteOnce, ReadOnlyMany],
            ),
        ];
        for (source, modes, expected) in cases {
            assert_eq!(
                source.effective_modes(AccessModes::of(modes)),
                AccessModes::of(expected),
                "{source:?} {modes:?}"
            );
        }
    }
}
