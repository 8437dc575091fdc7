//! Explores all states and finds the worst outcome.

use serde::Deserialize;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::configuration::{Configuration, Kind};
use crate::machine::{Holder, Machine};
use crate::state::State;

/// The outcomes, in the engine's terms, from harmless to worst.
///
/// `Stuck` and `Deadlock` mean that a state can be reached from which no sequence of steps leads to
/// the goal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Outcome {
    None,
    /// A pod may be scheduled to a node while another pod still holds the volume elsewhere; it always heals.
    Delay,
    /// Some pod may never start, even without a rollout.
    Stuck,
    /// A rollout may reach a state from which it can never finish.
    Deadlock,
}

/// All states that can be reached from some start states.
struct Exploration {
    /// The number of states.
    states: usize,
    /// The states in which every workload is complete.
    goals: Vec<State>,
    /// The states from which no goal can be reached.
    traps: Vec<State>,
    /// The worst wait for the volume in any state.
    wait: Option<Holder>,
}

impl Exploration {
    /// Follows every step from the given states up to the goals.
    fn to_goals(machine: &Machine<'_>, starts: impl IntoIterator<Item = State>) -> Self {
        let mut search = Search::from(machine, starts);
        search.go_on(Beyond::Nothing);
        search.finish()
    }

    /// Follows every step from the given states, also beyond goals, and then the steps after pods
    /// are lost.
    ///
    /// Pods are normally lost to drains, evictions and node failures. The states after such a loss
    /// are therefore goals too, if all is well in them, and a loss must not lead from a goal into a
    /// trap. But a rollout must not depend on a loss: a state that only a loss leads out of is a
    /// trap. The wait for a lost pod to terminate does not count. If no workload looks at another
    /// one's pods, losses change nothing and are not explored.
    fn of_life(machine: &Machine<'_>, starts: impl IntoIterator<Item = State>) -> Self {
        let mut search = Search::from(machine, starts);
        search.go_on(Beyond::Goals);
        if machine.configuration.can_part_by_losses() {
            let wait = search.wait;
            for quiet in 0..search.index.states.len() {
                search.lose_pods(quiet);
            }
            search.go_on(Beyond::Losses);
            search.wait = wait;
        }
        search.finish()
    }

    fn outcome(&self, trapped: Outcome) -> Outcome {
        if !self.traps.is_empty() {
            trapped
        } else if self.wait >= Some(Holder::Job) {
            Outcome::Delay
        } else {
            Outcome::None
        }
    }
}

/// The reach of a search.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Beyond {
    Nothing,
    Goals,
    Losses,
}

/// An exploration in progress.
struct Search<'m> {
    machine: &'m Machine<'m>,
    index: Index,
    /// The number of states whose steps have been followed.
    followed: usize,
    goals: Vec<usize>,
    wait: Option<Holder>,
    /// Pairs of state numbers: the second state leads to the first.
    edges: Vec<(usize, usize)>,
    next: Vec<State>,
}

impl<'m> Search<'m> {
    fn from(machine: &'m Machine<'m>, starts: impl IntoIterator<Item = State>) -> Self {
        let mut index = Index::default();
        for start in starts {
            index.number(machine.canonical(&start));
        }
        Self {
            machine,
            index,
            followed: 0,
            goals: Vec::new(),
            wait: None,
            edges: Vec::new(),
            next: Vec::new(),
        }
    }

    fn go_on(&mut self, beyond: Beyond) {
        while self.followed < self.index.states.len() {
            let from = self.followed;
            let state = self.index.states[from];
            self.wait = self.wait.max(self.machine.wait(&state));
            let is_goal = self.machine.goal(&state);
            if is_goal {
                self.goals.push(from);
            }
            if beyond != Beyond::Nothing || !is_goal {
                self.next.clear();
                self.machine.successors(&state, &mut self.next);
                for after in &self.next {
                    self.edges.push((self.index.number(*after), from));
                }
            }
            if beyond == Beyond::Losses {
                self.lose_pods(from);
            }
            self.followed += 1;
        }
    }

    fn lose_pods(&mut self, from: usize) {
        self.next.clear();
        let state = self.index.states[from];
        self.machine.losses(&state, &mut self.next);
        for after in &self.next {
            self.index.number(*after);
        }
    }

    fn finish(mut self) -> Exploration {
        let states = self.index.states;
        let traps = unreached(states.len(), &self.goals, &mut self.edges);
        let numbered = |all: &[usize]| all.iter().map(|number| states[*number]).collect();
        Exploration {
            states: states.len(),
            goals: numbered(&self.goals),
            traps: numbered(&traps),
            wait: self.wait,
        }
    }
}

/// States by number and numbers by state.
#[derive(Default)]
struct Index {
    states: Vec<State>,
    numbers: HashMap<State, usize, BuildHasherDefault<OneWord>>,
}

impl Index {
    fn number(&mut self, state: State) -> usize {
        *self.numbers.entry(state).or_insert_with(|| {
            self.states.push(state);
            self.states.len() - 1
        })
    }
}

/// A hasher for states, which reduce themselves to one word.
#[derive(Default)]
struct OneWord(u64);

impl Hasher for OneWord {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("a state hashes itself into one word");
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = word;
    }
}

/// The states from which no chain of edges leads to a goal. An edge is (to, from).
fn unreached(states: usize, goals: &[usize], edges: &mut [(usize, usize)]) -> Vec<usize> {
    edges.sort_unstable();
    let mut reached = vec![false; states];
    let mut open = goals.to_vec();
    for goal in goals {
        reached[*goal] = true;
    }
    while let Some(to) = open.pop() {
        let begin = edges.partition_point(|edge| edge.0 < to);
        for (_, from) in edges[begin..].iter().take_while(|edge| edge.0 == to) {
            if !reached[*from] {
                reached[*from] = true;
                open.push(*from);
            }
        }
    }
    (0..states).filter(|state| !reached[*state]).collect()
}

/// The result of exploring a configuration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Worst {
    /// The outcome of the first deployment: all workloads are created in any order, and later any
    /// pod may be lost.
    pub(crate) first: Outcome,
    /// The outcome of each workload's rollout from any state in which all is well. `None` if there
    /// is no rollout: the kind has none, or no such state exists.
    pub(crate) rollouts: Vec<Option<Outcome>>,
    /// The worst wait for the volume in any state. `Holder::Attachment` is no outcome: it is the
    /// wait for the detach when a pod moves to another node after the last pod has left.
    pub(crate) wait: Option<Holder>,
    /// The number of states.
    pub(crate) states: usize,
}

impl Worst {
    /// The worst outcome. `Stuck` comes first, because a rollout does not matter if pods can never
    /// start.
    pub(crate) fn outcome(&self) -> Outcome {
        let rollouts = self.rollouts.iter().flatten().copied();
        if self.first == Outcome::Stuck {
            self.first
        } else {
            rollouts.fold(self.first, Outcome::max)
        }
    }
}

/// Explores the first deployment and a rollout of each workload, for each zone in which the volume
/// may be created.
pub(crate) fn explore(configuration: &Configuration) -> Worst {
    configuration.bound().iter().map(explore_bound).reduce(Worst::or).unwrap()
}

fn explore_bound(configuration: &Configuration) -> Worst {
    let machine = Machine::first_deployment(configuration);
    let first = Exploration::of_life(&machine, [machine.start()]);
    let mut worst = Worst {
        first: first.outcome(Outcome::Stuck),
        rollouts: Vec::new(),
        wait: first.wait,
        states: first.states,
    };
    for workload in 0..configuration.workloads.len() {
        let rolls = !first.goals.is_empty() && configuration.workloads[workload].kind.rolls_out();
        let outcome = rolls.then(|| {
            let change = Machine::rollout(configuration, configuration, workload);
            let rollout = Exploration::to_goals(&change, first.goals.iter().copied());
            worst.wait = worst.wait.max(rollout.wait);
            worst.states += rollout.states;
            rollout.outcome(Outcome::Deadlock)
        });
        worst.rollouts.push(outcome);
    }
    worst
}

impl Worst {
    /// The worse result of two alternatives.
    fn or(self, other: Self) -> Self {
        let rollouts = self.rollouts.into_iter().zip(other.rollouts);
        Self {
            first: self.first.max(other.first),
            rollouts: rollouts.map(|(one, another)| one.max(another)).collect(),
            wait: self.wait.max(other.wait),
            states: self.states + other.states,
        }
    }
}

/// The states in which a change is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
pub(crate) enum Start {
    /// Everything runs.
    Well,
    /// A rollout of the first workload never ends.
    Trapped,
    /// Pods of the first workload wait forever on nodes that do not have the volume.
    Scattered,
}

/// The outcome of changing the first workload from its state in `before` to its state in `after`.
/// `None` if no start state exists.
pub(crate) fn change(
    before: &Configuration,
    after: &Configuration,
    from: Start,
) -> Option<Outcome> {
    let first_machine = Machine::first_deployment(before);
    let first = Exploration::of_life(&first_machine, [first_machine.start()]);
    let starts = match from {
        Start::Well => first.goals,
        Start::Scattered => first.traps,
        Start::Trapped => {
            Exploration::to_goals(&Machine::rollout(before, before, 0), first.goals).traps
        }
    };
    if starts.is_empty() {
        return None;
    }
    let starts = starts.iter().flat_map(|state| first_machine.renamings(state));
    let rollout = Exploration::to_goals(&Machine::rollout(before, after, 0), starts);
    Some(rollout.outcome(Outcome::Deadlock))
}

impl Kind {
    /// Whether a change of the template replaces the workload's pods.
    pub(crate) fn rolls_out(self) -> bool {
        matches!(self, Self::Deployment(_) | Self::StatefulSet | Self::DaemonSet)
    }
}
