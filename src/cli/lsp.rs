//! `lsp`: serves an editor.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::check::facts_in_files;
use super::error::CommandError;

/// The options of `lsp`.
#[derive(Args, Clone, Debug)]
pub(crate) struct LspOptions {
    /// Take facts from the output of `snapshot` (repeatable)
    #[arg(long, value_name = "PATH")]
    pub facts: Vec<PathBuf>,
}

pub(super) fn run(options: &LspOptions) -> Result<ExitCode, CommandError> {
    let ended_well = ::lsp::serve(facts_in_files(&options.facts)?)?;
    Ok(if ended_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
