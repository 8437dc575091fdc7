//! The state machine: all steps that are possible in a state.
//!
//! A step of any controller may come at any time relative to the others, and every choice that
//! Kubernetes leaves open is explored.

use crate::configuration::{Configuration, NODES, Workload};
use crate::state::{CLASSES, PHASES, Phase, State, class};

/// The steps of a configuration.
pub(crate) struct Machine<'a> {
    pub(crate) configuration: &'a Configuration,
    /// The configuration of the present pods. It differs from the other one when a rollout changes
    /// the template.
    before: &'a Configuration,
    /// The workload whose template has just changed, if there is one.
    pub(crate) rollout: Option<usize>,
    alike: Alike,
}

impl<'a> Machine<'a> {
    /// The machine for creating everything at once in an empty cluster.
    pub(crate) fn first_deployment(configuration: &'a Configuration) -> Self {
        Self {
            configuration,
            before: configuration,
            rollout: None,
            alike: Alike::of(configuration, configuration),
        }
    }

    /// The machine for a rollout of one workload from its template in `before` to the one in
    /// `configuration`.
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

    /// The template of the pods in a class.
    pub(crate) fn template(&self, class: usize) -> &Workload {
        let configuration = [self.before, self.configuration][class % 2];
        &configuration.workloads[class / 2]
    }

    /// Whether all workloads are complete.
    pub(crate) fn goal(&self, state: &State) -> bool {
        (0..self.configuration.workloads.len()).all(|workload| self.satisfied(state, workload))
    }

    /// Appends every next state in its canonical form.
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

    /// Appends every state after the loss of one pod, or of all pods, of a workload. Appends nothing
    /// unless all workloads are complete (Jobs may still run) and no pod is Terminating.
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

    /// The kubelets: a pod whose volume is attached runs, and a Terminating pod goes away.
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

    /// The attach-detach controller: it attaches a contended volume to a node with a pod of it
    /// while the volume is attached nowhere, and detaches it from a node that has no pod of it any
    /// more.
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

    /// The holder of the volume if a scheduled pod waits for it because it is attached to another
    /// node. In this case the attach-detach controller reports "Multi-Attach error".
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

    /// The least of all states that differ only in the names of equivalent nodes.
    pub(crate) fn canonical(&self, state: &State) -> State {
        match &self.alike {
            Alike::Groups(groups) => {
                let mut state = *state;
                groups.iter().for_each(|group| state.sort(group));
                state
            }
            Alike::Renamings(renamings) => {
                renamings.iter().map(|order| state.renamed(order)).fold(*state, State::min)
            }
        }
    }

    /// All states that differ from this one only in the names of equivalent nodes, including this
    /// one.
    pub(crate) fn renamings(&self, state: &State) -> Vec<State> {
        renamings(self.before, self.configuration)
            .iter()
            .map(|order| state.renamed(order))
            .chain([*state])
            .collect()
    }
}

/// The nodes that differ only in their names.
enum Alike {
    /// Groups of nodes that can change places.
    Groups(Vec<Vec<usize>>),
    /// The ways to rename nodes and zones, without the identity.
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
            let own = groups.iter_mut().find(|group| are_alike(before, after, group[0], node));
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

/// The object that keeps a volume from a waiting pod.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Holder {
    /// Only an attachment to a node without pods that use the volume: it ends in seconds.
    Attachment,
    /// A Job's pod on another node: it ends with the Job.
    Job,
    /// Another pod on another node.
    Pod,
}

/// All renamings of nodes under which both configurations stay the same, without the identity.
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

const _: () = assert!(CLASSES * 3 * 4 == 48, "the attachment's bit lies above the counters");
