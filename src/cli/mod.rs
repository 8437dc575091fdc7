//! The commands: their arguments, and what they put together.

mod audit;
mod capabilities;
mod check;
mod cluster;
mod diagnose;
mod dist;
mod format;
mod hunk;
mod log_queue;
mod logging;
mod migrate;
mod output;
pub mod policy_file;
mod rules;
mod serve;
mod snapshot;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

pub use audit::AuditOptions;
pub use capabilities::{CapabilitiesOptions, TableFormat};
pub use check::{CheckError, CheckOptions, Render, RenderOptions};
pub use diagnose::{DiagnoseOptions, DiagnosisFormat};
pub use dist::DistOptions;
pub use logging::{LogFormat, LogOptions};
pub use migrate::{Copying, MigrateOptions};
pub use output::FailOn;
pub use rules::RulesOptions;
pub use serve::{CertificateOptions, ServeError, ServeOptions};
pub use snapshot::SnapshotOptions;

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
    /// Answer admission reviews over HTTPS
    ///
    /// POST /mutate and /validate on the webhook port; /healthz, /readyz and /metrics on the admin
    /// port. On SIGTERM it stops in order: it says that it is not ready, still answers while the
    /// endpoints change, then lets the connections drain. A second signal ends it at once.
    Serve(Box<ServeOptions>),
    /// Check manifests before any cluster sees them
    ///
    /// Reads YAML and JSON files, directories, and standard input as "-": the output of `helm
    /// template` and `kustomize build` too. Objects in the files are facts for each other, the
    /// nearest first; how many nodes there are, only --facts and --cluster say. Ends with 0 when all
    /// is well, 1 when the webhook would deny or repair something (with --fail-on warn, also when it
    /// would warn), whatever else happened, 2 when none of that but a manifest could not be read.
    Check(CheckOptions),
    /// Say what the webhook would say about what is already in a cluster
    ///
    /// Judges every workload, claim and autoscaler of the cluster behind the kubeconfig, and tells
    /// the findings by namespace, the worst first. It needs no webhook, no rights but to get, list
    /// and watch, and changes nothing. Ends with 0 when all is well, 1 when the webhook would deny or
    /// repair something (with --fail-on warn, also when it would warn), 2 when the cluster could
    /// not be read.
    Audit(AuditOptions),
    /// Say why pods wait for a volume, and the way out
    ///
    /// For each volume: who holds it, whether that node is alive, the cause, and the commands
    /// that help, the safest first, each with what it costs. It needs no webhook and no right but
    /// to list, says what it could not see, and changes nothing. Ends with 0 when nothing waits, 1
    /// when something does, 2 when that cannot be told.
    Diagnose(DiagnoseOptions),
    /// Write out the way from a ReadWriteOnce claim to a ReadWriteMany one
    ///
    /// Reads the cluster and prints every step, with the commands and how long each blocks the
    /// application: the class that can give the mode, the new claim, a copy with checksums, the
    /// change of the workloads, the order for GitOps, how to check that it worked, and the way
    /// back. It changes nothing itself. Ends with 0 when there is a way and with 2, and the
    /// reason, when there is none.
    Migrate(MigrateOptions),
    /// Print the access modes each StorageClass can really give
    ///
    /// For file systems and for raw block devices, with the condition that decides and how sure the
    /// catalog is.
    Capabilities(CapabilitiesOptions),
    /// Print what each rule means
    Rules(RulesOptions),
    /// Write the facts of a cluster as YAML, for `check --facts`
    ///
    /// Namespaces, StorageClasses, CSIDrivers, Nodes, PersistentVolumes and
    /// PersistentVolumeClaims, reduced to what decides: no Secret, no pod, no managedFields. What
    /// may be a secret among a class's parameters is replaced by REDACTED. Workloads and
    /// autoscalers are not in it, so that only `check --cluster` sees those that share a volume
    /// with a manifest.
    Snapshot(SnapshotOptions),
    /// Write shell completions and manual pages into a directory
    #[command(hide = true)]
    Dist(DistOptions),
}

/// Runs a command to its end. What went wrong is told on standard error.
#[must_use]
pub fn run(cli: &Cli) -> ExitCode {
    match &cli.command {
        Command::Serve(options) => match serve::run(options) {
            Ok(_) => ExitCode::SUCCESS,
            Err(error) => {
                output::complain(&error);
                error.exit_code()
            }
        },
        Command::Check(options) => check::run(options),
        Command::Audit(options) => audit::run(options),
        Command::Diagnose(options) => diagnose::run(options),
        Command::Migrate(options) => migrate::run(options),
        Command::Capabilities(options) => capabilities::run(options),
        Command::Rules(options) => rules::run(options),
        Command::Snapshot(options) => snapshot::run(options),
        Command::Dist(options) => dist::run(options),
    }
}
