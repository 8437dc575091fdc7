//! Keeps Kubernetes rollouts from ending in a Multi-Attach error.
//!
//! The layers, each of which knows only those before it in this list: [`model`]
//! objects, [`snapshot`] the facts of a cluster, [`storage`] what storage can do,
//! [`analysis`] one workload in its cluster, [`rules`] what can go wrong,
//! [`remedy`] what helps, [`policy`] what is done about it, [`verdict`] the
//! engine, [`diagnosis`] what has already happened, [`migration`] the way to a volume that
//! many nodes may have. Then the doors, which do not know
//! each other: [`source`] where facts come from, [`manifest`] files,
//! [`admission`] reviews, [`server`] and [`certs`] HTTPS, [`events`] what
//! `kubectl describe` tells, and [`cli`], which puts them together. Beside the doors
//! stands [`file_poller`], for files that change while the program runs.
//!
//! The core, up to [`migration`], is pure: `clippy.toml` lists what it must not
//! touch, and the modules marked below are held to it.

pub mod admission;
#[deny(clippy::disallowed_methods, clippy::disallowed_types)]
pub mod analysis;
pub mod certs;
pub mod cli;
#[deny(clippy::disallowed_methods, clippy::disallowed_types)]
pub mod diagnosis;
pub mod events;
pub mod file_poller;
pub mod manifest;
#[deny(clippy::disallowed_methods, clippy::disallowed_types)]
pub mod migration;
#[deny(clippy::disallowed_methods, clippy::disallowed_types)]
pub mod model;
#[deny(clippy::disallowed_methods, clippy::disallowed_types)]
pub mod policy;
#[deny(clippy::disallowed_methods, clippy::disallowed_types)]
pub mod remedy;
pub mod report;
#[deny(clippy::disallowed_methods, clippy::disallowed_types)]
pub mod rules;
pub mod server;
#[deny(clippy::disallowed_methods, clippy::disallowed_types)]
pub mod snapshot;
pub mod source;
#[deny(clippy::disallowed_methods, clippy::disallowed_types)]
pub mod storage;
#[deny(clippy::disallowed_methods, clippy::disallowed_types)]
pub mod verdict;
