//! Admission reviews in and out of the engine, and the HTTPS server that takes them.
//!
//! [`admission`] turns the bytes of an AdmissionReview into an engine review, and a verdict into
//! the bytes of its answer. It is pure: the caller brings the facts. [`server`] is an axum Router
//! over TLS with `/mutate` and `/validate`, the probes and the metrics; it knows reviews only
//! through the trait [`server::Reviewer`].
//!
//! It does not read a cluster (`source` does), makes no certificates (`webhook-certs` does) and
//! decides nothing about volumes (`engine` does).

pub mod admission;
pub mod server;
