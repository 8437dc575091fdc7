//! The controllers that create and delete pods: Deployment with its ReplicaSets, StatefulSet and DaemonSet.
//!
//! A ReplicaSet follows its Deployment at once, so the number of its active pods is its `spec.replicas`.

use crate::configuration::{Kind, Strategy};
use crate::machine::Machine;
use crate::state::{ACTIVE, PHASES, Phase, State, class};

impl Machine<'_> {
    /// The number of pods that exist before the first step. The controllers of StatefulSets and
    /// DaemonSets create theirs step by step.
    pub(crate) fn created_at_once(&self, workload: usize) -> u8 {
        let template = self.template(class(workload, 0));
        match template.kind {
            Kind::Deployment(_) | Kind::ReplicaSet | Kind::Job { .. } => {
                template.pods(self.configuration.nodes())
            }
            Kind::StatefulSet | Kind::DaemonSet => 0,
        }
    }

    /// Appends the states after each possible step of the workload's controller.
    pub(crate) fn control(&self, state: &State, workload: usize, next: &mut Vec<State>) {
        let rolling = self.rollout == Some(workload);
        match self.template(class(workload, 1)).kind {
            Kind::Deployment(Strategy::Recreate) if rolling => self.recreate(state, workload, next),
            Kind::Deployment(strategy) if rolling => {
                self.rolling_update(state, workload, strategy, next);
            }
            Kind::StatefulSet => self.stateful_set(state, workload, rolling, next),
            Kind::DaemonSet => self.daemon_set(state, workload, rolling, next),
            Kind::Job { .. } => self.job(state, workload, next),
            Kind::Deployment(_) | Kind::ReplicaSet => {}
        }
    }

    /// `rolloutRecreate`: scale the old ReplicaSet to zero, wait until its pods are gone, including
    /// Terminating ones, then scale the new one up. The new one may already have pods if the
    /// strategy was changed during a rollout.
    fn recreate(&self, state: &State, workload: usize, next: &mut Vec<State>) {
        let (old, new) = (class(workload, 0), class(workload, 1));
        if state.active(old) > 0 {
            self.scale_down(state, workload, state.active(old), next);
        } else if state.total(old, Phase::Terminating) == 0 {
            let missing = self.template(new).replicas - state.active(new);
            if missing > 0 {
                let mut after = *state;
                after.set_pending(new, state.pending(new) + missing);
                next.push(after);
            }
        }
    }

    /// `rolloutRolling`: scale the new ReplicaSet up if the surge allows it, else scale the old one
    /// down if availability allows it. Neither counts Terminating pods.
    fn rolling_update(
        &self,
        state: &State,
        workload: usize,
        strategy: Strategy,
        next: &mut Vec<State>,
    ) {
        let (old, new) = (class(workload, 0), class(workload, 1));
        let replicas = self.template(new).replicas;
        let Some((surge, unavailable)) = strategy.resolve(replicas) else {
            return;
        };
        let (old_pods, new_pods) = (state.active(old), state.active(new));
        if new_pods < replicas && old_pods + new_pods < replicas + surge {
            let more = (replicas + surge - old_pods - new_pods).min(replicas - new_pods);
            let mut after = *state;
            after.set_pending(new, state.pending(new) + more);
            next.push(after);
            return;
        }
        let (old_available, new_available) =
            (state.total(old, Phase::Running), state.total(new, Phase::Running));
        let least_available = replicas - unavailable;
        let removable = (old_pods + new_available).saturating_sub(least_available);
        let unhealthy = removable.min(old_pods - old_available);
        let surplus = (old_available + new_available).saturating_sub(least_available);
        let down = if removable == 0 { 0 } else { unhealthy + surplus.min(old_pods - unhealthy) };
        if down > 0 {
            self.scale_down(state, workload, down, next);
        }
    }

    /// Deletes pods of the old ReplicaSet in the order of `ActivePodsWithRanks`: unscheduled, not
    /// ready, ready. Among pods of equal readiness, pods that share their node with more pods of
    /// the Deployment go first. Every order of equal pods is explored.
    fn scale_down(&self, state: &State, workload: usize, pods: u8, next: &mut Vec<State>) {
        let (old, new) = (class(workload, 0), class(workload, 1));
        let mut after = *state;
        let unscheduled = pods.min(state.pending(old));
        after.set_pending(old, state.pending(old) - unscheduled);
        let rank =
            |node: usize| state.on_node(old, &ACTIVE, node) + state.on_node(new, &ACTIVE, node);
        let ranks: Vec<u8> = (0..self.nodes()).map(rank).collect();
        self.delete_ranked(&after, old, pods - unscheduled, &ranks, next);
    }

    fn delete_ranked(
        &self,
        state: &State,
        old: usize,
        pods: u8,
        ranks: &[u8],
        next: &mut Vec<State>,
    ) {
        if pods == 0 {
            next.push(*state);
            return;
        }
        let phase =
            if state.total(old, Phase::Waiting) > 0 { Phase::Waiting } else { Phase::Running };
        let candidates = || (0..self.nodes()).filter(|node| state.count(old, phase, *node) > 0);
        let worst = candidates().map(|node| ranks[node]).max();
        for node in candidates().filter(|node| Some(ranks[*node]) == worst) {
            self.delete_ranked(&deleted(state, old, phase, node), old, pods - 1, ranks, next);
        }
    }

    /// Ordered: a pod is created when all the others run. A rollout deletes one pod at a time and
    /// creates its successor when it is gone.
    fn stateful_set(&self, state: &State, workload: usize, rolling: bool, next: &mut Vec<State>) {
        let classes = [class(workload, 0), class(workload, 1)];
        let running: u8 = classes.iter().map(|class| state.total(*class, Phase::Running)).sum();
        let all: u8 = classes
            .iter()
            .map(|class| state.active(*class) + state.total(*class, Phase::Terminating))
            .sum();
        if running < all {
            return;
        }
        if all < self.template(classes[1]).replicas {
            let mut after = *state;
            after.set_pending(classes[usize::from(rolling)], 1);
            next.push(after);
        } else if rolling {
            self.delete_any_running(state, classes[0], next);
        }
    }

    /// A node without a pod gets a new one, which is bound to it. A rollout deletes old pods while
    /// every node has a running one (`maxUnavailable: 1`).
    fn daemon_set(&self, state: &State, workload: usize, rolling: bool, next: &mut Vec<State>) {
        let (old, new) = (class(workload, 0), class(workload, 1));
        let newest = class(workload, usize::from(rolling));
        let template = self.template(newest);
        let nodes = template.daemon_nodes(self.configuration.nodes());
        let daemons =
            |node: usize| state.on_node(old, &PHASES, node) + state.on_node(new, &PHASES, node);
        for node in (0..self.nodes()).filter(|node| nodes.has(*node) && daemons(*node) == 0) {
            if self.fits(state, newest, node) {
                let mut after = *state;
                after.add(newest, Phase::Waiting, node);
                next.push(after);
            }
        }
        let running = state.total(old, Phase::Running) + state.total(new, Phase::Running);
        if rolling && running == nodes.len() {
            self.delete_any_running(state, old, next);
        }
    }

    /// A Job's running pods finish at any time and are not replaced.
    fn job(&self, state: &State, workload: usize, next: &mut Vec<State>) {
        let class = class(workload, 0);
        for node in (0..self.nodes()).filter(|node| state.count(class, Phase::Running, *node) > 0) {
            let mut after = *state;
            after.remove(class, Phase::Running, node);
            after.finish(class);
            next.push(after);
        }
    }

    /// Deletes any one running pod, or all of them, from outside. A ReplicaSet replaces them at
    /// once, other controllers in their own steps. A Job's pods are left alone: they end soon
    /// anyway.
    pub(crate) fn lose(&self, state: &State, class: usize, next: &mut Vec<State>) {
        let kind = self.template(class).kind;
        if kind.ends() {
            return;
        }
        let first = next.len();
        self.delete_any_running(state, class, next);
        let all = (0..self.nodes()).fold(*state, |after, node| {
            (0..state.count(class, Phase::Running, node))
                .fold(after, |after, _| deleted(&after, class, Phase::Running, node))
        });
        if all.total(class, Phase::Terminating) > 1 {
            next.push(all);
        }
        if matches!(kind, Kind::Deployment(_) | Kind::ReplicaSet) {
            for after in &mut next[first..] {
                after.set_pending(class, after.total(class, Phase::Terminating));
            }
        }
    }

    fn delete_any_running(&self, state: &State, class: usize, next: &mut Vec<State>) {
        let running =
            (0..self.nodes()).filter(|node| state.count(class, Phase::Running, *node) > 0);
        next.extend(running.map(|node| deleted(state, class, Phase::Running, node)));
    }

    /// Whether every pod of the newest revision runs, and no pod of the other one is left.
    pub(crate) fn satisfied(&self, state: &State, workload: usize) -> bool {
        let rolling = self.rollout == Some(workload);
        let newest = class(workload, usize::from(rolling));
        let wanted = self.template(newest).pods(self.configuration.nodes());
        state.total(newest, Phase::Running) + state.finished(newest) == wanted
            && (!rolling || state.active(class(workload, 0)) == 0)
    }
}

fn deleted(state: &State, class: usize, phase: Phase, node: usize) -> State {
    let mut after = *state;
    after.remove(class, phase, node);
    after.add(class, Phase::Terminating, node);
    after
}
