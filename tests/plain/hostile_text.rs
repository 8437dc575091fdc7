//! Tests the pipeline's log when a pull request puts hostile text into names, reasons, kinds and
//! file names: both streams, in every format.

use std::fs;

use crate::output::{err, fed, out, program};
use report::Format;

const HOSTILE: &str =
    r"a\n::stop-commands::x\r::error::y\e[2J##[add-mask]z##vso[task.complete]\u202e\uFFFE";

/// Checks that no line is a pipeline command, and that no character moves a cursor or hides text.
fn assert_safe(what: &str, text: &str, is_own: impl Fn(&str) -> bool) {
    for line in text.lines().filter(|line| !is_own(line)) {
        assert!(!line.trim_start().starts_with("::"), "{what}: {line:?}");
    }
    for forbidden in ["\u{1b}", "\r", "\u{202e}", "\u{fffe}", "##[", "##vso["] {
        assert!(!text.contains(forbidden), "{what}, {forbidden:?}: {text:?}");
    }
}

fn manifests() -> String {
    format!(
        r#"apiVersion: v1
kind: PersistentVolumeClaim
metadata: {{name: "data{HOSTILE}"}}
spec: {{accessModes: [ReadWriteOnce], storageClassName: "{HOSTILE}"}}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: "{HOSTILE}"
  annotations:
    multi-attach-guard.dev/ignore: "{HOSTILE}"
    multi-attach-guard.dev/reason: "{HOSTILE}"
spec:
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec:
      volumes: [{{name: v, persistentVolumeClaim: {{claimName: "data{HOSTILE}"}}}}]
      containers: [{{name: c, volumeMounts: [{{name: v, mountPath: /v}}]}}]
---
apiVersion: v1
kind: "{HOSTILE}"
metadata: {{name: "{HOSTILE}"}}
"#
    )
}

#[test]
fn no_pull_request_commands_the_pipeline() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("web.yaml", &manifests());
    write("::error::\n::warning::x\u{1b}[2J.yaml", &manifests());
    write("::debug::\n::set-output name=x::.yaml", "apiVersion: v1\nkind: Pod\nspec: *nowhere\n");
    for (format, _) in Format::ALL.map(Format::documented) {
        let mut check = program(&["check", "--format", format, "."]);
        let output = check.current_dir(folder.path()).output().unwrap();
        let [out, log] =
            [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        assert!(out.contains("rolling-update-overlap"), "{format}: {out}");
        assert!(log.contains("not valid YAML"), "{format}: {log}");
        let ours = |line: &str| {
            format == "github"
                && ["error", "warning", "notice"]
                    .iter()
                    .any(|command| line.starts_with(&format!("::{command} ")))
        };
        assert_safe(format, &out, ours);
        assert_safe(format, &log, |_| false);
    }
}

/// The output of `--diff` and `--fix`, and of other commands that print text from files.
#[test]
fn no_command_repeats_what_commands_the_pipeline() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    // This text is next to the strategy, so that it is part of the diff.
    let raw = "::stop-commands::x ##[group]y \u{202e}";
    let web = |claim: &str| {
        format!(
            "apiVersion: apps/v1
kind: Deployment
metadata: {{name: web}}
spec:
  selector: {{matchLabels: {{app: web}}}}
  ::error::x: {raw}
  strategy: {{type: RollingUpdate}}
  ::warning::x: \"{HOSTILE}\"
  template:
    metadata: {{labels: {{app: web}}}}
    spec:
      volumes: [{{name: v, persistentVolumeClaim: {{claimName: {claim}}}}}]
      containers: [{{name: c, volumeMounts: [{{name: v, mountPath: /v}}]}}]
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {{name: {claim}}}
spec: {{accessModes: [ReadWriteOnce], storageClassName: gp3}}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {{name: gp3}}
provisioner: ebs.csi.aws.com
"
        )
    };
    write("web.yaml", &web("data"));
    write("::error::\n::warning::x\u{1b}[2J.yaml", &web("more"));
    write(
        "facts.yaml",
        &format!(
            "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {{name: \"{HOSTILE}\"}}\nprovisioner: \"{HOSTILE}\"\nparameters: {{type: \"{HOSTILE}\"}}\n"
        ),
    );
    let piped = web("data");
    for (arguments, expected) in [
        (&["check", "--diff", "web.yaml"][..], "type: Recreate"),
        (&["check", "--diff", "."], "cannot be applied"),
        (&["check", "--diff", "-"], "type: Recreate"),
        (&["check", "--summary", "."], "2"),
        (&["capabilities", "--facts", "facts.yaml"], "stop-commands"),
        (&["capabilities", "--facts", "facts.yaml", "--format", "json"], "stop-commands"),
        (&["check", "--config", "::error::\u{1b}[2J", "."], "cannot be read"),
        (&["check", "--facts", "::error::\u{1b}[2J", "."], "error"),
        (&["check", "--fix", "."], "repaired"),
    ] {
        let output = fed(program(arguments).current_dir(folder.path()), &piped);
        let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        assert!(said.concat().contains(expected), "{arguments:?}: {said:?}");
        for text in &said {
            assert_safe(&format!("{arguments:?}"), text, |_| false);
        }
    }
    // A filter gives other programs what it got.
    let filter = fed(program(&["check", "--fix", "-"]).current_dir(folder.path()), &piped);
    assert_eq!(out(&filter), piped.replace("RollingUpdate", "Recreate"));
    assert_safe("a filter", err(&filter), |_| false);
}
