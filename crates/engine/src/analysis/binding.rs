//! The class of a claim, and the volume that it would be bound to.

use super::Facts;
use super::attach_constraint::Missing;
use super::topology::{leads_somewhere, reach};
use crate::model::claim::Claim;
use crate::model::storage_class::StorageClass;
use crate::model::volume::Volume;

/// The class that a claim names, or the default one.
///
/// # Errors
/// The missing fact, if there is no such class.
pub fn class_of<'a>(claim: &Claim, facts: Facts<'a>) -> Result<&'a StorageClass, Missing> {
    let view = facts.view;
    match claim.class() {
        Some("") => Err(Missing::FittingVolume),
        Some(name) => {
            view.storage_class(name).known().map_err(|absence| Missing::Class(name.into(), absence))
        }
        None => view.default_storage_class().known().map_err(Missing::DefaultClass),
    }
}

/// The volume to which Kubernetes would bind the claim, large enough and of its mode: the one that
/// names it, whatever its class (`FindMatchingVolume` and `IsVolumeBoundToClaim` in
/// `component-helpers/storage/volume/pv_helpers.go`), or else a free one. With binding mode
/// Immediate it has every access mode that the claim requests; one with fewer modes comes first,
/// whether or not it names the claim, then the smallest (`persistentvolume/index.go`). With
/// WaitForFirstConsumer it is the smallest that a node can reach. `class` is the claim's class if it
/// is known; a class of static volumes needs no StorageClass.
pub(crate) fn fitting<'a>(
    claim: &Claim,
    class: Option<&StorageClass>,
    facts: Facts<'a>,
) -> Option<&'a Volume> {
    let named = claim.class().unwrap_or_default();
    let class_name = class.map_or(named, |class| class.metadata.name.as_str());
    let binds_late = class.is_some_and(StorageClass::binds_late);
    let is_enough = |volume: &&Volume| {
        volume.spec.volume_mode == claim.spec.volume_mode
            && volume.spec.capacity.storage >= claim.spec.resources.requests.storage
    };
    let gives_modes =
        |volume: &&Volume| claim.spec.access_modes.is_subset(volume.spec.access_modes);
    let own = facts
        .view
        .volume_of(&claim.metadata)
        .filter(|volume| is_enough(volume) && (binds_late || gives_modes(volume)));
    if own.is_some() && binds_late {
        return own;
    }
    let selector = claim.spec.selector.as_ref();
    let fits = |volume: &&Volume| {
        !volume.is_spent()
            && is_enough(volume)
            && gives_modes(volume)
            && selector.is_none_or(|selector| selector.matches(&volume.metadata.labels))
    };
    let rank = |volume: &'a Volume| (volume.spec.capacity.storage, volume.metadata.name.as_str());
    let free = facts.view.free_volumes(class_name).into_iter().filter(fits);
    if !binds_late {
        let modes = |volume: &&'a Volume| volume.spec.access_modes.len();
        let best = free.min_by_key(|volume| (modes(volume), rank(volume)));
        // If both have as many modes, the one that names the claim is taken.
        return own.into_iter().chain(best).min_by_key(modes);
    }
    free.filter(|volume| reach(volume).is_none_or(|reach| leads_somewhere(&reach, facts)))
        .min_by_key(|volume| rank(volume))
}
