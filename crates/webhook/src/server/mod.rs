//! The HTTPS server: an axum Router behind TLS, with probes, metrics and a shutdown that
//! loses no request.
//!
//! It has two listeners. The webhook port speaks HTTP/1.1 and HTTP/2 over TLS and routes
//! `POST /mutate` and `POST /validate` to a [`Reviewer`]. The admin port speaks plain HTTP and
//! routes `/healthz`, `/readyz` and `/metrics`; [`HealthSource`]s tell it whether the server is
//! ready.
//!
//! A review passes, in this order: the cap on connections, the handshake, and hyper's limits on
//! headers and streams (`port`), the deadlines of its connection (`connection`), the limit on
//! requests (`routes`), limits on its body (`body`) and on the memory of all bodies (`memory`),
//! slots to be judged in (`routes`). Most of the numbers are in [`Limits`].

mod admin;
mod body;
mod connection;
mod error;
mod health;
mod lifecycle;
mod limits;
mod listener;
mod memory;
mod metrics;
mod phase;
mod port;
mod review;
mod routes;
mod signals;
mod tls;

pub use health::{HealthSource, HealthState, Readiness};
pub use lifecycle::{Options, Server, ServerError, Shutdown, Stopped};
pub use limits::Limits;
pub use metrics::{Metrics, Time};
pub use review::Reviewer;
