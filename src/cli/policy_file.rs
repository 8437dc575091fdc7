//! The policy file on disk, read again when it changes.

use std::convert::Infallible;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::time::{MissedTickBehavior, interval};

use crate::policy::{Policy, PolicyError, PolicyProblem};
use crate::storage::{Catalog, CatalogError, OverrideError};
use crate::verdict::Settings;

/// No policy is larger: a ConfigMap holds 1 MiB at most (Kubernetes
/// documentation, "ConfigMaps"), and `--config /dev/zero` must end.
const MAX_BYTES: u64 = 1024 * 1024;

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
    /// The file is larger than any policy.
    #[error(
        "The policy file {} is larger than {MAX_BYTES} bytes. Check that --config names the policy.",
        path.display()
    )]
    TooLarge {
        /// The file.
        path: PathBuf,
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

/// The settings of a policy file as it is now, or the built-in ones.
///
/// # Errors
///
/// As [`PolicyFile::open`].
pub fn settings(config: Option<&Path>) -> Result<Settings, PolicyFileError> {
    match config {
        Some(path) => PolicyFile::open(path.to_owned()).map(|(_, settings)| settings),
        None => {
            let catalog = Catalog::embedded().map_err(PolicyFileError::Catalog)?;
            with_catalog(Policy::default(), catalog, Path::new("the built-in policy"))
        }
    }
}

/// The file named with `--config`.
#[derive(Debug)]
pub struct PolicyFile {
    path: PathBuf,
    catalog: &'static Catalog,
    judged: Seen,
    last: Seen,
}

/// What a look at the file found.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Seen {
    Content(Vec<u8>),
    /// The error's sentence.
    Unreadable(String),
}

impl PolicyFile {
    /// Reads the policy as it is now, and puts it together with the catalog.
    ///
    /// # Errors
    ///
    /// The file cannot be read or is not a good policy.
    pub fn open(path: PathBuf) -> Result<(Self, Settings), PolicyFileError> {
        let catalog = Catalog::embedded().map_err(PolicyFileError::Catalog)?;
        let content = read(&path)?;
        let settings = with_catalog(parse(&path, &content)?, catalog, &path)?;
        let judged = Seen::Content(content);
        let file = Self {
            path,
            catalog,
            last: judged.clone(),
            judged,
        };
        Ok((file, settings))
    }

    /// Follows the file for ever and puts each good change into `settings`,
    /// which stay as they are when a change is not good. `attempted` hears of
    /// both.
    ///
    /// The content is compared once `every` so often: Kubernetes changes a
    /// mounted ConfigMap by swapping the symlink `..data`, which a watch on
    /// the file itself never sees. A change counts once two looks in a row
    /// agree on it: a file that is being written, or whose old directory goes
    /// while it is opened, would else pass for a short or a missing policy.
    pub async fn follow(
        mut self,
        every: Duration,
        settings: &ArcSwap<Settings>,
        mut attempted: impl FnMut(Result<&Settings, &PolicyFileError>),
    ) -> Infallible {
        let mut ticks = interval(every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            match self.change().await {
                None => {}
                Some(Ok(changed)) => {
                    tracing::info!(file = %self.path.display(), "The policy changed; the new one is in use.");
                    let changed = Arc::new(changed);
                    settings.store(Arc::clone(&changed));
                    attempted(Ok(&changed));
                }
                Some(Err(error)) => {
                    tracing::error!(%error, "The policy in use stays.");
                    attempted(Err(&error));
                }
            }
        }
    }

    /// The policy in the file, if this look and the last one agree on a change.
    async fn change(&mut self) -> Option<Result<Settings, PolicyFileError>> {
        let path = self.path.clone();
        // Only a runtime that shuts down fails to run the read.
        let found = tokio::task::spawn_blocking(move || read(&path))
            .await
            .ok()?;
        let seen = match &found {
            Ok(content) => Seen::Content(content.clone()),
            Err(error) => Seen::Unreadable(error.to_string()),
        };
        let settled = seen == self.last;
        self.last = seen;
        if !settled || self.last == self.judged {
            return None;
        }
        self.judged.clone_from(&self.last);
        let policy = found.and_then(|content| parse(&self.path, &content));
        Some(policy.and_then(|policy| with_catalog(policy, self.catalog, &self.path)))
    }
}

fn with_catalog(
    policy: Policy,
    catalog: &Catalog,
    path: &Path,
) -> Result<Settings, PolicyFileError> {
    Settings::new(policy, catalog).map_err(|source| PolicyFileError::Provisioners {
        path: path.to_owned(),
        source,
    })
}

fn read(path: &Path) -> Result<Vec<u8>, PolicyFileError> {
    let mut content = Vec::new();
    File::open(path)
        .and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut content))
        .map_err(|source| PolicyFileError::Read {
            path: path.to_owned(),
            source,
        })?;
    if content.len() as u64 > MAX_BYTES {
        return Err(PolicyFileError::TooLarge {
            path: path.to_owned(),
        });
    }
    Ok(content)
}

fn parse(path: &Path, content: &[u8]) -> Result<Policy, PolicyFileError> {
    let file = path.display().to_string();
    let text = std::str::from_utf8(content).map_err(|error| {
        let good = content.get(..error.valid_up_to()).unwrap_or_default();
        let good = String::from_utf8_lossy(good);
        let line = good.split('\n').count();
        let before = good.rsplit('\n').next().unwrap_or_default();
        PolicyError {
            file: file.clone(),
            line: line as u64,
            column: before.chars().count() as u64 + 1,
            problem: PolicyProblem::NotText,
        }
    })?;
    Ok(Policy::parse(text, &file)?)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use tempfile::TempDir;
    use tokio::sync::mpsc;
    use tokio::time::timeout;

    use super::*;
    use crate::policy::Nodes;

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

    fn nodes(settings: &Settings) -> Nodes {
        settings.policy().nodes()
    }

    #[tokio::test]
    async fn good_bad_and_good_again_through_symlink_swaps() {
        let mut mount = Mount::new(NEVER);
        let (file, settings) = PolicyFile::open(mount.file()).unwrap();
        let settings = ArcSwap::from_pointee(settings);
        let (heard, mut attempts) = mpsc::unbounded_channel();
        let follow = file.follow(Duration::from_millis(1), &settings, |attempt| {
            let attempt = attempt.map(nodes).map_err(ToString::to_string);
            heard.send(attempt).unwrap();
        });

        let scenario = async {
            assert_eq!(nodes(&settings.load()), Nodes::Never);

            mount.swap(BAD);
            let refused = attempts.recv().await.unwrap().unwrap_err();
            assert!(
                refused.ends_with("policy.yaml:1:8: \"sometimes\" is not known here; known are auto, always and never"),
                "{refused}"
            );
            assert_eq!(nodes(&settings.load()), Nodes::Never);

            mount.swap(ALWAYS);
            assert_eq!(attempts.recv().await.unwrap(), Ok(Nodes::Always));
            assert_eq!(nodes(&settings.load()), Nodes::Always);

            fs::remove_file(mount.file()).unwrap();
            let gone = attempts.recv().await.unwrap().unwrap_err();
            assert!(gone.contains("cannot be read"), "{gone}");
            assert_eq!(nodes(&settings.load()), Nodes::Always);

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

    #[tokio::test]
    async fn a_change_is_judged_once_and_only_when_two_looks_agree() {
        let mut mount = Mount::new(NEVER);
        let (mut file, _) = PolicyFile::open(mount.file()).unwrap();
        assert!(file.change().await.is_none(), "nothing changed");

        mount.swap(NEVER);
        assert!(file.change().await.is_none(), "the same content again");

        mount.swap("");
        assert!(file.change().await.is_none(), "not settled");
        mount.swap(ALWAYS);
        assert!(file.change().await.is_none(), "not settled either");
        let changed = file.change().await.unwrap().unwrap();
        assert_eq!(nodes(&changed), Nodes::Always);
        assert!(file.change().await.is_none(), "judged");

        mount.swap(BAD);
        assert!(file.change().await.is_none(), "not settled");
        assert!(matches!(
            file.change().await,
            Some(Err(PolicyFileError::Invalid(_)))
        ));
        assert!(file.change().await.is_none(), "judged");

        fs::remove_file(mount.file()).unwrap();
        assert!(file.change().await.is_none(), "not settled");
        assert!(matches!(
            file.change().await,
            Some(Err(PolicyFileError::Read { .. }))
        ));
        assert!(file.change().await.is_none(), "judged");
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
            "The policy file {shown} is larger than 1048576 bytes. Check that --config names the policy."
        );
        assert_eq!(refusal(), expected);

        fs::write(&path, b"nodes: auto\n# caf\xc3\xa9 \xff\n").unwrap();
        let expected = format!("{shown}:2:8: this is not UTF-8 text; save the file as UTF-8");
        assert_eq!(refusal(), expected);
    }
}
