//! Client certificates that the server requires.

use std::convert::Infallible;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::ring;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, UnixTime};

use super::pair::CertError;
use files::FilePoller;

const FLAG: &str = "--client-ca";

/// Accepts clients whose certificate was issued by one of the CAs in a file. Each handshake uses
/// the current CAs.
#[derive(Debug)]
pub struct ClientAuthorities {
    current: ArcSwap<Arc<dyn ClientCertVerifier>>,
}

impl ClientAuthorities {
    /// Reads CAs from the contents of a PEM file; the path is for error messages.
    ///
    /// # Errors
    ///
    /// Fails if there is no usable CA certificate.
    pub fn from_pem(pem: &[u8], path: &Path) -> Result<Self, CertError> {
        Ok(Self { current: ArcSwap::from_pointee(verifier(pem, path)?) })
    }

    /// Reads the CAs in a file. The future that is returned with them checks the file once per
    /// `every`, forever, and replaces the CAs after each valid change; an invalid change is logged
    /// and ignored.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read, or has no usable CA certificate.
    pub fn open(
        path: PathBuf,
        every: Duration,
    ) -> Result<(Arc<Self>, impl Future<Output = Infallible>), CertError> {
        let unreadable = |error| CertError::unreadable(FLAG, &error);
        let (mut file, read) = FilePoller::open([path.clone()]);
        let [pem] = read.map_err(unreadable)?;
        let authorities = Arc::new(Self::from_pem(&pem, &path)?);
        let followed = Arc::clone(&authorities);
        let follow = async move {
            loop {
                let changed = file.changed(every).await.map_err(unreadable);
                match changed.and_then(|[changed_pem]| verifier(&changed_pem, &path)) {
                    Ok(verifier) => {
                        tracing::info!(
                            file = %path.display(),
                            "The client CAs changed; new connections use the new ones."
                        );
                        followed.current.store(Arc::new(verifier));
                    }
                    Err(error) => tracing::error!(%error, "The client CAs are not replaced."),
                }
            }
        };
        Ok((authorities, follow))
    }
}

fn verifier(pem: &[u8], path: &Path) -> Result<Arc<dyn ClientCertVerifier>, CertError> {
    let unusable = |reason: &dyn fmt::Display| {
        let fault = format!(
            "cannot be used: {reason}. It must contain the certificates of the CAs that issue \
             client certificates, in PEM"
        );
        CertError::file(FLAG, path, fault)
    };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate
            .map_err(|error| CertError::file(FLAG, path, format!("is not valid PEM: {error}")))?;
        roots.add(certificate).map_err(|error| unusable(&error))?;
    }
    if roots.is_empty() {
        return Err(unusable(&"it holds no certificate"));
    }
    let provider = Arc::new(ring::default_provider());
    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
        .build()
        .map_err(|error| unusable(&error))
}

impl ClientCertVerifier for ClientAuthorities {
    /// The list is empty because the CAs may change, and a client has only one certificate.
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let current = self.current.load();
        current.verify_client_cert(certificate, intermediates, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let current = self.current.load();
        current.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let current = self.current.load();
        current.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.current.load().supported_verify_schemes()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_without_an_authority_is_refused_with_file_and_flag() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("clients.pem");
        let refuses = |sentence: &str| {
            let opened = ClientAuthorities::open(path.clone(), Duration::ZERO);
            let error = opened.map(|_| ()).unwrap_err().to_string();
            assert!(error.contains("clients.pem given with --client-ca"), "{error}");
            assert!(error.contains(sentence), "{error}");
        };
        let not_der = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        let cases = [
            ("", "cannot be used: it holds no certificate"),
            ("-----BEGIN CERTIFICATE-----\nAAAA", "is not valid PEM"),
            (not_der, "cannot be used: "),
        ];
        for (content, sentence) in cases {
            fs::write(&path, content).unwrap();
            refuses(sentence);
        }
        fs::remove_file(&path).unwrap();
        refuses("--client-ca cannot be read: No such");
    }
}
