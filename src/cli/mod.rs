//! The commands and their arguments.

mod audit;
mod capabilities;
mod check;
mod cluster;
mod completion;
mod diagnose;
mod dist;
mod error;
mod format;
mod log_queue;
mod logging;
mod lsp;
mod output;
mod policies;
mod rules;
mod serve;
mod snapshot;
mod target;

use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory, Parser, Subcommand};

use audit::AuditOptions;
use capabilities::CapabilitiesOptions;
use check::CheckOptions;
use completion::CompletionOptions;
use diagnose::DiagnoseOptions;
use dist::DistOptions;
use lsp::LspOptions;
use policies::PoliciesOptions;
use render::ConfineOptions;
use rules::RulesOptions;
use serve::ServeOptions;
use snapshot::SnapshotOptions;

/// Keeps Kubernetes rollouts from ending in a Multi-Attach error
#[derive(Debug, Parser)]
#[command(name = "multi-attach-guard", version, max_term_width = 100)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
enum Command {
    /// Answer admission reviews over HTTPS
    ///
    /// POST /mutate and /validate on the webhook port; /healthz, /readyz and /metrics on the admin
    /// port. On SIGTERM it becomes unready, keeps answering while endpoints change, then drains its
    /// connections. A second signal stops it at once.
    Serve(Box<ServeOptions>),
    /// Check manifests before any cluster sees them
    ///
    /// Reads YAML and JSON files, directories, and standard input as "-". Objects in the files are
    /// facts for each other, the nearest first; only --facts and --cluster know the nodes.
    ///
    /// Exit codes: 0 no findings that fail; 1 findings that the webhook would deny or repair; 2 no
    /// such findings, but something could not be read. With --fail-on warn, warnings are 1 too; with
    /// --fail-on incomplete, so is what was not judged. Ctrl-C ends rendering and prints the findings:
    /// 130.
    Check(CheckOptions),
    /// Show findings in an editor, with the Language Server Protocol
    ///
    /// Judges the open documents as `check --render never` judges the folder that the editor opens,
    /// from standard input to standard output. It starts no program and needs no network.
    Lsp(LspOptions),
    /// Judge the objects that are already in a cluster
    ///
    /// Begins with pods that wait for a volume now, with the command that sets them free. Then judges
    /// every workload, claim and autoscaler, by namespace, worst first. It needs no webhook, only the
    /// rights to get and list, says what it could not see, and changes nothing.
    ///
    /// Exit codes: 0 no findings that fail; 1 pods that wait, or findings that the webhook would deny
    /// or repair (with --fail-on warn, warnings too); 2 no such findings, but something could not be
    /// read.
    Audit(AuditOptions),
    /// Explain why pods wait for a volume, and print the way out
    ///
    /// For each volume: who holds it, whether that node is alive, the cause, and the commands that
    /// help, safest first, each with its cost. It needs no webhook, only the right to list, says
    /// what it could not see, and changes nothing.
    ///
    /// Exit codes: 0 nothing waits; 1 something waits; 2 the cluster could not be read.
    Diagnose(DiagnoseOptions),
    /// Print the access modes that storage can really give
    ///
    /// For file systems and for block devices, with conditions and how sure the catalog is: of each
    /// StorageClass of a cluster, or of a driver, a class or a product by its name, without one.
    Capabilities(CapabilitiesOptions),
    /// Print what each rule means
    Rules(RulesOptions),
    /// Write the facts of a cluster as YAML, for `check --facts`
    ///
    /// Namespaces, StorageClasses, CSIDrivers, Nodes, PersistentVolumes and PersistentVolumeClaims,
    /// reduced to the fields that decide. Parameters that may be secret are REDACTED. Workloads are
    /// not in it: only `check --cluster` sees those that share a volume with a manifest.
    Snapshot(SnapshotOptions),
    /// Print the policies that refuse certain faults while the webhook is away
    ///
    /// The CustomResourceDefinition of their parameters, which `serve --admission-policies` writes,
    /// and the ValidatingAdmissionPolicies. docs/always-there.md says what they refuse.
    Policies(PoliciesOptions),
    /// Print a script that completes commands in a shell
    ///
    /// For bash:
    ///
    /// source <(multi-attach-guard completion bash)
    Completion(CompletionOptions),
    /// Print the version
    Version,
    /// Write shell completions and manual pages into a directory
    #[command(hide = true)]
    Dist(DistOptions),
    /// Start a program that may do no more than it is told, for `check`
    #[command(hide = true)]
    Confine(ConfineOptions),
}

/// Reads the arguments of the program. If a shell asks for words, prints them and exits.
///
/// # Errors
///
/// Returns the exit code if the arguments name what another option of this program does.
pub fn parse() -> Result<Cli, ExitCode> {
    completion::answer();
    Cli::try_parse().map_err(|error| {
        let is_check = std::env::args_os().nth(1).is_some_and(|command| command == "check");
        // Users of kubectl and of other linters expect it.
        let expected = ContextValue::String("--dry-run".to_owned());
        if !is_check || error.get(ContextKind::InvalidArg) != Some(&expected) {
            error.exit()
        }
        output::complain(
            &"`check --diff` prints what `check --fix` would change, and changes nothing.",
        );
        ExitCode::from(2)
    })
}

/// Runs a command to its end. Errors go to standard error.
pub fn run(cli: &Cli) -> ExitCode {
    match &cli.command {
        Command::Serve(options) => match serve::run(options) {
            Ok(_) => ExitCode::SUCCESS,
            Err(error) => {
                output::complain(&error);
                error.exit_code()
            }
        },
        Command::Check(options) => output::exit_code(check::run(options)),
        Command::Lsp(options) => output::exit_code(lsp::run(options)),
        Command::Audit(options) => output::exit_code(audit::run(options)),
        Command::Diagnose(options) => output::exit_code(diagnose::run(options)),
        Command::Capabilities(options) => output::exit_code(capabilities::run(options)),
        Command::Rules(options) => rules::run(options),
        Command::Snapshot(options) => output::exit_code(snapshot::run(options)),
        Command::Policies(options) => policies::run(*options),
        Command::Completion(options) => completion::print_script(*options),
        Command::Version => output::print("version", Cli::command().render_version().as_bytes()),
        Command::Dist(options) => dist::run(options),
        Command::Confine(options) => confine(options),
    }
}

/// Becomes the program of `check` that must be confined.
fn confine(options: &ConfineOptions) -> ExitCode {
    // The code of shells for a program that they cannot start.
    const NOT_STARTED: u8 = 126;
    match render::confine(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::complain(&error);
            ExitCode::from(NOT_STARTED)
        }
    }
}
