//! A certificate chain and its private key, checked to belong together.

use std::io;
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

/// Why a certificate and key cannot be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CertError {
    /// A file cannot be read.
    #[error("The file {path} given with {flag} cannot be read: {source}.")]
    Read {
        /// The flag that named the file.
        flag: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file is not PEM, or is cut short.
    #[error("The file {path} given with {flag} is not valid PEM: {source}.")]
    Pem {
        /// The flag that named the file.
        flag: &'static str,
        /// The file.
        path: PathBuf,
        /// What the PEM reader said.
        source: pem::Error,
    },
    /// The certificate file holds no certificate.
    #[error(
        "The file {path} given with --tls-cert holds no certificate. It must contain the server's \
         certificate and then the intermediate certificates, in PEM."
    )]
    NoCertificate {
        /// The file.
        path: PathBuf,
    },
    /// The key file holds no private key.
    #[error(
        "The file {path} given with --tls-key holds no private key. It must hold one in PEM: \
         PKCS #8, PKCS #1 or SEC 1, not encrypted."
    )]
    NoKey {
        /// The file.
        path: PathBuf,
    },
    /// The first certificate cannot be parsed.
    #[error("The first certificate in {path} cannot be read: {reason}.")]
    Certificate {
        /// The file.
        path: PathBuf,
        /// What the parser said.
        reason: String,
    },
    /// The key is of a type or size that cannot be used.
    #[error(
        "The private key in {path} cannot be used: {source}. Use an RSA, ECDSA or Ed25519 key."
    )]
    Key {
        /// The file.
        path: PathBuf,
        /// What the TLS library said.
        source: Error,
    },
    /// The key belongs to another certificate.
    #[error(
        "The private key in {key} does not belong to the first certificate in {certificate}. \
         Give the two files that were issued together."
    )]
    Mismatch {
        /// The file of the certificate.
        certificate: PathBuf,
        /// The file of the key.
        key: PathBuf,
    },
    /// The new certificate has expired, and the old one has not.
    #[error(
        "The certificate in {path} expired at {expired}, so it does not replace the current one. Renew the \
         certificate."
    )]
    Expired {
        /// The file.
        path: PathBuf,
        /// When it expired.
        expired: Timestamp,
    },
    /// The client CAs are not usable.
    #[error(
        "The file {path} given with --client-ca cannot be used: {reason}. It must contain the \
         certificates of the CAs that issue client certificates, in PEM."
    )]
    ClientAuthority {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
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

/// A certificate chain, its private key and its validity period.
#[derive(Debug)]
pub struct ServingPair {
    certified_key: Arc<CertifiedKey>,
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
        let chain = CertificateDer::pem_slice_iter(certificate)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|source| CertError::Pem {
                flag: "--tls-cert",
                path: certificate_path.to_owned(),
                source,
            })?;
        let key = match PrivateKeyDer::from_pem_slice(key) {
            Ok(key) => key,
            Err(pem::Error::NoItemsFound) => {
                let path = key_path.to_owned();
                return Err(CertError::NoKey { path });
            }
            Err(source) => {
                return Err(CertError::Pem {
                    flag: "--tls-key",
                    path: key_path.to_owned(),
                    source,
                });
            }
        };
        Self::new(chain, certificate_path, key, key_path)
    }

    /// A pair from a chain, the server's own certificate first.
    fn new(
        chain: Vec<CertificateDer<'static>>,
        certificate_path: &Path,
        key: PrivateKeyDer<'static>,
        key_path: &Path,
    ) -> Result<Self, CertError> {
        let Some(leaf) = chain.first() else {
            let path = certificate_path.to_owned();
            return Err(CertError::NoCertificate { path });
        };
        let unreadable = |reason| CertError::Certificate {
            path: certificate_path.to_owned(),
            reason,
        };
        let (_, parsed) =
            X509Certificate::from_der(leaf).map_err(|error| unreadable(error.to_string()))?;
        let validity = parsed.validity();
        let not_before = Timestamp::from_second(validity.not_before.timestamp())
            .map_err(|error| unreadable(error.to_string()))?;
        let not_after = Timestamp::from_second(validity.not_after.timestamp())
            .map_err(|error| unreadable(error.to_string()))?;
        let provider = ring::default_provider();
        let certified_key =
            CertifiedKey::from_der(chain, key, &provider).map_err(|error| match error {
                Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => CertError::Mismatch {
                    certificate: certificate_path.to_owned(),
                    key: key_path.to_owned(),
                },
                Error::InvalidCertificate(error) => unreadable(format!("{error:?}")),
                source => CertError::Key {
                    path: key_path.to_owned(),
                    source,
                },
            })?;
        Ok(Self {
            certified_key: Arc::new(certified_key),
            not_before,
            not_after,
        })
    }

    /// When the certificate becomes valid.
    pub fn not_before(&self) -> Timestamp {
        self.not_before
    }

    /// When the certificate expires.
    pub fn not_after(&self) -> Timestamp {
        self.not_after
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

    /// Whether a client that trusts only `roots` accepts the certificate, regardless of its
    /// validity period and names.
    pub(super) fn is_accepted(&self, roots: &RootCertStore) -> bool {
        let since_1970 = self.not_before.as_second().unsigned_abs();
        let within = UnixTime::since_unix_epoch(Duration::from_secs(since_1970));
        let algorithms = ring::default_provider().signature_verification_algorithms;
        self.parsed().is_some_and(|leaf| {
            verify_server_cert_signed_by_trust_anchor(&leaf, roots, &[], within, algorithms.all)
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

    pub(super) fn certified_key(&self) -> &Arc<CertifiedKey> {
        &self.certified_key
    }
}
