//! Reads workloads of every kind into one type.

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny};

use super::Text;
use super::autoscaler::ScaleTarget;
use super::claim::Claim;
use super::condition::Condition;
use super::de::{for_each, nullable};
use super::metadata::{KEDA_PAUSED, Metadata};
use super::pod::{PodSpec, TemplateMetadata, WrittenTemplate};
use super::resource::Resource;
use super::strategy_reader::WrittenStrategy;
use super::workload::{Workload, WorkloadKind};

impl Workload {
    /// Reads an object of `kind`.
    ///
    /// # Errors
    ///
    /// A field does not have the type that it has in the API.
    pub(crate) fn read<'de, D: Deserializer<'de>>(
        kind: WorkloadKind,
        deserializer: D,
    ) -> Result<Self, D::Error> {
        if kind == WorkloadKind::Pod {
            return Ok(bare_pod(Resource::deserialize(deserializer)?));
        }
        let object = Resource::<Spec, Status>::deserialize(deserializer)?;
        let status = object.status;
        Ok(Self {
            is_behind: status.is_behind(),
            finished: kind == WorkloadKind::Job
                && (status.completion_time.is_some() || status.has_ended),
            ready: status.ready_replicas > 0,
            ..object.spec.workload(kind, object.metadata)
        })
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    replicas: Option<i64>,
    #[serde(deserialize_with = "nullable")]
    strategy: WrittenStrategy,
    #[serde(deserialize_with = "nullable")]
    update_strategy: WrittenStrategy,
    #[serde(deserialize_with = "nullable")]
    template: WrittenTemplate,
    workload_ref: Option<Box<ScaleTarget>>,
    max_replica_count: Option<i64>,
    #[serde(deserialize_with = "nullable")]
    job_target_ref: JobSpec,
    #[serde(deserialize_with = "nullable")]
    volume_claim_templates: Box<[Claim]>,
    #[serde(deserialize_with = "nullable")]
    ordinals: Ordinals,
    parallelism: Option<i64>,
    completions: Option<i64>,
    completion_mode: Option<Text>,
    #[serde(deserialize_with = "nullable")]
    job_template: JobTemplate,
    #[serde(deserialize_with = "nullable")]
    managed_by: Text,
    #[serde(deserialize_with = "nullable")]
    manual_selector: bool,
    #[serde(deserialize_with = "nullable")]
    paused: bool,
    #[serde(deserialize_with = "nullable")]
    suspend: bool,
}

impl Spec {
    /// Whether the Jobs of a workload of `kind` are suspended, or a controller other than the Job's
    /// own creates the pods, perhaps elsewhere.
    fn is_suspended(&self, kind: WorkloadKind, metadata: &Metadata) -> bool {
        let is_foreign = kind == WorkloadKind::Job
            && !matches!(self.managed_by.as_str(), "" | "kubernetes.io/job-controller");
        let is_paused_by_keda = kind == WorkloadKind::ScaledJob && metadata.is_set(KEDA_PAUSED);
        self.suspend || is_foreign || is_paused_by_keda
    }

    /// The workload, without the fields that its status decides.
    fn workload(mut self, kind: WorkloadKind, metadata: Metadata) -> Workload {
        let suspended = self.is_suspended(kind, &metadata);
        let job = match kind {
            WorkloadKind::CronJob => std::mem::take(&mut self.job_template.spec),
            WorkloadKind::ScaledJob => std::mem::take(&mut self.job_target_ref),
            _ => JobSpec {
                parallelism: self.parallelism,
                completions: self.completions,
                completion_mode: self.completion_mode,
                suspend: false,
                template: self.template,
            },
        };
        let replicas = job.pods_of(kind, self.replicas, self.max_replica_count);
        let claim_templates = match kind {
            WorkloadKind::StatefulSet => self.volume_claim_templates,
            // The claims of a CloneSet have random names.
            _ => Box::default(),
        };
        let WrittenTemplate { metadata: TemplateMetadata { labels }, spec } = job.template;
        let mut template = spec.template(labels, &claim_templates);
        if kind == WorkloadKind::Job && !self.manual_selector && !metadata.name.is_empty() {
            // The Job's strategy in the API server adds these after admission
            // (`generateSelector` in `pkg/registry/batch/job/strategy.go`).
            for label in ["batch.kubernetes.io/job-name", "job-name"] {
                template.labels = template.labels.with(label, &metadata.name);
            }
        }
        let is_job =
            matches!(kind, WorkloadKind::Job | WorkloadKind::CronJob | WorkloadKind::ScaledJob);
        let mut strategy = match kind {
            WorkloadKind::StatefulSet | WorkloadKind::DaemonSet | WorkloadKind::CloneSet => {
                self.update_strategy
            }
            _ => self.strategy,
        };
        let hook_volumes = match kind {
            WorkloadKind::DeploymentConfig => strategy.take_hook_volumes(),
            _ => Box::default(),
        };
        Workload {
            kind,
            metadata,
            replicas,
            partition: match kind {
                WorkloadKind::StatefulSet => strategy.partition(),
                _ => 0,
            },
            is_behind: None,
            keeps_revisions_apart: kind == WorkloadKind::Rollout
                && strategy.keeps_revisions_apart(),
            hook_volumes,
            strategy: strategy.of_kind(kind),
            template,
            template_source: self.workload_ref.filter(|_| kind == WorkloadKind::Rollout),
            claim_templates,
            first_ordinal: self.ordinals.start,
            paused: self.paused,
            suspended: is_job && (suspended || job.suspend),
            indexed: job.completion_mode.as_deref() == Some("Indexed"),
            finished: false,
            ready: false,
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Ordinals {
    #[serde(deserialize_with = "nullable")]
    start: i64,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct JobTemplate {
    #[serde(deserialize_with = "nullable")]
    spec: JobSpec,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct JobSpec {
    parallelism: Option<i64>,
    completions: Option<i64>,
    completion_mode: Option<Text>,
    #[serde(deserialize_with = "nullable")]
    suspend: bool,
    #[serde(deserialize_with = "nullable")]
    template: WrittenTemplate,
}

/// The most Jobs that a ScaledJob without `maxReplicaCount` starts (KEDA's documentation,
/// "ScaledJob specification").
const MAX_SCALED_JOBS: i64 = 100;

impl JobSpec {
    /// The number of pods that a workload of `kind` with such Jobs or with `replicas` wants.
    fn pods_of(&self, kind: WorkloadKind, replicas: Option<i64>, max_jobs: Option<i64>) -> i64 {
        match kind {
            WorkloadKind::Job | WorkloadKind::CronJob => self.pods(),
            WorkloadKind::ScaledJob => {
                let jobs = max_jobs.unwrap_or(MAX_SCALED_JOBS);
                jobs.saturating_mul(self.pods())
            }
            WorkloadKind::DaemonSet | WorkloadKind::Pod => 1,
            // Its API has no default, so a missing number means no pods.
            WorkloadKind::DeploymentConfig => replicas.unwrap_or(0),
            WorkloadKind::Deployment
            | WorkloadKind::ReplicaSet
            | WorkloadKind::StatefulSet
            | WorkloadKind::ReplicationController
            | WorkloadKind::Rollout
            | WorkloadKind::CloneSet => replicas.unwrap_or(1),
        }
    }

    /// The number of its pods that run at the same time.
    fn pods(&self) -> i64 {
        let parallelism = self.parallelism.unwrap_or(1);
        let completions = self.completions.unwrap_or(parallelism);
        parallelism.min(completions)
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status {
    #[serde(deserialize_with = "nullable")]
    ready_replicas: i64,
    #[serde(deserialize_with = "nullable")]
    current_revision: Text,
    #[serde(deserialize_with = "nullable")]
    update_revision: Text,
    /// The time at which a Job was complete.
    completion_time: Option<IgnoredAny>,
    #[serde(rename = "conditions", deserialize_with = "has_ended")]
    has_ended: bool,
}

impl Status {
    /// Whether some pods are of another revision than the template is now.
    fn is_behind(&self) -> Option<bool> {
        let is_known = !self.update_revision.is_empty();
        is_known.then(|| self.current_revision != self.update_revision)
    }
}

/// Whether the conditions of a Job say that it is complete or has failed.
fn has_ended<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    let mut has_ended = false;
    for_each(deserializer, "a list", |condition: Condition| {
        has_ended |=
            matches!(condition.kind.as_str(), "Complete" | "Failed") && condition.status == "True";
    })?;
    Ok(has_ended)
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PodStatus {
    #[serde(deserialize_with = "nullable")]
    phase: Text,
}

fn bare_pod(pod: Resource<PodSpec, PodStatus>) -> Workload {
    let metadata = TemplateMetadata { labels: pod.metadata.labels.clone() };
    let template = WrittenTemplate { metadata, spec: pod.spec };
    let phase = pod.status.phase.as_str();
    Workload {
        finished: matches!(phase, "Succeeded" | "Failed"),
        ready: phase == "Running",
        ..Spec { template, ..Spec::default() }.workload(WorkloadKind::Pod, pod.metadata)
    }
}
