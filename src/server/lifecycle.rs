//! Starting, and stopping without losing a request.
//!
//! Kubernetes removes a terminating pod from the Service's endpoints at the
//! same moment as it sends SIGTERM, and the API servers learn of it only
//! later. So the order is: readiness off, keep serving for the time that the
//! endpoints take to spread, stop accepting, drain with a deadline. A second
//! signal ends everything at once.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum_server::Handle;
use axum_server::accept::NoDelayAcceptor;
use axum_server::tls_rustls::{RustlsAcceptor, RustlsConfig};
use hyper_util::rt::TokioTimer;
use rustls::server::ResolvesServerCert;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::admin::Admin;
use super::connection::Guard;
use super::health::HealthSource;
use super::limits::Limits;
use super::metrics::Metrics;
use super::phase::Phase;
use super::review::Reviewer;
use super::tls::{HandshakeProbe, server_config};
use super::webhook::{MakeWebhook, Webhook};

/// Received and not yet read bytes that one HTTP/2 connection may hold. An
/// API server is a millisecond away at most, so this still lets hundreds of
/// megabytes a second through.
const HTTP2_CONNECTION_WINDOW: u32 = 256 * 1024;

/// The same for one request.
const HTTP2_STREAM_WINDOW: u32 = 128 * 1024;

/// The same for one HTTP/1.1 connection, headers included.
const HTTP1_BUFFER: usize = 64 * 1024;

/// A client that vanished without a word is found out by HTTP/2 pings.
const HTTP2_PING_EVERY: Duration = Duration::from_secs(30);

/// Where to listen, and how to stop.
#[derive(Clone, Debug)]
pub struct Options {
    /// The address of the webhook port; port 0 lets the system choose.
    pub listen: SocketAddr,
    /// The address of the admin port; port 0 lets the system choose.
    pub admin: SocketAddr,
    /// How long to keep serving after readiness was turned off.
    pub shutdown_delay: Duration,
    /// How long requests in flight may take once no more are accepted.
    pub drain_timeout: Duration,
    /// Bounds on time and memory.
    pub limits: Limits,
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
        }
    }
}

/// Why the server could not start, or stopped unasked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The address of the webhook port cannot be bound.
    #[error(
        "The webhook port cannot listen on {address}: {source}. Choose another address with --listen."
    )]
    Listen {
        /// The address asked for.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The address of the admin port cannot be bound.
    #[error(
        "The admin port cannot listen on {address}: {source}. Choose another address with --admin."
    )]
    Admin {
        /// The address asked for.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The TLS library refused its own defaults.
    #[error("TLS could not be set up: {0}. This is a bug in multi-attach-guard; please report it.")]
    Tls(#[from] rustls::Error),
    /// A port stopped being served although nobody asked for it.
    #[error("The {port} port stopped being served: {reason}. Start the server again.")]
    Stopped {
        /// `webhook` or `admin`.
        port: &'static str,
        /// What went wrong.
        reason: String,
    },
}

/// Asks a running [`Server`] to stop. Clones ask the same server.
#[derive(Clone, Debug)]
pub struct Shutdown(Arc<watch::Sender<Phase>>);

impl Shutdown {
    /// The first call begins an orderly shutdown, the second aborts it.
    pub fn request(&self) {
        self.0.send_modify(|phase| {
            *phase = match phase {
                Phase::Serving => Phase::Draining,
                Phase::Draining | Phase::Aborted => Phase::Aborted,
            };
        });
    }

    /// Lets SIGTERM and SIGINT call [`request`](Self::request): from the
    /// moment this returns, and for as long as the future it returns is
    /// polled.
    pub fn on_signals(&self) -> io::Result<impl Future<Output = Infallible> + Send + use<>> {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let shutdown = self.clone();
        Ok(async move {
            loop {
                let name = tokio::select! {
                    _ = terminate.recv() => "SIGTERM",
                    _ = interrupt.recv() => "SIGINT",
                };
                tracing::info!(signal = name, "A signal asks the server to stop.");
                shutdown.request();
            }
        })
    }
}

/// How a server that was asked to stop came to its end.
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
#[derive(Debug)]
pub struct Server {
    listen: SocketAddr,
    admin: SocketAddr,
    shutdown_delay: Duration,
    drain_timeout: Duration,
    phase: Shutdown,
    webhook: Port,
    probes: Port,
}

/// One port and the task that serves it.
#[derive(Debug)]
struct Port {
    name: &'static str,
    handle: Handle<SocketAddr>,
    task: JoinHandle<io::Result<()>>,
}

impl Port {
    /// Waits for the task to end, and says what ended it.
    async fn ended(&mut self) -> ServerError {
        let reason = match (&mut self.task).await {
            Ok(Ok(())) => "its task ended".to_owned(),
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        ServerError::Stopped {
            port: self.name,
            reason,
        }
    }
}

impl Server {
    /// Binds both ports and starts to serve them, so a client may connect as
    /// soon as this returns.
    ///
    /// `certificates` is asked at each handshake, so it may change its mind.
    /// `sources` are what readiness depends on, beside the server itself.
    pub async fn start<R: Reviewer>(
        options: &Options,
        certificates: Arc<dyn ResolvesServerCert>,
        reviewer: R,
        sources: Vec<Arc<dyn HealthSource>>,
        metrics: Metrics,
    ) -> Result<Self, ServerError> {
        let address = options.listen;
        let failed = |source| ServerError::Listen { address, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let listen = listener.local_addr().map_err(failed)?;

        let address = options.admin;
        let failed = |source| ServerError::Admin { address, source };
        let admin_listener = TcpListener::bind(address).await.map_err(failed)?;
        let admin = admin_listener.local_addr().map_err(failed)?;

        let limits = options.limits;
        let (sender, phase) = watch::channel(Phase::Serving);
        let router = Admin {
            sources,
            probe: HandshakeProbe::new(listen)?,
            phase,
            metrics: metrics.clone(),
        }
        .router();

        let tls = RustlsConfig::from_config(Arc::new(server_config(certificates)?));
        // Without TCP_NODELAY the second small write of an answer waits for
        // the client's delayed acknowledgement, 40 ms.
        let acceptor = RustlsAcceptor::new(tls)
            .handshake_timeout(limits.handshake)
            .acceptor(NoDelayAcceptor);
        let handle = Handle::new();
        let mut server = axum_server::Server::from_listener(listener)
            .handle(handle.clone())
            .acceptor(Guard::new(acceptor, limits, Some(metrics.clone())));
        tune(&mut server, &limits);
        let service = MakeWebhook(Webhook::new(reviewer, limits, metrics));
        let webhook = Port {
            name: "webhook",
            handle,
            task: tokio::spawn(server.serve(service)),
        };

        let handle = Handle::new();
        let mut server = axum_server::Server::from_listener(admin_listener)
            .handle(handle.clone())
            .acceptor(Guard::new(NoDelayAcceptor, limits, None));
        tune(&mut server, &limits);
        let probes = Port {
            name: "admin",
            handle,
            task: tokio::spawn(server.serve(router.into_make_service())),
        };

        Ok(Self {
            listen,
            admin,
            shutdown_delay: options.shutdown_delay,
            drain_timeout: options.drain_timeout,
            phase: Shutdown(Arc::new(sender)),
            webhook,
            probes,
        })
    }

    /// The address of the webhook port, with the port that was chosen.
    pub fn listen(&self) -> SocketAddr {
        self.listen
    }

    /// The address of the admin port, with the port that was chosen.
    pub fn admin(&self) -> SocketAddr {
        self.admin
    }

    /// The way to stop the server.
    pub fn shutdown(&self) -> Shutdown {
        self.phase.clone()
    }

    /// Serves until asked to stop, then stops in order.
    pub async fn run(mut self) -> Result<Stopped, ServerError> {
        tracing::info!(webhook = %self.listen, admin = %self.admin, "listening");
        let mut phase = self.phase.0.subscribe();
        tokio::select! {
            () = reached(&mut phase, Phase::Draining) => {}
            error = self.webhook.ended() => return Err(error),
            error = self.probes.ended() => return Err(error),
        }

        tracing::info!(
            delay_s = self.shutdown_delay.as_secs_f64(),
            "Shutting down: no longer ready, still answering while the endpoints change."
        );
        tokio::select! {
            () = sleep(self.shutdown_delay) => {}
            () = reached(&mut phase, Phase::Aborted) => {}
        }

        self.webhook.handle.graceful_shutdown(None);
        let stopped = tokio::select! {
            biased;
            () = reached(&mut phase, Phase::Aborted) => Stopped::Aborted,
            _ = &mut self.webhook.task => Stopped::Drained,
            () = sleep(self.drain_timeout) => {
                Stopped::Cut(self.webhook.handle.connection_count())
            }
        };
        self.webhook.handle.shutdown();
        self.probes.handle.shutdown();
        match stopped {
            Stopped::Drained => tracing::info!("Stopped: every request was answered."),
            Stopped::Cut(connections) => tracing::warn!(
                connections,
                "Stopped: the drain deadline passed and connections were cut."
            ),
            Stopped::Aborted => tracing::warn!("Stopped at once, as asked a second time."),
        }
        Ok(stopped)
    }
}

async fn reached(phase: &mut watch::Receiver<Phase>, wanted: Phase) {
    // The sender lives as long as the server that waits here.
    let _ = phase.wait_for(|phase| *phase >= wanted).await;
}

/// Gives hyper its timers and buffer sizes.
fn tune<A>(server: &mut axum_server::Server<SocketAddr, A>, limits: &Limits) {
    let http = server.http_builder();
    http.http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.headers)
        .max_buf_size(HTTP1_BUFFER);
    http.http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(HTTP2_PING_EVERY)
        .initial_connection_window_size(HTTP2_CONNECTION_WINDOW)
        .initial_stream_window_size(HTTP2_STREAM_WINDOW);
}
