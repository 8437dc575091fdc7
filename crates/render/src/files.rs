//! Files of a repository, which may come from a stranger's pull request.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use ::files::read_regular;

/// Git's own folder, whose configuration contains the token of a pipeline.
pub(super) const GIT: &str = ".git";

/// The most bytes that are read of a `Chart.yaml` or a `kustomization.yaml`.
pub(super) const MAX_ROOT_FILE: u64 = 1 << 20;

/// The text of a regular file of at most `most` bytes in `folder`, whose links are followed. A link
/// is followed if it leads to such a file.
///
/// # Errors
/// The file is outside the folder, cannot be read, is not a regular file, is larger, or is not
/// UTF-8.
pub(super) fn text_inside(folder: &Path, file: &Path, most: u64) -> io::Result<String> {
    let real = fs::canonicalize(file)?;
    if !is_inside(folder, &real) {
        let message = format!("it is a link that leads out of {}", folder.display());
        return Err(io::Error::other(message));
    }
    let bytes = read_regular(&real, most)?;
    String::from_utf8(bytes).map_err(|_| io::Error::other("it is not UTF-8 text"))
}

/// Whether the path `real`, whose links are followed, is in `folder` and not in Git's own.
pub(super) fn is_inside(folder: &Path, real: &Path) -> bool {
    real.strip_prefix(folder).is_ok_and(|inner| inner.iter().all(|part| part != OsStr::new(GIT)))
}

/// The path with each `..` removed together with the part before it, as Go's `path.Clean` does. A
/// `..` at the root of the file system has no effect.
pub(super) fn normal(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}
