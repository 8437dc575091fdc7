//! A certificate and key in two PEM files, which are reloaded when they change.

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::Certificates;
use super::pair::{CertError, ServingPair};
use ::files::{FilePoller, ReadError};

const CERT: &str = "--tls-cert";

/// The files named with `--tls-cert` and `--tls-key`.
pub struct PemFiles {
    certificate: PathBuf,
    key: PathBuf,
    files: FilePoller<2>,
}

impl PemFiles {
    /// Reads the pair: `certificate` contains the chain, the server's own certificate first, and
    /// `key` its private key.
    ///
    /// An expired certificate is not an error: the caller can report it, and the next change of the
    /// files fixes it.
    ///
    /// # Errors
    ///
    /// Fails if a file cannot be read, or the two are not a usable pair.
    pub fn open(certificate: PathBuf, key: PathBuf) -> Result<(Self, ServingPair), CertError> {
        let (files, read) = FilePoller::open([certificate.clone(), key.clone()]);
        let pem_files = Self { certificate, key, files };
        let pair = pem_files.judge(read, None)?;
        Ok((pem_files, pair))
    }

    /// Checks the files once per `every`, forever, and replaces the pair in `certificates` after
    /// each valid change. `attempted` is called after each change, and learns whether it was valid.
    pub async fn follow(
        mut self,
        every: Duration,
        certificates: Arc<Certificates>,
        attempted: impl Fn(bool),
    ) -> Infallible {
        loop {
            let changed = self.files.changed(every).await;
            let judged = self.judge(changed, certificates.current().as_deref());
            attempted(judged.is_ok());
            match judged {
                Ok(pair) => {
                    tracing::info!(
                        file = %self.certificate.display(),
                        expires = %pair.not_after(),
                        "The certificate changed; new connections use the new one."
                    );
                    certificates.current.store(Some(Arc::new(pair)));
                    certificates.failure.store(None);
                }
                Err(error) => {
                    tracing::error!(%error, "The certificate is not replaced.");
                    certificates.failure.store(Some(Arc::new(error.to_string())));
                }
            }
        }
    }

    fn judge(
        &self,
        changed: Result<[Vec<u8>; 2], ReadError>,
        current: Option<&ServingPair>,
    ) -> Result<ServingPair, CertError> {
        let [chain, key] = changed.map_err(|error| {
            let is_certificate = error.path == self.certificate;
            CertError::unreadable(if is_certificate { CERT } else { "--tls-key" }, &error)
        })?;
        let pair = ServingPair::from_pem(&chain, &self.certificate, &key, &self.key)?;
        let now = Timestamp::now();
        if pair.is_expired(now) && current.is_some_and(|current| !current.is_expired(now)) {
            let fault = format!(
                "holds a certificate that expired at {}, so it does not replace the current one. \
                 Renew the certificate",
                pair.not_after()
            );
            return Err(CertError::file(CERT, &self.certificate, fault));
        }
        Ok(pair)
    }
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

        fn open(&self) -> Result<(PemFiles, ServingPair), CertError> {
            PemFiles::open(self.path("tls.crt"), self.path("tls.key"))
        }
    }

    /// A certificate that ends in this year, and its key, both in PEM.
    fn issue(last_year: i32) -> [String; 2] {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.not_after = date_time_ymd(last_year, 1, 1);
        [params.self_signed(&key).unwrap().pem(), key.serialize_pem()]
    }

    #[test]
    fn what_cannot_be_served_is_refused_with_file_and_flag() {
        let folder = Folder::new();
        let [certificate, key] = issue(2999);
        let [_, other_key] = issue(2999);
        let (begin, end) = ("-----BEGIN ", "-----END ");
        let cut = &certificate[..certificate.len() / 2];
        let not_der = format!("{begin}CERTIFICATE-----\nAAAA\n{end}CERTIFICATE-----\n");
        let not_a_key = format!("{begin}PRIVATE KEY-----\nAAAA\n{end}PRIVATE KEY-----\n");
        let cases = [
            ("", &*key, "tls.crt given with --tls-cert holds no certificate"),
            (&key, &certificate, "tls.key given with --tls-key holds no private key"),
            (cut, &key, "tls.crt given with --tls-cert is not valid PEM"),
            (&not_der, &key, "tls.crt given with --tls-cert begins with a certificate that"),
            (&certificate, "", "tls.key given with --tls-key holds no private key"),
            (&certificate, &not_a_key, "tls.key given with --tls-key cannot be used"),
            (&certificate, &other_key, "tls.key given with --tls-key does not belong"),
        ];
        let refuses = |sentence: &str| {
            let error = folder.open().err().unwrap().to_string();
            assert!(error.contains(sentence), "{sentence}: {error}");
            assert!(error.ends_with('.'), "{error}");
        };
        for (chain, private_key, sentence) in cases {
            folder.write(chain, private_key);
            refuses(sentence);
        }
        fs::remove_file(folder.path("tls.key")).unwrap();
        refuses("tls.key given with --tls-key cannot be read: No such");
        folder.write(&" ".repeat(1024 * 1024 + 1), &key);
        refuses("it is larger than 1048576 bytes");
    }

    #[test]
    fn an_expired_certificate_never_replaces_one_that_is_good() {
        let folder = Folder::new();
        let open_with = |[certificate, key]: &[String; 2]| {
            folder.write(certificate, key);
            folder.open().unwrap()
        };
        let (files, good) = open_with(&issue(2999));
        let old = issue(2001);
        let changed = || Ok(old.clone().map(String::into_bytes));
        let refused = files.judge(changed(), Some(&good)).unwrap_err().to_string();
        assert!(refused.contains("that expired at 2001-01-01"), "{refused}");

        let (reopened, expired) = open_with(&old);
        assert!(expired.is_expired(expired.not_after() + 1.second()));
        assert!(reopened.judge(changed(), Some(&expired)).is_ok(), "no worse than before");
    }
}
