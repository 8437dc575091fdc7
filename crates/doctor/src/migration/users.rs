//! Who uses a claim: how each is stopped, given another claim and started again.

use serde_json::{Value, json};

use super::MigrationInput;
use engine::model::Text;
use engine::model::autoscaler::Autoscaler;
use engine::model::object::{ObjectKind, ObjectRef};
use engine::model::pod::PodVolumeSource;
use engine::model::strategy::Strategy;
use engine::model::workload::{Workload, WorkloadKind};
use engine::observed::Pod;
use engine::policy::keys;

/// A label that no node has: it keeps the pods of a DaemonSet away from all of them.
const NOWHERE: &str = "stopped-for-migration";

/// A workload that uses the claim.
pub(super) struct User<'a> {
    pub(super) workload: &'a Workload,
    pub(super) autoscalers: Vec<&'a Autoscaler>,
    /// The places of the volumes that name the claim.
    places: Vec<usize>,
}

impl<'a> User<'a> {
    pub(super) fn of(workload: &'a Workload, claim: &str, facts: MigrationInput<'a>) -> Self {
        let volumes = workload.template.volumes.iter();
        let places = volumes.filter(
            |volume| matches!(&volume.source, PodVolumeSource::Claim { name } if name == claim),
        );
        let metadata = &workload.metadata;
        let view = facts.cluster.objects.view;
        Self {
            autoscalers: view.autoscalers_of(workload.kind, &metadata.namespace, &metadata.name),
            places: places.map(|volume| volume.index).collect(),
            workload,
        }
    }

    pub(super) const fn kind(&self) -> WorkloadKind {
        self.workload.kind
    }

    /// `Deployment web`.
    pub(super) fn shown(&self) -> String {
        format!("{} {}", self.kind(), self.workload.metadata.name)
    }

    /// `deployment/web`, as kubectl takes it.
    pub(super) fn target(&self) -> String {
        let kind = self.kind().name().to_lowercase();
        format!("{kind}/{}", self.workload.metadata.name)
    }

    pub(super) fn reference(&self) -> (ObjectKind, ObjectRef) {
        let kind = ObjectKind::Workload(self.kind());
        let metadata = &self.workload.metadata;
        (kind, kind.reference(&metadata.namespace, &metadata.name))
    }

    /// Whether its pods come of a template that can be changed.
    pub(super) const fn can_change(&self) -> bool {
        !matches!(self.kind(), WorkloadKind::Job | WorkloadKind::Pod)
    }

    /// Whether it has pods, or may have some at any moment.
    pub(super) fn runs(&self) -> bool {
        self.workload.has_pods()
    }

    /// The arguments of kubectl that make its pods go away.
    pub(super) fn stop(&self) -> Vec<String> {
        match self.kind() {
            kind if kind.scales() => self.scale(0),
            WorkloadKind::DaemonSet => self.merge(&selector(json!("true"))),
            WorkloadKind::CronJob | WorkloadKind::Job => {
                self.merge(&json!({"spec": {"suspend": true}}))
            }
            _ => vec!["delete".to_owned(), self.target()],
        }
    }

    /// The arguments of kubectl that bring them back; `None` where it has to be created anew.
    pub(super) fn start(&self) -> Option<Vec<String>> {
        match self.kind() {
            kind if kind.scales() => Some(self.scale(self.workload.replicas)),
            WorkloadKind::DaemonSet => Some(self.merge(&selector(Value::Null))),
            WorkloadKind::CronJob => Some(self.merge(&json!({"spec": {"suspend": false}}))),
            _ => None,
        }
    }

    /// The arguments of kubectl that have the guard let it pass: on the old claim it may be at
    /// fault, as it was before.
    pub(super) fn warned_of_until(&self, day: &str) -> Vec<String> {
        let annotations = [
            (keys::ACTION, "warn"),
            (keys::UNTIL, day),
            (keys::REASON, "back to the claim it had"),
        ];
        let annotations = annotations.map(|(key, value)| format!("{key}={value}"));
        let mut arguments = vec!["annotate".to_owned(), self.target()];
        arguments.extend(annotations);
        arguments.push("--overwrite".to_owned());
        arguments
    }

    /// The arguments of kubectl that put one claim in the place of another.
    pub(super) fn change(&self, from: &str, to: &str) -> Vec<String> {
        let pods = pod_spec(self.kind());
        let patch: Vec<Value> = self
            .places
            .iter()
            .flat_map(|place| {
                let path = format!("{pods}/volumes/{place}/persistentVolumeClaim/claimName");
                // Somebody may have changed the volumes since.
                [
                    json!({"op": "test", "path": path, "value": from}),
                    json!({"op": "replace", "path": path, "value": to}),
                ]
            })
            .collect();
        self.patch("json", &Value::Array(patch))
    }

    /// The arguments of kubectl that name the Jobs of a CronJob that have not finished:
    /// suspending it does not stop them (`CronJobSpec` in `batch/v1`), and one whose pod
    /// has failed makes another after a while (`pkg/controller/job/backoff_utils.go`).
    pub(super) fn active_jobs(&self) -> Option<Vec<String>> {
        (self.kind() == WorkloadKind::CronJob).then(|| {
            let names = "jsonpath={.status.active[*].name}";
            ["get", &self.target(), "-o", names]
                .map(str::to_owned)
                .to_vec()
        })
    }

    /// Whether the pods of one revision have to be gone before those of the next come.
    pub(super) const fn recreates(&self) -> bool {
        matches!(self.kind(), WorkloadKind::Deployment)
            && matches!(self.workload.strategy, Strategy::Recreate { .. })
    }

    fn scale(&self, replicas: i64) -> Vec<String> {
        let replicas = format!("--replicas={replicas}");
        vec!["scale".to_owned(), self.target(), replicas]
    }

    fn merge(&self, patch: &Value) -> Vec<String> {
        self.patch("merge", patch)
    }

    pub(super) fn patch(&self, kind: &str, patch: &Value) -> Vec<String> {
        vec![
            "patch".to_owned(),
            self.target(),
            format!("--type={kind}"),
            "-p".to_owned(),
            patch.to_string(),
        ]
    }
}

/// The pointer to the pod specification in the document of a workload.
pub(super) fn pod_spec(kind: WorkloadKind) -> String {
    format!("/{}", kind.pod_spec_path().replace('.', "/"))
}

fn selector(value: Value) -> Value {
    let mut labels = serde_json::Map::new();
    labels.insert(NOWHERE.to_owned(), value);
    json!({"spec": {"template": {"spec": {"nodeSelector": labels}}}})
}

/// Something that is not known here and whose pods use the claim, be it through a workload
/// that it owns: a Rollout and its ReplicaSets, what operators make of their own resources.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Stranger {
    pub(super) kind: Text,
    pub(super) name: Text,
}

impl Stranger {
    /// The owners of the workloads, and those to which pods belong that are of no workload.
    pub(super) fn among(pods: &[&Pod], workloads: &[&Workload]) -> Vec<Self> {
        let owners = workloads.iter().filter_map(|it| Self::owner_of(it));
        let unknown = pods
            .iter()
            .filter(|pod| !workloads.iter().any(|it| has(it, pod)))
            .map(|pod| {
                let (kind, name) = pod.workload();
                Self { kind, name }
            });
        let mut strangers: Vec<Self> = owners.chain(unknown).collect();
        strangers.sort();
        strangers.dedup();
        strangers
    }

    /// Whose controller manages the workload, and would undo a change to it. Anybody may
    /// write an owner reference; who does so misleads a reader here, and gains nothing.
    fn owner_of(workload: &Workload) -> Option<Self> {
        let owner = workload.metadata.controller.as_ref()?;
        Some(Self {
            kind: owner.kind.clone(),
            name: owner.name.clone(),
        })
    }

    /// `Rollout web`.
    pub(super) fn shown(&self) -> String {
        format!("{} {}", self.kind, self.name)
    }
}

/// Whether the pod is one of the workload's.
fn has(workload: &Workload, pod: &Pod) -> bool {
    let (kind, name) = pod.workload();
    let is_own = workload.kind.name() == kind && workload.metadata.name == name;
    let labels = &workload.template.labels;
    // The Jobs of a CronJob come and go, and are not kept.
    let is_of_cron_job = workload.kind == WorkloadKind::CronJob
        && kind == "Job"
        && name.starts_with(workload.metadata.name.as_str());
    is_own || is_of_cron_job || (!labels.is_empty() && labels.is_subset(&pod.meta.labels))
}
