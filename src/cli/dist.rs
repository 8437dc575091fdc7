//! `dist`: completions for shells and manual pages, for packages.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, CommandFactory, ValueEnum};
use clap_complete::Shell;

use super::Cli;

/// The options of `dist`.
#[derive(Args, Clone, Debug)]
pub struct DistOptions {
    /// The directory, made where it is missing
    #[arg(value_name = "DIRECTORY")]
    pub directory: PathBuf,
}

pub(super) fn run(options: &DistOptions) -> ExitCode {
    match write(&options.directory) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let directory = options.directory.display();
            eprintln!("Completions and manual pages cannot be written to {directory}: {error}.");
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
        let mut command = Cli::command();
        let name = command.get_name().to_owned();
        clap_complete::generate_to(*shell, &mut command, name, &completions)?;
    }
    clap_mangen::generate_to(Cli::command(), &manual)
}
