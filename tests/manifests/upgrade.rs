//! From an earlier version to this one, and out of the cluster again.

use serde_json::{Value, json};

use crate::harness::shorthand::object;
use crate::harness::{self, ControlPlane, Needs, Output};
use crate::installed::{DEADLINE, define};
use crate::rendered::{built, objects};

const EARLIER: &str = include_str!("earlier.yaml");

const NAME: &str = "multi-attach-guard";

fn stored(plane: &ControlPlane, kind: &str) -> Value {
    plane.get(&[kind, NAME, "-n", NAME])
}

fn names(webhooks: &Value) -> Vec<&str> {
    let webhooks = webhooks["webhooks"].as_array().unwrap().iter();
    webhooks.map(|it| it["name"].as_str().unwrap()).collect()
}

/// Something that the guard is asked about.
fn try_a_workload(plane: &ControlPlane) -> Output {
    let workload = object(json!({"kind": "Deployment", "uses": ["data"]}));
    let create = ["create", "--dry-run=server", "-f", "-"];
    plane.kubectl(&create, Some(&workload.to_string()))
}

/// A control plane of its own: what is installed here is for the whole cluster. No pod
/// ever runs in it, which is the worst that can happen to an install.
#[test]
fn an_earlier_install_is_upgraded_and_removed_without_blocking_anybody() {
    let plane = harness::or_skip!(harness::start_control_plane(Needs::ApiServer));
    let programs = harness::require_programs(Needs::ApiServer).unwrap();
    define(&plane);
    let apply = ["apply", "--validate=strict", "-f", "-"];
    plane.kubectl(&apply, Some(EARLIER)).success();

    let present = built(programs, "cert-manager");
    let upgraded = plane.kubectl(&apply, Some(&present)).success();
    assert_eq!(upgraded.stderr, "");
    for kind in [
        "MutatingWebhookConfiguration",
        "ValidatingWebhookConfiguration",
    ] {
        let wanted = &objects(&present)[&(kind.to_owned(), NAME.to_owned())];
        assert_eq!(names(&stored(&plane, kind)), names(wanted), "{kind}");
    }
    let budget = stored(&plane, "poddisruptionbudget");
    assert_eq!(budget["spec"].get("minAvailable"), None, "{budget}");
    // The same once more starts no rollout.
    let before = stored(&plane, "deployment");
    plane.kubectl(&apply, Some(&present)).success();
    let after = stored(&plane, "deployment");
    assert_eq!(
        before["metadata"]["generation"],
        after["metadata"]["generation"]
    );

    // The wall: nobody answers, and workloads wait.
    let strict = built(programs, "strict");
    plane.kubectl(&apply, Some(&strict)).success();
    harness::until("workloads to wait for the guard", DEADLINE, || {
        let said = try_a_workload(&plane);
        harness::seen(said.stderr.contains("failed calling webhook"), said)
    });
    // The way out, as the install page has it.
    let configurations = "mutatingwebhookconfiguration,validatingwebhookconfiguration";
    plane
        .kubectl(&["delete", configurations, NAME], None)
        .success();
    harness::until("workloads to pass", DEADLINE, || {
        try_a_workload(&plane).done()
    });
    let delete = ["delete", "--ignore-not-found", "--wait=false", "-f", "-"];
    plane.kubectl(&delete, Some(&strict)).success();
    try_a_workload(&plane).success();
}
