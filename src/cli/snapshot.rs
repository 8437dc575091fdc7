//! `snapshot`: writes the facts of a live cluster to a file, for `check` without a cluster.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::cluster::ClusterArgs;
use super::error::CommandError;
use super::output::print;
use report::safe;
use source::snapshot;

/// The first line of a snapshot, for readers who find the file.
const HEADER: &str = "# What multi-attach-guard knows of a cluster, for check --facts.\n";

/// The options of `snapshot`.
#[derive(Args, Clone, Debug)]
pub(crate) struct SnapshotOptions {
    /// Which cluster, and as whom.
    #[command(flatten)]
    pub access: ClusterArgs,

    /// Write to this file instead of standard output
    #[arg(long, alias = "output", value_name = "FILE")]
    pub output_file: Option<PathBuf>,
}

pub(super) fn run(options: &SnapshotOptions) -> Result<ExitCode, CommandError> {
    let cluster = options.access.connect()?.read(|kind| snapshot::KINDS.contains(&kind))?;
    // The text is complete before a file is touched, so that an old snapshot outlives a cluster
    // that cannot be read.
    let mut text = HEADER.as_bytes().to_vec();
    snapshot::write(&cluster, safe::yaml, &mut text)?;
    let Some(path) = &options.output_file else {
        return Ok(print("snapshot", &text));
    };
    fs::write(path, text).map_err(|source| CommandError::File { path: path.clone(), source })?;
    Ok(ExitCode::SUCCESS)
}
