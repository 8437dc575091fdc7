//! Where a volume can follow its pod.

use serde::Deserialize;

/// How far a ReadWriteOnce volume can follow its pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reach {
    /// Nowhere.
    Node,
    /// Through its zone.
    Zone,
    /// Through its region.
    Region,
    /// Wherever the storage can be reached.
    Any,
}
