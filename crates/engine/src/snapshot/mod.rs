//! The facts of a cluster in memory, and what one judgement sees of them.
//!
//! [`Snapshot`] is a plain value: one table of objects and the indexes beside it.
//! Whoever has facts puts them in; [`View`] asks. A view borrows one cluster for
//! the whole of a judgement, so that all its answers are of the same moment, and
//! [`Overlay`] is what that judgement knows more than the cluster does.
//!
//! ```text
//! claim ──▶ workloads that name it ──▶ their autoscalers
//!   │       workloads whose claim template makes it
//!   ├──▶ its volume, or the free volumes of its class
//!   └──▶ its class, or the default one ──▶ CSI driver
//! pod labels (and namespace) ──▶ workloads
//! node label, node name ──▶ nodes
//! ```

mod batch;
mod key;
mod live_lookups;
mod lookup;
mod store;
mod stored;
mod table;
mod view;
mod work_budget;

pub use batch::{BatchOrder, Turn};
pub use live_lookups::{LiveLookups, LookupRequest};
pub use lookup::{Absence, Lookup};
pub use store::Snapshot;
pub use stored::StoredObject;
pub use view::{NodeHint, Overlay, View};
pub use work_budget::WorkBudget;

#[cfg(test)]
mod tests;
