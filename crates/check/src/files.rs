//! The files that a check reads beside its texts.

use std::path::{Path, PathBuf};

/// The repository around the texts, in which the lines are looked up that something was rendered
/// from.
pub trait Files: Sync {
    /// The top of the repository, without links.
    fn top(&self) -> &Path;

    /// The path of `file`, which is without links, from the top, with `/` between its parts.
    fn path_of(&self, file: &Path) -> String;

    /// The path without links; `None` where there is no such file.
    fn real(&self, file: &Path) -> Option<PathBuf>;

    /// The text of a regular file of at most `most` bytes that lies in `folder`, which is without
    /// links.
    fn text(&self, folder: &Path, file: &Path, most: u64) -> Option<String>;
}

/// The path as messages name it.
pub fn shown(path: &Path) -> String {
    match path.strip_prefix(".") {
        Ok(inner) if !inner.as_os_str().is_empty() => inner.to_string_lossy().into_owned(),
        _ => path.to_string_lossy().into_owned(),
    }
}

/// Texts that stand alone.
#[derive(Clone, Copy, Debug)]
pub struct NoFiles;

impl Files for NoFiles {
    fn top(&self) -> &Path {
        Path::new("")
    }

    fn path_of(&self, file: &Path) -> String {
        file.to_string_lossy().into_owned()
    }

    fn real(&self, _file: &Path) -> Option<PathBuf> {
        None
    }

    fn text(&self, _folder: &Path, _file: &Path, _most: u64) -> Option<String> {
        None
    }
}
