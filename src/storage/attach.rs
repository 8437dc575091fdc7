//! Whether the attach-detach controller acts for a driver's volumes.
//!
//! Where it does not, a second node is never refused and no Multi-Attach error
//! can come up, whatever the access modes say.

use std::sync::Arc;

use super::catalog::Catalog;
use super::volume_type::{Attaching, VolumeType};
use crate::model::cluster::Lookup;
use crate::model::storage_class::CsiDriver;

/// What the cluster says about a driver: its CSIDriver object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LiveDriver {
    /// No such object is in view.
    Absent,
    /// It is there.
    Present {
        /// `spec.attachRequired`; the API server defaults it to `true`.
        attach_required: Option<bool>,
    },
}

impl LiveDriver {
    /// What was found of the driver.
    #[must_use]
    pub fn of(found: &Lookup<Arc<CsiDriver>>) -> Self {
        match found {
            Lookup::Found(driver) => Self::Present {
                attach_required: Some(driver.attach_required),
            },
            Lookup::Absent | Lookup::NotSynced => Self::Absent,
        }
    }
}

/// Who said whether volumes are attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttachSource {
    /// The CSIDriver object.
    CsiDriver,
    /// The policy file.
    Policy,
    /// The catalog.
    Catalog,
    /// Kubernetes itself: an in-tree type that it never handed to a CSI driver.
    Kubernetes,
}

/// Whether volumes are attached before a node may use them, and who says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attach {
    /// They are.
    Required {
        /// Who says so.
        by: AttachSource,
    },
    /// They are not: nothing in Kubernetes refuses a second node.
    NotRequired {
        /// Who says so.
        by: AttachSource,
    },
    /// Nobody says, so they are: Kubernetes takes a driver without CSIDriver
    /// object for one that attaches (`pkg/volume/csi/csi_plugin.go`, `skipAttach`).
    Assumed,
    /// Nobody says, and a name with `/` is no CSI driver's (`ValidateCSIDriverName`
    /// in `pkg/apis/storage/validation`): what such a provisioner makes, often NFS
    /// or a local volume, is seen only once it is there.
    Unforeseen,
}

impl Attach {
    /// Whether volumes are attached, or have to be taken for it.
    #[must_use]
    pub const fn is_required(self) -> bool {
        !matches!(self, Self::NotRequired { .. })
    }

    /// The answer and where it comes from, as part of a sentence.
    #[must_use]
    pub const fn text(self) -> &'static str {
        use AttachSource as By;
        match self {
            Self::Required { by: By::CsiDriver } => "attached (CSIDriver object)",
            Self::Required { by: By::Policy } => "attached (policy)",
            Self::Required { by: By::Catalog } => "attached (catalog)",
            Self::Required { by: By::Kubernetes } => "attached (by Kubernetes itself)",
            Self::NotRequired { by: By::CsiDriver } => "not attached (CSIDriver object)",
            Self::NotRequired { by: By::Policy } => "not attached (policy)",
            Self::NotRequired { by: By::Catalog } => "not attached (catalog)",
            Self::NotRequired { by: By::Kubernetes } => "not attached (by its type)",
            Self::Assumed => "attached (assumed)",
            Self::Unforeseen => "not known before there is a volume",
        }
    }
}

impl Catalog {
    /// Whether the volumes of a provisioner or CSI driver are attached.
    ///
    /// `live` is the CSIDriver object of [`csi_driver_of`](super::csi_driver_of)
    /// the same name, since Kubernetes asks the successor of an in-tree name.
    /// The object wins; without one the policy or the catalog speaks, because
    /// the object may merely not be in view or not be installed yet.
    #[must_use]
    pub fn attach(&self, provisioner: &str, live: LiveDriver) -> Attach {
        if let LiveDriver::Present { attach_required } = live {
            let by = AttachSource::CsiDriver;
            return match attach_required {
                Some(false) => Attach::NotRequired { by },
                Some(true) | None => Attach::Required { by },
            };
        }
        let entry = self.get(provisioner);
        let by = match entry {
            Some(entry) if entry.attach_stated => AttachSource::Policy,
            _ => AttachSource::Catalog,
        };
        match entry.and_then(|entry| entry.attach_required) {
            Some(true) => Attach::Required { by },
            Some(false) => Attach::NotRequired { by },
            None if provisioner.contains('/') => Attach::Unforeseen,
            None => Attach::Assumed,
        }
    }

    /// Whether a volume of this type is attached; `live` looks up the CSIDriver
    /// object of a driver.
    ///
    /// A `csi` volume names its driver itself, which is the one to ask
    /// [`Catalog::attach`] about; here it is assumed to attach, as is a
    /// FlexVolume, of which no object says more.
    #[must_use]
    pub fn attach_type(
        &self,
        volume_type: VolumeType,
        live: impl FnOnce(&str) -> LiveDriver,
    ) -> Attach {
        let by = AttachSource::Kubernetes;
        match volume_type.attaching() {
            Attaching::AsDriver(driver) => self.attach(driver, live(driver)),
            Attaching::Always => Attach::Required { by },
            Attaching::Never => Attach::NotRequired { by },
            Attaching::AsNamed | Attaching::BySetup => Attach::Assumed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::ProvisionerOverride;

    #[test]
    fn the_live_object_wins_then_the_policy_then_the_catalog() {
        let stated = ProvisionerOverride {
            name: "stated.example.com".into(),
            attach_required: Some(false),
            ..ProvisionerOverride::default()
        };
        let catalog = Catalog::embedded()
            .unwrap()
            .with_overrides(vec![stated])
            .unwrap();
        let present = |attach_required| LiveDriver::Present { attach_required };
        let cases = [
            (
                "ebs.csi.aws.com",
                LiveDriver::Absent,
                Attach::Required {
                    by: AttachSource::Catalog,
                },
            ),
            (
                "efs.csi.aws.com",
                LiveDriver::Absent,
                Attach::NotRequired {
                    by: AttachSource::Catalog,
                },
            ),
            (
                "kubernetes.io/gce-pd",
                LiveDriver::Absent,
                Attach::Required {
                    by: AttachSource::Catalog,
                },
            ),
            (
                "efs.csi.aws.com",
                present(Some(true)),
                Attach::Required {
                    by: AttachSource::CsiDriver,
                },
            ),
            (
                "efs.csi.aws.com",
                present(None),
                Attach::Required {
                    by: AttachSource::CsiDriver,
                },
            ),
            (
                "ebs.csi.aws.com",
                present(Some(false)),
                Attach::NotRequired {
                    by: AttachSource::CsiDriver,
                },
            ),
            (
                "stated.example.com",
                LiveDriver::Absent,
                Attach::NotRequired {
                    by: AttachSource::Policy,
                },
            ),
            (
                "stated.example.com",
                present(Some(true)),
                Attach::Required {
                    by: AttachSource::CsiDriver,
                },
            ),
            // The catalog knows the driver but not whether it attaches.
            (
                "rook-ceph.cephfs.csi.ceph.com",
                LiveDriver::Absent,
                Attach::Assumed,
            ),
            ("unheard.example.com", LiveDriver::Absent, Attach::Assumed),
            (
                "example.com/unheard",
                LiveDriver::Absent,
                Attach::Unforeseen,
            ),
            (
                "kubernetes.io/no-provisioner",
                LiveDriver::Absent,
                Attach::Unforeseen,
            ),
            (
                "unheard.example.com",
                present(Some(false)),
                Attach::NotRequired {
                    by: AttachSource::CsiDriver,
                },
            ),
        ];
        for (name, live, expected) in cases {
            assert_eq!(catalog.attach(name, live), expected, "{name} with {live:?}");
        }
    }

    #[test]
    fn a_volume_type_goes_by_its_driver_or_by_kubernetes() {
        let catalog = Catalog::embedded().unwrap();
        let absent = |_: &str| LiveDriver::Absent;
        let by = AttachSource::Kubernetes;
        let cases = [
            (
                VolumeType::Cinder,
                Attach::Required {
                    by: AttachSource::Catalog,
                },
            ),
            (
                VolumeType::PortworxVolume,
                Attach::NotRequired {
                    by: AttachSource::Catalog,
                },
            ),
            (VolumeType::Iscsi, Attach::Required { by }),
            (VolumeType::Nfs, Attach::NotRequired { by }),
            (VolumeType::FlexVolume, Attach::Assumed),
        ];
        for (volume_type, expected) in cases {
            let attach = catalog.attach_type(volume_type, absent);
            assert_eq!(attach, expected, "{volume_type:?}");
        }
        let live = |driver: &str| LiveDriver::Present {
            attach_required: Some(driver != "cinder.csi.openstack.org"),
        };
        assert_eq!(
            catalog.attach_type(VolumeType::Cinder, live),
            Attach::NotRequired {
                by: AttachSource::CsiDriver
            }
        );
    }
}
