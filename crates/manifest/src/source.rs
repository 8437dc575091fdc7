//! Files of manifests and their text.

use std::borrow::Cow;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::error::{MAX_BYTES, Problem, ReadError};
use super::position::Lines;

/// The name of standard input, as a path and in messages.
pub const STDIN: &str = "-";

/// The path as it is shown in messages.
pub fn shown(path: &Path) -> String {
    match path.strip_prefix(".") {
        Ok(inner) if !inner.as_os_str().is_empty() => inner.to_string_lossy().into_owned(),
        _ => path.to_string_lossy().into_owned(),
    }
}

/// A file of manifests.
#[derive(Clone, Debug)]
pub struct Source {
    /// The path as the user gave it, with the path below it if it is in a directory; `-` for
    /// standard input.
    pub name: String,
    /// Whether the user named the file, rather than a directory around it.
    pub named: bool,
    /// Whether it is the output of a chart or a kustomization, whose objects go to one cluster and
    /// are facts only for each other.
    pub rendered: bool,
    /// The file on disk; `None` for standard input and pipes.
    path: Option<PathBuf>,
    /// The same path with all links followed, if it could be resolved.
    real: Option<PathBuf>,
    /// The text, if it has already been read; otherwise the file is read each time.
    text: Option<String>,
}

impl Source {
    /// A source whose text is already in memory, called `name` in messages.
    pub fn in_memory(name: &str, text: String) -> Self {
        Self {
            name: name.to_owned(),
            named: true,
            rendered: false,
            path: None,
            real: None,
            text: Some(text),
        }
    }

    /// The file `path`, whose text the caller has already read.
    pub fn at_hand(path: &str, text: String) -> Self {
        Self { path: Some(PathBuf::from(path)), ..Self::in_memory(path, text) }
    }

    /// The same file with this text instead of the one on disk.
    #[must_use]
    pub fn with_text(self, text: String) -> Self {
        Self { text: Some(text), ..self }
    }

    /// The output of the chart or kustomization called `name`.
    pub fn rendered(name: &str, text: String) -> Self {
        Self { rendered: true, ..Self::in_memory(name, text) }
    }

    /// A file on disk. `real` is its path with all links followed, if it could be resolved.
    #[cfg(feature = "files")]
    pub(super) fn file(path: PathBuf, real: Option<PathBuf>, named: bool) -> Self {
        Self { name: shown(&path), named, rendered: false, path: Some(path), real, text: None }
    }

    /// Whether it is standard input.
    pub fn is_stdin(&self) -> bool {
        self.path.is_none() && self.name == STDIN
    }

    /// The file on disk; `None` for standard input and pipes.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// The same as [`Self::path`], but absolute and with all links followed; the path itself if it
    /// could not be resolved.
    pub fn real_path(&self) -> Option<&Path> {
        self.real.as_deref().or(self.path())
    }

    /// The text of the source.
    ///
    /// # Errors
    /// The file cannot be read, is too large, or is neither UTF-8 text nor UTF-16 text with a byte
    /// order mark.
    pub fn text(&self) -> Result<Cow<'_, str>, ReadError> {
        match &self.text {
            Some(text) => Ok(Cow::Borrowed(text)),
            None => text_of(&self.name, self.content()?).map(Cow::Owned),
        }
    }

    /// The content of a file that is not UTF-8 text, with replacement characters, to guess its
    /// kind.
    pub(super) fn guess(&self) -> String {
        String::from_utf8_lossy(&self.content().unwrap_or_default()).into_owned()
    }

    /// Whether the file is UTF-16 text, which cannot be written back as it is.
    pub fn is_utf16(&self) -> bool {
        self.path()
            .and_then(|_| self.content().ok())
            .is_some_and(|bytes| text_of_utf16(&bytes).is_some())
    }

    fn content(&self) -> Result<Vec<u8>, ReadError> {
        let (None, Some(path)) = (&self.text, &self.path) else {
            return Ok(self.text.clone().unwrap_or_default().into_bytes());
        };
        let file = File::open(path)
            .map_err(|error| ReadError::whole(&self.name, Problem::Unreadable(error)))?;
        let bytes = file.metadata().map_or(0, |metadata| metadata.len());
        read(&self.name, file, bytes)
    }
}

pub(super) fn read(name: &str, from: impl Read, expected: u64) -> Result<Vec<u8>, ReadError> {
    let too_large = || ReadError::whole(name, Problem::TooLarge);
    if expected > MAX_BYTES {
        return Err(too_large());
    }
    let mut bytes = Vec::with_capacity(usize::try_from(expected).unwrap_or_default() + 1);
    from.take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| ReadError::whole(name, Problem::Unreadable(error)))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(too_large());
    }
    Ok(bytes)
}

/// The text of a file that starts with a byte order mark of UTF-16, which kubectl accepts.
fn text_of_utf16(bytes: &[u8]) -> Option<String> {
    let unit: fn([u8; 2]) -> u16 = match bytes.get(..2)? {
        [0xff, 0xfe] => u16::from_le_bytes,
        [0xfe, 0xff] => u16::from_be_bytes,
        _ => return None,
    };
    let units: Vec<u16> =
        bytes.chunks_exact(2).skip(1).map(|pair| unit([pair[0], pair[1]])).collect();
    Some(String::from_utf16_lossy(&units))
}

pub(super) fn text_of(name: &str, bytes: Vec<u8>) -> Result<String, ReadError> {
    if let Some(text) = text_of_utf16(&bytes) {
        return Ok(text);
    }
    if bytes.contains(&0) {
        return Err(ReadError::whole(name, Problem::Binary));
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let text = String::from_utf8_lossy(&error.as_bytes()[..valid]);
        let place = Lines::of(&text).line_and_column(valid);
        ReadError::at(name, place, Problem::NotUtf8)
    })
}
