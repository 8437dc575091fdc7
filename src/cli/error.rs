//! The reasons why a command fails.

use std::io;
use std::path::PathBuf;

use super::target::TargetError;
use engine::storage::CatalogError;
use manifest::find::ExcludeError;
use source::connect::ConnectError;
use source::facts::FactsError;
use source::informer::SyncError;
use source::policy_file::PolicyFileError;
use source::snapshot::SnapshotError;

/// A reason why a command fails, as a sentence with the way out.
#[derive(Debug, thiserror::Error)]
pub(super) enum CommandError {
    /// A glob cannot be understood.
    #[error(transparent)]
    Exclude(#[from] ExcludeError),
    /// The policy cannot be used.
    #[error(transparent)]
    Policy(#[from] PolicyFileError),
    /// Files with facts cannot be used.
    #[error(transparent)]
    Facts(#[from] FactsError),
    /// No cluster is configured, or it cannot be reached.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The cluster did not answer in full.
    #[error(transparent)]
    Sync(#[from] SyncError),
    /// The program cannot start a runtime.
    #[error("The program could not start its threads: {0}.")]
    Runtime(#[source] io::Error),
    /// The name on the command line is not usable, or nothing has it.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// There is no such namespace.
    #[error(
        "The cluster has no namespace \"{0}\". `kubectl get namespaces` lists the ones there are."
    )]
    Namespace(String),
    /// The earlier report cannot be read.
    #[error("The earlier report {} given with --compare cannot be read: {source}.", path.display())]
    Earlier {
        /// The file.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// The file is not a report.
    #[error("The file {} given with --compare is not a report: {source}. Write one with `--format json`.", path.display())]
    NoReport {
        /// The file.
        path: PathBuf,
        /// The error.
        source: serde_json::Error,
    },
    /// The catalog cannot be read, because the build is faulty.
    #[error("The catalog of drivers cannot be read: {0}.")]
    Catalog(#[from] CatalogError),
    /// Nothing in the catalog has this name.
    #[error(
        "Unknown driver, class or product \"{name}\".{meant} `multi-attach-guard capabilities --all` lists the known ones."
    )]
    UnknownStorage {
        /// The name.
        name: String,
        /// The question whether a similar name was meant, after a space; empty if there is none.
        meant: String,
    },
    /// The line is not known.
    #[error(
        "No line of this text is known. Give the message of an Event about a volume, as `kubectl describe pod` shows it, or run `multi-attach-guard diagnose` against the cluster."
    )]
    Unexplained,
    /// The text to explain cannot be read.
    #[error("Standard input cannot be read: {0}.")]
    Pasted(#[source] io::Error),
    /// An editor cannot be served.
    #[error(transparent)]
    Lsp(#[from] ::lsp::ServeError),
    /// Nothing can be rendered here.
    #[error("Charts and kustomizations cannot be rendered: {0}.")]
    Render(#[source] io::Error),
    /// A fact has no form in YAML or JSON.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// The output cannot be serialized as JSON.
    #[error("The output could not be written: {0}.")]
    Json(#[from] serde_json::Error),
    /// A file cannot be written.
    #[error("The snapshot could not be written to {}: {source}.", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// Standard output cannot be written.
    #[error("The report could not be written: {0}.")]
    Write(#[from] io::Error),
}
