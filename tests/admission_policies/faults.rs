//! Faults around the policies, in sequence on a separate control plane: the messages of readiness,
//! the metrics and `audit` about each, and proof that every printed way out works.

use std::process::Stdio;

use serde_json::{Value, json};

use crate::harness::output::{out, program};
use crate::harness::shorthand::list;
use crate::harness::{self, ControlPlane, GuardOptions, Namespace, Needs, seen, until};
use crate::{CLUSTER, PolicyTest, SOON, install, is_of, objects};

/// The rights of the component.
const RIGHTS: &str = "components/admission-policies/admission-policies-rbac.yaml";

/// The command that readiness prints, without its version.
const APPLY: &str = "multi-attach-guard policies | kubectl apply -f -";

/// Runs a printed command.
fn run(plane: &ControlPlane, printed: &str) {
    let mut command = plane.printed(printed);
    let status = command.stdout(Stdio::null()).status().unwrap();
    assert!(status.success(), "{printed}");
}

/// A guard with the account and the rights of the manifests, except the component's rights.
fn guarded(plane: &ControlPlane) -> PolicyTest<'_> {
    let kubeconfig = install::account(plane);
    plane.run(&format!("delete -f {}", install::file(RIGHTS).display()));
    let namespace = Namespace::new(plane, "faults");
    plane.apply(&namespace, &list(CLUSTER));
    let options = GuardOptions::default().with(&["--admission-policies"]).kubeconfig(&kubeconfig);
    PolicyTest { guard: plane.guard("faults", &options), namespace }
}

impl PolicyTest<'_> {
    fn until_ready_says(&self, part: &str) {
        let readiness = format!("{}/readyz", self.guard.admin_url);
        until(part, SOON, || {
            let text = self.namespace.plane.page(&readiness);
            seen(text.contains(part), (text, self.guard.program.log_tail()))
        });
    }

    fn until_counted(&self, series: &str, count: u64) {
        until(series, SOON, || {
            let counted = self.guard.count(self.namespace.plane, series);
            seen(counted >= count, counted)
        });
    }

    /// The output of `audit`, with single spaces between its words. It is repeated, because a busy
    /// API server may not answer all lists in time.
    fn audit(&self) -> String {
        let output = until("an audit", SOON, || {
            let audited = program(&["audit", "--exit-zero"])
                .env("KUBECONFIG", self.namespace.plane.kubeconfig())
                .output()
                .unwrap();
            seen(audited.status.success(), audited)
        });
        let words: Vec<&str> = out(&output).split_whitespace().collect();
        words.join(" ")
    }

    fn audit_is_silent(&self) {
        let audit = self.audit();
        assert!(!audit.contains("policies in the API server"), "{audit}");
    }
}

#[test]
fn what_is_wrong_is_said_and_what_is_printed_ends_it() {
    let plane = &harness::or_skip!(harness::start_control_plane(Needs::ApiServer));
    let test = guarded(plane);
    let ready =
        "ready admission-policies: The policies in the API server are those of this version.";
    let rights = install::file(RIGHTS).display().to_string();

    // First without the rights, then without the policies, then with both.
    test.until_ready_says(
        "degraded admission-policies: The policies in the API server cannot be read",
    );
    plane.run(&format!("apply -f {rights}"));
    test.until_ready_says(
        "degraded admission-policies: The API server has no policies of multi-attach-guard",
    );
    // The policies are not in use, so `audit` does not miss them.
    test.audit_is_silent();
    run(plane, APPLY);
    test.until_ready_says(ready);
    test.until_claims("the facts", |claims| is_of(&claims["data"], "OneNode"));
    // The policies in the API server are those of this version.
    test.audit_is_silent();

    // An object passes if an expression would cost too much for it.
    let namespace = &test.namespace;
    let create = |claims: usize| {
        let object = objects::deployment(&json!({}), &vec!["data"; claims]).to_string();
        namespace.kubectl(&["create", "--dry-run=server", "-f", "-"], Some(&object))
    };
    until("a denial", SOON, || match create(1) {
        refused if refused.stderr.contains("rolling-update-overlap") => Ok(()),
        other => Err(format!("{other:?}")),
    });
    create(1_600).success();

    // A user switches a binding off.
    let patch = |object: &str, patch: Value| {
        plane.run(&format!("patch {object} --type=merge -p {patch}"));
    };
    let binding = "validatingadmissionpolicybinding workloads.multi-attach-guard.dev";
    patch(binding, json!({"spec": {"validationActions": ["Audit"]}}));
    let differs = "ValidatingAdmissionPolicyBinding workloads.multi-attach-guard.dev differs";
    test.until_ready_says(differs);
    let audit = test.audit();
    assert!(audit.contains(differs), "{audit}");
    run(plane, APPLY);
    test.until_ready_says(ready);

    // A user changes and deletes facts.
    let denied = test.facts()["denied"].clone();
    let restored = "multi_attach_guard_volume_facts_restored_total";
    let object = format!("volumefacts volumes -n {namespace}");
    let changed = json!({"share": "OneNode", "more": "Any"});
    patch(&object, json!({"spec": {"claims": changed, "denied": null}}));
    test.until_counted(restored, 1);
    test.until_claims("the facts as they were", |claims| {
        claims["share"] == "Any" && claims["more"].is_null()
    });
    assert_eq!(test.facts()["denied"], denied);
    plane.run(&format!("delete {object}"));
    test.until_counted(restored, 2);
    test.until_claims("the facts once more", |claims| claims["share"] == "Any");

    // First the right to write is removed, then the definition of the parameters.
    plane.run("delete clusterrolebinding multi-attach-guard-admission-policies");
    let logs = format!("pvc logs -n {namespace}");
    plane.run(&format!("delete {logs} --wait=false"));
    patch(&logs, json!({"metadata": {"finalizers": null}}));
    let failures = r#"multi_attach_guard_volume_facts_writes_total{result="failure"}"#;
    test.until_counted(failures, 1);
    plane.run(&format!("apply -f {rights}"));
    test.until_claims("the facts without the claim", |claims| claims["logs"].is_null());
    test.until_ready_says(ready);
    plane.run("delete crd volumefacts.multi-attach-guard.dev");
    test.until_ready_says("CustomResourceDefinition volumefacts.multi-attach-guard.dev is missing");
    run(plane, APPLY);
    test.until_claims("the facts after all", |claims| claims["share"] == "Any");
    test.until_ready_says(ready);

    // The largest facts that are written are accepted, and deleting leaves no object behind.
    let many: serde_json::Map<String, Value> = (0..17_500)
        .map(|at| format!("data-of-a-claim-with-a-long-name-{at:010}"))
        .map(|claim| (claim, json!("OneNode-1f2e3d4c")))
        .collect();
    let large = json!({
        "apiVersion": "multi-attach-guard.dev/v1alpha1",
        "kind": "VolumeFacts",
        "metadata": {"name": "large"},
        "spec": {"claims": many, "limits": {}, "denied": {}},
    });
    let text = large.to_string();
    assert!(text.len() > 1 << 20, "{}", text.len());
    let apply = ["apply", "--server-side", "-f", "-"];
    namespace.kubectl(&apply, Some(&text)).success();
    run(plane, &APPLY.replace("apply", "delete"));
    let left =
        plane.run("get validatingadmissionpolicies,validatingadmissionpolicybindings,crd -o=name");
    assert!(!left.stdout.contains("multi-attach-guard"), "{left:?}");
}
