//! Manifests: reading them, finding a field's line in them, editing them.
//!
//! [`source`] finds the files, [`split`] cuts them into documents, [`tree`]
//! parses one document, [`objects`] finds the objects in it, [`decode`] gives
//! them the meaning Kubernetes gives them, and [`read`] does all of that for many
//! files at once. Memory stays small because only what the caller makes of an
//! object outlives its file: a line or an edit is found later by reading that one
//! file again.

mod compose;
pub mod cut;
pub mod decode;
pub mod edit;
pub mod error;
pub mod locate;
pub mod objects;
pub mod parallel;
pub mod place;
pub mod read;
pub mod scalar;
pub mod source;
pub mod split;
mod template;
pub mod tree;
