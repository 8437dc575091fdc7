//! A certificate generated at start, for trying things out.

use std::fmt::Display;
use std::path::Path;

use jiff::{SignedDuration, Timestamp};
use rustls_pki_types::DnsName;

use super::authority::Authority;
use super::pair::{CertError, ServingPair};

/// The validity of the certificate. Each start generates a new one.
const LIFETIME: SignedDuration = SignedDuration::from_hours(365 * 24);

/// A certificate and the CA that issued it. The CA's key is discarded.
pub struct SelfSigned {
    /// The certificate to serve.
    pub pair: ServingPair,
    /// The CA certificate in PEM, which clients must trust.
    pub ca_pem: String,
}

impl SelfSigned {
    /// Generates a certificate for `localhost`, `127.0.0.1`, `::1`, this machine's name and
    /// `names`, each a DNS name or an IP address.
    ///
    /// # Errors
    ///
    /// Fails if one of `names` is neither.
    pub fn generate(names: &[String], now: Timestamp) -> Result<Self, CertError> {
        let mut all: Vec<String> = ["localhost", "127.0.0.1", "::1"].map(String::from).into();
        if let Ok(host) = hostname::get()
            && let Some(host) = host.to_str()
            && DnsName::try_from(host).is_ok()
        {
            all.push(host.to_owned());
        }
        all.extend_from_slice(names);
        all.sort();
        all.dedup();
        let failed = |error: &dyn Display| CertError::Generate {
            names: all.join(", "),
            reason: error.to_string(),
        };
        let authority = Authority::make(now, LIFETIME).map_err(|error| failed(&error))?;
        let leaf = authority.issue(&all, now, LIFETIME).map_err(|error| failed(&error))?;
        // No files are involved, so an error can only be about the names.
        let nowhere = Path::new("");
        let (certificate, key) = (leaf.cert.pem(), leaf.signing_key.serialize_pem());
        let pair = ServingPair::from_pem(certificate.as_bytes(), nowhere, key.as_bytes(), nowhere)
            .map_err(|error| failed(&error))?;
        let ca_pem = authority.certificate_pem();
        Ok(Self { pair, ca_pem })
    }
}
