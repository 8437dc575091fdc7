//! Who may ask: anybody, or clients with a certificate.

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use webhook_certs::{CertError, ClientAuthorities, ClientAuthorityFile};

/// How often the file is compared with what is in use, as for certificates.
const INTERVAL: Duration = Duration::from_secs(2);

/// The CAs that may have signed a client's certificate, and their file.
pub(super) struct Clients {
    file: ClientAuthorityFile,
    authorities: Arc<ClientAuthorities>,
}

impl Clients {
    pub(super) fn open(path: &Path) -> Result<Self, CertError> {
        let (file, authorities) = ClientAuthorityFile::open(path.to_owned())?;
        Ok(Self {
            file,
            authorities: Arc::new(authorities),
        })
    }

    pub(super) fn authorities(&self) -> Arc<ClientAuthorities> {
        Arc::clone(&self.authorities)
    }
}

/// Follows the file forever; without one it only waits.
pub(super) async fn follow(clients: Option<Clients>) -> Infallible {
    match clients {
        Some(Clients { file, authorities }) => file.follow(INTERVAL, &authorities).await,
        None => std::future::pending().await,
    }
}
