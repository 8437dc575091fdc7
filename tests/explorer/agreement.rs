//! Whether the engine says what the model finds.

use engine::rules::{self, codes};
use engine::verdict::Verdict;

use crate::configuration::{Access, Affinity, Configuration, Kind, Workload};
use crate::explore::{Outcome, Worst};
use crate::machine::Holder;
use crate::survey::Survey;

/// What the engine says of one workload: rules and outcomes.
pub(crate) type Said = Vec<(&'static str, Outcome)>;

/// What comes of comparing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Comparison {
    Agrees,
    /// The engine is silent on purpose; see [`is_on_the_volumes_node`].
    Excepted,
    /// The pods of the two cannot always be placed, whatever the volume. Only a workload that does not look at the other
    /// one is compared, alone.
    Unplaceable,
    Differs,
}

/// The findings in the model's words.
pub(crate) fn said(verdict: &Verdict) -> Said {
    verdict
        .findings
        .iter()
        .map(|finding| {
            let outcome = match finding.outcome {
                rules::Outcome::Deadlock => Outcome::Deadlock,
                rules::Outcome::Stuck => Outcome::Stuck,
                rules::Outcome::Delay => Outcome::Delay,
                other => unreachable!("every fact is there, and yet: {other}"),
            };
            (finding.rule, outcome)
        })
        .collect()
}

/// The configurations that must have been explored beside this one to compare it.
pub(crate) fn needed(configuration: &Configuration) -> Vec<Configuration> {
    let mut needed = Vec::new();
    if configuration.workloads.len() > 1 {
        needed.push(with_free_volume(configuration));
        needed.extend(
            (0..configuration.workloads.len()).map(|own| with_volume_of(configuration, own)),
        );
    }
    needed
}

/// Compares what the engine says of each workload with what the model finds.
///
/// Each workload is compared while the others leave the volume alone, then it is seen whether the engine is right
/// about what their sharing it brings on top.
pub(crate) fn compare(configuration: &Configuration, said: &[Said], survey: &Survey) -> Comparison {
    let users = || (0..said.len()).filter(|user| configuration.workloads[*user].uses_volume);
    let unplaceable =
        said.len() > 1 && survey.worst(&with_free_volume(configuration)).outcome() != Outcome::None;
    let mut excepted = false;
    for user in users() {
        if unplaceable && configuration.workloads[user].looks_at_others(user) {
            continue;
        }
        let own: Vec<Outcome> = said[user]
            .iter()
            .filter(|(rule, _)| *rule != codes::WORKLOADS_SHARE_VOLUME)
            .map(|(_, outcome)| *outcome)
            .collect();
        let worst = survey.worst(&with_volume_of(configuration, user));
        let in_turn = may_take_turns(configuration, user)
            && worst.outcome() == Outcome::None
            && own.iter().all(|outcome| *outcome == Outcome::Delay);
        if in_turn || agrees_alone(&worst, &own) {
            continue;
        }
        if own.is_empty() && is_on_the_volumes_node(configuration, &configuration.workloads[user]) {
            excepted = true;
        } else {
            return Comparison::Differs;
        }
    }
    let idle: Vec<usize> = (0..said.len())
        .filter(|at| !configuration.workloads[*at].uses_volume)
        .collect();
    if idle.iter().any(|at| !said[*at].is_empty()) {
        return Comparison::Differs;
    }
    if unplaceable {
        return Comparison::Unplaceable;
    }
    if users().count() > 1 && !agrees_about_sharing(configuration, said, survey) {
        return Comparison::Differs;
    }
    if excepted {
        Comparison::Excepted
    } else {
        Comparison::Agrees
    }
}

/// Whether a Job has several pods at a time. They may have to take turns for a reason that the model does not see, as it
/// counts waits for a volume on another node alone, and none that the loss of a pod brings about: a port or a constraint
/// of theirs, a volume of one pod, or that they follow pods which move meanwhile. That is a delay to the engine.
fn may_take_turns(configuration: &Configuration, user: usize) -> bool {
    let workload = &configuration.workloads[user];
    workload.kind.ends() && workload.pods(configuration.nodes()) > 1
}

/// Whether findings about an update equal what the model finds of it: what the workload brings upon itself from now on,
/// and what becomes of the pods that are there.
pub(crate) fn agrees_about_update(after: &Worst, change: Outcome, said: &Said) -> bool {
    let said: Vec<Outcome> = said.iter().map(|(_, outcome)| *outcome).collect();
    if after.first == Outcome::Stuck {
        return said.contains(&Outcome::Stuck);
    }
    let said = said.into_iter().max().unwrap_or(Outcome::None);
    said == after.outcome().max(change)
}

/// Whether findings about a workload equal what the model finds of it.
///
/// The gravest finding is the worst outcome. Only where pods can never start, the engine looks at rollouts too: it must
/// say that pods are stuck, and may say that rollouts are deadlocked if they are, or if there is nothing to roll out
/// from.
fn agrees_alone(worst: &Worst, said: &[Outcome]) -> bool {
    if worst.first == Outcome::Stuck {
        let deadlocked = worst
            .rollouts
            .iter()
            .any(|it| matches!(it, Some(Outcome::Deadlock) | None));
        return said.contains(&Outcome::Stuck)
            && (deadlocked || !said.contains(&Outcome::Deadlock));
    }
    said.iter().copied().max().unwrap_or(Outcome::None) == worst.outcome()
}

/// Whether the engine says of workloads that share the volume what it brings upon them beyond what each of them has to
/// bear alone. Both workloads must get the same answer.
///
/// Where one of them is stuck or deadlocked alone, nothing can be seen of the other's share in it, but the engine may
/// only call them stuck if they are. A rollout that waits for a Job to run to its end is a delay to the model. The
/// engine keeps it to itself: the Job that follows a workload to its node is what it advises.
fn agrees_about_sharing(configuration: &Configuration, said: &[Said], survey: &Survey) -> bool {
    let shared: Vec<Option<Outcome>> = said
        .iter()
        .map(|said| {
            let finding = said
                .iter()
                .find(|(rule, _)| *rule == codes::WORKLOADS_SHARE_VOLUME);
            finding.map(|(_, outcome)| *outcome)
        })
        .collect();
    let whole = survey.worst(configuration);
    let alone: Outcome = (0..said.len())
        .map(|own| survey.worst(&with_volume_of(configuration, own)).outcome())
        .fold(Outcome::None, Outcome::max);
    let trapped = |outcome: Outcome| outcome >= Outcome::Stuck;
    let awaits_a_job = whole.first < Outcome::Delay && whole.wait <= Some(Holder::Job);
    shared.windows(2).all(|pair| pair[0] == pair[1])
        && match shared[0] {
            Some(Outcome::Stuck) => trapped(whole.outcome()),
            Some(Outcome::Delay) => trapped(alone) || whole.first == Outcome::Delay,
            Some(_) => false,
            None => {
                trapped(alone)
                    || whole.outcome() == alone
                    || (whole.outcome() == Outcome::Delay && awaits_a_job)
            }
        }
}

/// The exception: a volume that exists on one node keeps a DaemonSet's pods on other nodes from starting, but nothing
/// asks for it on a second node, so the engine is silent, as about all volumes that live on a node.
fn is_on_the_volumes_node(configuration: &Configuration, workload: &Workload) -> bool {
    let nodes = workload.daemon_nodes(configuration.nodes());
    workload.kind == Kind::DaemonSet
        && configuration.volume.access == Access::Exclusive
        && nodes.and(configuration.volume.nodes).len() == 1
        && nodes.len() > 1
}

fn with_free_volume(configuration: &Configuration) -> Configuration {
    let mut free = configuration.clone();
    free.volume.access = Access::Shared;
    free
}

/// The same with the volume left to this workload. The others are left out unless its affinity looks at them.
pub(crate) fn with_volume_of(configuration: &Configuration, own: usize) -> Configuration {
    let mut changed = configuration.clone();
    if !changed.workloads[own].looks_at_others(own) && changed.capacity.is_none() {
        let mut workload = changed.workloads[own];
        if let Affinity::Required { workloads, .. } = &mut workload.affinity {
            *workloads = 0b01;
        }
        changed.workloads = vec![workload];
    }
    let sole = changed.workloads.len() == 1;
    for (at, workload) in changed.workloads.iter_mut().enumerate() {
        workload.uses_volume &= sole || at == own;
    }
    changed
}
