//! What the model explores: workloads, one volume, a handful of nodes.
//!
//! Everything here is written in the terms of Kubernetes objects, after defaulting. Nothing is shared with the
//! engine: the model is its independent check.

use serde::Deserialize;

/// The most nodes a configuration may have.
pub(crate) const NODES: usize = 4;
/// The most workloads a configuration may have.
pub(crate) const WORKLOADS: usize = 2;

/// A set of nodes; node `n` is bit `n`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct NodeSet(pub(crate) u8);

impl NodeSet {
    pub(crate) fn first(count: usize) -> Self {
        Self((1u8 << count) - 1)
    }

    pub(crate) fn of(nodes: &[usize]) -> Self {
        Self(nodes.iter().fold(0, |set, node| set | (1 << node)))
    }

    pub(crate) fn has(self, node: usize) -> bool {
        self.0 & (1 << node) != 0
    }

    pub(crate) fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub(crate) fn len(self) -> u8 {
        u8::try_from(self.0.count_ones()).unwrap()
    }
}

/// `maxSurge` or `maxUnavailable` as written.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Amount {
    Number(u8),
    Percent(u8),
}

impl Amount {
    /// What it comes to of so many replicas, in hundredths of a pod.
    fn hundredths(self, replicas: u8) -> u32 {
        match self {
            Self::Number(number) => u32::from(number) * 100,
            Self::Percent(percent) => u32::from(percent) * u32::from(replicas),
        }
    }
}

/// A Deployment's strategy.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Strategy {
    Recreate,
    RollingUpdate { surge: Amount, unavailable: Amount },
}

impl Strategy {
    /// What the API server fills in.
    pub(crate) const DEFAULT: Self = Self::RollingUpdate {
        surge: Amount::Percent(25),
        unavailable: Amount::Percent(25),
    };

    pub(crate) fn rolling(surge: u8, unavailable: u8) -> Self {
        Self::RollingUpdate {
            surge: Amount::Number(surge),
            unavailable: Amount::Number(unavailable),
        }
    }

    /// The API server rejects a strategy that allows neither surge nor unavailability.
    pub(crate) fn is_valid(self) -> bool {
        match self {
            Self::Recreate => true,
            Self::RollingUpdate { surge, unavailable } => {
                surge.hundredths(1) + unavailable.hundredths(1) > 0
            }
        }
    }

    /// The numbers the Deployment controller works with: surge rounds up, unavailable rounds down, both zero makes
    /// unavailable one (`ResolveFenceposts`), and no more than all replicas are unavailable (`MaxUnavailable`).
    pub(crate) fn resolve(self, replicas: u8) -> Option<(u8, u8)> {
        let Self::RollingUpdate { surge, unavailable } = self else {
            return None;
        };
        let pods = |whole: u32| u8::try_from(whole).unwrap();
        let surge = pods(surge.hundredths(replicas).div_ceil(100));
        let unavailable = pods(unavailable.hundredths(replicas) / 100);
        let unavailable = if surge == 0 && unavailable == 0 {
            1
        } else {
            unavailable
        };
        Some((surge, unavailable.min(replicas)))
    }
}

/// What creates a workload's pods.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Kind {
    Deployment(Strategy),
    /// With the default pod management (ordered) and rolling updates; the claim stands in the pod template.
    StatefulSet,
    /// One pod on each node that the template selects and tolerates; replicas are ignored.
    DaemonSet,
    /// `replicas` is its parallelism. Each of its pods finishes some time after it has begun to run.
    Job {
        completions: u8,
    },
    ReplicaSet,
}

impl Kind {
    /// Whether its pods run to an end.
    pub(crate) fn ends(self) -> bool {
        matches!(self, Self::Job { .. })
    }
}

/// A required or preferred pod affinity on `kubernetes.io/hostname`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Affinity {
    None,
    /// Preferred only: an adversarial scheduler need not honour it.
    Preferred,
    /// Required; the selector matches the pods of the workloads whose index is in `workloads` (a bit each).
    /// `own_revision` is `matchLabelKeys: [pod-template-hash]`.
    Required {
        workloads: u8,
        own_revision: bool,
    },
}

impl Affinity {
    pub(crate) const fn required(workloads: u8, own_revision: bool) -> Self {
        Self::Required {
            workloads,
            own_revision,
        }
    }
}

/// A topology spread constraint with `whenUnsatisfiable: DoNotSchedule` over the workload's own pods.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Spread {
    pub(crate) max_skew: u8,
    /// `matchLabelKeys: [pod-template-hash]`.
    pub(crate) own_revision: bool,
}

/// One workload.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Workload {
    pub(crate) kind: Kind,
    pub(crate) replicas: u8,
    pub(crate) uses_volume: bool,
    /// Nodes that the node selector and the required node affinity allow.
    pub(crate) selected: NodeSet,
    /// Nodes whose taints the pods tolerate. They differ from `selected` because spread constraints count the
    /// tainted nodes as domains (`nodeTaintsPolicy: Ignore` is the default).
    pub(crate) tolerated: NodeSet,
    pub(crate) affinity: Affinity,
    /// Required anti-affinity to the workload's own pods on `kubernetes.io/hostname`.
    pub(crate) anti_affinity: bool,
    pub(crate) hostname_spread: Option<Spread>,
    pub(crate) zone_spread: Option<Spread>,
    /// Whether its pods have a port of their node, the same for all workloads.
    pub(crate) port: bool,
}

impl Workload {
    pub(crate) fn new(kind: Kind, replicas: u8) -> Self {
        Self {
            kind,
            replicas,
            uses_volume: true,
            selected: NodeSet::first(NODES),
            tolerated: NodeSet::first(NODES),
            affinity: Affinity::None,
            anti_affinity: false,
            hostname_spread: None,
            zone_spread: None,
            port: false,
        }
    }

    pub(crate) fn on(mut self, nodes: &[usize]) -> Self {
        self.selected = NodeSet::of(nodes);
        self
    }

    pub(crate) fn near(mut self, affinity: Affinity) -> Self {
        self.affinity = affinity;
        self
    }

    /// Pods that exist side by side when nothing is being rolled out.
    pub(crate) fn pods(&self, nodes: NodeSet) -> u8 {
        match self.kind {
            Kind::Deployment(_) | Kind::StatefulSet | Kind::ReplicaSet => self.replicas,
            Kind::DaemonSet => self.daemon_nodes(nodes).len(),
            Kind::Job { completions } => self.replicas.min(completions),
        }
    }

    /// The DaemonSet controller does not look at volumes.
    pub(crate) fn daemon_nodes(&self, nodes: NodeSet) -> NodeSet {
        nodes.and(self.selected).and(self.tolerated)
    }

    /// The affinity as it works: a `matchLabelKeys` key that the pod does not carry is ignored, and only the pods of
    /// a Deployment carry `pod-template-hash`.
    pub(crate) fn effective_affinity(&self) -> Option<(u8, bool)> {
        match self.affinity {
            Affinity::None | Affinity::Preferred => None,
            Affinity::Required {
                workloads,
                own_revision,
            } => Some((workloads, own_revision && self.has_hash())),
        }
    }

    /// Whether its affinity looks at the pods of others than the workload itself, which has the index `own`.
    pub(crate) fn looks_at_others(&self, own: usize) -> bool {
        self.effective_affinity()
            .is_some_and(|(workloads, _)| workloads & !(1 << own) != 0)
    }

    pub(crate) fn has_hash(&self) -> bool {
        matches!(self.kind, Kind::Deployment(_))
    }
}

/// What the PV's access modes come to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Access {
    /// Refused on a second node by the attach-detach controller.
    Exclusive,
    Shared,
    /// ReadWriteOncePod: the scheduler admits one pod, and the attach-detach controller one node.
    SinglePod,
}

impl Access {
    /// `IsMultiAttachAllowed` for a PV with these modes, and ReadWriteOncePod, which never stands beside another.
    pub(crate) fn of_modes(modes: &[String]) -> Self {
        let shared = ["ReadWriteMany", "ReadOnlyMany"];
        if *modes == ["ReadWriteOncePod"] {
            Self::SinglePod
        } else if modes.is_empty() || modes.iter().any(|mode| shared.contains(&mode.as_str())) {
            Self::Shared
        } else {
            Self::Exclusive
        }
    }
}

/// The volume behind the claim.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Volume {
    pub(crate) access: Access,
    pub(crate) attach_required: bool,
    /// The PV's node affinity, or the class's allowed topologies where there is no PV.
    pub(crate) nodes: NodeSet,
    pub(crate) binding: Binding,
}

/// How far claim and volume have come. What the claim itself asks for decides nothing in any case.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Deserialize)]
pub(crate) enum Binding {
    Bound,
    /// The PV names the claim, and the controller has not bound them yet, as it will.
    Reserved,
    /// There is no PV. It will be made in the zone of the first pod that gets a node.
    Zonal,
}

impl Volume {
    /// Whether anybody refuses a second node or pod.
    pub(crate) fn is_guarded(&self) -> bool {
        self.contended() || self.access == Access::SinglePod
    }

    /// Whether an attachment can be refused: only then attachments are part of the state.
    pub(crate) fn contended(&self) -> bool {
        self.attach_required && self.access != Access::Shared
    }
}

/// One world to explore.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Configuration {
    /// The zone of each node; as many entries as nodes.
    pub(crate) zones: Vec<u8>,
    pub(crate) volume: Volume,
    pub(crate) workloads: Vec<Workload>,
    /// How many pods fit on a node, if that is limited.
    pub(crate) capacity: Option<u8>,
}

impl Configuration {
    pub(crate) fn nodes(&self) -> NodeSet {
        NodeSet::first(self.zones.len())
    }

    /// One of all the worlds that are the same to the model but for the names of nodes, so that each is explored once.
    pub(crate) fn normal(&self) -> Self {
        let mut normal = self.clone();
        normal.simplify_volume();
        for own in 0..normal.workloads.len() {
            let simple = normal.simple(own);
            normal.workloads[own] = simple;
        }
        normal.rename_nodes();
        normal
    }

    /// The PV's node affinity narrows the nodes of whoever uses it like a taint, which no spread constraint looks at;
    /// but the DaemonSet controller places pods without looking at volumes.
    fn simplify_volume(&mut self) {
        let nodes = self.nodes();
        let volume = &mut self.volume;
        if volume.binding == Binding::Reserved {
            volume.binding = Binding::Bound;
        }
        let zonal = volume.binding == Binding::Zonal;
        if !volume.is_guarded() && !zonal {
            (volume.access, volume.attach_required) = (Access::Shared, false);
        }
        volume.nodes = volume.nodes.and(nodes);
        let mut users = self.workloads.iter().filter(|it| it.uses_volume);
        if !zonal && users.all(|user| user.kind != Kind::DaemonSet) {
            for user in self.workloads.iter_mut().filter(|it| it.uses_volume) {
                user.tolerated = user.tolerated.and(volume.nodes);
                user.uses_volume = volume.access != Access::Shared;
            }
            volume.nodes = nodes;
        }
    }

    /// The workload with this index without what makes no difference to it.
    fn simple(&self, own: usize) -> Workload {
        let mut workload = self.workloads[own];
        workload.selected = workload.selected.and(self.nodes());
        workload.tolerated = workload.tolerated.and(workload.selected);
        match &mut workload.kind {
            Kind::Deployment(strategy) => {
                if let Some((surge, unavailable)) = strategy.resolve(workload.replicas) {
                    *strategy = Strategy::rolling(surge.min(workload.replicas), unavailable);
                }
            }
            Kind::DaemonSet => workload.replicas = 0,
            Kind::Job { completions } => {
                *completions = workload.replicas.min(*completions);
                workload.replicas = *completions;
            }
            Kind::StatefulSet | Kind::ReplicaSet => {}
        }
        let has_hash = workload.has_hash();
        let spreads = [&mut workload.hostname_spread, &mut workload.zone_spread];
        for spread in spreads.into_iter().flatten() {
            spread.own_revision &= has_hash;
        }
        // Over a single place everything is spread evenly.
        if workload.selected.len() <= 1 {
            workload.hostname_spread = None;
        }
        if self.is_in_one_zone(workload.selected) {
            workload.zone_spread = None;
        }
        if workload.hostname_spread.is_none() && workload.zone_spread.is_none() {
            workload.selected = workload.tolerated;
        }
        workload.affinity = match workload.effective_affinity() {
            Some((workloads, own_revision)) => {
                let there = workloads & ((1 << self.workloads.len()) - 1);
                if there == 1 << own && workload.tolerated.len() <= 1 {
                    Affinity::None
                } else {
                    Affinity::required(there, own_revision)
                }
            }
            None => Affinity::None,
        };
        workload
    }

    fn is_in_one_zone(&self, nodes: NodeSet) -> bool {
        let mut zones = (0..self.zones.len())
            .filter(|node| nodes.has(*node))
            .map(|node| self.zones[node]);
        let first = zones.next();
        zones.all(|zone| Some(zone) == first)
    }

    /// Drops nodes that nobody selects, and puts the others into an order that their names have no part in.
    fn rename_nodes(&mut self) {
        if self.volume.binding != Binding::Zonal
            && self.workloads.iter().all(|it| it.zone_spread.is_none())
        {
            self.zones.fill(0);
        }
        let selected = |node: &usize| self.workloads.iter().any(|it| it.selected.has(*node));
        let mut order: Vec<usize> = (0..self.zones.len()).filter(selected).collect();
        order.sort_by_key(|node| {
            let uses = self.workloads.iter().fold(0, |uses: u8, workload| {
                let use_of_one = u8::from(workload.selected.has(*node)) * 2
                    + u8::from(workload.tolerated.has(*node));
                uses << 2 | use_of_one
            });
            (
                self.zones[*node],
                u8::from(self.volume.nodes.has(*node)),
                uses,
            )
        });
        let renamed = |set: NodeSet| {
            let nodes = order.iter().enumerate();
            NodeSet(nodes.fold(0, |all, (new, old)| all | u8::from(set.has(*old)) << new))
        };
        self.volume.nodes = renamed(self.volume.nodes);
        for workload in &mut self.workloads {
            workload.selected = renamed(workload.selected);
            workload.tolerated = renamed(workload.tolerated);
        }
        self.zones = order.iter().map(|node| self.zones[*node]).collect();
    }

    /// The same with the volume where it may come to be: in each zone in turn that has a node for a pod of it.
    pub(crate) fn bound(&self) -> Vec<Self> {
        if self.volume.binding != Binding::Zonal {
            return vec![self.clone()];
        }
        let mut zones = self.zones.clone();
        zones.sort_unstable();
        zones.dedup();
        let users = || self.workloads.iter().filter(|it| it.uses_volume);
        let all = zones.into_iter().map(|zone| {
            let nodes = (0..self.zones.len()).filter(|node| self.zones[*node] == zone);
            let nodes = NodeSet::of(&nodes.collect::<Vec<_>>());
            let mut bound = self.clone();
            bound.volume.nodes = self.volume.nodes.and(nodes);
            bound.volume.binding = Binding::Bound;
            bound
        });
        all.filter(|it| {
            users().any(|user| {
                let own = user.selected.and(user.tolerated);
                own.and(it.volume.nodes).len() > 0
            })
        })
        .collect()
    }

    /// A workload as it can be written: without nodes that there are not.
    pub(crate) fn written(&self, workload: usize) -> Workload {
        let workload = self.workloads[workload];
        Workload {
            selected: workload.selected.and(self.nodes()),
            tolerated: workload.tolerated.and(self.nodes()),
            ..workload
        }
    }

    /// Whether the loss of a pod can make a difference: some workload's affinity looks at another one's pods, and it
    /// matters where pods are.
    pub(crate) fn can_part_by_losses(&self) -> bool {
        let mut workloads = self.workloads.iter().enumerate();
        self.volume.is_guarded() && workloads.any(|(own, workload)| workload.looks_at_others(own))
    }
}
