//! A control plane with a volume that attaches to one node, and the requests about it: half of them
//! must be denied.

use std::sync::OnceLock;
use std::time::Duration;

use axum::http::{Method, Request};
use serde_json::{Value, json};

use crate::harness::shorthand::{list, object};
use crate::harness::{self, ControlPlane, Guard, GuardOptions, Needs, asking, webhooks};
use crate::load::{Came, Load};

/// The maximal number of reviews a second that are sent directly to a guard.
pub(crate) const STRAIGHT: u32 = 80;

/// Options for a guard whose API server runs, but may be slow on a busy machine: a denial stands if
/// the API server does not confirm it in time.
pub(crate) fn sure() -> GuardOptions {
    GuardOptions::default().with(&["--stale=deny"])
}

/// The timeout of a review, both in the request and for the client.
const TIMEOUT: Duration = Duration::from_secs(6);

/// The environment that all rows share.
pub(crate) struct FaultTest {
    pub(crate) plane: &'static ControlPlane,
    /// The namespace of the Deployments in the requests.
    pub(crate) namespace: String,
}

/// A class of volumes that attach to one of two nodes, a claim that is not in use, and one that a
/// Deployment uses.
const CLUSTER: &str = "
- {kind: Node, name: node-a, labels: {kubernetes.io/hostname: node-a}}
- {kind: Node, name: node-b, labels: {kubernetes.io/hostname: node-b}}
- {kind: CSIDriver, name: disk.csi.example.com, with: {spec: {attachRequired: true}}}
- {kind: StorageClass, name: disk, with: {provisioner: disk.csi.example.com}}
- {kind: PersistentVolumeClaim, name: data}
- {kind: PersistentVolumeClaim, name: kept}
- {kind: Deployment, name: kept, uses: [kept], strategy: Recreate}
";

/// The environment, made for the first row that needs it; `None` without a control plane.
pub(crate) fn shared() -> Option<&'static FaultTest> {
    static SHARED: OnceLock<Option<FaultTest>> = OnceLock::new();
    let make = || harness::require_control_plane(Needs::ApiServer).map(FaultTest::new);
    SHARED.get_or_init(make).as_ref()
}

impl FaultTest {
    fn new(plane: &'static ControlPlane) -> Self {
        let namespace = plane.namespace("faults");
        plane.apply(&namespace, &list(CLUSTER));
        Self { plane, namespace }
    }

    /// Sends the API server dry-run requests to create and to update Deployments; every second one
    /// must be denied.
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
        let namespace = &self.namespace;
        let path = format!("/apis/apps/v1/namespaces/{namespace}/deployments{one}?dryRun=All");
        let request = asking::request(method, &path, &deployment(name, claim, strategy));
        let what = format!("{name} with {strategy}");
        self.expect(request, strategy == "RollingUpdate", &what).await
    }

    async fn expect(&self, request: Request<Vec<u8>>, denial: bool, what: &str) -> Came {
        let is_denied = match self.plane.client().request_text(request).await {
            Ok(_) => false,
            Err(kube::Error::Api(status)) if status.message.contains("denied the request") => true,
            Err(error) => return Came::Failed(error.to_string()),
        };
        if is_denied == denial {
            return Came::Right;
        }
        let said = if is_denied { "denied" } else { "let through" };
        Came::Wrong(format!("{what} was {said}."))
    }
}

/// A guard's answer to a review.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// Denied.
    No,
    /// Allowed, because the API server did not confirm the denial.
    Unconfirmed,
    /// Allowed.
    Yes,
}

impl FaultTest {
    /// Sends a guard a review of a new Deployment with this claim.
    pub(crate) async fn review(
        &self,
        client: &reqwest::Client,
        guard: &str,
        (claim, strategy): (&str, &str),
    ) -> Result<Said, String> {
        let mut object = deployment("web", claim, strategy);
        object["metadata"]["namespace"] = json!(self.namespace);
        let answer = client
            .post(format!("{guard}/validate?timeout={}s", TIMEOUT.as_secs()))
            .timeout(TIMEOUT)
            .json(&webhooks::review(&object, None))
            .send()
            .await
            .map_err(|error| format!("{error:?}"))?;
        let status = answer.status();
        let text = answer.text().await.map_err(|error| format!("{error:?}"))?;
        if !status.is_success() {
            return Err(format!("{status}: {text}"));
        }
        let reviewed: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        let response = &reviewed["response"];
        Ok(match response["allowed"].as_bool() {
            Some(false) => Said::No,
            Some(true) if response["warnings"].to_string().contains("Not denied") => {
                Said::Unconfirmed
            }
            Some(true) => Said::Yes,
            None => return Err(text),
        })
    }

    /// Sends a review of a Deployment. Every second one must be denied, and every denial can be
    /// confirmed.
    pub(crate) async fn ask_the_guard(
        &self,
        client: &reqwest::Client,
        guard: &str,
        claim: &str,
        number: usize,
    ) -> Came {
        let (strategy, expected) = question(number);
        match self.review(client, guard, (claim, strategy)).await {
            Ok(said) if said == expected => Came::Right,
            Ok(said) => Came::Wrong(format!("{said:?} to {strategy} with the claim {claim}.")),
            Err(error) => Came::Failed(error),
        }
    }
}

impl FaultTest {
    /// Starts to send reviews directly to a guard; every second pair of requests uses new
    /// connections.
    pub(crate) fn load(&'static self, guard: &Guard) -> Load {
        let newcomer =
            self.plane.pki.http_client_builder().pool_max_idle_per_host(0).build().unwrap();
        let clients = [self.plane.http().clone(), newcomer];
        let url = guard.url.clone();
        let runtime = self.plane.runtime().handle();
        Load::start(runtime, STRAIGHT, move |number| {
            // Each client sends both kinds of question.
            let (url, client) = (url.clone(), clients[number / 2 % 2].clone());
            async move { self.ask_the_guard(&client, &url, "data", number).await }
        })
    }
}

/// The strategy of a question, and the expected answer.
pub(crate) fn question(number: usize) -> (&'static str, Said) {
    [("Recreate", Said::Yes), ("RollingUpdate", Said::No)][number % 2]
}

/// A Deployment with one claim.
pub(crate) fn deployment(name: &str, claim: &str, strategy: &str) -> Value {
    object(json!({ "kind": "Deployment", "name": name, "uses": [claim], "strategy": strategy }))
}
