//! Supplies the engine with facts about a cluster, each in an [`engine::snapshot::Snapshot`].
//!
//! * [`informer`] watches a live cluster and keeps its snapshot up to date, for the webhook. It
//!   looks up objects that the snapshot lacks, and confirms verdicts with the API server.
//! * [`one_shot`] reads a live cluster once, as far as the user's rights go, for the commands.
//! * [`policy_file`] reads the policy and follows its changes.
//! * [`facts`] reads files that stand for a cluster; [`snapshot`] writes such a file.
//!
//! ```
//! use engine::snapshot::Lookup;
//! use source::facts;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let folder = tempfile::tempdir()?;
//! let file = folder.path().join("classes.yaml");
//! std::fs::write(&file, "
//! apiVersion: storage.k8s.io/v1
//! kind: StorageClass
//! metadata:
//!   name: gp3
//! provisioner: ebs.csi.aws.com
//! ")?;
//!
//! let cluster = facts::load(&[file], &mut std::io::empty())?;
//! let class = cluster.view().storage_class("gp3").found().ok_or("absent")?;
//! assert_eq!(class.driver(), "ebs.csi.aws.com");
//! // The files are the whole cluster, so everything else is absent.
//! assert_eq!(cluster.view().claim("shop", "data"), Lookup::Absent);
//! # Ok(())
//! # }
//! ```
//!
//! This crate judges nothing and writes nothing to a cluster. It stores no Secrets and no
//! ConfigMaps: it reads only the kinds in [`engine::model::object::ObjectKind`].

pub mod connect;
pub mod document;
pub mod facts;
#[cfg(test)]
mod fake_api_server;
pub mod informer;
mod list;
mod lookup;
pub mod one_shot;
pub mod policy_file;
mod resource;
pub mod revisions;
mod single_flight;
pub mod snapshot;
pub mod status;
mod store;
mod turns;
mod watch;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub use resource::api_resource;
pub use turns::Asker;

/// Locks a mutex even after a panic: its value is replaced as a whole, never half changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
