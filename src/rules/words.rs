//! Parts of sentences that several rules use.

use std::fmt::Write as _;

use crate::model::Text;
use crate::model::access_mode::{AccessMode, VolumeMode};
use crate::situation::volumes::Basis;
use crate::situation::{Hold, Situation, UsedVolume, World};
use crate::storage::ClassModes;

/// `claim "data" is ReadWriteOnce (ebs.csi.aws.com)`, and the like for several
/// volumes or for what is a forecast.
pub(super) fn volumes<'v>(volumes: impl Iterator<Item = &'v UsedVolume>) -> String {
    let mut text = String::new();
    for volume in volumes {
        if !text.is_empty() {
            text.push_str(" and ");
        }
        text.push_str(&volume_and_modes(volume));
    }
    text
}

fn volume_and_modes(volume: &UsedVolume) -> String {
    let mut text = quoted(volume);
    let modes = volume.modes;
    let Hold::Exclusive {
        basis,
        attach_assumed,
    } = volume.hold
    else {
        let _ = write!(text, " is {modes}");
        return text;
    };
    let _ = match basis {
        Basis::Bound | Basis::Inline => write!(text, " is {modes}"),
        Basis::Fitting => write!(
            text,
            " is not bound yet, the free volume that fits it is {modes}"
        ),
        Basis::Forecast => write!(text, " is not bound yet and will be {modes}"),
    };
    match (volume.driver.is_empty(), attach_assumed) {
        (true, true) => text.push_str(" (driver not known, assumed to attach)"),
        (true, false) => {}
        (false, true) => {
            let _ = write!(text, " ({}, assumed to attach)", volume.driver);
        }
        (false, false) => {
            let _ = write!(text, " ({})", volume.driver);
        }
    }
    text
}

/// `claim "data"` or `volume "disk"`.
pub(super) fn quoted(volume: &UsedVolume) -> String {
    match &volume.claim {
        Some(claim) => format!("claim \"{claim}\""),
        None => format!("volume \"{}\"", volume.name),
    }
}

/// The volumes for a short line: the first, and how many more.
pub(super) fn first_of<'v>(mut volumes: impl Iterator<Item = &'v UsedVolume>) -> String {
    let Some(first) = volumes.next() else {
        return String::new();
    };
    match volumes.count() {
        0 => quoted(first),
        more => format!("{} and {more} more", quoted(first)),
    }
}

/// The names of the volumes concerned.
pub(super) fn names<'v>(volumes: impl Iterator<Item = &'v UsedVolume>) -> Vec<Text> {
    volumes.map(|volume| volume.shown_name().clone()).collect()
}

/// A sentence that names a class of the cluster whose volumes many nodes can
/// write, or an empty text where there is none.
pub(super) fn shared_class(situation: &Situation<'_>) -> String {
    match shared_class_name(situation.world, VolumeMode::Filesystem) {
        Some(class) => format!(
            " Or move the data to a ReadWriteMany claim; StorageClass \"{class}\" of this cluster can give one."
        ),
        None => String::new(),
    }
}

/// The first class that gives ReadWriteMany for that volume mode, by name.
pub(super) fn shared_class_name(world: World<'_>, mode: VolumeMode) -> Option<Text> {
    let mut names: Vec<Text> = world
        .view
        .storage_classes()
        .iter()
        .filter(|class| {
            let capability = world
                .catalog
                .capability(&class.provisioner, class.parameters.iter(), mode, None)
                .with_stated(
                    ClassModes::from_annotations(|key| class.annotations.get(key))
                        .unwrap_or_default(),
                );
            capability.confidence().is_firm()
                && capability
                    .granted()
                    .is_some_and(|modes| modes.contains(AccessMode::ReadWriteMany))
                // Copied through without a check, so it proves nothing.
                && capability.node_local() == crate::storage::NodeLocal::No
        })
        .map(|class| class.name.clone())
        .collect();
    names.sort_unstable();
    names.into_iter().next()
}
