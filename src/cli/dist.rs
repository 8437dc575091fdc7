//! `completion`: prints a script for a shell. `dist`: writes those of all shells, and manual pages.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Command, CommandFactory, ValueEnum};
use clap_complete::{Generator, Shell};

use super::Cli;
use super::output::{complain, print};
use engine::policy::RemedyChoice;
use engine::rules::codes;

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
        let file = shell.file_name(NAME);
        fs::write(completions.join(file), script(*shell))?;
    }
    clap_mangen::generate_to(Cli::command(), &manual)
}

/// The options of `completion`.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct CompletionOptions {
    /// Shell that the script is for
    #[arg(value_enum)]
    pub shell: Shell,
}

pub(super) fn print_completion(options: CompletionOptions) -> ExitCode {
    print("completion", script(options.shell).as_bytes())
}

/// The name of the program in shells.
const NAME: &str = "multi-attach-guard";

/// The commands that are completed: those that are not hidden, with the names of rules and remedies.
fn offered() -> Command {
    let all = Cli::command();
    let shown = all.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    let remedies = RemedyChoice::ALL.map(RemedyChoice::name);
    Command::new(NAME)
        .version(env!("CARGO_PKG_VERSION"))
        .subcommands(shown)
        .mut_subcommand("rules", |rules| {
            rules.mut_arg("code", |code| code.value_parser(codes::ALL))
        })
        .mut_subcommand("check", |check| {
            check.mut_arg("remedy", |name| name.value_parser(remedies))
        })
}

/// The script that completes commands in a shell.
fn script(shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut offered(), NAME, &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    match shell {
        // `clap_complete` writes two labels that differ for a command of a program with a hyphen in
        // its name: in the place that chooses it and in the place that completes it. Nothing would
        // be completed after a command (clap-rs/clap#6421).
        Shell::Bash => script.replace(&NAME.replace('-', "__subcmd__"), &NAME.replace('-', "__")),
        _ => script,
    }
}
