//! Exhaustive exploration, and the worst outcome it finds.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};

use crate::configuration::{Configuration, Kind};
use crate::machine::{Holder, Machine};
use crate::state::State;

/// The outcomes, in the project's words, from harmless to worst.
///
/// `Stuck` and `Deadlock` say that a state can be reached from which no sequence of steps leads to the goal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Outcome {
    None,
    /// A pod may be scheduled to a node while another pod still holds the volume elsewhere; it always heals.
    Delay,
    /// Some pod may never start, though nothing is rolled out.
    Stuck,
    /// A rollout may come to a point from which it can never finish.
    Deadlock,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::None => "none",
            Self::Delay => "delay",
            Self::Stuck => "stuck",
            Self::Deadlock => "deadlock",
        })
    }
}

/// Everything reachable from some states.
pub(crate) struct Exploration {
    pub(crate) states: Vec<State>,
    /// Indices into `states` of those where every workload has what it wants.
    pub(crate) goals: Vec<usize>,
    /// Indices into `states` of those from which no goal can be reached.
    pub(crate) traps: Vec<usize>,
    /// The worst wait for the volume seen in any state.
    pub(crate) wait: Option<Holder>,
}

impl Exploration {
    /// Follows every step from the given states. Beyond a goal it goes on only if `past_goals`.
    pub(crate) fn of(
        machine: &Machine<'_>,
        starts: impl IntoIterator<Item = State>,
        past_goals: bool,
    ) -> Self {
        let mut index = Index::default();
        for start in starts {
            index.number(machine.canonical(&start));
        }
        let (mut goals, mut wait, mut edges, mut next) = (Vec::new(), None, Vec::new(), Vec::new());
        let mut from = 0;
        while from < index.states.len() {
            let state = index.states[from];
            wait = wait.max(machine.wait(&state));
            let is_goal = machine.goal(&state);
            if is_goal {
                goals.push(from);
            }
            if past_goals || !is_goal {
                next.clear();
                machine.successors(&state, &mut next);
                edges.extend(next.iter().map(|after| (index.number(*after), from)));
            }
            from += 1;
        }
        let traps = unreached(index.states.len(), &goals, &mut edges);
        Self {
            states: index.states,
            goals,
            traps,
            wait,
        }
    }

    pub(crate) fn goal_states(&self) -> Vec<State> {
        self.goals.iter().map(|goal| self.states[*goal]).collect()
    }

    pub(crate) fn trap_states(&self) -> Vec<State> {
        self.traps.iter().map(|trap| self.states[*trap]).collect()
    }

    fn outcome(&self, trapped: Outcome) -> Outcome {
        if !self.traps.is_empty() {
            trapped
        } else if self.wait == Some(Holder::Pod) {
            Outcome::Delay
        } else {
            Outcome::None
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
    /// Of the first deployment: all workloads created in any order.
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

/// Explores the first deployment and a rollout of each workload.
pub(crate) fn explore(configuration: &Configuration) -> Worst {
    let machine = Machine::first_deployment(configuration);
    let first = Exploration::of(&machine, [machine.start()], true);
    let mut worst = Worst {
        first: first.outcome(Outcome::Stuck),
        rollouts: Vec::new(),
        wait: first.wait,
        states: first.states.len(),
    };
    for workload in 0..configuration.workloads.len() {
        let rolls = !first.goals.is_empty() && configuration.workloads[workload].kind.rolls_out();
        let outcome = rolls.then(|| {
            let machine = Machine::rollout(configuration, configuration, workload);
            let rollout = Exploration::of(&machine, first.goal_states(), false);
            worst.wait = worst.wait.max(rollout.wait);
            worst.states += rollout.states.len();
            rollout.outcome(Outcome::Deadlock)
        });
        worst.rollouts.push(outcome);
    }
    worst
}

/// From which states a change is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Start {
    /// Everything runs.
    Well,
    /// A rollout of the first workload hangs for good.
    Trapped,
}

/// The outcome of changing the first workload from what it is in `before` to what it is in `after`.
pub(crate) fn change(before: &Configuration, after: &Configuration, from: Start) -> Outcome {
    let first_machine = Machine::first_deployment(before);
    let first = Exploration::of(&first_machine, [first_machine.start()], true);
    let well = first.goal_states();
    let starts = match from {
        Start::Well => well,
        Start::Trapped => {
            Exploration::of(&Machine::rollout(before, before, 0), well, false).trap_states()
        }
    };
    assert!(
        !starts.is_empty(),
        "no state to change anything in: {before:?}"
    );
    let starts = starts
        .iter()
        .flat_map(|state| first_machine.renamings(state));
    Exploration::of(&Machine::rollout(before, after, 0), starts, false).outcome(Outcome::Deadlock)
}

impl Kind {
    /// Whether a change of the template replaces the workload's pods.
    fn rolls_out(self) -> bool {
        matches!(
            self,
            Self::Deployment(_) | Self::StatefulSet | Self::DaemonSet
        )
    }
}
