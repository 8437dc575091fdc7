//! The files that a check reads in addition to its texts.

use std::path::{Path, PathBuf};

/// The repository that contains the texts. It is read to find the lines from which something was
/// rendered.
pub trait Files: Sync {
    /// The top folder of the repository, with links followed.
    fn top(&self) -> &Path;

    /// The path of `file`, whose links are followed, relative to the top and separated with `/`.
    fn path_of(&self, file: &Path) -> String;

    /// The path with links followed; `None` if there is no such file.
    fn real(&self, file: &Path) -> Option<PathBuf>;

    /// The text of a regular file of at most `most` bytes in `folder`, whose links are followed.
    fn text(&self, folder: &Path, file: &Path, most: u64) -> Option<String>;
}

/// No repository: the texts stand alone.
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
