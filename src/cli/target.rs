//! The object that the name on the command line means: a pod, a workload or a claim.

use doctor::diagnosis::{CaseEntry, DiagnosisInput, Remark};
use engine::model::live_pod::Pod;
use engine::model::object::{ObjectKind, ObjectRef};
use engine::model::workload::WorkloadKind;

/// A name, with a kind if one was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    namespace: Option<String>,
    /// A claim, a pod or a workload.
    kind: Option<ObjectKind>,
    pub(super) name: String,
}

/// A name that cannot be used, or that nothing has.
#[derive(Debug, thiserror::Error)]
pub(super) enum TargetError {
    /// The kind does not use volumes.
    #[error(
        "\"{0}\" is neither a kind with volumes nor a namespace of this cluster. Expected a name, NAMESPACE/NAME, or pod/NAME, deployment/NAME, statefulset/NAME, daemonset/NAME, replicaset/NAME, job/NAME, cronjob/NAME, pvc/NAME or, for diagnose, node/NAME."
    )]
    Kind(String),
    /// The text is not a name.
    #[error(
        "\"{0}\" is not a name. Expected NAME, KIND/NAME, NAMESPACE/NAME or NAMESPACE/KIND/NAME."
    )]
    Parts(String),
    /// The name and the option give different namespaces.
    #[error(
        "\"{own}\" is not a kind with volumes. As a namespace it contradicts -n {option}: leave one of the two out."
    )]
    Namespaces {
        /// The namespace in the name.
        own: String,
        /// The namespace in the option.
        option: String,
    },
    /// Nothing has this name.
    #[error(
        "There is no pod, no workload, no claim and no node \"{0}\" among those that could be read. `kubectl get pods,pvc -A` lists the ones there are; -n names the namespace."
    )]
    Nothing(String),
}

impl Target {
    /// Reads `web`, `deploy/web`, `pvc/data`, `shop/web` or `shop/deploy/web`. The word before the
    /// name is a namespace if it is not a kind.
    pub(super) fn read(text: &str) -> Result<Self, TargetError> {
        let parts: Vec<&str> = text.split('/').collect();
        let (namespace, kind, name) = match parts[..] {
            [name] => (None, None, name),
            [first, name] => match kind(first) {
                Some(kind) => (None, Some(kind), name),
                None => (Some(first), None, name),
            },
            [namespace, kind_name, name] => {
                let kind = kind(kind_name);
                let unknown = || TargetError::Kind(kind_name.to_owned());
                (Some(namespace), Some(kind.ok_or_else(unknown)?), name)
            }
            _ => return Err(TargetError::Parts(text.to_owned())),
        };
        if name.is_empty() || namespace.is_some_and(str::is_empty) {
            return Err(TargetError::Parts(text.to_owned()));
        }
        Ok(Self { namespace: namespace.map(str::to_owned), kind, name: name.to_owned() })
    }

    /// The namespace that the name or the option `-n` gives.
    pub(super) fn namespace<'a>(
        &'a self,
        option: Option<&'a str>,
    ) -> Result<Option<&'a str>, TargetError> {
        match (self.namespace.as_deref(), option) {
            (Some(own), Some(option)) if own != option => {
                Err(TargetError::Namespaces { own: own.to_owned(), option: option.to_owned() })
            }
            (own, option) => Ok(own.or(option)),
        }
    }

    /// The error for a word that should be a kind or a namespace, and is neither.
    pub(super) fn unknown(&self, namespace: &str) -> Option<TargetError> {
        let is_it = self.namespace.as_deref() == Some(namespace) && self.kind.is_none();
        is_it.then(|| TargetError::Kind(namespace.to_owned()))
    }

    /// Whether the target is this object.
    pub(super) fn is_object(&self, object: &ObjectRef) -> bool {
        object.name == self.name && self.kind.is_none_or(|kind| object.kind == kind.name())
    }

    /// Whether the case is about the target.
    pub(super) fn is_about(&self, case: &CaseEntry) -> bool {
        let claim = self.may_be(ObjectKind::Claim) && case.volume.claim == self.name;
        let waiting = case.waiting.iter().map(|waiting| (&waiting.pod, &waiting.workload));
        let holders = case.holders.iter().map(|holder| (&holder.pod, &holder.workload));
        claim
            || waiting
                .chain(holders)
                .any(|(pod, workload)| self.is_pod(pod) || self.is_workload(workload))
    }

    /// The message if nothing waits for the target, or because of it.
    pub(super) fn nothing(&self, facts: DiagnosisInput<'_>) -> Result<String, TargetError> {
        let mut pods = facts.observed.pods.iter();
        let name = &self.name;
        let is_meant = |pod: &&Pod| {
            let (kind, workload) = pod.workload();
            self.is_pod(&pod.meta.name) || self.is_workload(&format!("{kind} {workload}"))
        };
        let mut meant = pods.clone().filter(is_meant);
        if let Some(pod) = meant.clone().find(|pod| pod.is_starting()) {
            let said = facts
                .observed
                .said_of(pod)
                .map(|message| format!(" Kubernetes says: \"{}\"", message.trim()));
            return Ok(format!(
                "Pod {} uses no claim, and has not started for another reason.{}",
                pod.meta.name,
                said.unwrap_or_default()
            ));
        }
        if let Some(pod) = meant.next() {
            return Ok(match (pod.claims.as_slice(), &pod.held_up) {
                ([], _) => format!("{name} uses no claim."),
                (_, Some(reason)) => held_up_by(pod, reason),
                _ => format!("{name} waits for no volume: every one it uses is where it is."),
            });
        }
        let uses = |pod: &Pod| pod.claims.iter().any(|claim| claim == name);
        if self.may_be(ObjectKind::Claim) {
            if pods.any(uses) {
                return Ok(format!("No pod waits for claim {name}."));
            }
            let view = facts.objects.view;
            if !view.namespaces_with_claim(name).is_empty() {
                return Ok(format!("No pod uses claim {name}, so nothing waits for it."));
            }
        }
        let has_no_pods = WorkloadKind::ALL.into_iter().any(|kind| {
            self.may_be(ObjectKind::Workload(kind)) && facts.objects.view.has_workload(kind, name)
        });
        if has_no_pods {
            return Ok(format!("{name} has no pods, so that nothing waits."));
        }
        Err(TargetError::Nothing(name.clone()))
    }

    /// The name of the node, if the target is one.
    pub(super) fn node(&self) -> Option<&str> {
        (self.kind == Some(ObjectKind::Node)).then_some(self.name.as_str())
    }

    /// Whether the remark is about the target.
    pub(super) fn is_meant_by(&self, remark: &Remark) -> bool {
        remark.about.iter().any(|name| *name == self.name)
    }

    fn may_be(&self, kind: ObjectKind) -> bool {
        self.kind.is_none_or(|own| own == kind)
    }

    fn is_pod(&self, name: &str) -> bool {
        self.may_be(ObjectKind::Workload(WorkloadKind::Pod)) && name == self.name
    }

    /// Whether the target is this workload, given as `Deployment web`.
    fn is_workload(&self, workload: &str) -> bool {
        workload.split_once(' ').is_some_and(|(kind, name)| {
            name == self.name && self.kind.is_none_or(|own| own.name() == kind)
        })
    }
}

/// The message about a pod that has its volumes but does not run.
pub(super) fn held_up_by(pod: &Pod, reason: &str) -> String {
    format!(
        "Pod {}/{} has its volumes, and does not run for another reason: {reason}.",
        pod.meta.namespace, pod.meta.name
    )
}

/// The kind with this name, as kubectl takes it.
fn kind(name: &str) -> Option<ObjectKind> {
    let workload = match name.to_lowercase().as_str() {
        "pvc" | "persistentvolumeclaim" | "persistentvolumeclaims" | "claim" => {
            return Some(ObjectKind::Claim);
        }
        "no" | "node" | "nodes" => return Some(ObjectKind::Node),
        "po" => WorkloadKind::Pod,
        "deploy" => WorkloadKind::Deployment,
        "sts" => WorkloadKind::StatefulSet,
        "ds" => WorkloadKind::DaemonSet,
        "rs" => WorkloadKind::ReplicaSet,
        "rc" => WorkloadKind::ReplicationController,
        "cj" => WorkloadKind::CronJob,
        other => {
            let plural = format!("{}s", other.trim_end_matches('s'));
            WorkloadKind::from_resource(&plural)?
        }
    };
    Some(ObjectKind::Workload(workload))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_read_as_kubectl_reads_them() {
        let deployment = Some(ObjectKind::Workload(WorkloadKind::Deployment));
        let set = Some(ObjectKind::Workload(WorkloadKind::StatefulSet));
        let pod = Some(ObjectKind::Workload(WorkloadKind::Pod));
        let cases = [
            ("web", None, None, "web"),
            ("pod/web-1", None, pod, "web-1"),
            ("deploy/web", None, deployment, "web"),
            ("Deployment/web", None, deployment, "web"),
            ("deployments/web", None, deployment, "web"),
            ("sts/db", None, set, "db"),
            ("pvc/data", None, Some(ObjectKind::Claim), "data"),
            ("node/n1", None, Some(ObjectKind::Node), "n1"),
            ("shop/web", Some("shop"), None, "web"),
            ("shop/deploy/web", Some("shop"), deployment, "web"),
        ];
        for (text, namespace, kind, name) in cases {
            let expected =
                Target { namespace: namespace.map(str::to_owned), kind, name: name.to_owned() };
            assert_eq!(Target::read(text).unwrap(), expected, "{text}");
        }
        for text in ["a/b/c/d", "shop/", "/web", ""] {
            let error = Target::read(text).unwrap_err().to_string();
            assert!(error.contains("is not a name"), "{error}");
        }
        let error = Target::read("shop/secret/x").unwrap_err().to_string();
        assert!(error.starts_with("\"secret\" is neither a kind with volumes"), "{error}");
    }

    #[test]
    fn a_name_and_an_option_are_of_one_namespace() {
        let target = Target::read("shop/data").unwrap();
        assert_eq!(target.namespace(None).unwrap(), Some("shop"));
        assert_eq!(target.namespace(Some("shop")).unwrap(), Some("shop"));
        assert!(target.namespace(Some("team")).is_err());
        let plain = Target::read("pvc/data").unwrap();
        assert_eq!(plain.namespace(Some("team")).unwrap(), Some("team"));
    }
}
