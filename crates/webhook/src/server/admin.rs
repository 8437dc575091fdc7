//! The admin port: probes and metrics over plain HTTP.
//!
//! A thread of its own serves it, so that a server that is busy judging never looks dead.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::State as Shared;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::middleware::from_fn;
use axum::response::IntoResponse;
use axum::routing::get;
use axum_server::Handle;
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};

use super::connection::{Plain, http_server};
use super::connections::{Connections, in_flight};
use super::health::{HealthSource, HealthState, Readiness};
use super::limits::Limits;
use super::metrics::Metrics;
use super::phase::Phase;
use super::tls::HandshakeProbe;

/// The content type of the OpenMetrics text format.
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The largest number of open connections.
const CONNECTIONS: usize = 64;

/// The state on which the admin port reports.
pub(super) struct Admin {
    pub(super) sources: Vec<Arc<HealthSource>>,
    pub(super) probe: HandshakeProbe,
    pub(super) phase: watch::Receiver<Phase>,
    pub(super) metrics: Metrics,
    pub(super) limits: Limits,
}

impl Admin {
    /// Serves the port on a thread of its own until `handle` stops it.
    pub(super) async fn serve(
        self,
        listener: TcpListener,
        handle: Handle<SocketAddr>,
    ) -> io::Result<()> {
        let listener = listener.into_std()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (ended, end) = oneshot::channel();
        let limits = Limits { connections: CONNECTIONS, ..self.limits };
        let acceptor = Plain(Connections::new(limits, None, None));
        let router = self.router();
        std::thread::Builder::new().name("admin".to_owned()).spawn(move || {
            let served = runtime.block_on(async {
                let listener = TcpListener::from_std(listener)?;
                let server = http_server(listener, acceptor, handle).http1_only();
                server.serve(router.into_make_service()).await
            });
            // The receiver may be gone.
            let _ = ended.send(served);
        })?;
        end.await.map_err(io::Error::other)?
    }

    fn router(self) -> Router {
        Router::new()
            // The process is alive as long as it can answer at all.
            .route("/healthz", get("ok\n"))
            .route("/readyz", get(readyz))
            .route("/metrics", get(metrics))
            .layer(from_fn(in_flight))
            .with_state(Arc::new(self))
    }

    async fn conditions(&self) -> Vec<Readiness> {
        let phase = match *self.phase.borrow() {
            Phase::Serving => Readiness::ready("server", "The server takes requests."),
            Phase::Draining | Phase::Closing | Phase::Aborted => Readiness::not_ready(
                "server",
                "The server is shutting down; send reviews to another replica.",
            ),
        };
        let mut conditions = vec![phase, self.probe.condition().await];
        conditions.extend(self.sources.iter().map(|source| source()));
        conditions
    }
}

/// Answers with each condition as a line `STATE NAME: MESSAGE`.
async fn readyz(Shared(admin): Shared<Arc<Admin>>) -> (StatusCode, String) {
    let conditions = admin.conditions().await;
    let ready = conditions.iter().all(|condition| condition.state != HealthState::NotReady);
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let lines = conditions
        .iter()
        .map(|Readiness { name, state, message }| format!("{} {name}: {message}\n", state.name()));
    (status, lines.collect())
}

async fn metrics(
    Shared(admin): Shared<Arc<Admin>>,
) -> Result<impl IntoResponse, (StatusCode, String)> {
    let text = admin.metrics.encode(&admin.conditions().await).map_err(|error| {
        let problem = format!("The metrics could not be written: {error}.\n");
        (StatusCode::INTERNAL_SERVER_ERROR, problem)
    })?;
    Ok(([(CONTENT_TYPE, OPENMETRICS)], text))
}
