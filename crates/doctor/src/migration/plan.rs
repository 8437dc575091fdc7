//! A plan: what there is to know and to decide, and the steps in their order.

use serde_json::Value;

use super::error::MigrationBlocked;
use super::inputs::Inputs;
use super::snapshot;
use super::step::{Action, Manifest, Step};
use super::steps;
use super::subject::Subject;
use super::target::Target;
use super::users::{self, Stranger, User};
use super::{CopyBy, MigrationInput, Wanted, new_claim};
use crate::diagnosis::Delivery;
use engine::model::access_mode::{AccessMode, VolumeMode};
use engine::model::object::{ObjectKind, ObjectRef};
use engine::model::workload::WorkloadKind;

/// The whole way for one claim.
#[derive(Clone, Debug)]
pub struct MigrationPlan {
    /// What the way is, as a title.
    pub title: String,
    /// What commands begin with.
    pub kubectl: String,
    /// From where to where, in lines with a name each.
    pub facts: Vec<Fact>,
    /// What the reader has to decide first: sentences.
    pub decide: Vec<String>,
    /// What does not come along: sentences.
    pub lost: Vec<String>,
    /// What could not be seen: sentences.
    pub open: Vec<String>,
    /// What to do, in this order.
    pub steps: Vec<Step>,
    /// The way back: what to do instead of going on.
    pub back: Step,
}

/// A line with a name.
#[derive(Clone, Debug)]
pub struct Fact {
    /// What it is about.
    pub name: &'static str,
    /// The line.
    pub value: String,
}

impl MigrationPlan {
    /// The objects, in the order in which they are applied.
    pub fn manifests(&self) -> impl Iterator<Item = &Manifest> {
        let actions = self.steps.iter().flat_map(|step| &step.actions);
        actions.filter_map(|action| match action {
            Action::Apply(manifest) => Some(manifest),
            Action::Run(_) => None,
        })
    }
}

/// Resources without which the plan may be wrong, and the question that each would answer.
const QUESTIONS: [(&str, &str); 9] = [
    (
        "pods",
        "which pods use the claim, so that something may be left running while it is copied",
    ),
    ("deployments", "which Deployments use the claim"),
    (
        "statefulsets",
        "which StatefulSets use the claim, or make it from a template",
    ),
    ("cronjobs", "which CronJobs use the claim"),
    ("daemonsets", "which DaemonSets use the claim"),
    (
        "horizontalpodautoscalers",
        "whether an autoscaler scales what uses it",
    ),
    (
        "persistentvolumes",
        "which driver the volume is of, and how large it really is",
    ),
    ("volumeattachments", "which node has the volume"),
    (
        "nodes",
        "whether the node that has the volume is healthy, and what it tolerates",
    ),
];

/// Words in a name for what can be made anew.
const CACHES: [&str; 6] = ["cache", "tmp", "temp", "scratch", "build", "artifacts"];

/// The way that is wanted. `documents` gives objects as the API server has them, in the
/// order of the request.
///
/// # Errors
/// When there is no way, and what to do instead.
pub fn plan(
    facts: MigrationInput<'_>,
    wanted: Wanted<'_>,
    documents: impl FnOnce(&[(ObjectKind, ObjectRef)]) -> Vec<Option<Value>>,
) -> Result<MigrationPlan, MigrationBlocked> {
    if wanted.mode != AccessMode::ReadWriteMany {
        return Err(MigrationBlocked::Mode(wanted.mode));
    }
    let subject = Subject::of(wanted, facts)?;
    let target = Target::of(&subject, wanted, facts)?;
    let name = new_claim::name(wanted, facts)?;
    let snapshot_class = match wanted.copy {
        CopyBy::Snapshot => snapshot::class(&subject, &target, wanted, facts)?,
        CopyBy::Job | CopyBy::Nothing => None,
    };
    let mut requested: Vec<_> = subject.users.iter().map(User::reference).collect();
    let claim = ObjectKind::Claim;
    requested.push((claim, claim.reference(wanted.namespace, wanted.claim)));
    let documents: Vec<Value> = documents(&requested).into_iter().flatten().collect();
    let mut deliveries = Vec::new();
    for delivery in documents.iter().filter_map(Delivery::of) {
        if !deliveries.contains(&delivery) {
            deliveries.push(delivery);
        }
    }
    let inputs = Inputs {
        wanted,
        facts,
        subject: &subject,
        target: &target,
        name: &name,
        snapshot_class,
        deliveries: &deliveries,
    };
    let steps = steps::all(&inputs);
    Ok(MigrationPlan {
        title: inputs.words("plan.title", &[("modes", &subject.modes().to_string())]),
        kubectl: facts.cluster.kubectl.to_owned(),
        facts: facts_of(&inputs, &steps),
        decide: to_decide(&inputs),
        lost: lost(&inputs, &documents),
        open: open(facts),
        back: steps::back(&inputs),
        steps,
    })
}

fn facts_of(inputs: &Inputs<'_>, steps: &[Step]) -> Vec<Fact> {
    let Inputs {
        subject, target, ..
    } = inputs;
    let size = new_claim::size(subject.size);
    let driver = |driver: &str| match driver {
        "" => String::new(),
        name => format!(" ({name})"),
    };
    let mut from = format!("claim {}, {size}, {}", inputs.wanted.claim, subject.modes());
    if let Some(class) = subject.claim.class().filter(|class| !class.is_empty()) {
        from += &format!(", class {class}{}", driver(&subject.driver));
    }
    if !subject.volume_name().is_empty() {
        from += &format!(", volume {}", subject.volume_name());
    }
    if let Some(node) = subject.node {
        from += &format!(", on node {}", node.name);
    }
    let to = format!(
        "claim {}, {size}, {}, class {}{}",
        inputs.name,
        inputs.wanted.mode,
        target.class,
        driver(&target.driver)
    );
    let mut facts = vec![
        Fact {
            name: "From",
            value: from,
        },
        Fact {
            name: "To",
            value: to,
        },
        Fact {
            name: "How sure",
            value: target.sure.clone(),
        },
    ];
    let others: Vec<String> = target
        .others
        .iter()
        .map(|it| format!("{}{}", it.metadata.name, driver(it.driver())))
        .collect();
    if !others.is_empty() {
        facts.push(Fact {
            name: "Or",
            value: inputs.words("plan.others", &[("others", &others.join(", "))]),
        });
    }
    facts.push(Fact {
        name: "Used by",
        value: used_by(subject),
    });
    let still: Vec<usize> = (1..)
        .zip(steps)
        .filter(|(_, step)| step.is_standstill())
        .map(|(number, _)| number)
        .collect();
    let value = match (still.first(), still.last()) {
        (Some(first), Some(last)) => {
            let values = [("first", first.to_string()), ("last", last.to_string())];
            let values = values
                .each_ref()
                .map(|(name, value)| (*name, value.as_str()));
            inputs.words("plan.standstill", &values)
        }
        _ => inputs.words("plan.no-standstill", &[]),
    };
    facts.push(Fact {
        name: "Standstill",
        value,
    });
    facts
}

fn used_by(subject: &Subject<'_>) -> String {
    let users = subject.users.iter().map(|user| {
        let mut text = user.shown();
        let workload = user.workload;
        if workload.replicas > 1 {
            text += &format!(" ({} pods)", workload.replicas);
        } else if !user.runs() {
            text += " (no pods)";
        }
        let autoscalers = user.autoscalers.iter();
        for autoscaler in autoscalers {
            text += &format!(" with HorizontalPodAutoscaler {}", autoscaler.metadata.name);
        }
        text
    });
    let all: Vec<String> = users
        .chain(subject.strangers.iter().map(Stranger::shown))
        .collect();
    if all.is_empty() {
        "nothing".to_owned()
    } else {
        all.join(", ")
    }
}

fn to_decide(inputs: &Inputs<'_>) -> Vec<String> {
    let claim = inputs.wanted.claim;
    let mut questions = Vec::new();
    if inputs.wanted.copy != CopyBy::Nothing {
        let hint = if CACHES.iter().any(|word| claim.contains(word)) {
            " Its name says that it may be."
        } else {
            ""
        };
        questions.push(inputs.words("decide.data", &[("hint", hint)]));
    }
    questions.push(inputs.words("decide.writers", &[]));
    if inputs.subject.claim.spec.volume_mode == VolumeMode::Filesystem {
        questions.push(inputs.words("decide.speed", &[]));
    }
    questions.push(inputs.words("decide.backup", &[]));
    questions
}

fn lost(inputs: &Inputs<'_>, documents: &[Value]) -> Vec<String> {
    let kept = inputs.target.kept;
    let of_files = match inputs.wanted.copy {
        CopyBy::Nothing => inputs.words("lost.everything", &[]),
        CopyBy::Snapshot => inputs.words("lost.snapshot", &[]),
        CopyBy::Job if kept.lost.is_empty() => inputs.words("lost.nothing", &[]),
        CopyBy::Job => kept.lost.to_owned(),
    };
    let mut lost = vec![of_files];
    lost.push(inputs.words("lost.backups", &[]));
    lost.push(inputs.words("lost.labels", &[]));
    for document in documents {
        let kind = document["kind"].as_str().unwrap_or_default();
        let path = WorkloadKind::from_name(kind).map(users::pod_spec);
        let Some(pods) = path.and_then(|path| document.pointer(&path)) else {
            continue;
        };
        if let Some(group) = pods["securityContext"]["fsGroup"].as_i64() {
            let name = document["metadata"]["name"].as_str().unwrap_or_default();
            let (workload, group) = (format!("{kind} {name}"), group.to_string());
            let values = [("workload", workload.as_str()), ("group", &group)];
            lost.push(inputs.words("lost.group", &values));
        }
    }
    lost
}

fn open(facts: MigrationInput<'_>) -> Vec<String> {
    let unread = facts.cluster.observed.unread.iter();
    unread
        .filter_map(|unread| {
            let known = QUESTIONS.iter().find(|(name, _)| unread.resource == *name);
            let (_, question) = known?;
            Some(unread.leaves_open(question))
        })
        .collect()
}
