//! Manifests: reading them, finding a field's line in them, editing them.
//!
//! `find` finds the files, [`split`] cuts them into documents, [`tree`] parses one document,
//! [`visit`] finds the objects in it, and [`decode`] gives them the meaning that Kubernetes gives
//! them. [`read`] does all of that for many files at once, and [`objects`] keeps the objects of the
//! kinds that matter here. Memory stays small because only the facts of an object and its
//! [`field_index`] outlive its file.
//!
//! ```
//! use manifest::edit;
//! use serde_json::json;
//!
//! let change = json!([{"op": "replace", "path": "/spec/replicas", "value": 1}]);
//! let patch = serde_json::from_value(change)?;
//! let text = "kind: Deployment\nspec: {replicas: 2}   # two are too many\n";
//! assert_eq!(
//!     edit::apply(text, &[], &patch)?,
//!     "kind: Deployment\nspec: {replicas: 1}   # two are too many\n"
//! );
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod builder;
pub mod completeness;
pub mod decode;
pub mod delivery;
pub mod edit;
pub mod error;
pub mod facts;
pub mod field_index;
#[cfg(feature = "files")]
pub mod find;
pub mod helm_hook;
pub mod kustomization;
mod lenient;
pub mod locate;
pub mod objects;
mod openshift_template;
pub mod position;
pub mod read;
pub mod scalar;
pub mod source;
pub mod split;
mod template;
pub mod tree;
mod versions;
pub mod visit;
