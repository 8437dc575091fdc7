//! Judges what Kubernetes objects mean for their volumes: whether a rollout, a scale-up or a
//! second workload would wait forever with `Multi-Attach error`, and what to change.
//!
//! Facts go in, findings and patches come out: [`snapshot`] has the facts about a cluster in
//! the types of [`model`], [`policy`] says what to do about a finding, and [`verdict::evaluate`]
//! judges one object.
//!
//! ```
//! use engine::model::object::ObjectKind;
//! use engine::policy::Policy;
//! use engine::snapshot::Snapshot;
//! use engine::storage::Catalog;
//! use engine::verdict::{Document, EffectivePolicy, Mode, Review, evaluate};
//! use serde::de::DeserializeSeed;
//! use serde_json::{Value, json};
//!
//! /// A new object, as it was submitted.
//! struct Submitted(Value);
//!
//! impl Document for Submitted {
//!     fn object(&self) -> Option<&Value> {
//!         Some(&self.0)
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let claims = ObjectKind::of("", "PersistentVolumeClaim").ok_or("not read")?;
//! let deployments = ObjectKind::of("apps", "Deployment").ok_or("not read")?;
//!
//! // The cluster: an EBS volume can be attached to one node at a time.
//! let mut cluster = Snapshot::complete();
//! cluster.apply(claims.deserialize(json!({
//!     "metadata": {"namespace": "shop", "name": "data"},
//!     "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "gp3"}
//! }))?);
//! cluster.apply(ObjectKind::StorageClass.deserialize(json!({
//!     "metadata": {"name": "gp3"}, "provisioner": "ebs.csi.aws.com"
//! }))?);
//!
//! // A rolling update starts the new pod while the old one still has the volume.
//! let deployment = json!({
//!     "apiVersion": "apps/v1", "kind": "Deployment",
//!     "metadata": {"namespace": "shop", "name": "web"},
//!     "spec": {"replicas": 1, "template": {"spec": {"volumes": [
//!         {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}}}
//! });
//! let verdict = evaluate(
//!     &Review {
//!         object: &deployments.deserialize(&deployment)?,
//!         old: None,
//!         reference: &deployments.reference("shop", "web"),
//!         scaled: None,
//!         document: &Submitted(deployment.clone()),
//!         mode: Mode::Judge,
//!     },
//!     cluster.view(),
//!     &EffectivePolicy::new(Policy::default(), Catalog::embedded()?),
//! );
//! for finding in &verdict.findings {
//!     println!("{}: {}", finding.rule, finding.message);
//! }
//! assert_eq!(verdict.findings[0].rule, "rolling-update-overlap");
//! # Ok(())
//! # }
//! ```
//!
//! The engine has no input and output: it reads no files, sends no requests, does not look at
//! the clock, and knows neither command-line flags nor admission reviews. Callers supply the
//! facts. It judges no running pods either: those are in [`model::observed`], for diagnoses.

pub mod analysis;
pub mod model;
pub mod policy;
pub mod remedy;
pub mod rules;
pub mod snapshot;
pub mod storage;
pub mod verdict;
pub mod volume_facts;
