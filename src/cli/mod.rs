//! The commands: their arguments, and what they put together.

mod check;
mod logging;
pub mod policy_file;
mod serve;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

pub use check::{CheckError, CheckOptions, FailOn};
pub use logging::{LogFormat, LogOptions};
pub use serve::{CertificateOptions, ServeError, ServeOptions};

/// Keeps Kubernetes rollouts from ending in a Multi-Attach error
#[derive(Debug, Parser)]
#[command(name = "multi-attach-guard", version, max_term_width = 100)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// The admission webhook.
    Serve(Box<ServeOptions>),
    /// Manifests, before any cluster sees them.
    Check(CheckOptions),
}

/// Runs a command to its end. What went wrong is told on standard error.
#[must_use]
pub fn run(cli: &Cli) -> ExitCode {
    match &cli.command {
        Command::Serve(options) => match serve::run(options) {
            Ok(_) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{error}");
                error.exit_code()
            }
        },
        Command::Check(options) => check::run(options),
    }
}
