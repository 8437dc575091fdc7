//! Whether the attach-detach controller acts for a driver's volumes.
//!
//! If it does not, a second node is never refused and no Multi-Attach error can occur, whatever the
//! access modes say.

use super::catalog::Catalog;
use super::entry::AttachSource;
use crate::model::access_mode::{AccessMode, AccessModes, VolumeMode};
use crate::model::in_tree::{Attaching, InTreeType, csi_driver_of};
use crate::model::labels::Labels;
use crate::model::storage_class::CsiDriver;
use crate::snapshot::Lookup;

/// Whether volumes are attached before a node may use them, and the source that says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attach {
    /// They are.
    Required {
        /// The source that says so.
        by: AttachSource,
    },
    /// They are not: nothing in Kubernetes refuses a second node.
    NotRequired {
        /// The source that says so.
        by: AttachSource,
    },
    /// No source says, so they are: Kubernetes assumes that a driver without a CSIDriver object
    /// attaches (`pkg/volume/csi/csi_plugin.go`, `skipAttach`).
    Assumed,
    /// No source says, and a name with `/` is no CSI driver's (`ValidateCSIDriverName` in
    /// `pkg/apis/storage/validation`): a volume of such a provisioner, often NFS or a local one, is
    /// known only once it exists.
    Unforeseen,
    /// No object shows it: a FlexVolume is attached if its driver is installed next to the
    /// controller and supports it.
    BySetup,
}

impl Attach {
    /// The answer and its source, as part of a sentence.
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
            Self::Assumed | Self::BySetup => "attached (assumed)",
            Self::Unforeseen => "not known before there is a volume",
        }
    }
}

impl Catalog {
    /// Whether the volumes of a provisioner or CSI driver are attached.
    ///
    /// `csi_driver` looks up a CSIDriver object by its name; for an in-tree provisioner it looks up
    /// the successor, as Kubernetes does. The object takes precedence. Without one the policy or
    /// the catalog decides, because the object may merely not be in view or not be installed yet.
    pub fn attach<'v>(
        &self,
        provisioner: &str,
        csi_driver: impl FnOnce(&str) -> Lookup<&'v CsiDriver>,
    ) -> Attach {
        let successor = csi_driver_of(provisioner);
        let of_object = csi_driver(successor)
            .found()
            .map(|driver| (driver.is_attached(), AttachSource::CsiDriver));
        let stated = |name| {
            let entry = self.get(name)?;
            Some((entry.attach_required?, entry.attach_by))
        };
        match of_object.or_else(|| stated(provisioner)).or_else(|| stated(successor)) {
            Some((true, by)) => Attach::Required { by },
            Some((false, by)) => Attach::NotRequired { by },
            None if provisioner.contains('/') => Attach::Unforeseen,
            None => Attach::Assumed,
        }
    }

    /// Whether the driver refuses, even for the first node, to attach a volume whose access modes
    /// it cannot give.
    pub(crate) fn attach_checks_modes(&self, driver: &str) -> bool {
        self.get(driver).is_some_and(|entry| entry.attach_checks_modes)
    }

    /// Whether a volume with that handle is another disk on each node.
    pub(crate) fn is_of_each_node(&self, driver: &str, handle: &str) -> bool {
        self.get(driver)
            .and_then(|entry| entry.handle_of_each_node.as_deref())
            .is_some_and(|prefix| handle.starts_with(prefix))
    }

    /// Whether volumes of a class with these parameters are, or may be, disks that only one node
    /// can have. If nothing attaches such a disk and the catalog does not say how a second use
    /// ends, it is not known whether a second node is refused. `parameters` is `None` if the class
    /// is not known.
    pub(crate) fn is_disk(&self, driver: &str, parameters: Option<&Labels>) -> bool {
        let Some(entry) = self.get(driver) else {
            return false;
        };
        let mode = VolumeMode::Filesystem;
        let files = match parameters {
            Some(parameters) => self.capability(driver, parameters, mode).granted,
            None => entry.modes(mode).possible,
        };
        let is_for_one = |modes: AccessModes| {
            modes.contains(AccessMode::ReadWriteOnce) && !modes.contains(AccessMode::ReadWriteMany)
        };
        entry.attach_by == AttachSource::Catalog
            && !entry.node_local
            && files.map_or(entry.attach_required == Some(true), is_for_one)
    }

    /// Whether a volume of an in-tree type is attached; `csi_driver` as in [`Catalog::attach`]. No
    /// object says that about a FlexVolume.
    pub(crate) fn attach_in_tree<'v>(
        &self,
        in_tree: &InTreeType,
        csi_driver: impl FnOnce(&str) -> Lookup<&'v CsiDriver>,
    ) -> Attach {
        let by = AttachSource::Kubernetes;
        match in_tree.attaching {
            Attaching::AsDriver(driver) => self.attach(driver, csi_driver),
            Attaching::Always => Attach::Required { by },
            Attaching::Never => Attach::NotRequired { by },
            Attaching::BySetup => Attach::BySetup,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::metadata::Metadata;
    use crate::model::storage_class::CsiDriverSpec;

    fn absent(_: &str) -> Lookup<&'static CsiDriver> {
        Lookup::Absent
    }

    fn named(name: &str, attach_required: bool) -> CsiDriver {
        CsiDriver {
            metadata: Metadata { name: name.into(), ..Metadata::default() },
            spec: CsiDriverSpec {
                attach_required: Some(attach_required),
                ..CsiDriverSpec::default()
            },
            ..CsiDriver::default()
        }
    }

    #[test]
    fn an_in_tree_type_goes_by_its_driver_or_by_kubernetes() {
        let catalog = Catalog::embedded().unwrap();
        let by = AttachSource::Kubernetes;
        let catalogued = AttachSource::Catalog;
        let cases = [
            ("cinder", Attach::Required { by: catalogued }),
            ("portworxVolume", Attach::NotRequired { by: catalogued }),
            ("iscsi", Attach::Required { by }),
            ("nfs", Attach::NotRequired { by }),
            ("flexVolume", Attach::BySetup),
        ];
        for (field, expected) in cases {
            let in_tree = InTreeType::of_field(field).unwrap();
            assert_eq!(catalog.attach_in_tree(in_tree, absent), expected, "{field}");
        }
        let cinder = InTreeType::of_field("cinder").unwrap();
        let object = named("cinder.csi.openstack.org", false);
        assert_eq!(
            catalog.attach_in_tree(cinder, |driver| {
                assert_eq!(driver, object.metadata.name);
                Lookup::Found(&object)
            }),
            Attach::NotRequired { by: AttachSource::CsiDriver }
        );
    }
}
