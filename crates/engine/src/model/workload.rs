//! Workloads: every object that makes pods, reduced to one shape.

use std::fmt;
use std::ops::Range;

use serde::Deserialize;
use serde::de::Deserializer;

use super::Text;
use super::claim::Claim;
use super::de::{nullable, present};
use super::metadata::Metadata;
use super::pod::{PodSpec, PodTemplate};
use super::strategy::Strategy;

/// The kinds of workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WorkloadKind {
    /// `apps/v1` Deployment.
    Deployment,
    /// `apps/v1` ReplicaSet.
    ReplicaSet,
    /// `apps/v1` StatefulSet.
    StatefulSet,
    /// `apps/v1` DaemonSet.
    DaemonSet,
    /// `batch/v1` Job.
    Job,
    /// `batch/v1` CronJob.
    CronJob,
    /// `v1` ReplicationController.
    ReplicationController,
    /// `v1` Pod.
    Pod,
}

impl WorkloadKind {
    /// Every kind.
    pub const ALL: [Self; 8] = [
        Self::Deployment,
        Self::ReplicaSet,
        Self::StatefulSet,
        Self::DaemonSet,
        Self::Job,
        Self::CronJob,
        Self::ReplicationController,
        Self::Pod,
    ];

    /// The kind's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Deployment => "Deployment",
            Self::ReplicaSet => "ReplicaSet",
            Self::StatefulSet => "StatefulSet",
            Self::DaemonSet => "DaemonSet",
            Self::Job => "Job",
            Self::CronJob => "CronJob",
            Self::ReplicationController => "ReplicationController",
            Self::Pod => "Pod",
        }
    }

    /// The kind of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The kind behind a plural resource name, `deployments` for example.
    #[must_use]
    pub fn from_resource(resource: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| {
            resource
                .strip_suffix('s')
                .is_some_and(|singular| singular.eq_ignore_ascii_case(kind.name()))
        })
    }

    /// The version under which the kind is served.
    #[must_use]
    pub const fn api_version(self) -> &'static str {
        match self {
            Self::Deployment | Self::ReplicaSet | Self::StatefulSet | Self::DaemonSet => "apps/v1",
            Self::Job | Self::CronJob => "batch/v1",
            Self::ReplicationController | Self::Pod => "v1",
        }
    }

    /// The API group, empty for the core one.
    #[must_use]
    pub const fn group(self) -> &'static str {
        match self {
            Self::Deployment | Self::ReplicaSet | Self::StatefulSet | Self::DaemonSet => "apps",
            Self::Job | Self::CronJob => "batch",
            Self::ReplicationController | Self::Pod => "",
        }
    }

    /// The path of the pod specification in the object.
    #[must_use]
    pub const fn pod_spec_path(self) -> &'static str {
        match self {
            Self::Pod => "spec",
            Self::CronJob => "spec.jobTemplate.spec.template.spec",
            _ => "spec.template.spec",
        }
    }

    /// Whether it has the subresource `scale`, with which `kubectl scale` changes how many
    /// pods it has (`pkg/registry/apps/rest/storage_apps.go` and
    /// `pkg/registry/core/rest/storage_core.go`).
    #[must_use]
    pub const fn scales(self) -> bool {
        matches!(
            self,
            Self::Deployment | Self::ReplicaSet | Self::StatefulSet | Self::ReplicationController
        )
    }

    /// The label that tells the pods of one revision from those of the next.
    #[must_use]
    pub const fn revision_label(self) -> Option<&'static str> {
        match self {
            Self::Deployment => Some("pod-template-hash"),
            Self::StatefulSet | Self::DaemonSet => Some("controller-revision-hash"),
            Self::ReplicaSet
            | Self::Job
            | Self::CronJob
            | Self::ReplicationController
            | Self::Pod => None,
        }
    }
}

impl fmt::Display for WorkloadKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Everything a decision uses of an object that makes pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    /// Which kind it is.
    pub kind: WorkloadKind,
    /// Name, namespace, labels and the rest.
    pub metadata: Metadata,
    /// The pods wanted at the same time, defaults filled in. A Job counts the
    /// smaller of parallelism and completions, a CronJob its Job. 0 and less
    /// means no pods. A DaemonSet has 1 here: its nodes decide.
    pub replicas: i64,
    /// How a Deployment's, StatefulSet's or DaemonSet's pods are replaced; the
    /// default for other kinds.
    pub strategy: Strategy,
    /// The pods.
    pub template: PodTemplate,
    /// A StatefulSet's own claim templates: each pod gets a claim like each of them.
    pub claim_templates: Box<[Claim]>,
    /// The number of a StatefulSet's first pod.
    pub first_ordinal: i64,
    /// Whether a Deployment is paused.
    pub paused: bool,
    /// Whether a Job or CronJob is suspended, and makes no pods meanwhile, or another
    /// controller than the Job's own makes them (`managedBy`).
    pub suspended: bool,
    /// Whether each pod of a Job has an index of its own (`completionMode: Indexed`).
    pub indexed: bool,
    /// Whether it has run to its end and holds nothing any more.
    pub finished: bool,
    /// Whether a pod of it is known to be ready, so that there is a node for it.
    pub ready: bool,
}

impl Workload {
    /// The claim that a bare pod's generic ephemeral volume has, by the name that
    /// Kubernetes gives it (`VolumeClaimName` in
    /// `component-helpers/storage/ephemeral/ephemeral.go`).
    #[must_use]
    pub fn ephemeral_claim(&self, claim: &str) -> Option<&Claim> {
        self.ephemeral_claims()
            .find_map(|(name, template)| (name == claim).then_some(template))
    }

    /// Every such claim, with its name.
    pub fn ephemeral_claims(&self) -> impl Iterator<Item = (String, &Claim)> {
        let is_pod = self.kind == WorkloadKind::Pod;
        let own = self.template.ephemeral.iter().filter(move |_| is_pod);
        own.map(|ephemeral| {
            let volume = &ephemeral.claim.metadata.name;
            (format!("{}-{volume}", self.metadata.name), &ephemeral.claim)
        })
    }

    /// Whether the workload has, or will have, a pod at all.
    #[must_use]
    pub fn has_pods(&self) -> bool {
        self.replicas > 0 && !self.finished && !self.suspended && !self.metadata.deleting
    }

    /// Whether the pods run to an end, so that whoever waits for one of them
    /// does not wait for good.
    #[must_use]
    pub const fn ends(&self) -> bool {
        match self.kind {
            WorkloadKind::Job | WorkloadKind::CronJob => true,
            WorkloadKind::Pod => self.template.ends,
            _ => false,
        }
    }

    /// Whether another object that is judged by itself made this one: the
    /// ReplicaSet of a Deployment, the Job of a CronJob, the Pod of a workload.
    /// The pods of controllers that are not known here have no such owner.
    #[must_use]
    pub fn owner_is_judged(&self) -> bool {
        let owner = self.metadata.controller.as_ref().and_then(|controller| {
            WorkloadKind::from_name(&controller.kind)
                .filter(|kind| kind.group() == controller.group.as_str())
        });
        match (self.kind, owner) {
            (WorkloadKind::ReplicaSet, Some(owner)) => owner == WorkloadKind::Deployment,
            (WorkloadKind::Job, Some(owner)) => owner == WorkloadKind::CronJob,
            (WorkloadKind::Pod, Some(owner)) => owner != WorkloadKind::Pod,
            _ => false,
        }
    }

    /// Whether `claim` has the name that one of the claim templates makes for
    /// one of the pods (`data-postgres-0`).
    ///
    /// Source: `getPersistentVolumeClaimName` in the StatefulSet controller.
    #[must_use]
    pub fn makes_claim(&self, claim: &str) -> bool {
        self.template_of_claim(claim).is_some()
    }

    /// The claim template that makes `claim` for one of the pods.
    #[must_use]
    pub fn template_of_claim(&self, claim: &str) -> Option<&Claim> {
        let (stem, ordinal) = claim.rsplit_once('-')?;
        let number: i64 = ordinal.parse().ok()?;
        // The controller writes `%d`: neither `00` nor `+0` is one of its own.
        if !self.ordinals().contains(&number) || number.to_string() != ordinal {
            return None;
        }
        self.template_of_stem(stem)
    }

    /// The claim template that makes the claims of that name with a pod's number behind it
    /// (`data-postgres`).
    #[must_use]
    pub fn template_of_stem(&self, stem: &str) -> Option<&Claim> {
        let template = stem
            .strip_suffix(self.metadata.name.as_str())?
            .strip_suffix('-')?;
        self.claim_templates
            .iter()
            .find(|claim| claim.metadata.name == template)
    }

    /// The numbers of a StatefulSet's pods.
    #[must_use]
    pub const fn ordinals(&self) -> Range<i64> {
        self.first_ordinal..self.first_ordinal.saturating_add(self.replicas)
    }

    /// Reads an object of `kind`.
    ///
    /// # Errors
    ///
    /// When a field that is read does not have the type the API gives it.
    pub fn read<'de, D: Deserializer<'de>>(
        kind: WorkloadKind,
        deserializer: D,
    ) -> Result<Self, D::Error> {
        if kind == WorkloadKind::Pod {
            return BarePod::deserialize(deserializer).map(BarePod::workload);
        }
        let (metadata, spec, finished, ready) = if kind == WorkloadKind::Job {
            let job = Wire::<Status>::deserialize(deserializer)?;
            (job.metadata, job.spec, job.status.finished(), false)
        } else {
            let workload = Wire::<Ready>::deserialize(deserializer)?;
            let ready = workload.status.ready_replicas > 0;
            (workload.metadata, workload.spec, false, ready)
        };
        let (parallelism, completions, mode, template, suspended) = match kind {
            WorkloadKind::CronJob => {
                let job = spec.job_template.spec;
                let suspended = spec.suspend || job.suspend;
                let mode = job.completion_mode;
                (
                    job.parallelism,
                    job.completions,
                    mode,
                    job.template,
                    suspended,
                )
            }
            _ => {
                // Another controller than the Job's own makes its pods, perhaps elsewhere.
                let is_foreign = !matches!(
                    spec.managed_by.as_str(),
                    "" | "kubernetes.io/job-controller"
                );
                let suspended = (spec.suspend || is_foreign) && kind == WorkloadKind::Job;
                let mode = spec.completion_mode;
                (
                    spec.parallelism,
                    spec.completions,
                    mode,
                    spec.template,
                    suspended,
                )
            }
        };
        let replicas = match kind {
            WorkloadKind::Job | WorkloadKind::CronJob => {
                let parallelism = parallelism.unwrap_or(1);
                completions.map_or(parallelism, |completions| parallelism.min(completions))
            }
            WorkloadKind::DaemonSet | WorkloadKind::Pod => 1,
            WorkloadKind::Deployment
            | WorkloadKind::ReplicaSet
            | WorkloadKind::StatefulSet
            | WorkloadKind::ReplicationController => spec.replicas.unwrap_or(1),
        };
        let mut template = template;
        if kind == WorkloadKind::Job && !spec.manual_selector && !metadata.name.is_empty() {
            // The Job's strategy in the API server adds these after admission
            // (`generateSelector` in `pkg/registry/batch/job/strategy.go`).
            for label in ["batch.kubernetes.io/job-name", "job-name"] {
                template.labels = template.labels.with(label, &metadata.name);
            }
        }
        Ok(Self {
            kind,
            metadata,
            replicas,
            strategy: match kind {
                WorkloadKind::StatefulSet | WorkloadKind::DaemonSet => {
                    spec.update_strategy.one_by_one()
                }
                _ => spec.strategy,
            },
            template,
            claim_templates: spec.volume_claim_templates,
            first_ordinal: spec.ordinals.start,
            paused: spec.paused,
            suspended,
            indexed: mode.as_deref() == Some("Indexed"),
            finished,
            ready,
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
struct Ready {
    #[serde(deserialize_with = "nullable")]
    ready_replicas: i64,
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
    #[serde(deserialize_with = "present")]
    completion_time: bool,
    #[serde(deserialize_with = "nullable")]
    conditions: Vec<JobCondition>,
}

impl Status {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::in_tree::InTreeType;
    use crate::model::pod::{PodVolume, PodVolumeSource};

    fn read(kind: WorkloadKind, text: &str) -> Workload {
        Workload::read(kind, &mut serde_json::Deserializer::from_str(text)).unwrap()
    }

    #[test]
    fn a_deployment_keeps_what_decides() {
        let workload = read(
            WorkloadKind::Deployment,
            r#"{"metadata":{"name":"web"},"spec":{"replicas":null,"selector":{"matchLabels":{"app":"web"}},
              "template":{"metadata":{"creationTimestamp":null,"labels":{"app":"web"}},"spec":{
                "containers":[{"name":"c","image":"i","volumeMounts":[{"name":"data","mountPath":"/data"}]}],"affinity":null,"nodeSelector":{"disk":"ssd"},
                "volumes":[{"name":"tmp","emptyDir":{}},
                  {"name":"data","persistentVolumeClaim":{"claimName":"data","readOnly":true}},
                  {"name":"scratch","ephemeral":{"volumeClaimTemplate":{}}},
                  {"iscsi":{"readOnly":true,"lun":0},"name":"disk"}]}}}}"#,
        );
        assert_eq!(workload.replicas, 1);
        assert_eq!(
            *workload.template.volumes,
            [
                PodVolume {
                    index: 1,
                    name: "data".into(),
                    source: PodVolumeSource::Claim {
                        name: "data".into()
                    },
                    mounted: true,
                    selinux_label: Text::default(),
                },
                PodVolume {
                    index: 3,
                    name: "disk".into(),
                    source: PodVolumeSource::Inline {
                        in_tree: InTreeType::of_field("iscsi").unwrap(),
                        read_only: true
                    },
                    mounted: false,
                    selinux_label: Text::default(),
                },
            ]
        );
    }

    #[test]
    fn of_containers_host_ports_and_extended_resources_are_kept() {
        let template = |spec: &str| {
            let text = format!(r#"{{"spec":{{"template":{{"spec":{spec}}}}}}}"#);
            read(WorkloadKind::Deployment, &text).template
        };
        let cases = [
            (
                r#"{"containers":[{"ports":[{"containerPort":80}]}]}"#,
                false,
            ),
            (r#"{"containers":[{"ports":[{"hostPort":80}]}]}"#, true),
            (r#"{"containers":[{"ports":[{"hostPort":0}]}]}"#, false),
            (
                r#"{"hostNetwork":true,"containers":[{"ports":[{"containerPort":80}]}]}"#,
                true,
            ),
            (r#"{"hostNetwork":true,"containers":[{}]}"#, false),
            (r#"{"initContainers":[{"ports":[{"hostPort":80}]}]}"#, false),
            (
                r#"{"initContainers":[{"restartPolicy":"Always","ports":[{"hostPort":80}]}]}"#,
                true,
            ),
        ];
        for (spec, expected) in cases {
            assert_eq!(template(spec).takes_host_port, expected, "{spec}");
        }
        let asking = template(
            r#"{"containers":[{"resources":{"limits":{"cpu":"1","example.com/gpu":2},
                "requests":{"example.com/gpu":"2","example.com/none":0,"kubernetes.io/x":1}}}]}"#,
        );
        assert_eq!(*asking.extended_resources, ["example.com/gpu"]);
    }

    #[test]
    fn pods_are_counted_as_each_kind_makes_them() {
        let cases = [
            (
                WorkloadKind::Job,
                r#"{"spec":{"parallelism":2,"completions":1}}"#,
                1,
            ),
            (WorkloadKind::Job, r#"{"spec":{"parallelism":2}}"#, 2),
            (
                WorkloadKind::CronJob,
                r#"{"spec":{"jobTemplate":{"spec":{"parallelism":3,"completions":2}}}}"#,
                2,
            ),
            (WorkloadKind::StatefulSet, r#"{"spec":{"replicas":0}}"#, 0),
            (WorkloadKind::Deployment, r#"{"spec":{"replicas":-1}}"#, -1),
            (WorkloadKind::Pod, "{}", 1),
        ];
        for (kind, text, expected) in cases {
            assert_eq!(read(kind, text).replicas, expected, "{kind} {text}");
        }
        assert!(!read(WorkloadKind::Deployment, r#"{"spec":{"replicas":-1}}"#).has_pods());
        assert!(!read(WorkloadKind::Pod, r#"{"status":{"phase":"Succeeded"}}"#).has_pods());
        assert!(!read(WorkloadKind::Job, r#"{"spec":{"suspend":true}}"#).has_pods());
        assert!(!read(WorkloadKind::CronJob, r#"{"spec":{"suspend":true}}"#).has_pods());
        assert!(read(WorkloadKind::CronJob, "{}").has_pods());
    }

    #[test]
    fn a_stateful_set_knows_its_claims() {
        let set = read(
            WorkloadKind::StatefulSet,
            r#"{"metadata":{"name":"postgres"},"spec":{"replicas":2,"volumeClaimTemplates":[{"metadata":{"name":"data"}}]}}"#,
        );
        assert!(set.makes_claim("data-postgres-0"));
        assert!(set.makes_claim("data-postgres-1"));
        assert!(!set.makes_claim("data-postgres-2"));
        assert!(!set.makes_claim("data-postgres-00"));
        assert!(!set.makes_claim("logs-postgres-0"));
        assert!(!set.makes_claim("data"));
    }
}
