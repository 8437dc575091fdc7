//! The class of a claim, and the volume that it would be bound to.

use super::Facts;
use super::hold::Missing;
use super::reach::{leads_somewhere, reach};
use crate::model::claim::Claim;
use crate::model::storage_class::StorageClass;
use crate::model::volume::Volume;

/// The class a claim names, or the default one.
///
/// # Errors
/// What is missing, where there is no such class.
pub fn class_of<'a>(claim: &Claim, facts: Facts<'a>) -> Result<&'a StorageClass, Missing> {
    match claim.class() {
        Some("") => Err(Missing::FittingVolume),
        Some(name) => facts
            .view
            .storage_class(name)
            .known()
            .map_err(|absence| Missing::Class(name.into(), absence)),
        None => facts
            .view
            .default_storage_class()
            .known()
            .map_err(Missing::DefaultClass),
    }
}

/// The volume to which Kubernetes would bind the claim: the one that names it,
/// before class, access modes or anything else count (`FindMatchingVolume` and
/// `IsVolumeBoundToClaim` in `component-helpers/storage/volume/pv_helpers.go`), or
/// else a free one. Where claims of its class are bound at once, that is the one
/// with the fewest access modes, then the smallest (`persistentvolume/index.go`);
/// where a pod's place is awaited, the smallest that a node can reach.
pub fn fitting<'a>(
    claim: &Claim,
    class: Option<&StorageClass>,
    class_name: &str,
    facts: Facts<'a>,
) -> Option<&'a Volume> {
    let own = facts
        .view
        .volume_of(&claim.metadata)
        .filter(|volume| volume.spec.volume_mode == claim.spec.volume_mode);
    if own.is_some() {
        return own;
    }
    let fits = |volume: &&Volume| {
        !volume.is_spent()
            && volume.spec.volume_mode == claim.spec.volume_mode
            && claim.spec.access_modes.is_subset(volume.spec.access_modes)
            && volume.spec.capacity.storage >= claim.spec.resources.requests.storage
            && claim
                .spec
                .selector
                .as_ref()
                .is_none_or(|selector| selector.matches(&volume.metadata.labels))
    };
    let rank = |it: &'a Volume| (it.spec.capacity.storage, it.metadata.name.as_str());
    let free = facts.view.free_volumes(class_name).into_iter().filter(fits);
    if !class.is_some_and(StorageClass::binds_late) {
        return free.min_by_key(|it| (it.spec.access_modes.len(), rank(it)));
    }
    free.filter(|volume| reach(volume).is_none_or(|reach| leads_somewhere(&reach, facts)))
        .min_by_key(|it| rank(it))
}
