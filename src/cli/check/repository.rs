//! The repository a check runs in.

use std::path::{Component, Path, PathBuf};

/// Where the repository is, for paths that build servers understand.
#[derive(Debug)]
pub(super) struct Repository {
    root: PathBuf,
}

impl Repository {
    /// The repository of the working directory; without one, the working
    /// directory itself.
    pub(super) fn around_here() -> Self {
        let here = std::env::current_dir().unwrap_or_default();
        let root = here
            .ancestors()
            .find(|directory| directory.join(".git").exists())
            .unwrap_or(&here)
            .to_owned();
        Self { root }
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// The path of `file` from the repository's root, with `/` between its
    /// parts; outside of the repository, the path as it is.
    pub(super) fn path_of(&self, file: &Path) -> String {
        let relative = || {
            let file = file.canonicalize().ok()?;
            let root = self.root.canonicalize().ok()?;
            Some(file.strip_prefix(root).ok()?.to_owned())
        };
        let path = relative().unwrap_or_else(|| file.to_owned());
        let parts: Vec<_> = path
            .components()
            .filter(|part| !matches!(part, Component::RootDir | Component::CurDir))
            .map(|part| part.as_os_str().to_string_lossy())
            .collect();
        parts.join("/")
    }
}
