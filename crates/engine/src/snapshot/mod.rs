//! The facts of a cluster in memory, and the view that one judgement has of them.
//!
//! [`Snapshot`] is a plain value: a table of objects and an index. A [`View`] looks objects up. It
//! borrows the snapshot for a whole judgement, so that all look-ups see the same version. An
//! [`Overlay`] adds further facts of that judgement.
//!
//! ```text
//! claim ──▶ workloads that name it ──▶ their autoscalers
//!   │       workloads whose claim template makes it
//!   ├──▶ its volume, or the unbound volumes of its class
//!   └──▶ its class, or the default one ──▶ CSI driver
//! pod labels (and namespace) ──▶ workloads
//! node label, node name ──▶ nodes
//! ```

mod batch;
mod key;
mod live_lookups;
mod lookup;
mod overlay;
mod place;
mod store;
mod stored;
mod table;
mod view;
mod work_budget;

pub(crate) use batch::Turn;
pub use batch::{BatchOrder, Order};
pub use key::{IndexKey, ObjectKey};
pub use live_lookups::{LiveLookups, LookupRequest};
pub(crate) use lookup::Absence;
pub use lookup::Lookup;
pub use overlay::Overlay;
pub use place::Place;
pub use store::Snapshot;
pub use stored::StoredObject;
pub use table::Usage;
pub(crate) use view::UsersOfClaims;
pub use view::{NodeHint, View};
pub(crate) use work_budget::WorkBudget;

#[cfg(test)]
mod tests;
