//! The admin port: probes and metrics over plain HTTP.
//!
//! It is served by a thread of its own, so that a server that is busy judging
//! never looks dead.

use std::fmt::Write as _;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use axum::Router;
use axum::extract::{Extension, State as Shared};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::middleware::from_fn;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use hyper_util::rt::TokioExecutor;
use hyper_util::server::conn::auto::Builder;
use tokio::net::TcpStream;
use tokio::sync::{oneshot, watch};
use tower::ServiceBuilder;

use super::connection::{Lifetime, serve_http};
use super::connections::{ConnectionGuard, Connections, in_flight};
use super::health::{HealthSource, HealthState, Readiness};
use super::limits::Limits;
use super::listener::accept;
use super::metrics::Metrics;
use super::phase::Phase;
use super::tls::HandshakeProbe;

/// The content type of the OpenMetrics text format.
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Received and not yet read bytes that one connection may hold.
const BUFFER: usize = 16 * 1024;

/// What the admin port reports on.
pub(super) struct Admin {
    pub(super) sources: Vec<Arc<dyn HealthSource>>,
    pub(super) probe: HandshakeProbe,
    pub(super) phase: watch::Receiver<Phase>,
    pub(super) metrics: Metrics,
    pub(super) limits: Limits,
}

impl Admin {
    /// Serves the port on a thread of its own until `stop`. What is returned resolves at
    /// the end.
    pub(super) fn spawn(
        self,
        listener: TcpListener,
        connections: Arc<Connections>,
        stop: oneshot::Receiver<()>,
    ) -> io::Result<oneshot::Receiver<()>> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let listener = {
            let _inside = runtime.enter();
            tokio::net::TcpListener::from_std(listener)?
        };
        let (ended, end) = oneshot::channel();
        // Prometheus keeps its connection from one scrape to the next.
        let lifetime = Lifetime::new(&self.limits, None);
        let router = self.router();
        std::thread::Builder::new()
            .name("admin".to_owned())
            .spawn(move || {
                let open = Arc::clone(&connections);
                let serve = |stream: TcpStream, peer: SocketAddr| {
                    let guard = open.admit(peer.ip())?;
                    Some(serve(stream, guard, router.clone(), lifetime.clone()))
                };
                runtime.block_on(accept(listener, connections, stop, serve));
                // Perhaps nobody waits for it anymore.
                let _ = ended.send(());
            })?;
        Ok(end)
    }

    fn router(self) -> Router {
        Router::new()
            .route("/healthz", get(healthz))
            .route("/readyz", get(readyz))
            .route("/metrics", get(metrics))
            .layer(from_fn(in_flight))
            .with_state(Arc::new(self))
    }

    async fn conditions(&self) -> Vec<Readiness> {
        let phase = match *self.phase.borrow() {
            Phase::Serving => Readiness::ready("server", "The server takes requests."),
            Phase::Draining | Phase::Aborted => Readiness::not_ready(
                "server",
                "The server is shutting down; send reviews to another replica.",
            ),
        };
        let mut conditions = vec![phase, self.probe.condition().await];
        for source in &self.sources {
            conditions.extend(source.report());
        }
        conditions
    }
}

async fn serve(stream: TcpStream, guard: ConnectionGuard, router: Router, lifetime: Lifetime) {
    // As for the webhook port.
    let _ = stream.set_nodelay(true);
    let mut http = Builder::new(TokioExecutor::new()).http1_only();
    http.http1().max_buf_size(BUFFER);
    let service = ServiceBuilder::new()
        .layer(Extension(Arc::clone(guard.connection())))
        .service(router);
    serve_http(stream, &http, &guard, &lifetime, service).await;
}

/// Alive while it can answer at all.
async fn healthz() -> &'static str {
    "ok\n"
}

async fn readyz(Shared(admin): Shared<Arc<Admin>>) -> (StatusCode, String) {
    let conditions = admin.conditions().await;
    let ready = conditions.iter().all(|c| c.state != HealthState::NotReady);
    let status = match ready {
        true => StatusCode::OK,
        false => StatusCode::SERVICE_UNAVAILABLE,
    };
    (status, lines(&conditions))
}

async fn metrics(Shared(admin): Shared<Arc<Admin>>) -> Response {
    match admin.metrics.encode(&admin.conditions().await) {
        Ok(text) => ([(CONTENT_TYPE, OPENMETRICS)], text).into_response(),
        Err(error) => (
            StatusCode::INTERNAL_SERVER_ERROR,
            format!("The metrics could not be written: {error}.\n"),
        )
            .into_response(),
    }
}

/// `STATE NAME: MESSAGE`, one condition a line.
fn lines(conditions: &[Readiness]) -> String {
    let mut text = String::new();
    for Readiness {
        name,
        state,
        message,
    } in conditions
    {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{} {name}: {message}", state.as_str());
    }
    text
}
