//! Renders charts, kustomizations and releases: its input is paths, and its output is texts with
//! their origins.
//!
//! ```text
//! paths ─▶ discover ─▶ deliver ─▶ check::Reading
//!             │           │
//!             └─────┬─────┘
//!            rendering: helm and kustomize, confined
//!            fetching:  remote charts and bases, before that
//! ```
//!
//! The input may come from a stranger's pull request. Command lines of external programs are
//! created only in this crate, from constant options and from words that each program is known to
//! accept. No public function takes or returns a command line.

mod deliver;
mod discover;
mod fetch;
mod files;
mod program;
mod reason;
mod releases;
mod rendering;
mod repository;
mod superseded;

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use check::Reading;
pub use discover::Kustomizations;
use discover::{Files, discover};
use fetch::Fetcher;
pub use fetch::{Fetch, FetchOptions};
use manifest::find::Exclude;
use manifest::source::{STDIN, Source};
pub use program::confine::{ConfineOptions, confine};
pub use program::group::is_interrupted;
use rendering::Renderer;
use rendering::release::Job;
use rendering::roots::Places;
pub use rendering::{Render, RenderOptions};
pub use repository::Repository;

/// Prints a sentence to the user.
type Say = fn(&str);

/// The inputs and options of reading.
#[derive(Clone, Copy)]
pub struct Input<'a> {
    /// Files and directories; `-` is standard input.
    pub paths: &'a [PathBuf],
    /// The globs of paths to leave out of directories.
    pub exclude: &'a Exclude,
    /// The namespace of objects that name none.
    pub namespace: Option<&'a str>,
    /// The options for rendering charts and kustomizations.
    pub render: &'a RenderOptions,
    /// The options for fetching charts and bases.
    pub fetch: &'a FetchOptions,
    /// The repository around the working directory.
    pub repository: &'a Repository,
    /// Prints which files were fetched and what confines the programs.
    pub say: Say,
}

/// The files under the paths, which can be rendered and read more than once.
pub struct Paths<'a> {
    input: Input<'a>,
    files: Files,
    fetcher: Fetcher<'a>,
    /// The programs and a sandbox, which are set up when the first text is rendered.
    renderer: OnceCell<Renderer>,
    /// The rendered Helm releases, by the numbers of their texts.
    helm_releases: RefCell<HashMap<usize, Job>>,
}

impl<'a> Paths<'a> {
    /// Finds the files. Pipes are read once.
    pub fn find(input: Input<'a>) -> Self {
        Self {
            input,
            files: discover::files(
                input.paths,
                input.exclude,
                input.repository,
                input.render.render,
            ),
            fetcher: Fetcher::new(input.fetch, input.render.limit_of_one(), input.say),
            renderer: OnceCell::new(),
            helm_releases: RefCell::default(),
        }
    }

    /// Replaces the text of standard input.
    pub fn replace_stdin(&mut self, text: String) {
        let mut sources = self.files.found.sources.iter_mut();
        if let Some(stdin) = sources.find(|source| source.is_stdin()) {
            *stdin = Source::in_memory(STDIN, text);
        }
    }

    /// Reads this text instead of the file `path`, whose links are followed.
    pub fn open(&mut self, path: &Path, text: &str) {
        let sources = &mut self.files.found.sources;
        match sources.iter_mut().find(|source| source.real_path() == Some(path)) {
            Some(source) => *source = source.clone().with_text(text.to_owned()),
            None => sources.push(Source::at_hand(&path.to_string_lossy(), text.to_owned())),
        }
    }

    /// Renders charts, kustomizations and releases, and reads all objects.
    ///
    /// # Errors
    /// Nothing can be rendered on this machine or with these options.
    pub fn read(&self, kustomizations: Kustomizations) -> io::Result<Reading> {
        let reading = discover(self, kustomizations)?;
        deliver::deliver(reading, kustomizations, self)
    }

    /// The places in which names in a root are looked up.
    const fn places(&self) -> Places<'_> {
        Places { repository: self.input.repository, fetcher: &self.fetcher }
    }
}
