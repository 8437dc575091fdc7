//! A certificate and key in two PEM files, read again when they change.

use std::convert::Infallible;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use tokio::fs;
use tokio::time::{MissedTickBehavior, interval};

use super::Certificates;
use super::pair::{CertError, ServingPair};

/// The files named with `--tls-cert` and `--tls-key`.
pub struct PemFiles {
    certificate: PathBuf,
    key: PathBuf,
    seen: Seen,
}

/// What was last found, good or bad, so that each change is judged once.
#[derive(PartialEq, Eq)]
enum Seen {
    Nothing,
    Contents { certificate: Vec<u8>, key: Vec<u8> },
    Unreadable(String),
}

impl PemFiles {
    /// Names the files without reading them: `certificate` holds the chain,
    /// the server's own certificate first, and `key` its private key.
    pub fn new(certificate: PathBuf, key: PathBuf) -> Self {
        Self {
            certificate,
            key,
            seen: Seen::Nothing,
        }
    }

    /// Reads the pair as it is now.
    ///
    /// An expired certificate is returned all the same: its owner can say so,
    /// and the next change of the files heals it.
    pub async fn load(&mut self) -> Result<ServingPair, CertError> {
        let (certificate, key) = self.read().await?;
        let pair = self.parse(&certificate, &key)?;
        self.seen = Seen::Contents { certificate, key };
        Ok(pair)
    }

    /// Follows the files for ever and puts each good change into
    /// `certificates`, which keep the old pair when a change is not good.
    /// `attempted` hears of both.
    ///
    /// The contents are compared once `every` so often: Kubernetes changes a
    /// mounted Secret by swapping the symlink `..data`, which a watch on the
    /// files themselves never sees.
    pub async fn follow(
        mut self,
        every: Duration,
        certificates: &Certificates,
        attempted: impl Fn(Result<&ServingPair, &CertError>),
    ) -> Infallible {
        let mut ticks = interval(every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let Some(change) = self.change(&certificates.current()).await else {
                continue;
            };
            match change {
                Ok(pair) => {
                    tracing::info!(
                        file = %self.certificate.display(),
                        expires = %pair.not_after(),
                        "The certificate changed; new connections get the new one."
                    );
                    attempted(Ok(&pair));
                    certificates.replace(pair);
                }
                Err(error) => {
                    tracing::error!(%error, "The certificate in use stays.");
                    attempted(Err(&error));
                    certificates.refused(&error);
                }
            }
        }
    }

    /// The pair in the files, if they changed since the last look.
    async fn change(&mut self, current: &ServingPair) -> Option<Result<ServingPair, CertError>> {
        let (seen, pair) = match self.read().await {
            Ok((certificate, key)) if self.saw(&certificate, &key) => return None,
            Ok((certificate, key)) => {
                let pair = self.parse(&certificate, &key);
                (Seen::Contents { certificate, key }, pair)
            }
            Err(error) => (Seen::Unreadable(error.to_string()), Err(error)),
        };
        if seen == self.seen {
            return None;
        }
        self.seen = seen;
        let now = Timestamp::now();
        Some(match pair {
            Ok(pair) if pair.is_expired(now) && !current.is_expired(now) => {
                Err(CertError::Expired {
                    path: self.certificate.clone(),
                    expired: pair.not_after(),
                })
            }
            other => other,
        })
    }

    fn saw(&self, certificate: &[u8], key: &[u8]) -> bool {
        matches!(
            &self.seen,
            Seen::Contents { certificate: c, key: k } if c == certificate && k == key
        )
    }

    /// Both files, from one side of a swap: when the certificate changed while
    /// the key was read, both are read again.
    async fn read(&self) -> Result<(Vec<u8>, Vec<u8>), CertError> {
        let mut certificate = read("--tls-cert", &self.certificate).await?;
        loop {
            let key = read("--tls-key", &self.key).await?;
            let again = read("--tls-cert", &self.certificate).await?;
            if again == certificate {
                return Ok((certificate, key));
            }
            certificate = again;
        }
    }

    fn parse(&self, certificate: &[u8], key: &[u8]) -> Result<ServingPair, CertError> {
        ServingPair::from_pem(certificate, &self.certificate, key, &self.key)
    }
}

impl fmt::Debug for PemFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PemFiles")
            .field("certificate", &self.certificate)
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

async fn read(flag: &'static str, path: &Path) -> Result<Vec<u8>, CertError> {
    fs::read(path).await.map_err(|source| CertError::Read {
        flag,
        path: path.to_owned(),
        source,
    })
}
