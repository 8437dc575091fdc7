//! Keeps Kubernetes rollouts from ending in a Multi-Attach error.
//!
//! The layers, each of which knows only those before it in this list: [`model`]
//! facts, [`storage`] what storage can do, [`situation`] one workload in its
//! cluster, [`rules`] what can go wrong, [`remedy`] what helps, [`policy`] what
//! is done about it, [`verdict`] the engine. Then the doors, which do not know
//! each other: [`view`] what is known of a cluster, [`manifest`] files,
//! [`admission`] reviews, [`server`] and [`certs`] HTTPS, and [`cli`], which
//! puts them together.

pub mod admission;
pub mod certs;
pub mod cli;
pub mod manifest;
pub mod model;
pub mod policy;
pub mod remedy;
pub mod report;
pub mod rules;
pub mod server;
pub mod situation;
pub mod storage;
pub mod verdict;
pub mod view;
