//! What the webhook entry of the rule `fencing-live-node` does to all that happens here:
//! nodes that die, and volumes that controllers detach from those that live.

use std::path::Path;

use serde_json::{Value, json};

use crate::harness::webhooks::Registration;
use crate::harness::{ControlPlane, Guard, sum};

const COMPONENT: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/manifests/components/fencing/fencing-webhook.yaml"
);

/// The condition that keeps the controller's own requests in the API server.
const EXEMPTION: &str = "not-from-the-attach-detach-controller";

/// The entry of the component, and the second one.
const ENTRIES: [&str; 2] = [
    "fencing.multi-attach-guard.dev",
    "all.fencing.multi-attach-guard.dev",
];

/// Registers for everything that happens on the control plane from now on the entry of the
/// component `fencing`, and the same once more that is asked about the attach-detach controller
/// too: with the first the API server answers for what that does, with the second the guard.
pub(crate) fn watch(plane: &'static ControlPlane, guard: &Guard) -> Registration<'static> {
    let text = std::fs::read_to_string(Path::new(COMPONENT)).unwrap();
    let mut configuration: Value = serde_saphyr::from_str(&text).unwrap();
    let webhooks = configuration["webhooks"].as_array_mut().unwrap();
    let mut all = webhooks[0].clone();
    assert_eq!(all["name"], ENTRIES[0]);
    all["name"] = json!(ENTRIES[1]);
    let conditions = all["matchConditions"].as_array_mut().unwrap();
    let before = conditions.len();
    conditions.retain(|it| it["name"] != EXEMPTION);
    assert_eq!(
        conditions.len() + 1,
        before,
        "{COMPONENT} has no {EXEMPTION}"
    );
    webhooks.push(all);
    for webhook in webhooks {
        // So much happens at once here that an answer may take its time.
        webhook["timeoutSeconds"] = json!(30);
    }
    let nothing = json!({ "webhooks": [] });
    plane.register_configurations("fencing", &guard.url, nothing, configuration)
}

/// Prints how many volumes were detached, and that none of it was refused.
///
/// # Panics
///
/// When something was, or nobody asked.
pub(crate) fn judge(plane: &ControlPlane, guard: &Guard) {
    let exposition = plane.kubectl(&["get", "--raw=/metrics"], None).success();
    let exposition = exposition.stdout.as_str();
    let deleted = sum(
        exposition,
        "apiserver_request_total",
        &[
            r#"resource="volumeattachments""#,
            r#"verb="DELETE""#,
            r#"code="200""#,
        ],
    );
    let of_entries = |name: &str| -> u64 {
        let entries = ENTRIES.map(|entry| format!("name=\"{entry}\""));
        entries.iter().map(|it| sum(exposition, name, &[it])).sum()
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

/// How often the guard was asked to judge a Node or a VolumeAttachment.
fn asked(plane: &ControlPlane, guard: &Guard) -> u64 {
    let exposition = guard.metrics(plane);
    let of = |kind: &str| {
        let kind = format!("kind=\"{kind}\"");
        sum(&exposition, "multi_attach_guard_reviews_total", &[&kind])
    };
    of("Node") + of("VolumeAttachment")
}
