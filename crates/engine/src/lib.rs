//! Judges what an object means for its volumes.

pub mod analysis;
pub mod model;
pub mod observed;
pub mod policy;
pub mod remedy;
pub mod rules;
pub mod snapshot;
pub mod storage;
pub mod verdict;
pub mod volume_facts;
