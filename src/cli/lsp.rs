//! `lsp`: serves an editor.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::error::CommandError;
use engine::snapshot::Snapshot;
use source::facts;

/// The options of `lsp`.
#[derive(Args, Clone, Debug)]
pub(crate) struct LspOptions {
    /// Take facts from the output of `snapshot` (repeatable)
    #[arg(long, value_name = "PATH")]
    pub facts: Vec<PathBuf>,
}

pub(super) fn run(options: &LspOptions) -> Result<ExitCode, CommandError> {
    let facts = match &*options.facts {
        [] => Snapshot::complete(),
        paths => facts::load(paths, &mut io::empty())?,
    };
    let ended_well = ::lsp::serve(facts)?;
    Ok(if ended_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
