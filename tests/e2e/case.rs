//! Cases as data.
//!
//! ```yaml
//! - kind: Deployment               # the case's name is kind, operation and verdict
//!   operation: kubectl scale up
//!   policy: deny                   # the policy; by default `deny`, the built-in one
//!   claims: {data: rwo}            # existing claims, bound by default
//!   given: [{kind: Deployment}]    # existing workloads, created without the guard
//!   do: {kubectl: scale deployment web --replicas=2}
//!   expect: deny autoscaler-exceeds-volume
//!   then:                          # further steps
//!   - do: …
//!     expect: …
//! ```

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;

use crate::harness::uncertain::Uncertain;
use crate::objects::Object;
use crate::said::Said;

/// One case: the existing objects, the user's action, the answer and the stored objects.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    /// The kind of the case's object; for flows, the flow.
    pub(crate) kind: String,
    /// The operation on it.
    pub(crate) operation: String,
    /// The first part of the namespace's name, which chooses the policy.
    #[serde(default = "deny")]
    pub(crate) policy: String,
    /// The existing claims, each with its name for [`claim`](crate::objects::claim).
    #[serde(default)]
    pub(crate) claims: BTreeMap<String, String>,
    /// Other existing objects.
    #[serde(default)]
    pub(crate) given: Vec<Object>,
    #[serde(flatten)]
    first: Step,
    #[serde(default)]
    then: Vec<Step>,
}

/// An action of a user, and its result.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Step {
    /// The action.
    pub(crate) r#do: Command,
    /// The answer.
    pub(crate) expect: Said,
    /// Parts of its text.
    #[serde(default)]
    pub(crate) says: Vec<String>,
    /// Another command that the guard must refuse first. This proves that it is not silent about
    /// the real one because it does not know the objects yet.
    #[serde(default)]
    pub(crate) contrast: Option<Command>,
    /// The reason for which such a request passes while the guard is away, if it does not follow
    /// from the rules.
    #[serde(default)]
    pub(crate) uncertain: Option<Uncertain>,
    /// The first attempt counts: the test neither waits nor makes a dry run.
    #[serde(default)]
    pub(crate) at_once: bool,
    /// The objects that a refused command stores nevertheless, as `Kind/name`.
    #[serde(default)]
    pub(crate) stores: Vec<String>,
    /// Nothing is stored although nothing is refused.
    #[serde(default)]
    pub(crate) changes_nothing: bool,
    /// The stored values afterwards: `Kind/name`, JSON pointer, value (`null`: nothing).
    #[serde(default)]
    pub(crate) stored: BTreeMap<String, BTreeMap<String, Value>>,
}

/// A command that a user types.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Command {
    /// `kubectl apply` of these objects in one file.
    Apply(Vec<Object>),
    /// `kubectl apply --server-side --force-conflicts` of these objects in one file.
    ServerSide(Vec<Object>),
    /// `kubectl apply --dry-run=server` of these objects in one file.
    DryRun(Vec<Object>),
    /// `kubectl create` of these objects in one file.
    Create(Vec<Object>),
    /// `kubectl create --raw` of this Deployment: kubectl sends it unchanged. Otherwise it writes
    /// each `<` as six bytes.
    CreateRaw(Box<Object>),
    /// `kubectl replace` of this object, merged into the stored one, as `kubectl edit` does.
    Edit(BTreeMap<String, Value>),
    /// kubectl with these arguments.
    Kubectl(String),
    /// kubectl with these arguments, without the guard.
    Unguarded(String),
}

fn deny() -> String {
    "deny".to_owned()
}

impl Case {
    /// The kind, the operation and the verdict.
    pub(crate) fn name(&self) -> String {
        format!("{} | {} | {}", self.kind, self.operation, self.verdict())
    }

    /// The answers to all steps.
    pub(crate) fn verdict(&self) -> String {
        let steps: Vec<String> = self.steps().map(|step| step.expect.in_a_word()).collect();
        steps.join(", then ")
    }

    /// All steps.
    pub(crate) fn steps(&self) -> impl Iterator<Item = &Step> {
        std::iter::once(&self.first).chain(&self.then)
    }
}

/// Every case of every file, in the order of the files' names.
pub(crate) fn all() -> Vec<Case> {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/e2e/cases"));
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    // Much of a file is aliases, which the default budget treats as an attack.
    let options = serde_saphyr::options! { budget: None };
    let mut cases: Vec<Case> = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let read: Vec<Case> = serde_saphyr::from_str_with_options(&text, options.clone())
            .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        for case in read {
            let name = case.name();
            assert!(
                cases.iter().all(|other| other.name() != name),
                "{}: there are two cases called {name}",
                file.display()
            );
            cases.push(case);
        }
    }
    cases
}
