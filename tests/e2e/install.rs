//! What `manifests/` gives a cluster, taken from its files: the webhooks, so that cases
//! are asked about as in a real cluster, and the rights, so that the guard has no more
//! here than there.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::harness::webhooks::Registration;
use crate::harness::{ControlPlane, Guard, GuardOptions};

/// Someone whose requests the API server does not show to the guard: what they make
/// is as if it had been there before the guard.
pub(crate) const UNGUARDED: &str = "before-the-guard";

/// Someone whose requests the API server does not show to the guard either, but to its own
/// policies: what they do is done while the guard is away.
pub(crate) const AWAY: &str = "while-the-guard-is-away";

/// Who is judged by the guard alone, without policies in the API server.
pub(crate) const ALONE: &str = "without-policies";

/// The account of `manifests/base/rbac.yaml`, and the groups Kubernetes puts it in.
const ACCOUNT: &str = "system:serviceaccount:multi-attach-guard:multi-attach-guard";
const GROUPS: [&str; 3] = [
    "system:serviceaccounts",
    "system:serviceaccounts:multi-attach-guard",
    "system:authenticated",
];

/// A file of `manifests/`.
pub(crate) fn file(name: &str) -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/manifests")).join(name)
}

/// The webhooks of that kind in a file of `manifests/`.
fn entries(name: &str, kind: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(file(name)).unwrap();
    let documents: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
    let of_kind = documents.into_iter().filter(|it| it["kind"] == kind);
    of_kind
        .flat_map(|mut it| serde_json::from_value::<Vec<Value>>(it["webhooks"].take()).unwrap())
        .collect()
}

/// The webhooks of that kind in the base and in the component `fencing`, but for two
/// things: what [`UNGUARDED`] does is not shown to the guard, and a webhook that cannot be
/// asked fails the request, so that silence is never mistaken for consent.
fn webhooks(kind: &str) -> Vec<Value> {
    let mut webhooks = entries("base/webhooks.yaml", kind);
    assert!(
        !webhooks.is_empty(),
        "manifests/base/webhooks.yaml has no {kind}"
    );
    webhooks.extend(entries("components/fencing/fencing-webhook.yaml", kind));
    for webhook in &mut webhooks {
        webhook["failurePolicy"] = json!("Fail");
        webhook["timeoutSeconds"] = json!(30);
        let condition = json!({
            "name": "guarded",
            "expression": format!("!(request.userInfo.username in ['{UNGUARDED}', '{AWAY}'])"),
        });
        add_condition(webhook, condition);
    }
    webhooks
}

/// Adds a condition under which a webhook, or a policy, is asked.
pub(crate) fn add_condition(asked: &mut Value, condition: Value) {
    match asked["matchConditions"].as_array_mut() {
        Some(conditions) => conditions.push(condition),
        None => asked["matchConditions"] = json!([condition]),
    }
}

/// Puts the policies of the component `admission-policies` into the API server, but for one
/// thing: what [`UNGUARDED`] and [`ALONE`] do is not shown to them.
pub(crate) fn policies(plane: &ControlPlane) {
    let component = file("components/admission-policies");
    for name in ["crd.yaml", "policies.yaml"] {
        let text = std::fs::read_to_string(component.join(name)).unwrap();
        for mut object in serde_saphyr::from_multiple::<Value>(&text).unwrap() {
            if object["kind"] == "ValidatingAdmissionPolicy" {
                let condition = json!({
                    "name": "not-before-the-guard",
                    "expression": format!(
                        "!(request.userInfo.username in ['{UNGUARDED}', '{ALONE}'])"
                    ),
                });
                add_condition(&mut object["spec"], condition);
            }
            let text = object.to_string();
            plane.kubectl(&["apply", "-f", "-"], Some(&text)).success();
        }
    }
}

/// Makes the guard's namespace and account, and a kubeconfig for that account beside
/// the administrator's.
pub(crate) fn account(plane: &ControlPlane) -> PathBuf {
    for name in [
        "base/namespace.yaml",
        "base/rbac.yaml",
        "components/bare-pods/bare-pods.yaml",
        "components/fencing/fencing-rbac.yaml",
        "components/admission-policies/admission-policies-rbac.yaml",
    ] {
        let file = file(name);
        plane
            .kubectl(&["apply", "-f", &file.display().to_string()], None)
            .success();
    }
    plane.kubeconfig_as(ACCOUNT, &GROUPS)
}

/// A guard with that account and policy, and the webhooks, changed by `change`.
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
    let kinds = [
        "MutatingWebhookConfiguration",
        "ValidatingWebhookConfiguration",
    ];
    let [mutating, validating] = kinds.map(|kind| {
        let mut webhooks = webhooks(kind);
        webhooks.iter_mut().for_each(&change);
        json!({ "webhooks": webhooks })
    });
    let registration = plane.register_configurations(name, &guard.url, mutating, validating);
    (guard, registration)
}
