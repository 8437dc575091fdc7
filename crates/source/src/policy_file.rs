//! The policy file on disk, read again when it changes.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;

use engine::policy::{Policy, PolicyError};
use engine::storage::{Catalog, CatalogError};
use engine::verdict::EffectivePolicy;
use files::{FilePoller, ReadError};

/// A reason why there is no policy from a file.
#[derive(Debug, thiserror::Error)]
pub enum PolicyFileError {
    /// The file cannot be read.
    #[error("The policy file {} cannot be read: {}. Check --config.", .0.path.display(), .0.source)]
    Read(#[from] ReadError),
    /// The file is not a valid policy; the error names the file and the place.
    #[error(transparent)]
    Invalid(#[from] PolicyError),
    /// The catalog inside the program is damaged.
    #[error(
        "The storage catalog inside this program cannot be read: {0}. This is a bug; please report it."
    )]
    Catalog(&'static CatalogError),
}

/// The current policy of a file, or the built-in one.
///
/// # Errors
///
/// Fails if the file cannot be read or is not a valid policy.
pub fn effective(config: Option<&Path>) -> Result<EffectivePolicy, PolicyFileError> {
    match config {
        Some(path) => PolicyFile::open(path.to_owned()).1,
        None => with_catalog(Policy::default()),
    }
}

/// The policy of the overlay `warn-only`.
const WARN_ONLY: &str =
    "defaults:\n  outcomes: {data-loss: warn, deadlock: warn, stuck: warn, refused: warn}\n";

/// The policy while a requested file has never been valid: its rules are not known, so nothing is
/// refused.
///
/// # Errors
///
/// Fails if the catalog inside the program is damaged.
pub fn warn_only() -> Result<EffectivePolicy, PolicyFileError> {
    with_catalog(Policy::parse(WARN_ONLY, "the policy that only warns")?)
}

/// The file named with `--config`.
pub struct PolicyFile {
    path: PathBuf,
    files: FilePoller<1>,
}

impl PolicyFile {
    /// Reads the current policy, and combines it with the catalog. The second result is the policy,
    /// or the reason why the file has none at the moment.
    pub fn open(path: PathBuf) -> (Self, Result<EffectivePolicy, PolicyFileError>) {
        let (files, read) = FilePoller::open([path.clone()]);
        let effective =
            read.map_err(PolicyFileError::from).and_then(|[content]| parse(&path, &content));
        (Self { path, files }, effective)
    }

    /// Follows the file forever, and checks it once `every` so often. Puts each valid change into
    /// `effective`, which stays unchanged if a change is not valid. Then calls `attempted`, whose
    /// argument says whether the change is valid.
    pub async fn follow(
        mut self,
        every: Duration,
        effective: &ArcSwap<EffectivePolicy>,
        mut attempted: impl FnMut(bool),
    ) -> Infallible {
        loop {
            let changed = self.files.changed(every).await.map_err(PolicyFileError::from);
            match changed.and_then(|[content]| parse(&self.path, &content)) {
                Ok(changed) => {
                    tracing::info!(file = %self.path.display(), "The policy changed; the new one is in use.");
                    effective.store(Arc::new(changed));
                    attempted(true);
                }
                Err(error) => {
                    tracing::error!(%error, "The policy in use stays.");
                    attempted(false);
                }
            }
        }
    }
}

fn parse(path: &Path, content: &[u8]) -> Result<EffectivePolicy, PolicyFileError> {
    with_catalog(Policy::parse(content, &path.display().to_string())?)
}

fn with_catalog(policy: Policy) -> Result<EffectivePolicy, PolicyFileError> {
    let catalog = Catalog::embedded().map_err(PolicyFileError::Catalog)?;
    Ok(EffectivePolicy::new(policy, catalog))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_warns_is_the_policy_of_the_overlay() {
        let text = include_str!("../../../manifests/components/warn-only/policy.yaml");
        let map: serde_json::Value = serde_saphyr::from_str(text).unwrap();
        assert_eq!(map["data"]["policy.yaml"], WARN_ONLY);
        assert!(warn_only().is_ok());
    }

    #[test]
    fn a_file_that_is_no_text_is_refused_with_its_place() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), b"nodes: auto\n# caf\xc3\xa9 \xff\n").unwrap();
        let (_, effective) = PolicyFile::open(file.path().to_owned());
        let refusal = effective.unwrap_err().to_string();
        let expected = ":2:8: this is not UTF-8 text; save the file as UTF-8";
        assert_eq!(refusal, format!("{}{expected}", file.path().display()));
    }
}
