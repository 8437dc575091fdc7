//! The tools that write the manifests into the cluster and would undo manual changes.

use serde_json::{Value, json};

/// The tool that keeps an object in the state of a repository or a chart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Delivery {
    /// The name for sentences, such as `Application shop of Argo CD`.
    pub(super) display_name: String,
    /// The kubectl arguments that make it leave its objects alone, and those that let it work
    /// again; `None` if it only works when somebody runs it.
    pub(super) pause: Option<[Vec<String>; 2]>,
}

/// The default namespace of Argo CD and its Applications.
const ARGO_CD: &str = "argocd";

/// The annotation that makes Argo CD leave an Application alone (its documentation, "Skip
/// Application Reconcile").
const SKIP: &str = "argocd.argoproj.io/skip-reconcile";

/// The groups of the labels that Flux writes on its objects, each with its kind (its documentation,
/// "Kustomization" and "HelmRelease").
const FLUX: [(&str, &str); 2] =
    [("kustomize.toolkit.fluxcd.io", "Kustomization"), ("helm.toolkit.fluxcd.io", "HelmRelease")];

impl Delivery {
    /// The delivery of the object in this document, if the object shows it. Flux is checked before
    /// Helm because its HelmReleases use Helm.
    pub(super) fn of(document: &Value) -> Option<Self> {
        let metadata = &document["metadata"];
        let label = |key: &str| text(&metadata["labels"][key]);
        let annotation = |key: &str| text(&metadata["annotations"][key]);
        for (group, kind) in FLUX {
            if let Some(name) = label(&format!("{group}/name"))
                && let Some(namespace) = label(&format!("{group}/namespace"))
            {
                return Some(Self::flux(group, kind, namespace, name));
            }
        }
        // The format is `NAME:GROUP/KIND:NAMESPACE/NAME`. The first name has the Application's
        // namespace and `_` before it if that namespace is not the default (Argo CD documentation,
        // "Resource Tracking" and "Applications in any namespace").
        let tracked = annotation("argocd.argoproj.io/tracking-id")
            .and_then(|id| Some(id.split_once(':')?.0))
            .or_else(|| label("argocd.argoproj.io/instance"));
        if let Some(tracked) = tracked.filter(|name| is_plain(name)) {
            let (namespace, name) = tracked.split_once('_').unwrap_or((ARGO_CD, tracked));
            return Some(Self::argo_cd(namespace, name));
        }
        let release = annotation("meta.helm.sh/release-name").filter(|name| is_plain(name))?;
        Some(Self { display_name: format!("the Helm release {release}"), pause: None })
    }

    /// A Kustomization or HelmRelease of Flux.
    fn flux(group: &str, kind: &str, namespace: &str, name: &str) -> Self {
        let target = format!("{}s.{group}/{name}", kind.to_lowercase());
        let patch = |suspend: bool| {
            let spec = json!({"spec": {"suspend": suspend}}).to_string();
            arguments(namespace, &["patch", &target, "--type=merge", "-p", &spec])
        };
        Self {
            display_name: format!("{kind} {name} of Flux"),
            pause: Some([patch(true), patch(false)]),
        }
    }

    /// An Application of Argo CD.
    fn argo_cd(namespace: &str, name: &str) -> Self {
        let target = format!("applications.argoproj.io/{name}");
        let [on, off] = [format!("{SKIP}=true"), format!("{SKIP}-")];
        Self {
            display_name: format!("Application {name} of Argo CD"),
            pause: Some([
                arguments(namespace, &["annotate", &target, &on, "--overwrite"]),
                arguments(namespace, &["annotate", &target, &off]),
            ]),
        }
    }
}

/// The arguments of kubectl for an object of the namespace.
fn arguments(namespace: &str, rest: &[&str]) -> Vec<String> {
    ["-n", namespace].iter().chain(rest).map(|word| (*word).to_owned()).collect()
}

fn text(value: &Value) -> Option<&str> {
    value.as_str().filter(|text| !text.is_empty())
}

/// Whether the text may be the name of an object: annotations may hold anything.
fn is_plain(name: &str) -> bool {
    name.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deliveries_are_known_by_what_they_write_on_objects() {
        let argo = |namespace: &str| {
            let target = "annotate applications.argoproj.io/shop";
            let pause = format!("-n {namespace} {target} {SKIP}=true --overwrite");
            Some(("Application shop of Argo CD", pause))
        };
        let flux = |name: &'static str, namespace: &str, target: &str| {
            let patch = r#"--type=merge -p {"spec":{"suspend":true}}"#;
            Some((name, format!("-n {namespace} patch {target} {patch}")))
        };
        let cases = [
            (json!({}), None),
            (json!({"labels": {"app.kubernetes.io/instance": "shop"}}), None),
            (
                json!({"annotations": {"argocd.argoproj.io/tracking-id": "shop:apps/Deployment:shop/web"}}),
                argo("argocd"),
            ),
            (
                json!({"annotations": {"argocd.argoproj.io/tracking-id": "team_shop:apps/Deployment:shop/web"}}),
                argo("team"),
            ),
            (json!({"annotations": {"argocd.argoproj.io/tracking-id": "a b\n:x"}}), None),
            (json!({"labels": {"argocd.argoproj.io/instance": "shop"}}), argo("argocd")),
            (
                json!({"labels": {"kustomize.toolkit.fluxcd.io/name": "shop",
                    "kustomize.toolkit.fluxcd.io/namespace": "flux-system"}}),
                flux(
                    "Kustomization shop of Flux",
                    "flux-system",
                    "kustomizations.kustomize.toolkit.fluxcd.io/shop",
                ),
            ),
            (
                json!({"labels": {"helm.toolkit.fluxcd.io/name": "web",
                    "helm.toolkit.fluxcd.io/namespace": "shop"},
                    "annotations": {"meta.helm.sh/release-name": "web"}}),
                flux("HelmRelease web of Flux", "shop", "helmreleases.helm.toolkit.fluxcd.io/web"),
            ),
            (
                json!({"annotations": {"meta.helm.sh/release-name": "web"}}),
                Some(("the Helm release web", String::new())),
            ),
        ];
        for (metadata, expected) in cases {
            let found = Delivery::of(&json!({"metadata": metadata})).map(|delivery| {
                let pause = delivery.pause.map(|[pause, _]| pause.join(" "));
                (delivery.display_name, pause.unwrap_or_default())
            });
            let expected = expected.map(|(name, pause)| (name.to_owned(), pause));
            assert_eq!(found, expected, "{metadata}");
        }
    }
}
