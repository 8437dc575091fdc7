//! `dist`: writes the scripts that complete commands in shells, and manual pages.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, CommandFactory, ValueEnum};
use clap_complete::{Generator, Shell};

use super::Cli;
use super::completion;
use super::output::complain;

/// The options of `dist`.
#[derive(Args, Clone, Debug)]
pub(crate) struct DistOptions {
    /// Directory to write to; it is created
    #[arg(value_name = "DIRECTORY")]
    pub directory: PathBuf,
}

pub(super) fn run(options: &DistOptions) -> ExitCode {
    match write(&options.directory) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let directory = options.directory.display();
            complain(&format!(
                "Completions and manual pages cannot be written to {directory}: {error}."
            ));
            ExitCode::from(2)
        }
    }
}

fn write(directory: &Path) -> io::Result<()> {
    let completions = directory.join("completions");
    let manual = directory.join("man");
    fs::create_dir_all(&completions)?;
    fs::create_dir_all(&manual)?;
    for shell in Shell::value_variants() {
        let file = shell.file_name(completion::NAME);
        fs::write(completions.join(file), completion::script(*shell)?)?;
    }
    clap_mangen::generate_to(Cli::command(), &manual)
}
