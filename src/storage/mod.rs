//! What storage can do: which access modes a StorageClass really gives, whether
//! its volumes are attached, and what a volume written into a pod means.
//!
//! The facts are in `catalog.yaml`, whose header explains every key. Policy
//! files and StorageClass annotations correct them; a live CSIDriver object wins
//! over them where it says something.
//!
//! ```text
//! provisioner name ─▶ Catalog ─▶ Entry ─┬─▶ Capability ─▶ judge(modes)  ─▶ Support
//!                                       └─▶ attach(live CSIDriver)      ─▶ Attach
//! field of a pod or PV ─▶ VolumeType ───┬─▶ attaching()
//!                                       └─▶ inline(readOnly)            ─▶ Inline
//! ```
//!
//! Nothing here is denied lightly: [`Support::Refused`] needs an entry whose
//! modes were read in the driver's code or official documentation, and a mode
//! that none of its conditions can grant.

mod attach;
mod capability;
mod catalog;
mod condition;
mod entry;
mod glob;
mod in_tree;
mod inline;
mod modes;
mod overrides;
mod summary;
mod support;
mod volume_type;

#[cfg(test)]
mod back_ends;
#[cfg(test)]
mod consistency;

pub use self::attach::{Attach, AttachSource, LiveDriver};
pub use self::capability::{Capability, NodeLocal};
pub use self::catalog::{Catalog, CatalogError};
pub use self::condition::{ClaimFacts, Condition, Effect, State, Test, When};
pub use self::entry::{Basis, Confidence, Entry, Kind, ModeList, Provisions, Reach, Rwop};
pub use self::in_tree::{csi_driver_of, in_tree_plugin_of};
pub use self::inline::{Inline, SameNode, SecondNode};
pub use self::modes::{
    ACCESS_MODES_ANNOTATION, BLOCK_ACCESS_MODES_ANNOTATION, ClassModes, ModesError, parse_modes,
};
pub use self::overrides::{OverrideError, ProvisionerOverride};
pub use self::summary::{ClassSummary, ConditionalModes, ModeSummary};
pub use self::support::Support;
pub use self::volume_type::{Attaching, VolumeType};
