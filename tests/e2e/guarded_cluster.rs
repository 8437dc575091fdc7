//! The environment that all cases share: a control plane, the guard that watches it, and its
//! webhooks.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

use serde_json::{Value, json};

use crate::harness::asking;
use crate::harness::shorthand::object;
use crate::harness::webhooks::Registration;
use crate::harness::{self, ControlPlane, Guard, Lent, Needs};
use crate::install::{self, UNGUARDED};
use crate::objects::{DISK, SHARE};
use crate::stored;

/// The policies, by the beginning of a namespace's name. Without an entry, as for `deny`, the
/// built-in policy applies.
const POLICY: &str = "
namespaces:
- match: {names: [warn-*]}
  outcomes: {deadlock: warn, stuck: warn, refused: warn}
- match: {names: [fix-recreate-*]}
  outcomes: &fix {deadlock: fix, stuck: fix, delay: fix}
  remedy: recreate
- match: {names: [fix-zero-surge-*]}
  outcomes: *fix
  remedy: zero-surge
- match: {names: [fix-colocate-*]}
  outcomes: *fix
  remedy: colocate
- match: {names: [fix-*]}
  outcomes: *fix
- match: {names: [judge-*]}
  controlled: judge
- match: {names: [forbid-*]}
  overrides: forbid
exemptions:
- namespaces: [exempt-*]
  reason: exemptions are tested here
";

/// A control plane with a guard.
pub(crate) struct GuardedCluster {
    /// The control plane.
    pub(crate) plane: &'static ControlPlane,
    /// The guard.
    pub(crate) guard: Guard,
    /// A client whose requests do not reach the guard.
    pub(crate) unguarded: kube::Client,
    _registration: Registration<'static>,
}

/// A cluster that several cases share. It starts with the first of them and stops after the last,
/// so that another cluster can take its place.
pub(crate) struct Shared {
    needs: Needs,
    /// A failed start is kept, so that not every case tries again. The cluster is dropped before its
    /// control plane.
    cluster: OnceLock<Option<Result<(GuardedCluster, Lent), String>>>,
}

impl Shared {
    /// A cluster on a control plane with these needs. Without controllers, only the cases change
    /// objects.
    pub(crate) const fn on(needs: Needs) -> Self {
        Self { needs, cluster: OnceLock::new() }
    }

    /// The cluster, or `None` if there is no control plane.
    ///
    /// # Panics
    ///
    /// If it did not start.
    pub(crate) fn cluster(&self) -> Option<&GuardedCluster> {
        let make = || {
            let plane = Lent::new(harness::start_control_plane(self.needs)?);
            let made = catch_unwind(AssertUnwindSafe(|| GuardedCluster::new(plane.0)))
                .map_err(|_| "It did not start; the first case says why.".to_owned());
            Some(made.map(|cluster| (cluster, plane)))
        };
        let cluster = self.cluster.get_or_init(make).as_ref()?;
        let (cluster, _) = cluster.as_ref().unwrap_or_else(|reason| panic!("{reason}"));
        Some(cluster)
    }
}

/// A cluster for the caller only, with the policies in the API server, and the standalone one.
pub(crate) fn with_policies() -> Option<(Lent, GuardedCluster)> {
    let plane = Lent::new(harness::start_control_plane(Needs::ApiServer)?);
    install::policies(plane.0);
    install::standalone(plane.0);
    let cluster = GuardedCluster::of(plane.0, &["--admission-policies"]);
    Some((plane, cluster))
}

impl GuardedCluster {
    pub(crate) fn new(plane: &'static ControlPlane) -> Self {
        Self::of(plane, &[])
    }

    fn of(plane: &'static ControlPlane, arguments: &[&str]) -> Self {
        let unguarded =
            plane.block_on(asking::client(plane.kubeconfig(), Some(UNGUARDED))).unwrap();
        for object in base() {
            stored::create(plane, &unguarded, "", &object).unwrap();
        }
        let (guard, registration) = install::guard(plane, "e2e", POLICY, arguments, |_| ());
        Self { plane, guard, unguarded, _registration: registration }
    }

    /// Creates an object without the guard.
    pub(crate) fn make(&self, namespace: &str, manifest: &Value) -> Result<(), String> {
        stored::create(self.plane, &self.unguarded, namespace, manifest)
    }
}

/// Three nodes in two zones, and the classes and drivers that cases use.
fn base() -> [Value; 8] {
    let node = |name: &str, zone: &str| {
        let labels = json!({ "kubernetes.io/hostname": name, "topology.kubernetes.io/zone": zone, "pool": "main" });
        json!({ "kind": "Node", "name": name, "labels": labels })
    };
    let driver = |name: &str, attach: bool| {
        let spec = json!({ "attachRequired": attach });
        json!({ "kind": "CSIDriver", "name": name, "with": { "spec": spec } })
    };
    let class = |name: &str, provisioner: &str| {
        let with = json!({ "provisioner": provisioner, "allowVolumeExpansion": true });
        json!({ "kind": "StorageClass", "name": name, "with": with })
    };
    [
        node("node-a", "east"),
        node("node-b", "east"),
        node("node-c", "west"),
        driver(DISK, true),
        driver(SHARE, false),
        class("disk", DISK),
        class("share", SHARE),
        class("ebs", "ebs.csi.aws.com"),
    ]
    .map(object)
}
