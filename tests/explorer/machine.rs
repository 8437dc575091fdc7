//! The state machine: everything that may happen next in a state.
//!
//! Every step of every controller may come at any time relative to the others, and every choice that Kubernetes
//! leaves open is taken.

use crate::configuration::{Configuration, NODES, Workload};
use crate::state::{CLASSES, PHASES, Phase, State, class};

/// A configuration in motion.
pub(crate) struct Machine<'a> {
    pub(crate) configuration: &'a Configuration,
    /// The configuration that the present pods were made from. It differs when a rollout changes the template.
    before: &'a Configuration,
    /// The workload whose template has just changed, if any.
    pub(crate) rollout: Option<usize>,
    alike: Alike,
}

impl<'a> Machine<'a> {
    /// Everything is created at once in an empty cluster.
    pub(crate) fn first_deployment(configuration: &'a Configuration) -> Self {
        Self {
            configuration,
            before: configuration,
            rollout: None,
            alike: Alike::of(configuration, configuration),
        }
    }

    /// One workload goes from its template in `before` to the one in `configuration`.
    pub(crate) fn rollout(
        before: &'a Configuration,
        configuration: &'a Configuration,
        workload: usize,
    ) -> Self {
        Self {
            configuration,
            before,
            rollout: Some(workload),
            alike: Alike::of(before, configuration),
        }
    }

    /// The state of an empty cluster in which the workloads have just been created.
    pub(crate) fn start(&self) -> State {
        let mut state = State::EMPTY;
        for workload in 0..self.configuration.workloads.len() {
            state.set_pending(class(workload, 0), self.created_at_once(workload));
        }
        state
    }

    pub(crate) fn nodes(&self) -> usize {
        self.configuration.zones.len()
    }

    pub(crate) fn classes(&self) -> impl Iterator<Item = usize> + use<> {
        0..2 * self.configuration.workloads.len()
    }

    /// The template of the pods of a class.
    pub(crate) fn template(&self, class: usize) -> &Workload {
        let configuration = [self.before, self.configuration][class % 2];
        &configuration.workloads[class / 2]
    }

    /// Whether all workloads have what they want.
    pub(crate) fn goal(&self, state: &State) -> bool {
        (0..self.configuration.workloads.len()).all(|workload| self.satisfied(state, workload))
    }

    /// Appends every state that may come next, in its canonical form.
    pub(crate) fn successors(&self, state: &State, next: &mut Vec<State>) {
        for workload in 0..self.configuration.workloads.len() {
            self.control(state, workload, next);
        }
        for class in self.classes() {
            self.schedule(state, class, next);
            self.run(state, class, next);
        }
        if self.configuration.volume.contended() {
            self.attach_detach(state, next);
        }
        for after in next {
            *after = self.canonical(after);
        }
    }

    /// Appends every state that may come of the loss of one pod, or all, of a workload, while all is well but for Jobs
    /// that may have begun.
    pub(crate) fn losses(&self, state: &State, next: &mut Vec<State>) {
        let calm = |workload| {
            let class = class(workload, 0);
            state.total(class, Phase::Terminating) == 0
                && (self.satisfied(state, workload) || self.template(class).kind.ends())
        };
        let workloads = 0..self.configuration.workloads.len();
        if !workloads.clone().all(calm) {
            return;
        }
        for workload in workloads {
            self.lose(state, class(workload, 0), next);
        }
        for after in next {
            *after = self.canonical(after);
        }
    }

    fn schedule(&self, state: &State, class: usize, next: &mut Vec<State>) {
        if state.pending(class) == 0 {
            return;
        }
        for node in (0..self.nodes()).filter(|node| self.fits(state, class, *node)) {
            let mut after = *state;
            after.set_pending(class, state.pending(class) - 1);
            after.add(class, Phase::Waiting, node);
            next.push(after);
        }
    }

    /// The kubelets: a pod with its volume at hand runs, and a Terminating pod goes.
    fn run(&self, state: &State, class: usize, next: &mut Vec<State>) {
        for node in 0..self.nodes() {
            if state.count(class, Phase::Waiting, node) > 0
                && !self.lacks_volume(state, class, node)
            {
                let mut after = *state;
                after.remove(class, Phase::Waiting, node);
                after.add(class, Phase::Running, node);
                next.push(after);
            }
            if state.count(class, Phase::Terminating, node) > 0 {
                let mut after = *state;
                after.remove(class, Phase::Terminating, node);
                next.push(after);
            }
        }
    }

    /// The attach-detach controller: a contended volume is attached where a pod wants it while it is attached
    /// nowhere, and detached from a node that has no pod of it any more.
    fn attach_detach(&self, state: &State, next: &mut Vec<State>) {
        let nowhere = (0..self.nodes()).all(|node| !state.attached(node));
        for node in 0..self.nodes() {
            let wanted = self.has_volume_pods(state, node);
            let mut after = *state;
            if wanted && nowhere {
                after.attach(node);
                next.push(after);
            } else if !wanted && state.attached(node) {
                after.detach(node);
                next.push(after);
            }
        }
    }

    /// Whether a pod of the volume, in whatever phase, is on the node.
    pub(crate) fn has_volume_pods(&self, state: &State, node: usize) -> bool {
        self.volume_classes(state, node).next().is_some()
    }

    /// The classes of the volume's pods, in whatever phase, on the node.
    fn volume_classes<'s>(
        &'s self,
        state: &'s State,
        node: usize,
    ) -> impl Iterator<Item = usize> + 's {
        self.classes().filter(move |class| {
            self.template(*class).uses_volume && state.on_node(*class, &PHASES, node) > 0
        })
    }

    fn lacks_volume(&self, state: &State, class: usize, node: usize) -> bool {
        self.configuration.volume.contended()
            && self.template(class).uses_volume
            && !state.attached(node)
    }

    /// Whether a scheduled pod waits for a volume that is attached to another node, and if so, whether a pod there
    /// still holds it. This is when the attach-detach controller says "Multi-Attach error".
    pub(crate) fn wait(&self, state: &State) -> Option<Holder> {
        let waits = |node: usize| {
            self.classes().any(|class| {
                state.count(class, Phase::Waiting, node) > 0
                    && self.lacks_volume(state, class, node)
            })
        };
        let holder = (0..self.nodes()).find(|node| state.attached(*node))?;
        (0..self.nodes()).any(waits).then(|| {
            let mut holders = self.volume_classes(state, holder).peekable();
            if holders.peek().is_none() {
                Holder::Attachment
            } else if holders.all(|class| self.template(class).kind.ends()) {
                Holder::Job
            } else {
                Holder::Pod
            }
        })
    }

    /// Of all the states that differ only in the names of alike nodes, the least.
    pub(crate) fn canonical(&self, state: &State) -> State {
        match &self.alike {
            Alike::Groups(groups) => {
                let mut state = *state;
                groups.iter().for_each(|group| state.sort(group));
                state
            }
            Alike::Renamings(renamings) => renamings
                .iter()
                .map(|order| state.renamed(order))
                .fold(*state, State::min),
        }
    }

    /// All the states that differ from this one only in the names of alike nodes, itself included.
    pub(crate) fn renamings(&self, state: &State) -> Vec<State> {
        renamings(self.before, self.configuration)
            .iter()
            .map(|order| state.renamed(order))
            .chain([*state])
            .collect()
    }
}

/// Which nodes differ in their names only.
enum Alike {
    /// Those of each group can change places.
    Groups(Vec<Vec<usize>>),
    /// The ways to rename nodes and zones, the identity left out.
    Renamings(Vec<[usize; NODES]>),
}

impl Alike {
    fn of(before: &Configuration, after: &Configuration) -> Self {
        let nodes = 0..after.zones.len();
        if after.zones.iter().any(|zone| *zone != after.zones[0]) {
            return Self::Renamings(renamings(before, after));
        }
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for node in nodes {
            let own = groups
                .iter_mut()
                .find(|group| are_alike(before, after, group[0], node));
            match own {
                Some(group) => group.push(node),
                None => groups.push(vec![node]),
            }
        }
        groups.retain(|group| group.len() > 1);
        Self::Groups(groups)
    }
}

fn are_alike(before: &Configuration, after: &Configuration, a: usize, b: usize) -> bool {
    let mut workloads = before.workloads.iter().chain(&after.workloads);
    after.volume.nodes.has(a) == after.volume.nodes.has(b)
        && workloads.all(|workload| {
            workload.selected.has(a) == workload.selected.has(b)
                && workload.tolerated.has(a) == workload.tolerated.has(b)
        })
}

/// What a waiting pod waits for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Holder {
    /// Only the detach from a node where no pod uses the volume any more: over in seconds.
    Attachment,
    /// A Job's pod on another node: over when it has run.
    Job,
    /// Another pod on another node.
    Pod,
}

/// All renamings of nodes under which both configurations stay the same, the identity left out.
fn renamings(before: &Configuration, after: &Configuration) -> Vec<[usize; NODES]> {
    let nodes = after.zones.len();
    let same_zone = |a: usize, b: usize| after.zones[a] == after.zones[b];
    permutations(nodes)
        .into_iter()
        .filter(|order| order.iter().enumerate().any(|(at, node)| at != *node))
        .filter(|order| (0..nodes).all(|a| are_alike(before, after, a, order[a])))
        .filter(|order| {
            (0..nodes).all(|a| (0..nodes).all(|b| same_zone(a, b) == same_zone(order[a], order[b])))
        })
        .collect()
}

/// The permutations of the first `nodes` nodes.
fn permutations(nodes: usize) -> Vec<[usize; NODES]> {
    let identity: [usize; NODES] = [0, 1, 2, 3];
    let mut all = vec![identity];
    for last in 1..nodes {
        let shorter = all.clone();
        for at in 0..last {
            all.extend(shorter.iter().map(|order| {
                let mut order = *order;
                order.swap(at, last);
                order
            }));
        }
    }
    all
}

const _: () = assert!(
    CLASSES * 3 * 4 == 48,
    "the attachment's bit lies above the counters"
);
