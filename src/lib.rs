//! Keeps Kubernetes rollouts from ending in a Multi-Attach error.

pub mod certs;
pub mod cli;
pub mod manifest;
pub mod model;
pub mod policy;
pub mod rules;
pub mod server;
pub mod storage;
pub mod view;
