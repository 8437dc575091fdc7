//! Certificates for a Kubernetes webhook server on rustls: managed in the cluster, read from
//! files that may change, or self-signed for a trial.
//!
//! [`Certificates`] is the certificate in use, which a `rustls::ServerConfig` takes as its
//! resolver. One of these keeps it up to date:
//!
//! * [`ManagedCertificate`] needs neither cert-manager nor an operator: the replicas create a CA
//!   and a certificate, share both in a Secret, write the CA into the `caBundle` of the webhook
//!   configurations, and rotate everything without an interruption.
//! * [`PemFiles`] reloads two files when they change.
//! * [`SelfSigned`] generates a certificate for this process alone.
//!
//! [`ClientAuthorities`] verifies client certificates, if the server requires them.
//!
//! ```
//! use std::sync::Arc;
//!
//! use rustls::ServerConfig;
//! use rustls::crypto::ring;
//! use webhook_certs::{Certificates, SelfSigned};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let SelfSigned { pair, ca_pem } = SelfSigned::generate(&[], jiff::Timestamp::now())?;
//! let certificates = Arc::new(Certificates::new(pair));
//! let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
//!     .with_safe_default_protocol_versions()?
//!     .with_no_client_auth()
//!     .with_cert_resolver(Arc::clone(&certificates) as _);
//!
//! // Clients have to trust this CA.
//! assert!(ca_pem.starts_with("-----BEGIN CERTIFICATE-----"));
//! assert!(certificates.current().is_some() && certificates.failure().is_none());
//! # drop(config);
//! # Ok(())
//! # }
//! ```
//!
//! This crate opens no port and terminates no TLS. It checks no revocation, requests no
//! certificates from other CAs, and creates no webhook configurations.

mod authority;
mod clients;
mod clock;
mod files;
mod managed;
mod pair;
mod pem;
mod self_signed;

use std::sync::Arc;
use std::time::Instant;

use arc_swap::ArcSwapOption;
use jiff::Timestamp;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use clock::Clocks;

pub use clients::ClientAuthorities;
pub use files::PemFiles;
pub use managed::{Lifetimes, ManagedCertificate, Pace};
pub use pair::{CertError, ServingPair};
pub use self_signed::SelfSigned;

/// The certificate in use. Each handshake uses the current one, and fails if there is none.
#[derive(Debug, Default)]
pub struct Certificates {
    current: ArcSwapOption<ServingPair>,
    failure: ArcSwapOption<String>,
    /// The clocks when the cluster was last asked.
    clocks: ArcSwapOption<(Clocks, Instant)>,
}

impl Certificates {
    /// Starts with this pair.
    pub fn new(pair: ServingPair) -> Self {
        Self { current: ArcSwapOption::from_pointee(pair), ..Self::default() }
    }

    /// The pair that new handshakes use, if there is one.
    pub fn current(&self) -> Option<Arc<ServingPair>> {
        self.current.load_full()
    }

    /// The current fault of the certificate's source, the files or the cluster, as a sentence.
    pub fn failure(&self) -> Option<Arc<String>> {
        self.failure.load_full()
    }

    /// The time by the clock that decides whether the certificate is valid: the API server's for a
    /// managed certificate, otherwise that of this machine, which says `now`.
    pub fn time(&self, now: Timestamp) -> Timestamp {
        let read = self.clocks.load_full();
        read.and_then(|read| read.0.api_server?.checked_add(read.1.elapsed()).ok()).unwrap_or(now)
    }

    /// A sentence about this machine's clock, if it is too wrong to manage certificates.
    pub fn wrong_clock(&self) -> Option<String> {
        let (clocks, _) = *self.clocks.load_full()?;
        Some(format!("{}.", clocks.disagreement()?))
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let current = self.current.load();
        Some(Arc::clone(&current.as_ref()?.certified_key))
    }
}
