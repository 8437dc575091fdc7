//! The commands that read a live cluster, against a real API server: `check --cluster`,
//! `capabilities` and `snapshot` agree with each other and with the webhook.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "in a test, the panic and its message are the report"
)]

mod audit;
mod command_test;
#[path = "../harness/mod.rs"]
mod harness;

use std::time::Duration;

use command_test::{CommandTest, run};
use harness::kubectl::kubeconfig_of;
use harness::output::{begins, code, err, has, out};
use harness::shorthand::object;
use harness::{GuardOptions, WebhookOptions};
use serde_json::{Value, json};

/// A Deployment that uses the claim, with this YAML in its specification.
fn deployment(claim: &str, spec: &str) -> String {
    let spec: Value = serde_saphyr::from_str(spec).unwrap();
    let shorthand = json!({"kind": "Deployment", "namespace": "NAMESPACE", "uses": [claim],
        "with": {"spec": spec}});
    object(shorthand).to_string()
}

/// The name of a case, the claim of a Deployment, a part of its specification, and the findings.
const DEPLOYMENTS: &str = "\
a bound volume | bound | replicas: 1 | deny rolling-update-overlap
two pods on a bound volume | bound | replicas: 2 | deny rolling-update-overlap, deny replicas-share-volume
a pod that may be missing | bound | strategy: {rollingUpdate: {maxSurge: 1, maxUnavailable: 1}} | warn rolling-update-overlap
a volume for one pod | alone | replicas: 1 | deny single-pod-volume
a claim that is not there | absent | replicas: 1 | warn unresolved-claim
a volume for all nodes | shared | replicas: 3 |\x20
a RuntimeClass that leaves one node | bound | template: {spec: {runtimeClassName: one-node}} |\x20
Recreate | bound | strategy: {type: Recreate} |\x20
";

/// The name of a case, its manifest, and its findings: each action with its rule.
fn cases() -> Vec<(&'static str, String, Vec<&'static str>)> {
    let deployments = DEPLOYMENTS.lines().map(|line| {
        let [name, claim, spec, found] = line.split(" | ").collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        let found = found.split(", ").filter(|finding| !finding.is_empty()).collect();
        (name, deployment(claim, spec), found)
    });
    // A mode that the class cannot provide.
    let blocks = json!({"accessModes": ["ReadWriteMany"], "volumeMode": "Block", "storageClassName": "share"});
    let claim = object(json!({"kind": "PersistentVolumeClaim", "name": "blocks",
        "namespace": "NAMESPACE", "with": {"spec": blocks}}));
    let found = vec!["deny unsupported-access-mode"];
    deployments.chain([("a claim", claim.to_string(), found)]).collect()
}

#[test]
fn the_cluster_its_snapshot_and_the_webhook_say_the_same() {
    let test = harness::or_skip!(CommandTest::new());
    let snapshot = test.run(&["snapshot", "--output-file", "snapshot.yaml"]);
    assert_eq!(snapshot.status.code(), Some(0), "{}", err(&snapshot));
    let guard = test.plane.guard("cluster", &GuardOptions::default());
    let options = WebhookOptions::new(&guard.url, &[test.namespace]);
    let _registration = test.plane.register_webhooks("cluster", &options);

    for (name, manifest, expected) in cases() {
        let manifest = manifest.replace("NAMESPACE", test.namespace);
        std::fs::write(test.folder.path().join("manifest.yaml"), &manifest).unwrap();
        let live = test.check(&["manifest.yaml", "--cluster"]);
        let findings = live["findings"].as_array().unwrap();
        let found: Vec<String> = findings
            .iter()
            .map(|finding| format!("{} {}", finding["action"], finding["rule"]).replace('"', ""))
            .collect();
        assert_eq!(found, expected, "{name}");

        let offline = test.check(&["manifest.yaml", "--facts", "snapshot.yaml"]);
        assert_eq!(offline["findings"], live["findings"], "{name}");

        let said = test.dry_run(&manifest);
        let refused = expected.iter().any(|finding| finding.starts_with("deny"));
        assert_eq!(said.contains("denied the request: "), refused, "{name}: {said}");
        for finding in findings {
            let rule = finding["rule"].as_str().unwrap();
            let words = if finding["action"] == "deny" {
                [format!("More: multi-attach-guard rules {rule}"), format!("\nAlso {rule}: ")]
            } else {
                [format!("Warning: {rule}: "), format!("Warning: {rule}: ")]
            };
            let is_said = words.iter().any(|words| said.contains(words));
            assert!(is_said, "{name}: none of {words:?} in\n{said}");
        }
        if expected.is_empty() {
            assert_eq!(said, "", "{name}");
        }
    }
}

/// A snapshot has no workloads; the cluster has.
#[test]
fn workloads_of_the_cluster_count_and_none_counts_twice() {
    let test = harness::or_skip!(CommandTest::new());
    let deployment = |name: &str| {
        deployment("held", "strategy: {type: Recreate}")
            .replace("NAMESPACE", test.namespace)
            .replace("web", name)
    };
    let holder = deployment("holder");
    test.plane.apply(test.namespace, &holder);
    for (what, manifest, expected) in [
        ("another one", deployment("other"), &["workloads-share-volume"][..]),
        ("the one that is there", holder, &[]),
    ] {
        std::fs::write(test.folder.path().join("manifest.yaml"), manifest).unwrap();
        let live = test.check(&["manifest.yaml", "--cluster"]);
        let findings = live["findings"].as_array().unwrap();
        let found: Vec<&Value> = findings.iter().map(|finding| &finding["rule"]).collect();
        assert_eq!(found, expected, "{what}");
    }
}

#[test]
fn a_snapshot_holds_what_decides_and_no_more() {
    let test = harness::or_skip!(CommandTest::new());
    let written = test.run(&["snapshot", "--context", "test"]);
    let snapshot = out(&written);
    for part in [
        "kind: StorageClass",
        "kind: CSIDriver",
        "kind: Node",
        "kind: PersistentVolume",
        "kind: PersistentVolumeClaim",
        "name: alone",
        "tier: fast",
        "password: REDACTED",
    ] {
        has(snapshot, part);
    }
    for part in [
        "hunter2",
        "value-of-the-secret",
        "hidden",
        "image-of-a-pod",
        "managedFields",
        "last-applied-configuration",
        "handle-of-the-volume",
        "uid",
    ] {
        assert!(!snapshot.contains(part), "{part:?} does not belong in\n{snapshot}");
    }

    std::fs::write(test.folder.path().join("facts.yaml"), snapshot).unwrap();
    for format in ["text", "json"] {
        let live = test.run(&["capabilities", "-o", format]);
        let offline = test.run(&["capabilities", "--facts", "facts.yaml", "--format", format]);
        assert_eq!(out(&live), out(&offline), "{format}");
    }
    let text = test.run(&["capabilities", "--as=root", "--as-group=system:masters"]);
    for part in ["disk (disk.csi.example.com, in no catalog)\n", "share (efs.csi.aws.com, "] {
        has(out(&text), part);
    }
}

#[test]
fn a_snapshot_is_written_in_full_or_not_at_all() {
    let test = harness::or_skip!(CommandTest::new());
    let nowhere = test.run(&["snapshot", "--output-file", "no/such/folder.yaml"]);
    assert_eq!(nowhere.status.code(), Some(2));
    begins(err(&nowhere), "The snapshot could not be written to no/such/folder.yaml: ");

    let nobody = test.plane.kubeconfig_as("nobody", &[]);
    let old = test.folder.path().join("old.yaml");
    std::fs::write(&old, "# kept\n").unwrap();
    // The name of the option until 0.1.0.
    let snapshot = ["snapshot", "--output", "old.yaml"];
    let forbidden = run(test.folder.path(), &nobody, &snapshot, "");
    assert_eq!(forbidden.status.code(), Some(2));
    has(err(&forbidden), "Grant it the verbs get, list and watch on ");
    assert_eq!(std::fs::read_to_string(old).unwrap(), "# kept\n");
}

/// For a manifest from standard input, the program prints a patch instead of editing a file.
#[test]
fn kustomize_applies_the_patch() {
    let test = harness::or_skip!(CommandTest::new());
    let path = |name: &str| test.folder.path().join(name);
    let write = |name: &str, text: &str| std::fs::write(path(name), text).unwrap();
    let surges = "{strategy: {rollingUpdate: {maxSurge: 2, maxUnavailable: 0}}, template: {spec: {affinity: {podAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: {topologyKey: topology.kubernetes.io/zone, labelSelector: {matchLabels: {app: other}}}}]}}}}}";
    let rendered = deployment("bound", surges).replace("NAMESPACE", test.namespace);
    write("rendered.yaml", &rendered);
    write("kustomization.yaml", "resources: [rendered.yaml]\npatches: [{path: patch.yaml}]\n");
    let snapshot = test.run(&["snapshot", "--output-file", "snapshot.yaml"]);
    assert_eq!(snapshot.status.code(), Some(0), "{}", err(&snapshot));
    for remedy in ["recreate", "colocate"] {
        write("policy.yaml", &format!("defaults: {{remedy: {remedy}}}\n"));
        let common = ["check", "--facts=snapshot.yaml", "--config=policy.yaml"];
        let (folder, kubeconfig) = (test.folder.path(), test.plane.kubeconfig());
        let check = |arguments: &[&str], input: &str| {
            run(folder, kubeconfig, &[&common, arguments].concat(), input)
        };
        let patch = check(&["--diff", "-"], &rendered);
        begins(out(&patch), "---\n# A patch for Deployment ");
        write("patch.yaml", out(&patch));
        let build = ["kustomize", folder.to_str().unwrap()];
        let built = test.plane.kubectl(&build, None).success();
        let checked = check(&["-"], &built.stdout);
        assert_eq!(
            out(&checked),
            "No findings. 1 object checked in 1 file.\n",
            "{remedy}: {}",
            built.stdout
        );
    }
}

/// What bash would complete, by the printed script. A busy API server may take longer than a user
/// would wait for its namespaces, so they are asked for again.
#[test]
fn a_shell_completes_names_of_the_program_and_of_the_cluster() {
    let test = harness::or_skip!(CommandTest::new());
    let completed = |words: &str| {
        let script = format!(
            "source <(multi-attach-guard completion bash); COMP_WORDS=(multi-attach-guard {words}); \
             COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             _clap_complete_multi_attach_guard x \"${{COMP_WORDS[COMP_CWORD]}}\"; \
             echo \"${{COMPREPLY[@]}}\""
        );
        let output = test.plane.printed(&format!("exec bash -c '{script}'")).output().unwrap();
        assert_eq!((output.status.code(), err(&output)), (Some(0), ""), "{words}");
        out(&output).trim().to_owned()
    };
    for (words, expected) in [
        ("di", "diagnose"),
        // This command is hidden.
        ("dis", ""),
        ("rules rolling", "rolling-update-overlap"),
        ("check --remedy rec", "recreate"),
        ("audit --context te", "test"),
        ("audit --context none -n clus", ""),
        ("diagnose --context test -n clus", test.namespace),
        ("check -n clus", test.namespace),
    ] {
        let is_completed = || {
            let found = completed(words);
            let is_found = found.split(' ').any(|word| word == expected);
            if is_found { Ok(()) } else { Err(format!("\"{found}\"")) }
        };
        let what = format!("{expected:?} after {words:?}");
        harness::wait_until(&what, Duration::from_secs(60), is_completed).unwrap();
    }
}

#[test]
fn without_a_cluster_every_command_says_so() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.yaml"), "a: 1\n").unwrap();
    let port = harness::process::free_port();
    let refused = kubeconfig_of(([127, 0, 0, 1], port).into());
    let unanswered = folder.path().join("kubeconfig");
    std::fs::write(&unanswered, refused).unwrap();
    let absent = folder.path().join("absent");
    let broken = folder.path().join("broken");
    std::fs::write(&broken, "clusters: [").unwrap();
    let refusal = format!("The API server at http://127.0.0.1:{port}/ does not answer: ");
    for command in [
        &["snapshot"][..],
        &["capabilities"],
        &["audit"],
        &["diagnose"],
        &["check", "--cluster", "a.yaml"],
    ] {
        let with_context = [command, &["--context", "other"]].concat();
        let none =
            "Set KUBECONFIG to your kubeconfig: no cluster is known. The kubeconfig names none (";
        let no_context = "The context \"other\" cannot be used: ";
        for (kubeconfig, arguments, start) in [
            (&absent, command, none),
            (&broken, command, none),
            (&unanswered, command, &refusal),
            (&unanswered, &with_context, no_context),
        ] {
            let output = run(folder.path(), kubeconfig, arguments, "");
            assert_eq!(code(&output), 2, "{arguments:?}: {output:?}");
            begins(err(&output), start);
            assert_eq!(out(&output), "", "{arguments:?}");
        }
    }
}
