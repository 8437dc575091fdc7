//! The types of volume that a PersistentVolume or a pod can name itself.

/// A volume type, by the field that carries it in `PersistentVolume.spec` or in
/// a pod's `volumes`.
///
/// Types that last no longer than their pod (`emptyDir`, `configMap`,
/// `ephemeral` and so on) are no concern here and have no variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "every variant is the field of its own name")]
pub enum VolumeType {
    AwsElasticBlockStore,
    AzureDisk,
    AzureFile,
    Cephfs,
    Cinder,
    Csi,
    Fc,
    FlexVolume,
    Flocker,
    GcePersistentDisk,
    Glusterfs,
    HostPath,
    Iscsi,
    Local,
    Nfs,
    PhotonPersistentDisk,
    PortworxVolume,
    Quobyte,
    Rbd,
    ScaleIo,
    StorageOs,
    VsphereVolume,
}

/// Who says whether the attach-detach controller acts for a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attaching {
    /// The CSIDriver of this name: the type is migrated to it.
    AsDriver(&'static str),
    /// The CSIDriver that the volume names in `csi.driver`.
    AsNamed,
    /// It always acts.
    Always,
    /// It never acts: no second node is ever refused.
    Never,
    /// It acts if the FlexVolume driver is installed beside the controller and
    /// says that it attaches; no object shows that.
    BySetup,
}

impl VolumeType {
    /// Every type.
    pub const ALL: [Self; 22] = [
        Self::AwsElasticBlockStore,
        Self::AzureDisk,
        Self::AzureFile,
        Self::Cephfs,
        Self::Cinder,
        Self::Csi,
        Self::Fc,
        Self::FlexVolume,
        Self::Flocker,
        Self::GcePersistentDisk,
        Self::Glusterfs,
        Self::HostPath,
        Self::Iscsi,
        Self::Local,
        Self::Nfs,
        Self::PhotonPersistentDisk,
        Self::PortworxVolume,
        Self::Quobyte,
        Self::Rbd,
        Self::ScaleIo,
        Self::StorageOs,
        Self::VsphereVolume,
    ];

    /// The field's name in manifests, `awsElasticBlockStore` for example.
    #[must_use]
    pub const fn field(self) -> &'static str {
        match self {
            Self::AwsElasticBlockStore => "awsElasticBlockStore",
            Self::AzureDisk => "azureDisk",
            Self::AzureFile => "azureFile",
            Self::Cephfs => "cephfs",
            Self::Cinder => "cinder",
            Self::Csi => "csi",
            Self::Fc => "fc",
            Self::FlexVolume => "flexVolume",
            Self::Flocker => "flocker",
            Self::GcePersistentDisk => "gcePersistentDisk",
            Self::Glusterfs => "glusterfs",
            Self::HostPath => "hostPath",
            Self::Iscsi => "iscsi",
            Self::Local => "local",
            Self::Nfs => "nfs",
            Self::PhotonPersistentDisk => "photonPersistentDisk",
            Self::PortworxVolume => "portworxVolume",
            Self::Quobyte => "quobyte",
            Self::Rbd => "rbd",
            Self::ScaleIo => "scaleIO",
            Self::StorageOs => "storageos",
            Self::VsphereVolume => "vsphereVolume",
        }
    }

    /// The type a field stands for; `None` for any other field, those of
    /// pod-bound volumes included.
    #[must_use]
    pub fn from_field(field: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|each| each.field() == field)
    }

    /// The name under which the catalog knows the type; `None` for `csi`, whose
    /// volumes name their driver.
    #[must_use]
    pub const fn catalog_name(self) -> Option<&'static str> {
        Some(match self {
            Self::AwsElasticBlockStore => "kubernetes.io/aws-ebs",
            Self::AzureDisk => "kubernetes.io/azure-disk",
            Self::AzureFile => "kubernetes.io/azure-file",
            Self::Cephfs => "kubernetes.io/cephfs",
            Self::Cinder => "kubernetes.io/cinder",
            Self::Csi => return None,
            Self::Fc => "pv-source:fc",
            Self::FlexVolume => "pv-source:flexVolume",
            Self::Flocker => "kubernetes.io/flocker",
            Self::GcePersistentDisk => "kubernetes.io/gce-pd",
            Self::Glusterfs => "kubernetes.io/glusterfs",
            Self::HostPath => "pv-source:hostPath",
            Self::Iscsi => "pv-source:iscsi",
            Self::Local => "pv-source:local",
            Self::Nfs => "pv-source:nfs",
            Self::PhotonPersistentDisk => "kubernetes.io/photon-pd",
            Self::PortworxVolume => "kubernetes.io/portworx-volume",
            Self::Quobyte => "kubernetes.io/quobyte",
            Self::Rbd => "kubernetes.io/rbd",
            Self::ScaleIo => "kubernetes.io/scaleio",
            Self::StorageOs => "kubernetes.io/storageos",
            Self::VsphereVolume => "kubernetes.io/vsphere-volume",
        })
    }

    /// Whether the attach-detach controller acts for volumes of this type.
    ///
    /// In Kubernetes 1.36 the plugins with an attacher are `csi`, `fc`, `iscsi`
    /// and FlexVolume's (`AttachableVolumePlugin` under `pkg/volume`); the types
    /// of `csi-translation-lib` are handed to their CSI drivers before. `rbd`
    /// (gone since 1.31) and `photonPersistentDisk` had attachers as well; the
    /// other removed types had none, so they never attached.
    #[must_use]
    pub const fn attaching(self) -> Attaching {
        match self {
            Self::AwsElasticBlockStore => Attaching::AsDriver("ebs.csi.aws.com"),
            Self::AzureDisk => Attaching::AsDriver("disk.csi.azure.com"),
            Self::AzureFile => Attaching::AsDriver("file.csi.azure.com"),
            Self::Cinder => Attaching::AsDriver("cinder.csi.openstack.org"),
            Self::GcePersistentDisk => Attaching::AsDriver("pd.csi.storage.gke.io"),
            Self::PortworxVolume => Attaching::AsDriver("pxd.portworx.com"),
            Self::VsphereVolume => Attaching::AsDriver("csi.vsphere.vmware.com"),
            Self::Csi => Attaching::AsNamed,
            Self::Fc | Self::Iscsi | Self::PhotonPersistentDisk | Self::Rbd => Attaching::Always,
            Self::FlexVolume => Attaching::BySetup,
            Self::Cephfs
            | Self::Flocker
            | Self::Glusterfs
            | Self::HostPath
            | Self::Local
            | Self::Nfs
            | Self::Quobyte
            | Self::ScaleIo
            | Self::StorageOs => Attaching::Never,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::{Catalog, in_tree};

    #[test]
    fn fields_are_read_back() {
        for volume_type in VolumeType::ALL {
            assert_eq!(
                VolumeType::from_field(volume_type.field()),
                Some(volume_type)
            );
        }
        for field in [
            "emptyDir",
            "ephemeral",
            "persistentVolumeClaim",
            "ISCSI",
            "",
        ] {
            assert_eq!(VolumeType::from_field(field), None, "{field}");
        }
    }

    #[test]
    fn every_type_but_csi_is_in_the_catalog_under_its_own_name() {
        let catalog = Catalog::embedded().unwrap();
        for volume_type in VolumeType::ALL {
            match volume_type.catalog_name() {
                None => assert_eq!(volume_type, VolumeType::Csi),
                Some(name) => assert_eq!(catalog.get(name).unwrap().name, name),
            }
        }
    }

    #[test]
    fn attaching_agrees_with_the_catalog_and_the_migrated_names() {
        let catalog = Catalog::embedded().unwrap();
        for volume_type in VolumeType::ALL {
            let Some(name) = volume_type.catalog_name() else {
                continue;
            };
            let field = volume_type.field();
            let entry = catalog.get(name).unwrap();
            match volume_type.attaching() {
                Attaching::AsDriver(driver) => {
                    assert_eq!(in_tree::csi_driver_of(name), driver, "{field}");
                }
                Attaching::Always => assert_eq!(entry.attach_required, Some(true), "{field}"),
                Attaching::Never => assert_ne!(entry.attach_required, Some(true), "{field}"),
                Attaching::BySetup | Attaching::AsNamed => {
                    assert_eq!(entry.attach_required, None, "{field}");
                }
            }
        }
    }
}
