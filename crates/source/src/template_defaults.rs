//! The defaults that the API server writes into a pod template.

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// The lists of containers in a pod.
const CONTAINERS: [&str; 2] = ["containers", "initContainers"];

/// The volumes whose files have a mode.
const WITH_MODES: [&str; 4] = ["configMap", "secret", "downwardAPI", "projected"];

/// The template as the API server would write it (`zz_generated.defaults.go` in
/// `pkg/apis/core/v1`), for the fields that ordinary templates use; `None` if it is not JSON.
pub(super) fn with_defaults(template: &RawValue) -> Option<Box<RawValue>> {
    let mut template: Value = serde_json::from_str(template.get()).ok()?;
    if let Some(spec) = template.get_mut("spec").and_then(Value::as_object_mut) {
        pod(spec);
    }
    RawValue::from_string(template.to_string()).ok()
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

fn object<'v>(parent: &'v mut Map<String, Value>, key: &str) -> Option<&'v mut Map<String, Value>> {
    parent.get_mut(key)?.as_object_mut()
}

fn pod(spec: &mut Map<String, Value>) {
    set(spec, "restartPolicy", "Always");
    set(spec, "dnsPolicy", "ClusterFirst");
    set(spec, "schedulerName", "default-scheduler");
    set(spec, "terminationGracePeriodSeconds", 30);
    set(spec, "securityContext", json!({}));
    // The two are names of one field.
    if let Some(account) = spec.get("serviceAccountName").cloned() {
        set(spec, "serviceAccount", account);
    }
    let is_on_the_host = spec.get("hostNetwork") == Some(&Value::Bool(true));
    for list in CONTAINERS {
        for it in each(spec, list) {
            container(it, is_on_the_host);
        }
    }
    each(spec, "volumes").for_each(volume);
}

fn container(container: &mut Map<String, Value>, is_on_the_host: bool) {
    set(container, "terminationMessagePath", "/dev/termination-log");
    set(container, "terminationMessagePolicy", "File");
    set(container, "resources", json!({}));
    let image = container.get("image").and_then(Value::as_str);
    let policy = if image.is_some_and(is_latest) {
        "Always"
    } else {
        "IfNotPresent"
    };
    set(container, "imagePullPolicy", policy);
    for port in each(container, "ports") {
        set(port, "protocol", "TCP");
        if is_on_the_host && let Some(number) = port.get("containerPort").cloned() {
            set(port, "hostPort", number);
        }
    }
    for variable in each(container, "env") {
        if let Some(field) = object(variable, "valueFrom").and_then(|it| object(it, "fieldRef")) {
            set(field, "apiVersion", "v1");
        }
    }
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let Some(probe) = object(container, name) else {
            continue;
        };
        set(probe, "timeoutSeconds", 1);
        set(probe, "periodSeconds", 10);
        set(probe, "successThreshold", 1);
        set(probe, "failureThreshold", 3);
        http_get(probe);
        if let Some(grpc) = object(probe, "grpc") {
            set(grpc, "service", "");
        }
    }
    let hooks = object(container, "lifecycle").into_iter();
    let hooks = hooks
        .flat_map(Map::values_mut)
        .filter_map(Value::as_object_mut);
    hooks.for_each(http_get);
}

fn http_get(action: &mut Map<String, Value>) {
    if let Some(get) = object(action, "httpGet") {
        set(get, "path", "/");
        set(get, "scheme", "HTTP");
    }
}

/// Whether an image has no tag or digest, or the tag `latest`.
fn is_latest(image: &str) -> bool {
    let name = image.rsplit('/').next().unwrap_or(image);
    !name.contains('@') && name.split_once(':').is_none_or(|(_, tag)| tag == "latest")
}

fn volume(volume: &mut Map<String, Value>) {
    for kind in WITH_MODES {
        if let Some(source) = object(volume, kind) {
            set(source, "defaultMode", 0o644);
            each(source, "sources").for_each(projection);
            each(source, "items").for_each(item);
        }
    }
    if let Some(path) = object(volume, "hostPath") {
        set(path, "type", "");
    }
    if let Some(claim) = object(volume, "ephemeral")
        .and_then(|it| object(it, "volumeClaimTemplate"))
        .and_then(|it| object(it, "spec"))
    {
        set(claim, "volumeMode", "Filesystem");
    }
}

fn projection(source: &mut Map<String, Value>) {
    if let Some(token) = object(source, "serviceAccountToken") {
        set(token, "expirationSeconds", 3600);
    }
    if let Some(fields) = object(source, "downwardAPI") {
        each(fields, "items").for_each(item);
    }
}

fn item(item: &mut Map<String, Value>) {
    if let Some(field) = object(item, "fieldRef") {
        set(field, "apiVersion", "v1");
    }
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
        let read = |raw: &RawValue| serde_json::from_str::<Value>(raw.get()).unwrap();
        let once = with_defaults(&raw(&written)).unwrap();
        assert_eq!(read(&once), expected);
        assert_eq!(read(&with_defaults(&once).unwrap()), expected, "again");
    }
}
