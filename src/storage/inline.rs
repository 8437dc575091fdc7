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

use super::volume_type::VolumeType;
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

impl VolumeType {
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
    use VolumeType as Type;

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
                Type::AwsElasticBlockStore,
                false,
                exclusive("ebs.csi.aws.com", Refused),
            ),
            (
                Type::AwsElasticBlockStore,
                true,
                exclusive("ebs.csi.aws.com", Refused),
            ),
            (
                Type::AzureDisk,
                false,
                exclusive("disk.csi.azure.com", Allowed),
            ),
            (
                Type::AzureDisk,
                true,
                exclusive("disk.csi.azure.com", Allowed),
            ),
            (
                Type::Cinder,
                true,
                exclusive("cinder.csi.openstack.org", Allowed),
            ),
            (
                Type::VsphereVolume,
                false,
                exclusive("csi.vsphere.vmware.com", Allowed),
            ),
            (
                Type::GcePersistentDisk,
                false,
                exclusive("pd.csi.storage.gke.io", Refused),
            ),
            (Type::GcePersistentDisk, true, read_only_many),
            (
                Type::PortworxVolume,
                false,
                exclusive("pxd.portworx.com", Allowed),
            ),
            (Type::PortworxVolume, true, read_only_many),
            (Type::Iscsi, false, plain(SecondNode::Unguarded, Refused)),
            (Type::Iscsi, true, plain(SecondNode::Shared, Allowed)),
            (Type::Rbd, false, plain(SecondNode::Unguarded, Refused)),
            (Type::Rbd, true, plain(SecondNode::Shared, Allowed)),
            (Type::Fc, false, plain(SecondNode::Unguarded, Allowed)),
            (Type::Fc, true, plain(SecondNode::Shared, Allowed)),
            (
                Type::FlexVolume,
                false,
                plain(SecondNode::Unguarded, Allowed),
            ),
            (Type::Nfs, false, plain(SecondNode::Shared, Allowed)),
            (Type::HostPath, false, plain(SecondNode::NodeLocal, Allowed)),
            (Type::Csi, false, plain(SecondNode::PodOwn, Allowed)),
            (Type::Local, false, None),
        ];
        for (volume_type, read_only, expected) in cases {
            assert_eq!(
                volume_type.inline(read_only),
                expected,
                "{volume_type:?}, readOnly {read_only}"
            );
        }
    }

    #[test]
    fn only_what_goes_by_a_driver_is_refused_by_one() {
        for volume_type in Type::ALL {
            let Some(Inline {
                second_node: SecondNode::RefusedIfAttached(driver),
                ..
            }) = volume_type.inline(false)
            else {
                continue;
            };
            assert_eq!(volume_type.attaching(), Attaching::AsDriver(driver));
        }
    }

    #[test]
    fn a_google_disk_is_exclusive_unless_it_is_read_only_for_all() {
        let cases = [
            (
                Type::GcePersistentDisk,
                &[ReadWriteOnce][..],
                &[ReadWriteOnce][..],
            ),
            (
                Type::GcePersistentDisk,
                &[ReadWriteOnce, ReadOnlyMany],
                &[ReadWriteOnce],
            ),
            (Type::GcePersistentDisk, &[ReadWriteMany], &[ReadWriteOnce]),
            (Type::GcePersistentDisk, &[ReadOnlyMany], &[ReadOnlyMany]),
            (Type::GcePersistentDisk, &[], &[]),
            (
                Type::GcePersistentDisk,
                &[ReadWriteOncePod],
                &[ReadWriteOnce],
            ),
            (
                Type::AwsElasticBlockStore,
                &[ReadWriteMany],
                &[ReadWriteMany],
            ),
            (
                Type::Iscsi,
                &[ReadWriteOnce, ReadOnlyMany],
                &[ReadWriteOnce, ReadOnlyMany],
            ),
        ];
        for (volume_type, modes, expected) in cases {
            assert_eq!(
                volume_type.effective_modes(AccessModes::of(modes)),
                AccessModes::of(expected),
                "{volume_type:?} {modes:?}"
            );
        }
    }

    #[test]
    fn every_type_the_model_keeps_from_a_pod_has_a_meaning() {
        for field in crate::model::pod::INLINE_SOURCES {
            let inline = VolumeType::from_field(field).and_then(|kind| kind.inline(false));
            let second_node = inline.map(|inline| inline.second_node);
            assert!(second_node.is_some(), "{field}");
            assert_ne!(second_node, Some(SecondNode::PodOwn), "{field}");
        }
    }
}
