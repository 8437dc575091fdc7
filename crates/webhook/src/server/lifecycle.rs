//! Starts the server, and stops it without losing a request.
//!
//! Kubernetes removes a terminating pod from the Service's endpoints at the same moment as it sends
//! SIGTERM, but the API servers notice only later. So the order is: turn readiness off, keep
//! serving for the time that the endpoints take to spread, stop accepting, drain with a deadline. A
//! second signal ends everything at once.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustls::server::ResolvesServerCert;
use rustls::server::danger::ClientCertVerifier;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::{JoinError, JoinHandle};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use super::admin::Admin;
use super::health::HealthSource;
use super::limits::Limits;
use super::listener::listen_at;
use super::metrics::Metrics;
use super::phase::{Phase, reached};
use super::port::{Https, Port};
use super::review::Reviewer;
use super::routes::{Reviews, router};
use super::signals::on_each_signal;
use super::tls::server_config;

/// The time that the admin port has for its last answers.
const ADMIN_DRAIN: Duration = Duration::from_secs(1);

/// The addresses of a server, and its limits on time and memory.
#[derive(Clone, Debug)]
pub struct Options {
    /// The address of the webhook port; port 0 lets the system choose.
    pub listen: SocketAddr,
    /// The address of the admin port; port 0 lets the system choose.
    pub admin: SocketAddr,
    /// The time for which the server keeps serving after readiness was turned off.
    pub shutdown_delay: Duration,
    /// The time that requests in flight may take once no more are accepted.
    pub drain_timeout: Duration,
    /// Bounds on time and memory.
    pub limits: Limits,
    /// The verifier of client certificates; without it none is required.
    pub clients: Option<Arc<dyn ClientCertVerifier>>,
}

impl Options {
    /// The default delays and limits, at these addresses.
    pub fn new(listen: SocketAddr, admin: SocketAddr) -> Self {
        Self {
            listen,
            admin,
            shutdown_delay: Duration::from_secs(5),
            drain_timeout: Duration::from_secs(20),
            limits: Limits::default(),
            clients: None,
        }
    }
}

/// A reason why the server could not start, or stopped unexpectedly.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The address of a port cannot be bound.
    #[error(
        "The {port} port cannot listen on {address}: {source}. Choose another address with {flag}."
    )]
    Listen {
        /// `webhook` or `admin`.
        port: &'static str,
        /// The flag that gives its address.
        flag: &'static str,
        /// The requested address.
        address: SocketAddr,
        /// The error of the system.
        source: io::Error,
    },
    /// The TLS library refused its own defaults.
    #[error("TLS could not be set up: {0}. This is a bug in multi-attach-guard; please report it.")]
    Tls(#[from] rustls::Error),
    /// A port stopped being served without a shutdown.
    #[error("The {port} port stopped being served: {reason}. Start the server again.")]
    Stopped {
        /// `webhook` or `admin`.
        port: &'static str,
        /// The error.
        reason: String,
    },
}

/// Stops a running [`Server`]. Clones stop the same server.
#[derive(Clone, Debug)]
pub struct Shutdown(Arc<watch::Sender<Phase>>);

impl Shutdown {
    /// Requests a shutdown: the first call begins an orderly one, the second aborts it.
    pub fn request(&self) {
        self.0.send_modify(|phase| {
            *phase = match phase {
                Phase::Serving => Phase::Draining,
                Phase::Draining | Phase::Closing | Phase::Ending => Phase::Ending,
            };
        });
    }

    /// Calls [`request`](Self::request) for each SIGTERM and SIGINT (Ctrl-C on
    /// Windows) while the returned future is polled. Signals count from the
    /// moment this returns.
    pub fn on_signals(&self) -> io::Result<impl Future<Output = Infallible> + Send + use<>> {
        let shutdown = self.clone();
        on_each_signal(move |name| {
            tracing::info!(signal = name, "A signal stops the server.");
            shutdown.request();
        })
    }
}

/// The way in which a shutdown ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// Every connection ended by itself.
    Drained,
    /// This many connections were cut at the end of the drain deadline.
    Cut(usize),
    /// A second request to stop ended everything at once.
    Aborted,
}

/// A server whose two ports are bound and answer.
pub struct Server {
    /// The addresses have the ports that were chosen.
    options: Options,
    phase: Shutdown,
    metrics: Metrics,
    webhook: JoinHandle<()>,
    admin: JoinHandle<io::Result<()>>,
}

impl Server {
    /// Binds both ports and starts to serve them, so a client may connect as
    /// soon as this returns.
    ///
    /// `certificates` is consulted at each handshake, so a certificate may change. `sources` are
    /// the conditions on which readiness depends, besides the server itself.
    pub async fn start<R: Reviewer>(
        options: &Options,
        certificates: Arc<dyn ResolvesServerCert>,
        reviewer: R,
        sources: Vec<Arc<HealthSource>>,
        metrics: Metrics,
    ) -> Result<Self, ServerError> {
        let (listen, listener) = bind("webhook", "--listen", options.listen)?;
        let (admin, admin_listener) = bind("admin", "--admin", options.admin)?;

        let (sender, phase) = watch::channel(Phase::Serving);
        let https = Https {
            tls: TlsAcceptor::from(Arc::new(server_config(certificates, options.clients.clone())?)),
            metrics: metrics.clone(),
            warned: Mutex::default(),
        };
        let reviews = Reviews::new(reviewer, options.limits, metrics.clone());
        let port = Port::new(
            options.limits,
            Some(https),
            router(Arc::new(reviews)),
            phase.clone(),
            Phase::Closing,
        );
        let admin_port = Admin { sources, phase, metrics: metrics.clone() };
        Ok(Self {
            options: Options { listen, admin, ..options.clone() },
            phase: Shutdown(Arc::new(sender)),
            metrics,
            webhook: tokio::spawn(port.serve(listener)),
            admin: tokio::spawn(admin_port.serve(admin_listener, options.limits)),
        })
    }

    /// The address of the webhook port, with the port that was chosen.
    pub fn listen(&self) -> SocketAddr {
        self.options.listen
    }

    /// The address of the admin port, with the port that was chosen.
    pub fn admin(&self) -> SocketAddr {
        self.options.admin
    }

    /// A handle that stops the server.
    pub fn shutdown(&self) -> Shutdown {
        self.phase.clone()
    }

    /// Serves until a shutdown is requested, then stops in order.
    pub async fn run(mut self) -> Result<Stopped, ServerError> {
        tracing::info!(webhook = %self.listen(), admin = %self.admin(), "listening");
        let mut phase = self.phase.0.subscribe();
        tokio::select! {
            () = reached(&mut phase, Phase::Draining) => {}
            ended = &mut self.webhook => return Err(stopped("webhook", ended.map(Ok))),
            ended = &mut self.admin => return Err(stopped("admin", ended)),
        }

        tracing::info!(
            delay_s = self.options.shutdown_delay.as_secs_f64(),
            "Shutting down: no longer ready, still answering while the endpoints change."
        );
        tokio::select! {
            () = sleep(self.options.shutdown_delay) => {}
            () = reached(&mut phase, Phase::Ending) => {}
        }

        self.phase.0.send_modify(|current| *current = (*current).max(Phase::Closing));
        let stopped = tokio::select! {
            biased;
            () = reached(&mut phase, Phase::Ending) => Stopped::Aborted,
            _ = &mut self.webhook => Stopped::Drained,
            () = sleep(self.options.drain_timeout) => {
                Stopped::Cut(usize::try_from(self.metrics.connections.get()).unwrap_or_default())
            }
        };
        self.webhook.abort();
        self.phase.0.send_replace(Phase::Ending);
        let _ = timeout(ADMIN_DRAIN, &mut self.admin).await;
        match stopped {
            Stopped::Drained => tracing::info!("Stopped: every request was answered."),
            Stopped::Cut(connections) => tracing::warn!(
                connections,
                "Stopped: the drain deadline passed and connections were cut."
            ),
            Stopped::Aborted => tracing::warn!("Stopped at once, because a second signal arrived."),
        }
        Ok(stopped)
    }
}

/// Listens at an address. The address that is returned has the port that was chosen.
fn bind(
    port: &'static str,
    flag: &'static str,
    address: SocketAddr,
) -> Result<(SocketAddr, TcpListener), ServerError> {
    listen_at(address)
        .and_then(|listener| Ok((listener.local_addr()?, listener)))
        .map_err(|source| ServerError::Listen { port, flag, address, source })
}

/// The error about a port whose task has ended by itself.
fn stopped(port: &'static str, ended: Result<io::Result<()>, JoinError>) -> ServerError {
    let reason = match ended.map_err(io::Error::other).flatten() {
        Ok(()) => "its task ended".to_owned(),
        Err(error) => error.to_string(),
    };
    ServerError::Stopped { port, reason }
}
