//! `--fetch`: remote charts, manifests and Git repositories, as files of a cache.
//!
//! Fetching is a separate step before rendering. A host is contacted only if the repository names
//! it or `--fetch-from` allows it; the target of a redirect is a host like any other.

mod address;
mod base;
mod client;
mod credentials;
mod git;
mod oci;
mod repository;

use std::cell::{OnceCell, RefCell};
use std::collections::{HashMap, HashSet};
use std::fmt::{self, Display, Formatter};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use futures_util::stream::{self, StreamExt};
use reqwest::header::HeaderMap;
use tempfile::TempDir;
use tokio::runtime::Builder;
use tokio::time::timeout_at;

use super::files::{is_inside, normal};
use super::reason::{Reason, without_user};
use crate::Say;
use client::{Client, MAX_ANSWER};
use manifest::kustomization::Chart as InflatedChart;
use report::Cause;

/// The most downloads at the same time.
const AT_ONCE: usize = 4;

/// The most downloads of one run.
const MAX_FETCHED: usize = 1_000;

/// The time limit for all downloads, as a multiple of that for one answer.
const TIMES_IN_ALL: u32 = 10;

/// Whether charts are fetched.
#[derive(Args, Clone, Debug)]
pub struct FetchOptions {
    /// Fetch charts and bases that are elsewhere, from the hosts that the manifests name
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

    /// The folder for fetched files [default: multi-attach-guard in the user's cache]
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

/// A remote chart, repository or file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Remote {
    /// A chart in a repository of charts.
    Repository { url: String, name: String, version: String },
    /// A chart in a registry: `oci://registry/path`.
    Oci { url: String, version: String },
    /// A commit of a Git repository, given by its name, a tag or a branch, or by the default branch
    /// if there is no reference.
    Git { url: String, reference: Option<String> },
    /// A manifest.
    File { url: String },
}

pub(super) use git::newest_tag;

/// The most bytes of a file in the cache.
const MAX_CACHED: u64 = git::MAX_PACK + 1024;

impl Remote {
    pub(super) fn url(&self) -> &str {
        match self {
            Self::Repository { url, .. }
            | Self::Oci { url, .. }
            | Self::Git { url, .. }
            | Self::File { url } => url,
        }
    }

    /// A Git repository, by any of its URLs.
    pub(super) fn git(url: &str, reference: Option<&str>) -> Self {
        let url = match base::split(url) {
            Some((scheme, rest)) => format!("{scheme}://{rest}"),
            None => url.to_owned(),
        };
        // `HEAD` is Argo CD's name for the default branch.
        let reference = reference.filter(|name| *name != "HEAD").map(str::to_owned);
        Self::Git { url, reference }
    }

    /// A chart in a repository, which may be a registry. Without a version, it is the newest one.
    pub(super) fn chart(url: &str, name: &str, version: Option<&str>) -> Self {
        if url.starts_with("oci://") {
            return Self::oci(&format!("{}/{name}", url.trim_end_matches('/')), version);
        }
        Self::Repository {
            url: url.to_owned(),
            name: name.to_owned(),
            version: version.unwrap_or("*").to_owned(),
        }
    }

    /// A chart in a registry.
    pub(super) fn oci(url: &str, version: Option<&str>) -> Self {
        Self::Oci { url: url.to_owned(), version: version.unwrap_or("*").to_owned() }
    }

    /// The extension of its file in the cache.
    const fn extension(&self) -> &'static str {
        match self {
            Self::Repository { .. } | Self::Oci { .. } => ".tgz",
            Self::Git { .. } => ".bundle",
            Self::File { .. } => ".yaml",
        }
    }

    /// Its name as a relative path without `..`.
    fn path(&self) -> PathBuf {
        let name = self.to_string();
        let (_, name) = name.split_once("://").unwrap_or(("", &name));
        let name = if cfg!(windows) {
            name.replace(['<', '>', ':', '"', '|', '?', '*'], "_")
        } else {
            name.to_owned()
        };
        name.split('/').filter(|part| !matches!(*part, "" | "." | "..")).collect()
    }
}

/// The name as it is shown in messages.
impl Display for Remote {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Repository { url, name, version } => {
                write!(out, "{}/{name} {version}", url.trim_end_matches('/'))
            }
            Self::Oci { url, version } => write!(out, "{url} {version}"),
            Self::Git { url, reference } => {
                let url = without_user(url);
                write!(out, "{}", url.trim_end_matches(".git"))?;
                match reference {
                    Some(reference) => write!(out, "@{reference}"),
                    None => Ok(()),
                }
            }
            Self::File { url } => write!(out, "{url}"),
        }
    }
}

/// The answer of a host.
struct Download {
    bytes: Vec<u8>,
    /// The URL of the content.
    url: String,
}

/// Fetches each remote resource once.
pub(super) struct Fetcher<'o> {
    options: &'o FetchOptions,
    say: Say,
    /// The file of each resource, or the top folder of a Git repository, with links followed.
    known: RefCell<HashMap<Remote, Result<PathBuf, Reason>>>,
    /// The folder into which repositories are checked out, also with links followed; it is created
    /// on first use, and a failure holds for the whole run.
    laid_out: OnceCell<io::Result<(TempDir, PathBuf)>>,
    /// The time limit for an answer of a host.
    limit: Duration,
    /// The time at which all fetching ends.
    end: Instant,
}

impl<'o> Fetcher<'o> {
    pub(super) fn new(options: &'o FetchOptions, limit: Duration, say: Say) -> Self {
        Self {
            options,
            say,
            known: RefCell::default(),
            laid_out: OnceCell::new(),
            limit,
            end: Instant::now() + limit.saturating_mul(TIMES_IN_ALL),
        }
    }

    /// The folder into which repositories are checked out, with links followed.
    pub(super) fn top(&self) -> Option<&Path> {
        let (_, folder) = self.laid_out.get()?.as_ref().ok()?;
        Some(folder)
    }

    /// The fetched folder `real` as it is shown in messages; `None` for other folders.
    pub(super) fn display_name(&self, real: &Path) -> Option<PathBuf> {
        display_name(self.top()?, real)
    }

    /// The file or folder, with links followed, that kustomize would fetch for the name.
    ///
    /// # Errors
    /// It cannot be fetched, or fetching is off.
    pub(super) fn base(&self, name: &str) -> Result<PathBuf, Reason> {
        if self.options.fetch == Fetch::Never {
            return Err(Reason::elsewhere(name, &format!("it names {name}")));
        }
        match base::read(name) {
            None => {
                let text = format!("it names {name}, which is not read here");
                Err(Reason::of(Cause::Files, &text))
            }
            Some((remote @ Remote::File { .. }, _)) => self.get(&remote),
            Some((remote, path)) => self.folder(&remote, &path),
        }
    }

    /// The packed chart that kustomize would fetch, because its charts folder lacks it.
    ///
    /// # Errors
    /// The chart names no repository, it cannot be fetched, or fetching is off.
    pub(super) fn inflated(&self, chart: &InflatedChart) -> Result<PathBuf, Reason> {
        let (name, url) = (&chart.name, chart.repo.trim_end_matches('/'));
        let missing = format!("it inflates the chart {name:?}, which is not in its charts folder");
        if chart.repo.is_empty() {
            return Err(format!("{missing}; put it there").into());
        }
        if self.options.fetch == Fetch::Never {
            return Err(Reason::elsewhere(url, &missing));
        }
        let version = Some(chart.version.as_str()).filter(|version| !version.is_empty());
        self.get(&Remote::chart(url, name, version))
    }

    /// The folder `path` of a Git repository, with links followed.
    ///
    /// # Errors
    /// There is no such folder, or the repository cannot be fetched.
    pub(super) fn folder(&self, remote: &Remote, path: &str) -> Result<PathBuf, Reason> {
        let top = self.get(remote)?;
        fs::canonicalize(normal(&top.join(path)))
            .ok()
            .filter(|folder| is_inside(&top, folder) && folder.is_dir())
            .ok_or_else(|| format!("{remote} has no folder {path}").into())
    }

    /// The file in the cache as it is, or the top folder of the Git repository in it.
    fn opened(&self, remote: &Remote, file: PathBuf) -> Result<PathBuf, Reason> {
        if !matches!(remote, Remote::Git { .. }) {
            return Ok(file);
        }
        let failed = |error: &dyn Display| Reason::from(format!("{remote}: {error}"));
        let made = self.laid_out.get_or_init(|| {
            let folder = tempfile::tempdir()?;
            let real = fs::canonicalize(folder.path())?;
            Ok((folder, real))
        });
        let (_, top) = made.as_ref().map_err(|error| failed(error))?;
        let folder = top.join(key(remote)).join(remote.path());
        Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| failed(&error))?
            .block_on(git::lay_out(&file, &folder, self.limit))
            .map_err(|error| failed(&error))?;
        fs::canonicalize(folder).map_err(|error| failed(&error))
    }

    /// Fetches the resource if that has not been done. The result is its file, or the top folder of
    /// a Git repository, with links followed.
    ///
    /// # Errors
    /// The resource cannot be fetched, or fetching is off.
    pub(super) fn get(&self, remote: &Remote) -> Result<PathBuf, Reason> {
        self.fetch(vec![remote.clone()]).map_err(|error| error.to_string())?;
        self.file(remote)
            .unwrap_or_else(|| Err(Reason::elsewhere(remote.url(), &format!("it needs {remote}"))))
    }

    /// The result of [`Self::fetch`].
    pub(super) fn file(&self, remote: &Remote) -> Option<Result<PathBuf, Reason>> {
        self.known.borrow().get(remote).cloned()
    }

    /// Fetches the resources that are not known yet, and prints their names.
    ///
    /// # Errors
    /// The cache cannot be used, or no connections can be made.
    pub(super) fn fetch(&self, mut remotes: Vec<Remote>) -> io::Result<()> {
        if self.options.fetch == Fetch::Never {
            return Ok(());
        }
        let mut seen = HashSet::new();
        remotes.retain(|remote| {
            !self.known.borrow().contains_key(remote) && seen.insert(remote.clone())
        });
        let cache = self.cache()?;
        let mut missing = Vec::new();
        for remote in remotes {
            match cached(&cache, &remote) {
                Some(file) => {
                    let opened = self.opened(&remote, file);
                    self.known.borrow_mut().insert(remote, opened);
                }
                None => missing.push(remote),
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        if let Some(reason) = self.exhausted() {
            let refused = missing.into_iter().map(|remote| (remote, Err(reason.clone())));
            self.known.borrow_mut().extend(refused);
            return Ok(());
        }
        let client = Client::new(&self.options.fetch_from, self.limit).map_err(io::Error::other)?;
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let downloads = stream::iter(&missing)
            .map(|remote| self.download(&client, remote))
            .buffered(AT_ONCE)
            .collect();
        let answers: Vec<_> = runtime.block_on(downloads);
        for (remote, answer) in missing.into_iter().zip(answers) {
            let result = match answer {
                Ok(download) => {
                    let file = keep(&cache, &remote, &download.bytes)?;
                    let digest = digest(&download.bytes);
                    let url = without_user(&download.url);
                    (self.say)(&format!("Fetched {url}, {digest}."));
                    self.opened(&remote, file)
                }
                Err(reason) => Err(reason),
            };
            self.known.borrow_mut().insert(remote, result);
        }
        Ok(())
    }

    /// The reason why nothing more is fetched, if there is one.
    fn exhausted(&self) -> Option<Reason> {
        if self.known.borrow().len() >= MAX_FETCHED {
            let most =
                format!("one run fetches at most {MAX_FETCHED} charts, bases and repositories");
            return Some(most.into());
        }
        (Instant::now() >= self.end).then(|| self.out_of_time())
    }

    /// Downloads the resource. One limit applies to all hosts together.
    async fn download(&self, client: &Client, remote: &Remote) -> Result<Download, Reason> {
        let answer = timeout_at(self.end.into(), download(client, remote)).await;
        answer.unwrap_or_else(|_| Err(self.out_of_time()))
    }

    fn out_of_time(&self) -> Reason {
        let all = self.limit.saturating_mul(TIMES_IN_ALL).as_secs();
        format!("all fetching together may take {all} s").into()
    }

    fn cache(&self) -> io::Result<PathBuf> {
        let default = || {
            let path = |name: &str| std::env::var_os(name).map(PathBuf::from);
            path("XDG_CACHE_HOME")
                .filter(|home| home.is_absolute())
                .or_else(|| Some(path("HOME")?.join(".cache")))
                .map(|home| home.join("multi-attach-guard").join("charts"))
        };
        let folder = self
            .options
            .fetch_cache
            .clone()
            .or_else(default)
            .ok_or_else(|| io::Error::other("--fetch needs --fetch-cache DIR here"))?;
        fs::create_dir_all(&folder).and_then(|()| fs::canonicalize(&folder)).map_err(|error| {
            let message = format!("--fetch-cache {}: {error}", folder.display());
            io::Error::new(error.kind(), message)
        })
    }
}

/// The path `real`, which is below the folder `top` of all checkouts, as it is shown in messages.
pub(super) fn display_name(top: &Path, real: &Path) -> Option<PathBuf> {
    let mut parts = real.strip_prefix(top).ok()?.components();
    // The first part is a digest.
    parts.next()?;
    Some(parts.as_path().to_owned())
}

async fn download(client: &Client, remote: &Remote) -> Result<Download, Reason> {
    match remote {
        Remote::Repository { url, name, version } => {
            repository::chart(client, url, name, version).await
        }
        Remote::Oci { url, version } => oci::chart(client, url, version).await,
        Remote::Git { url, reference } => git::commit(client, url, reference.as_deref()).await,
        Remote::File { url } => {
            let named = client::host(url)?;
            let headers = HeaderMap::new();
            let bytes = client.get(url, &named, &headers, MAX_ANSWER).await?;
            let url = url.clone();
            Ok(Download { bytes, url })
        }
    }
}

/// The file of the cache whose content has the digest in its name.
fn cached(cache: &Path, remote: &Remote) -> Option<PathBuf> {
    let start = format!("{}-", key(remote));
    fs::read_dir(cache).ok()?.flatten().map(|entry| entry.path()).find(|file| {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        name.strip_prefix(&start)
            .and_then(|rest| rest.strip_suffix(remote.extension()))
            .is_some_and(|digest| {
                ::files::read_regular(file, MAX_CACHED)
                    .is_ok_and(|bytes| digest_of(&bytes) == *digest)
            })
    })
}

/// Writes the content to the cache, completely or not at all.
fn keep(cache: &Path, remote: &Remote, bytes: &[u8]) -> io::Result<PathBuf> {
    let (key, digest) = (key(remote), digest_of(bytes));
    let file = cache.join(format!("{key}-{digest}{}", remote.extension()));
    let mut new = tempfile::NamedTempFile::new_in(cache)?;
    new.write_all(bytes)?;
    new.persist(&file).map_err(|error| error.error)?;
    Ok(file)
}

/// The start of the file's name in the cache: the digest of everything that identifies the
/// resource.
fn key(remote: &Remote) -> String {
    digest_of(format!("{remote:?}").as_bytes())[..16].to_owned()
}

/// The SHA-256 digest in the notation of registries.
fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", digest_of(bytes))
}

fn digest_of(bytes: &[u8]) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, bytes);
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}
