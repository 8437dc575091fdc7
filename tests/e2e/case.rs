//! Cases as data.
//!
//! ```yaml
//! - kind: Deployment               # with `operation` and the verdict, its name
//!   operation: kubectl scale up
//!   policy: deny                   # which policy; `deny`, the built-in one, if left out
//!   claims: {data: rwo}            # claims that exist, bound unless they say otherwise
//!   given: [{kind: Deployment}]    # workloads that exist, made without the guard
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

use crate::objects::Object;
use crate::said::Said;

/// One case: what exists, what a user does, what they are answered and what is stored.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    /// The kind the case is about; for flows, the flow.
    pub(crate) kind: String,
    /// What is done to it.
    pub(crate) operation: String,
    /// The first part of the namespace's name, by which the policy goes.
    #[serde(default = "deny")]
    pub(crate) policy: String,
    /// Claims that exist, each with what [`claim`](crate::objects::claim) calls it.
    #[serde(default)]
    pub(crate) claims: BTreeMap<String, String>,
    /// Other objects that exist.
    #[serde(default)]
    pub(crate) given: Vec<Object>,
    #[serde(flatten)]
    first: Step,
    #[serde(default)]
    then: Vec<Step>,
}

/// Something a user does, and what comes of it.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Step {
    /// What they do.
    pub(crate) r#do: Command,
    /// The answer.
    pub(crate) expect: Said,
    /// Parts of its text.
    #[serde(default)]
    pub(crate) says: Vec<String>,
    /// Another command that the guard must refuse first, so that its silence about
    /// this one is known not to be ignorance.
    #[serde(default)]
    pub(crate) contrast: Option<Command>,
    /// Why its denial does not follow from the object and what is written down about its
    /// namespace, so that it passes while the guard is away.
    #[serde(default)]
    pub(crate) uncertain: Option<Uncertain>,
    /// The first attempt counts: nothing is waited for, nothing tried dry.
    #[serde(default)]
    pub(crate) at_once: bool,
    /// What a refused command stores all the same, as `Kind/name`.
    #[serde(default)]
    pub(crate) stores: Vec<String>,
    /// Nothing is stored, though nothing is refused.
    #[serde(default)]
    pub(crate) changes_nothing: bool,
    /// What is stored afterwards: `Kind/name`, JSON pointer, value (`null`: nothing).
    #[serde(default)]
    pub(crate) stored: BTreeMap<String, BTreeMap<String, Value>>,
}

/// What a denial depends on that the API server cannot know by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Uncertain {
    /// Another workload, autoscaler or volume, which may be changed or gone since its facts
    /// were written.
    Others,
    /// The nodes that a node selector or a volume chooses.
    Nodes,
    /// What the pods' own affinity does.
    Affinity,
    /// The time of day, which policies do not have: overrides that end, heartbeats of nodes.
    Clock,
}

impl Uncertain {
    /// The reason in a few words.
    pub(crate) const fn reason(self) -> &'static str {
        match self {
            Self::Others => "another object decides",
            Self::Nodes => "the nodes decide",
            Self::Affinity => "the pods' affinity decides",
            Self::Clock => "the time decides",
        }
    }
}

/// A command on the user's keyboard.
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
    /// `kubectl create --raw` of this Deployment: kubectl sends it as it stands, where it
    /// would else write each `<` as six bytes.
    CreateRaw(Box<Object>),
    /// `kubectl replace` of this object, merged into what is stored: what `kubectl
    /// edit` does.
    Edit(BTreeMap<String, Value>),
    /// kubectl with these arguments.
    Kubectl(String),
    /// The same, and the API server does not ask the guard.
    Unguarded(String),
}

fn deny() -> String {
    "deny".to_owned()
}

impl Case {
    /// Kind, operation and verdict.
    pub(crate) fn name(&self) -> String {
        format!("{} | {} | {}", self.kind, self.operation, self.verdict())
    }

    /// The answer to each step.
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
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    // Much of a file is aliases, which the default budget takes for an attack.
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
