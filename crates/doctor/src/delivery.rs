//! The tools that write the manifests into the cluster and would undo manual changes.

use serde_json::{Value, json};

/// The tool that keeps an object in the state of a repository or a chart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Delivery {
    /// The name of the judgement with the steps that make it leave its objects alone, if it works
    /// by itself, and let it work again.
    pub(super) tool: &'static str,
    /// The values of that judgement: `by` is its name for sentences, `delivery` its object as
    /// kubectl takes it, and `place` the namespace of that.
    pub(super) values: Value,
}

/// The default namespace of Argo CD and its Applications.
const ARGO_CD: &str = "argocd";

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
        let by = |tool, name: String, target: String, place: &str| {
            let values = json!({"by": name, "delivery": target, "place": place});
            Some(Self { tool, values })
        };
        for (group, kind) in FLUX {
            if let Some(name) = label(&format!("{group}/name"))
                && let Some(namespace) = label(&format!("{group}/namespace"))
            {
                let target = format!("{}s.{group}/{name}", kind.to_lowercase());
                return by(
                    "delivered-by-flux",
                    format!("{kind} {name} of Flux"),
                    target,
                    namespace,
                );
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
            let target = format!("applications.argoproj.io/{name}");
            let name = format!("Application {name} of Argo CD");
            return by("delivered-by-argo-cd", name, target, namespace);
        }
        let release = annotation("meta.helm.sh/release-name").filter(|name| is_plain(name))?;
        by("delivered-by-helm", format!("the Helm release {release}"), String::new(), "")
    }
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
            let by = "Application shop of Argo CD";
            json!({"by": by, "delivery": "applications.argoproj.io/shop", "place": namespace})
        };
        let flux = |by: &str, place: &str, delivery: &str| json!({"by": by, "delivery": delivery, "place": place});
        let cases = [
            (json!({}), Value::Null),
            (json!({"labels": {"app.kubernetes.io/instance": "shop"}}), Value::Null),
            (
                json!({"annotations": {"argocd.argoproj.io/tracking-id": "shop:apps/Deployment:shop/web"}}),
                argo("argocd"),
            ),
            (
                json!({"annotations": {"argocd.argoproj.io/tracking-id": "team_shop:apps/Deployment:shop/web"}}),
                argo("team"),
            ),
            (json!({"annotations": {"argocd.argoproj.io/tracking-id": "a b\n:x"}}), Value::Null),
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
                json!({"by": "the Helm release web", "delivery": "", "place": ""}),
            ),
        ];
        for (metadata, expected) in cases {
            let found = Delivery::of(&json!({"metadata": metadata}));
            let found = found.map(|delivery| delivery.values).unwrap_or_default();
            assert_eq!(found, expected, "{metadata}");
        }
    }
}
