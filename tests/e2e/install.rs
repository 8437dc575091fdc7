//! Installs the files of `manifests/`: the webhooks, so that cases are reviewed as in a real
//! cluster, and the permissions, so that the guard has no more of them than there.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::harness::output::program;
use crate::harness::webhooks::Registration;
use crate::harness::{ControlPlane, Guard, GuardOptions};

/// A user whose requests the API server does not send to the guard. Objects of this user are like
/// objects from before the guard.
pub(crate) const UNGUARDED: &str = "before-the-guard";

/// A user whose requests the API server does not send to the guard, but does check with its own
/// policies, as if the guard were down.
pub(crate) const AWAY: &str = "while-the-guard-is-away";

/// A user whose requests only the guard judges, without policies in the API server.
pub(crate) const ALONE: &str = "without-policies";

/// A user whose requests only the standalone policy judges, as in a cluster without the guard.
pub(crate) const STANDALONE: &str = "with-the-standalone-policy";

/// The account of `manifests/base/rbac.yaml`, and its groups in Kubernetes.
const ACCOUNT: &str = "system:serviceaccount:multi-attach-guard:multi-attach-guard";
const GROUPS: [&str; 3] =
    ["system:serviceaccounts", "system:serviceaccounts:multi-attach-guard", "system:authenticated"];

/// A file of `manifests/`.
pub(crate) fn file(name: &str) -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/manifests")).join(name)
}

/// The webhooks in the objects of this kind in a file of `manifests/`.
fn entries(name: &str, kind: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(file(name)).unwrap();
    let documents: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
    documents
        .into_iter()
        .filter(|document| document["kind"] == kind)
        .flat_map(|mut configuration| {
            serde_json::from_value::<Vec<Value>>(configuration["webhooks"].take()).unwrap()
        })
        .collect()
}

/// The webhooks of this kind in the base and in the component `fencing`, with two changes: requests
/// of [`UNGUARDED`] do not reach the guard, and if a webhook cannot be called the request fails, so
/// that a missing answer is never taken for approval.
fn webhooks(kind: &str) -> Vec<Value> {
    let mut webhooks = entries("base/webhooks.yaml", kind);
    assert!(!webhooks.is_empty(), "manifests/base/webhooks.yaml has no {kind}");
    webhooks.extend(entries("components/fencing/fencing-webhook.yaml", kind));
    for webhook in &mut webhooks {
        webhook["failurePolicy"] = json!("Fail");
        webhook["timeoutSeconds"] = json!(30);
        let condition = json!({
            "name": "guarded",
            "expression": format!(
                "!(request.userInfo.username in ['{UNGUARDED}', '{AWAY}', '{STANDALONE}'])"
            ),
        });
        add_condition(webhook, condition);
    }
    webhooks
}

/// Adds a match condition to a webhook or a policy.
pub(crate) fn add_condition(asked: &mut Value, condition: Value) {
    match asked["matchConditions"].as_array_mut() {
        Some(conditions) => conditions.push(condition),
        None => asked["matchConditions"] = json!([condition]),
    }
}

/// Puts the policies of the component `admission-policies` into the API server, with one change:
/// they do not apply to [`UNGUARDED`], [`ALONE`] and [`STANDALONE`].
pub(crate) fn policies(plane: &ControlPlane) {
    let component = file("components/admission-policies");
    for name in ["crd.yaml", "policies.yaml"] {
        let text = std::fs::read_to_string(component.join(name)).unwrap();
        for mut object in serde_saphyr::from_multiple::<Value>(&text).unwrap() {
            if object["kind"] == "ValidatingAdmissionPolicy" {
                let condition = json!({
                    "name": "not-before-the-guard",
                    "expression": format!(
                        "!(request.userInfo.username in ['{UNGUARDED}', '{ALONE}', '{STANDALONE}'])"
                    ),
                });
                add_condition(&mut object["spec"], condition);
            }
            plane.kubectl(&["apply", "-f", "-"], Some(&object.to_string())).success();
        }
    }
}

/// Puts the standalone policy into the API server, with one change: it applies to [`STANDALONE`]
/// alone, although the guard is installed.
pub(crate) fn standalone(plane: &ControlPlane) {
    let printed = program(&["policies", "--standalone", "--deny"]).output().unwrap();
    let text = String::from_utf8(printed.stdout).unwrap();
    for mut object in serde_saphyr::from_multiple::<Value>(&text).unwrap() {
        if object["kind"] == "ValidatingAdmissionPolicy" {
            let expression = format!("request.userInfo.username == '{STANDALONE}'");
            for condition in object["spec"]["matchConditions"].as_array_mut().unwrap() {
                if condition["name"] == "the-guard-is-not-installed" {
                    condition["expression"] = json!(expression);
                }
            }
        }
        plane.kubectl(&["apply", "-f", "-"], Some(&object.to_string())).success();
    }
}

/// Creates the guard's namespace and account, and a kubeconfig for the account next to the
/// administrator's.
pub(crate) fn account(plane: &ControlPlane) -> PathBuf {
    for name in [
        "base/namespace.yaml",
        "base/rbac.yaml",
        "components/bare-pods/bare-pods.yaml",
        "components/fencing/fencing-rbac.yaml",
        "components/admission-policies/admission-policies-rbac.yaml",
    ] {
        let file = file(name);
        plane.kubectl(&["apply", "-f", &file.display().to_string()], None).success();
    }
    plane.kubeconfig_as(ACCOUNT, &GROUPS)
}

/// Starts a guard with that account and policy, and registers the webhooks after `change`.
pub(crate) fn guard(
    plane: &'static ControlPlane,
    name: &str,
    policy: &str,
    arguments: &[&str],
    change: impl Fn(&mut Value),
) -> (Guard, Registration<'static>) {
    let options = GuardOptions::default()
        .with(arguments)
        .policy(plane, name, policy)
        .kubeconfig(&account(plane));
    let guard = plane.guard(name, &options);
    let kinds = ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"];
    let [mutating, validating] = kinds.map(|kind| {
        let mut webhooks = webhooks(kind);
        webhooks.iter_mut().for_each(&change);
        json!({ "webhooks": webhooks })
    });
    let registration = plane.register_configurations(name, &guard.url, mutating, validating);
    (guard, registration)
}
