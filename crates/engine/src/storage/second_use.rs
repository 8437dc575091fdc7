//! The result of a second use of a volume that nothing attaches.

use serde::Deserialize;

/// The result of a second use of a ReadWriteOnce volume that nothing attaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum SecondUse {
    /// It succeeds: these are shared files, or a disk that several pods may have.
    Shared,
    /// The driver refuses a second mount of a file system, even on the same node.
    SecondMountRefused,
    /// The driver refuses it on a second node.
    SecondNodeRefused,
    /// A second node gets the block device too, and both write to it.
    SecondNodeAdmitted,
}

impl SecondUse {
    /// The consequence for pods, as a sentence.
    pub(super) const fn text(self) -> &'static str {
        match self {
            Self::Shared => {
                "Nothing attaches, and nothing needs to: several pods may use a volume."
            }
            Self::SecondMountRefused => {
                "Nothing attaches, but the driver refuses a second mount of a file system, on the same node as well."
            }
            Self::SecondNodeRefused => "Nothing attaches, but the driver refuses a second node.",
            Self::SecondNodeAdmitted => {
                "Nothing attaches and nothing keeps a second node away: two pods on two nodes damage the file system."
            }
        }
    }
}
