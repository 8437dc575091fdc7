//! `check`, `rules` and `capabilities`, run as users run them.

// Helpers of tests stand outside the functions clippy knows as tests.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

const CLASS: &str = "\
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: gp3}
provisioner: ebs.csi.aws.com
";

const CLAIM: &str = "\
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: gp3
";

const DEPLOYMENT: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  replicas: 1
  strategy:   # we like it rolling
    type: RollingUpdate
  template:
    spec:
      volumes:
        - name: data
          persistentVolumeClaim: {claimName: data}
";

/// A repository with these files in it.
fn repository(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join(".git")).unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

fn shop() -> TempDir {
    repository(&[
        ("deploy/class.yaml", CLASS),
        ("deploy/web.yaml", DEPLOYMENT),
        ("deploy/z/claim.yaml", CLAIM),
    ])
}

fn run_with(folder: &Path, arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_multi-attach-guard"))
        .args(arguments)
        .current_dir(folder)
        .env_remove("KUBECONFIG")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    drop(stdin);
    child.wait_with_output().unwrap()
}

fn run(folder: &TempDir, arguments: &[&str]) -> Output {
    run_with(folder.path(), arguments, "")
}

fn out(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

fn err(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap()
}

fn code(output: &Output) -> i32 {
    output.status.code().expect("the program was not killed")
}

fn findings(output: &Output) -> Vec<Value> {
    let report: Value = serde_json::from_str(out(output)).unwrap();
    report["findings"].as_array().unwrap().clone()
}

#[test]
fn facts_are_found_in_any_order_and_the_line_is_named() {
    let output = run(&shop(), &["check", "deploy", "--format", "json"]);
    let findings = findings(&output);
    assert_eq!(code(&output), 1, "{}", err(&output));
    assert_eq!(findings.len(), 1, "{findings:?}");
    let finding = &findings[0];
    assert_eq!(finding["rule"], "rolling-update-overlap");
    assert_eq!(finding["outcome"], "deadlock");
    assert_eq!(finding["action"], "deny");
    assert_eq!(
        (&finding["file"], &finding["line"], &finding["column"]),
        (&json!("deploy/web.yaml"), &json!(7), &json!(3))
    );
    assert_eq!(
        finding["object"],
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"})
    );
    assert_eq!(finding["remedies"][0]["name"], "recreate");
}

#[test]
fn text_underlines_the_field() {
    let output = run(&shop(), &["check", "deploy"]);
    let text = out(&output);
    for part in [
        "error[rolling-update-overlap]: Deployment web: ",
        "--> deploy/web.yaml:7:3",
        "7 |   strategy:   # we like it rolling",
        "|   ^^^^^^^^",
        "remedy recreate: ",
        "1 error. 2 objects judged in 3 files, 1 used as facts.",
    ] {
        assert!(text.contains(part), "{part:?} is missing in\n{text}");
    }
    assert!(!text.contains('\x1b'), "no colours outside of a terminal");
}

#[test]
fn exit_codes_say_what_happened() {
    let fine = DEPLOYMENT.replace("RollingUpdate", "Recreate");
    let warned = DEPLOYMENT.replace("claimName: data", "claimName: elsewhere");
    let table: [(&str, &str, &[&str], i32); 8] = [
        ("clean", &fine, &[], 0),
        ("an error", DEPLOYMENT, &[], 1),
        ("a warning", &warned, &[], 0),
        ("a warning that counts", &warned, &["--fail-on", "warn"], 1),
        ("not YAML", "a: [1", &[], 2),
        (
            "a wrong field",
            &DEPLOYMENT.replace("replicas: 1", "replicas: [1]"),
            &[],
            2,
        ),
        ("an unknown option", &fine, &["--what"], 2),
        ("fix and diff at once", &fine, &["--fix", "--diff"], 2),
    ];
    for (name, text, options, expected) in table {
        let folder = repository(&[("a.yaml", CLASS), ("b.yaml", CLAIM), ("c.yaml", text)]);
        let mut arguments = vec!["check", "."];
        arguments.extend(options);
        let output = run(&folder, &arguments);
        assert_eq!(
            code(&output),
            expected,
            "{name}: {}{}",
            out(&output),
            err(&output)
        );
    }
    let nowhere = run(&shop(), &["check", "nowhere"]);
    assert_eq!(code(&nowhere), 2);
    assert!(err(&nowhere).starts_with("nowhere: This cannot be read: "));
}

#[test]
fn what_cannot_be_read_is_named_and_the_rest_is_checked() {
    let folder = repository(&[
        ("class.yaml", CLASS),
        ("claim.yaml", CLAIM),
        ("web.yaml", DEPLOYMENT),
        ("broken.yaml", "a: 1\nb: [1"),
        ("template.yaml", "kind: Pod\n{{- if .Values.x }}\n"),
        (
            "typed.yaml",
            "---\n---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: t}\nspec:\n  replicas: three\n",
        ),
    ]);
    let output = run(&folder, &["check", ".", "--format", "json"]);
    assert_eq!(code(&output), 2);
    assert_eq!(findings(&output).len(), 1);
    let messages: Vec<&str> = err(&output).lines().collect();
    let expected = [
        "broken.yaml:2:4: This is not valid YAML: unclosed bracket '['.",
        "template.yaml:2:1: This is a Helm template that has not been rendered;",
        "typed.yaml:7:13: This Deployment cannot be read: invalid type: string \"three\",",
    ];
    assert_eq!(messages.len(), expected.len(), "{messages:#?}");
    for (message, start) in messages.iter().zip(expected) {
        assert!(message.starts_with(start), "{message}");
    }
}

#[test]
fn standard_input_is_read_and_names_the_template() {
    let rendered =
        format!("---\n# Source: shop/templates/web.yaml\n{DEPLOYMENT}---\n{CLAIM}---\n{CLASS}");
    let folder = shop();
    let output = run_with(
        folder.path(),
        &["check", "-", "--format", "json"],
        &rendered,
    );
    let findings = findings(&output);
    assert_eq!(findings[0]["template"], "shop/templates/web.yaml");
    assert_eq!(
        (&findings[0]["file"], &findings[0]["line"]),
        (&json!("-"), &json!(9))
    );

    let output = run_with(
        folder.path(),
        &["check", "-", "--format", "github"],
        &rendered,
    );
    assert!(
        out(&output)
            .starts_with("::error file=shop/templates/web.yaml,title=rolling-update-overlap::"),
        "{}",
        out(&output)
    );
}

#[test]
fn paths_in_sarif_start_at_the_root_of_the_repository() {
    let folder = shop();
    let deploy = folder.path().join("deploy");
    let output = run_with(&deploy, &["check", ".", "--format", "sarif"], "");
    let sarif: Value = serde_json::from_str(out(&output)).unwrap();
    let location = &sarif["runs"][0]["results"][0]["locations"][0];
    assert_eq!(
        location["physicalLocation"]["artifactLocation"]["uri"],
        "deploy/web.yaml"
    );
}

#[test]
fn junit_names_every_object() {
    let output = run(&shop(), &["check", "deploy", "--format", "junit"]);
    let xml = out(&output);
    for part in [
        "tests=\"2\" failures=\"1\" errors=\"0\" skipped=\"0\"",
        "<testcase name=\"Deployment web\"",
        "<failure type=\"rolling-update-overlap\"",
        "<testcase name=\"PersistentVolumeClaim data\"",
    ] {
        assert!(xml.contains(part), "{part:?} is missing in\n{xml}");
    }
}

#[test]
fn other_kinds_are_counted_and_skipped() {
    let folder = repository(&[
        (
            "crd.yaml",
            "apiVersion: example.com/v1\nkind: Deployment\nmetadata: {name: odd}\nspec: [1]\n",
        ),
        (
            "service.yaml",
            "apiVersion: v1\nkind: Service\nmetadata: {name: s}\n",
        ),
        ("values.yaml", "replicaCount: 1\n"),
    ]);
    let output = run(&folder, &["check", ".", "--format", "json"]);
    assert_eq!(code(&output), 0);
    let report: Value = serde_json::from_str(out(&output)).unwrap();
    assert_eq!(
        report["summary"]["skipped"],
        json!({"Deployment": 1, "Service": 1})
    );
    assert_eq!(report["summary"]["others"], 1);
}

#[test]
fn a_suppression_needs_a_reason_and_is_counted() {
    let annotated = |annotations: &str| {
        DEPLOYMENT.replace(
            "metadata:\n  name: web\n",
            &format!("metadata:\n  name: web\n  annotations:\n{annotations}"),
        )
    };
    let ignore = "    multi-attach-guard.dev/ignore: rolling-update-overlap\n";
    let reason = "    multi-attach-guard.dev/reason: one node for now\n";
    let check = |annotations: &str| {
        let text = annotated(annotations);
        let folder = repository(&[("a.yaml", CLASS), ("b.yaml", CLAIM), ("c.yaml", &text)]);
        run(&folder, &["check", "."])
    };
    let silent = check(&format!("{ignore}{reason}"));
    assert_eq!(code(&silent), 0);
    assert!(
        out(&silent).starts_with("No findings; 1 suppressed."),
        "{}",
        out(&silent)
    );

    let unexplained = check(ignore);
    assert_eq!(code(&unexplained), 1);
    assert!(
        out(&unexplained).contains("add multi-attach-guard.dev/reason to say why"),
        "{}",
        out(&unexplained)
    );
}

#[test]
fn the_policy_of_the_repository_holds_everywhere_in_it() {
    let folder = shop();
    let policy = "defaults:\n  outcomes:\n    deadlock: warn\n";
    fs::write(folder.path().join(".multi-attach-guard.yaml"), policy).unwrap();
    let deploy = folder.path().join("deploy");
    let output = run_with(&deploy, &["check", ".", "--format", "json"], "");
    assert_eq!(findings(&output)[0]["action"], "warn");
    assert_eq!(code(&output), 0);

    let strict = folder.path().join("strict.yaml");
    fs::write(&strict, "defaults: {}\n").unwrap();
    let output = run_with(&deploy, &["check", ".", "--config", "../strict.yaml"], "");
    assert_eq!(
        code(&output),
        1,
        "--config comes before the repository's policy"
    );

    fs::write(&strict, "defaults:\n  outcome: {}\n").unwrap();
    let output = run_with(&deploy, &["check", ".", "--config", "../strict.yaml"], "");
    assert_eq!(code(&output), 2);
    assert!(
        err(&output).contains("strict.yaml:2:3: "),
        "{}",
        err(&output)
    );
}

#[test]
fn facts_come_from_a_snapshot_too() {
    let folder = repository(&[
        ("web.yaml", DEPLOYMENT),
        ("facts/all.yaml", &format!("{CLASS}---\n{CLAIM}")),
    ]);
    let without = run(&folder, &["check", "web.yaml", "--format", "json"]);
    assert_eq!(findings(&without)[0]["rule"], "unresolved-claim");
    let with = run(
        &folder,
        &["check", "web.yaml", "--facts", "facts", "--format", "json"],
    );
    assert_eq!(findings(&with)[0]["rule"], "rolling-update-overlap");
    let report: Value = serde_json::from_str(out(&with)).unwrap();
    assert_eq!(report["summary"]["judged"], 1, "facts are not judged");
    let wrong = run(&folder, &["check", "web.yaml", "--facts", "nowhere"]);
    assert_eq!(code(&wrong), 2);
}

#[test]
fn files_are_repaired_in_place_and_then_silent() {
    let folder = shop();
    let fixed = run(&folder, &["check", "deploy", "--fix"]);
    assert_eq!(code(&fixed), 0, "{}", err(&fixed));
    let web = fs::read_to_string(folder.path().join("deploy/web.yaml")).unwrap();
    assert_eq!(web, DEPLOYMENT.replace("RollingUpdate", "Recreate"));
    assert!(err(&fixed).starts_with("deploy/web.yaml: repaired Deployment web with recreate.\n"));
    assert_eq!(out(&fixed), "", "no patch is left to apply by hand");
    let left: Vec<_> = fs::read_dir(folder.path().join("deploy"))
        .unwrap()
        .collect();
    assert_eq!(left.len(), 3, "no other file is left behind");

    let again = run(&folder, &["check", "deploy"]);
    assert_eq!(code(&again), 0);
    assert!(out(&again).starts_with("No findings. "));
}

#[cfg(unix)]
#[test]
fn a_repaired_file_keeps_its_permissions_and_its_link() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = shop();
    let real = folder.path().join("deploy/web.yaml");
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
    let link = folder.path().join("deploy/aaa.yaml");
    symlink("web.yaml", &link).unwrap();
    let fixed = run(&folder, &["check", "deploy", "--fix"]);
    assert_eq!(code(&fixed), 0, "{}", err(&fixed));
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(
        fs::metadata(&real).unwrap().permissions().mode() & 0o777,
        0o640
    );
    assert!(
        fs::read_to_string(&real)
            .unwrap()
            .contains("type: Recreate")
    );
}

#[test]
fn a_diff_changes_nothing() {
    let folder = shop();
    let output = run(&folder, &["check", "deploy", "--diff"]);
    assert_eq!(
        out(&output),
        "--- a/deploy/web.yaml\n+++ b/deploy/web.yaml\n@@ -5,7 +5,7 @@\n spec:\n   replicas: 1\n   strategy:   # we like it rolling\n-    type: RollingUpdate\n+    type: Recreate\n   template:\n     spec:\n       volumes:\n"
    );
    assert_eq!(code(&output), 1);
    let web = fs::read_to_string(folder.path().join("deploy/web.yaml")).unwrap();
    assert_eq!(web, DEPLOYMENT);
}

#[test]
fn what_was_rendered_gets_a_patch_for_kustomize() {
    let patch = "\
---
# A patch for Deployment web, rendered from shop/templates/web.yaml.
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  strategy:
    type: Recreate
";
    let rendered = format!("---\n# Source: shop/templates/web.yaml\n{DEPLOYMENT}");
    let folder = repository(&[
        ("facts.yaml", &format!("{CLASS}---\n{CLAIM}")),
        ("all.yaml", &rendered),
    ]);
    let piped = run_with(
        folder.path(),
        &["check", "-", "facts.yaml", "--fix"],
        &rendered,
    );
    assert_eq!(out(&piped), patch);
    let file = run(&folder, &["check", "all.yaml", "facts.yaml", "--fix"]);
    assert_eq!(out(&file), patch, "a rendered file is not edited");
    assert_eq!(
        fs::read_to_string(folder.path().join("all.yaml")).unwrap(),
        rendered
    );
}

#[test]
fn what_others_share_is_not_edited_but_patched() {
    let shared = format!("{DEPLOYMENT}x: &s\n  type: RollingUpdate\n").replace(
        "  strategy:   # we like it rolling\n    type: RollingUpdate\n",
        "  strategy: &how\n    type: RollingUpdate\n  also: *how\n",
    );
    let folder = repository(&[("a.yaml", CLASS), ("b.yaml", CLAIM), ("c.yaml", &shared)]);
    let output = run(&folder, &["check", ".", "--fix"]);
    assert_eq!(code(&output), 2);
    assert!(
        err(&output).contains("c.yaml: Deployment web is not edited: "),
        "{}",
        err(&output)
    );
    assert!(
        out(&output).contains("  strategy:\n    type: Recreate\n"),
        "{}",
        out(&output)
    );
    assert_eq!(
        fs::read_to_string(folder.path().join("c.yaml")).unwrap(),
        shared
    );
}

#[test]
fn rules_explain_themselves() {
    let folder = shop();
    let list = run(&folder, &["rules"]);
    assert_eq!(
        out(&list).lines().count(),
        multi_attach_guard::rules::RULES.len()
    );
    let one = run(&folder, &["rules", "single-pod-volume"]);
    assert!(
        out(&one).starts_with("# single-pod-volume\n\n"),
        "{}",
        out(&one)
    );
    let unknown = run(&folder, &["rules", "nope"]);
    assert_eq!(code(&unknown), 2);
    assert!(err(&unknown).starts_with("There is no rule \"nope\". The rules are: "));
}

#[test]
fn capabilities_are_told_per_class() {
    let folder = shop();
    let text = run(&folder, &["capabilities", "--facts", "deploy"]);
    for part in [
        "gp3 (ebs.csi.aws.com, AWS Elastic Block Store (CSI))\n",
        "  Filesystem  ReadWriteOnce, ReadWriteOncePod\n",
        "ReadWriteMany: possible only when StorageClass parameter \"type\" is \"io2\"\n",
    ] {
        assert!(
            out(&text).contains(part),
            "{part:?} is missing in\n{}",
            out(&text)
        );
    }
    let json = run(
        &folder,
        &["capabilities", "--facts", "deploy", "--format", "json"],
    );
    let json: Value = serde_json::from_str(out(&json)).unwrap();
    assert_eq!(json["classes"][0]["class"], "gp3");
    assert_eq!(code(&run(&folder, &["capabilities"])), 2);
}

#[test]
fn packages_get_completions_and_manual_pages() {
    let folder = shop();
    assert_eq!(code(&run(&folder, &["dist", "dist"])), 0);
    for (file, part) in [
        ("completions/multi-attach-guard.bash", "--fail-on"),
        ("completions/_multi-attach-guard", "--fail-on"),
        ("man/multi-attach-guard-check.1", "fail\\-on"),
    ] {
        let text = fs::read_to_string(folder.path().join("dist").join(file)).unwrap();
        assert!(text.contains(part), "{file}");
    }
}
