//! The way in which an object is applied, as far as its own fields show it.
//!
//! The API server refuses server-side apply of `type: Recreate` over a live Deployment with the
//! defaults: it filled in a `rollingUpdate` block, which no manifest can take away, because only
//! the server owns it. Zero surge passes. A merge patch that sets the block to null passes too, and
//! Recreate passes after it.

use serde_json::Value;

/// The way in which an object is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Applied {
    /// Nothing shows that it is live, or who applies it.
    Unsaid,
    /// By `kubectl apply` and similar clients, which take the block away.
    ClientSide,
    /// On the server's side.
    ServerSide,
    /// It is live, and nothing shows how it is applied.
    Unknown,
}

const LAST_APPLIED: &str =
    "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration";

/// The label of Flux's kustomize-controller, which always applies on the server's side. For its
/// helm-controller, the release of Helm in it decides.
const FLUX: &str = "/metadata/labels/kustomize.toolkit.fluxcd.io~1name";

/// Argo CD applies on the client's side unless the object, or its Application, says this.
const ARGO_OPTIONS: &str = "/metadata/annotations/argocd.argoproj.io~1sync-options";
const ARGO_SERVER_SIDE: &str = "ServerSideApply=true";

impl Applied {
    /// Reads the way from `document`; `lives` says that the object is known to be live.
    pub(crate) fn of(document: Option<&Value>, lives: bool) -> Self {
        let Some(document) = document else {
            return if lives { Self::Unknown } else { Self::Unsaid };
        };
        let options = document.pointer(ARGO_OPTIONS).and_then(Value::as_str);
        let has = |pointer| document.pointer(pointer).is_some();
        if applied_entries(document).any(|entry| entry.get("subresource").is_none())
            || has(FLUX)
            || options.is_some_and(|options| options.contains(ARGO_SERVER_SIDE))
        {
            Self::ServerSide
        } else if has(LAST_APPLIED) {
            Self::ClientSide
        } else if lives || has("/metadata/managedFields") || has("/metadata/uid") {
            Self::Unknown
        } else {
            Self::Unsaid
        }
    }

    /// Whether Recreate alone may be refused, so that zero surge comes first.
    pub(crate) const fn may_refuse_recreate(self) -> bool {
        matches!(self, Self::ServerSide | Self::Unknown)
    }
}

/// Whether the applied manifest states a strategy, so that applying it again reverts a patch;
/// `None` if nothing shows it. If it does not, the API server filled the strategy in. This looks at
/// the configuration that was applied last, or at the fields of server-side apply, because those of
/// other writers look like the API server's defaults.
pub(crate) fn states_strategy(document: Option<&Value>) -> Option<bool> {
    let document = document?;
    let last = document
        .pointer(LAST_APPLIED)
        .and_then(Value::as_str)
        .and_then(|text| serde_json::from_str::<Value>(text).ok());
    if let Some(last) = last {
        return Some(has_fields(&last, "/spec/strategy"));
    }
    let mut applied = applied_entries(document)
        .filter(|entry| entry.pointer("/fieldsV1/f:spec/f:template").is_some())
        .peekable();
    applied.peek()?;
    Some(applied.any(|entry| has_fields(entry, "/fieldsV1/f:spec/f:strategy")))
}

/// The managed fields that were applied on the server's side.
fn applied_entries(document: &Value) -> impl Iterator<Item = &Value> {
    document
        .pointer("/metadata/managedFields")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter(|entry| entry.get("operation").and_then(Value::as_str) == Some("Apply"))
}

/// Whether anything is set there: the manifest reverts a patch of the numbers of a rolling update
/// as well as of its type, and the API server refuses them beside Recreate.
fn has_fields(document: &Value, pointer: &str) -> bool {
    document.pointer(pointer).and_then(Value::as_object).is_some_and(|fields| !fields.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_applied_says_whether_it_states_a_strategy() {
        let last = |text: &str| json!({"metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": text}}});
        let managed = |operation: &str, spec: Value| json!({"metadata": {"managedFields": [{"operation": operation, "fieldsV1": {"f:spec": spec}}]}});
        let both = json!({"f:template": {}, "f:strategy": {"f:type": {}}});
        let cases = [
            (json!({}), None),
            (last("not json"), None),
            (last(r#"{"spec":{"replicas":1}}"#), Some(false)),
            (last(r#"{"spec":{"strategy":{"type":"RollingUpdate"}}}"#), Some(true)),
            (last(r#"{"spec":{"strategy":{"rollingUpdate":{"maxSurge":1}}}}"#), Some(true)),
            (last(r#"{"spec":{"strategy":{}}}"#), Some(false)),
            (managed("Update", both.clone()), None),
            (managed("Apply", both), Some(true)),
            (managed("Apply", json!({"f:template": {}})), Some(false)),
            (managed("Apply", json!({"f:replicas": {}})), None),
        ];
        for (document, expected) in cases {
            assert_eq!(states_strategy(Some(&document)), expected, "{document}");
        }
    }

    #[test]
    fn the_object_says_how_it_is_applied() {
        let annotated = |key: &str, value: &str| json!({"metadata": {"annotations": {key: value}}});
        let managed = |fields: Value| json!({"metadata": {"managedFields": [fields]}});
        let last = "kubectl.kubernetes.io/last-applied-configuration";
        let argo = "argocd.argoproj.io/sync-options";
        let both = json!({"metadata": {"annotations": {last: "{}"},
            "managedFields": [{"operation": "Update"}, {"operation": "Apply"}]}});
        let cases = [
            (json!({}), Applied::Unsaid),
            (annotated(last, "{}"), Applied::ClientSide),
            (annotated(argo, "Prune=false,ServerSideApply=true"), Applied::ServerSide),
            (annotated(argo, "Prune=false"), Applied::Unsaid),
            (managed(json!({"operation": "Apply", "manager": "helm"})), Applied::ServerSide),
            (managed(json!({"operation": "Update"})), Applied::Unknown),
            (managed(json!({"operation": "Apply", "subresource": "status"})), Applied::Unknown),
            (managed(json!("what is this?")), Applied::Unknown),
            (json!({"metadata": {"managedFields": []}}), Applied::Unknown),
            (json!({"metadata": {"uid": "u"}}), Applied::Unknown),
            (both, Applied::ServerSide),
            (
                json!({"metadata": {"labels": {"kustomize.toolkit.fluxcd.io/name": "apps"}}}),
                Applied::ServerSide,
            ),
        ];
        for (document, expected) in cases {
            assert_eq!(Applied::of(Some(&document), false), expected, "{document}");
        }
        assert_eq!(Applied::of(None, true), Applied::Unknown);
        assert_eq!(Applied::of(Some(&json!({})), true), Applied::Unknown);
    }
}
