//! The files that a program needs to start: an interpreter, a loader, or nothing.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::run::folders;

/// The number of a program header that names a loader.
const INTERP: u32 = 3;

/// The most bytes of a loader's path.
const MAX_PATH: u64 = 4096;

/// The folders in which a script finds the programs that it starts, besides those of PATH.
const PROGRAMS: [&str; 7] = ["/bin", "/usr", "/opt", "/lib", "/lib64", "/nix/store", "/snap"];

/// What the program in the file must be able to start besides itself: its loader, or the folders of
/// all programs if it is a script. A file in an unknown format starts by itself or not at all.
pub(super) fn others(file: &Path) -> Vec<PathBuf> {
    let Ok(mut file) = File::open(file) else {
        return Vec::new();
    };
    let mut start = [0; 2];
    if file.read_exact(&mut start).is_ok() && start == *b"#!" {
        return for_scripts();
    }
    loader(&mut file).ok().flatten().into_iter().collect()
}

fn for_scripts() -> Vec<PathBuf> {
    PROGRAMS.iter().map(PathBuf::from).chain(folders()).collect()
}

/// The loader that a 64-bit ELF file names, in the byte order of x86-64 and of ARM.
fn loader(file: &mut (impl Read + Seek)) -> io::Result<Option<PathBuf>> {
    let head: [u8; 64] = at(file, 0)?;
    if !head.starts_with(b"\x7fELF\x02\x01") {
        return Ok(None);
    }
    let long = |bytes: &[u8], from: usize| -> u64 {
        bytes[from..].iter().take(8).rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
    };
    let (first, size) = (long(&head, 32), long(&head, 54) & 0xffff);
    for number in 0..long(&head, 56) & 0xffff {
        let header: [u8; 56] = at(file, first.saturating_add(number * size))?;
        if header[..4] == INTERP.to_le_bytes() {
            file.seek(SeekFrom::Start(long(&header, 8)))?;
            let mut bytes = Vec::new();
            let length = long(&header, 32).min(MAX_PATH);
            file.take(length).read_to_end(&mut bytes)?;
            let path = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
            return Ok(Some(String::from_utf8_lossy(path).into_owned().into()));
        }
    }
    Ok(None)
}

fn at<const N: usize>(file: &mut (impl Read + Seek), offset: u64) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    file.seek(SeekFrom::Start(offset))?;
    file.read_exact(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::{for_scripts, others};

    #[test]
    fn scripts_and_loaders_are_known() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, bytes: &[u8]| {
            let file = folder.path().join(name);
            fs::write(&file, bytes).unwrap();
            others(&file)
        };
        let none: [PathBuf; 0] = [];
        assert_eq!(write("script", b"#!/bin/sh\n"), for_scripts());
        assert_eq!(write("short", b"\x7fELF\x02\x01"), none);
        assert_eq!(write("empty", b""), none);
        let mut elf = vec![0; 64];
        elf[..6].copy_from_slice(b"\x7fELF\x02\x01");
        (elf[32], elf[54], elf[56]) = (64, 56, 2);
        let mut header = [0; 56];
        header[0] = 3;
        (header[8], header[32]) = (176, 8);
        let path = b"/lib/ld\0";
        let all = [&elf, &[1; 56][..], &header, path].concat();
        assert_eq!(write("loaded", &all), [Path::new("/lib/ld")]);
        assert_eq!(others(Path::new("/does/not/exist")), none);
    }
}
