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
            .unwrap_or(&here);
        // Files are compared with it by their real paths.
        let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
        Self { root }
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
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
