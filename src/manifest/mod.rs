//! Manifests: reading them, finding a field's line in them, editing them.
//!
//! [`source`] finds the files, [`split`] cuts them into documents, [`tree`]
//! parses one document, [`objects`] finds the objects in it, [`decode`] gives
//! them the meaning Kubernetes gives them, and [`read`] does all of that for many
//! files at once. Memory stays small because only the facts of an object and its
//! [`outline`] outlive its file.

mod compose;
pub mod decode;
pub mod edit;
pub mod error;
mod fragment;
pub mod hook;
pub mod kustomization;
pub mod locate;
pub mod objects;
pub mod outline;
pub mod place;
pub mod read;
pub mod scalar;
pub mod source;
pub mod split;
mod template;
pub mod tree;
mod unopened;
mod versions;
