//! Renders what is meant to be rendered: paths in, texts with their origins out.
//!
//! ```text
//! paths ─▶ discover ─▶ deliver ─▶ check::Reading
//!             │           │
//!             └─────┬─────┘
//!            rendering: helm and kustomize, confined
//!            fetching:  what is elsewhere, before that
//! ```
//!
//! What it reads may come from a stranger's pull request. Command lines of foreign programs are
//! made in here, of our own options and of words that each program is known to take; nothing that
//! is public takes or gives one.

mod deliver;
mod discover;
mod fetch;
mod files;
mod program;
mod reason;
mod releases;
mod rendering;
mod repository;

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use check::Reading;
pub use discover::Kustomizations;
use discover::{Files, ReadOptions, discover};
use fetch::Fetcher;
pub use fetch::{Fetch, FetchOptions};
use manifest::find::Exclude;
pub use program::confine::{ConfineOptions, confine};
use rendering::Rendering;
pub use rendering::{Render, RenderOptions};
pub use repository::Repository;

/// Tells the user a sentence.
type Say = fn(&str);

/// What is read, and how.
#[derive(Clone, Copy)]
pub struct Input<'a> {
    /// Files and directories; `-` is standard input.
    pub paths: &'a [PathBuf],
    /// What is left out of directories.
    pub exclude: &'a Exclude,
    /// The namespace of objects that name none.
    pub namespace: Option<&'a str>,
    /// How charts and kustomizations are rendered.
    pub render: &'a RenderOptions,
    /// Whether charts that are elsewhere are fetched.
    pub fetch: &'a FetchOptions,
    /// The repository around the working directory.
    pub repository: &'a Repository,
    /// Hears what was fetched, and what confines the programs.
    pub say: Say,
}

/// What lies under the paths, to be rendered and read, if need be more than once.
pub struct Paths<'a> {
    input: Input<'a>,
    files: Files,
    fetcher: Fetcher<'a>,
    rendering: Rendering<'a>,
}

impl<'a> Paths<'a> {
    /// Finds the files. Pipes are read once.
    pub fn find(input: Input<'a>) -> Self {
        let limit = Duration::from_secs(input.render.render_timeout);
        Self {
            input,
            files: discover::files(input.paths, input.exclude, input.repository),
            fetcher: Fetcher::new(input.fetch, limit, input.say),
            rendering: Rendering::new(input.render, input.namespace, input.repository, input.say),
        }
    }

    /// Renders what is to be rendered, and reads all objects.
    ///
    /// # Errors
    /// Nothing can be rendered on this machine, or not with these options.
    pub fn read(&self, kustomizations: Kustomizations) -> io::Result<Reading> {
        let options = ReadOptions {
            namespace: self.input.namespace,
            render: self.input.render,
            rendering: &self.rendering,
            fetcher: &self.fetcher,
            repository: self.input.repository,
        };
        let reading = discover(&self.files, kustomizations, options)?;
        deliver::deliver(reading, kustomizations, options)
    }
}
