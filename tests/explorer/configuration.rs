//! The model's input: workloads, one volume, up to four nodes.
//!
//! Everything here uses the terms of Kubernetes objects, after defaulting. The engine's code is not
//! used: the model checks it independently.

use serde::Deserialize;

/// The maximum number of nodes in a configuration.
pub(crate) const NODES: usize = 4;
/// The maximum number of workloads in a configuration.
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

/// `maxSurge` or `maxUnavailable` as written in the manifest.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Amount {
    Number(u8),
    Percent(u8),
}

impl Amount {
    /// The resulting number for `replicas`, in hundredths of a pod.
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
    /// The strategy that the API server sets by default.
    pub(crate) const DEFAULT: Self =
        Self::RollingUpdate { surge: Amount::Percent(25), unavailable: Amount::Percent(25) };

    pub(crate) fn rolling(surge: u8, unavailable: u8) -> Self {
        Self::RollingUpdate {
            surge: Amount::Number(surge),
            unavailable: Amount::Number(unavailable),
        }
    }

    /// Whether the API server accepts the strategy: surge and unavailability may not both be zero.
    pub(crate) fn is_valid(self) -> bool {
        match self {
            Self::Recreate => true,
            Self::RollingUpdate { surge, unavailable } => {
                surge.hundredths(1) + unavailable.hundredths(1) > 0
            }
        }
    }

    /// The numbers of the Deployment controller: surge rounds up, unavailable rounds down. If both
    /// are zero, unavailable becomes one (`ResolveFenceposts`), and no more than all replicas may
    /// be unavailable (`MaxUnavailable`).
    pub(crate) fn resolve(self, replicas: u8) -> Option<(u8, u8)> {
        let Self::RollingUpdate { surge, unavailable } = self else {
            return None;
        };
        let pods = |whole: u32| u8::try_from(whole).unwrap();
        let surge = pods(surge.hundredths(replicas).div_ceil(100));
        let unavailable = match pods(unavailable.hundredths(replicas) / 100) {
            0 if surge == 0 => 1,
            rounded => rounded,
        };
        Some((surge, unavailable.min(replicas)))
    }
}

/// The kind of a workload.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Kind {
    Deployment(Strategy),
    /// With the default pod management (ordered) and rolling updates; the pod template names the
    /// claim.
    StatefulSet,
    /// One pod on each node that the template selects and tolerates; replicas are ignored.
    DaemonSet,
    /// `replicas` is its parallelism. Each pod finishes some time after it starts to run.
    Job {
        completions: u8,
    },
    ReplicaSet,
}

impl Kind {
    /// Whether the pods run to completion.
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
        Self::Required { workloads, own_revision }
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
    /// Whether the pods use a host port, the same one for all workloads.
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

    /// The number of pods that exist at a time outside of rollouts.
    pub(crate) fn pods(&self, nodes: NodeSet) -> u8 {
        match self.kind {
            Kind::Deployment(_) | Kind::StatefulSet | Kind::ReplicaSet => self.replicas,
            Kind::DaemonSet => self.daemon_nodes(nodes).len(),
            Kind::Job { completions } => self.replicas.min(completions),
        }
    }

    /// The nodes of a DaemonSet's pods. The DaemonSet controller does not look at volumes.
    pub(crate) fn daemon_nodes(&self, nodes: NodeSet) -> NodeSet {
        nodes.and(self.selected).and(self.tolerated)
    }

    /// The affinity as the scheduler applies it: it ignores a `matchLabelKeys` key that the pod
    /// does not carry, and only the pods of a Deployment carry `pod-template-hash`.
    pub(crate) fn effective_affinity(&self) -> Option<(u8, bool)> {
        match self.affinity {
            Affinity::None | Affinity::Preferred => None,
            Affinity::Required { workloads, own_revision } => {
                Some((workloads, own_revision && self.has_hash()))
            }
        }
    }

    /// Whether the affinity looks at pods of other workloads; `own` is the index of this one.
    pub(crate) fn looks_at_others(&self, own: usize) -> bool {
        self.effective_affinity().is_some_and(|(workloads, _)| workloads & !(1 << own) != 0)
    }

    pub(crate) fn has_hash(&self) -> bool {
        matches!(self.kind, Kind::Deployment(_))
    }
}

/// The attach constraint that follows from the PV's access modes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Access {
    /// Refused on a second node by the attach-detach controller.
    Exclusive,
    Shared,
    /// ReadWriteOncePod: the scheduler admits one pod, and the attach-detach controller one node.
    SinglePod,
}

impl Access {
    /// The result of `IsMultiAttachAllowed` for these modes, and ReadWriteOncePod, which cannot be
    /// combined with other modes.
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
    /// The PV's node affinity, or the class's allowed topologies if there is no PV.
    pub(crate) nodes: NodeSet,
    pub(crate) binding: Binding,
}

/// The binding of claim and volume. The claim's own access modes never matter.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Deserialize)]
pub(crate) enum Binding {
    Bound,
    /// The PV names the claim, but the controller has not bound them yet.
    Reserved,
    /// There is no PV. It will be created in the zone of the first pod that is scheduled.
    Zonal,
}

impl Volume {
    /// Whether a second node or pod can be refused.
    pub(crate) fn is_guarded(&self) -> bool {
        self.contended() || self.access == Access::SinglePod
    }

    /// Whether an attachment can be refused. Only then are attachments part of the state.
    pub(crate) fn contended(&self) -> bool {
        self.attach_required && self.access != Access::Shared
    }
}

/// The input of one exploration.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Configuration {
    /// The zone of each node; as many entries as nodes.
    pub(crate) zones: Vec<u8>,
    pub(crate) volume: Volume,
    pub(crate) workloads: Vec<Workload>,
    /// The number of pods that fit on a node, if it is limited.
    pub(crate) capacity: Option<u8>,
}

impl Configuration {
    pub(crate) fn nodes(&self) -> NodeSet {
        NodeSet::first(self.zones.len())
    }

    /// The representative of all configurations that are equal to the model, apart from the names
    /// of nodes, so that each is explored once.
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

    /// The PV's node affinity limits the nodes of its users in the same way as a taint, and spread
    /// constraints ignore both. The DaemonSet controller, however, places pods without looking at
    /// volumes.
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
        let mut users = self.workloads.iter().filter(|workload| workload.uses_volume);
        if !zonal && users.all(|user| user.kind != Kind::DaemonSet) {
            for user in self.workloads.iter_mut().filter(|workload| workload.uses_volume) {
                user.tolerated = user.tolerated.and(volume.nodes);
                user.uses_volume = volume.access != Access::Shared;
            }
            volume.nodes = nodes;
        }
    }

    /// The workload with this index, without the settings that have no effect on it.
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
        // One node or one zone cannot be skewed.
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
        let mut zones =
            (0..self.zones.len()).filter(|node| nodes.has(*node)).map(|node| self.zones[node]);
        let first = zones.next();
        zones.all(|zone| Some(zone) == first)
    }

    /// Drops nodes that no workload selects, and sorts the others independently of their names.
    fn rename_nodes(&mut self) {
        if self.volume.binding != Binding::Zonal
            && self.workloads.iter().all(|workload| workload.zone_spread.is_none())
        {
            self.zones.fill(0);
        }
        let selected =
            |node: &usize| self.workloads.iter().any(|workload| workload.selected.has(*node));
        let mut order: Vec<usize> = (0..self.zones.len()).filter(selected).collect();
        order.sort_by_key(|node| {
            let uses = self.workloads.iter().fold(0, |uses: u8, workload| {
                let use_of_one = u8::from(workload.selected.has(*node)) * 2
                    + u8::from(workload.tolerated.has(*node));
                uses << 2 | use_of_one
            });
            (self.zones[*node], u8::from(self.volume.nodes.has(*node)), uses)
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

    /// The configurations with a bound volume: one for each zone in which the volume may be created
    /// because a pod that uses it can run there.
    pub(crate) fn bound(&self) -> Vec<Self> {
        if self.volume.binding != Binding::Zonal {
            return vec![self.clone()];
        }
        let mut zones = self.zones.clone();
        zones.sort_unstable();
        zones.dedup();
        let users = || self.workloads.iter().filter(|workload| workload.uses_volume);
        zones
            .into_iter()
            .map(|zone| {
                let nodes: Vec<_> =
                    (0..self.zones.len()).filter(|node| self.zones[*node] == zone).collect();
                let mut bound = self.clone();
                bound.volume.nodes = self.volume.nodes.and(NodeSet::of(&nodes));
                bound.volume.binding = Binding::Bound;
                bound
            })
            .filter(|bound| {
                users().any(|user| {
                    let own = user.selected.and(user.tolerated);
                    own.and(bound.volume.nodes).len() > 0
                })
            })
            .collect()
    }

    /// The workload as manifests write it: restricted to nodes that exist.
    pub(crate) fn written(&self, workload: usize) -> Workload {
        let workload = self.workloads[workload];
        Workload {
            selected: workload.selected.and(self.nodes()),
            tolerated: workload.tolerated.and(self.nodes()),
            ..workload
        }
    }

    /// Whether the loss of a pod can make a difference: the nodes of pods matter, and some
    /// workload's affinity looks at another workload's pods.
    pub(crate) fn can_part_by_losses(&self) -> bool {
        let mut workloads = self.workloads.iter().enumerate();
        self.volume.is_guarded() && workloads.any(|(own, workload)| workload.looks_at_others(own))
    }
}
