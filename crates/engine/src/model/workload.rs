//! Workloads: every kind of object that creates pods, in one type.

use std::fmt;
use std::ops::Range;

use super::Text;
use super::autoscaler::ScaleTarget;
use super::claim::Claim;
use super::metadata::{Controller, Metadata};
use super::object::{KindRow, group_of};
use super::pod::PodTemplate;
use super::strategy::Strategy;

/// Declares every kind of workload, once: its `apiVersion`, its plural name, and the label that
/// differs between the pods of two revisions.
macro_rules! kinds {
    ($($kind:ident: $api_version:literal $plural:literal $revision_label:expr,)+) => {
        /// The kinds of workload.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum WorkloadKind {
            $(#[doc = concat!("Of `", $api_version, "`.")] $kind,)+
        }

        impl WorkloadKind {
            /// Every kind.
            pub const ALL: [Self; [$($plural),+].len()] = [$(Self::$kind),+];

            /// The names of the kind in the API, and whether its objects are in namespaces.
            pub(super) const fn row(self) -> KindRow {
                match self {
                    $(Self::$kind => {
                        KindRow::namespaced($api_version, stringify!($kind), $plural)
                    })+
                }
            }

            /// The label that differs between the pods of two revisions.
            pub(crate) const fn revision_label(self) -> Option<&'static str> {
                match self {
                    $(Self::$kind => $revision_label,)+
                }
            }
        }
    };
}

kinds! {
    Deployment: "apps/v1" "deployments" Some("pod-template-hash"),
    ReplicaSet: "apps/v1" "replicasets" None,
    StatefulSet: "apps/v1" "statefulsets" Some("controller-revision-hash"),
    DaemonSet: "apps/v1" "daemonsets" Some("controller-revision-hash"),
    Job: "batch/v1" "jobs" None,
    CronJob: "batch/v1" "cronjobs" None,
    ReplicationController: "v1" "replicationcontrollers" None,
    Pod: "v1" "pods" None,
    Rollout: "argoproj.io/v1alpha1" "rollouts" Some("rollouts-pod-template-hash"),
    ScaledJob: "keda.sh/v1alpha1" "scaledjobs" None,
    DeploymentConfig: "apps.openshift.io/v1" "deploymentconfigs" Some("deployment"),
    CloneSet: "apps.kruise.io/v1alpha1" "clonesets" Some("controller-revision-hash"),
}

impl WorkloadKind {
    /// The kind's name.
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// The kind with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The kind with this name in the API group.
    pub fn find(name: &str, group: &str) -> Option<Self> {
        Self::from_name(name).filter(|kind| group_of(kind.row().api_version) == group)
    }

    /// The kind with this plural name, `deployments` for example.
    pub fn from_resource(resource: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.row().plural == resource)
    }

    /// Whether every cluster serves it. Other kinds are served only if their controller is
    /// installed.
    pub const fn is_built_in(self) -> bool {
        !matches!(self, Self::Rollout | Self::ScaledJob | Self::DeploymentConfig | Self::CloneSet)
    }

    /// The field with the number of pods; for a DaemonSet, the one that limits its nodes.
    pub const fn pods_field(self) -> &'static str {
        match self {
            Self::DaemonSet => "spec.template.spec",
            Self::Job => "spec.parallelism",
            Self::CronJob => "spec.jobTemplate.spec.parallelism",
            Self::ScaledJob => "spec.maxReplicaCount",
            _ => "spec.replicas",
        }
    }

    /// The path of the pod specification in the object.
    pub const fn pod_spec_path(self) -> &'static str {
        match self {
            Self::Pod => "spec",
            Self::CronJob => "spec.jobTemplate.spec.template.spec",
            Self::ScaledJob => "spec.jobTargetRef.template.spec",
            _ => "spec.template.spec",
        }
    }

    /// Whether it has the subresource `scale`, with which `kubectl scale` changes its number of
    /// pods (`pkg/registry/apps/rest/storage_apps.go` and
    /// `pkg/registry/core/rest/storage_core.go`).
    pub const fn scales(self) -> bool {
        matches!(
            self,
            Self::Deployment
                | Self::ReplicaSet
                | Self::StatefulSet
                | Self::ReplicationController
                | Self::Rollout
                | Self::DeploymentConfig
                | Self::CloneSet
        )
    }

    /// Whether one of the label keys tells the pods of two revisions apart.
    pub(crate) fn has_revision_label(self, keys: &[Text]) -> bool {
        self.revision_label().is_some_and(|label| keys.iter().any(|key| key == label))
    }
}

impl fmt::Display for WorkloadKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The fields on which verdicts depend, of an object that creates pods.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Workload {
    /// The kind.
    pub kind: WorkloadKind,
    /// Name, namespace, labels and the rest.
    pub metadata: Metadata,
    /// The pods wanted at the same time, defaults filled in. A Job counts the smaller of
    /// parallelism and completions, a CronJob its Job, a ScaledJob all Jobs that may run at once. 0
    /// and less means no pods. A DaemonSet has 1 here, because its nodes decide.
    pub replicas: i64,
    /// The way pods are replaced; the default for kinds that do not replace them.
    pub strategy: Strategy,
    /// A StatefulSet's `partition`: the number of its first pods that are not updated. With the
    /// strategy `OnDelete` it is the maximum: no pod is updated.
    pub partition: i64,
    /// Whether some of a StatefulSet's pods are of another revision than its template is now;
    /// `None` if unknown.
    pub is_behind: Option<bool>,
    /// Whether the strategy of a Rollout adds required anti-affinity between the pods of two
    /// revisions.
    pub keeps_revisions_apart: bool,
    /// The volumes of the pod template that the hook pods of a DeploymentConfig mount while other
    /// pods run, by name.
    pub hook_volumes: Box<[Text]>,
    /// The pods.
    pub template: PodTemplate,
    /// The object that has the pod template, if a Rollout names one (`workloadRef`).
    pub template_source: Option<Box<ScaleTarget>>,
    /// A StatefulSet's own claim templates: each pod gets a claim like each of them.
    pub claim_templates: Box<[Claim]>,
    /// The number of a StatefulSet's first pod.
    pub first_ordinal: i64,
    /// Whether a Deployment is paused.
    pub paused: bool,
    /// Whether a Job or CronJob is suspended, so that it creates no pods, or a controller other
    /// than the Job's own creates them (`managedBy`).
    pub suspended: bool,
    /// Whether each pod of a Job has an index of its own (`completionMode: Indexed`).
    pub indexed: bool,
    /// Whether it has finished, so that it uses no volumes any more.
    pub finished: bool,
    /// Whether one of its pods is known to be ready, so that there is a node for it.
    pub ready: bool,
}

impl Workload {
    /// Whether a rolling update of it starts no pod before an old one has stopped.
    pub(crate) fn rolls_without_surge(&self) -> bool {
        self.strategy.room(self.replicas).is_some_and(|room| room.surge == 0)
    }

    /// The claim of a bare pod's generic ephemeral volume, by the name that Kubernetes gives it
    /// (`VolumeClaimName` in `component-helpers/storage/ephemeral/ephemeral.go`).
    pub fn ephemeral_claim(&self, claim: &str) -> Option<&Claim> {
        self.ephemeral_claims().find_map(|(name, template)| (name == claim).then_some(template))
    }

    /// The claims of a bare pod's generic ephemeral volumes, with their names.
    pub fn ephemeral_claims(&self) -> impl Iterator<Item = (String, &Claim)> {
        let is_pod = self.kind == WorkloadKind::Pod;
        self.template.ephemeral.iter().filter(move |_| is_pod).map(|ephemeral| {
            let volume = &ephemeral.claim.metadata.name;
            (format!("{}-{volume}", self.metadata.name), &ephemeral.claim)
        })
    }

    /// `Deployment web`, or the controller of a pod or ReplicaSet, which users know better:
    /// `TaskRun build`.
    pub(crate) fn shown(&self) -> String {
        let is_made = matches!(
            self.kind,
            WorkloadKind::Pod | WorkloadKind::ReplicaSet | WorkloadKind::ReplicationController
        );
        match &self.metadata.controller {
            Some(owner) if is_made => format!("{} {}", owner.kind, owner.name),
            _ => format!("{} {}", self.kind, self.metadata.shown_name()),
        }
    }

    /// Whether the workload has, or will have, any pods.
    pub fn has_pods(&self) -> bool {
        self.replicas > 0 && !self.finished && !self.suspended && !self.metadata.is_being_deleted()
    }

    /// Whether its pods name the claim.
    pub(crate) fn names_claim(&self, claim: &str) -> bool {
        self.template.claims().any(|name| name == claim)
    }

    /// Whether its controller replaces pods, or removes ReplicaSets, of another template.
    pub(crate) fn replaces_others(&self) -> bool {
        match self.kind {
            WorkloadKind::Deployment => !self.paused,
            WorkloadKind::StatefulSet | WorkloadKind::DaemonSet => {
                self.partition == 0 && matches!(self.strategy, Strategy::RollingUpdate { .. })
            }
            _ => false,
        }
    }

    /// The workload, scaled.
    pub(crate) fn with_replicas(&self, replicas: i64) -> Self {
        Self { replicas, ..self.clone() }
    }

    /// Whether the pods run to completion, so that other pods that wait for their volumes do not
    /// wait forever.
    pub(crate) const fn ends(&self) -> bool {
        match self.kind {
            WorkloadKind::Job | WorkloadKind::CronJob | WorkloadKind::ScaledJob => true,
            WorkloadKind::Pod => self.template.ends,
            _ => false,
        }
    }

    /// The owner that is judged in its place, and its kind: the owner of a Deployment's ReplicaSet,
    /// a CronJob's Job or a workload's pod. The owners of other pods are not judged. An owner of
    /// another API version is not judged either: the garbage collector keeps its dependents,
    /// whether it exists or not.
    pub(crate) fn judged_owner(&self) -> Option<(WorkloadKind, &Controller)> {
        let controller = self.metadata.controller.as_deref()?;
        let owner = WorkloadKind::from_name(&controller.kind)
            .filter(|kind| kind.row().api_version == controller.api_version)?;
        let is_judged = match self.kind {
            WorkloadKind::ReplicaSet => {
                matches!(owner, WorkloadKind::Deployment | WorkloadKind::Rollout)
            }
            WorkloadKind::ReplicationController => owner == WorkloadKind::DeploymentConfig,
            WorkloadKind::Job => matches!(owner, WorkloadKind::CronJob | WorkloadKind::ScaledJob),
            WorkloadKind::Pod => owner != WorkloadKind::Pod,
            _ => false,
        };
        is_judged.then_some((owner, controller))
    }

    /// For each claim template, in order, the name of the claims that it creates, without the dash
    /// and the pod's ordinal.
    pub fn claim_stems(&self) -> impl Iterator<Item = String> {
        self.claim_templates
            .iter()
            .map(|template| format!("{}-{}", template.metadata.name, self.metadata.name))
    }

    /// Whether a claim template creates `claim` for one of the pods (`data-postgres-0`).
    ///
    /// Source: `getPersistentVolumeClaimName` in the StatefulSet controller.
    pub(crate) fn makes_claim(&self, claim: &str) -> bool {
        self.template_of_claim(claim).is_some()
    }

    /// The claim template that creates `claim` for one of the pods.
    pub(crate) fn template_of_claim(&self, claim: &str) -> Option<&Claim> {
        let (stem, ordinal) = claim.rsplit_once('-')?;
        let number: i64 = ordinal.parse().ok()?;
        // The controller writes `%d`: it never writes `00` or `+0`.
        if !self.ordinals().contains(&number) || number.to_string() != ordinal {
            return None;
        }
        let name = stem.strip_suffix(self.metadata.name.as_str())?.strip_suffix('-')?;
        self.claim_templates.iter().find(|template| template.metadata.name == name)
    }

    /// The ordinals of a StatefulSet's pods.
    pub(crate) const fn ordinals(&self) -> Range<i64> {
        self.first_ordinal..self.first_ordinal.saturating_add(self.replicas)
    }

    /// The ordinals of the pods that an update replaces, at once or when somebody deletes them
    /// (`newVersionedStatefulSetPod` in the StatefulSet controller's `stateful_set_utils.go`).
    pub(crate) fn updated_ordinals(&self) -> Range<i64> {
        let Range { start, end } = self.ordinals();
        let held_back = if self.partition == i64::MAX { 0 } else { self.partition };
        start.saturating_add(held_back).min(end)..end
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::in_tree::InTreeType;
    use crate::model::pod::{PodVolume, PodVolumeSource};
    use crate::model::quantity::Quantity;

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
                    source: PodVolumeSource::Claim { name: "data".into() },
                    mounted: true,
                    selinux_label: None,
                },
                PodVolume {
                    index: 3,
                    name: "disk".into(),
                    source: PodVolumeSource::Inline {
                        in_tree: InTreeType::of_field("iscsi").unwrap(),
                        read_only: true
                    },
                    mounted: false,
                    selinux_label: None,
                },
            ]
        );
    }

    #[test]
    fn host_ports_and_extended_resources_of_containers_are_kept() {
        let template = |spec: &str| {
            let text = format!(r#"{{"spec":{{"template":{{"spec":{spec}}}}}}}"#);
            read(WorkloadKind::Deployment, &text).template
        };
        let cases = [
            (r#"{"containers":[{"ports":[{"containerPort":80}]}]}"#, false),
            (r#"{"containers":[{"ports":[{"hostPort":80}]}]}"#, true),
            (r#"{"containers":[{"ports":[{"hostPort":0}]}]}"#, false),
            (r#"{"hostNetwork":true,"containers":[{"ports":[{"containerPort":80}]}]}"#, true),
            (r#"{"hostNetwork":true,"containers":[{}]}"#, false),
            (r#"{"initContainers":[{"ports":[{"hostPort":80}]}]}"#, false),
            (r#"{"initContainers":[{"restartPolicy":"Always","ports":[{"hostPort":80}]}]}"#, true),
        ];
        for (spec, expected) in cases {
            assert_eq!(!template(spec).host_ports.is_empty(), expected, "{spec}");
        }
        let asking = template(
            r#"{"containers":[{"resources":{"limits":{"cpu":"1","example.com/gpu":2},
                "requests":{"example.com/gpu":"2","example.com/none":0,"kubernetes.io/x":1}}}]}"#,
        );
        assert_eq!(*asking.extended_resources, [("example.com/gpu".into(), Quantity(2))]);
        let many = template(
            r#"{"containers":[{"resources":{"limits":{"example.com/gpu":1}}},
                {"resources":{"limits":{"example.com/gpu":1}}}],
                "initContainers":[{"resources":{"limits":{"example.com/gpu":3}}}]}"#,
        );
        assert_eq!(*many.extended_resources, [("example.com/gpu".into(), Quantity(3))]);
    }

    #[test]
    fn pods_are_counted_as_each_kind_creates_them() {
        let cases = [
            (WorkloadKind::Job, r#"{"spec":{"parallelism":2,"completions":1}}"#, 1),
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
        assert!(!set.makes_claim("data-postgres-01"));
        assert!(!set.makes_claim("logs-postgres-0"));
        assert!(!set.makes_claim("data"));
    }
}
