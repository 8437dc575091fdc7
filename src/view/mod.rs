//! Where facts come from: a live cluster, or files that stand for one.
//!
//! All views share one [`index::Index`], which answers every question in
//! constant time. What differs is who fills it.

pub mod batch;
pub mod connect;
pub mod facts;
#[cfg(test)]
mod fake_api_server;
pub mod index;
mod late;
pub mod live;
mod resource;
pub mod shared;
pub mod snapshot;
pub mod status;
mod stored;
mod table;
mod watch;
