//! The defaults that the API server writes into a pod template.

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// The lists of containers in a pod.
const CONTAINERS: [&str; 2] = ["containers", "initContainers"];

/// The template as the API server would write it (`zz_generated.defaults.go` in
/// `pkg/apis/core/v1`), for the fields that ordinary templates use; `None` if it is not JSON.
pub(super) fn with_defaults(template: &RawValue) -> Option<Box<RawValue>> {
    let mut template: Value = serde_json::from_str(template.get()).ok()?;
    if let Some(spec) = template.get_mut("spec") {
        fill(spec, &defaults());
        if let Some(spec) = spec.as_object_mut() {
            fill_from_other_fields(spec);
        }
    }
    RawValue::from_string(template.to_string()).ok()
}

/// The defaults of a pod's fields. An object with fields, or a list, is never added to a template:
/// its defaults go into the object that the template has there, or into every item of the list.
fn defaults() -> Value {
    let http_get = json!({"path": "/", "scheme": "HTTP"});
    let hook = json!({"httpGet": http_get});
    let probe = json!({
        "timeoutSeconds": 1,
        "periodSeconds": 10,
        "successThreshold": 1,
        "failureThreshold": 3,
        "httpGet": http_get,
        "grpc": {"service": ""},
    });
    let with_field = json!({"fieldRef": {"apiVersion": "v1"}});
    let projection = json!({
        "serviceAccountToken": {"expirationSeconds": 3600},
        "downwardAPI": {"items": [with_field]},
    });
    let files = json!({"defaultMode": 0o644, "items": [with_field], "sources": [projection]});
    let container = json!({
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "resources": {},
        "ports": [{"protocol": "TCP"}],
        "env": [{"valueFrom": with_field}],
        "livenessProbe": probe,
        "readinessProbe": probe,
        "startupProbe": probe,
        "lifecycle": {"postStart": hook, "preStop": hook},
    });
    let volume = json!({
        "configMap": files,
        "secret": files,
        "downwardAPI": files,
        "projected": files,
        "hostPath": {"type": ""},
        "ephemeral": {"volumeClaimTemplate": {"spec": {"volumeMode": "Filesystem"}}},
    });
    json!({
        "restartPolicy": "Always",
        "dnsPolicy": "ClusterFirst",
        "schedulerName": "default-scheduler",
        "terminationGracePeriodSeconds": 30,
        "securityContext": {},
        "containers": [container],
        "initContainers": [container],
        "volumes": [volume],
    })
}

/// Writes the defaults into a value, where it has none of its own.
fn fill(value: &mut Value, defaults: &Value) {
    match (value, defaults) {
        (Value::Object(fields), Value::Object(defaults)) => {
            for (key, default) in defaults {
                let has_fields = default.as_object().is_some_and(|object| !object.is_empty());
                if !has_fields && !default.is_array() {
                    set(fields, key, default.clone());
                } else if let Some(field) = fields.get_mut(key) {
                    fill(field, default);
                }
            }
        }
        (Value::Array(items), Value::Array(defaults)) => {
            for item in items {
                defaults.iter().for_each(|default| fill(item, default));
            }
        }
        _ => {}
    }
}

/// Writes the defaults of a pod that depend on its other fields.
fn fill_from_other_fields(spec: &mut Map<String, Value>) {
    // The two are names of one field.
    if let Some(account) = spec.get("serviceAccountName").cloned() {
        set(spec, "serviceAccount", account);
    }
    let is_on_the_host = spec.get("hostNetwork") == Some(&Value::Bool(true));
    for list in CONTAINERS {
        for container in each(spec, list) {
            let image = container.get("image").and_then(Value::as_str);
            let policy = if image.is_some_and(is_latest) { "Always" } else { "IfNotPresent" };
            set(container, "imagePullPolicy", policy);
            for port in each(container, "ports").filter(|_| is_on_the_host) {
                if let Some(number) = port.get("containerPort").cloned() {
                    set(port, "hostPort", number);
                }
            }
        }
    }
}

fn set(object: &mut Map<String, Value>, key: &str, default: impl Into<Value>) {
    let value = object.entry(key).or_insert(Value::Null);
    if value.is_null() {
        *value = default.into();
    }
}

/// The objects in the list `key` of `parent`.
fn each<'v>(
    parent: &'v mut Map<String, Value>,
    key: &str,
) -> impl Iterator<Item = &'v mut Map<String, Value>> {
    let list = parent.get_mut(key).and_then(Value::as_array_mut);
    list.into_iter().flatten().filter_map(Value::as_object_mut)
}

/// Whether an image has no tag or digest, or the tag `latest`.
fn is_latest(image: &str) -> bool {
    let name = image.rsplit('/').next().unwrap_or(image);
    !name.contains('@') && name.split_once(':').is_none_or(|(_, tag)| tag == "latest")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_gets_what_the_api_server_writes_and_keeps_what_it_says() {
        let written = json!({"spec": {"hostNetwork": true, "serviceAccountName": "web",
            "containers": [{"name": "c", "image": "example.com:5000/app", "terminationMessagePolicy": "FallbackToLogsOnError",
                "ports": [{"containerPort": 80}], "readinessProbe": {"httpGet": {"port": 80}, "periodSeconds": 5}},
                {"name": "d", "image": "app:1@sha256:00"}],
            "volumes": [{"name": "a", "configMap": {"name": "a"}}, {"name": "b", "emptyDir": {}}]}});
        let expected = json!({"spec": {"hostNetwork": true, "serviceAccountName": "web", "serviceAccount": "web",
            "restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "schedulerName": "default-scheduler",
            "terminationGracePeriodSeconds": 30, "securityContext": {},
            "containers": [{"name": "c", "image": "example.com:5000/app", "terminationMessagePolicy": "FallbackToLogsOnError",
                "terminationMessagePath": "/dev/termination-log", "imagePullPolicy": "Always", "resources": {},
                "ports": [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}],
                "readinessProbe": {"httpGet": {"port": 80, "path": "/", "scheme": "HTTP"}, "periodSeconds": 5,
                    "timeoutSeconds": 1, "successThreshold": 1, "failureThreshold": 3}},
                {"name": "d", "image": "app:1@sha256:00", "terminationMessagePolicy": "File",
                "terminationMessagePath": "/dev/termination-log", "imagePullPolicy": "IfNotPresent", "resources": {}}],
            "volumes": [{"name": "a", "configMap": {"name": "a", "defaultMode": 420}}, {"name": "b", "emptyDir": {}}]}});
        let raw = |value: &Value| RawValue::from_string(value.to_string()).unwrap();
        let read = |json: &RawValue| serde_json::from_str::<Value>(json.get()).unwrap();
        let once = with_defaults(&raw(&written)).unwrap();
        assert_eq!(read(&once), expected);
        assert_eq!(read(&with_defaults(&once).unwrap()), expected, "again");
    }
}
