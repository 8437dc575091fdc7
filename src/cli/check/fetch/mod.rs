//! `--fetch`: charts that are elsewhere, as files of a cache.
//!
//! Fetching is a step of its own, before anything is rendered. A host is asked only where the
//! repository names it, or where `--fetch-from` allows it; a redirect is a host like any other.

mod client;
mod credentials;
mod oci;
mod repository;

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use futures_util::stream::{self, StreamExt};
use tokio::runtime::Builder;

use super::reason::Reason;
use crate::cli::output::complain;
use client::{Client, FetchError};

/// The most charts that are fetched at once.
const AT_ONCE: usize = 4;

/// Whether charts are fetched.
#[derive(Args, Clone, Debug)]
pub struct FetchOptions {
    /// Fetch charts that are elsewhere, from the hosts that the manifests name
    #[arg(
        long,
        value_enum,
        value_name = "WHEN",
        num_args = 0..=1,
        require_equals = true,
        default_value_t = Fetch::Never,
        default_missing_value = "auto"
    )]
    pub fetch: Fetch,

    /// The folder that keeps what was fetched [default: multi-attach-guard in the user's cache]
    #[arg(long, value_name = "DIR")]
    pub fetch_cache: Option<PathBuf>,

    /// Fetch only from matching hosts, those of redirects too; may be repeated
    #[arg(long, value_name = "GLOB")]
    pub fetch_from: Vec<String>,
}

/// Whether something is fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Fetch {
    /// Fetch nothing
    Never,
    /// Fetch what can be fetched, and report the rest
    Auto,
    /// Fail if anything cannot be fetched
    Require,
}

/// A chart that is elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Remote {
    /// In a repository of charts.
    Repository {
        url: String,
        name: String,
        version: String,
    },
    /// In a registry: `oci://registry/path`.
    Oci { url: String, version: String },
}

/// What a host answered with.
struct Download {
    bytes: Vec<u8>,
    /// Where it was.
    url: String,
}

/// Fetches each chart once.
pub(super) struct Fetcher<'o> {
    options: &'o FetchOptions,
    known: RefCell<HashMap<Remote, Result<PathBuf, Reason>>>,
    /// How long a host may take for an answer.
    limit: Duration,
}

impl<'o> Fetcher<'o> {
    pub(super) fn new(options: &'o FetchOptions, limit: Duration) -> Self {
        Self {
            options,
            known: RefCell::default(),
            limit,
        }
    }

    /// Whether what cannot be fetched is an error.
    pub(super) fn is_required(&self) -> bool {
        self.options.fetch == Fetch::Require
    }

    /// The packed chart, where it was asked for by [`Self::fetch`].
    pub(super) fn file(&self, remote: &Remote) -> Option<Result<PathBuf, Reason>> {
        self.known.borrow().get(remote).cloned()
    }

    /// Fetches the charts that are not known yet, and says what was fetched.
    ///
    /// # Errors
    /// The cache cannot be used, or there are no sockets.
    pub(super) fn fetch(&self, mut remotes: Vec<Remote>) -> io::Result<()> {
        if self.options.fetch == Fetch::Never {
            return Ok(());
        }
        let mut seen = HashSet::new();
        remotes.retain(|it| !self.known.borrow().contains_key(it) && seen.insert(it.clone()));
        let cache = self.cache()?;
        let mut missing = Vec::new();
        for remote in remotes {
            match cached(&cache, &remote) {
                Some(file) => {
                    self.known.borrow_mut().insert(remote, Ok(file));
                }
                None => missing.push(remote),
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        let client = Client::new(&self.options.fetch_from, self.limit).map_err(io::Error::other)?;
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let answers: Vec<_> = runtime.block_on(
            stream::iter(&missing)
                .map(|remote| download(&client, remote))
                .buffered(AT_ONCE)
                .collect(),
        );
        for (remote, answer) in missing.into_iter().zip(answers) {
            let kept = match answer {
                Ok(download) => {
                    let file = keep(&cache, &remote, &download.bytes)?;
                    let digest = digest(&download.bytes);
                    complain(&format!("Fetched {}, {digest}.", download.url));
                    Ok(file)
                }
                Err(error) => Err(error.to_string().into()),
            };
            self.known.borrow_mut().insert(remote, kept);
        }
        Ok(())
    }

    fn cache(&self) -> io::Result<PathBuf> {
        let default = || {
            let home = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
            let home = home.filter(|it| it.is_absolute()).or_else(|| {
                let home = std::env::var_os("HOME")?;
                Some(PathBuf::from(home).join(".cache"))
            });
            home.map(|home| home.join("multi-attach-guard").join("charts"))
        };
        let folder = self.options.fetch_cache.clone().or_else(default);
        let folder =
            folder.ok_or_else(|| io::Error::other("--fetch needs --fetch-cache DIR here"))?;
        let made = fs::create_dir_all(&folder).and_then(|()| fs::canonicalize(&folder));
        made.map_err(|error| {
            let message = format!("--fetch-cache {}: {error}", folder.display());
            io::Error::new(error.kind(), message)
        })
    }
}

async fn download(client: &Client, remote: &Remote) -> Result<Download, FetchError> {
    match remote {
        Remote::Repository { url, name, version } => {
            repository::chart(client, url, name, version).await
        }
        Remote::Oci { url, version } => oci::chart(client, url, version).await,
    }
}

/// The file of the cache whose content is what its name says.
fn cached(cache: &Path, remote: &Remote) -> Option<PathBuf> {
    let start = format!("{}-", key(remote));
    let entries = fs::read_dir(cache).ok()?.flatten();
    let mut files = entries.map(|entry| entry.path());
    files.find(|file| {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let digest = name
            .strip_prefix(&start)
            .and_then(|it| it.strip_suffix(".tgz"));
        let bytes = || webhook_certs::file_poller::read_regular(file, client::MAX_CHART).ok();
        digest.is_some_and(|it| bytes().is_some_and(|bytes| digest_of(&bytes) == *it))
    })
}

/// Writes the chart into the cache, as a whole or not at all.
fn keep(cache: &Path, remote: &Remote, bytes: &[u8]) -> io::Result<PathBuf> {
    let file = cache.join(format!("{}-{}.tgz", key(remote), digest_of(bytes)));
    let mut new = tempfile::NamedTempFile::new_in(cache)?;
    new.write_all(bytes)?;
    new.persist(&file).map_err(|error| error.error)?;
    Ok(file)
}

/// A name for the chart: the digest of what identifies it.
fn key(remote: &Remote) -> String {
    let text = match remote {
        Remote::Repository { url, name, version } => format!("{url}\n{name}\n{version}"),
        Remote::Oci { url, version } => format!("{url}\n{version}"),
    };
    digest_of(text.as_bytes())[..16].to_owned()
}

/// The SHA-256 digest as registries write it.
fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", digest_of(bytes))
}

fn digest_of(bytes: &[u8]) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, bytes);
    let letters = digest.as_ref().iter().map(|byte| format!("{byte:02x}"));
    letters.collect()
}
