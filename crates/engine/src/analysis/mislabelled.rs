//! Volumes with access modes that their driver cannot give. Kubernetes trusts the modes; the driver
//! does not.

use super::Facts;
use super::attach_constraint::ByDriver;
use super::binding::class_of;
use super::volumes::attach;
use crate::model::access_mode::{AccessMode, AccessModes};
use crate::model::claim::Claim;
use crate::model::in_tree::csi_driver_of;
use crate::model::storage_class::StorageClass;
use crate::model::volume::{Volume, VolumeSource};
use crate::storage::{Attach, ClassModes, Support};

/// The driver's reaction to a volume of `claim` that is labelled for several nodes.
pub fn mislabelled(volume: &Volume, claim: &Claim, facts: Facts<'_>) -> Option<ByDriver> {
    let driver = match &volume.spec.source {
        VolumeSource::Csi(driver) => driver.as_str(),
        // A volume that Kubernetes still attaches itself never reaches a CSI driver.
        VolumeSource::InTree(in_tree) => Some(csi_driver_of(in_tree.provisioner))
            .filter(|driver| *driver != in_tree.provisioner)?,
        VolumeSource::Unknown => return None,
    };
    let (labelled, mode) = (volume.spec.access_modes, volume.spec.volume_mode);
    if is_never_attached(labelled, driver, facts) {
        return Some(ByDriver::NeverAttached);
    }
    let shared = AccessModes::of(&[AccessMode::ReadWriteMany, AccessMode::ReadOnlyMany]);
    let promised = labelled.common(shared);
    if promised.is_empty()
        || !matches!(attach(driver, facts), Attach::Required { .. })
        || facts.catalog.is_of_each_node(driver, &volume.spec.handle)
    {
        return None;
    }
    let class = StorageClass::or_unknown(
        class_of(claim, facts).ok().filter(|class| csi_driver_of(class.driver()) == driver),
    );
    let stated = ClassModes::from_annotations(&class.metadata.annotations).unwrap_or_default();
    let capability = facts.catalog.capability(driver, &class.parameters, mode);
    match capability.with_stated(stated).judge(promised) {
        Support::Refused { modes } => Some(if facts.catalog.attach_checks_modes(driver) {
            ByDriver::RefusesModes(modes)
        } else {
            ByDriver::CannotShare(modes)
        }),
        _ => None,
    }
}

/// Whether the external-attacher attaches volumes with these modes to no node at all.
pub(crate) fn is_never_attached(modes: AccessModes, driver: &str, facts: Facts<'_>) -> bool {
    modes.contains(AccessMode::ReadWriteOnce)
        && modes.contains(AccessMode::ReadOnlyMany)
        && !modes.contains(AccessMode::ReadWriteMany)
        && match attach(driver, facts) {
            Attach::Required { .. } => true,
            Attach::Assumed => !facts.view.overlay().partial,
            _ => false,
        }
}
