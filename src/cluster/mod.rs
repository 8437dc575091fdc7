//! The facts of a cluster in memory, and what one judgement sees of them.
//!
//! [`Cluster`] is a plain value: one table of objects and the indexes beside it.
//! Whoever has facts puts them in; [`View`] asks. A view borrows one cluster for
//! the whole of a judgement, so that all its answers are of the same moment, and
//! [`Beside`] is what that judgement knows more than the cluster does.
//!
//! ```text
//! claim ──▶ workloads that name it ──▶ their autoscalers
//!   │       workloads whose claim template makes it
//!   ├──▶ its volume, or the free volumes of its class
//!   └──▶ its class, or the default one ──▶ CSI driver
//! pod labels (and namespace) ──▶ workloads
//! node label, node name ──▶ nodes
//! ```

mod asked;
mod batch;
mod key;
mod lookup;
mod steps;
mod store;
mod stored;
mod table;
mod view;

pub use asked::{Asked, Question};
pub use batch::{BatchOrder, Turn};
pub use lookup::{Absence, Lookup};
pub use steps::Steps;
pub use store::Cluster;
pub use stored::Stored;
pub use view::{Beside, NodeHint, View};

#[cfg(test)]
mod tests;
