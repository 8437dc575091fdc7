//! Reads workloads of every kind into one type.

use serde::Deserialize;
use serde::de::Deserializer;

use super::Text;
use super::claim::Claim;
use super::de::{nullable, present};
use super::metadata::Metadata;
use super::pod::{PodSpec, PodTemplate};
use super::strategy::Strategy;
use super::workload::{Workload, WorkloadKind};

impl Workload {
    /// Reads an object of `kind`.
    ///
    /// # Errors
    ///
    /// When a field does not have the type that it has in the API.
    pub(crate) fn read<'de, D: Deserializer<'de>>(
        kind: WorkloadKind,
        deserializer: D,
    ) -> Result<Self, D::Error> {
        Ok(match kind {
            WorkloadKind::Pod => BarePod::deserialize(deserializer)?.workload(),
            WorkloadKind::Job => {
                let job = Wire::<JobStatus>::deserialize(deserializer)?;
                let finished = job.status.finished();
                job.spec.workload(kind, job.metadata, finished, false)
            }
            _ => {
                let wire = Wire::<Status>::deserialize(deserializer)?;
                let ready = wire.status.ready_replicas > 0;
                wire.spec.workload(kind, wire.metadata, false, ready)
            }
        })
    }
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "S: Deserialize<'de> + Default"))]
struct Wire<S> {
    #[serde(default, deserialize_with = "nullable")]
    metadata: Metadata,
    #[serde(default, deserialize_with = "nullable")]
    spec: Spec,
    #[serde(default, deserialize_with = "nullable")]
    status: S,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    replicas: Option<i64>,
    strategy: Strategy,
    update_strategy: Strategy,
    template: PodTemplate,
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
    fn workload(
        mut self,
        kind: WorkloadKind,
        metadata: Metadata,
        finished: bool,
        ready: bool,
    ) -> Workload {
        // A controller other than the Job's own creates its pods, perhaps elsewhere.
        let is_foreign = kind == WorkloadKind::Job
            && !matches!(
                self.managed_by.as_str(),
                "" | "kubernetes.io/job-controller"
            );
        let suspended = self.suspend || is_foreign;
        let job = match kind {
            WorkloadKind::CronJob => std::mem::take(&mut self.job_template.spec),
            _ => JobSpec {
                parallelism: self.parallelism,
                completions: self.completions,
                completion_mode: self.completion_mode,
                suspend: false,
                template: self.template,
            },
        };
        let replicas = match kind {
            WorkloadKind::Job | WorkloadKind::CronJob => {
                let parallelism = job.parallelism.unwrap_or(1);
                job.completions
                    .map_or(parallelism, |completions| parallelism.min(completions))
            }
            WorkloadKind::DaemonSet | WorkloadKind::Pod => 1,
            WorkloadKind::Deployment
            | WorkloadKind::ReplicaSet
            | WorkloadKind::StatefulSet
            | WorkloadKind::ReplicationController => self.replicas.unwrap_or(1),
        };
        let mut template = job.template;
        if kind == WorkloadKind::Job && !self.manual_selector && !metadata.name.is_empty() {
            // The Job's strategy in the API server adds these after admission
            // (`generateSelector` in `pkg/registry/batch/job/strategy.go`).
            for label in ["batch.kubernetes.io/job-name", "job-name"] {
                template.labels = template.labels.with(label, &metadata.name);
            }
        }
        let is_job = matches!(kind, WorkloadKind::Job | WorkloadKind::CronJob);
        Workload {
            kind,
            metadata,
            replicas,
            strategy: match kind {
                WorkloadKind::StatefulSet | WorkloadKind::DaemonSet => {
                    self.update_strategy.one_by_one()
                }
                _ => self.strategy,
            },
            template,
            claim_templates: self.volume_claim_templates,
            first_ordinal: self.ordinals.start,
            paused: self.paused,
            suspended: is_job && (suspended || job.suspend),
            indexed: job.completion_mode.as_deref() == Some("Indexed"),
            finished,
            ready,
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
    template: PodTemplate,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status {
    #[serde(deserialize_with = "nullable")]
    ready_replicas: i64,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct JobStatus {
    #[serde(deserialize_with = "present")]
    completion_time: bool,
    #[serde(deserialize_with = "nullable")]
    conditions: Vec<JobCondition>,
}

impl JobStatus {
    fn finished(&self) -> bool {
        self.completion_time
            || self.conditions.iter().any(|condition| {
                matches!(condition.r#type.as_str(), "Complete" | "Failed")
                    && condition.status == "True"
            })
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct JobCondition {
    #[serde(deserialize_with = "nullable")]
    r#type: Text,
    #[serde(deserialize_with = "nullable")]
    status: Text,
}

#[derive(Deserialize)]
struct BarePod {
    #[serde(default, deserialize_with = "nullable")]
    metadata: Metadata,
    #[serde(default, deserialize_with = "nullable")]
    spec: PodSpec,
    #[serde(default, deserialize_with = "nullable")]
    status: PodStatus,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PodStatus {
    #[serde(deserialize_with = "nullable")]
    phase: Text,
}

impl BarePod {
    fn workload(self) -> Workload {
        let template = self.spec.with_labels(self.metadata.labels.clone());
        Workload {
            kind: WorkloadKind::Pod,
            metadata: self.metadata,
            replicas: 1,
            strategy: Strategy::default(),
            template,
            claim_templates: Box::default(),
            first_ordinal: 0,
            paused: false,
            suspended: false,
            indexed: false,
            finished: matches!(self.status.phase.as_str(), "Succeeded" | "Failed"),
            ready: self.status.phase == "Running",
        }
    }
}
