//! The HTTPS door: TLS, the two review paths, probes, metrics and a shutdown
//! that loses no request.
//!
//! Two ports. The webhook port speaks HTTP/1.1 and HTTP/2 over TLS and knows
//! `POST /mutate` and `POST /validate`; whatever answers them is a
//! [`Reviewer`]. The admin port speaks plain HTTP and knows `/healthz`,
//! `/readyz` and `/metrics`; what it says about readiness comes from
//! [`HealthSource`]s.
//!
//! Every stage a client can stall has its own deadline ([`Limits`]), and what
//! there is little of (connections, memory for bodies, slots to be judged in)
//! is taken only for what is there and given back first by those who hold it
//! without using it, so that no client can stop the others from being answered.

mod account;
mod admin;
mod body;
mod budget;
mod connections;
mod gate;
mod health;
mod https;
mod lifecycle;
mod limits;
mod metrics;
mod phase;
mod port;
mod refusal;
mod review;
mod tls;
mod untaken;
mod webhook;

pub use health::{HealthSource, HealthState, Readiness};
pub use lifecycle::{Options, Server, ServerError, Shutdown, Stopped};
pub use limits::Limits;
pub use metrics::{Metrics, SilentNode, ViewGauges};
pub use review::Reviewer;
