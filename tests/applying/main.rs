//! Remedy × way of applying × guard, played on a real control plane and written into
//! `docs/evidence/applying.md`. The tests apply the program's own proposals, read from its output.
//!
//! `APPLYING=write cargo test --workspace --test applying` writes the tables anew.

#![allow(
    clippy::unwrap_used,
    clippy::unwrap_in_result,
    clippy::panic,
    reason = "in a test, the panic and its message are the report"
)]

mod applier_cluster;
mod delivery;
mod document;
mod drift;
#[path = "../harness/mod.rs"]
mod harness;
#[path = "../e2e/install.rs"]
#[allow(dead_code, reason = "only some suites install the policies")]
mod install;
mod manifests;
mod printed;
mod remedies;
mod services;
mod ways;

use std::fmt::Debug;
use std::sync::{Mutex, PoisonError};

/// The number of cells that are played at once; they mostly wait for Kubernetes.
const AT_ONCE: usize = 8;

/// Plays all cells, several at once, and returns the results in order.
///
/// # Panics
///
/// If some cells cannot be played, with all of these.
fn play<C: Debug + Sync, R: Send>(
    cells: &[C],
    one: impl Fn(&C) -> Result<R, String> + Sync,
) -> Vec<R> {
    static TURN: Mutex<()> = Mutex::new(());
    // One table at a time; a failure of another table does not matter.
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let played = harness::at_once(AT_ONCE, cells, |_, cell| {
        one(cell).map_err(|error| format!("{cell:?}: {error}"))
    });
    let mut failed = Vec::new();
    let results = played
        .into_iter()
        .filter_map(|result| result.map_err(|error| failed.push(error)).ok())
        .collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    results
}
