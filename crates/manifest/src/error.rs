//! The reasons why a manifest could not be read, in sentences.

use super::decode::DecodeError;
use engine::model::object::ObjectRef;

/// The most bytes that are read from one file or from standard input.
pub const MAX_BYTES: u64 = 64 << 20;

/// The most levels of nesting, with aliases followed.
pub(super) const MAX_DEPTH: u32 = 200;

/// Something wrong at one place of a document's text.
#[derive(Debug)]
pub struct Fault {
    /// The place, in bytes from the start of the text.
    pub at: usize,
    /// The problem at that place.
    pub problem: Problem,
}

impl Fault {
    pub(super) const fn new(at: usize, problem: Problem) -> Self {
        Self { at, problem }
    }

    /// A place at which the text is not valid YAML.
    pub(super) fn syntax(at: usize, expected: &str) -> Self {
        let expected = expected.to_owned();
        Self::new(at, Problem::Syntax { expected })
    }
}

/// The problems that a manifest can have.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// The file or directory cannot be opened or read.
    #[error("This cannot be read: {0}.")]
    Unreadable(std::io::Error),
    /// Standard input or a pipe that ended at once.
    #[error("There is nothing to read here. Did the program that should write it fail?")]
    Empty,
    /// Something that is neither a file, a directory nor a pipe.
    #[error("This is neither a file nor a directory.")]
    NotAFile,
    /// More bytes than the program reads into memory at once.
    #[error(
        "This file is larger than {} MiB, the most that is read at once; split it into several files.",
        MAX_BYTES >> 20
    )]
    TooLarge,
    /// A NUL byte: the file is a binary.
    #[error("This is a binary file; expected YAML or JSON text.")]
    Binary,
    /// A byte sequence that is not UTF-8.
    #[error("This is not UTF-8 text; expected YAML or JSON in UTF-8.")]
    NotUtf8,
    /// An error from the YAML parser.
    #[error("This is not valid YAML: {expected}.")]
    Syntax {
        /// The parser's description of the error.
        expected: String,
    },
    /// A plain scalar between brackets or braces ends with a colon, or is a hyphen, and `,`, `]` or
    /// `}` follows immediately. YAML 1.2 does not allow that, though Kubernetes' reader does. The
    /// place is that of its last letter. The user sees it only if it could not be rewritten for the
    /// parser.
    #[error("This is not valid YAML: a word between brackets ends with a colon or is a hyphen.")]
    Lenient,
    /// A key that is a list, a mapping or null.
    #[error("This key is a list, a mapping or null; expected a plain word as the key.")]
    KeyIsNotText,
    /// A value that does not fit its tag, such as `!!int foo`.
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
    /// A `<<` whose value is not a mapping.
    #[error("Only a mapping, or a list of mappings, can be merged with `<<`.")]
    MergeOfNoMapping,
    /// An anchor whose value contains an alias to itself.
    #[error("This alias stands for a value that contains it; expected an anchor that ends before.")]
    AliasToItself,
    /// Aliases that refer to aliases and multiply.
    #[error(
        "The aliases of this document stand for more than 400,000 values; write fewer aliases of aliases."
    )]
    TooManyAliases,
    /// An object whose fields do not have the types of the Kubernetes API.
    #[error("This {kind} cannot be read: {reason}.")]
    Malformed {
        /// `StorageClass` for example.
        kind: &'static str,
        /// The value that was found and the expected one.
        reason: DecodeError,
    },
    /// An object without a name, in a place where only named objects are useful.
    #[error("This {kind} has no name; a fact needs metadata.name.")]
    Nameless {
        /// `StorageClass` for example.
        kind: String,
    },
    /// Nesting deeper than in any manifest.
    #[error("This is nested more than {} levels deep; no Kubernetes object is.", MAX_DEPTH)]
    TooDeep,
}

/// A manifest, or a part of one, that could not be read.
#[derive(Debug, thiserror::Error)]
#[error("{file}{}: {problem}", place(.at))]
pub struct ReadError {
    /// The file as the user named it, `-` for standard input.
    pub file: String,
    /// The line and the column in characters, both counted from 1; `None` when the whole file is at
    /// fault.
    pub at: Option<(usize, usize)>,
    /// The problem.
    pub problem: Problem,
    /// The source of the object, if it is rendered.
    pub rendered: Option<Box<RenderedFrom>>,
}

/// The source of a rendered object.
#[derive(Debug)]
pub struct RenderedFrom {
    /// The file from which it was rendered.
    pub template: String,
    /// The object.
    pub object: ObjectRef,
    /// The path of the field at fault.
    pub field: String,
}

impl ReadError {
    /// A problem of the whole file.
    pub(super) fn whole(file: &str, problem: Problem) -> Self {
        Self { file: file.to_owned(), at: None, problem, rendered: None }
    }

    /// A problem at a line and column of the file.
    pub(super) fn at(file: &str, place: (usize, usize), problem: Problem) -> Self {
        Self { at: Some(place), ..Self::whole(file, problem) }
    }
}

/// `:line:column`, or nothing for a whole file.
fn place(at: &Option<(usize, usize)>) -> String {
    at.map_or_else(String::new, |(line, column)| format!(":{line}:{column}"))
}
