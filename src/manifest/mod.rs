//! Manifests: reading them, finding a field's line in them, editing them.
//!
//! [`find`] finds the files, [`split`] cuts them into documents, [`tree`]
//! parses one document, [`objects`] finds the objects in it, [`decode`] gives
//! them the meaning Kubernetes gives them. [`read`] does all of that for many files at
//! once, and [`items`] keeps the objects of kinds that count. Memory stays small because
//! only the facts of an object and its [`outline`] outlive its file.

mod compose;
pub mod decode;
pub mod edit;
pub mod error;
pub mod find;
mod fragment;
pub mod hook;
pub mod items;
pub mod kustomization;
mod lenient;
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
