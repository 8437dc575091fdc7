//! What somebody asks about: a pod, a workload or a claim.

use doctor::diagnosis::{CaseEntry, DiagnosisInput};
use engine::model::workload::WorkloadKind;
use engine::observed::Pod;

/// A name, with a kind where one was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    kind: Option<Kind>,
    name: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Claim,
    Workload(WorkloadKind),
}

/// What is asked about is not there, or cannot be.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(super) enum AskedError {
    /// A kind that holds no volumes.
    #[error(
        "\"{0}\" is no kind that uses volumes. Expected a name, or pod/NAME, deployment/NAME, statefulset/NAME, daemonset/NAME, replicaset/NAME, job/NAME, cronjob/NAME or pvc/NAME."
    )]
    Kind(String),
    /// Nothing is called so.
    #[error(
        "There is no pod, no workload and no claim \"{0}\" among those that could be read. `kubectl get pods,pvc -A` lists the ones there are; -n names the namespace."
    )]
    Nothing(String),
}

impl Asked {
    /// Reads `web`, `pod/web-1`, `deploy/web` or `pvc/data`.
    pub(super) fn read(text: &str) -> Result<Self, AskedError> {
        let Some((kind, name)) = text.split_once('/') else {
            return Ok(Self {
                kind: None,
                name: text.to_owned(),
            });
        };
        let kind = match kind.to_lowercase().as_str() {
            "pvc" | "persistentvolumeclaim" | "persistentvolumeclaims" | "claim" => Kind::Claim,
            "po" => Kind::Workload(WorkloadKind::Pod),
            "deploy" => Kind::Workload(WorkloadKind::Deployment),
            "sts" => Kind::Workload(WorkloadKind::StatefulSet),
            "ds" => Kind::Workload(WorkloadKind::DaemonSet),
            "rs" => Kind::Workload(WorkloadKind::ReplicaSet),
            "rc" => Kind::Workload(WorkloadKind::ReplicationController),
            "cj" => Kind::Workload(WorkloadKind::CronJob),
            other => {
                let plural = format!("{}s", other.trim_end_matches('s'));
                let kind = WorkloadKind::from_resource(&plural)
                    .ok_or_else(|| AskedError::Kind(kind.to_owned()))?;
                Kind::Workload(kind)
            }
        };
        Ok(Self {
            kind: Some(kind),
            name: name.to_owned(),
        })
    }

    /// Whether the case is about it.
    pub(super) fn is_about(&self, case: &CaseEntry) -> bool {
        let claim = self.may_be(Kind::Claim) && case.volume.claim == self.name;
        let waiting = case.waiting.iter().map(|it| (&it.pod, &it.workload));
        let holders = case.holders.iter().map(|it| (&it.pod, &it.workload));
        claim
            || waiting
                .chain(holders)
                .any(|(pod, workload)| self.is_pod(pod) || self.is_workload(workload))
    }

    /// What there is to say where nothing waits for it, or because of it.
    pub(super) fn nothing(&self, facts: DiagnosisInput<'_>) -> Result<String, AskedError> {
        let mut pods = facts.observed.pods.iter();
        let name = &self.name;
        let is_meant = |pod: &&Pod| {
            let (kind, name) = pod.workload();
            self.is_pod(&pod.meta.name) || self.is_workload(&format!("{kind} {name}"))
        };
        let mut meant = pods.clone().filter(is_meant);
        if let Some(pod) = meant.clone().find(|pod| pod.is_starting()) {
            return Ok(match facts.observed.said_of(pod) {
                Some(said) => format!(
                    "Pod {} has not started, and as far as can be seen not because another node has a volume of it. Kubernetes says: \"{}\"",
                    pod.meta.name,
                    said.trim()
                ),
                None => format!(
                    "Pod {} has not started, but every volume it uses is where it is.",
                    pod.meta.name
                ),
            });
        }
        if let Some(pod) = meant.next() {
            return Ok(match pod.claims.as_slice() {
                [] => format!("{name} uses no claim."),
                _ => format!("{name} waits for no volume: every one it uses is where it is."),
            });
        }
        let uses = |pod: &Pod| pod.claims.iter().any(|claim| claim == name);
        if self.may_be(Kind::Claim) {
            if pods.any(uses) {
                return Ok(format!("No pod waits for claim {name}."));
            }
            let view = facts.objects.view;
            if !view.namespaces_with_claim(name).is_empty() {
                return Ok(format!(
                    "No pod uses claim {name}, so nothing waits for it."
                ));
            }
        }
        let has_no_pods = WorkloadKind::ALL.into_iter().any(|kind| {
            self.may_be(Kind::Workload(kind)) && facts.objects.view.has_workload(kind, name)
        });
        if has_no_pods {
            return Ok(format!("{name} has no pods, so that nothing waits."));
        }
        Err(AskedError::Nothing(name.clone()))
    }

    fn may_be(&self, kind: Kind) -> bool {
        self.kind.is_none_or(|it| it == kind)
    }

    fn is_pod(&self, name: &str) -> bool {
        self.may_be(Kind::Workload(WorkloadKind::Pod)) && name == self.name
    }

    /// Whether it is that workload, given as `Deployment web`.
    fn is_workload(&self, workload: &str) -> bool {
        workload.split_once(' ').is_some_and(|(kind, name)| {
            let kind = WorkloadKind::from_name(kind);
            name == self.name
                && (self.kind.is_none()
                    || kind.is_some_and(|kind| self.may_be(Kind::Workload(kind))))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_read_as_kubectl_reads_them() {
        let workload = |kind| Some(Kind::Workload(kind));
        let cases = [
            ("web", None, "web"),
            ("pod/web-1", workload(WorkloadKind::Pod), "web-1"),
            ("deploy/web", workload(WorkloadKind::Deployment), "web"),
            ("Deployment/web", workload(WorkloadKind::Deployment), "web"),
            ("deployments/web", workload(WorkloadKind::Deployment), "web"),
            ("sts/db", workload(WorkloadKind::StatefulSet), "db"),
            ("pvc/data", Some(Kind::Claim), "data"),
        ];
        for (text, kind, name) in cases {
            let expected = Asked {
                kind,
                name: name.to_owned(),
            };
            assert_eq!(Asked::read(text).unwrap(), expected, "{text}");
        }
        let error = Asked::read("secret/x").unwrap_err().to_string();
        assert!(
            error.starts_with("\"secret\" is no kind that uses volumes."),
            "{error}"
        );
    }
}
