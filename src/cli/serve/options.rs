//! The options of `serve`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::RangedU64ValueParser;
use clap::{ArgGroup, Args, ValueEnum};
use jiff::SignedDuration;

use crate::cli::logging::LogOptions;

/// The options of `serve`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ServeOptions {
    /// The policy file; without one the built-in policy holds
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// End with an error where the policy file cannot be used at the start, in place of only warning
    /// until it can
    #[arg(long, requires = "config")]
    pub policy_required: bool,

    /// Address of the webhook port; 0.0.0.0 includes IPv6, and port 0 picks a free port
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0:8443")]
    pub listen: SocketAddr,

    /// Address of the admin port, for probes and metrics
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0:8080")]
    pub admin: SocketAddr,

    /// Where the certificate comes from.
    #[command(flatten)]
    pub certificate: CertificateOptions,

    /// Accept only clients with a certificate of a CA in this PEM file (docs/security.md)
    #[arg(long, value_name = "FILE")]
    pub client_ca: Option<PathBuf>,

    /// Read the cluster's facts from this file or directory instead of an API server; repeatable
    #[arg(long, value_name = "PATH")]
    pub facts: Vec<PathBuf>,

    /// Watch pods without a Kubernetes controller too; needs the right to get, list and watch pods
    #[arg(long, conflicts_with = "facts")]
    pub bare_pods: bool,

    /// Watch Rollouts, ScaledObjects, ScaledJobs, DeploymentConfigs and CloneSets where installed
    #[arg(long, conflicts_with = "facts")]
    pub custom_workloads: bool,

    /// Record an Event on objects that were repaired, or warned about where the built-in policy denies
    #[arg(long, conflicts_with = "facts")]
    pub events: bool,

    /// Write the VolumeFacts that policies in the API server read (docs/always-there.md)
    #[arg(long, conflicts_with = "facts")]
    pub admission_policies: bool,

    /// How to answer if the API server does not confirm a denial in time
    #[arg(long, value_enum, default_value_t = Stale::Warn)]
    pub stale: Stale,

    /// The MiB of memory for the objects of all namespaces; those of one namespace get a third
    #[arg(long, value_name = "MIB", default_value_t = 192, value_parser = RangedU64ValueParser::<usize>::new().range(16..=1 << 20))]
    pub object_memory: usize,

    /// The longest that a review may take, whatever its client says; at least `timeoutSeconds` of
    /// the webhook configurations
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration)]
    pub longest_timeout: Duration,

    /// How long to keep answering once a shutdown has begun
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = duration)]
    pub shutdown_delay: Duration,

    /// How long requests in flight may take after that
    #[arg(long, value_name = "DURATION", default_value = "20s", value_parser = duration)]
    pub drain_timeout: Duration,

    /// The log.
    #[command(flatten)]
    pub log: LogOptions,
}

/// How to answer if a denial rests on facts that may be old.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Stale {
    /// It stands
    Deny,
    /// It becomes a warning that says why
    Warn,
}

/// Where the certificate of the webhook port comes from: exactly one source.
#[derive(Args, Clone, Debug)]
#[group(skip)]
#[command(group = ArgGroup::new("certificate").required(true).args(["tls_cert", "manage_certs", "self_signed"]))]
pub(crate) struct CertificateOptions {
    /// Certificate chain in PEM, the server's certificate first; reloaded when it changes
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,

    /// Private key of the certificate, in PEM; reloaded when it changes
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,

    /// Create, share and renew the certificate and its CA in a Secret (docs/operations.md)
    #[arg(long)]
    pub manage_certs: bool,

    /// Create a certificate for localhost, this machine's name and each --dns-name
    #[arg(long)]
    pub self_signed: bool,

    /// Another name or IP address in the created certificate; repeatable
    #[arg(long, value_name = "NAME", conflicts_with = "tls_cert")]
    pub dns_name: Vec<String>,

    /// Write the CA of the self-signed certificate to this PEM file, for clients to trust
    #[arg(
        long,
        value_name = "FILE",
        requires = "self_signed",
        conflicts_with_all = ["tls_cert", "manage_certs"]
    )]
    pub write_ca: Option<PathBuf>,
}

/// A duration with its unit, such as `5s`, `500ms` or `1m30s`.
fn duration(text: &str) -> Result<Duration, String> {
    let parsed: SignedDuration = text.parse().map_err(|error: jiff::Error| {
        format!("{error}; write a number and its unit, as in \"5s\" or \"1m30s\"")
    })?;
    parsed.try_into().map_err(|_| "a length of time is not negative".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::{Parser, error::ErrorKind};

    use super::*;

    #[derive(Debug, Parser)]
    struct Command {
        #[command(flatten)]
        _serve: ServeOptions,
    }

    #[test]
    fn usage() {
        use ErrorKind::{ArgumentConflict, InvalidValue, MissingRequiredArgument, ValueValidation};
        let cases = [
            ("--tls-cert=c --tls-key=k", None),
            ("--self-signed --dns-name=a --dns-name=::1 --write-ca=f", None),
            ("--manage-certs --dns-name=a", None),
            ("--manage-certs --self-signed", Some(ArgumentConflict)),
            ("--manage-certs --tls-cert=c --tls-key=k", Some(ArgumentConflict)),
            ("--manage-certs --write-ca=f", Some(ArgumentConflict)),
            ("--self-signed --facts a --facts b", None),
            ("--self-signed --facts=a --facts=b", None),
            ("--self-signed --events", None),
            ("--self-signed --events --facts=a", Some(ArgumentConflict)),
            ("--self-signed --shutdown-delay=1m30s --drain-timeout=0s", None),
            ("", Some(MissingRequiredArgument)),
            ("--tls-cert=c", Some(MissingRequiredArgument)),
            ("--tls-key=k", Some(MissingRequiredArgument)),
            ("--tls-cert=c --tls-key=k --self-signed", Some(ArgumentConflict)),
            ("--tls-cert=c --tls-key=k --dns-name=a", Some(ArgumentConflict)),
            ("--self-signed --shutdown-delay=5", Some(ValueValidation)),
            ("--self-signed --drain-timeout=-1s", Some(ValueValidation)),
            ("--self-signed --log-format=xml", Some(InvalidValue)),
            ("--self-signed --log=a=b=c", Some(ValueValidation)),
        ];
        for (arguments, expected) in cases {
            let command = ["serve"].into_iter().chain(arguments.split_whitespace());
            let found = Command::try_parse_from(command).err();
            assert_eq!(found.map(|error| error.kind()), expected, "{arguments}");
        }
    }
}
