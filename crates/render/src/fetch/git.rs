//! Folders of Git repositories at one commit, fetched and checked out by git.
//!
//! The cache keeps a bundle (<https://git-scm.com/docs/gitformat-bundle>) of one commit: its name
//! and a pack. Nothing from a repository is run: git reads no configuration, has no hooks and no
//! filters, and follows neither submodules nor redirects.

use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use reqwest::Url;
use tokio::process::Command;

use super::Download;
use super::client::{Client, large, no_url, parsed, slow};
use super::repository::best;
use crate::files::GIT;
use crate::program::command_line::{CommandLine, Field, Word};
use crate::program::run::{Failure, Limits, on_path, output};
use crate::program::sandbox::without_folder;
use crate::reason::Reason;

/// The most bytes of a pack.
pub(super) const MAX_PACK: u64 = 64 << 20;

/// The most bytes and files of a commit.
const MAX_TREE: u64 = 256 << 20;
const MAX_FILES: usize = 50_000;

/// The first line of a bundle.
const HEAD: &str = "# v2 git bundle\n";

/// The settings of every git command, which override those of the machine.
const SETTINGS: [&str; 10] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.attributesFile=/dev/null",
    "core.autocrlf=false",
    "credential.helper=",
    "fetch.unpackLimit=1",
    "fetch.recurseSubmodules=false",
    "gc.auto=0",
    "http.followRedirects=false",
    "protocol.version=2",
];

/// The prefix of a reference that is a range of versions. Git's own names cannot contain a colon.
const TAGS: &str = "tags:";

/// The reference for the newest tag that fits a range of versions.
pub(crate) fn newest_tag(range: &str) -> String {
    format!("{TAGS}{range}")
}

/// Environment variables that configure access to the network.
const PASSED: [&str; 11] = [
    "PATH",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "GIT_SSL_CAINFO",
    "SSH_AUTH_SOCK",
];

/// A temporary repository, which is deleted when this is dropped.
struct Repository {
    git: PathBuf,
    folder: tempfile::TempDir,
    /// The protocol that git may use.
    protocol: String,
    /// The host of the URL and its addresses, in curl's notation.
    resolved: Option<String>,
    limit: Duration,
}

/// Fetches the commit to which the reference points.
pub(super) async fn commit(
    client: &Client,
    url: &str,
    reference: Option<&str>,
) -> Result<Download, Reason> {
    let parsed = parsed(url)?;
    client.allow_repository(&parsed)?;
    // The URL is the parsed one: git would read `https://a\@b/` as the host b.
    let address = Word::new(Field::GitUrl, parsed.as_str()).map_err(|_| no_url(parsed.as_str()))?;
    let failed = |failure: Failure| failed(&parsed, &failure);
    let wanted = reference.unwrap_or("HEAD");
    let resolved = match parsed.port_or_known_default() {
        Some(port) if matches!(parsed.scheme(), "http" | "https") => {
            resolved(&parsed, port, &client.addresses(&parsed).await?)
        }
        _ => None,
    };
    let repository =
        Repository::init(parsed.scheme(), resolved, client.limit).await.map_err(failed)?;
    let wanted: &str = match wanted.strip_prefix(TAGS) {
        Some(range) => &repository.newest_tag(&parsed, &address, range).await?,
        None => wanted,
    };
    let named =
        Word::new(Field::GitReference, wanted).map_err(|_| no_reference(&parsed, wanted))?;
    let commit = match repository.fetch(&address, &named).await {
        Err(_) if repository.is_full() => return Err(large(parsed.as_str(), MAX_PACK)),
        fetched => fetched.map_err(failed)?,
    };
    let pack = repository.pack().map_err(|error| failed(Failure::Copy(error)))?;
    let head = format!("{HEAD}{commit} refs/heads/fetched\n\n");
    let bytes = [head.into_bytes(), pack].concat();
    let is_pinned = wanted == commit || repository.fetched_a_tag();
    let exact = format!("{parsed} at the commit {commit}");
    let described = match (is_pinned, reference) {
        (true, _) => exact,
        (false, Some(name)) => format!("{exact} (the branch {name}, which may move)"),
        (false, None) => format!("{exact} (the default branch, as no ref is given)"),
    };
    Ok(Download { bytes, url: described })
}

/// The host with its current addresses; `None` if the host is itself an address.
fn resolved(url: &Url, port: u16, addresses: &[IpAddr]) -> Option<String> {
    let host = url.domain().filter(|_| !addresses.is_empty())?;
    let shown = |address: &IpAddr| match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    };
    let addresses: Vec<String> = addresses.iter().map(shown).collect();
    Some(format!("{host}:{port}:{}", addresses.join(",")))
}

/// Checks out the files of a bundle into `folder`, which must not exist.
pub(super) async fn lay_out(bundle: &Path, folder: &Path, limit: Duration) -> Result<(), Failure> {
    let content = fs::read(bundle).map_err(Failure::Copy)?;
    let (commit, pack) = opened(&content).ok_or_else(|| broken("it is not a one-commit bundle"))?;
    let repository = Repository::init("none", None, limit).await?;
    let packs = repository.folder.path().join("objects/pack");
    fs::create_dir_all(&packs)
        .and_then(|()| fs::write(packs.join("pack-fetched.pack"), pack))
        .map_err(Failure::Copy)?;
    let index = CommandLine::git("index-pack objects/pack/pack-fetched.pack");
    repository.git(&index).await?;
    let commit =
        Word::new(Field::GitReference, commit).map_err(|_| broken("its commit has no name"))?;
    let list = CommandLine::git("ls-tree -r -l").word(&commit);
    let listed = repository.git(&list).await?;
    let size = |line: &str| line.split_whitespace().nth(3)?.parse::<u64>().ok();
    let bytes: u64 = listed.lines().filter_map(size).sum();
    if bytes > MAX_TREE || listed.lines().count() > MAX_FILES {
        let most = MAX_TREE >> 20;
        let problem = format!("it holds more than {most} MiB or {MAX_FILES} files");
        return Err(broken(&problem));
    }
    fs::create_dir_all(folder).map_err(Failure::Copy)?;
    let read = CommandLine::git("read-tree").word(&commit);
    repository.git(&read).await?;
    let mut checkout = CommandLine::git("--no-pager");
    checkout.option("--work-tree", folder);
    for word in ["checkout-index", "--all", "--quiet"] {
        checkout.flag(word);
    }
    repository.git(&checkout).await?;
    // The search for the top of a repository stops at this file.
    fs::write(folder.join(GIT), "").map_err(Failure::Copy)
}

fn broken(complaint: &str) -> Failure {
    Failure::Refused { program: "git".to_owned(), complaint: complaint.to_owned() }
}

/// The commit and the pack of a bundle.
fn opened(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let rest = bytes.strip_prefix(HEAD.as_bytes())?;
    let end = rest.windows(2).position(|pair| pair == b"\n\n")?;
    let line = std::str::from_utf8(&rest[..end]).ok()?;
    let (commit, _) = line.split_once(' ')?;
    let is_name = commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    (is_name && commit.len() >= 40).then_some((commit, &rest[end + 2..]))
}

fn failed(url: &Url, failure: &Failure) -> Reason {
    match failure {
        Failure::Slow { limit, .. } => slow(url.as_str(), *limit),
        failure => format!("{url} cannot be fetched: {failure}").into(),
    }
}

fn no_reference(url: &Url, name: &str) -> Reason {
    format!("{url} has no commit, tag or branch named {name}").into()
}

impl Repository {
    /// An empty repository.
    async fn init(
        protocol: &str,
        resolved: Option<String>,
        limit: Duration,
    ) -> Result<Self, Failure> {
        let missing = || Failure::Other("git cannot be started: entity not found".to_owned());
        let repository = Self {
            git: on_path("git").ok_or_else(missing)?,
            folder: tempfile::tempdir().map_err(Failure::Copy)?,
            protocol: protocol.to_owned(),
            resolved,
            limit,
        };
        let init = CommandLine::git("init --quiet --bare --template=");
        repository.git(&init).await?;
        Ok(repository)
    }

    async fn git(&self, line: &CommandLine) -> Result<String, Failure> {
        let folder = self.folder.path();
        let mut command = Command::new(&self.git);
        command.current_dir(folder).env_clear();
        for name in PASSED {
            command.envs(std::env::var_os(name).map(|value| (name, value)));
        }
        command
            .env("HOME", folder)
            .env("LC_ALL", "C")
            .env("GIT_DIR", folder)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_ALLOW_PROTOCOL", &self.protocol)
            .env(
                "GIT_SSH_COMMAND",
                "ssh -oBatchMode=yes -oStrictHostKeyChecking=yes -oClearAllForwardings=yes",
            );
        if let Some(resolved) = &self.resolved {
            // Git connects to the addresses that were checked.
            command
                .env("GIT_CONFIG_COUNT", "1")
                .env("GIT_CONFIG_KEY_0", "http.curloptResolve")
                .env("GIT_CONFIG_VALUE_0", resolved);
        }
        for setting in SETTINGS {
            command.args(["-c", setting]);
        }
        command.args(line.arguments());
        let limits = Limits { time: self.limit, file: MAX_PACK };
        output(command, "git", limits).await.map_err(|failure| match failure {
            Failure::Refused { program, complaint } => {
                Failure::Refused { program, complaint: without_folder(&complaint, folder) }
            }
            failure => failure,
        })
    }

    /// Fetches the reference and returns the name of its commit.
    async fn fetch(&self, address: &Word, reference: &Word) -> Result<String, Failure> {
        let options = "fetch --quiet --depth=1 --no-tags --no-recurse-submodules";
        let fetch = CommandLine::git(options).word(address).word(reference);
        self.git(&fetch).await?;
        let parse = CommandLine::git("rev-parse --verify FETCH_HEAD^{commit}");
        let commit = self.git(&parse).await?;
        Ok(commit.trim().to_owned())
    }

    /// Whether the fetched reference is a tag, which does not move.
    fn fetched_a_tag(&self) -> bool {
        fs::read_to_string(self.folder.path().join("FETCH_HEAD"))
            .is_ok_and(|fetched| fetched.contains("\ttag '"))
    }

    /// The newest tag in the repository at the URL that fits the range.
    async fn newest_tag(&self, url: &Url, address: &Word, range: &str) -> Result<String, Reason> {
        let list = CommandLine::git("ls-remote --tags --refs").word(address);
        let listed = self.git(&list).await.map_err(|failure| failed(url, &failure))?;
        let tags: Vec<&str> = listed
            .lines()
            .filter_map(|line| line.split_once("\trefs/tags/"))
            .map(|(_, tag)| tag)
            .collect();
        let tag = best(tags.iter().copied(), range)?
            .and_then(|at| tags.get(at))
            .ok_or_else(|| no_reference(url, &newest_tag(range)))?;
        Ok(format!("refs/tags/{tag}"))
    }

    /// The only fetched pack.
    fn pack(&self) -> io::Result<Vec<u8>> {
        let pack = self.files().find(|file| file.extension().is_some_and(|end| end == "pack"));
        fs::read(pack.ok_or_else(|| io::Error::other("git fetched no pack"))?)
    }

    /// Whether git was stopped because a pack is too large.
    fn is_full(&self) -> bool {
        self.files()
            .filter_map(|file| file.metadata().ok())
            .any(|metadata| metadata.len() >= MAX_PACK)
    }

    fn files(&self) -> impl Iterator<Item = PathBuf> {
        let packs = fs::read_dir(self.folder.path().join("objects/pack"));
        packs.into_iter().flatten().flatten().map(|entry| entry.path())
    }
}
