//! Runs one case in its own namespace.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Value, json};

use crate::case::{Case, Command, Step};
use crate::guarded_cluster::GuardedCluster;
use crate::harness::shorthand::merge;
use crate::harness::{Namespace, Output, seen, wait_until};
use crate::install::UNGUARDED;
use crate::objects::{Object, claim, fill};
use crate::said::Said;
use crate::stored;

/// The time after which the guard must know the objects that were stored before a step.
const WITHIN: Duration = Duration::from_secs(120);

/// Commands without a dry run.
const NEVER_DRY: [&str; 4] = ["debug", "rollout restart", "rollout pause", "rollout resume"];

/// Runs the case.
///
/// # Errors
///
/// A sentence that describes the deviation from the case.
pub(crate) fn play(cluster: &GuardedCluster, case: &Case) -> Result<(), String> {
    let run = CaseRun::set(cluster, case)?;
    for (number, step) in case.steps().enumerate() {
        run.take(step).map_err(|reason| format!("Step {}: {reason}", number + 1))?;
    }
    Ok(())
}

/// A run of a case, in its own namespace.
pub(crate) struct CaseRun {
    namespace: Namespace<'static>,
}

impl CaseRun {
    /// Creates the namespace and the objects that exist before the first step.
    pub(crate) fn set(cluster: &GuardedCluster, case: &Case) -> Result<Self, String> {
        let namespace = Namespace::new(cluster.plane, &case.policy);
        let run = Self { namespace };
        for (name, called) in &case.claims {
            let (volume, mut manifest) = claim(called, &run.namespace, name);
            if let Some(volume) = volume {
                manifest["status"] = json!({
                    "phase": "Bound",
                    "accessModes": volume["spec"]["accessModes"],
                    "capacity": volume["spec"]["capacity"],
                });
                cluster.make("", &volume)?;
            }
            cluster.make(&run.namespace, &manifest)?;
        }
        for object in &case.given {
            cluster.make(&run.namespace, &object.manifest(&run.namespace))?;
        }
        Ok(run)
    }

    fn take(&self, step: &Step) -> Result<(), String> {
        if let Some(contrast) = &step.contrast {
            self.until("the contrast to be refused", || {
                let output = self.execute(None, contrast, true)?;
                seen(!Said::of(&output).denied.is_empty(), output)
            })?;
        }
        let before = stored::versions(&self.namespace);
        if !step.at_once && can_be_dry(&step.r#do) {
            self.until("the dry run to say the expected", || self.expected(step, true).map(drop))?;
            let after = stored::versions(&self.namespace);
            if after != before {
                return Err(format!("The dry run stored something: {before:?}, {after:?}"));
            }
        }
        let output = self.expected(step, false)?;
        let after = stored::versions(&self.namespace);
        let changed: BTreeSet<&String> = after
            .iter()
            .filter(|(object, version)| before.get(*object) != Some(version))
            .map(|(object, _)| object)
            .chain(before.keys().filter(|object| !after.contains_key(*object)))
            .collect();
        let expected: BTreeSet<&String> = step.stores.iter().collect();
        let as_expected = if step.expect.is_refusal() || step.changes_nothing {
            changed == expected
        } else {
            !changed.is_empty() && expected.is_subset(&changed)
        };
        if !as_expected {
            return Err(format!(
                "It changed {changed:?}, and was to change {expected:?}: {output:#?}"
            ));
        }
        for (object, values) in &step.stored {
            let found = stored::read(&self.namespace, object)
                .ok_or_else(|| format!("{object} is not there."))?;
            for (pointer, wanted) in values {
                let seen = found.pointer(pointer).unwrap_or(&Value::Null);
                if seen != wanted {
                    return Err(format!("{object} has {seen} at {pointer}, not {wanted}."));
                }
            }
        }
        Ok(())
    }

    /// Runs the step's command and compares the answer.
    fn expected(&self, step: &Step, dry: bool) -> Result<Output, String> {
        let output = self.execute(None, &step.r#do, dry)?;
        let said = Said::of(&output);
        if !said.is(&step.expect) {
            return Err(format!("{said:?} was said by {output:#?}"));
        }
        for part in &step.says {
            let part = part.replace("{ns}", &self.namespace);
            if !output.stderr.contains(&part) && !output.stdout.contains(&part) {
                return Err(format!("{part:?} is not said by {output:#?}"));
            }
        }
        Ok(output)
    }

    /// Runs the command as `user`, unless the command names another one.
    pub(crate) fn execute(
        &self,
        user: Option<&str>,
        command: &Command,
        dry: bool,
    ) -> Result<Output, String> {
        let text = match command {
            Command::Apply(_) => "apply -f -",
            Command::ServerSide(_) => "apply --server-side --force-conflicts -f -",
            Command::DryRun(_) => "apply --dry-run=server -f -",
            Command::Create(_) => "create -f -",
            // With --raw, kubectl has no other way to request a dry run.
            Command::CreateRaw(_) if dry => {
                "create --raw /apis/apps/v1/namespaces/{ns}/deployments?dryRun=All -f -"
            }
            Command::CreateRaw(_) => "create --raw /apis/apps/v1/namespaces/{ns}/deployments -f -",
            Command::Edit(_) => "replace -f -",
            Command::Kubectl(text) | Command::Unguarded(text) => text.as_str(),
        };
        let input = match command {
            Command::Apply(objects)
            | Command::ServerSide(objects)
            | Command::DryRun(objects)
            | Command::Create(objects) => Some(self.list(objects)),
            Command::CreateRaw(object) => Some(object.manifest(&self.namespace).to_string()),
            Command::Edit(changes) => Some(self.edited(changes)?),
            Command::Kubectl(_) | Command::Unguarded(_) => None,
        };
        let user = match command {
            Command::Create(objects) => self.controller(objects).or(user),
            Command::Unguarded(_) => Some(UNGUARDED),
            _ => user,
        };
        let mut arguments = self.words(text);
        if let Some(user) = user {
            arguments.push(format!("--as={user}"));
            arguments.push("--as-group=system:masters".to_owned());
        }
        if dry {
            arguments.push("--dry-run=server".to_owned());
        }
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        self.answered(&arguments, input.as_deref())
    }

    /// Repeats the command until the API server answers in time. It allows each request 34 s
    /// (`requestTimeoutUpperBound` in `k8s.io/apiserver`), which the largest objects can exceed on
    /// a busy machine; nothing is stored then.
    fn answered(&self, arguments: &[&str], input: Option<&str>) -> Result<Output, String> {
        self.until("the API server to answer in its time", || {
            let output = self.namespace.kubectl(arguments, input);
            let late = "did not complete within requested timeout";
            seen(!output.stderr.contains(late), output)
        })
    }

    /// The account that creates objects with a controller.
    fn controller(&self, objects: &[Object]) -> Option<&'static str> {
        let owner = objects.iter().find_map(|object| {
            object
                .manifest(&self.namespace)
                .pointer("/metadata/ownerReferences/0/apiVersion")
                .cloned()
        })?;
        Some(match owner.as_str() {
            Some("example.com/v1") => "system:serviceaccount:operators:operator",
            _ => "system:kube-controller-manager",
        })
    }

    /// The objects as one file.
    fn list(&self, objects: &[Object]) -> String {
        let documents: Vec<String> =
            objects.iter().map(|object| object.manifest(&self.namespace).to_string()).collect();
        documents.join("\n---\n")
    }

    /// The stored objects with the changes.
    fn edited(&self, changes: &BTreeMap<String, Value>) -> Result<String, String> {
        let mut documents = Vec::new();
        for (object, change) in changes {
            let mut manifest = stored::read(&self.namespace, object)
                .ok_or_else(|| format!("{object} is not there to be edited."))?;
            let mut change = change.clone();
            fill(&mut change, &self.namespace);
            merge(&mut manifest, &change);
            documents.push(manifest.to_string());
        }
        Ok(documents.join("\n---\n"))
    }

    /// Splits the text at spaces; `␣` stands for a space within an argument.
    fn words(&self, text: &str) -> Vec<String> {
        let text = text.replace("{ns}", &self.namespace);
        text.split(' ').map(|word| word.replace('␣', " ")).collect()
    }

    fn until<T>(
        &self,
        what: &str,
        question: impl FnMut() -> Result<T, String>,
    ) -> Result<T, String> {
        wait_until(&format!("{what} in {}", self.namespace), WITHIN, question)
    }
}

pub(crate) fn can_be_dry(command: &Command) -> bool {
    match command {
        Command::Kubectl(text) | Command::Unguarded(text) => {
            !NEVER_DRY.iter().any(|never_dry| text.starts_with(never_dry))
        }
        Command::DryRun(_) => false,
        _ => true,
    }
}
