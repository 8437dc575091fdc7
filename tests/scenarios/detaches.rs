//! Tests the webhook entry of the rule `fencing-live-node` on everything that happens in the
//! scenarios: nodes die, and controllers detach volumes from live nodes.

use std::path::Path;

use serde_json::{Value, json};

use crate::harness::webhooks::Registration;
use crate::harness::{ControlPlane, Guard, sum};

const COMPONENT: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/manifests/components/fencing/fencing-webhook.yaml");

/// The condition with which the API server excludes the controller's own requests.
const EXEMPTION: &str = "not-from-the-attach-detach-controller";

/// The component's entry, and the test's copy of it.
const ENTRIES: [&str; 2] = ["fencing.multi-attach-guard.dev", "all.fencing.multi-attach-guard.dev"];

/// Registers the entry of the component `fencing` for everything that happens on the control plane
/// from now on, and a copy that also covers the attach-detach controller. For that controller's
/// requests, the first entry tests the exemption in the API server, the second the guard itself.
pub(crate) fn watch(plane: &'static ControlPlane, guard: &Guard) -> Registration<'static> {
    let text = std::fs::read_to_string(Path::new(COMPONENT)).unwrap();
    let mut configuration: Value = serde_saphyr::from_str(&text).unwrap();
    let webhooks = configuration["webhooks"].as_array_mut().unwrap();
    let mut all = webhooks[0].clone();
    assert_eq!(all["name"], ENTRIES[0]);
    all["name"] = json!(ENTRIES[1]);
    let conditions = all["matchConditions"].as_array_mut().unwrap();
    let before = conditions.len();
    conditions.retain(|condition| condition["name"] != EXEMPTION);
    assert_eq!(conditions.len() + 1, before, "{COMPONENT} has no {EXEMPTION}");
    webhooks.push(all);
    for webhook in webhooks {
        // Many requests arrive at once here, so an answer may take longer.
        webhook["timeoutSeconds"] = json!(30);
    }
    let nothing = json!({ "webhooks": [] });
    plane.register_configurations("fencing", &guard.url, nothing, configuration)
}

/// Prints the number of detached volumes, and checks that no detach was refused.
///
/// # Panics
///
/// If one was refused, or the guard was never asked.
pub(crate) fn judge(plane: &ControlPlane, guard: &Guard) {
    let metrics = plane.kubectl(&["get", "--raw=/metrics"], None).success();
    let exposition = metrics.stdout.as_str();
    let deleted = sum(
        exposition,
        "apiserver_request_total",
        &[r#"resource="volumeattachments""#, r#"verb="DELETE""#, r#"code="200""#],
    );
    let of_entries = |name: &str| -> u64 {
        let entries = ENTRIES.map(|entry| format!("name=\"{entry}\""));
        entries.iter().map(|label| sum(exposition, name, &[label])).sum()
    };
    let refused = of_entries("apiserver_admission_webhook_rejection_count");
    let unanswered = of_entries("apiserver_admission_webhook_fail_open_count");
    let asked = asked(plane, guard);
    println!(
        "VolumeAttachments deleted: {deleted}; requests about the volumes of a node that the \
         guard was asked about: {asked}, refused: {refused}, unanswered: {unanswered}\n"
    );
    assert_eq!(refused, 0, "what controllers do was refused");
    assert_eq!(unanswered, 0, "the guard did not answer");
    assert!(deleted == 0 || asked > 0, "the guard was not asked");
}

/// The number of reviews of Nodes and VolumeAttachments by the guard.
fn asked(plane: &ControlPlane, guard: &Guard) -> u64 {
    let exposition = guard.metrics(plane);
    let of = |kind: &str| {
        let kind = format!("kind=\"{kind}\"");
        sum(&exposition, "multi_attach_guard_reviews_total", &[&kind])
    };
    of("Node") + of("VolumeAttachment")
}
