//! Polls files, and reports a change once it is complete.
//!
//! Polling compares the contents: Kubernetes changes a mounted Secret or ConfigMap by swapping
//! the symlink `..data`, which a watch on the files themselves never sees. A change is reported
//! once two polls in a row read the same, so that neither a half-written file nor one of two
//! files counts as a change.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::sleep;

/// The most bytes of a file. A Secret or ConfigMap has at most 1 MiB (Kubernetes documentation,
/// "Secrets"), and reading `/dev/zero` must end.
const MAX_BYTES: u64 = 1024 * 1024;

/// One of the files cannot be read, or is too large.
#[derive(Debug, thiserror::Error)]
#[error("{}: {source}", path.display())]
pub struct ReadError {
    /// The file.
    pub path: PathBuf,
    /// The operating system's error.
    pub source: io::Error,
}

/// `N` files that belong together.
#[derive(Debug)]
pub struct FilePoller<const N: usize> {
    paths: [PathBuf; N],
    /// What was last reported to the caller.
    reported: Poll<N>,
    /// What the last poll read.
    last: Poll<N>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Poll<const N: usize> {
    Contents([Vec<u8>; N]),
    /// The error message.
    Unreadable(String),
}

impl<const N: usize> FilePoller<N> {
    /// Reads the files.
    ///
    /// # Errors
    ///
    /// When one cannot be read, or is larger than 1 MiB.
    pub fn open(paths: [PathBuf; N]) -> Result<(Self, [Vec<u8>; N]), ReadError> {
        let contents = read_all(&paths)?;
        let reported = Poll::Contents(contents.clone());
        let last = reported.clone();
        Ok((
            Self {
                paths,
                reported,
                last,
            },
            contents,
        ))
    }

    /// Waits for the next change, polling once per `every`.
    ///
    /// # Errors
    ///
    /// When the change is that a file can no longer be read.
    pub async fn changed(&mut self, every: Duration) -> Result<[Vec<u8>; N], ReadError> {
        loop {
            if let Some(change) = self.poll().await {
                return change;
            }
            sleep(every).await;
        }
    }

    /// Polls once; the change, if the poll before read the same.
    pub(crate) async fn poll(&mut self) -> Option<Result<[Vec<u8>; N], ReadError>> {
        let paths = self.paths.clone();
        // This fails only if the runtime shuts down.
        let found = spawn_blocking(move || read_all(&paths)).await.ok()?;
        let seen = match &found {
            Ok(contents) => Poll::Contents(contents.clone()),
            Err(error) => Poll::Unreadable(error.to_string()),
        };
        let settled = seen == self.last;
        self.last = seen;
        if !settled || self.last == self.reported {
            return None;
        }
        self.reported.clone_from(&self.last);
        Some(found)
    }
}

fn read_all<const N: usize>(paths: &[PathBuf; N]) -> Result<[Vec<u8>; N], ReadError> {
    let mut contents = [const { Vec::new() }; N];
    for (path, content) in paths.iter().zip(&mut contents) {
        read(path, content).map_err(|source| ReadError {
            path: path.clone(),
            source,
        })?;
    }
    Ok(contents)
}

fn read(path: &Path, content: &mut Vec<u8>) -> io::Result<()> {
    File::open(path)?.take(MAX_BYTES + 1).read_to_end(content)?;
    if content.len() as u64 > MAX_BYTES {
        return Err(io::Error::other(format!(
            "it is larger than {MAX_BYTES} bytes"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[tokio::test]
    async fn a_change_is_reported_once_and_only_when_two_polls_agree() {
        let folder = tempfile::tempdir().unwrap();
        let paths = ["a", "b"].map(|name| folder.path().join(name));
        let write = |a: &str, b: &str| {
            fs::write(&paths[0], a).unwrap();
            fs::write(&paths[1], b).unwrap();
        };
        write("1", "1");
        let (mut files, contents) = FilePoller::open(paths.clone()).unwrap();
        assert_eq!(contents, [b"1", b"1"]);
        assert!(files.poll().await.is_none(), "nothing changed");

        write("2", "1");
        assert!(files.poll().await.is_none(), "not settled");
        write("2", "2");
        assert!(files.poll().await.is_none(), "not settled either");
        assert_eq!(files.poll().await.unwrap().unwrap(), [b"2", b"2"]);
        assert!(files.poll().await.is_none(), "reported");

        write("3", "2");
        assert!(files.poll().await.is_none(), "not settled");
        write("2", "2");
        assert!(files.poll().await.is_none(), "as it was");
        assert!(files.poll().await.is_none(), "nothing changed");

        fs::remove_file(&paths[1]).unwrap();
        assert!(files.poll().await.is_none(), "not settled");
        let gone = files.poll().await.unwrap().unwrap_err();
        assert_eq!(gone.path, paths[1]);
        assert!(files.poll().await.is_none(), "reported");

        write("2", "2");
        assert!(files.poll().await.is_none(), "not settled");
        assert!(files.poll().await.unwrap().is_ok(), "there again");
    }

    #[test]
    fn a_file_without_end_is_refused() {
        let error = FilePoller::open(["/dev/zero".into()]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "/dev/zero: it is larger than 1048576 bytes"
        );
    }
}
