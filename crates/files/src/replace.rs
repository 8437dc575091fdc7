//! Replaces a file by one with another text.

use std::fs::{self, DirEntry, File, Metadata};
use std::io::{self, Write};
use std::path::Path;

/// The end of the name of a new file, which it has until it takes the place of the old one.
const SUFFIX: &str = ".multi-attach-guard";

/// The number of random letters and digits before the suffix.
const RANDOM: usize = 6;

/// A reason why a file was not replaced, as a sentence.
#[derive(Debug, thiserror::Error)]
pub enum ReplaceError {
    /// The file has several names, and only one of them would have the new text.
    #[error(
        "This file has {0} names (hard links), and a new file would take the place of one of them only, so it is left as it is; --diff shows the change."
    )]
    HardLinks(u64),
    /// The system does not allow the write.
    #[error("This file cannot be written: {0}.")]
    Write(#[from] io::Error),
}

/// Writes the text as a whole or not at all, and keeps the permissions, the owner and the extended
/// attributes of the file. Returns the properties that could not be kept, in a few words each.
///
/// The text is first written to a new file with a name of its own beside the old one, so that
/// neither a link in a repository nor a leftover of a killed run is in the way.
///
/// # Errors
/// Fails if the file has several names, or cannot be written.
pub fn replace(path: &Path, text: &str) -> Result<Vec<String>, ReplaceError> {
    let path = path.canonicalize()?;
    let metadata = fs::metadata(&path)?;
    #[cfg(unix)]
    if let links @ 2.. = std::os::unix::fs::MetadataExt::nlink(&metadata) {
        return Err(ReplaceError::HardLinks(links));
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let folder = path.parent().unwrap_or(Path::new("."));
    remove_leftovers(folder);
    let mut new = tempfile::Builder::new()
        .prefix(&format!(".{name}."))
        .suffix(SUFFIX)
        .rand_bytes(RANDOM)
        .tempfile_in(folder)?;
    // The lock tells other runs that this is no leftover. Where there are no locks, nothing counts
    // as one.
    let _ = new.as_file().try_lock();
    new.write_all(text.as_bytes())?;
    let lost = keep(&path, &metadata, new.as_file())?;
    new.as_file().sync_all()?;
    new.persist(&path).map_err(|error| error.error)?;
    Ok(lost)
}

/// Removes the new files that killed runs left in the folder. The result does not matter, because
/// no leftover is in the way.
fn remove_leftovers(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if is_leftover(&entry) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Whether this is a regular file with the name of a new file, and no run is writing it.
fn is_leftover(entry: &DirEntry) -> bool {
    let name = entry.file_name();
    let parts = name
        .to_str()
        .and_then(|name| name.strip_prefix('.')?.strip_suffix(SUFFIX)?.rsplit_once('.'));
    let Some((old, random)) = parts else {
        return false;
    };
    !old.is_empty()
        && random.len() == RANDOM
        && random.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && entry.file_type().is_ok_and(|kind| kind.is_file())
        && File::open(entry.path()).is_ok_and(|file| file.try_lock().is_ok())
}

/// Gives the new file the owner, the permissions and the attributes of the old one, and returns
/// those that it could not give.
#[cfg(unix)]
fn keep(old: &Path, metadata: &Metadata, new: &File) -> io::Result<Vec<String>> {
    use std::os::unix::fs::{MetadataExt, fchown};
    let mut lost = Vec::new();
    let (uid, gid) = (metadata.uid(), metadata.gid());
    let own = new.metadata()?;
    if own.uid() != uid && fchown(new, Some(uid), None).is_err() {
        lost.push(format!("its owner (user {uid})"));
    }
    if own.gid() != gid && fchown(new, None, Some(gid)).is_err() {
        lost.push(format!("its group ({gid})"));
    }
    // A change of the owner clears special bits, so the permissions come second.
    new.set_permissions(metadata.permissions())?;
    lost.extend(attributes::keep(old, new));
    Ok(lost)
}

#[cfg(not(unix))]
fn keep(_old: &Path, metadata: &Metadata, new: &File) -> io::Result<Vec<String>> {
    new.set_permissions(metadata.permissions())?;
    Ok(Vec::new())
}

#[cfg(any(target_os = "linux", target_os = "macos"))]
mod attributes {
    use std::ffi::{CStr, CString};
    use std::fs::File;
    use std::path::Path;

    use rustix::fs::{XattrFlags, fgetxattr, fsetxattr, getxattr, listxattr};
    use rustix::io::{Errno, Result};

    /// The largest number of bytes that a system keeps for one attribute, or for the names of all.
    const MAX_BYTES: usize = 64 << 10;

    pub(super) fn keep(old: &Path, new: &File) -> Vec<String> {
        let names = match names(old) {
            Ok(names) => names,
            // A file system without attributes has none to keep.
            Err(Errno::NOTSUP) => Vec::new(),
            Err(_) => return vec!["its extended attributes".to_owned()],
        };
        names
            .iter()
            .filter(|name| copy(old, new, name).is_err())
            .map(|name| format!("its attribute {}", name.to_string_lossy()))
            .collect()
    }

    fn names(old: &Path) -> Result<Vec<CString>> {
        let mut buffer = vec![0; MAX_BYTES];
        let length = listxattr(old, &mut buffer)?;
        Ok(buffer[..length]
            .split_inclusive(|byte| *byte == 0)
            .filter_map(|name| CStr::from_bytes_with_nul(name).ok())
            .map(CStr::to_owned)
            .collect())
    }

    fn copy(old: &Path, new: &File, name: &CStr) -> Result<()> {
        let mut buffer = vec![0; MAX_BYTES];
        let length = getxattr(old, name, &mut buffer)?;
        let value = &buffer[..length];
        let mut there = vec![0; MAX_BYTES];
        // The system gives every file some attributes, which not everybody may set.
        if fgetxattr(new, name, &mut there).is_ok_and(|present| there[..present] == *value) {
            return Ok(());
        }
        fsetxattr(new, name, value, XattrFlags::empty())
    }
}

#[cfg(all(unix, not(any(target_os = "linux", target_os = "macos"))))]
mod attributes {
    pub(super) fn keep(_old: &std::path::Path, _new: &std::fs::File) -> Vec<String> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_leftovers_of_killed_runs_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let beside = |name: &str| folder.path().join(name);
        let web = beside("web.yaml");
        let leftovers = [".web.yaml.a1B2c3", ".db.yaml.ABCDEF"];
        let others = [
            "web.yaml.a1b2c3",
            ".web.yaml.a1b2c",
            ".web.yaml.a1b2c34",
            ".web.yaml.a1b2c-",
            "..a1b2c3",
            ".a1b2c3",
            "",
        ];
        let with_suffix = |name: &str| beside(&format!("{name}{SUFFIX}"));
        for path in leftovers.iter().chain(&others).map(|name| with_suffix(name)) {
            fs::write(path, "half").unwrap();
        }
        let directory = with_suffix(".web.yaml.folder");
        fs::create_dir(&directory).unwrap();
        let in_use = with_suffix(".web.yaml.locked");
        let lock = File::create(&in_use).unwrap();
        lock.lock().unwrap();

        fs::write(&web, "old").unwrap();
        replace(&web, "new").unwrap();
        assert_eq!(fs::read_to_string(&web).unwrap(), "new");
        for name in leftovers {
            assert!(!with_suffix(name).exists(), "{name}");
        }
        for path in others.map(with_suffix).iter().chain([&directory, &in_use]) {
            assert!(path.exists(), "{}", path.display());
        }
    }
}
