//! Which files to read, and their text.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::error::{Problem, ReadError};
use super::place;

/// The most that is read of one file or of standard input.
pub const MAX_BYTES: u64 = 64 << 20;

/// Ends of file names that are read in directories.
const EXTENSIONS: [&str; 3] = ["yaml", "yml", "json"];

/// A file of manifests.
#[derive(Debug)]
pub struct Source {
    /// The path as the user gave it, joined with what was found under it; `-`
    /// for standard input.
    pub name: String,
    /// The size in bytes when the file was found.
    pub bytes: u64,
    origin: Origin,
}

#[derive(Debug)]
enum Origin {
    /// Read again when asked again.
    File {
        path: PathBuf,
        /// The same path without links, where it could be found out.
        real: Option<PathBuf>,
    },
    /// Standard input or a pipe, which can be read only once.
    Memory(String),
}

impl Source {
    /// A source whose text is already at hand, called `name` in messages.
    #[must_use]
    pub fn in_memory(name: &str, text: String) -> Self {
        Self {
            name: name.to_owned(),
            bytes: text.len() as u64,
            origin: Origin::Memory(text),
        }
    }

    /// The file on disk; `None` for standard input and pipes.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match &self.origin {
            Origin::File { path, .. } => Some(path),
            Origin::Memory(_) => None,
        }
    }

    /// As [`Self::path`], absolute and with all links followed; the path itself
    /// where that could not be found out.
    #[must_use]
    pub fn real_path(&self) -> Option<&Path> {
        match &self.origin {
            Origin::File { path, real } => Some(real.as_ref().unwrap_or(path)),
            Origin::Memory(_) => None,
        }
    }

    /// The text.
    ///
    /// # Errors
    /// The file cannot be read, is too large or is not UTF-8 text.
    pub fn text(&self) -> Result<Cow<'_, str>, ReadError> {
        match &self.origin {
            Origin::File { path, .. } => File::open(path)
                .map_err(|error| whole(&self.name, Problem::Unreadable(error)))
                .and_then(|file| read(&self.name, file, self.bytes))
                .map(Cow::Owned),
            Origin::Memory(text) => Ok(Cow::Borrowed(text)),
        }
    }
}

/// What [`find`] found.
#[derive(Debug, Default)]
pub struct Found {
    /// The files, in the order given, directories sorted by name.
    pub sources: Vec<Source>,
    /// What could not be opened.
    pub errors: Vec<ReadError>,
    seen: HashSet<PathBuf>,
}

/// Finds the manifests under `paths`: a file is taken whatever its name, a
/// directory is searched for `.yaml`, `.yml` and `.json` files, and `-` reads
/// `stdin`. Directories whose name starts with a dot are searched only when
/// named. Every file is taken once, whichever links lead to it.
pub fn find(paths: &[PathBuf], stdin: &mut dyn Read) -> Found {
    let mut found = Found::default();
    for path in paths {
        if path.as_os_str() == "-" {
            match read("-", &mut *stdin, 0) {
                Ok(text) => found.sources.push(Source::in_memory("-", text)),
                Err(error) => found.errors.push(error),
            }
            continue;
        }
        match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => found.directory(path),
            Ok(metadata) if metadata.is_file() => found.file(path, metadata.len()),
            Ok(metadata) => found.pipe(path, metadata.file_type()),
            Err(error) => found.unreadable(path, error),
        }
    }
    found
}

impl Found {
    fn unreadable(&mut self, path: &Path, error: io::Error) {
        self.errors
            .push(whole(&shown(path), Problem::Unreadable(error)));
    }

    /// Whether a directory is met for the first time, under any name.
    fn is_new(&mut self, path: &Path) -> bool {
        match fs::canonicalize(path) {
            Ok(real) => self.seen.insert(real),
            // Reading it will say what is wrong.
            Err(_) => true,
        }
    }

    fn file(&mut self, path: &Path, bytes: u64) {
        let real = fs::canonicalize(path).ok();
        if let Some(real) = &real
            && !self.seen.insert(real.clone())
        {
            return;
        }
        self.sources.push(Source {
            name: shown(path),
            bytes,
            origin: Origin::File {
                path: path.to_owned(),
                real,
            },
        });
    }

    fn pipe(&mut self, path: &Path, kind: fs::FileType) {
        let name = shown(path);
        if !is_readable_stream(kind) {
            self.errors.push(whole(&name, Problem::NotAFile));
            return;
        }
        let text = File::open(path)
            .map_err(|error| whole(&name, Problem::Unreadable(error)))
            .and_then(|file| read(&name, file, 0));
        match text {
            Ok(text) => self.sources.push(Source::in_memory(&name, text)),
            Err(error) => self.errors.push(error),
        }
    }

    fn directory(&mut self, path: &Path) {
        // A stack instead of recursion: a tree may be deeper than the stack is.
        let mut waiting = vec![path.to_owned()];
        while let Some(directory) = waiting.pop() {
            if !self.is_new(&directory) {
                continue;
            }
            let mut entries = match fs::read_dir(&directory).and_then(Iterator::collect) {
                Ok(entries) => entries,
                Err(error) => {
                    self.unreadable(&directory, error);
                    continue;
                }
            };
            let entries: &mut Vec<fs::DirEntry> = &mut entries;
            entries.sort_by_key(fs::DirEntry::file_name);
            let mut inner = Vec::new();
            for entry in entries.iter() {
                let path = entry.path();
                match kind_of(entry) {
                    Ok(kind) if kind.is_dir() => {
                        if !entry.file_name().as_encoded_bytes().starts_with(b".") {
                            inner.push(path);
                        }
                    }
                    Ok(kind) if kind.is_file() && has_extension(&path) => {
                        let bytes = fs::metadata(&path).map_or(0, |metadata| metadata.len());
                        self.file(&path, bytes);
                    }
                    Ok(_) => {}
                    // A link that leads nowhere matters only when it looks like a manifest.
                    Err(error) if has_extension(&path) => self.unreadable(&path, error),
                    Err(_) => {}
                }
            }
            waiting.extend(inner.into_iter().rev());
        }
    }
}

/// What an entry is, links followed.
fn kind_of(entry: &fs::DirEntry) -> io::Result<fs::FileType> {
    let kind = entry.file_type()?;
    if kind.is_symlink() {
        return Ok(fs::metadata(entry.path())?.file_type());
    }
    Ok(kind)
}

fn has_extension(path: &Path) -> bool {
    path.extension().is_some_and(|extension| {
        EXTENSIONS
            .iter()
            .any(|known| extension.eq_ignore_ascii_case(known))
    })
}

#[cfg(unix)]
fn is_readable_stream(kind: fs::FileType) -> bool {
    use std::os::unix::fs::FileTypeExt;
    kind.is_fifo() || kind.is_char_device()
}

#[cfg(not(unix))]
fn is_readable_stream(_kind: fs::FileType) -> bool {
    false
}

/// The path as messages show it.
fn shown(path: &Path) -> String {
    let path = path.strip_prefix("./").unwrap_or(path);
    path.to_string_lossy().into_owned()
}

fn whole(name: &str, problem: Problem) -> ReadError {
    ReadError {
        file: name.to_owned(),
        line: None,
        column: None,
        problem,
    }
}

fn read(name: &str, from: impl Read, expected: u64) -> Result<String, ReadError> {
    let too_large = || {
        let limit = MAX_BYTES >> 20;
        whole(name, Problem::TooLarge { limit })
    };
    if expected > MAX_BYTES {
        return Err(too_large());
    }
    let mut bytes = Vec::with_capacity(usize::try_from(expected).unwrap_or_default() + 1);
    from.take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| whole(name, Problem::Unreadable(error)))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(too_large());
    }
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        return Err(whole(name, Problem::Utf16));
    }
    if bytes.contains(&0) {
        return Err(whole(name, Problem::Binary));
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let text = String::from_utf8_lossy(&error.as_bytes()[..valid]);
        let (line, column) = place::line_and_column(&text, valid);
        ReadError {
            file: name.to_owned(),
            line: Some(line),
            column: Some(column),
            problem: Problem::NotUtf8,
        }
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::{self, Read};
    use std::path::{Path, PathBuf};

    use super::{Found, MAX_BYTES, Source, find};

    fn names(found: &Found, under: &Path) -> Vec<String> {
        found
            .sources
            .iter()
            .map(|source| {
                let path = Path::new(&source.name);
                let path = path.strip_prefix(under).unwrap_or(path);
                path.to_string_lossy().into_owned()
            })
            .collect()
    }

    fn find_in(paths: &[&Path]) -> Found {
        let paths: Vec<PathBuf> = paths.iter().map(|path| (*path).to_owned()).collect();
        find(&paths, &mut io::empty())
    }

    #[test]
    fn directories_are_searched_by_name_and_in_order() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        for path in [
            "b/z.yml",
            "b/a.JSON",
            "a.yaml",
            "c.txt",
            ".git/x.yaml",
            ".hidden.yaml",
        ] {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "a: 1").unwrap();
        }
        let found = find_in(&[root]);
        assert_eq!(
            names(&found, root),
            [".hidden.yaml", "a.yaml", "b/a.JSON", "b/z.yml"]
        );
        assert!(found.errors.is_empty());

        let named = find_in(&[&root.join("c.txt"), &root.join(".git")]);
        assert_eq!(names(&named, root), ["c.txt", ".git/x.yaml"]);
    }

    #[test]
    fn standard_input_is_a_source() {
        let found = find(&["-".into()], &mut "a: 1".as_bytes());
        assert_eq!(found.sources[0].name, "-");
        assert_eq!(found.sources[0].text().unwrap(), "a: 1");
        assert!(found.sources[0].path().is_none());
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        fs::write(root.join("binary.yaml"), b"a: \0\x01").unwrap();
        fs::write(root.join("latin1.yaml"), b"a: 1\nb: caf\xe9\n").unwrap();
        fs::write(root.join("utf16.yaml"), b"\xff\xfea\0:\0").unwrap();
        let large = fs::File::create(root.join("large.yaml")).unwrap();
        large.set_len(MAX_BYTES + 1).unwrap();
        let table = [
            ("absent.yaml", "absent.yaml: This cannot be read: "),
            (
                "binary.yaml",
                "binary.yaml: This is a binary file; expected YAML or JSON text.",
            ),
            ("latin1.yaml", "latin1.yaml:2:7: This is not UTF-8 text;"),
            (
                "utf16.yaml",
                "utf16.yaml: This file is UTF-16 text; save it as UTF-8.",
            ),
            ("large.yaml", "large.yaml: This file is larger than 64 MiB,"),
        ];
        for (name, message) in table {
            let found = find_in(&[&root.join(name)]);
            let error = match found.sources.first() {
                Some(source) => source.text().unwrap_err(),
                None => found.errors.into_iter().next().unwrap(),
            };
            let text = error.to_string();
            let text = text.strip_prefix(&format!("{}/", root.display())).unwrap();
            assert!(text.starts_with(message), "{name}: {text}");
        }
    }

    #[test]
    fn standard_input_without_end_is_cut_off() {
        let found = find(&["-".into()], &mut io::repeat(b' ').take(MAX_BYTES + 2));
        assert!(found.errors[0].to_string().contains("larger than 64 MiB"));
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_once() {
        use std::os::unix::fs::symlink;
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        fs::create_dir(root.join("a")).unwrap();
        fs::write(root.join("a/x.yaml"), "a: 1").unwrap();
        symlink(root, root.join("a/loop")).unwrap();
        symlink(root.join("a"), root.join("b")).unwrap();
        symlink(root.join("a/x.yaml"), root.join("y.yaml")).unwrap();
        symlink(root.join("nowhere"), root.join("z.yaml")).unwrap();
        symlink(root.join("nowhere"), root.join("other")).unwrap();
        let found = find_in(&[root, &root.join("a/x.yaml")]);
        assert_eq!(found.sources.len(), 1, "{:?}", found.sources);
        assert_eq!(found.errors.len(), 1, "{:?}", found.errors);
        assert!(found.errors[0].file.ends_with("z.yaml"));
    }

    #[test]
    fn names_are_shown_as_given() {
        let source = Source::in_memory("x", String::new());
        assert_eq!(source.name, "x");
        assert_eq!(super::shown(Path::new("./a/b.yaml")), "a/b.yaml");
    }
}
