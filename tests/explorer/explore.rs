//! Exhaustive exploration, and the worst outcome it finds.

use serde::Deserialize;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::configuration::{Configuration, Kind};
use crate::machine::{Holder, Machine};
use crate::state::State;

/// The outcomes, in the project's words, from harmless to worst.
///
/// `Stuck` and `Deadlock` say that a state can be reached from which no sequence of steps leads to the goal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Outcome {
    None,
    /// A pod may be scheduled to a node while another pod still holds the volume elsewhere; it always heals.
    Delay,
    /// Some pod may never start, though nothing is rolled out.
    Stuck,
    /// A rollout may come to a point from which it can never finish.
    Deadlock,
}

/// Everything reachable from some states.
struct Exploration {
    /// How many states there are.
    states: usize,
    /// Those where every workload has what it wants.
    goals: Vec<State>,
    /// Those from which no goal can be reached.
    traps: Vec<State>,
    /// The worst wait for the volume seen in any state.
    wait: Option<Holder>,
}

impl Exploration {
    /// Follows every step from the given states up to the goals.
    fn to_goals(machine: &Machine<'_>, starts: impl IntoIterator<Item = State>) -> Self {
        let mut search = Search::from(machine, starts);
        search.go_on(Beyond::Nothing);
        search.finish()
    }

    /// Follows every step from the given states, also beyond goals, and then also what happens when pods are lost.
    ///
    /// Pods are lost to a drain, an eviction or a node, which is part of life: the states in which all is well are
    /// those after that, too, and what was well before must become well again. Nobody can count on it, though: a
    /// state that only the loss of a pod leads out of is a trap. Nor is the wait for the lost pod to go worth a word.
    /// It changes nothing where no workload looks at another one's pods, so it is left out there.
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

/// How far a search goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Beyond {
    Nothing,
    Goals,
    Losses,
}

/// An exploration under way.
struct Search<'m> {
    machine: &'m Machine<'m>,
    index: Index,
    /// How many states have been followed.
    followed: usize,
    goals: Vec<usize>,
    wait: Option<Holder>,
    /// Numbers of two states: the second one leads to the first.
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

/// A hasher for states, which mix themselves into one word.
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

/// The states that no chain of edges connects to a goal. An edge is (to, from).
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

/// What exploring a configuration has shown.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Worst {
    /// Of the first deployment: all workloads created in any order, and later any pod lost.
    pub(crate) first: Outcome,
    /// For each workload, of its rollout from any state in which all is well. `None` where there is no rollout: the
    /// kind has none, or no such state exists.
    pub(crate) rollouts: Vec<Option<Outcome>>,
    /// The worst wait for the volume in any state. `Holder::Attachment` alone, the wait for a detach when a pod moves to
    /// another node after the last one has left, is no outcome.
    pub(crate) wait: Option<Holder>,
    /// How many states there are.
    pub(crate) states: usize,
}

impl Worst {
    /// The one outcome: pods that can never start make a rollout pointless, so `Stuck` comes first.
    pub(crate) fn outcome(&self) -> Outcome {
        let rollouts = self.rollouts.iter().flatten().copied();
        if self.first == Outcome::Stuck {
            self.first
        } else {
            rollouts.fold(self.first, Outcome::max)
        }
    }
}

/// Explores the first deployment and a rollout of each workload, wherever the volume may come to be.
pub(crate) fn explore(configuration: &Configuration) -> Worst {
    let bound = configuration.bound();
    let worst = bound.iter().map(explore_bound).reduce(Worst::or);
    worst.unwrap()
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
            let machine = Machine::rollout(configuration, configuration, workload);
            let rollout = Exploration::to_goals(&machine, first.goals.iter().copied());
            worst.wait = worst.wait.max(rollout.wait);
            worst.states += rollout.states;
            rollout.outcome(Outcome::Deadlock)
        });
        worst.rollouts.push(outcome);
    }
    worst
}

impl Worst {
    /// The worse of two ways that things may go.
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

/// From which states a change is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
pub(crate) enum Start {
    /// Everything runs.
    Well,
    /// A rollout of the first workload hangs for good.
    Trapped,
    /// Pods of the first workload wait for good, on other nodes than the one that has the volume.
    Scattered,
}

/// The outcome of changing the first workload from what it is in `before` to what it is in `after`; `None` where there
/// is no state to change anything in.
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
    let starts = starts
        .iter()
        .flat_map(|state| first_machine.renamings(state));
    let rollout = Exploration::to_goals(&Machine::rollout(before, after, 0), starts);
    Some(rollout.outcome(Outcome::Deadlock))
}

impl Kind {
    /// Whether a change of the template replaces the workload's pods.
    pub(crate) fn rolls_out(self) -> bool {
        matches!(
            self,
            Self::Deployment(_) | Self::StatefulSet | Self::DaemonSet
        )
    }
}
