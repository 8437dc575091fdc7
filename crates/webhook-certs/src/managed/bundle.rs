//! The `caBundle` of a webhook: the CAs that the API server trusts there.

use std::collections::HashSet;

use jiff::Timestamp;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer;

use crate::pair::ServingPair;
use crate::pem;

/// The largest number of CAs that are kept next to the current one, so that a bundle cannot grow
/// forever.
const MAX_OTHERS: usize = 16;

/// CA certificates, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Bundle(Vec<CertificateDer<'static>>);

impl Bundle {
    /// Reads the certificates in `pem`. The API server ignores everything else, too.
    pub(super) fn read(pem: &[u8]) -> Self {
        Self(CertificateDer::pem_slice_iter(pem).flatten().collect())
    }

    /// The value for the API server.
    pub(super) fn pem(&self) -> String {
        pem::certificates(&self.0)
    }

    /// Whether a client that trusts these CAs accepts `pair`.
    pub(super) fn accepts(&self, pair: &ServingPair) -> bool {
        pair.is_accepted(&self.0)
    }

    /// The bundle with `authority` first; with `others`, also the CAs of this bundle that have not
    /// expired at `now`.
    pub(super) fn led_by(
        &self,
        authority: &CertificateDer<'static>,
        others: bool,
        now: Timestamp,
    ) -> Self {
        let kept = self
            .0
            .iter()
            .filter(|other| others && *other != authority && has_not_expired(other, now))
            .take(MAX_OTHERS);
        Self([authority].into_iter().chain(kept).cloned().collect())
    }

    /// Whether both bundles contain the same CAs.
    pub(super) fn is(&self, other: &Self) -> bool {
        let [own, others] = [self, other].map(|bundle| bundle.0.iter().collect::<HashSet<_>>());
        own == others
    }
}

fn has_not_expired(certificate: &CertificateDer<'_>, now: Timestamp) -> bool {
    X509Certificate::from_der(certificate)
        .is_ok_and(|(_, parsed)| parsed.validity().not_after.timestamp() >= now.as_second())
}
