//! A certificate and key in two PEM files, read again when they change.

use std::convert::Infallible;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use tokio::task::spawn_blocking;
use tokio::time::{MissedTickBehavior, interval};

use super::Certificates;
use super::pair::{CertError, ServingPair};

/// No chain or key is larger, and `--tls-cert /dev/zero` must end.
const MAX_BYTES: u64 = 1024 * 1024;

/// The files named with `--tls-cert` and `--tls-key`.
pub struct PemFiles {
    certificate: PathBuf,
    key: PathBuf,
    judged: Seen,
    last: Seen,
}

/// What a look at the two files found.
#[derive(Clone, PartialEq, Eq)]
enum Seen {
    Contents { certificate: Vec<u8>, key: Vec<u8> },
    Unreadable(String),
}

impl PemFiles {
    /// Reads the pair as it is now: `certificate` holds the chain, the
    /// server's own certificate first, and `key` its private key.
    ///
    /// An expired certificate is returned all the same: its owner can say so,
    /// and the next change of the files heals it.
    ///
    /// # Errors
    ///
    /// A file cannot be read, or the two are not a pair that can be served.
    pub async fn open(
        certificate: PathBuf,
        key: PathBuf,
    ) -> Result<(Self, ServingPair), CertError> {
        let contents = (
            read("--tls-cert", &certificate).await?,
            read("--tls-key", &key).await?,
        );
        let pair = ServingPair::from_pem(&contents.0, &certificate, &contents.1, &key)?;
        let judged = Seen::Contents {
            certificate: contents.0,
            key: contents.1,
        };
        let last = judged.clone();
        let files = Self {
            certificate,
            key,
            judged,
            last,
        };
        Ok((files, pair))
    }

    /// Follows the files for ever and puts each good change into
    /// `certificates`, which keep the old pair when a change is not good.
    /// `attempted` hears of both.
    ///
    /// The contents are compared once `every` so often: Kubernetes changes a
    /// mounted Secret by swapping the symlink `..data`, which a watch on the
    /// files themselves never sees. A change counts once two looks in a row
    /// agree on it: between two files that are written one after the other, or
    /// on both sides of a swap, a good pair would else pass for a bad one.
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

    /// The pair in the files, if this look and the last one agree on a change.
    async fn change(&mut self, current: &ServingPair) -> Option<Result<ServingPair, CertError>> {
        let found = self.look().await;
        let seen = match &found {
            Ok((certificate, key)) => Seen::Contents {
                certificate: certificate.clone(),
                key: key.clone(),
            },
            Err(error) => Seen::Unreadable(error.to_string()),
        };
        let settled = seen == self.last;
        self.last = seen;
        if !settled || self.last == self.judged {
            return None;
        }
        self.judged.clone_from(&self.last);
        Some(found.and_then(|(certificate, key)| self.judge(&certificate, &key, current)))
    }

    async fn look(&self) -> Result<(Vec<u8>, Vec<u8>), CertError> {
        Ok((
            read("--tls-cert", &self.certificate).await?,
            read("--tls-key", &self.key).await?,
        ))
    }

    fn judge(
        &self,
        certificate: &[u8],
        key: &[u8],
        current: &ServingPair,
    ) -> Result<ServingPair, CertError> {
        let pair = ServingPair::from_pem(certificate, &self.certificate, key, &self.key)?;
        let now = Timestamp::now();
        if pair.is_expired(now) && !current.is_expired(now) {
            return Err(CertError::Expired {
                path: self.certificate.clone(),
                expired: pair.not_after(),
            });
        }
        Ok(pair)
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
    let path = path.to_owned();
    let unreadable = |path: &Path, source| CertError::Read {
        flag,
        path: path.to_owned(),
        source,
    };
    let opened = path.clone();
    let content = spawn_blocking(move || {
        let mut content = Vec::new();
        File::open(opened)?
            .take(MAX_BYTES + 1)
            .read_to_end(&mut content)?;
        Ok(content)
    })
    .await
    .unwrap_or_else(|stopped| Err(io::Error::other(stopped)))
    .map_err(|source| unreadable(&path, source))?;
    if content.len() as u64 > MAX_BYTES {
        let source = io::Error::other(format!("it is larger than {MAX_BYTES} bytes"));
        return Err(unreadable(&path, source));
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use jiff::ToSpan;
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};
    use tempfile::TempDir;

    use super::*;

    struct Folder(TempDir);

    impl Folder {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn path(&self, file: &str) -> PathBuf {
            self.0.path().join(file)
        }

        fn write(&self, certificate: &str, key: &str) {
            fs::write(self.path("tls.crt"), certificate).unwrap();
            fs::write(self.path("tls.key"), key).unwrap();
        }

        async fn open(&self) -> Result<(PemFiles, ServingPair), CertError> {
            PemFiles::open(self.path("tls.crt"), self.path("tls.key")).await
        }
    }

    /// A certificate that ends in this year, and its key, both in PEM.
    fn issue(last_year: i32) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.not_after = date_time_ymd(last_year, 1, 1);
        (params.self_signed(&key).unwrap().pem(), key.serialize_pem())
    }

    #[tokio::test]
    async fn what_cannot_be_served_is_refused_with_file_and_flag() {
        let folder = Folder::new();
        let (certificate, key) = issue(2999);
        let (_, other_key) = issue(2999);
        let (begin, end) = ("-----BEGIN ", "-----END ");
        let cut = &certificate[..certificate.len() / 2];
        let not_der = format!("{begin}CERTIFICATE-----\nAAAA\n{end}CERTIFICATE-----\n");
        let not_a_key = format!("{begin}PRIVATE KEY-----\nAAAA\n{end}PRIVATE KEY-----\n");
        let cases = [
            (
                "no certificate",
                "",
                &*key,
                "tls.crt given with --tls-cert holds no certificate",
            ),
            (
                "the two swapped",
                &*key,
                &*certificate,
                "tls.key given with --tls-key holds no private key",
            ),
            (
                "a certificate cut short",
                cut,
                &*key,
                "tls.crt given with --tls-cert is not valid PEM",
            ),
            (
                "not a certificate inside",
                &*not_der,
                &*key,
                "The first certificate in",
            ),
            (
                "no key",
                &*certificate,
                "",
                "tls.key given with --tls-key holds no private key",
            ),
            (
                "not a key inside",
                &*certificate,
                &*not_a_key,
                "tls.key cannot be used",
            ),
            (
                "another key",
                &*certificate,
                &*other_key,
                "tls.key does not belong to the first",
            ),
        ];
        for (case, certificate, key, sentence) in cases {
            folder.write(certificate, key);
            let error = folder.open().await.unwrap_err().to_string();
            assert!(error.contains(sentence), "{case}: {error}");
            assert!(error.ends_with('.'), "{case}: {error}");
        }
        fs::remove_file(folder.path("tls.key")).unwrap();
        let error = folder.open().await.unwrap_err().to_string();
        assert!(
            error.contains("tls.key given with --tls-key cannot be read: No such"),
            "{error}"
        );
        folder.write(&" ".repeat(1024 * 1024 + 1), &key);
        let error = folder.open().await.unwrap_err().to_string();
        assert!(error.contains("it is larger than 1048576 bytes"), "{error}");
    }

    #[tokio::test]
    async fn a_change_is_judged_once_and_only_when_two_looks_agree() {
        let folder = Folder::new();
        let (certificate, key) = issue(2999);
        folder.write(&certificate, &key);
        let (mut files, current) = folder.open().await.unwrap();
        assert!(files.change(&current).await.is_none(), "nothing changed");

        let (certificate, key) = issue(2998);
        fs::write(folder.path("tls.crt"), &certificate).unwrap();
        assert!(files.change(&current).await.is_none(), "not settled");
        fs::write(folder.path("tls.key"), &key).unwrap();
        assert!(files.change(&current).await.is_none(), "not settled either");
        let changed = files.change(&current).await.unwrap().unwrap();
        let year = changed.not_after().to_zoned(jiff::tz::TimeZone::UTC).year();
        assert_eq!(year, 2998);
        assert!(files.change(&current).await.is_none(), "judged");
    }

    #[tokio::test]
    async fn an_expired_certificate_never_replaces_one_that_is_good() {
        let folder = Folder::new();
        let (certificate, key) = issue(2999);
        folder.write(&certificate, &key);
        let (mut files, good) = folder.open().await.unwrap();
        let (certificate, key) = issue(2001);
        folder.write(&certificate, &key);
        assert!(files.change(&good).await.is_none(), "not settled");
        let refused = files.change(&good).await.unwrap();
        assert!(
            matches!(refused, Err(CertError::Expired { .. })),
            "{refused:?}"
        );

        let (_, expired) = folder.open().await.unwrap();
        assert!(expired.is_expired(expired.not_after() + 1.second()));
        folder.write(&certificate, &format!("{key}\n"));
        assert!(files.change(&expired).await.is_none(), "not settled");
        assert!(
            files.change(&expired).await.unwrap().is_ok(),
            "no worse than before"
        );
    }
}
