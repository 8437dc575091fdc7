//! Where facts come from: a live cluster, or files that stand for one.
//!
//! All views share one [`index::Index`], which answers every question in
//! constant time. What differs is who fills it.

pub mod batch;
pub mod facts;
pub mod index;
pub mod shared;
mod stored;
mod table;
