//! A certificate chain and its private key, checked to belong together.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::ring;
use rustls::server::ParsedCertificate;
use rustls::sign::CertifiedKey;
use rustls::{Error, InconsistentKeys, RootCertStore};
use rustls_pki_types::pem::{self, PemObject};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer;

use files::ReadError;

/// A reason why certificates and keys cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CertError {
    /// A file cannot be used.
    #[error("The file {path} given with {flag} {fault}.")]
    File {
        /// The flag that named the file.
        flag: &'static str,
        /// The file.
        path: PathBuf,
        /// The fault, and the way out.
        fault: String,
    },
    /// A certificate could not be generated.
    #[error("A self-signed certificate for {names} could not be generated: {reason}.")]
    Generate {
        /// The names of the certificate.
        names: String,
        /// The generator's error.
        reason: String,
    },
}

impl CertError {
    pub(super) fn file(flag: &'static str, path: &Path, fault: String) -> Self {
        let path = path.to_owned();
        Self::File { flag, path, fault }
    }

    pub(super) fn unreadable(flag: &'static str, ReadError { path, source }: &ReadError) -> Self {
        Self::file(flag, path, format!("cannot be read: {source}"))
    }
}

/// A certificate chain, its private key and its validity period.
#[derive(Debug)]
pub struct ServingPair {
    pub(super) certified_key: Arc<CertifiedKey>,
    pub(super) authority_not_after: Option<Timestamp>,
    not_before: Timestamp,
    not_after: Timestamp,
}

impl ServingPair {
    /// Reads a pair from the contents of two PEM files; the paths are for error messages.
    pub fn from_pem(
        certificate: &[u8],
        certificate_path: &Path,
        key: &[u8],
        key_path: &Path,
    ) -> Result<Self, CertError> {
        let unusable = |fault| CertError::file("--tls-cert", certificate_path, fault);
        let unusable_key = |fault| CertError::file("--tls-key", key_path, fault);
        let chain = CertificateDer::pem_slice_iter(certificate)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| unusable(format!("is not valid PEM: {error}")))?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| {
            unusable_key(match error {
                pem::Error::NoItemsFound => "holds no private key. It must hold one in PEM: \
                                             PKCS #8, PKCS #1 or SEC 1, not encrypted"
                    .to_owned(),
                error => format!("is not valid PEM: {error}"),
            })
        })?;
        let Some(leaf) = chain.first() else {
            let fault = "holds no certificate. It must contain the server's certificate and then \
                         the intermediate certificates, in PEM";
            return Err(unusable(fault.to_owned()));
        };
        let malformed = |error: &dyn fmt::Display| {
            unusable(format!("begins with a certificate that cannot be read: {error}"))
        };
        let (_, parsed) = X509Certificate::from_der(leaf).map_err(|error| malformed(&error))?;
        let validity = parsed.validity();
        let time = |seconds| Timestamp::from_second(seconds).map_err(|error| malformed(&error));
        let not_before = time(validity.not_before.timestamp())?;
        let not_after = time(validity.not_after.timestamp())?;
        CertifiedKey::from_der(chain, key, &ring::default_provider())
            .map(|certified_key| Self {
                certified_key: Arc::new(certified_key),
                authority_not_after: None,
                not_before,
                not_after,
            })
            .map_err(|error| match error {
                Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => unusable_key(format!(
                    "does not belong to the first certificate in {}. Give the two files that were \
                     issued together",
                    certificate_path.display()
                )),
                Error::InvalidCertificate(_) => malformed(&error),
                error => unusable_key(format!(
                    "cannot be used: {error}. Use an RSA, ECDSA or Ed25519 key"
                )),
            })
    }

    /// The time at which the certificate becomes valid.
    pub fn not_before(&self) -> Timestamp {
        self.not_before
    }

    /// The time at which the certificate expires.
    pub fn not_after(&self) -> Timestamp {
        self.not_after
    }

    /// The time at which the managed CA expires that issued the certificate; `None` for a
    /// certificate from elsewhere.
    pub fn authority_not_after(&self) -> Option<Timestamp> {
        self.authority_not_after
    }

    /// Whether the certificate has expired at `now`.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.not_after < now
    }

    /// Whether the certificate is valid at `now`.
    pub(super) fn is_current(&self, now: Timestamp) -> bool {
        self.not_before <= now && !self.is_expired(now)
    }

    /// Whether `other` has the same certificate.
    pub(super) fn is(&self, other: &Self) -> bool {
        self.certified_key.cert.first() == other.certified_key.cert.first()
    }

    /// Whether a client that trusts only these CAs accepts the certificate, regardless of its
    /// validity period and names.
    pub(super) fn is_accepted(&self, authorities: &[CertificateDer<'static>]) -> bool {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(authorities.iter().cloned());
        let since_1970 = self.not_before.as_second().unsigned_abs();
        let within = UnixTime::since_unix_epoch(Duration::from_secs(since_1970));
        let algorithms = ring::default_provider().signature_verification_algorithms;
        self.parsed().is_some_and(|leaf| {
            verify_server_cert_signed_by_trust_anchor(&leaf, &roots, &[], within, algorithms.all)
                .is_ok()
        })
    }

    /// Whether the certificate is for `name`, a DNS name or an IP address.
    pub(super) fn is_for(&self, name: &str) -> bool {
        match (self.parsed(), ServerName::try_from(name)) {
            (Some(leaf), Ok(name)) => verify_server_name(&leaf, &name).is_ok(),
            _ => false,
        }
    }

    fn parsed(&self) -> Option<ParsedCertificate<'_>> {
        ParsedCertificate::try_from(self.certified_key.cert.first()?).ok()
    }
}
