//! Why a manifest could not be read, in sentences.

use std::fmt;

use super::decode::DecodeError;

/// Something wrong at one place of a document's text.
#[derive(Debug)]
pub struct Fault {
    /// The place, in bytes from the start of the text.
    pub at: usize,
    /// What is wrong there.
    pub problem: Problem,
}

impl Fault {
    pub(super) const fn new(at: usize, problem: Problem) -> Self {
        Self { at, problem }
    }
}

/// What can be wrong with a manifest.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The file or directory cannot be opened or read.
    #[error("This cannot be read: {0}.")]
    Unreadable(#[source] std::io::Error),
    /// Standard input or a pipe that ended at once.
    #[error("There is nothing to read here. Did the program that should write it fail?")]
    Empty,
    /// Neither a file, a directory nor a pipe.
    #[error("This is neither a file nor a directory.")]
    NotAFile,
    /// More bytes than are read into memory at once.
    #[error(
        "This file is larger than {limit} MiB, the most that is read at once; split it into several files."
    )]
    TooLarge {
        /// The cap, in MiB.
        limit: u64,
    },
    /// A NUL byte: the file is a binary.
    #[error("This is a binary file; expected YAML or JSON text.")]
    Binary,
    /// A byte sequence that is no UTF-8.
    #[error("This is not UTF-8 text; expected YAML or JSON in UTF-8.")]
    NotUtf8,
    /// The parser's own word on what it met.
    #[error("This is not valid YAML: {expected}.")]
    Syntax {
        /// What the parser expected or could not understand.
        expected: String,
    },
    /// A key that is a list, a mapping or null.
    #[error("This key is a list, a mapping or null; expected a plain word as the key.")]
    KeyIsNotText,
    /// `!!int foo` and the like.
    #[error("The value \"{text}\" does not fit its tag !!{tag}.")]
    TagMismatch {
        /// The tag without its exclamation marks.
        tag: String,
        /// The value.
        text: String,
    },
    /// Infinity or not-a-number.
    #[error("The number {text} cannot be kept in a Kubernetes object; expected a finite number.")]
    NotFinite {
        /// The number as written.
        text: String,
    },
    /// `<<` with something that is no mapping.
    #[error("Only a mapping, or a list of mappings, can be merged with `<<`.")]
    MergeOfNoMapping,
    /// An anchor whose value contains an alias to itself.
    #[error("This alias stands for a value that contains it; expected an anchor that ends before.")]
    AliasToItself,
    /// Aliases of aliases of aliases.
    #[error(
        "The aliases of this document stand for more than 400,000 values; write fewer aliases of aliases."
    )]
    TooManyAliases,
    /// An object whose fields are not what the Kubernetes API says.
    #[error("This {kind} cannot be read: {reason}.")]
    Malformed {
        /// `StorageClass` for example.
        kind: &'static str,
        /// What was found and what was expected.
        reason: DecodeError,
    },
    /// An object without a name, where only named ones are of use.
    #[error("This {kind} has no name; a fact needs metadata.name.")]
    Nameless {
        /// `StorageClass` for example.
        kind: String,
    },
    /// Nesting that no manifest has.
    #[error("This is nested more than {levels} levels deep; no Kubernetes object is.")]
    TooDeep {
        /// The deepest level that is read.
        levels: u32,
    },
}

/// A manifest, or a part of one, that could not be read.
#[derive(Debug)]
pub struct ReadError {
    /// The file as the user named it, `-` for standard input.
    pub file: String,
    /// The line, counted from 1; `None` when the whole file is at fault.
    pub line: Option<usize>,
    /// The column in characters, counted from 1.
    pub column: Option<usize>,
    /// What is wrong.
    pub problem: Problem,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let (Some(line), Some(column)) = (self.line, self.column) {
            write!(f, ":{line}:{column}")?;
        }
        write!(f, ": {}", self.problem)
    }
}

impl std::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        std::error::Error::source(&self.problem)
    }
}
