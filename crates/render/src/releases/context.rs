//! The resources to which releases refer: this repository, and the objects in it.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{Reason, text};
use crate::fetch::{Remote, newest_tag};
use crate::files::{is_inside, normal, text_inside};
use crate::rendering::roots::Places;
use crate::repository::Repository;
use check::{Files as _, Reading};
use manifest::delivery::{Delivery, Role, decoded, document_at};

/// The most bytes of a values file, or of Git's configuration.
const MAX_FILE: u64 = 4 << 20;

/// Everything that a release may refer to.
pub(crate) struct RenderContext<'w> {
    pub(crate) places: Places<'w>,
    /// The texts and the objects in them.
    pub(crate) reading: &'w Reading,
    /// The URLs of this repository.
    pub(crate) remotes: &'w [String],
}

impl<'w> RenderContext<'w> {
    /// The object that a reference in a release names: the one from the source of the release
    /// and in the namespace of the reference (without it, in that of the release), otherwise one in
    /// the namespace, otherwise any. Several candidates from other sources must agree.
    fn find(&self, release: &Delivery, reference: &Value) -> Option<&'w Delivery> {
        let (kind, name) = kind_and_name(reference);
        let namespace = text(reference, &["namespace"]).or(release.reference.namespace.as_deref());
        let is_named = |candidate: &&Delivery| {
            candidate.role != Role::Release
                && *candidate.reference.kind == *kind
                && *candidate.reference.name == *name
        };
        let named = || self.reading.deliveries.iter().filter(is_named);
        let is_there = |candidate: &&Delivery| match (&candidate.reference.namespace, namespace) {
            (Some(there), Some(wanted)) => **there == *wanted,
            _ => true,
        };
        let here = |candidate: &&Delivery| candidate.place.source == release.place.source;
        named()
            .find(|candidate| here(candidate) && is_there(candidate))
            .or_else(|| agreed(named().filter(is_there)))
            .or_else(|| agreed(named()))
    }

    /// The texts, with their keys, of the ConfigMap or Secret that a reference in a release names;
    /// of two with one key, the last one counts.
    ///
    /// # Errors
    /// The content is not known; the error is the start of a sentence.
    pub(super) fn data(
        &self,
        release: &Delivery,
        reference: &Value,
    ) -> Result<Vec<(String, String)>, String> {
        let (kind, name) = kind_and_name(reference);
        let unknown = |why: &str| format!("The {kind} {name}, which {why},");
        let found =
            self.find(release, reference).ok_or_else(|| unknown("is not in this repository"))?;
        let content = self.reading.texts[found.place.source]
            .source
            .text()
            .ok()
            .and_then(|text| document_at(&text, &found.place))
            .ok_or_else(|| unknown("cannot be read"))?;
        if content.get("sops").is_some() {
            return Err(unknown("is encrypted"));
        }
        let of = |field: &str| {
            let entries = content.get(field).and_then(Value::as_object).into_iter().flatten();
            entries.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        };
        let data = of("data").filter_map(|(key, value)| match kind {
            "Secret" => Some((key, decoded(&value)?)),
            _ => Some((key, value)),
        });
        Ok(data.chain(of("stringData")).collect())
    }

    /// The content of the object that a reference in a release names.
    pub(super) fn source(&self, release: &Delivery, reference: &Value) -> Option<&'w Value> {
        self.find(release, reference).map(|delivery| &delivery.document)
    }

    /// The folder, with links followed, at `path` from the top of the repository that a reference
    /// to a GitRepository names. A GitRepository that `flux bootstrap` created need not be in the
    /// repository that it describes.
    ///
    /// # Errors
    /// There is no such folder, or the repository cannot be fetched, or fetching is off.
    pub(super) fn folder_of_source(
        &self,
        release: &Delivery,
        reference: &Value,
        path: &str,
    ) -> Result<PathBuf, Reason> {
        let source = self.source(release, reference).unwrap_or(&Value::Null);
        match text(source, &["spec", "url"]) {
            Some(url) => self.folder_at(url, revision(source).as_deref(), path),
            None => self.folder(path),
        }
    }

    /// Whether the URL is that of this repository. Without a remote, any URL may be.
    pub(super) fn is_here(&self, url: &str) -> bool {
        let url = plain(url);
        let name = |plain: &str| plain.rsplit('/').next().unwrap_or_default().to_owned();
        let host = |plain: &str| plain.split('/').next().unwrap_or_default().to_owned();
        let path = |plain: &str| plain.split_once('/').map(|(_, path)| path.to_owned());
        self.remotes.is_empty()
            || self.remotes.iter().any(|remote| {
                let remote = plain(remote);
                // A fork has the name of its origin, and a mirror has its path.
                path(&remote) == path(&url)
                    || (host(&remote) == host(&url) && name(&remote) == name(&url))
            })
    }

    /// The folder, with links followed, at `path` from the top of this repository.
    ///
    /// # Errors
    /// There is no such folder.
    pub(super) fn folder(&self, path: &str) -> Result<PathBuf, Reason> {
        real_in(self.places.repository.top(), path)
            .filter(|real| real.is_dir())
            .ok_or_else(|| format!("there is no folder {path} in this repository").into())
    }

    /// The top folder of the repository that contains the folder of a chart: this repository, or a
    /// fetched one.
    pub(super) fn top_of<'p>(&'p self, folder: &'p Path) -> &'p Path {
        let repository = self.places.repository;
        match self.places.fetcher.display_name(folder) {
            Some(_) => repository.top_of(folder),
            None => repository.top(),
        }
    }

    /// The folder, with links followed, at `path` from the top of the repository at the URL.
    ///
    /// # Errors
    /// There is no such folder, or the repository cannot be fetched, or fetching is off.
    pub(super) fn folder_at(
        &self,
        url: &str,
        reference: Option<&str>,
        path: &str,
    ) -> Result<PathBuf, Reason> {
        if self.is_here(url) {
            return self.folder(path);
        }
        let remote = Remote::git(url, reference);
        let path = path.trim_start_matches('/');
        self.places.fetcher.folder(&remote, path)
    }

    /// The path of the folder `real` from the top of this repository.
    pub(super) fn path_of(&self, real: &Path) -> String {
        self.places.repository.path_of(real)
    }
}

/// The kind and the name in a reference; each is empty if it is missing.
pub(super) fn kind_and_name(reference: &Value) -> (&str, &str) {
    let field = |name| text(reference, &[name]).unwrap_or_default();
    (field("kind"), field("name"))
}

/// The file at `path` from the top of a repository, and its text.
///
/// # Errors
/// There is no such file, or it cannot be read: the end of a sentence.
pub(super) fn file_in(top: &Path, path: &str) -> Result<(PathBuf, String), String> {
    let real =
        real_in(top, path).ok_or_else(|| format!("there is no file {path} in this repository"))?;
    let text = text_inside(top, &real, MAX_FILE)
        .map_err(|error| format!("{path} cannot be read: {error}"))?;
    Ok((real, text))
}

fn real_in(top: &Path, path: &str) -> Option<PathBuf> {
    let plain = normal(&top.join(path.trim_start_matches('/')));
    let real = plain.starts_with(top).then(|| fs::canonicalize(plain).ok())??;
    is_inside(top, &real).then_some(real)
}

/// The revision that a GitRepository selects.
fn revision(source: &Value) -> Option<String> {
    ["commit", "name", "semver", "tag", "branch"].into_iter().find_map(|field| {
        let value = text(source, &["spec", "ref", field])?;
        Some(match field {
            "semver" => newest_tag(value),
            _ => value.to_owned(),
        })
    })
}

/// The first of them, if all have the same content.
fn agreed<'w>(mut all: impl Iterator<Item = &'w Delivery>) -> Option<&'w Delivery> {
    let first = all.next()?;
    let spec = |delivery: &'w Delivery| delivery.document.get("spec").unwrap_or(&Value::Null);
    let is_data = first.role == Role::Data;
    // Copies of one object in several overlays have the same content. The content of data is not
    // loaded here.
    all.all(|other| !is_data && spec(other) == spec(first)).then_some(first)
}

/// A URL of a Git repository as `host/path`: `git@host:path` and `https://host/path.git` are equal.
fn plain(url: &str) -> String {
    let url = url.trim();
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let end = rest.find('/').unwrap_or(rest.len());
    let host = rest[..end].rfind('@').map_or(0, |at| at + 1);
    // Without a scheme, the first colon separates the host from the path.
    let colons = usize::from(!url.contains("://"));
    let rest = rest[host..].replacen(':', "/", colons);
    let rest = rest.trim_end_matches('/');
    rest.strip_suffix(".git").unwrap_or(rest).to_lowercase()
}

/// The URLs of the remotes in Git's configuration at the top of a repository. The configuration is
/// read as text: no command runs, and no included file is read.
pub(crate) fn remotes(repository: &Repository) -> Vec<String> {
    let git = repository.top().join(".git");
    let folder = match fs::read_to_string(&git) {
        // A work tree names its own folder, which is in that of the repository.
        Ok(text) => {
            let folder =
                repository.top().join(text.strip_prefix("gitdir: ").unwrap_or_default().trim());
            let common = fs::read_to_string(folder.join("commondir")).unwrap_or_default();
            folder.join(common.trim())
        }
        Err(_) => git,
    };
    let config = ::files::read_regular(&folder.join("config"), MAX_FILE).unwrap_or_default();
    let config = String::from_utf8_lossy(&config);
    let mut is_remote = false;
    let mut urls = Vec::new();
    for line in config.lines().map(str::trim) {
        if line.starts_with('[') {
            is_remote = line.starts_with("[remote ");
        } else if is_remote
            && let Some((key, url)) = line.split_once('=')
            && key.trim() == "url"
        {
            urls.push(url.trim().to_owned());
        }
    }
    urls
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn one_repository_has_many_urls() {
        for url in [
            "https://github.com/org/gitops",
            "https://user:token@github.com/org/gitops.git/",
            "git@github.com:org/gitops.git",
            "ssh://git@github.com/Org/GitOps",
        ] {
            assert_eq!(plain(url), "github.com/org/gitops", "{url}");
        }
    }
}
