//! Argo CD and Flux deliver the guard itself, as docs/install.md says. The manifests are not
//! changed: a proxy stands in for the network of Services, in front of the guard.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use axum::http::Method;
use serde_json::{Value, json};

use crate::harness::shorthand::object;
use crate::harness::{self, ControlPlane, GuardOptions, Needs, Options, Output, seen, until};
use crate::install;
use crate::services::{egress, lead_to};
use crate::ways::ran;

/// The guard's name, and that of its namespace.
const NAME: &str = "multi-attach-guard";

const KINDS: [&str; 2] = ["mutatingwebhookconfiguration", "validatingwebhookconfiguration"];

const HELM: &[&str] = &["helm"];

const DEADLINE: Duration = Duration::from_secs(60);

/// The tools, and what each delivers. With the overlay `strict`, objects are refused while the
/// guard is away. Flux's helm-controller is covered by Helm, which gets the base as the chart.
/// `strict` is last, because the API server may still know an entry that was just removed.
const TOOLS: [(&[&str], &str); 4] = [
    (HELM, "base"),
    (&["argo-cd"], "base"),
    (&["argo-cd", "--server-side"], "overlays/strict"),
    (&["flux"], "overlays/strict"),
];

/// Needs its own control plane, because the installation is cluster-wide.
#[test]
fn argo_cd_and_flux_deliver_the_guard() {
    let appliers = harness::or_skip!(harness::built(&["build-appliers"], "Flux and Argo CD"));
    let folder = tempfile::tempdir().unwrap();
    let (proxy, selection) = egress(folder.path());
    let flag = format!("--egress-selector-config-file={}", selection.display());
    let options = Options { api_server_flags: vec![flag], ..Options::of(Needs::ApiServer) };
    let plane = harness::or_skip!(harness::start_control_plane_with(Needs::ApiServer, &options));
    let guard = Arc::default();
    lead_to(&guard, proxy, &plane);
    let claim = json!({ "kind": "PersistentVolumeClaim", "with": { "spec": {
        "accessModes": ["ReadWriteOncePod"],
    }}});
    plane.apply("default", &object(claim).to_string());

    for (tool, source) in TOOLS {
        let mut kustomize = Command::new(plane.program("kustomize"));
        kustomize.arg("build").arg(install::file(source));
        let built = ran(kustomize).success().stdout;
        let manifests = plane.write_file("delivered.yaml", &built);
        // Delivers once more; afterwards the tool sees no difference.
        let deliver = |spec: Option<&Value>| {
            if tool == HELM {
                ran(helm(&plane, folder.path())).success();
                return;
            }
            let mut command = Command::new(appliers.join("appliers"));
            command.env("KUBECONFIG", plane.kubeconfig()).args(tool);
            if let Some(spec) = spec {
                command.arg("--spec").arg(plane.write_file("spec.json", &spec.to_string()));
            }
            command.arg(NAME).stdin(File::open(&manifests).unwrap());
            assert_eq!(ran(command).success().stdout, "in sync\n", "{tool:?} {spec:?}");
        };

        // The guard's own objects never wait for the guard. Others do with `strict`, so the guard
        // is delivered first.
        deliver(None);
        if source == "base" {
            create(&plane).success();
        } else {
            until_refused(&plane, "failed calling webhook");
        }
        let (_program, url, _) = plane.serve("delivered", &delivered(&plane));
        *guard.lock().unwrap() = url.trim_start_matches("https://").to_owned();
        let written = until_filled(&plane);
        until_refused(&plane, "denied the request");

        deliver(None);
        assert_eq!(configurations(&plane), written, "{tool:?} leaves foreign fields alone");
        if tool == ["argo-cd"] {
            let spec = printed();
            deliver(Some(&spec));
            assert_eq!(configurations(&plane), written, "{spec}");
            // Without the last option, the sync removes the field, and the guard writes it again.
            let mut careless = spec;
            let chosen = careless["syncPolicy"]["syncOptions"].as_array_mut().unwrap();
            chosen.retain(|option| option != "RespectIgnoreDifferences=true");
            deliver(Some(&careless));
            let again = until_filled(&plane);
            for (before, now) in written.iter().zip(&again) {
                assert_ne!(before["metadata"]["generation"], now["metadata"]["generation"]);
                assert_eq!(before["webhooks"], now["webhooks"]);
            }
        }
        until_refused(&plane, "denied the request");
        remove(&plane, &built);
    }
}

/// The command with which Helm installs and upgrades the chart.
fn helm(plane: &ControlPlane, folder: &Path) -> Command {
    let mut helm = Command::new(plane.program("helm"));
    for variable in ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"] {
        helm.env(variable, folder);
    }
    helm.args(["upgrade", "--install", NAME]).arg(install::file("chart"));
    helm.args(["--create-namespace", "--namespace", NAME, "--kubeconfig"]).arg(plane.kubeconfig());
    helm
}

/// The part of an Application that the page prints.
fn printed() -> Value {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/install.md");
    let page = fs::read_to_string(page).unwrap();
    let (_, section) = page.split_once("\n## With Argo CD or Flux\n").unwrap();
    let block = section.split("  ```").nth(1).unwrap();
    serde_saphyr::from_str(block.strip_prefix("yaml\n").unwrap()).unwrap()
}

/// The options of the delivered guard: its arguments, and the rights of its account.
fn delivered(plane: &ControlPlane) -> GuardOptions {
    let deployment = plane.get(&["deployment", NAME, "-n", NAME]);
    let arguments = &deployment["spec"]["template"]["spec"]["containers"][0]["args"];
    let arguments = arguments.as_array().unwrap().iter().map(|argument| argument.as_str().unwrap());
    let is_elsewhere = |argument: &str| argument == "serve" || argument.starts_with("--config=");
    let arguments: Vec<&str> = arguments.filter(|argument| !is_elsewhere(argument)).collect();
    let token = plane.run(&format!("create token {NAME} -n {NAME}")).stdout;
    let config = fs::read(plane.kubeconfig()).unwrap();
    let mut config: Value = serde_json::from_slice(&config).unwrap();
    config["users"][0]["user"] = json!({ "token": token.trim() });
    config["contexts"][0]["context"]["namespace"] = json!(NAME);
    let kubeconfig = plane.write_file("delivered.kubeconfig", &config.to_string());
    GuardOptions::default().with(&arguments).kubeconfig(&kubeconfig)
}

/// Both configurations; the generation tells whether one has changed in the meantime.
fn configurations(plane: &ControlPlane) -> [Value; 2] {
    KINDS.map(|kind| {
        let found = plane.get(&[kind, NAME]);
        let generation = &found["metadata"]["generation"];
        json!({ "metadata": { "generation": generation }, "webhooks": found["webhooks"] })
    })
}

/// Waits until the guard has written its CA into every entry.
fn until_filled(plane: &ControlPlane) -> [Value; 2] {
    let has_ca = |webhook: &Value| webhook["clientConfig"]["caBundle"].is_string();
    until("the caBundles", DEADLINE, || {
        let now = configurations(plane);
        let mut webhooks = now.iter().flat_map(|found| found["webhooks"].as_array().unwrap());
        let all = webhooks.all(has_ca);
        seen(all, now)
    })
}

/// Creates, as a dry run, a Deployment whose rollouts cannot end.
fn create(plane: &ControlPlane) -> Output {
    let deployment = json!({ "kind": "Deployment", "replicas": 1, "uses": ["data"] });
    let create = ["create", "--dry-run=server", "-f", "-"];
    plane.kubectl(&create, Some(&object(deployment).to_string()))
}

fn until_refused(plane: &ControlPlane, why: &str) {
    // The API server reads configurations and Services through caches.
    until("the Deployment to be refused", DEADLINE, || {
        let said = create(plane);
        seen(said.stderr.contains(why), said)
    });
}

/// Removes what was delivered. No controller empties the namespace here.
fn remove(plane: &ControlPlane, built: &str) {
    plane.kubectl(&["delete", "--wait=false", "-f", "-"], Some(built)).success();
    let path = format!("/api/v1/namespaces/{NAME}/finalize");
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": NAME }, "spec": {},
    });
    plane.send(Method::PUT, &path, &namespace).unwrap();
}
