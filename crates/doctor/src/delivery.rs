//! The tools that write the manifests into the cluster and would undo manual changes.

use serde_json::{Value, json};

/// The name of each kind of Flux's objects in the values of the judgement, and the group of the labels
/// that Flux writes on what it delivers (its documentation, "Kustomization" and "HelmRelease").
const FLUX: [(&str, &str); 2] =
    [("kustomization", "kustomize.toolkit.fluxcd.io"), ("helm-release", "helm.toolkit.fluxcd.io")];

/// The values of the judgement `delivered`, if a tool keeps the object in this document in the state
/// of a repository or a chart, and the object shows it: the tool's object, and its namespace as
/// `place`. Flux is checked before Helm because its HelmReleases use Helm.
pub(super) fn delivery(document: &Value) -> Option<Value> {
    let metadata = &document["metadata"];
    let label = |key: &str| metadata["labels"][key].as_str().filter(|name| is_plain(name));
    let annotation = |key: &str| metadata["annotations"][key].as_str();
    for (kind, group) in FLUX {
        if let Some(name) = label(&format!("{group}/name"))
            && let Some(namespace) = label(&format!("{group}/namespace"))
        {
            return Some(json!({kind: name, "place": namespace}));
        }
    }
    // The format is `NAME:GROUP/KIND:NAMESPACE/NAME`. The first name has the Application's namespace
    // and `_` before it if that namespace is not the default (Argo CD documentation, "Resource
    // Tracking" and "Applications in any namespace").
    let tracked = annotation("argocd.argoproj.io/tracking-id")
        .and_then(|id| Some(id.split_once(':')?.0))
        .or_else(|| label("argocd.argoproj.io/instance"));
    if let Some(tracked) = tracked.filter(|name| is_plain(name)) {
        let (namespace, name) = tracked.split_once('_').unwrap_or(("", tracked));
        return Some(json!({"application": name, "place": namespace}));
    }
    let release = annotation("meta.helm.sh/release-name").filter(|name| is_plain(name))?;
    Some(json!({ "release": release }))
}

/// Whether the text may be the name of an object: annotations may hold anything.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deliveries_are_known_by_what_they_write_on_objects() {
        let argo = |namespace: &str| json!({"application": "shop", "place": namespace});
        let cases = [
            (json!({}), Value::Null),
            (json!({"labels": {"app.kubernetes.io/instance": "shop"}}), Value::Null),
            (
                json!({"labels": {"helm.toolkit.fluxcd.io/name": "", "helm.toolkit.fluxcd.io/namespace": ""},
                    "annotations": {"argocd.argoproj.io/tracking-id": ":x", "meta.helm.sh/release-name": "web"}}),
                json!({"release": "web"}),
            ),
            (
                json!({"annotations": {"argocd.argoproj.io/tracking-id": "shop:apps/Deployment:shop/web"}}),
                argo(""),
            ),
            (
                json!({"annotations": {"argocd.argoproj.io/tracking-id": "team_shop:apps/Deployment:shop/web"}}),
                argo("team"),
            ),
            (json!({"annotations": {"argocd.argoproj.io/tracking-id": "a b\n:x"}}), Value::Null),
            (json!({"labels": {"argocd.argoproj.io/instance": "shop"}}), argo("")),
            (
                json!({"labels": {"kustomize.toolkit.fluxcd.io/name": "shop",
                    "kustomize.toolkit.fluxcd.io/namespace": "flux-system"}}),
                json!({"kustomization": "shop", "place": "flux-system"}),
            ),
            (
                json!({"labels": {"helm.toolkit.fluxcd.io/name": "web",
                    "helm.toolkit.fluxcd.io/namespace": "shop"},
                    "annotations": {"meta.helm.sh/release-name": "web"}}),
                json!({"helm-release": "web", "place": "shop"}),
            ),
            (
                json!({"annotations": {"meta.helm.sh/release-name": "web"}}),
                json!({"release": "web"}),
            ),
        ];
        for (metadata, expected) in cases {
            let found = delivery(&json!({"metadata": metadata})).unwrap_or_default();
            assert_eq!(found, expected, "{metadata}");
        }
    }
}
