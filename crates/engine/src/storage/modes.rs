//! Lists of access modes that people write: exact, or refused with a reason.

use serde::de::{Deserialize, Deserializer};

use crate::model::Text;
use crate::model::access_mode::{AccessMode, AccessModes, VolumeMode};
use crate::model::labels::Labels;

/// StorageClass annotation that states the access modes its file system volumes can have.
const ACCESS_MODES_ANNOTATION: &str = "multi-attach-guard.dev/access-modes";
/// StorageClass annotation that states the access modes its raw block volumes can have.
const BLOCK_ACCESS_MODES_ANNOTATION: &str = "multi-attach-guard.dev/block-access-modes";

/// Reads a comma-separated list of access modes, long or short names, blanks allowed.
///
/// `none` on its own is the empty set. `place` names the annotation or key for the error.
fn parse_modes(place: &str, value: &str) -> Result<AccessModes, String> {
    if value.trim() == "none" {
        return Ok(AccessModes::EMPTY);
    }
    value
        .split(',')
        .map(str::trim)
        .map(|name| match AccessMode::parse(name) {
            Some(mode) => Ok(mode),
            None if name.is_empty() => Err(format!(
                "{place} holds an empty access mode; name the modes separated by commas, or write \"none\" if this volume mode is not possible at all"
            )),
            None => Err(format!(
                "{place} names {name:?}, which is no access mode; use ReadWriteOnce, ReadOnlyMany, ReadWriteMany or ReadWriteOncePod, separated by commas"
            )),
        })
        .collect()
}

/// The access modes that a StorageClass states for itself; `None` if it states none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ClassModes {
    /// For file systems.
    pub filesystem: Option<AccessModes>,
    /// For raw block devices.
    pub block: Option<AccessModes>,
}

impl ClassModes {
    /// Reads both annotations of a StorageClass.
    ///
    /// # Errors
    /// What is wrong with the first annotation that cannot be read, and its key: a sentence without
    /// its full stop.
    pub(crate) fn from_annotations(annotations: &Labels) -> Result<Self, String> {
        let read = |key| {
            let value = annotations.get(key);
            value.map(|value| parse_modes(key, value)).transpose()
        };
        Ok(Self {
            filesystem: read(ACCESS_MODES_ANNOTATION)?,
            block: read(BLOCK_ACCESS_MODES_ANNOTATION)?,
        })
    }

    /// The modes that are stated for `mode`.
    pub const fn of(self, mode: VolumeMode) -> Option<AccessModes> {
        match mode {
            VolumeMode::Filesystem => self.filesystem,
            VolumeMode::Block => self.block,
        }
    }
}

/// Reads one access mode and refuses a name that is none.
pub(super) fn exact_mode(name: &str) -> Result<AccessMode, String> {
    AccessMode::parse(name).ok_or_else(|| {
        format!(
            "{name:?} is no access mode; use ReadWriteOnce, ReadOnlyMany, ReadWriteMany or ReadWriteOncePod"
        )
    })
}

/// Reads a list of access modes in which a wrong name is an error. In the objects of a cluster it
/// is not, because the API server reports it there.
pub(super) fn exact<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<AccessModes>, D::Error> {
    Vec::<Text>::deserialize(deserializer)?
        .iter()
        .map(|name| exact_mode(name))
        .collect::<Result<AccessModes, String>>()
        .map(Some)
        .map_err(serde::de::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;
    use AccessMode::{ReadOnlyMany, ReadWriteMany, ReadWriteOnce};

    #[test]
    fn lists_of_modes() {
        let empty = "key holds an empty access mode; name the modes separated by commas, or write \"none\" if this volume mode is not possible at all";
        let unknown = |name: &str| {
            format!(
                "key names {name:?}, which is no access mode; use ReadWriteOnce, ReadOnlyMany, ReadWriteMany or ReadWriteOncePod, separated by commas"
            )
        };
        let cases = [
            ("one", "ReadWriteMany", Ok(AccessModes::of(&[ReadWriteMany]))),
            (
                "short names and blanks",
                " RWO , ReadOnlyMany ",
                Ok(AccessModes::of(&[ReadWriteOnce, ReadOnlyMany])),
            ),
            ("none", "none", Ok(AccessModes::EMPTY)),
            ("nothing", "", Err(empty.to_owned())),
            ("a comma too many", "RWO,", Err(empty.to_owned())),
            ("none beside a mode", "RWO,none", Err(unknown("none"))),
            ("wrong case", "readwriteonce", Err(unknown("readwriteonce"))),
        ];
        for (case, text, expected) in cases {
            assert_eq!(parse_modes("key", text), expected, "{case}");
        }
    }

    #[test]
    fn annotations_are_read_apart_and_the_faulty_one_is_named() {
        let read = |key, value| ClassModes::from_annotations(&Labels::from_iter([(key, value)]));
        let modes = read(BLOCK_ACCESS_MODES_ANNOTATION, "ReadWriteMany").unwrap();
        assert_eq!(modes.of(VolumeMode::Filesystem), None);
        assert_eq!(modes.of(VolumeMode::Block), Some(AccessModes::of(&[ReadWriteMany])));

        let error = read(ACCESS_MODES_ANNOTATION, "RWW").unwrap_err();
        assert_eq!(
            error,
            "multi-attach-guard.dev/access-modes names \"RWW\", which is no access mode; use ReadWriteOnce, ReadOnlyMany, ReadWriteMany or ReadWriteOncePod, separated by commas"
        );
    }
}
