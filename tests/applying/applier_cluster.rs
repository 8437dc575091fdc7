//! The control plane, its nodes, and two guards, each with its own namespaces.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use axum::http::Method;
use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use serde_json::json;

use crate::harness::fake_nodes::ATTACHING_DRIVER;
use crate::harness::guard::policy_of;
use crate::harness::shorthand::bound_claim;
use crate::harness::webhooks::Registration;
use crate::harness::{self, ControlPlane, FakeNodes, Guard, Needs, NodeSpec, wait_until};
use crate::install::{self, UNGUARDED};
use crate::manifests::NODES;

/// The time limit for a rollout, generous even on a busy machine.
const WITHIN: Duration = Duration::from_secs(300);

/// The label of a namespace; its value names the guard that is responsible for it.
const LABEL: &str = "guard";

/// The guard's reaction to findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// It repairs, with this remedy.
    Fix(&'static str),
    /// The built-in policy.
    Deny,
    /// The policy of the overlay `warn-only`.
    WarnOnly,
    /// There is no guard.
    Absent,
}

impl Mode {
    fn name(self) -> String {
        match self {
            Self::Fix(remedy) => format!("fix-{remedy}"),
            Self::Deny => "deny".to_owned(),
            Self::WarnOnly => "warn-only".to_owned(),
            Self::Absent => "absent".to_owned(),
        }
    }

    /// The guard that is responsible for the mode's namespaces.
    const fn guard(self) -> &'static str {
        match self {
            Self::Fix(_) | Self::Deny => "usual",
            Self::WarnOnly => "warn-only",
            Self::Absent => "absent",
        }
    }
}

/// The policy of the guard that is responsible for most namespaces, by their names.
fn usual_policy() -> String {
    let entries = ["auto", "recreate", "zero-surge", "colocate"].map(|remedy| {
        json!({
            "match": { "names": [format!("{}-*", Mode::Fix(remedy).name())] },
            "outcomes": { "deadlock": "fix", "stuck": "fix" },
            "remedy": remedy,
        })
    });
    json!({ "namespaces": entries }).to_string()
}

/// The environment that all cells share.
pub(crate) struct ApplierCluster {
    pub(crate) plane: &'static ControlPlane,
    /// The programs that apply manifests, besides those of the control plane.
    pub(crate) programs: PathBuf,
    /// A kubeconfig whose requests are sent to no guard.
    pub(crate) unguarded: PathBuf,
    _nodes: FakeNodes<'static>,
    _guards: [(Guard, Registration<'static>); 2],
}

/// The cluster that all tests share; `None` if this machine lacks the programs for it.
pub(crate) fn shared() -> Option<&'static ApplierCluster> {
    static CLUSTER: OnceLock<Option<ApplierCluster>> = OnceLock::new();
    CLUSTER.get_or_init(ApplierCluster::new).as_ref()
}

impl ApplierCluster {
    fn new() -> Option<Self> {
        let programs = harness::built(&["build-appliers"], "Helm 3, Flux and Argo CD")?;
        let plane = harness::require_control_plane(Needs::Controllers)?;
        let nodes = plane.fake_nodes();
        nodes.add(&NODES.map(|name| NodeSpec {
            name: name.to_owned(),
            zone: "zone".to_owned(),
            cpus: 64,
            ..NodeSpec::default()
        }));
        let warn_only = policy_of("components/warn-only/policy.yaml");
        let guards = [(Mode::Deny, usual_policy()), (Mode::WarnOnly, warn_only)];
        Some(Self {
            unguarded: plane.kubeconfig_as(UNGUARDED, &["system:masters"]),
            plane,
            programs,
            _nodes: nodes,
            _guards: guards.map(|(mode, policy)| {
                let selector = json!({ "matchLabels": { LABEL: mode.guard() } });
                install::guard(plane, mode.guard(), &policy, &[], |webhook| {
                    webhook["namespaceSelector"] = selector.clone();
                })
            }),
        })
    }

    /// A namespace with a bound claim, under the guard of this mode.
    pub(crate) fn namespace(&self, mode: Mode) -> Result<String, String> {
        let labels = json!({ LABEL: mode.guard() });
        let namespace = self.plane.labelled_namespace(&mode.name(), &labels);
        let unguarded = format!("--kubeconfig={}", self.unguarded.display());
        let create = ["create", "-f", "-", &unguarded];
        for object in bound_claim(&namespace, "data", ATTACHING_DRIVER) {
            self.plane.kubectl(&create, Some(&object.to_string())).done()?;
        }
        let bound = "--for=jsonpath={.status.phase}=Bound";
        let wait = ["wait", bound, "pvc/data", "--timeout=300s", "--namespace", &namespace];
        self.plane.kubectl(&wait, None).done()?;
        Ok(namespace)
    }

    /// The stored Deployment.
    pub(crate) fn read(&self, namespace: &str) -> Result<Deployment, String> {
        let deployments = Api::<Deployment>::namespaced(self.plane.client(), namespace);
        self.plane.block_on(deployments.get("web")).map_err(|error| error.to_string())
    }

    /// Waits until the rollout ends, or exceeds the Deployment's progress deadline; returns whether
    /// it ended.
    pub(crate) fn rollout_ends(&self, namespace: &str) -> Result<bool, String> {
        wait_until("the rollout to end or to hang", WITHIN, || {
            let deployment = self.read(namespace)?;
            let status = deployment.status.unwrap_or_default();
            let seen = status.observed_generation >= deployment.metadata.generation;
            let one = Some(1);
            let all = status.updated_replicas == one
                && status.available_replicas == one
                && status.replicas == one;
            let conditions = status.conditions.iter().flatten();
            let mut reasons = conditions.filter_map(|condition| condition.reason.as_deref());
            match seen {
                true if all => Ok(true),
                true if reasons.any(|reason| reason == "ProgressDeadlineExceeded") => Ok(false),
                _ => Err(format!("{status:?}")),
            }
        })
    }

    /// Deletes the Deployment, so that its pods cause no further work.
    pub(crate) fn remove(&self, namespace: &str) {
        let path = format!("/apis/apps/v1/namespaces/{namespace}/deployments/web");
        let background = json!({ "propagationPolicy": "Background" });
        let _ = self.plane.send(Method::DELETE, &path, &background);
    }

    /// A folder for the files of one namespace.
    pub(crate) fn folder(&self, namespace: &str) -> PathBuf {
        let folder = self.plane.write_file(namespace, "").with_extension("d");
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }
}
