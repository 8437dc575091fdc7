//! The admin port: probes and metrics over plain HTTP.
//!
//! A thread of its own serves it, so that a server that is busy judging never looks dead.

use std::io;
use std::sync::Arc;

use axum::Router;
use axum::extract::State as Shared;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};

use super::health::{HealthSource, HealthState, Readiness};
use super::limits::Limits;
use super::metrics::Metrics;
use super::phase::Phase;
use super::port::Port;

/// The content type of the OpenMetrics text format.
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The largest number of open connections.
const CONNECTIONS: usize = 64;

/// The state on which the admin port reports.
pub(super) struct Admin {
    pub(super) sources: Vec<Arc<HealthSource>>,
    pub(super) phase: watch::Receiver<Phase>,
    pub(super) metrics: Metrics,
}

impl Admin {
    /// Serves the port on a thread of its own until the server ends.
    pub(super) async fn serve(self, listener: TcpListener, limits: Limits) -> io::Result<()> {
        let listener = listener.into_std()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (ended, end) = oneshot::channel();
        let limits = Limits { connections: CONNECTIONS, ..limits };
        let phase = self.phase.clone();
        let port = Port::new(limits, None, self.router(), phase, Phase::Ending);
        std::thread::Builder::new().name("admin".to_owned()).spawn(move || {
            let served = runtime.block_on(async {
                port.serve(TcpListener::from_std(listener)?).await;
                Ok(())
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
            .with_state(Arc::new(self))
    }

    fn conditions(&self) -> Vec<Readiness> {
        let server = match *self.phase.borrow() {
            Phase::Serving => Readiness::ready("server", "The server takes requests."),
            Phase::Draining | Phase::Closing | Phase::Ending => Readiness::not_ready(
                "server",
                "The server is shutting down; send reviews to another replica.",
            ),
        };
        std::iter::once(server).chain(self.sources.iter().map(|source| source())).collect()
    }
}

/// Answers with each condition as a line `STATE NAME: MESSAGE`.
async fn readyz(Shared(admin): Shared<Arc<Admin>>) -> (StatusCode, String) {
    let conditions = admin.conditions();
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
    let text = admin.metrics.encode(&admin.conditions()).map_err(|error| {
        let problem = format!("The metrics could not be written: {error}.\n");
        (StatusCode::INTERNAL_SERVER_ERROR, problem)
    })?;
    Ok(([(CONTENT_TYPE, OPENMETRICS)], text))
}
