//! The policy file on disk, read again when it changes.

use std::convert::Infallible;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;

use engine::policy::{Policy, PolicyError};
use engine::storage::{Catalog, CatalogError, OverrideError};
use engine::verdict::EffectivePolicy;
use files::{FilePoller, ReadError};

/// Why there is no policy from a file.
#[derive(Debug, thiserror::Error)]
pub enum PolicyFileError {
    /// The file cannot be read.
    #[error("The policy file {} cannot be read: {source}. Check --config.", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the operating system says.
        source: io::Error,
    },
    /// The file is not a good policy; the error has its name and the place.
    #[error(transparent)]
    Invalid(#[from] PolicyError),
    /// The policy's provisioners do not fit into the catalog.
    #[error("{}: {source}", path.display())]
    Provisioners {
        /// The file.
        path: PathBuf,
        /// What does not fit.
        source: OverrideError,
    },
    /// The catalog inside the program is damaged.
    #[error(
        "The storage catalog inside this program cannot be read: {0}. This is a bug; please report it."
    )]
    Catalog(&'static CatalogError),
}

/// The policy of a file as it is now, or the built-in one.
///
/// # Errors
///
/// As [`PolicyFile::open`].
pub fn effective(config: Option<&Path>) -> Result<EffectivePolicy, PolicyFileError> {
    match config {
        Some(path) => PolicyFile::open(path.to_owned()).map(|(_, effective)| effective),
        None => {
            let catalog = Catalog::embedded().map_err(PolicyFileError::Catalog)?;
            with_catalog(Policy::default(), catalog, Path::new("the built-in policy"))
        }
    }
}

/// The policy of the overlay `warn-only`.
const WARN_ONLY: &str =
    "defaults:\n  outcomes: {data-loss: warn, deadlock: warn, stuck: warn, refused: warn}\n";

/// The policy while a file that was asked for has never been good: nobody knows what it would
/// allow, so nothing is refused.
///
/// # Errors
///
/// The catalog inside the program is damaged.
pub fn warn_only() -> Result<EffectivePolicy, PolicyFileError> {
    let catalog = Catalog::embedded().map_err(PolicyFileError::Catalog)?;
    let path = Path::new("the policy that only warns");
    with_catalog(parse(path, WARN_ONLY.as_bytes())?, catalog, path)
}

/// The file named with `--config`.
#[derive(Debug)]
pub struct PolicyFile {
    path: PathBuf,
    catalog: &'static Catalog,
    files: FilePoller<1>,
}

impl PolicyFile {
    /// Reads the policy as it is now, and puts it together with the catalog.
    ///
    /// # Errors
    ///
    /// The file cannot be read or is not a good policy.
    pub fn open(path: PathBuf) -> Result<(Self, EffectivePolicy), PolicyFileError> {
        let (file, effective) = Self::open_any(path)?;
        Ok((file, effective?))
    }

    /// The same where what is there now may be unusable: beside the file stands the policy,
    /// or why there is none.
    ///
    /// # Errors
    ///
    /// The catalog inside the program is damaged.
    pub fn open_any(
        path: PathBuf,
    ) -> Result<(Self, Result<EffectivePolicy, PolicyFileError>), PolicyFileError> {
        let catalog = Catalog::embedded().map_err(PolicyFileError::Catalog)?;
        let (files, read) = match FilePoller::open([path.clone()]) {
            Ok((files, [content])) => (files, Ok(content)),
            Err(error) => (
                FilePoller::unread([path.clone()], &error),
                Err(error.into()),
            ),
        };
        let effective =
            read.and_then(|content| with_catalog(parse(&path, &content)?, catalog, &path));
        let file = Self {
            path,
            catalog,
            files,
        };
        Ok((file, effective))
    }

    /// Follows the file forever, looking once `every` so often, and puts each
    /// good change into `effective`, which stays as it is when a change is
    /// not good. `attempted` hears of both.
    pub async fn follow(
        mut self,
        every: Duration,
        effective: &ArcSwap<EffectivePolicy>,
        mut attempted: impl FnMut(Result<&EffectivePolicy, &PolicyFileError>),
    ) -> Infallible {
        loop {
            let changed = self.files.changed(every).await;
            match self.judge(changed) {
                Ok(changed) => {
                    tracing::info!(file = %self.path.display(), "The policy changed; the new one is in use.");
                    let changed = Arc::new(changed);
                    effective.store(Arc::clone(&changed));
                    attempted(Ok(&changed));
                }
                Err(error) => {
                    tracing::error!(%error, "The policy in use stays.");
                    attempted(Err(&error));
                }
            }
        }
    }

    fn judge(
        &self,
        changed: Result<[Vec<u8>; 1], ReadError>,
    ) -> Result<EffectivePolicy, PolicyFileError> {
        let [content] = changed?;
        with_catalog(parse(&self.path, &content)?, self.catalog, &self.path)
    }
}

impl From<ReadError> for PolicyFileError {
    fn from(ReadError { path, source }: ReadError) -> Self {
        Self::Read { path, source }
    }
}

fn with_catalog(
    policy: Policy,
    catalog: &Catalog,
    path: &Path,
) -> Result<EffectivePolicy, PolicyFileError> {
    EffectivePolicy::new(policy, catalog).map_err(|source| PolicyFileError::Provisioners {
        path: path.to_owned(),
        source,
    })
}

fn parse(path: &Path, content: &[u8]) -> Result<Policy, PolicyFileError> {
    Ok(Policy::parse_bytes(content, &path.display().to_string())?)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use tempfile::TempDir;
    use tokio::sync::mpsc;
    use tokio::time::timeout;

    use super::*;
    use engine::policy::Nodes;

    const NEVER: &str = "nodes: never\n";
    const ALWAYS: &str = "nodes: always\n";
    const BAD: &str = "nodes: sometimes\n";

    /// A mounted ConfigMap: the file is a symlink into `..data`, which is a
    /// symlink to the directory of one version.
    struct Mount {
        directory: TempDir,
        version: usize,
    }

    impl Mount {
        fn new(content: &str) -> Self {
            let mut mount = Self {
                directory: tempfile::tempdir().unwrap(),
                version: 0,
            };
            mount.swap(content);
            symlink("..data/policy.yaml", mount.file()).unwrap();
            mount
        }

        fn file(&self) -> PathBuf {
            self.directory.path().join("policy.yaml")
        }

        /// Puts new content in place as the kubelet does, and removes the old version.
        fn swap(&mut self, content: &str) {
            let at = |name: &str| self.directory.path().join(name);
            let old = at(&format!("..{}", self.version));
            let new = format!("..{}", self.version + 1);
            fs::create_dir(at(&new)).unwrap();
            fs::write(at(&new).join("policy.yaml"), content).unwrap();
            symlink(&new, at("..data_tmp")).unwrap();
            fs::rename(at("..data_tmp"), at("..data")).unwrap();
            if old.exists() {
                fs::remove_dir_all(old).unwrap();
            }
            self.version += 1;
        }
    }

    fn nodes(effective: &EffectivePolicy) -> Nodes {
        effective.policy().nodes()
    }

    #[tokio::test]
    async fn good_bad_and_good_again_through_symlink_swaps() {
        let mut mount = Mount::new(NEVER);
        let (file, effective) = PolicyFile::open(mount.file()).unwrap();
        let effective = ArcSwap::from_pointee(effective);
        let (heard, mut attempts) = mpsc::unbounded_channel();
        let follow = file.follow(Duration::from_millis(1), &effective, |attempt| {
            let attempt = attempt.map(nodes).map_err(ToString::to_string);
            heard.send(attempt).unwrap();
        });

        let scenario = async {
            assert_eq!(nodes(&effective.load()), Nodes::Never);

            mount.swap(BAD);
            let refused = attempts.recv().await.unwrap().unwrap_err();
            assert!(
                refused.ends_with("policy.yaml:1:8: \"sometimes\" is not known here; known are auto, always and never"),
                "{refused}"
            );
            assert_eq!(nodes(&effective.load()), Nodes::Never);

            mount.swap(ALWAYS);
            assert_eq!(attempts.recv().await.unwrap(), Ok(Nodes::Always));
            assert_eq!(nodes(&effective.load()), Nodes::Always);

            fs::remove_file(mount.file()).unwrap();
            let gone = attempts.recv().await.unwrap().unwrap_err();
            assert!(gone.contains("cannot be read"), "{gone}");
            assert_eq!(nodes(&effective.load()), Nodes::Always);

            let fifo = std::process::Command::new("mkfifo")
                .arg(mount.file())
                .status();
            assert!(fifo.unwrap().success());
            let refused = attempts.recv().await.unwrap().unwrap_err();
            assert!(refused.contains("it is not a regular file"), "{refused}");

            fs::remove_file(mount.file()).unwrap();
            assert!(attempts.recv().await.unwrap().is_err(), "gone again");
            symlink("..data/policy.yaml", mount.file()).unwrap();
            assert_eq!(attempts.recv().await.unwrap(), Ok(Nodes::Always));
        };
        let both = async {
            tokio::select! {
                never = follow => match never {},
                () = scenario => {}
            }
        };
        timeout(Duration::from_secs(60), both).await.unwrap();
    }

    #[test]
    fn what_only_warns_is_the_policy_of_the_overlay() {
        let map = include_str!("../../../manifests/components/warn-only/policy.yaml");
        let map: serde_json::Value = serde_saphyr::from_str(map).unwrap();
        assert_eq!(map["data"]["policy.yaml"], WARN_ONLY);
        assert!(warn_only().is_ok());
    }

    #[test]
    fn a_file_that_is_no_policy_is_refused_with_a_sentence() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("policy.yaml");
        let shown = path.display().to_string();
        let refusal = || PolicyFile::open(path.clone()).unwrap_err().to_string();

        let expected = format!(
            "The policy file {shown} cannot be read: No such file or directory (os error 2). Check --config."
        );
        assert_eq!(refusal(), expected);

        fs::write(&path, "#".repeat(1024 * 1024)).unwrap();
        assert!(PolicyFile::open(path.clone()).is_ok());
        fs::write(&path, "#".repeat(1024 * 1024 + 1)).unwrap();
        let expected = format!(
            "The policy file {shown} cannot be read: it is larger than 1048576 bytes. Check --config."
        );
        assert_eq!(refusal(), expected);

        fs::write(&path, b"nodes: auto\n# caf\xc3\xa9 \xff\n").unwrap();
        let expected = format!("{shown}:2:8: this is not UTF-8 text; save the file as UTF-8");
        assert_eq!(refusal(), expected);
    }
}
