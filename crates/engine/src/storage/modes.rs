//! Lists of access modes that people write: exact, or refused with a reason.

use serde::de::{Deserialize, Deserializer};

use crate::model::Text;
use crate::model::access_mode::{AccessMode, AccessModes, VolumeMode};
use crate::model::labels::Labels;

/// StorageClass annotation that states the access modes its file system volumes can have.
const ACCESS_MODES_ANNOTATION: &str = "multi-attach-guard.dev/access-modes";
/// StorageClass annotation that states the access modes its raw block volumes can have.
const BLOCK_ACCESS_MODES_ANNOTATION: &str = "multi-attach-guard.dev/block-access-modes";

/// The reason for which a list of access modes cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModesError {
    /// A name that is no access mode.
    #[error(
        "{place} names {name:?}, which is no access mode; use ReadWriteOnce, ReadOnlyMany, ReadWriteMany or ReadWriteOncePod, separated by commas"
    )]
    UnknownMode {
        /// The annotation or key at fault.
        place: Text,
        /// The name found there.
        name: Text,
    },
    /// Nothing between two commas, or nothing at all.
    #[error(
        "{place} holds an empty access mode; name the modes separated by commas, or write \"none\" if this volume mode is not possible at all"
    )]
    Empty {
        /// The annotation or key at fault.
        place: Text,
    },
}

/// Reads a comma-separated list of access modes, long or short names, blanks allowed.
///
/// `none` on its own is the empty set. `place` names the annotation or key for the error.
fn parse_modes(place: &str, value: &str) -> Result<AccessModes, ModesError> {
    if value.trim() == "none" {
        return Ok(AccessModes::EMPTY);
    }
    value
        .split(',')
        .map(str::trim)
        .map(|name| match AccessMode::parse(name) {
            Some(mode) => Ok(mode),
            None if name.is_empty() => Err(ModesError::Empty {
                place: place.into(),
            }),
            None => Err(ModesError::UnknownMode {
                place: place.into(),
                name: name.into(),
            }),
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
    /// The first annotation that cannot be read; its key is in the error.
    pub fn from_annotations(annotations: &Labels) -> Result<Self, ModesError> {
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
        let cases = [
            (
                "one",
                "ReadWriteMany",
                Ok(AccessModes::of(&[ReadWriteMany])),
            ),
            (
                "short names and blanks",
                " RWO , ReadOnlyMany ",
                Ok(AccessModes::of(&[ReadWriteOnce, ReadOnlyMany])),
            ),
            ("none", "none", Ok(AccessModes::EMPTY)),
            (
                "nothing",
                "",
                Err(ModesError::Empty {
                    place: "key".into(),
                }),
            ),
            (
                "a comma too many",
                "RWO,",
                Err(ModesError::Empty {
                    place: "key".into(),
                }),
            ),
            (
                "none beside a mode",
                "RWO,none",
                Err(ModesError::UnknownMode {
                    place: "key".into(),
                    name: "none".into(),
                }),
            ),
            (
                "wrong case",
                "readwriteonce",
                Err(ModesError::UnknownMode {
                    place: "key".into(),
                    name: "readwriteonce".into(),
                }),
            ),
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
        assert_eq!(
            modes.of(VolumeMode::Block),
            Some(AccessModes::of(&[ReadWriteMany]))
        );

        let error = read(ACCESS_MODES_ANNOTATION, "RWW").unwrap_err();
        assert_eq!(
            error.to_string(),
            "multi-attach-guard.dev/access-modes names \"RWW\", which is no access mode; use ReadWriteOnce, ReadOnlyMany, ReadWriteMany or ReadWriteOncePod, separated by commas"
        );
    }
}
