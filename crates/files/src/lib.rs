//! Files that are read again when they change, but only once they are whole.
//!
//! The contents are polled: Kubernetes changes a mounted Secret or ConfigMap by swapping the
//! symlink `..data`, which a watch on the files themselves never sees. A change counts once two
//! looks in a row agree on it. Otherwise a file that is being written, two files that are written
//! one after the other, or a directory that is removed while it is opened would count as a change
//! that nobody made.

mod replace;

use std::fs::{self, Metadata, OpenOptions};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::sleep;

pub use replace::{ReplaceError, replace};

/// The largest number of bytes that are read from a file. A Secret or ConfigMap holds 1 MiB at most
/// (Kubernetes documentation, "Secrets").
const MAX_BYTES: u64 = 1024 * 1024;

/// One of the files cannot be read, or is too large.
#[derive(Debug, thiserror::Error)]
#[error("{}: {source}", path.display())]
pub struct ReadError {
    /// The file.
    pub path: PathBuf,
    /// The error of the operating system.
    pub source: io::Error,
}

/// `N` files that belong together.
pub struct FilePoller<const N: usize> {
    paths: [PathBuf; N],
    /// The state that the caller knows.
    reported: Look<N>,
    /// The state at the last look.
    last: Look<N>,
}

/// The contents, or the error as a sentence.
type Look<const N: usize> = Result<[Vec<u8>; N], String>;

impl<const N: usize> FilePoller<N> {
    /// Reads the files as they are now. The second result is their contents, or the error if one
    /// cannot be read or is larger than 1 MiB.
    pub fn open(paths: [PathBuf; N]) -> (Self, Result<[Vec<u8>; N], ReadError>) {
        let found = read_all(&paths);
        let reported = seen(&found);
        let poller = Self { paths, last: reported.clone(), reported };
        (poller, found)
    }

    /// Waits for the next change, and looks once `every` so often.
    ///
    /// # Errors
    ///
    /// Fails if the change is that a file can no longer be read.
    pub async fn changed(&mut self, every: Duration) -> Result<[Vec<u8>; N], ReadError> {
        loop {
            if let Some(change) = self.look().await {
                return change;
            }
            sleep(every).await;
        }
    }

    /// Looks once, and returns the change if the previous look found the same.
    async fn look(&mut self) -> Option<Result<[Vec<u8>; N], ReadError>> {
        let paths = self.paths.clone();
        // Only a runtime that shuts down fails to run the read.
        let found = spawn_blocking(move || read_all(&paths)).await.ok()?;
        let seen = seen(&found);
        let settled = seen == self.last;
        self.last = seen;
        if !settled || self.last == self.reported {
            return None;
        }
        self.reported.clone_from(&self.last);
        Some(found)
    }
}

/// The part of a result that shows a change.
fn seen<const N: usize>(found: &Result<[Vec<u8>; N], ReadError>) -> Look<N> {
    found.as_ref().cloned().map_err(ToString::to_string)
}

fn read_all<const N: usize>(paths: &[PathBuf; N]) -> Result<[Vec<u8>; N], ReadError> {
    let mut contents = [const { Vec::new() }; N];
    for (path, content) in paths.iter().zip(&mut contents) {
        *content = read_regular(path, MAX_BYTES)
            .map_err(|source| ReadError { path: path.clone(), source })?;
    }
    Ok(contents)
}

/// The content of a regular file of at most `most` bytes. This never waits: a FIFO, a socket or a
/// device is refused before it is opened or, if it takes the file's place in between, right after.
///
/// # Errors
///
/// Fails if the file cannot be read, is not a regular file, or is larger.
pub fn read_regular(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let check = |metadata: Metadata| match () {
        () if !metadata.is_file() => Err(io::Error::other("it is not a regular file")),
        () if metadata.len() > most => Err(too_large(most)),
        () => Ok(()),
    };
    check(fs::metadata(path)?)?;
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, NONBLOCK);
    let file = options.open(path)?;
    check(file.metadata()?)?;
    let mut content = Vec::new();
    file.take(most + 1).read_to_end(&mut content)?;
    if content.len() as u64 > most {
        return Err(too_large(most));
    }
    Ok(content)
}

/// The flag with which the opening of a FIFO does not wait for a writer.
#[cfg(unix)]
const NONBLOCK: i32 = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();

fn too_large(most: u64) -> io::Error {
    io::Error::other(format!("it is larger than {most} bytes"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[tokio::test]
    async fn a_change_is_reported_once_and_only_when_two_looks_agree() {
        let folder = tempfile::tempdir().unwrap();
        let paths = ["a", "b"].map(|name| folder.path().join(name));
        let write = |a: &str, b: &str| {
            fs::write(&paths[0], a).unwrap();
            fs::write(&paths[1], b).unwrap();
        };
        write("1", "1");
        let (mut files, contents) = FilePoller::open(paths.clone());
        assert_eq!(contents.unwrap(), [b"1", b"1"]);
        assert!(files.look().await.is_none(), "nothing changed");

        write("2", "1");
        assert!(files.look().await.is_none(), "not settled");
        write("2", "2");
        assert!(files.look().await.is_none(), "not settled either");
        assert_eq!(files.look().await.unwrap().unwrap(), [b"2", b"2"]);
        assert!(files.look().await.is_none(), "reported");

        write("3", "2");
        assert!(files.look().await.is_none(), "not settled");
        write("2", "2");
        assert!(files.look().await.is_none(), "as it was");
        assert!(files.look().await.is_none(), "nothing changed");

        fs::remove_file(&paths[1]).unwrap();
        assert!(files.look().await.is_none(), "not settled");
        let gone = files.look().await.unwrap().unwrap_err();
        assert_eq!(gone.path, paths[1]);
        assert!(files.look().await.is_none(), "reported");

        write("2", "2");
        assert!(files.look().await.is_none(), "not settled");
        assert!(files.look().await.unwrap().is_ok(), "there again");
    }

    #[cfg(unix)]
    #[test]
    fn what_is_not_a_regular_file_is_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        let made = std::process::Command::new("mkfifo").arg(&fifo).status();
        assert!(made.unwrap().success());
        let large = folder.path().join("large");
        let sparse = fs::File::create(&large).unwrap();
        sparse.set_len(5 << 30).unwrap();
        for (path, why) in [
            (Path::new("/dev/zero"), "it is not a regular file"),
            (&fifo, "it is not a regular file"),
            (folder.path(), "it is not a regular file"),
            (&large, "it is larger than 1048576 bytes"),
        ] {
            let error = FilePoller::open([path.to_owned()]).1.unwrap_err();
            assert_eq!(error.to_string(), format!("{}: {why}", path.display()));
        }
    }

    /// A look that waited for the FIFO would never end.
    #[cfg(unix)]
    #[tokio::test]
    async fn a_fifo_in_the_place_of_a_file_is_a_change() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "1").unwrap();
        let (mut files, _) = FilePoller::open([path.clone()]);
        fs::remove_file(&path).unwrap();
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.unwrap().success());
        assert!(files.look().await.is_none(), "not settled");
        assert!(files.look().await.unwrap().is_err());
        fs::remove_file(&path).unwrap();
        fs::write(&path, "2").unwrap();
        assert!(files.look().await.is_none(), "not settled");
        assert_eq!(files.look().await.unwrap().unwrap(), [b"2"]);
    }
}
