//! A scenario as data: what exists, what a user does, and how it must end.

use serde_json::Value;

use crate::manifests::{Class, Volume, Workload};
use crate::outcome::Outcome;

/// One row of the table of ground truth.
#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    /// Its name in that table.
    pub(crate) name: &'static str,
    /// What it is about.
    pub(crate) title: &'static str,
    /// The zones of its nodes, called `{run}-a`, `{run}-b`, …; one node for each.
    pub(crate) zones: Vec<&'static str>,
    /// The zones of further nodes, whose taint its pods do not tolerate.
    pub(crate) foreign_zones: Vec<&'static str>,
    /// Its nodes, by their number, that have one more taint.
    pub(crate) tainted: Vec<usize>,
    /// The `kubernetes.io/hostname` labels of its first nodes that are not their names.
    pub(crate) hostnames: Vec<&'static str>,
    /// What its first nodes have beside CPUs and memory: so many of this resource.
    pub(crate) resources: Vec<(&'static str, u32)>,
    /// The class of its claims; what the first volume needs where nothing is said.
    pub(crate) class: Option<Class>,
    /// The volumes that exist beforehand.
    pub(crate) volumes: Vec<Volume>,
    /// What else exists beforehand.
    pub(crate) existing: Vec<Value>,
    /// What the user does, one after the other; the scenario's outcome is the worst
    /// that any of it leads to.
    pub(crate) actions: Vec<Action>,
    /// The outcomes that ground truth allows.
    pub(crate) expected: &'static [Outcome],
    /// A way out, and everything must run at its end.
    pub(crate) recovery: Vec<Action>,
    /// What the engine can know about it.
    pub(crate) engine: Engine,
    /// Whether it needs a cluster in which nothing else happens.
    pub(crate) alone: bool,
}

/// What the engine's verdict on the scenario's objects is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    /// What was observed.
    Observation,
    /// Not what was observed, for this reason.
    Not {
        /// What it says instead.
        verdict: Outcome,
        /// Why nothing else can be asked of it.
        because: &'static str,
    },
}

/// Something a user or fate does. `{node}` and `{pod}` in its texts are what the last
/// [`Action::Find`] has found.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    /// `kubectl apply` of these objects in one file, then come to rest.
    Apply(Vec<Value>),
    /// The same, and the next action follows at once.
    ApplyAtOnce(Vec<Value>),
    /// Server-side apply of one object, without kubectl; then come to rest.
    Write(Value),
    /// kubectl with these arguments in the scenario's namespace, then come to rest.
    Kubectl(Vec<&'static str>),
    /// The same, and the next action follows at once.
    KubectlAtOnce(Vec<&'static str>),
    /// Looks for the running pod of this app and the node it is on.
    Find(&'static str),
    /// `{node}` dies; wait until its pod is told to leave, then come to rest.
    Die,
    /// Wait until everything runs; it may take this many seconds.
    Heal(u64),
}

impl Action {
    /// Whether to wait for what comes of it before the next action.
    pub(crate) const fn rests(&self) -> bool {
        match self {
            Self::Apply(_) | Self::Write(_) | Self::Kubectl(_) | Self::Die | Self::Heal(_) => true,
            Self::ApplyAtOnce(_) | Self::KubectlAtOnce(_) | Self::Find(_) => false,
        }
    }
}

impl Scenario {
    /// A scenario with three nodes in one zone.
    pub(crate) fn new(name: &'static str, title: &'static str) -> Self {
        Self {
            name,
            title,
            zones: vec!["zone-1"; 3],
            foreign_zones: Vec::new(),
            tainted: Vec::new(),
            hostnames: Vec::new(),
            resources: Vec::new(),
            class: None,
            volumes: Vec::new(),
            existing: Vec::new(),
            actions: Vec::new(),
            expected: &[],
            recovery: Vec::new(),
            engine: Engine::Observation,
            alone: false,
        }
    }

    /// One node for each of these zones.
    pub(crate) fn zones(mut self, zones: &[&'static str]) -> Self {
        self.zones = zones.to_vec();
        self
    }

    /// One more node for each of these zones, with a taint its pods do not tolerate.
    pub(crate) fn foreign_zones(mut self, zones: &[&'static str]) -> Self {
        self.foreign_zones = zones.to_vec();
        self
    }

    /// Hostname labels of the first nodes that are not their names; `{run}` is filled in.
    pub(crate) fn hostnames(mut self, hostnames: &[&'static str]) -> Self {
        self.hostnames = hostnames.to_vec();
        self
    }

    /// So many of a resource on each of the first nodes.
    pub(crate) fn resources(mut self, resources: &[(&'static str, u32)]) -> Self {
        self.resources = resources.to_vec();
        self
    }

    /// The class of the claims.
    pub(crate) fn class(mut self, class: Class) -> Self {
        self.class = Some(class);
        self
    }

    /// A volume that exists, bound or waiting.
    pub(crate) fn volume(mut self, volume: Volume) -> Self {
        self.volumes.push(volume);
        self
    }

    /// Something else that exists.
    pub(crate) fn existing(mut self, object: Value) -> Self {
        self.existing.push(object);
        self
    }

    /// The user applies a workload.
    pub(crate) fn apply(self, workload: &Workload) -> Self {
        self.then(Action::Apply(vec![workload.manifest()]))
    }

    /// The user rolls out a new image of a Deployment.
    pub(crate) fn roll_out(self, command: &[&'static str]) -> Self {
        self.then(Action::Kubectl(command.to_vec()))
    }

    /// The next action.
    pub(crate) fn then(mut self, action: Action) -> Self {
        self.actions.push(action);
        self
    }

    /// The outcomes that ground truth allows.
    pub(crate) fn ends(mut self, expected: &'static [Outcome]) -> Self {
        self.expected = expected;
        self
    }

    /// What the engine must say when it cannot know what was observed.
    pub(crate) fn engine_says(mut self, verdict: Outcome, because: &'static str) -> Self {
        self.engine = Engine::Not { verdict, because };
        self
    }

    /// A scenario about waiting for an event that does not come. Any node that comes
    /// or goes wakes the scheduler, so it gets a control plane for itself.
    pub(crate) fn alone(mut self) -> Self {
        self.alone = true;
        self
    }

    /// A way out of it.
    pub(crate) fn recovers(mut self, actions: Vec<Action>) -> Self {
        self.recovery = actions;
        self
    }
}
