//! The tools that write the manifests into the cluster and would undo manual changes.

use serde_json::{Value, json};

/// The tool that keeps an object in the state of a repository or a chart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Delivery {
    /// An Application of Argo CD.
    ArgoCd {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// A Kustomization or HelmRelease of Flux.
    Flux {
        /// The resource with its group, as kubectl takes it.
        resource: &'static str,
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// A Helm release that somebody upgrades.
    Helm {
        /// Its name.
        release: String,
    },
}

/// The default namespace of Argo CD and its Applications.
const ARGO_CD: &str = "argocd";

/// The annotation that makes Argo CD leave an Application alone (its documentation, "Skip
/// Application Reconcile").
const SKIP: &str = "argocd.argoproj.io/skip-reconcile";

/// The groups of the labels that Flux writes on its objects, each with its resource (its
/// documentation, "Kustomization" and "HelmRelease").
const FLUX: [(&str, &str); 2] = [
    (
        "kustomize.toolkit.fluxcd.io",
        "kustomizations.kustomize.toolkit.fluxcd.io",
    ),
    (
        "helm.toolkit.fluxcd.io",
        "helmreleases.helm.toolkit.fluxcd.io",
    ),
];

impl Delivery {
    /// The delivery of the object in this document, if the object shows it. Flux is checked before
    /// Helm because its HelmReleases use Helm.
    pub(super) fn of(document: &Value) -> Option<Self> {
        let metadata = &document["metadata"];
        let label = |key: &str| text(&metadata["labels"][key]);
        let annotation = |key: &str| text(&metadata["annotations"][key]);
        for (group, resource) in FLUX {
            if let Some(name) = label(&format!("{group}/name"))
                && let Some(namespace) = label(&format!("{group}/namespace"))
            {
                return Some(Self::Flux {
                    resource,
                    namespace,
                    name,
                });
            }
        }
        // The format is `NAME:GROUP/KIND:NAMESPACE/NAME`. The first name has the Application's
        // namespace and `_` before it if that namespace is not the default (Argo CD documentation,
        // "Resource Tracking" and "Applications in any namespace").
        let tracked = annotation("argocd.argoproj.io/tracking-id")
            .and_then(|id| Some(id.split_once(':')?.0.to_owned()))
            .or_else(|| label("argocd.argoproj.io/instance"));
        if let Some(tracked) = tracked.filter(|it| is_plain(it)) {
            let (namespace, name) = tracked.split_once('_').unwrap_or((ARGO_CD, &tracked));
            return Some(Self::ArgoCd {
                namespace: namespace.to_owned(),
                name: name.to_owned(),
            });
        }
        let release = annotation("meta.helm.sh/release-name").filter(|it| is_plain(it));
        release.map(|release| Self::Helm { release })
    }

    /// The name for sentences, such as `Application shop of Argo CD`.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::ArgoCd { name, .. } => format!("Application {name} of Argo CD"),
            Self::Flux { resource, name, .. } if resource.starts_with("helm") => {
                format!("HelmRelease {name} of Flux")
            }
            Self::Flux { name, .. } => format!("Kustomization {name} of Flux"),
            Self::Helm { release } => format!("the Helm release {release}"),
        }
    }

    /// The kubectl arguments that make it leave its objects alone, and those that let it work
    /// again; `None` if it only works when somebody runs it.
    pub(super) fn pause(&self) -> Option<[Vec<String>; 2]> {
        let line = |namespace: &str, rest: &[&str]| {
            let words = ["-n", namespace].into_iter().chain(rest.iter().copied());
            words.map(str::to_owned).collect()
        };
        match self {
            Self::ArgoCd { namespace, name } => {
                let target = format!("applications.argoproj.io/{name}");
                let [on, off] = [format!("{SKIP}=true"), format!("{SKIP}-")];
                Some([
                    line(namespace, &["annotate", &target, &on, "--overwrite"]),
                    line(namespace, &["annotate", &target, &off]),
                ])
            }
            Self::Flux {
                resource,
                namespace,
                name,
            } => {
                let target = format!("{resource}/{name}");
                let patch = |suspend: bool| {
                    let patch = json!({"spec": {"suspend": suspend}}).to_string();
                    line(namespace, &["patch", &target, "--type=merge", "-p", &patch])
                };
                Some([patch(true), patch(false)])
            }
            Self::Helm { .. } => None,
        }
    }
}

fn text(value: &Value) -> Option<String> {
    Some(value.as_str()?.to_owned()).filter(|it| !it.is_empty())
}

/// Whether the text may be the name of an object: annotations may hold anything.
fn is_plain(name: &str) -> bool {
    name.chars()
        .all(|c| c.is_ascii_alphanumeric() || "-._".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deliveries_are_known_by_what_they_write_on_objects() {
        let argo = |namespace: &str, name: &str| {
            Some(Delivery::ArgoCd {
                namespace: namespace.to_owned(),
                name: name.to_owned(),
            })
        };
        let cases = [
            (json!({}), None),
            (
                json!({"labels": {"app.kubernetes.io/instance": "shop"}}),
                None,
            ),
            (
                json!({"annotations": {"argocd.argoproj.io/tracking-id": "shop:apps/Deployment:shop/web"}}),
                argo("argocd", "shop"),
            ),
            (
                json!({"annotations": {"argocd.argoproj.io/tracking-id": "team_shop:apps/Deployment:shop/web"}}),
                argo("team", "shop"),
            ),
            (
                json!({"annotations": {"argocd.argoproj.io/tracking-id": "a b\n:x"}}),
                None,
            ),
            (
                json!({"labels": {"argocd.argoproj.io/instance": "shop"}}),
                argo("argocd", "shop"),
            ),
            (
                json!({"labels": {"kustomize.toolkit.fluxcd.io/name": "shop",
                    "kustomize.toolkit.fluxcd.io/namespace": "flux-system"}}),
                Some(Delivery::Flux {
                    resource: FLUX[0].1,
                    namespace: "flux-system".to_owned(),
                    name: "shop".to_owned(),
                }),
            ),
            (
                json!({"labels": {"helm.toolkit.fluxcd.io/name": "web",
                    "helm.toolkit.fluxcd.io/namespace": "shop"},
                    "annotations": {"meta.helm.sh/release-name": "web"}}),
                Some(Delivery::Flux {
                    resource: FLUX[1].1,
                    namespace: "shop".to_owned(),
                    name: "web".to_owned(),
                }),
            ),
            (
                json!({"annotations": {"meta.helm.sh/release-name": "web"}}),
                Some(Delivery::Helm {
                    release: "web".to_owned(),
                }),
            ),
        ];
        for (metadata, expected) in cases {
            let found = Delivery::of(&json!({"metadata": metadata}));
            assert_eq!(found, expected, "{metadata}");
        }
    }
}
