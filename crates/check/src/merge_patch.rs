//! Writes a change as a patch that kustomize applies.

use serde_json::{Map, Value, json};

use engine::model::object::ObjectRef;

/// The strategic-merge patch that changes `before` into `after`, with the fields by which kustomize
/// finds the object. Lists are given completely, because the API replaces the lists that remedies
/// change as a whole (`listType: atomic`).
pub(super) fn strategic(object: &ObjectRef, before: &Value, after: &Value) -> Value {
    let mut patch = json!({
        "apiVersion": object.api_version,
        "kind": object.kind,
        "metadata": {"name": object.name},
    });
    if let Some(namespace) = &object.namespace {
        patch["metadata"]["namespace"] = json!(namespace);
    }
    if let (Some(patch), Some(Value::Object(changes))) =
        (patch.as_object_mut(), difference(before, after))
    {
        patch.extend(changes);
    }
    patch
}

/// The value to merge into `before` to get `after`; `None` if they are equal.
fn difference(before: &Value, after: &Value) -> Option<Value> {
    if before == after {
        return None;
    }
    let (Value::Object(before), Value::Object(after)) = (before, after) else {
        return Some(after.clone());
    };
    let mut changes = Map::new();
    for (key, value) in after {
        let change = match before.get(key) {
            Some(before) => difference(before, value),
            None => Some(value.clone()),
        };
        changes.extend(change.map(|change| (key.clone(), change)));
    }
    for key in before.keys().filter(|key| !after.contains_key(*key)) {
        changes.insert(key.clone(), Value::Null);
    }
    Some(Value::Object(changes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_change_is_in_the_patch() {
        let object = ObjectRef {
            api_version: "apps/v1".into(),
            kind: "Deployment".into(),
            namespace: Some("shop".into()),
            name: "web".into(),
        };
        let before = json!({"metadata": {"name": "web", "labels": {"a": "b"}}, "spec": {
            "replicas": 1, "list": [1, 2],
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}});
        let after = json!({"metadata": {"name": "web", "labels": {"a": "b"}}, "spec": {
            "replicas": 1, "list": [1, 3],
            "strategy": {"type": "Recreate"}}});
        assert_eq!(
            strategic(&object, &before, &after),
            json!({"apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": {"name": "web", "namespace": "shop"},
                "spec": {"list": [1, 3], "strategy": {"type": "Recreate", "rollingUpdate": null}}})
        );
    }
}
