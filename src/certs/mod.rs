//! The certificate the webhook port shows: read from files that may change,
//! or made on the spot. And the certificates that clients must show, if any.

mod clients;
mod files;
mod pair;
mod self_signed;

use std::fmt;
use std::sync::Arc;

use arc_swap::{ArcSwap, ArcSwapOption};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

pub use clients::{ClientAuthorities, ClientAuthorityFile};
pub use files::PemFiles;
pub use pair::{CertError, ServingPair};
pub use self_signed::SelfSigned;

/// The certificate in use. Each handshake takes the one that is current then.
pub struct Certificates {
    current: ArcSwap<ServingPair>,
    failure: ArcSwapOption<String>,
}

impl Certificates {
    /// Starts with this pair.
    pub fn new(pair: ServingPair) -> Self {
        Self {
            current: ArcSwap::from_pointee(pair),
            failure: ArcSwapOption::empty(),
        }
    }

    /// The pair that new handshakes get.
    pub fn current(&self) -> Arc<ServingPair> {
        self.current.load_full()
    }

    /// Why the files as they are now are not in use, if so: the sentence of
    /// the [`CertError`].
    pub fn failure(&self) -> Option<Arc<String>> {
        self.failure.load_full()
    }

    fn replace(&self, pair: ServingPair) {
        self.current.store(Arc::new(pair));
        self.failure.store(None);
    }

    fn refused(&self, error: &CertError) {
        self.failure.store(Some(Arc::new(error.to_string())));
    }
}

impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificates").finish_non_exhaustive()
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(self.current.load().certified_key()))
    }
}
