//! Kubernetes objects as plain values.
//!
//! Objects are deserialized straight into the few fields that verdicts depend on; other fields
//! (images, managed fields, annotations of other tools) are skipped. Nothing here depends on a
//! client, a clock or a file.

pub mod access_mode;
pub mod amount;
pub mod autoscaler;
mod bounded;
pub mod claim;
mod condition;
mod container;
pub mod de;
pub mod event;
pub mod in_tree;
pub mod labels;
pub mod lease;
pub mod live_pod;
pub mod metadata;
pub mod node;
pub mod object;
pub mod observed;
pub mod pod;
pub mod quantity;
pub mod resource;
pub mod runtime_class;
pub mod selector;
mod ser;
pub mod server_version;
pub mod storage_class;
pub mod strategy;
mod strategy_reader;
pub mod uid;
pub mod volume;
pub mod volume_attachment;
pub mod words;
pub mod workload;
mod workload_reader;

pub use bounded::{ListRoom, from_json};

/// A short string, kept inline up to 24 bytes.
pub type Text = compact_str::CompactString;
