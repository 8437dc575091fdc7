//! Compares the engine's findings with the model's.

use engine::rules::{self, codes};
use engine::verdict::Verdict;

use crate::configuration::{Access, Affinity, Configuration, Kind, Workload};
use crate::explore::{Outcome, Worst};
use crate::machine::Holder;
use crate::survey::Survey;

/// The engine's findings for one workload: rules and outcomes.
pub(crate) type Said = Vec<(&'static str, Outcome)>;

/// The result of a comparison.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Comparison {
    Agrees,
    /// The engine is silent on purpose; see [`is_on_the_volumes_node`].
    Excepted,
    /// The pods of both workloads cannot always be placed, even without the volume. Only workloads
    /// that do not look at the other one are compared, each alone.
    Unplaceable,
    Differs,
}

/// Translates the findings into the model's outcomes.
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

/// The configurations that must be explored before this one can be compared.
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

/// Compares the engine's findings for each workload with the model's.
///
/// Each workload is compared first while the others do not use the volume. Then the findings about
/// sharing are compared.
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
    let idle: Vec<usize> =
        (0..said.len()).filter(|at| !configuration.workloads[*at].uses_volume).collect();
    if idle.iter().any(|at| !said[*at].is_empty()) {
        return Comparison::Differs;
    }
    if unplaceable {
        return Comparison::Unplaceable;
    }
    if users().count() > 1 && !agrees_about_sharing(configuration, said, survey) {
        return Comparison::Differs;
    }
    if excepted { Comparison::Excepted } else { Comparison::Agrees }
}

/// Whether several pods of a Job run at a time. They may have to take turns, which is a delay to
/// the engine. The model does not see every reason for that: it counts only waits for a volume on
/// another node, and none that follow the loss of a pod. A port or constraint of the pods, a
/// ReadWriteOncePod volume, or affinity to pods that move meanwhile are such reasons.
fn may_take_turns(configuration: &Configuration, user: usize) -> bool {
    let workload = &configuration.workloads[user];
    workload.kind.ends() && workload.pods(configuration.nodes()) > 1
}

/// Whether the findings about an update equal the model's outcome: the worse of the outcome of the
/// new configuration and the outcome for the pods that exist.
pub(crate) fn agrees_about_update(after: &Worst, change: Outcome, said: &Said) -> bool {
    let mut outcomes = said.iter().map(|(_, outcome)| *outcome);
    if after.first == Outcome::Stuck {
        return outcomes.any(|outcome| outcome == Outcome::Stuck);
    }
    outcomes.max().unwrap_or(Outcome::None) == after.outcome().max(change)
}

/// Whether the findings about a workload equal the model's outcome.
///
/// The gravest finding must be the worst outcome. If pods can never start, the engine looks at
/// rollouts too: it must say that pods are stuck. It may also report a deadlock if a rollout
/// deadlocks or cannot even begin.
fn agrees_alone(worst: &Worst, said: &[Outcome]) -> bool {
    if worst.first == Outcome::Stuck {
        let deadlocked =
            worst.rollouts.iter().any(|rollout| matches!(rollout, Some(Outcome::Deadlock) | None));
        return said.contains(&Outcome::Stuck)
            && (deadlocked || !said.contains(&Outcome::Deadlock));
    }
    said.iter().copied().max().unwrap_or(Outcome::None) == worst.outcome()
}

/// Whether the engine's findings about sharing the volume equal the model's outcome beyond that of
/// each workload alone. Both workloads must get the same answer.
///
/// If one workload is stuck or deadlocked alone, the effect of sharing cannot be seen, but the
/// engine may only call them stuck if they are. A rollout that waits for a Job to end is a delay to
/// the model. The engine does not report it, because it recommends a Job that follows a workload to
/// its node.
fn agrees_about_sharing(configuration: &Configuration, said: &[Said], survey: &Survey) -> bool {
    let shared: Vec<Option<Outcome>> = said
        .iter()
        .map(|said| {
            let finding = said.iter().find(|(rule, _)| *rule == codes::WORKLOADS_SHARE_VOLUME);
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

/// The exception: a volume that exists on one node keeps a DaemonSet's pods on other nodes from
/// starting, but nothing attaches it to a second node. The engine is therefore silent, as it is for
/// all node-local volumes.
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

/// The configuration in which only this workload uses the volume. The others are left out unless
/// its affinity looks at them.
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
