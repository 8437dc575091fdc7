//! `completion`: prints a script for a shell. The script asks this program for the words that may
//! follow, because contexts and namespaces differ from one day to the next.

use std::env;
use std::io;
use std::process::ExitCode;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use clap::{Args, Command, CommandFactory, FromArgMatches};
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use clap_complete::env::Shells;
use clap_complete::{CompleteEnv, Shell};
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::ListParams;
use tokio::runtime::Builder;

use super::Cli;
use super::cluster::ClusterArgs;
use super::output::{complain, print};
use source::connect::{Access, client};

/// The name of the program in shells.
pub(super) const NAME: &str = "multi-attach-guard";

/// The variable that a script sets when it asks for words.
const ASKED: &str = "MULTI_ATTACH_GUARD_COMPLETE";

/// The time that a cluster may take to name its namespaces, while a user waits.
const NAMESPACES: Duration = Duration::from_secs(5);

/// The options of `completion`.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct CompletionOptions {
    /// Shell that the script is for
    #[arg(value_enum)]
    pub shell: Shell,
}

/// Answers the script of a shell and exits, if one asks.
pub(super) fn answer() {
    CompleteEnv::with_factory(offered).var(ASKED).complete();
}

pub(super) fn print_script(options: CompletionOptions) -> ExitCode {
    match script(options.shell) {
        Ok(script) => print("completion", &script),
        Err(error) => {
            complain(&error);
            ExitCode::from(2)
        }
    }
}

/// The script that completes commands in a shell.
pub(super) fn script(shell: Shell) -> io::Result<Vec<u8>> {
    let shells = Shells::builtins();
    let completer = shells.completer(&shell.to_string()).ok_or(io::ErrorKind::Unsupported)?;
    let mut script = Vec::new();
    completer.write_registration(ASKED, NAME, NAME, NAME, &mut script)?;
    if shell == Shell::Zsh {
        // If zsh loads the script as the function `_multi-attach-guard`, this is its first call.
        script.extend(b"[[ $funcstack[1] != _multi-attach-guard ]] || _clap_dynamic_completer_multi_attach_guard \"$@\"\n");
    }
    Ok(script)
}

/// The commands that are completed: those that are not hidden.
fn offered() -> Command {
    let all = Cli::command();
    let shown = all.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    Command::new(NAME).version(env!("CARGO_PKG_VERSION")).subcommands(shown)
}

/// These words.
pub(super) fn words<const N: usize>(words: [&'static str; N]) -> ArgValueCandidates {
    ArgValueCandidates::new(move || candidates(words))
}

/// The contexts of the kubeconfig.
pub(super) fn contexts() -> ArgValueCandidates {
    ArgValueCandidates::new(|| candidates(typed().access().contexts()))
}

/// The namespaces of the cluster; none if it does not name them in time.
pub(super) fn namespaces() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let (sender, listed) = channel();
        let access = typed().access();
        // A program that the kubeconfig names for the login may wait for a person.
        thread::spawn(move || sender.send(namespaces_of(&access)));
        let names = listed.recv_timeout(NAMESPACES).ok().flatten();
        candidates(names.unwrap_or_default())
    })
}

fn candidates(words: impl IntoIterator<Item = impl Into<String>>) -> Vec<CompletionCandidate> {
    words.into_iter().map(|word| CompletionCandidate::new(word.into())).collect()
}

fn namespaces_of(access: &Access) -> Option<Vec<String>> {
    let list = async {
        let client = client(access.config().await.ok()?).ok()?;
        let list =
            Api::<Namespace>::all(client).list_metadata(&ListParams::default()).await.ok()?;
        Some(list.items.into_iter().filter_map(|namespace| namespace.metadata.name).collect())
    };
    let runtime = Builder::new_current_thread().enable_all().build().ok()?;
    runtime.block_on(list)
}

/// The cluster that the words name that were typed up to now.
fn typed() -> ClusterArgs {
    let words = env::args_os().skip_while(|word| word != "--").skip(1);
    let matches = offered().ignore_errors(true).try_get_matches_from(words).ok();
    let cluster = matches.as_ref().and_then(|matches| {
        let (_, options) = matches.subcommand()?;
        ClusterArgs::from_arg_matches(options).ok()
    });
    cluster.unwrap_or_default()
}
