//! The repository in which a check runs.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use super::files::{GIT, is_inside, normal, text_inside};
use super::program::command_line::CommandLine;
use super::program::run::on_path;
use check::Files;

/// The location of the repository, for paths that build servers understand.
pub struct Repository {
    root: PathBuf,
    /// The working directory, with links followed.
    here: PathBuf,
    tracked_and_ignored: OnceLock<Vec<PathBuf>>,
}

/// The file names of a policy.
const POLICIES: [&str; 2] = [".multi-attach-guard.yaml", ".multi-attach-guard.yml"];

impl Repository {
    /// The repository of the working directory, or the working directory itself if it is in none.
    pub fn around_here() -> Self {
        Self::at(&std::env::current_dir().unwrap_or_default())
    }

    /// The same for the folder `here`.
    pub(super) fn at(here: &Path) -> Self {
        // Files are compared with it by their real paths.
        let here = here.canonicalize().unwrap_or_else(|_| here.to_owned());
        let root = with_git(&here).unwrap_or(&here).to_owned();
        Self { root, here, tracked_and_ignored: OnceLock::new() }
    }

    /// The files that Git tracks although they are ignored. Git is asked once.
    pub(super) fn tracked_and_ignored(&self) -> &[PathBuf] {
        self.tracked_and_ignored.get_or_init(|| {
            let git = on_path("git").filter(|_| self.root.join(GIT).exists());
            let listed = git.and_then(|git| {
                // The configuration of a stranger's repository could name a program or a server.
                let line = CommandLine::git(
                    "-c core.fsmonitor=false ls-files --cached --ignored --exclude-standard -z",
                );
                let mut command = Command::new(git);
                command.args(line.arguments()).current_dir(&self.root).stderr(Stdio::null());
                command.env("GIT_ALLOW_PROTOCOL", "none").env("GIT_NO_LAZY_FETCH", "1");
                Some(command.output().ok()?.stdout)
            });
            let listed = listed.unwrap_or_default();
            let names = listed.split(|byte| *byte == 0).filter(|name| !name.is_empty());
            let names = names.filter_map(|name| str::from_utf8(name).ok());
            names.map(|name| self.root.join(name)).collect()
        })
    }

    /// The path `real`, whose links are followed, relative to the working directory if it is below
    /// it.
    pub(super) fn name_of(&self, real: &Path) -> PathBuf {
        match real.strip_prefix(&self.here) {
            Ok(inner) if inner.as_os_str().is_empty() => PathBuf::from("."),
            Ok(inner) => inner.to_owned(),
            Err(_) => real.to_owned(),
        }
    }

    /// The folder outside of which nothing is read for the folder `real`, with links followed: its
    /// repository, or otherwise the working directory or the folder itself.
    pub(super) fn top_of<'p>(&'p self, real: &'p Path) -> &'p Path {
        let is_ours = real.starts_with(&self.root) && self.root.parent().is_some();
        if is_ours {
            return &self.root;
        }
        with_git(real).unwrap_or(real)
    }

    /// The same for a file that is named on the command line. If it is outside the repository, it
    /// may be anywhere.
    pub(super) fn top_for_named(&self, file: &Path) -> PathBuf {
        let is_ours = normal(&self.here.join(file)).starts_with(&self.root);
        if is_ours { &self.root } else { Path::new("/") }.to_owned()
    }

    /// Whether the path is in the repository, and leads out of it through a link.
    pub(super) fn leads_out(&self, path: &Path) -> bool {
        self.root.join(GIT).exists()
            && normal(&self.here.join(path)).starts_with(&self.root)
            && path.canonicalize().is_ok_and(|real| !real.starts_with(&self.root))
    }

    /// The policy for the checked files: the nearest one in the directory of the first path or
    /// above it, up to the repository's root. Outside the repository, only the path's own directory
    /// counts, because anybody may be able to write to the directories above it.
    pub fn policy_for(&self, paths: &[PathBuf]) -> Option<PathBuf> {
        let first = paths
            .iter()
            .find_map(|path| path.canonicalize().ok())
            .unwrap_or_else(|| self.here.clone());
        let folder = if first.is_dir() { &first } else { first.parent()? };
        let found = folder
            .ancestors()
            .take_while(|above| above.starts_with(&self.root) || *above == folder)
            .flat_map(|above| POLICIES.iter().map(|name| above.join(name)))
            .find(|file| file.exists())?;
        Some(found.strip_prefix(&self.here).unwrap_or(&found).to_owned())
    }

    /// Refuses a policy in the repository that is a link out of it.
    ///
    /// # Errors
    /// The policy is such a link.
    pub fn refuse_to_leave(&self, policy: &Path) -> io::Result<()> {
        let top = self.top_for_named(policy);
        match fs::canonicalize(policy) {
            Ok(real) if !is_inside(&top, &real) => {
                Err(io::Error::other("it is a link that leads out of the repository"))
            }
            // A file that cannot be read causes an error when it is read.
            _ => Ok(()),
        }
    }
}

impl Files for Repository {
    fn top(&self) -> &Path {
        &self.root
    }

    /// Outside the repository, this is the path without its root.
    fn path_of(&self, file: &Path) -> String {
        let path = file.strip_prefix(&self.root).unwrap_or(file);
        let parts: Vec<_> = path
            .components()
            .filter(|part| !matches!(part, Component::RootDir | Component::CurDir))
            .map(|part| part.as_os_str().to_string_lossy())
            .collect();
        parts.join("/")
    }

    fn real(&self, file: &Path) -> Option<PathBuf> {
        fs::canonicalize(file).ok()
    }

    fn text(&self, folder: &Path, file: &Path, most: u64) -> Option<String> {
        text_inside(folder, file, most).ok()
    }
}

/// The nearest folder at or above `folder` with a Git repository.
fn with_git(folder: &Path) -> Option<&Path> {
    folder.ancestors().find(|above| above.join(GIT).exists())
}
