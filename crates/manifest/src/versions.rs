//! API versions that Kubernetes no longer serves.

use engine::model::object::ObjectKind;

/// A version that Kubernetes removed: its successor, and the first release without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gone {
    pub(super) successor: &'static str,
    pub(super) since: &'static str,
}

/// Source: the Kubernetes documentation, "Deprecated API Migration Guide".
const GONE: [(&str, &str, &str); 7] = [
    ("extensions/v1beta1", "apps/v1", "1.16"),
    ("apps/v1beta1", "apps/v1", "1.16"),
    ("apps/v1beta2", "apps/v1", "1.16"),
    ("batch/v1beta1", "batch/v1", "1.25"),
    ("autoscaling/v2beta1", "autoscaling/v2", "1.25"),
    ("autoscaling/v2beta2", "autoscaling/v2", "1.26"),
    ("storage.k8s.io/v1beta1", "storage.k8s.io/v1", "1.22"),
];

/// The kind of an object that is read here, and its version in `GONE` if Kubernetes removed that
/// version. The fields that matter here are the same in the successor.
pub(super) fn kind_of(api_version: &str, kind: &str) -> Option<(ObjectKind, Option<Gone>)> {
    let mut versions = GONE.into_iter();
    let gone = versions
        .find(|(version, ..)| *version == api_version)
        .map(|(_, successor, since)| Gone { successor, since });
    let served = match (api_version, kind) {
        // OpenShift 3 wrote the kind without its group.
        ("v1", "DeploymentConfig") => "apps.openshift.io/v1",
        _ => gone.map_or(api_version, |gone| gone.successor),
    };
    Some((ObjectKind::of_manifest(served, kind)?, gone))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_versions_are_read_as_their_successors() {
        for (api_version, kind, name, since) in [
            ("extensions/v1beta1", "Deployment", Some("Deployment"), Some("1.16")),
            ("extensions/v1beta1", "Ingress", None, None),
            ("batch/v1beta1", "CronJob", Some("CronJob"), Some("1.25")),
            ("apps/v1", "Deployment", Some("Deployment"), None),
            ("v1", "Node", Some("Node"), None),
            ("v1", "Service", None, None),
        ] {
            let found = kind_of(api_version, kind);
            assert_eq!(found.map(|(successor, _)| successor.name()), name, "{api_version} {kind}");
            let gone = found.and_then(|(_, gone)| gone);
            assert_eq!(gone.map(|gone| gone.since), since, "{api_version} {kind}");
        }
    }
}
