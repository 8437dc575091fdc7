//! `snapshot`: the facts of a live cluster in a file, for `check` without one.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::cluster::{ClusterArgs, ClusterError};
use super::output::{complain, print};
use engine::model::object::ObjectKind;
use report::safe;
use source::snapshot::{self, SnapshotError};

/// The first line of a snapshot, for whoever finds the file.
const HEADER: &str = "# What multi-attach-guard knows of a cluster, for check --facts.\n";

/// The options of `snapshot`.
#[derive(Args, Clone, Debug)]
pub struct SnapshotOptions {
    /// Which cluster, and as whom.
    #[command(flatten)]
    pub access: ClusterArgs,

    /// Write to this file instead of standard output
    #[arg(long, alias = "output", value_name = "FILE")]
    pub output_file: Option<PathBuf>,
}

/// Why no snapshot was written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
enum Error {
    /// The cluster cannot be read.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// A fact cannot be put as YAML.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// The file cannot be written.
    #[error("The snapshot could not be written to {}: {source}.", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: io::Error,
    },
}

pub(super) fn run(options: &SnapshotOptions) -> ExitCode {
    write(options).unwrap_or_else(|error| {
        complain(&error);
        ExitCode::from(2)
    })
}

fn write(options: &SnapshotOptions) -> Result<ExitCode, Error> {
    let cluster = options.access.connect()?.read(is_written)?;
    // In full before a file is touched, so that an old snapshot outlives a
    // cluster that cannot be read.
    let mut text = HEADER.as_bytes().to_vec();
    snapshot::write(&cluster, safe::yaml, &mut text)?;
    let Some(path) = &options.output_file else {
        return Ok(print("snapshot", &text));
    };
    fs::write(path, text).map_err(|source| Error::File {
        path: path.clone(),
        source,
    })?;
    Ok(ExitCode::SUCCESS)
}

const fn is_written(kind: ObjectKind) -> bool {
    matches!(
        kind,
        ObjectKind::Namespace
            | ObjectKind::StorageClass
            | ObjectKind::CsiDriver
            | ObjectKind::Node
            | ObjectKind::Volume
            | ObjectKind::Claim
    )
}
