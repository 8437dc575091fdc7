//! The range in which a volume can follow its pod.

use serde::Deserialize;

/// The range in which a ReadWriteOnce volume can follow its pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reach {
    /// One node.
    Node,
    /// Its zone.
    Zone,
    /// Its region.
    Region,
    /// All nodes that can reach the storage.
    Any,
}
