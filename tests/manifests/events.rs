//! The output of `kubectl describe` with `--events`.

use serde_json::json;

use crate::harness::shorthand::{bound_claim, object};
use crate::harness::{self, Needs, seen, until};
use crate::installed::{DEADLINE, account, grant, options, register};
use crate::rendered::BASE;

/// A deadlock passes with a warning, and a leftover is repaired.
const POLICY: &str = "defaults: {outcomes: {deadlock: warn}}";

const NAMESPACE: &str = "events";

fn deadlocked(name: &str) -> String {
    object(json!({"kind": "Deployment", "name": name, "uses": ["data"]})).to_string()
}

/// Needs its own control plane, because every object in it is judged.
#[test]
fn kubectl_describe_tells_what_was_repaired_and_what_would_have_been_denied() {
    let plane = harness::or_skip!(harness::start_control_plane(Needs::ApiServer));
    let kubectl = |arguments: &[&str], stdin: Option<&str>| {
        plane.kubectl(&[&["-n", NAMESPACE], arguments].concat(), stdin)
    };
    plane.run(&format!("create namespace {NAMESPACE}"));
    // A claim that is verified to allow one node at a time.
    for object in bound_claim(NAMESPACE, "data", "ebs.csi.aws.com") {
        plane.apply(NAMESPACE, &object.to_string());
    }
    // A server with only the rights of its ServiceAccount and of the components.
    account(&plane);
    grant(&plane, "bare-pods");
    grant(&plane, "events");
    let options = options(&plane, &["--events"]).policy(&plane, "events", POLICY);
    let guard = plane.guard("events", &options);
    register(&plane, &guard, BASE);
    // The number of occurrences with this result.
    let ended = |result: &str| {
        let series = format!("multi_attach_guard_events_total{{result=\"{result}\"}}");
        guard.count(&plane, &series)
    };
    let until_ended = |result: &str, expected: u64| {
        until(result, DEADLINE, || {
            let count = ended(result);
            seen(count == expected, count)
        });
    };

    let leftover = json!({"type": "Recreate", "rollingUpdate": {"maxSurge": 1}});
    let repaired =
        object(json!({"kind": "Deployment", "name": "repaired", "strategy": leftover})).to_string();
    let create = ["create", "-f", "-"];
    // One Event for the warning about a remaining fault, and one for the repair of an object that
    // the API server would refuse; none for a dry run.
    let dry = ["create", "--dry-run=server", "-f", "-"];
    kubectl(&dry, Some(&deadlocked("dry"))).success();
    kubectl(&create, Some(&deadlocked("warned"))).success();
    kubectl(&create, Some(&repaired)).success();
    until_ended("recorded", 2);
    let cases = [
        ("warned", "Warning", "Warned", "so the rollout can never finish"),
        ("repaired", "Normal", "Repaired", "rollingUpdate"),
    ];
    for (name, kind, reason, text) in cases {
        let described = kubectl(&["describe", "deployment", name], None).success();
        let lines: Vec<&str> =
            described.stdout.lines().filter(|line| line.contains("multi-attach-guard")).collect();
        let [line] = lines[..] else {
            panic!("{name}: {}", described.stdout);
        };
        let columns: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(columns[..2], [kind, reason], "{line}");
        assert_eq!(columns[3], "multi-attach-guard", "{line}");
        assert!(line.contains(text), "{line}");
    }

    // The same finding again within a minute.
    plane.run(&format!("set image deployment/warned main=example.com/app:2 -n {NAMESPACE}"));
    until_ended("repeated", 1);
    // The API server refuses a second object with this name, after the webhooks.
    assert_ne!(kubectl(&create, Some(&deadlocked("warned"))).status, 0);
    until_ended("gone", 1);
    assert_eq!(ended("recorded"), 2);
    assert_eq!(ended("failed"), 0);
    // The API server may have an Event of its own about its Service.
    let events =
        plane.run("get events -A -o=name --field-selector=involvedObject.kind=Deployment").stdout;
    assert_eq!(events.lines().count(), 2, "{events}");
}
