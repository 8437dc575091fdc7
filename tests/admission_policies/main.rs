//! The policies in the API server: they refuse objects without a webhook, they refuse only objects
//! that the webhook would refuse too, and no odd object makes an expression fail.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::unwrap_in_result,
    clippy::panic,
    reason = "in a test, the panic and its message are the report"
)]

#[path = "../verdicts/case.rs"]
#[allow(dead_code, reason = "the verdicts use all of it")]
mod case;
#[path = "../verdicts/cluster.rs"]
mod cluster;
mod faults;
#[path = "../harness/mod.rs"]
mod harness;
#[path = "../e2e/install.rs"]
#[allow(dead_code, reason = "only some suites install the webhooks")]
mod install;
mod objects;
mod standalone;
mod verdicts;

use std::fs;
use std::path::Path;
use std::sync::{Once, OnceLock};
use std::time::Duration;

use axum::http::Method;
use harness::output::program;
use harness::shorthand::list;
use harness::webhooks::review;
use harness::{ControlPlane, Guard, GuardOptions, Namespace, Needs, WebhookOptions, seen, until};
use harness::{shorthand, uncertain};
use objects::Lot;
use serde_json::{Value, json};

const SOON: Duration = Duration::from_secs(60);

/// Nodes, classes, drivers and claims of every sort.
const CLUSTER: &str = include_str!("cluster.yaml");

/// Whether this minor has mutating policies (1.36 and newer). Such a minor can also read policies
/// from a folder.
fn has_repair() -> bool {
    let minor = harness::programs::minor();
    minor
        .split('.')
        .nth(1)
        .and_then(|number| number.parse::<u32>().ok())
        .is_some_and(|number| number >= 36)
}

/// A namespace with objects of [`CLUSTER`] that the policies and a guard judge.
struct PolicyTest<'p> {
    guard: Guard,
    namespace: Namespace<'p>,
}

fn shared() -> Option<&'static PolicyTest<'static>> {
    static SHARED: OnceLock<Option<PolicyTest<'static>>> = OnceLock::new();
    SHARED.get_or_init(|| PolicyTest::of("policies")).as_ref()
}

/// Applies the policies, changed so that a failing expression is visible.
fn install(plane: &ControlPlane) {
    let component = Path::new(env!("CARGO_MANIFEST_DIR")).join("manifests/components");
    let repair = has_repair().then_some("admission-policies-repair/repair.yaml");
    let files = ["crd.yaml", "policies.yaml"].map(|file| format!("admission-policies/{file}"));
    for file in files.into_iter().chain(repair.map(str::to_owned)) {
        let text = fs::read_to_string(component.join(file))
            .unwrap()
            .replace("failurePolicy: Ignore", "failurePolicy: Fail");
        plane.kubectl(&["apply", "-f", "-"], Some(&text)).success();
    }
}

impl PolicyTest<'_> {
    /// A namespace with this prefix, on the control plane that all tests share.
    fn of(name: &str) -> Option<Self> {
        // Two tests that apply the definition at once would both try to create it.
        static INSTALLED: Once = Once::new();
        let plane = harness::require_control_plane(Needs::ApiServer)?;
        INSTALLED.call_once(|| install(plane));
        let namespace = Namespace::new(plane, name);
        plane.apply(&namespace, &list(CLUSTER));
        // A busy API server may not confirm a denial in time.
        let options = GuardOptions::default().with(&["--admission-policies", "--stale=deny"]);
        let guard = plane.guard(name, &options);
        let test = Self { guard, namespace };
        test.until_claims("the facts", |claims| is_of(&claims["data"], "OneNode"));
        // The API server reads the facts through its own watch.
        until("the policies", SOON, || {
            let said = test.policies_say(&objects::deployment(&json!({}), &["data"]));
            said.ok_or_else(|| "nothing is refused".to_owned())
        });
        Some(test)
    }

    /// The facts that the guard has written.
    fn facts(&self) -> Value {
        let get = ["get", "volumefacts", "volumes", "-o=json"];
        let found = self.namespace.kubectl(&get, None);
        let object: Value = serde_json::from_str(&found.stdout).unwrap_or_default();
        object["spec"].clone()
    }

    fn until_claims(&self, what: &str, accept: impl Fn(&Value) -> bool) {
        until(what, SOON, || {
            let facts = self.facts();
            let so = accept(&facts["claims"]);
            seen(so, (facts, self.guard.program.log_tail()))
        });
    }

    /// The reason why the API server refuses to create the object; `None` if no policy does.
    /// Nothing is stored.
    fn policies_say(&self, object: &Value) -> Option<String> {
        let text = |field: &str| object[field].as_str().unwrap();
        let (group, kind) = (text("apiVersion"), text("kind").to_lowercase());
        let namespace = &self.namespace;
        let path = format!("/apis/{group}/namespaces/{namespace}/{kind}s?dryRun=All");
        match namespace.plane.send(Method::POST, &path, object) {
            Ok(()) => None,
            Err(kube::Error::Api(status))
                if status.message.contains("ValidatingAdmissionPolicy") =>
            {
                Some(status.message.clone())
            }
            // Not a policy's decision: the object is invalid.
            Err(kube::Error::Api(status)) if matches!(status.code, 400 | 422) => None,
            Err(error) => panic!("{error}: {object:?}"),
        }
    }

    /// The reason why the guard's webhook would refuse to create the object, if it would.
    fn webhook_refuses(&self, object: &Value) -> Option<String> {
        let mut named = object.clone();
        named["metadata"]["namespace"] = json!(&*self.namespace);
        let response = self.guard.validate(self.namespace.plane, &review(&named, None)).unwrap();
        (response["allowed"] == false).then(|| response["status"]["message"].to_string())
    }
}

/// Whether the claim's constraint is of this sort.
fn is_of(constraint: &Value, sort: &str) -> bool {
    constraint.as_str().is_some_and(|found| found.starts_with(sort))
}

/// The webhook refuses every object that a policy refuses.
#[test]
fn a_policy_refuses_nothing_that_the_webhook_allows() {
    let Some(test) = shared() else { return };
    let mut lot = Lot::new(7);
    let mut refused = 0;
    for _ in 0..1200 {
        let object = objects::draw(&mut lot);
        if let Some(policy) = test.policies_say(&object) {
            let webhook = test.webhook_refuses(&object);
            assert!(webhook.is_some(), "{policy}: {object}");
            refused += 1;
        }
    }
    assert!(refused >= 140, "{refused}");
    // No odd object makes an expression fail. A denial may quote the error of a kubelet.
    let odd: Vec<String> =
        (0..500).filter_map(|_| test.policies_say(&objects::odd(&mut lot))).collect();
    assert!(!odd.is_empty());
    let is_failure = |said: &&String| said.replace("Multi-Attach error", "").contains("error");
    assert_eq!(odd.iter().find(is_failure), None);
}

/// Policies leave a way back to a revision with running pods to the webhook, which knows revisions.
#[test]
fn a_changed_template_is_refused_where_it_is_no_way_back() {
    let test = harness::or_skip!(PolicyTest::of("rolled"));
    let mut object = objects::deployment(&json!({}), &["data"]);
    object["metadata"]["name"] = json!("rolled");
    // As an account that the policies exempt.
    let account = "--as=system:kube-controller-manager";
    let create = ["create", account, "--as-group=system:masters", "-f", "-"];
    test.namespace.kubectl(&create, Some(&object.to_string())).success();
    let image = r#"{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"j"}]}}}}"#;
    let patch = |patch: &str, more: &[&str]| {
        let begin = ["patch", "deployment/rolled", "--type=strategic", "-p"];
        test.namespace.kubectl(&[&begin[..], &[patch], more].concat(), None)
    };
    let refused = |what: &str, expected: bool| {
        let output = patch(image, &["--dry-run=server"]);
        assert_eq!(
            output.stderr.contains("rolling-update-overlap"),
            expected,
            "{what}: {output:?}"
        );
    };
    refused("there was never another revision", true);
    patch(r#"{"spec":{"minReadySeconds":1}}"#, &[]).success();
    refused("nothing is known of its pods", false);
    for (what, [seen, replicas], expected) in [
        ("all pods are of this revision", [2, 1], true),
        ("a pod is of another one", [2, 2], false),
        ("the status is older", [1, 1], false),
    ] {
        let status = json!({"status": {"observedGeneration": seen, "replicas": replicas, "updatedReplicas": 1}});
        patch(&status.to_string(), &["--subresource=status"]).success();
        refused(what, expected);
    }
}

/// Deployments with very long lists, up to the size limit of etcd. The policies judge objects whose
/// volumes, containers and mounts cost less than the API server allows (1,000,000 for an
/// expression), and leave the others to the webhook.
#[test]
fn the_largest_legal_objects_are_judged_or_left_to_the_webhook() {
    let Some(test) = shared() else { return };
    for (claims, containers, mounts, is_judged) in [
        (1, 1, 1, true),
        (100, 10, 100, true),
        (800, 1, 800, true),
        (800, 10, 800, true),
        (1, 100, 1, true),
        (801, 1, 801, false),
        (6400, 1, 6400, false),
        (1, 101, 1, false),
        (1, 10_000, 1, false),
        (1, 1, 801, false),
        (1, 1, 20_000, false),
    ] {
        let mut object = objects::deployment(&json!({}), &vec!["data"; claims]);
        let pod = &mut object["spec"]["template"]["spec"];
        let mut container = pod["containers"][0].clone();
        container["volumeMounts"] = container["volumeMounts"]
            .as_array()
            .unwrap()
            .iter()
            .cycle()
            .take(mounts)
            .enumerate()
            .map(|(at, mount)| json!({"name": mount["name"], "mountPath": format!("/mnt/{at}")}))
            .collect();
        pod["containers"] = (0..containers)
            .map(|number| {
                container["name"] = json!(format!("app-{number}"));
                container.clone()
            })
            .collect();
        assert!(object.to_string().len() < 1_400_000);
        let said = test.policies_say(&object);
        let what = format!("{claims} claims, {containers} containers, {mounts} mounts: {said:?}");
        assert_eq!(said.is_some(), is_judged, "{what}");
        assert!(
            said.iter().all(|denial| {
                denial.contains("rolling-update-overlap") && !denial.contains("error")
            }),
            "{what}"
        );
    }
}

/// Plain workloads, which are nearly all that users write: policy and webhook refuse the same ones.
#[test]
fn plain_workloads_are_refused_by_both() {
    let Some(test) = shared() else { return };
    for replicas in [1, 2, 5] {
        for strategy in &objects::CHOICES.strategies {
            for claims in
                [&["data"][..], &["lock"], &["data", "share"], &["share"], &["data", "logs"]]
            {
                let spec = json!({"replicas": replicas, "strategy": strategy});
                let object = objects::deployment(&spec, claims);
                let (policy, webhook) = (test.policies_say(&object), test.webhook_refuses(&object));
                assert_eq!(
                    policy.is_some(),
                    webhook.is_some(),
                    "{object}\n{policy:?}\n{webhook:?}"
                );
            }
        }
    }
}

/// A policy refuses before the validating webhook is called; the mutating webhook has already named
/// the annotations that do not count.
#[test]
fn annotations_that_do_not_count_are_named_where_a_policy_refuses_first() {
    let test = harness::or_skip!(PolicyTest::of("hints"));
    let webhooks = WebhookOptions::new(&test.guard.url, &[&test.namespace]);
    let _registration = test.namespace.plane.register_webhooks("hints", &webhooks);
    let ignored = "multi-attach-guard.dev/ignore";
    for (annotations, hint) in [
        (
            json!({ignored: "rolling-update-overlap"}),
            "multi-attach-guard.dev/ignore is ignored: add multi-attach-guard.dev/reason",
        ),
        (
            json!({ignored: "rolling-update-overlpa", "multi-attach-guard.dev/reason": "drained"}),
            "there is no rule \"rolling-update-overlpa\"",
        ),
    ] {
        let mut object = objects::deployment(&json!({}), &["data"]);
        object["metadata"]["annotations"] = annotations;
        let arguments = ["create", "--dry-run=server", "-f", "-"];
        let said = test.namespace.kubectl(&arguments, Some(&object.to_string())).stderr;
        assert!(said.contains("ValidatingAdmissionPolicy"), "{said}");
        let named = said
            .lines()
            .filter(|line| line.starts_with("Warning: ") && line.contains(hint))
            .count();
        assert_eq!(named, 1, "{said}");
    }
}

/// The part of an object that kubectl prints.
const STRATEGY: &str = "-o=jsonpath={.spec.strategy}";

/// A Deployment that Kubernetes accepts only without its `rollingUpdate`.
fn leftover(claim: &str) -> String {
    let strategy = json!({"type": "Recreate", "rollingUpdate": {"maxSurge": 1}});
    objects::deployment(&json!({"strategy": strategy}), &[claim]).to_string()
}

#[test]
fn the_api_server_drops_a_leftover_by_itself() {
    if !has_repair() {
        return;
    }
    let Some(test) = shared() else { return };
    // The API server reads the binding through a watch.
    let created = until("the repair", SOON, || {
        let create = ["create", "--dry-run=server", STRATEGY, "-f", "-"];
        let output = test.namespace.kubectl(&create, Some(&leftover("share")));
        seen(output.status == 0, output)
    });
    assert_eq!(created.stdout, r#"{"type":"Recreate"}"#);
}

/// The policy for a manifest directory of the API server works without any stored object.
#[test]
fn a_manifest_directory_repairs_before_anything_is_installed() {
    if !has_repair() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let printed = program(&["policies", "--manifest-dir"]).output().unwrap();
    let manifests = folder.path().join("manifests");
    fs::create_dir(&manifests).unwrap();
    fs::write(manifests.join("policies.yaml"), printed.stdout).unwrap();
    let configuration = json!({
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AdmissionConfiguration",
        "plugins": [{
            "name": "MutatingAdmissionPolicy",
            "configuration": {
                "apiVersion": "apiserver.config.k8s.io/v1",
                "kind": "MutatingAdmissionPolicyConfiguration",
                "staticManifestsDir": manifests,
            },
        }],
    });
    let file = folder.path().join("admission.yaml");
    fs::write(&file, configuration.to_string()).unwrap();
    let options = harness::Options {
        api_server_flags: vec![
            "--feature-gates=ManifestBasedAdmissionControlConfig=true".to_owned(),
            format!("--admission-control-config-file={}", file.display()),
        ],
        ..harness::Options::of(Needs::ApiServer)
    };
    let plane = harness::or_skip!(harness::start_control_plane_with(Needs::ApiServer, &options));
    let namespace = plane.namespace("static");
    let create = ["create", STRATEGY, "-n", &namespace, "-f", "-"];
    let created = plane.kubectl(&create, Some(&leftover("data"))).success();
    assert_eq!(created.stdout, r#"{"type":"Recreate"}"#);
}
