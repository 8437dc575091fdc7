//! `dist`: completions for shells and manual pages, for packages.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, CommandFactory, ValueEnum};
use clap_complete::Shell;

use super::Cli;
use super::output::complain;

/// The options of `dist`.
#[derive(Args, Clone, Debug)]
pub struct DistOptions {
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
        let mut command = Cli::command();
        let name = command.get_name().to_owned();
        let file = clap_complete::generate_to(*shell, &mut command, &name, &completions)?;
        if *shell == Shell::Bash {
            let script = fs::read_to_string(&file)?;
            fs::write(&file, with_reachable_commands(&script, &name))?;
        }
    }
    clap_mangen::generate_to(Cli::command(), &manual)
}

/// The script for bash with the same label for a command where it is chosen and where it is
/// completed.
///
/// For a program with a hyphen in its name, `clap_complete` writes two that differ, so that
/// nothing is completed after a command (clap-rs/clap#6421).
fn with_reachable_commands(script: &str, program: &str) -> String {
    script.replace(
        &program.replace('-', "__subcmd__"),
        &program.replace('-', "__"),
    )
}
