//! CSINodes, which list the drivers of a node.

use serde::{Deserialize, Serialize};

use super::de::{Named, nullable};
use super::resource::Resource;

/// The CSINode of a node, which has the node's name.
pub type CsiNode = Resource<CsiNodeSpec>;

/// The drivers of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CsiNodeSpec {
    /// The drivers that have registered with its kubelet.
    #[serde(deserialize_with = "nullable")]
    pub drivers: Box<[Named]>,
}

impl CsiNode {
    /// Whether the node has the driver.
    pub(crate) fn has(&self, driver: &str) -> bool {
        self.spec.drivers.iter().any(|it| it.name == driver)
    }
}
