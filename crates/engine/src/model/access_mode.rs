//! Access modes and volume modes.

use std::fmt;

use serde::de::{Deserialize, Deserializer};
use serde::ser::{Serialize, Serializer};

use super::Text;
use super::de::for_each;
use super::words::words;

words! {
    /// An access mode of a volume. The variants are in the order in which Kubernetes documents them,
    /// and their order gives each its bit in a set.
    ///
    /// Access modes restrict nodes, not pods, except for [`AccessMode::ReadWriteOncePod`]
    /// (Kubernetes documentation, "Persistent Volumes", section "Access Modes").
    AccessMode {
        /// Read and write, by one node at a time.
        ReadWriteOnce = "ReadWriteOnce",
        /// Read only, by many nodes.
        ReadOnlyMany = "ReadOnlyMany",
        /// Read and write, by many nodes.
        ReadWriteMany = "ReadWriteMany",
        /// Read and write, by one pod in the whole cluster; the scheduler enforces it.
        ReadWriteOncePod = "ReadWriteOncePod",
    }
}

impl AccessMode {
    /// The short name `kubectl get` prints, `RWO` for example.
    pub(crate) const fn short(self) -> &'static str {
        match self {
            Self::ReadWriteOnce => "RWO",
            Self::ReadOnlyMany => "ROX",
            Self::ReadWriteMany => "RWX",
            Self::ReadWriteOncePod => "RWOP",
        }
    }

    /// Reads either the long or the short name; `None` for anything else.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.name() == name || mode.short() == name)
    }

    /// Its bit in a set.
    const fn bit(self) -> u8 {
        1 << (self as u8)
    }
}

/// A set of access modes.
///
/// Deserializes from a list of long or short names. Of an unknown name, which may be a placeholder,
/// only its presence is kept. A `null` that a chart leaves for a missing value is ignored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct AccessModes(u8);

/// The bit for an unknown name.
const UNKNOWN: u8 = 1 << 7;

impl AccessModes {
    /// No mode at all.
    pub(crate) const EMPTY: Self = Self(0);

    /// The set of `modes`.
    pub const fn of(modes: &[AccessMode]) -> Self {
        let mut bits = 0;
        let mut at = 0;
        while at < modes.len() {
            bits |= modes[at].bit();
            at += 1;
        }
        Self(bits)
    }

    /// Whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Whether no name was written, not even an unknown one.
    pub(crate) const fn is_unwritten(self) -> bool {
        self.0 == 0
    }

    /// The number of modes in the set, 0 to 4.
    pub const fn len(self) -> usize {
        (self.0 & !UNKNOWN).count_ones() as usize
    }

    /// Whether `mode` is in the set.
    pub const fn contains(self, mode: AccessMode) -> bool {
        self.0 & mode.bit() != 0
    }

    /// Whether one of the modes is for several nodes.
    pub(crate) const fn is_shared(self) -> bool {
        self.contains(AccessMode::ReadWriteMany) || self.contains(AccessMode::ReadOnlyMany)
    }

    /// Adds `mode`.
    pub fn insert(&mut self, mode: AccessMode) {
        self.0 |= mode.bit();
    }

    /// The modes in either set.
    pub(crate) const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The modes of this set that `other` lacks.
    pub(crate) const fn minus(self, other: Self) -> Self {
        Self(self.0 & !other.0 & !UNKNOWN)
    }

    /// The modes in both sets.
    pub(crate) const fn common(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Whether every mode of this set is in `other`.
    pub(crate) const fn is_subset(self, other: Self) -> bool {
        self.minus(other).is_empty()
    }

    /// The modes in the set, in the order of [`AccessMode::ALL`].
    pub fn iter(self) -> impl Iterator<Item = AccessMode> {
        AccessMode::ALL.into_iter().filter(move |mode| self.contains(*mode))
    }
}

impl FromIterator<AccessMode> for AccessModes {
    fn from_iter<I: IntoIterator<Item = AccessMode>>(modes: I) -> Self {
        let modes = modes.into_iter().map(|mode| Self::of(&[mode]));
        modes.fold(Self::EMPTY, Self::union)
    }
}

/// Long names, joined with `, `; `none` for the empty set.
impl fmt::Display for AccessModes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("none");
        }
        let names: Vec<&str> = self.iter().map(AccessMode::name).collect();
        f.write_str(&names.join(", "))
    }
}

impl<'de> Deserialize<'de> for AccessModes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut set = Self::EMPTY;
        let what = "a list of access modes";
        for_each(deserializer, what, |name: Option<Text>| {
            if let Some(name) = name {
                set.0 |= AccessMode::parse(&name).map_or(UNKNOWN, AccessMode::bit);
            }
        })?;
        Ok(set)
    }
}

impl Serialize for AccessModes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter().map(AccessMode::name))
    }
}

words! {
    /// The form in which a pod gets a volume.
    #[derive(Default)]
    #[serde(from = "Option<Text>")]
    VolumeMode {
        /// A mounted file system; the default in Kubernetes.
        #[default]
        Filesystem = "Filesystem",
        /// A raw block device.
        Block = "Block",
    }
}

/// Anything but `Block` reads as a file system, as in Kubernetes' defaulting.
impl From<Option<Text>> for VolumeMode {
    fn from(name: Option<Text>) -> Self {
        match name.as_deref() {
            Some("Block") => Self::Block,
            _ => Self::Filesystem,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_reads_long_and_short_names_and_prints_long_ones() {
        let set: AccessModes =
            serde_json::from_str(r#"["RWO",null,"ReadWriteMany","Odd"]"#).unwrap();
        assert_eq!(set.to_string(), "ReadWriteOnce, ReadWriteMany");
        assert_eq!(serde_json::to_string(&set).unwrap(), r#"["ReadWriteOnce","ReadWriteMany"]"#);
        assert_eq!(serde_json::from_str::<AccessModes>("null").unwrap(), AccessModes::EMPTY);
        let unknown: AccessModes = serde_json::from_str(r#"["${MODE}"]"#).unwrap();
        assert!(unknown.is_empty() && !unknown.is_unwritten());
        let null: AccessModes = serde_json::from_str("[null]").unwrap();
        assert!(null.is_unwritten());
    }
}
