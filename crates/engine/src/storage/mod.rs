//! The abilities of storage: the access modes that a StorageClass really gives, and whether its
//! volumes are attached.
//!
//! The facts are in `catalog.yaml`, whose header explains every key. Policy files and StorageClass
//! annotations correct them; a live CSIDriver object takes precedence over them if it says
//! something.
//!
//! ```text
//! provisioner name ─▶ Catalog ─▶ Entry ─┬─▶ Capability ─▶ judge(modes) ─▶ Support
//!                                       └─▶ attach(CSIDriver)          ─▶ Attach
//! ```
//!
//! `Support::Refused` and `Support::NotAsConfigured` need an entry whose modes were verified in the
//! driver's code or official documentation, and a mode that no condition of the entry can grant, or
//! no condition that may hold.

mod attach;
mod capability;
mod catalog;
mod class_names;
mod condition;
mod entry;
mod glob;
mod listing;
mod modes;
mod overrides;
mod reach;
mod second_use;
mod summary;
mod support;

#[cfg(test)]
mod consistency;
#[cfg(test)]
mod tests;

pub use self::attach::Attach;
pub(crate) use self::capability::NodeLocal;
pub use self::catalog::{Catalog, CatalogError};
pub(crate) use self::class_names::supposed_classes;
pub use self::class_names::{known_classes, likely_classes};
pub use self::entry::AttachSource;
pub use self::listing::{Listed, listing};
pub use self::modes::ClassModes;
pub use self::overrides::ProvisionerOverride;
pub(crate) use self::reach::Reach;
pub(crate) use self::second_use::SecondUse;
pub use self::summary::{ClassSummary, ConditionalModes, ModeSummary};
pub(crate) use self::support::Support;
