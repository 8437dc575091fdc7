//! Where facts come from: a live cluster, or files that stand for one.
//!
//! All of them fill a [`crate::snapshot::Snapshot`].

pub mod connect;
pub mod document;
pub mod facts;
#[cfg(test)]
mod fake_api_server;
mod late;
mod list;
pub mod live;
pub mod moment;
pub mod protobuf;
mod resource;
mod shared;
pub mod silent;
pub mod snapshot;
pub mod snapshot_classes;
pub mod status;
mod together;
mod turns;
mod watch;
