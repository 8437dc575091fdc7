//! A control plane with a volume that attaches to one node, and the questions that are
//! asked about it: half of them deserve a denial.

use std::sync::OnceLock;
use std::time::Duration;

use axum::http::{Method, Request};
use serde_json::{Value, json};

use crate::harness::shorthand::{list, object};
use crate::harness::{self, ControlPlane, Guard, GuardOptions, Needs, asking, webhooks};
use crate::load::{Came, Load};

/// Reviews a second, at most, that go straight to a guard.
pub(crate) const STRAIGHT: u32 = 80;

/// For guards whose API server is there, but may be slow on a busy machine: a denial that
/// it does not confirm in time stands.
pub(crate) fn sure() -> GuardOptions {
    GuardOptions::default().with(&["--stale=deny"])
}

/// How long such a review may take, as the API server tells the guard, and waits itself.
const TIMEOUT: Duration = Duration::from_secs(6);

/// What all rows share.
pub(crate) struct World {
    pub(crate) plane: &'static ControlPlane,
    /// Whose Deployments are asked about.
    pub(crate) namespace: String,
}

/// A class of volumes that attach to one of two nodes, a claim that is in nobody's use, and one
/// that a Deployment uses.
const CLUSTER: &str = "
- {kind: Node, name: node-a, labels: {kubernetes.io/hostname: node-a}}
- {kind: Node, name: node-b, labels: {kubernetes.io/hostname: node-b}}
- {kind: CSIDriver, name: disk.csi.example.com, with: {spec: {attachRequired: true}}}
- {kind: StorageClass, name: disk, with: {provisioner: disk.csi.example.com}}
- {kind: PersistentVolumeClaim, name: data}
- {kind: PersistentVolumeClaim, name: kept}
- {kind: Deployment, name: kept, uses: [kept], strategy: Recreate}
";

/// Made when the first row asks; `None` where there is no control plane.
pub(crate) fn shared() -> Option<&'static World> {
    static WORLD: OnceLock<Option<World>> = OnceLock::new();
    let make = || harness::require_control_plane(Needs::ApiServer).map(World::new);
    WORLD.get_or_init(make).as_ref()
}

impl World {
    fn new(plane: &'static ControlPlane) -> Self {
        let namespace = plane.namespace("faults");
        plane.apply(&namespace, &list(CLUSTER));
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
        let namespace = &self.namespace;
        let path = format!("/apis/apps/v1/namespaces/{namespace}/deployments{one}?dryRun=All");
        let request = asking::request(method, &path, &deployment(name, claim, strategy));
        let what = format!("{name} with {strategy}");
        self.expect(request, strategy == "RollingUpdate", &what)
            .await
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

/// What a guard said to a review.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// Denied.
    No,
    /// Not denied, because the API server did not confirm it.
    Unconfirmed,
    /// Let through.
    Yes,
}

impl World {
    /// Sends a review of a new Deployment with that claim to a guard.
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
        let answer: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        let response = &answer["response"];
        Ok(match response["allowed"].as_bool() {
            Some(false) => Said::No,
            Some(true) if response["warnings"].to_string().contains("Not denied") => {
                Said::Unconfirmed
            }
            Some(true) => Said::Yes,
            None => return Err(text),
        })
    }

    /// The same, every second to be denied, and each by facts that can be confirmed.
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

impl World {
    /// Begins to send reviews straight to a guard, every second pair of requests on connections
    /// of their own.
    pub(crate) fn load(&'static self, guard: &Guard) -> Load {
        let newcomer = self.plane.pki.http_client_builder();
        let newcomer = newcomer.pool_max_idle_per_host(0).build().unwrap();
        let clients = [self.plane.http().clone(), newcomer];
        let url = guard.url.clone();
        let runtime = self.plane.runtime().handle();
        Load::start(runtime, STRAIGHT, move |number| {
            // Either client asks both questions.
            let (url, client) = (url.clone(), clients[number / 2 % 2].clone());
            async move { self.ask_the_guard(&client, &url, "data", number).await }
        })
    }
}

/// The strategy that is asked about, and what is to be said to it.
pub(crate) fn question(number: usize) -> (&'static str, Said) {
    [("Recreate", Said::Yes), ("RollingUpdate", Said::No)][number % 2]
}

/// A Deployment with one claim.
pub(crate) fn deployment(name: &str, claim: &str, strategy: &str) -> Value {
    object(json!({ "kind": "Deployment", "name": name, "uses": [claim], "strategy": strategy }))
}
