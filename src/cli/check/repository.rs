//! The repository a check runs in.

use std::path::{Component, Path, PathBuf};

/// Where the repository is, for paths that build servers understand.
#[derive(Debug)]
pub(super) struct Repository {
    root: PathBuf,
    /// The working directory, without links.
    here: PathBuf,
}

/// The names under which a policy is looked for.
const POLICIES: [&str; 2] = [".multi-attach-guard.yaml", ".multi-attach-guard.yml"];

impl Repository {
    /// The repository of the working directory; without one, the working
    /// directory itself.
    pub(super) fn around_here() -> Self {
        let here = std::env::current_dir().unwrap_or_default();
        // Files are compared with it by their real paths.
        let here = here.canonicalize().unwrap_or(here);
        let root = here
            .ancestors()
            .find(|directory| directory.join(".git").exists())
            .unwrap_or(&here);
        let root = root.to_owned();
        Self { root, here }
    }

    /// The policy for what is checked: the nearest one in the directory of the first
    /// path or above, up to the repository's root. Outside of the repository, only the
    /// path's own directory counts, as anybody may write to those above.
    pub(super) fn policy_for(&self, paths: &[PathBuf]) -> Option<PathBuf> {
        let first = paths.iter().find_map(|path| path.canonicalize().ok());
        let first = first.unwrap_or_else(|| self.here.clone());
        let folder = if first.is_dir() {
            &first
        } else {
            first.parent()?
        };
        let found = folder
            .ancestors()
            .take_while(|it| it.starts_with(&self.root) || *it == folder)
            .flat_map(|it| POLICIES.iter().map(|name| it.join(name)))
            .find(|file| file.exists())?;
        Some(found.strip_prefix(&self.here).unwrap_or(&found).to_owned())
    }

    /// The path of `file`, which is without links, from the repository's root
    /// and with `/` between its parts; outside of the repository, the path as it is.
    pub(super) fn path_of(&self, file: &Path) -> String {
        let path = file.strip_prefix(&self.root).unwrap_or(file);
        let parts: Vec<_> = path
            .components()
            .filter(|part| !matches!(part, Component::RootDir | Component::CurDir))
            .map(|part| part.as_os_str().to_string_lossy())
            .collect();
        parts.join("/")
    }
}
