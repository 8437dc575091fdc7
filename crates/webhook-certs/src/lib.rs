//! The certificate the webhook port shows: managed in a cluster, read from
//! files that may change, or made on the spot. And the certificates that
//! clients must show, if any.

mod authority;
mod clients;
pub mod file_poller;
mod files;
mod managed;
mod pair;
mod pem;
mod self_signed;

use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

pub use clients::{ClientAuthorities, ClientAuthorityFile};
pub use files::PemFiles;
pub use managed::{Lifetimes, ManagedCertificate, ManagedError, Pace, Served};
pub use pair::{CertError, ServingPair};
pub use self_signed::SelfSigned;

/// The certificate in use. Each handshake takes the one that is current then,
/// and fails as long as there is none.
#[derive(Default)]
pub struct Certificates {
    current: ArcSwapOption<ServingPair>,
    failure: ArcSwapOption<String>,
}

impl Certificates {
    /// Starts with this pair.
    pub fn new(pair: ServingPair) -> Self {
        Self {
            current: ArcSwapOption::from_pointee(pair),
            failure: ArcSwapOption::empty(),
        }
    }

    /// The pair that new handshakes get, once there is one.
    pub fn current(&self) -> Option<Arc<ServingPair>> {
        self.current.load_full()
    }

    /// What is wrong with the source of the certificate as it is now, in a
    /// sentence: the files that cannot be used, or the cluster.
    pub fn failure(&self) -> Option<Arc<String>> {
        self.failure.load_full()
    }

    fn replace(&self, pair: Arc<ServingPair>) {
        self.current.store(Some(pair));
    }

    fn fails(&self, error: &impl fmt::Display) {
        self.failure.store(Some(Arc::new(error.to_string())));
    }

    fn is_well(&self) {
        self.failure.store(None);
    }
}

impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificates").finish_non_exhaustive()
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let current = self.current.load();
        Some(Arc::clone(current.as_ref()?.certified_key()))
    }
}
