//! Where facts come from: a live cluster, or files that stand for one.
//!
//! All of them fill a [`engine::snapshot::Snapshot`].

pub mod connect;
pub mod document;
pub mod facts;
#[cfg(test)]
mod fake_api_server;
pub mod informer;
mod limiter;
mod list;
mod lookup;
pub mod one_shot;

mod resource;
pub mod revisions;
mod single_flight;
pub mod snapshot;
pub mod snapshot_classes;
pub mod status;
mod store;
pub mod unreachable_nodes;
mod watch;
