//! `serve`: the admission webhook.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::{ArgGroup, Args};
use jiff::{SignedDuration, Timestamp};

use super::logging::LogOptions;
use crate::certs::{CertError, Certificates, PemFiles, SelfSigned, ServingPair};
use crate::server::{
    Condition, HealthSource, Metrics, Options, Reviewer, Server, ServerError, Stopped,
};

/// How often the certificate files are compared with what is served. A kubelet
/// needs up to a minute to change a mounted Secret, so this adds little.
const CERTIFICATE_INTERVAL: Duration = Duration::from_secs(2);

/// The name of the condition on the certificate.
const CERTIFICATE: &str = "certificate";

/// Answer admission reviews over HTTPS
///
/// POST /mutate and /validate on the webhook port; /healthz, /readyz and /metrics on the admin
/// port. SIGTERM ends it in order: readiness goes off, requests are still answered while the
/// endpoints change, then the connections drain. A second signal ends it at once.
#[derive(Args, Clone, Debug)]
pub struct ServeOptions {
    /// The policy file; without one the default policy holds
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// The address of the webhook port; port 0 lets the system choose
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0:8443")]
    pub listen: SocketAddr,

    /// The address of the admin port; port 0 lets the system choose
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0:8080")]
    pub admin: SocketAddr,

    /// Where the certificate comes from.
    #[command(flatten)]
    pub certificate: CertificateOptions,

    /// Take cluster facts from these YAML or JSON files and folders in place of an API server
    #[arg(long, value_name = "PATH", num_args = 1..)]
    pub facts: Vec<PathBuf>,

    /// How long to keep answering after readiness went off, as in "5s"
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = duration)]
    pub shutdown_delay: Duration,

    /// How long requests in flight may take once no new ones are accepted, as in "20s"
    #[arg(long, value_name = "DURATION", default_value = "20s", value_parser = duration)]
    pub drain_timeout: Duration,

    /// What is logged, and how.
    #[command(flatten)]
    pub log: LogOptions,
}

/// Where the certificate of the webhook port comes from: exactly one source.
#[derive(Args, Clone, Debug)]
#[group(skip)]
#[command(group = ArgGroup::new("certificate").required(true).args(["tls_cert", "self_signed"]))]
pub struct CertificateOptions {
    /// The certificate chain in PEM, the server's own first; read again when it changes
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,

    /// The private key of the certificate, in PEM; read again when it changes
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,

    /// Make a certificate for localhost, this machine's name and each --dns-name
    #[arg(long)]
    pub self_signed: bool,

    /// A further name or IP address in the self-signed certificate; may be repeated
    #[arg(
        long,
        value_name = "NAME",
        requires = "self_signed",
        conflicts_with = "tls_cert"
    )]
    pub dns_name: Vec<String>,

    /// Write the CA of the self-signed certificate to this file, in PEM, for clients to trust
    #[arg(
        long,
        value_name = "FILE",
        requires = "self_signed",
        conflicts_with = "tls_cert"
    )]
    pub write_ca: Option<PathBuf>,
}

/// A length of time with its unit, such as `5s`, `500ms` or `1m30s`.
fn duration(text: &str) -> Result<Duration, String> {
    let parsed: SignedDuration = text.parse().map_err(|error: jiff::Error| {
        format!("{error}; write a number and its unit, as in \"5s\" or \"1m30s\"")
    })?;
    parsed
        .try_into()
        .map_err(|_| "a length of time is not negative".to_owned())
}

/// Why `serve` ended with an error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The certificate cannot be used.
    #[error(transparent)]
    Certificate(#[from] CertError),
    /// The CA cannot be written.
    #[error("The CA cannot be written to {path}, the file given with --write-ca: {source}.")]
    WriteCa {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The signals that end the server cannot be caught.
    #[error("The signals SIGTERM and SIGINT cannot be caught: {0}.")]
    Signals(io::Error),
    /// The server could not start or stopped unasked.
    #[error(transparent)]
    Server(#[from] ServerError),
}

impl ServeError {
    /// 2 for what the caller gave, 1 for what went wrong afterwards.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Certificate(_) | Self::WriteCa { .. } => ExitCode::from(2),
            Self::Signals(_) | Self::Server(_) => ExitCode::from(1),
        }
    }
}

/// Serves until a signal ends it. `sources` are what readiness depends on
/// beside the server and its certificate.
pub async fn serve<R: Reviewer>(
    options: &ServeOptions,
    reviewer: R,
    mut sources: Vec<Arc<dyn HealthSource>>,
    metrics: Metrics,
) -> Result<Stopped, ServeError> {
    let (certificates, files) = certificates(&options.certificate).await?;
    metrics.set_certificate_expiry(certificates.current().not_after());
    let served = Arc::clone(&certificates);
    sources.push(Arc::new(move || vec![condition(&served, Timestamp::now())]));

    let mut server = Options::new(options.listen, options.admin);
    server.shutdown_delay = options.shutdown_delay;
    server.drain_timeout = options.drain_timeout;
    let resolver = Arc::clone(&certificates);
    let server = Server::start(&server, resolver, reviewer, sources, metrics.clone()).await?;
    let signals = server
        .shutdown()
        .on_signals()
        .map_err(ServeError::Signals)?;

    let follow = async {
        let Some(files) = files else {
            return std::future::pending().await;
        };
        let attempted = |attempt: Result<&ServingPair, &CertError>| {
            metrics.certificate_reloaded(attempt.is_ok(), Timestamp::now());
            if let Ok(pair) = attempt {
                metrics.set_certificate_expiry(pair.not_after());
            }
        };
        files
            .follow(CERTIFICATE_INTERVAL, &certificates, attempted)
            .await
    };
    tokio::select! {
        stopped = server.run() => Ok(stopped?),
        never = signals => match never {},
        never = follow => match never {},
    }
}

/// The first certificate, and its files if it comes from files.
async fn certificates(
    options: &CertificateOptions,
) -> Result<(Arc<Certificates>, Option<PemFiles>), ServeError> {
    if let (Some(certificate), Some(key)) = (&options.tls_cert, &options.tls_key) {
        let (files, pair) = PemFiles::open(certificate.clone(), key.clone()).await?;
        return Ok((Arc::new(Certificates::new(pair)), Some(files)));
    }
    let made = SelfSigned::generate(&options.dns_name, Timestamp::now())?;
    if let Some(path) = &options.write_ca {
        fs::write(path, &made.ca_pem).map_err(|source| ServeError::WriteCa {
            path: path.clone(),
            source,
        })?;
        tracing::info!(file = %path.display(), "The CA to trust was written.");
    }
    Ok((Arc::new(Certificates::new(made.pair)), None))
}

/// What readiness makes of the certificate: the API server refuses one that
/// is out of its time.
fn condition(certificates: &Certificates, now: Timestamp) -> Condition {
    let pair = certificates.current();
    let (from, until) = (pair.not_before(), pair.not_after());
    match certificates.failure() {
        _ if pair.is_expired(now) => Condition::not_ready(
            CERTIFICATE,
            format!("The certificate expired at {until}; renew it."),
        ),
        _ if now < from => Condition::not_ready(
            CERTIFICATE,
            format!("The certificate is good from {from} on; check this machine's clock."),
        ),
        Some(failure) => Condition::degraded(
            CERTIFICATE,
            format!("{failure} The one in use is good until {until}."),
        ),
        None => Condition::ready(
            CERTIFICATE,
            format!("The certificate is good until {until}."),
        ),
    }
}

#[cfg(test)]
mod tests {
    use clap::{Parser, error::ErrorKind};
    use jiff::ToSpan;

    use super::*;

    #[derive(Debug, Parser)]
    struct Command {
        #[command(flatten)]
        serve: ServeOptions,
    }

    fn parse(arguments: &[&str]) -> Result<ServeOptions, clap::Error> {
        let command = ["serve"].iter().chain(arguments);
        Command::try_parse_from(command).map(|command| command.serve)
    }

    #[test]
    fn defaults_are_those_of_the_manual() {
        let options = parse(&["--self-signed"]).unwrap();
        assert_eq!(options.listen.to_string(), "0.0.0.0:8443");
        assert_eq!(options.admin.to_string(), "0.0.0.0:8080");
        assert_eq!(options.shutdown_delay, Duration::from_secs(5));
        assert_eq!(options.drain_timeout, Duration::from_secs(20));
        assert_eq!(options.config, None);
        assert!(options.facts.is_empty());
    }

    #[test]
    fn usage() {
        use ErrorKind::{ArgumentConflict, InvalidValue, MissingRequiredArgument, ValueValidation};
        let cases: [(&[&str], Option<ErrorKind>); 14] = [
            (&["--tls-cert=c", "--tls-key=k"], None),
            (
                &[
                    "--self-signed",
                    "--dns-name=a",
                    "--dns-name=::1",
                    "--write-ca=f",
                ],
                None,
            ),
            (&["--self-signed", "--facts", "a", "b"], None),
            (&["--self-signed", "--facts=a", "--facts=b"], None),
            (
                &[
                    "--self-signed",
                    "--shutdown-delay=1m30s",
                    "--drain-timeout=0s",
                ],
                None,
            ),
            (&[], Some(MissingRequiredArgument)),
            (&["--tls-cert=c"], Some(MissingRequiredArgument)),
            (&["--tls-key=k"], Some(MissingRequiredArgument)),
            (
                &["--tls-cert=c", "--tls-key=k", "--self-signed"],
                Some(ArgumentConflict),
            ),
            (
                &["--tls-cert=c", "--tls-key=k", "--dns-name=a"],
                Some(ArgumentConflict),
            ),
            (
                &["--self-signed", "--shutdown-delay=5"],
                Some(ValueValidation),
            ),
            (
                &["--self-signed", "--drain-timeout=-1s"],
                Some(ValueValidation),
            ),
            (&["--self-signed", "--log-format=xml"], Some(InvalidValue)),
            (&["--self-signed", "--log=a=b=c"], Some(ValueValidation)),
        ];
        for (arguments, expected) in cases {
            let found = parse(arguments).err().map(|error| error.kind());
            assert_eq!(found, expected, "{arguments:?}");
        }
    }

    #[test]
    fn readiness_follows_the_certificate() {
        let now = Timestamp::now();
        let cases = [
            ("fresh", now, "ready"),
            ("before its time", now - (24 * 3).hours(), "not-ready"),
            ("after its time", now + (24 * 367).hours(), "not-ready"),
        ];
        let made = SelfSigned::generate(&[], now).unwrap();
        let certificates = Certificates::new(made.pair);
        for (case, at, expected) in cases {
            assert_eq!(
                condition(&certificates, at).state.as_str(),
                expected,
                "{case}"
            );
        }
    }
}
