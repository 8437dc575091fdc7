//! `serve`: the admission webhook.

mod callers;
mod certificate;
mod events;
mod options;
mod policy;
mod reviewer;
mod rollback;
mod view;
mod volume_facts;

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::select_all;
use kube::Client;
use tokio::runtime::Runtime;
use tracing_subscriber::util::TryInitError;

pub(crate) use options::ServeOptions;

use super::log_queue;
use callers::Callers;
use policy::CurrentPolicy;
use reviewer::AdmissionReviewer;
use source::connect::{Access, ConnectError, client};
use source::facts::FactsError;
use source::policy_file::PolicyFileError;
use view::FactSource;
use volume_facts::Writer;
use webhook::server::{HealthSource, Metrics, Options, Server, ServerError, Stopped};
use webhook_certs::{CertError, ClientAuthorities};

/// The time between two comparisons of the file of client CAs with the CAs in use.
const CLIENTS_INTERVAL: Duration = Duration::from_secs(2);

/// A reason why `serve` ended with an error.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServeError {
    /// The log cannot be written.
    #[error("The log cannot be set up: {0}.")]
    Log(#[from] TryInitError),
    /// The policy cannot be used.
    #[error(transparent)]
    Policy(#[from] PolicyFileError),
    /// The files with facts cannot be used; each fault has one line.
    #[error(transparent)]
    Facts(#[from] FactsError),
    /// The certificate cannot be used.
    #[error(transparent)]
    Certificate(#[from] CertError),
    /// There is no cluster for an option that needs one.
    #[error("{option} needs a cluster. {source}")]
    Snapshot {
        /// The option.
        option: &'static str,
        /// The reason why there is none.
        source: ConnectError,
    },
    /// The CA cannot be written.
    #[error("The CA cannot be written to {path}, the file given with --write-ca: {source}.")]
    WriteCa {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The threads that answer cannot be started.
    #[error("The threads of the server cannot be started: {0}.")]
    Runtime(io::Error),
    /// The signals that end the server cannot be caught.
    #[error("The signals SIGTERM and SIGINT cannot be caught: {0}.")]
    Signals(io::Error),
    /// The server could not start or stopped unasked.
    #[error(transparent)]
    Server(#[from] ServerError),
}

impl ServeError {
    /// The exit code: 2 for mistakes in the options, 1 for later failures.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Policy(_)
            | Self::Facts(_)
            | Self::Certificate(_)
            | Self::Snapshot { .. }
            | Self::WriteCa { .. } => ExitCode::from(2),
            Self::Log(_) | Self::Runtime(_) | Self::Signals(_) | Self::Server(_) => {
                ExitCode::from(1)
            }
        }
    }
}

/// A client with which `option` uses the cluster, and the client's own namespace.
async fn cluster(option: &'static str) -> Result<(Client, String), ServeError> {
    let failed = |source| ServeError::Snapshot { option, source };
    let config = Access::default().config().await.map_err(failed)?;
    let namespace = config.default_namespace.clone();
    Ok((client(config).map_err(failed)?, namespace))
}

/// Serves until a signal ends it.
///
/// # Errors
///
/// Fails if something that the options name cannot be used, or if the server could not start or
/// stopped unasked.
pub(super) fn run(options: &ServeOptions) -> Result<Stopped, ServeError> {
    let metrics = Metrics::new(&reviewer::kinds());
    let counted = metrics.clone();
    let (lines, _written_when_dropped) = log_queue::start(io::stderr(), move || {
        counted.log_lines_lost.inc();
    });
    options.log.install(move || lines.clone())?;
    let runtime = Runtime::new().map_err(ServeError::Runtime)?;
    runtime.block_on(serve(options, metrics))
}

async fn serve(options: &ServeOptions, metrics: Metrics) -> Result<Stopped, ServeError> {
    let policy = CurrentPolicy::open(options, &metrics)?;
    let view = Arc::new(FactSource::open(options, &metrics)?);
    let view_health = view.health(&metrics);
    let (events, record_events) = events::open(options, &metrics).await?.unzip();
    let facts = if options.admission_policies {
        let (client, _) = cluster("--admission-policies").await?;
        let writer = Writer::new(&view, &policy.effective, client, &metrics);
        Some(Arc::new(writer))
    } else {
        None
    };
    let reviewer = AdmissionReviewer {
        effective: Arc::clone(&policy.effective),
        view,
        callers: options.client_ca.is_none().then(Callers::default),
        events,
    };

    let opened = certificate::open(&options.certificate, &metrics).await?;
    let (certificates, follow_certificate) = opened;
    let certificate_health = certificate::health(&certificates, &metrics);
    let mut sources: Vec<Arc<HealthSource>> = vec![view_health, certificate_health];
    sources.extend(policy.health());
    if let Some(facts) = facts.clone() {
        sources.push(Arc::new(move || facts.condition()));
    }

    let mut server = Options::new(options.listen, options.admin);
    server.shutdown_delay = options.shutdown_delay;
    server.drain_timeout = options.drain_timeout;
    server.limits.timeout = options.longest_timeout;
    let (clients, follow_clients) = options
        .client_ca
        .clone()
        .map(|path| ClientAuthorities::open(path, CLIENTS_INTERVAL))
        .transpose()?
        .unzip();
    server.clients = clients.map(|clients| clients as _);
    let server = Server::start(&server, certificates, reviewer, sources, metrics.clone()).await?;
    let signals = server.shutdown().on_signals().map_err(ServeError::Signals)?;
    // None of these ends.
    let mut followers = vec![signals.boxed_local(), policy.follow(&metrics).boxed_local()];
    followers.extend(follow_certificate.map(FutureExt::boxed_local));
    followers.extend(follow_clients.map(FutureExt::boxed_local));
    followers.extend(record_events.map(FutureExt::boxed_local));
    followers.extend(facts.as_ref().map(|facts| facts.follow().boxed_local()));
    tokio::select! {
        stopped = server.run() => Ok(stopped?),
        (never, ..) = select_all(followers) => match never {},
    }
}
