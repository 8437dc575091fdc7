//! The two webhook configurations, in `url` form, so that a server outside the cluster can answer.

use axum::http::Method;
use serde_json::{Value, json};

use super::control_plane::{ControlPlane, READY_WITHIN};
use super::{seen, until};

/// The requests that a server receives, and the reaction if it does not answer.
#[derive(Clone, Debug)]
pub(crate) struct WebhookOptions {
    /// The server's address without a path, `https://127.0.0.1:PORT`.
    pub(crate) url: String,
    /// The requests to send: `RuleWithOperations` objects.
    pub(crate) rules: Value,
    /// The namespaces whose requests are sent, as in `namespaceSelector`. Tests that share a
    /// control plane name their own.
    pub(crate) namespaces: Value,
    /// `Fail` or `Ignore`.
    pub(crate) failure_policy: &'static str,
    /// 1 to 30.
    pub(crate) timeout_seconds: u8,
}

impl WebhookOptions {
    /// Creates and updates of Deployments (with their scale) and claims in these namespaces; a
    /// server that does not answer in time fails the request.
    pub(crate) fn new(url: &str, namespaces: &[&str]) -> Self {
        Self {
            url: url.to_owned(),
            rules: json!([
                {
                    "operations": ["CREATE", "UPDATE"],
                    "apiGroups": ["apps"],
                    "apiVersions": ["v1"],
                    "resources": ["deployments", "deployments/scale"],
                },
                {
                    "operations": ["CREATE", "UPDATE"],
                    "apiGroups": [""],
                    "apiVersions": ["v1"],
                    "resources": ["persistentvolumeclaims"],
                },
            ]),
            namespaces: json!({ "matchExpressions": [{
                "key": "kubernetes.io/metadata.name",
                "operator": "In",
                "values": namespaces,
            }]}),
            failure_policy: "Fail",
            timeout_seconds: 30,
        }
    }
}

/// The paths of the configurations in the API server.
const PATHS: [&str; 2] = [
    "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
];

/// Registered webhook configurations; dropping this removes them.
pub(crate) struct Registration<'a> {
    plane: &'a ControlPlane,
    name: String,
}

impl ControlPlane {
    /// Registers a mutating webhook at `URL/mutate` and a validating one at `URL/validate`, both
    /// named after `name`, and returns once the API server calls them. The server's certificate
    /// must come from this control plane's CA.
    pub(crate) fn register_webhooks(
        &self,
        name: &str,
        options: &WebhookOptions,
    ) -> Registration<'_> {
        let configuration = |path: &str| json!({ "webhooks": [self.webhook(name, path, options)] });
        self.register_configurations(
            name,
            &options.url,
            configuration("mutate"),
            configuration("validate"),
        )
    }

    /// Registers these configurations under `name` with one change: a webhook with a Service is
    /// called at `url` and the Service's path instead.
    pub(crate) fn register_configurations(
        &self,
        name: &str,
        url: &str,
        mutating: Value,
        validating: Value,
    ) -> Registration<'_> {
        let finished = |kind: &str, path: &str, mut configuration: Value| {
            configuration["apiVersion"] = json!("admissionregistration.k8s.io/v1");
            configuration["kind"] = json!(kind);
            configuration["metadata"] = json!({ "name": name });
            let webhooks = configuration["webhooks"].as_array_mut().unwrap();
            for webhook in webhooks.iter_mut() {
                let client = &mut webhook["clientConfig"];
                if let Some(service_path) = client.pointer("/service/path").and_then(Value::as_str)
                {
                    *client = self.client_config(&format!("{url}{service_path}"));
                }
            }
            webhooks.push(probe(name, path));
            configuration
        };
        let mutating = finished("MutatingWebhookConfiguration", "mutate", mutating);
        let validating = finished("ValidatingWebhookConfiguration", "validate", validating);
        for (path, configuration) in PATHS.into_iter().zip([mutating, validating]) {
            self.send(Method::POST, path, &configuration).unwrap();
        }
        let registration = Registration { plane: self, name: name.to_owned() };
        for path in ["mutate", "validate"] {
            registration.until_asked(path);
        }
        registration
    }

    fn client_config(&self, url: &str) -> Value {
        json!({
            "url": url,
            "caBundle": k8s_openapi::ByteString(self.pki.authority_pem().into_bytes()),
        })
    }

    fn webhook(&self, name: &str, path: &str, options: &WebhookOptions) -> Value {
        json!({
            "name": format!("{path}.{name}.multi-attach-guard.dev"),
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "clientConfig": self.client_config(&format!("{}/{path}", options.url)),
            "rules": options.rules,
            "namespaceSelector": options.namespaces,
            "failurePolicy": options.failure_policy,
            "timeoutSeconds": options.timeout_seconds,
        })
    }
}

impl Registration<'_> {
    /// Waits until the API server calls the webhooks. It reads configurations through a cache, so a
    /// new one takes effect a little later. The sign is its probe: an entry that refuses a
    /// ConfigMap which nobody else makes.
    fn until_asked(&self, path: &str) {
        let map = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": { "generateName": "probe-", "labels": probe_labels(&self.name, path) },
        });
        let maps = "/api/v1/namespaces/default/configmaps?dryRun=All";
        let what = format!("the API server to ask the webhooks of {}", self.name);
        until(&what, READY_WITHIN, || {
            let said = self
                .plane
                .send(Method::POST, maps, &map)
                .map_or_else(|error| error.to_string(), |()| "it passed".to_owned());
            seen(said.contains("failed calling webhook"), said)
        });
    }
}

impl Drop for Registration<'_> {
    fn drop(&mut self) {
        for path in PATHS {
            let path = format!("{path}/{}", self.name);
            let _ = self.plane.send(Method::DELETE, &path, &json!({}));
        }
    }
}

fn probe_labels(name: &str, path: &str) -> Value {
    json!({ "webhook-probe": format!("{name}.{path}") })
}

/// A webhook without a server (port 1) that fails every request it selects: only the objects of
/// [`Registration::until_asked`].
fn probe(name: &str, path: &str) -> Value {
    json!({
        "name": format!("probe.{path}.{name}.multi-attach-guard.dev"),
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "clientConfig": { "url": "https://127.0.0.1:1/" },
        "rules": [{
            "operations": ["CREATE"],
            "apiGroups": [""],
            "apiVersions": ["v1"],
            "resources": ["configmaps"],
        }],
        "objectSelector": { "matchLabels": probe_labels(name, path) },
        "failurePolicy": "Fail",
        "timeoutSeconds": 5,
    })
}

/// A review of an object that is created, or that replaces `old`.
pub(crate) fn review(object: &Value, old: Option<&Value>) -> Value {
    let api_version = object["apiVersion"].as_str().unwrap();
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let (kind, metadata) = (object["kind"].as_str().unwrap(), &object["metadata"]);
    let resource = format!("{}s", kind.to_lowercase());
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "7d6a3f0e-52f1-4b0c-9a53-1f6f6f1d2c11",
            "kind": { "group": group, "version": version, "kind": kind },
            "resource": { "group": group, "version": version, "resource": resource },
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "operation": if old.is_some() { "UPDATE" } else { "CREATE" },
            "userInfo": { "username": "alice" },
            "object": object,
            "oldObject": old,
            "dryRun": true,
        },
    })
}
