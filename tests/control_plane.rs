//! Proof that the harness the other tests stand on works.

mod harness;

use harness::{Needs, WebhookOptions};

#[test]
fn kubectl_talks_to_the_api_server() {
    let Some(plane) = harness::require_control_plane(Needs::ApiServer) else {
        return;
    };
    let namespace = plane.namespace("harness");
    let version = plane.kubectl(&["version"], None).success();
    assert!(
        version.stdout.contains("Server Version: v1."),
        "{version:#?}"
    );
    plane.apply(
        &namespace,
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: one}, data: {answer: forty-two}}",
    );
    let read = plane.kubectl(
        &[
            "get",
            "cm",
            "one",
            "-n",
            &namespace,
            "-o=jsonpath={.data.answer}",
        ],
        None,
    );
    assert_eq!(read.success().stdout, "forty-two");
    let missing = plane
        .kubectl(&["get", "cm", "two", "-n", &namespace], None)
        .failure();
    assert!(missing.stderr.contains("NotFound"), "{missing:#?}");
}

/// Nobody listens at the registered address, so what kubectl prints proves that the
/// API server asked there, and only for the namespaces and kinds registered.
#[test]
fn a_registered_webhook_is_asked() {
    let Some(plane) = harness::require_control_plane(Needs::ApiServer) else {
        return;
    };
    let watched = plane.namespace("watched");
    let ignored = plane.namespace("ignored");
    let claim = "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}, spec: \
                 {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}";
    let nobody = harness::process::free_port();
    let options = WebhookOptions::new(&format!("https://127.0.0.1:{nobody}"), &[&watched]);
    let registration = plane.register_webhooks("harness-test", &options);

    let refused = plane
        .kubectl(&["apply", "-n", &watched, "-f", "-"], Some(claim))
        .failure();
    let address = format!("https://127.0.0.1:{nobody}/mutate");
    assert!(refused.stderr.contains(&address), "{refused:#?}");
    plane.apply(&ignored, claim);

    drop(registration);
    let left = plane.kubectl(&["get", "mutatingwebhookconfigurations", "-o=name"], None);
    assert!(!left.success().stdout.contains("harness-test"));
}
