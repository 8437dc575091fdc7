//! The manifests in a real API server.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use k8s_openapi::ByteString;
use serde_json::{Value, json};

use crate::chart;
use crate::harness::{self, ControlPlane, Guard, GuardOptions, Needs, Output};
use crate::removed::{run_for_once, until_nothing_is_left};
use crate::rendered::{built, helm, objects, printed, templated};
use crate::repository;

/// The time limit for waits; no step takes this long.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// The foreign kinds that the manifests use; only their names are defined here.
const DEFINITIONS: [(&str, &str, &str); 4] = [
    ("cert-manager.io", "v1", "Certificate"),
    ("cert-manager.io", "v1", "Issuer"),
    ("monitoring.coreos.com", "v1", "PodMonitor"),
    ("monitoring.coreos.com", "v1", "PrometheusRule"),
];

/// A kubeconfig with only the rights of the guard's ServiceAccount, in its namespace.
pub(crate) fn kubeconfig(plane: &ControlPlane) -> PathBuf {
    let token = plane.run("create token multi-attach-guard -n=multi-attach-guard").stdout;
    let mut config: Value =
        serde_json::from_str(&plane.run("config view --raw -o=json").stdout).unwrap();
    config["users"][0]["user"] = json!({"token": token.trim()});
    config["contexts"][0]["context"]["namespace"] = json!("multi-attach-guard");
    plane.write_file("kubeconfig-of-the-guard", &config.to_string())
}

/// Options with those rights and these arguments.
pub(crate) fn options(plane: &ControlPlane, arguments: &[&str]) -> GuardOptions {
    let rights = kubeconfig(plane);
    GuardOptions::default().with(arguments).kubeconfig(&rights)
}

/// A server that talks to the API server with only the rights of its ServiceAccount, and with the
/// arguments of the Deployment except addresses and files.
pub(crate) fn guard(plane: &ControlPlane) -> Guard {
    grant(plane, "bare-pods");
    plane.guard("deployed", &options(plane, &["--log-format=json"]))
}

/// Registers the webhooks of an overlay with only the address of the server changed, and waits
/// until they are in force.
pub(crate) fn register(plane: &ControlPlane, guard: &Guard, overlay: &str) {
    register_changed(plane, overlay, |_, webhook| {
        webhook["clientConfig"] = client_config(plane, guard, webhook);
    });
    until_asked(plane);
}

/// The client configuration of a webhook in the manifests, with the address of this server.
pub(crate) fn client_config(plane: &ControlPlane, guard: &Guard, webhook: &Value) -> Value {
    let service = &webhook["clientConfig"]["service"];
    assert_eq!(service["name"], "multi-attach-guard");
    assert_eq!(service["namespace"], "multi-attach-guard");
    let path = service["path"].as_str().unwrap();
    json!({
        "url": format!("{}{path}", guard.url),
        "caBundle": ByteString(plane.pki.authority_pem().into_bytes()),
    })
}

/// Registers the webhooks of an overlay after `change` has edited each; it is given the kind of the
/// configuration.
pub(crate) fn register_changed(
    plane: &ControlPlane,
    overlay: &str,
    change: impl Fn(&str, &mut Value),
) {
    let programs = harness::require_programs(Needs::ApiServer).unwrap();
    for ((kind, _), mut object) in objects(&built(programs, overlay)) {
        let Some(webhooks) = object["webhooks"].as_array_mut() else {
            continue;
        };
        for webhook in webhooks {
            change(&kind, webhook);
        }
        let apply = ["apply", "--validate=strict", "-f", "-"];
        plane.kubectl(&apply, Some(&object.to_string())).success();
    }
}

/// Waits until both webhooks answer the API server.
pub(crate) fn until_asked(plane: &ControlPlane) {
    // The API server reads webhooks through a cache.
    harness::until("the webhooks to be asked", DEADLINE, || {
        let said = smoke_test(plane);
        // The mutating webhook removes the leftover; the validating one reports the missing claim.
        let both = said.stderr.contains("leftover-rolling-update")
            && said.stderr.contains("unresolved-claim");
        harness::seen(both && said.status == 0, said)
    });
}

/// The test that the install page tells everybody to run.
fn smoke_test(plane: &ControlPlane) -> Output {
    let file = repository("examples/smoke-test.yaml");
    let apply = ["apply", "--dry-run=server", "-f", file.to_str().unwrap()];
    plane.kubectl(&apply, None)
}

/// The files with all rights that the guard can have.
const RIGHTS: [&str; 3] =
    ["base/rbac.yaml", "base/certificates.yaml", "components/fencing/fencing-rbac.yaml"];

fn apply(plane: &ControlPlane, name: &str) {
    let file = repository("manifests").join(name);
    plane.run(&format!("apply --validate=strict -f {}", file.display()));
}

/// Makes the namespace of the guard and its account, with its rights.
pub(crate) fn account(plane: &ControlPlane) {
    for name in ["base/namespace.yaml"].into_iter().chain(RIGHTS) {
        apply(plane, name);
    }
}

/// Grants the rights of a component, which are in a file with its name.
pub(crate) fn grant(plane: &ControlPlane, component: &str) {
    apply(plane, &format!("components/{component}/{component}.yaml"));
}

/// The server becomes ready, so its rights suffice. The test shows that none is superfluous, and
/// that none allows it to write the objects that it reads.
#[test]
fn rights_are_those_the_view_needs() {
    let plane = harness::or_skip!(harness::require_control_plane(Needs::ApiServer));
    account(plane);
    let guard = guard(plane);
    // The resources by the granted verbs.
    let mut granted: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for role in ["multi-attach-guard", "multi-attach-guard-bare-pods"] {
        let role = plane.get(&["clusterrole", role]);
        for rule in role["rules"].as_array().unwrap() {
            let resources = rule["resources"].as_array().unwrap().iter();
            let verbs = rule["verbs"].to_string();
            granted
                .entry(verbs)
                .or_default()
                .extend(resources.map(|resource| resource.as_str().unwrap().to_owned()));
        }
    }
    let metrics = guard.metrics(plane);
    let followed: BTreeSet<String> = metrics
        .lines()
        .filter_map(|line| line.strip_prefix("multi_attach_guard_view_synced{resource=\""))
        .filter_map(|line| Some(line.strip_suffix("\"} 1")?.to_owned()))
        .collect();
    // Revisions are listed only before an update would be denied; they are not watched.
    let listed = BTreeSet::from(["controllerrevisions".to_owned()]);
    let expected = BTreeMap::from([
        (r#"["get","list","watch"]"#.to_owned(), followed),
        (r#"["list"]"#.to_owned(), listed),
    ]);
    assert_eq!(granted, expected);
    assert_eq!(guard.count(plane, "multi_attach_guard_view_connected "), 1);
}

/// Defines the foreign kinds.
pub(crate) fn define(plane: &ControlPlane) {
    for (group, version, kind) in DEFINITIONS {
        plane.define(group, version, kind);
    }
}

/// Needs its own control plane, because the installation is cluster-wide.
#[test]
fn overlays_and_chart_are_taken_installed_and_removed() {
    let plane = harness::or_skip!(harness::start_control_plane(Needs::ApiServer));
    let programs = harness::require_programs(Needs::ApiServer).unwrap();
    define(&plane);
    account(&plane);
    for (overlay, values) in chart::values().overlays {
        let apply = ["apply", "--dry-run=server", "--validate=strict", "-f", "-"];
        for rendered in [built(programs, &overlay), templated(programs, &values)] {
            let taken = plane.kubectl(&apply, Some(&rendered)).success();
            assert_eq!(taken.stderr, "", "{overlay}");
        }
    }

    // Helm cannot take over objects that kubectl has made.
    for name in RIGHTS {
        let file = repository("manifests").join(name);
        plane.run(&format!("delete -f {}", file.display()));
    }
    let chart = repository("manifests/chart");
    let command = |arguments: &[&str]| {
        let mut helm = helm(programs);
        helm.args(arguments).arg("--namespace=multi-attach-guard");
        helm.arg("--kubeconfig").arg(plane.kubeconfig());
        helm
    };
    let run = |arguments: &[&str]| printed(&mut command(arguments));
    let (name, chart) = ("multi-attach-guard", chart.to_str().unwrap());
    let all = "--set=monitoring.enabled=true,fencing.enabled=true,barePods=true,\
               events=true,admissionPolicies.enabled=true,admissionPolicies.repair=true";
    run(&["install", name, chart, all, "--dry-run=server"]);
    let notes = run(&["install", name, chart, all]);
    assert!(notes.contains("examples/smoke-test.yaml"), "{notes}");
    run_for_once(&plane);
    run(&["upgrade", name, chart, "--set=failurePolicy=Fail"]);
    let stored = || plane.get(&["validatingwebhookconfiguration", name]);
    assert_eq!(stored()["webhooks"][0]["failurePolicy"], "Fail");

    // The CA that the guard has written stays the guard's, unless Helm is told to replace it.
    let change =
        json!([{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": "Zm9v"}])
            .to_string();
    let kind = "validatingwebhookconfiguration";
    let manager = "--field-manager=multi-attach-guard";
    let patch = ["patch", kind, name, "--type=json", manager, "-p", &change];
    plane.kubectl(&patch, None).success();
    let files = "--set=certificates.source=files,certificates.caBundle=YmFy";
    let switched = command(&["upgrade", name, chart, files]).output().unwrap();
    let said = String::from_utf8_lossy(&switched.stderr);
    assert!(said.contains("conflict"), "{switched:?}");
    run(&["upgrade", name, chart, files, "--force-conflicts"]);
    assert_eq!(stored()["webhooks"][0]["clientConfig"]["caBundle"], "YmFy");
    run(&["uninstall", name]);
    plane.run(&format!("delete namespace {name} --wait=false"));
    until_nothing_is_left(&plane);
}
