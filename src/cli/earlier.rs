//! The earlier report of `--compare`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use report::Earlier;

/// Why an earlier report cannot be compared with.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EarlierError {
    /// The earlier report cannot be read.
    #[error("The earlier report {} given with --compare cannot be read: {source}.", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: io::Error,
    },
    /// The earlier report is something else.
    #[error("The file {} given with --compare is not a report: {source}. Write one with `--format json`.", path.display())]
    NoReport {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: serde_json::Error,
    },
}

/// Reads it.
pub(super) fn read(path: &Path) -> Result<Earlier, EarlierError> {
    let json = fs::read(path).map_err(|source| EarlierError::Read {
        path: path.to_owned(),
        source,
    })?;
    Earlier::parse(&json).map_err(|source| EarlierError::NoReport {
        path: path.to_owned(),
        source,
    })
}
