//! A control plane with a volume that attaches to one node, and the questions that are
//! asked about it: half of them deserve a denial.

use std::sync::OnceLock;

use axum::http::{Method, Request};
use serde_json::{Value, json};

use crate::harness::{self, ControlPlane, Needs};
use crate::load::Came;

/// What all rows share.
pub(crate) struct World {
    pub(crate) plane: &'static ControlPlane,
    /// Whose Deployments are asked about.
    pub(crate) namespace: String,
}

/// The claim that is in nobody's use, and the one that the Deployment `kept` uses.
const CLAIMS: [&str; 2] = ["data", "kept"];

/// Made when the first row asks; `None` where there is no control plane.
pub(crate) fn shared() -> Option<&'static World> {
    static WORLD: OnceLock<Option<World>> = OnceLock::new();
    let make = || harness::require_control_plane(Needs::ApiServer).map(World::new);
    WORLD.get_or_init(make).as_ref()
}

impl World {
    fn new(plane: &'static ControlPlane) -> Self {
        let namespace = plane.namespace("faults");
        plane.apply(
            &namespace,
            "
{apiVersion: v1, kind: Node, metadata: {name: node-a, labels: {kubernetes.io/hostname: node-a}}}
---
{apiVersion: v1, kind: Node, metadata: {name: node-b, labels: {kubernetes.io/hostname: node-b}}}
---
{apiVersion: storage.k8s.io/v1, kind: CSIDriver, metadata: {name: disk.csi.example.com}, spec: {attachRequired: true}}
---
{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: disk}, provisioner: disk.csi.example.com}
",
        );
        for claim in CLAIMS {
            let object = json!({
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": { "name": claim },
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "storageClassName": "disk",
                    "resources": { "requests": { "storage": "1Gi" } },
                },
            });
            plane.apply(&namespace, &object.to_string());
        }
        plane.apply(
            &namespace,
            &deployment("kept", "kept", "Recreate").to_string(),
        );
        Self { plane, namespace }
    }

    /// Asks the API server, without storing anything, to create and to update
    /// Deployments; every second is to be denied.
    pub(crate) async fn ask_the_api_server(&self, number: usize) -> Came {
        let strategy = ["Recreate", "RollingUpdate"][number % 2];
        let (method, name, claim) = match number / 2 % 2 {
            0 => (Method::POST, "web", "data"),
            _ => (Method::PUT, "kept", "kept"),
        };
        let one = match method {
            Method::PUT => "/kept",
            _ => "",
        };
        let request = Request::builder()
            .method(method)
            .uri(format!(
                "/apis/apps/v1/namespaces/{}/deployments{one}?dryRun=All",
                self.namespace
            ))
            .header("content-type", "application/json")
            .body(deployment(name, claim, strategy).to_string().into_bytes())
            .unwrap();
        let is_denied = match self.plane.client().request_text(request).await {
            Ok(_) => false,
            Err(kube::Error::Api(status)) if status.message.contains("denied the request") => true,
            Err(error) => return Came::Failed(error.to_string()),
        };
        match is_denied == (strategy == "RollingUpdate") {
            true => Came::Right,
            false => Came::Wrong(format!(
                "{name} with {strategy} was {}.",
                if is_denied { "denied" } else { "let through" }
            )),
        }
    }
}

/// A Deployment with one claim.
pub(crate) fn deployment(name: &str, claim: &str, strategy: &str) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": name },
        "spec": {
            "strategy": { "type": strategy },
            "selector": { "matchLabels": { "app": name } },
            "template": {
                "metadata": { "labels": { "app": name } },
                "spec": {
                    "containers": [{ "name": "app", "image": "example.com/app" }],
                    "volumes": [{ "name": "data", "persistentVolumeClaim": { "claimName": claim } }],
                },
            },
        },
    })
}
