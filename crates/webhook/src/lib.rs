//! Admission reviews in and out of the engine, and the HTTPS server that takes them.
//!
//! [`admission`] turns the bytes of an AdmissionReview into an engine review, and a verdict into
//! the bytes of its answer. It is pure: the caller supplies the facts. [`server`] is an axum Router
//! over TLS with `/mutate` and `/validate`, the probes and the metrics; it knows reviews only
//! through the trait [`server::Reviewer`].
//!
//! ```
//! use engine::policy::Policy;
//! use engine::snapshot::Snapshot;
//! use engine::storage::Catalog;
//! use engine::verdict::EffectivePolicy;
//! use jiff::Timestamp;
//! use webhook::admission::{Decision, Endpoint, Received};
//!
//! let body = br#"{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
//!     "uid": "u1", "operation": "CREATE", "namespace": "shop", "name": "web",
//!     "kind": {"group": "apps", "version": "v1", "kind": "Deployment"},
//!     "object": {"spec": {"replicas": 2}}}}"#;
//! let policy = EffectivePolicy::new(Policy::default(), Catalog::embedded()?);
//! let cluster = Snapshot::complete();
//!
//! let received = Received::read(body, Timestamp::now())?;
//! let verdict = received.judge(Endpoint::Validate, cluster.view(), &policy);
//! let answer = received.answer(Endpoint::Validate, &verdict);
//!
//! assert_eq!(answer.decision, Decision::Allowed);
//! assert!(String::from_utf8(answer.body)?.contains(r#""uid":"u1","allowed":true"#));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! This crate does not read a cluster (`source` does), makes no certificates (`webhook-certs` does)
//! and decides nothing about volumes (`engine` does).

pub mod admission;
pub mod server;
