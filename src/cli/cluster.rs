//! Facts about a live cluster, read once.

use std::collections::HashMap;
use std::convert::Infallible;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use kube::Config;
use serde_json::Value;
use tokio::runtime::Runtime;
use tokio::time::{Instant, sleep};

use super::completion;
use super::error::CommandError;
use super::output::complain;
use super::policies::{self, Installed};
use super::target::{Target, TargetError};
use doctor::diagnosis::{DiagnosisInput, command, remarks};
use engine::model::metadata::is_name;
use engine::model::object::{ObjectKind, ObjectRef};
use engine::model::server_version::ServerVersion;
use engine::snapshot::{Lookup, Snapshot};
use source::connect::{Access, client, reach};
use source::document;
use source::informer::Informer;
use source::one_shot::{self, OneShot};

/// The time that a cluster may take for its first answer.
const ANSWER: Duration = Duration::from_secs(10);

/// The time that a cluster may take to answer all lists.
const LISTS: Duration = Duration::from_secs(60);

/// The time between two signs of progress on a terminal.
const SIGN_OF_LIFE: Duration = Duration::from_millis(250);

/// Which cluster, and as whom: the options of kubectl. Whichever is given, it is the cluster
/// that is read, not files.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ClusterArgs {
    /// Kubeconfig file [default: $KUBECONFIG, or ~/.kube/config]
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// Context of the kubeconfig
    #[arg(long, value_name = "CONTEXT", add = completion::contexts())]
    pub context: Option<String>,

    /// User to impersonate
    #[arg(long = "as", value_name = "USER")]
    pub impersonate: Option<String>,

    /// Group to impersonate, in addition to --as (repeatable)
    #[arg(long = "as-group", value_name = "GROUP", requires = "impersonate")]
    pub impersonate_groups: Vec<String>,
}

/// Which part of a cluster: the options of kubectl.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ScopeArgs {
    /// Only this namespace; needs no rights in others
    #[arg(long, short, value_name = "NAMESPACE", add = completion::namespaces(), value_parser = NonEmptyStringValueParser::new())]
    pub namespace: Option<String>,

    /// All namespaces, as without -n
    #[arg(long, short = 'A', conflicts_with = "namespace")]
    pub all_namespaces: bool,
}

/// The part of a cluster that a command is about.
pub(super) struct Subject {
    /// The object that its name means.
    pub(super) target: Option<Target>,
    pub(super) namespace: Option<String>,
}

impl Subject {
    /// The error for a namespace that the cluster does not have.
    fn unknown(&self, namespace: &str) -> CommandError {
        let kind = self.target.as_ref().and_then(|target| target.unknown(namespace));
        kind.map_or_else(|| CommandError::Namespace(namespace.to_owned()), CommandError::Target)
    }

    /// The faults for which no pod waits, as far as they are about the target.
    pub(super) fn remarks(&self, facts: DiagnosisInput<'_>) -> impl Iterator<Item = String> {
        remarks(facts)
            .into_iter()
            .filter(|remark| self.target.as_ref().is_none_or(|target| target.is_meant_by(remark)))
            .map(|remark| remark.text)
    }
}

impl ScopeArgs {
    /// The part that the options and `name` mean together.
    pub(super) fn subject(&self, name: Option<&str>) -> Result<Subject, TargetError> {
        let target = name.map(Target::read).transpose()?;
        let option = self.namespace.as_deref();
        let namespace = match &target {
            Some(target) => target.namespace(option)?,
            None => option,
        };
        Ok(Subject { namespace: namespace.map(str::to_owned), target })
    }
}

impl ClusterArgs {
    /// Whether one of the options is given.
    pub(super) const fn is_given(&self) -> bool {
        self.kubeconfig.is_some() || self.context.is_some() || self.impersonate.is_some()
    }

    /// The cluster and the user that the options name.
    pub(super) fn access(&self) -> Access {
        Access {
            kubeconfig: self.kubeconfig.clone(),
            context: self.context.clone(),
            impersonate: self.impersonate.clone(),
            impersonate_groups: self.impersonate_groups.clone(),
        }
    }

    /// The beginning of printed kubectl commands about this cluster.
    pub(super) fn kubectl(&self) -> String {
        let names = ["kubeconfig", "context", "as", "as-group"];
        command::line("kubectl", &self.flags(names))
    }

    /// The beginning of printed helm commands about this cluster.
    pub(super) fn helm(&self) -> String {
        let names = ["kubeconfig", "kube-context", "kube-as-user", "kube-as-group"];
        command::line("helm", &self.flags(names))
    }

    /// The options under the names that a program gives them.
    fn flags(&self, [kubeconfig, context, user, group]: [&str; 4]) -> Vec<String> {
        let file = self.kubeconfig.as_ref().map(|path| path.display().to_string());
        let groups = self.impersonate_groups.iter().map(|name| (group, Some(name)));
        [
            (kubeconfig, file.as_ref()),
            (context, self.context.as_ref()),
            (user, self.impersonate.as_ref()),
        ]
        .into_iter()
        .chain(groups)
        .filter_map(|(flag, value)| Some(format!("--{flag}={}", value?)))
        .collect()
    }

    /// Connects to the cluster.
    pub(super) fn connect(&self) -> Result<Connection, CommandError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(CommandError::Runtime)?;
        let config = runtime.block_on(self.access().config())?;
        let (server, remark) = runtime.block_on(reach(&config, Instant::now() + ANSWER))?;
        if let Some(remark) = remark {
            complain(&remark);
        }
        Ok(Connection { runtime, config, server })
    }
}

/// A cluster that answered.
pub(super) struct Connection {
    runtime: Runtime,
    config: Config,
    server: ServerVersion,
}

impl Connection {
    /// The facts of the cluster. Only `kinds` are read, so no rights are needed for others.
    pub(super) fn read(
        &self,
        kinds: impl Fn(ObjectKind) -> bool,
    ) -> Result<Snapshot, CommandError> {
        self.runtime.block_on(async {
            let live = Informer::with_config(self.config.clone(), kinds);
            let synced = tokio::select! {
                synced = live.synced(Instant::now() + LISTS) => synced,
                never = show_progress(&live) => match never {},
            };
            if io::stderr().is_terminal() {
                // This clears the line of `show_progress`.
                let _ = write!(io::stderr(), "\r\x1b[K");
            }
            synced?;
            for status in live.statuses() {
                if status.malformed > 0 {
                    eprintln!(
                        "{} of the cluster's {} could not be read and are skipped.",
                        status.malformed,
                        status.kind.plural()
                    );
                }
            }
            let mut cluster = live.into_cluster();
            cluster.server = self.server;
            Ok(cluster)
        })
    }

    /// The input of a diagnosis, as far as it may be read; namespaced kinds are read only in the
    /// namespace of `subject` if it has one. Fails if there is no such namespace.
    pub(super) fn one_shot(&self, subject: &Subject) -> Result<OneShot, CommandError> {
        let namespace = subject.namespace.as_deref();
        // The name becomes a part of paths, so one with a `/` or `?` could reach something else.
        if let Some(name) = namespace.filter(|name| !is_name(name)) {
            return Err(subject.unknown(name));
        }
        let read = one_shot::read(self.config.clone(), namespace, Instant::now() + LISTS);
        let mut one_shot = self.runtime.block_on(read)?;
        one_shot.cluster.server = self.server;
        match namespace {
            Some(name) if one_shot.cluster.view().namespace(name) == Lookup::Absent => {
                Err(subject.unknown(name))
            }
            _ => Ok(one_shot),
        }
    }

    /// The state of the policies in the API server; `None` if it cannot be read.
    pub(super) fn installed_policies(&self) -> Option<Installed> {
        // The client starts a task, so it is created inside the runtime.
        self.runtime.block_on(async {
            let client = client(self.config.clone()).ok()?;
            policies::installed(&client).await.ok()
        })
    }

    /// The address of the API server.
    pub(super) fn url(&self) -> String {
        self.config.cluster_url.to_string()
    }

    /// These objects in full, without those that are gone.
    pub(super) fn documents(
        &self,
        wanted: &[ObjectRef],
    ) -> Result<HashMap<ObjectRef, Value>, CommandError> {
        let documents = document::documents(self.config.clone(), wanted);
        Ok(self.runtime.block_on(documents)?)
    }
}

/// Shows on a terminal how many objects have been read, and never ends.
async fn show_progress(live: &Informer) -> Infallible {
    loop {
        sleep(SIGN_OF_LIFE).await;
        if io::stderr().is_terminal() {
            let objects: usize = live.statuses().iter().map(|status| status.objects).sum();
            // Nothing depends on whether this line is written.
            let _ = write!(io::stderr(), "\rread {objects} objects of the cluster");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_that_cannot_exist_is_not_requested() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let config = Config::new("http://127.0.0.1:1".parse().unwrap());
        let connection = Connection { runtime, config, server: ServerVersion::default() };
        for namespace in ["../x", "a?x=y", "Shop"] {
            let scope = ScopeArgs { namespace: Some(namespace.to_owned()), ..ScopeArgs::default() };
            let refused = connection.one_shot(&scope.subject(None).unwrap()).unwrap_err();
            assert!(matches!(refused, CommandError::Namespace(name) if name == namespace));
        }
    }
}
