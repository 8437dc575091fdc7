//! What a pull request puts into names, reasons, kinds and file names, as the pipeline's
//! log gets to see it: both streams, in every format.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "in a test, the panic and its message are the report"
)]
#![cfg(unix)]

use std::fs;
use std::process::Command;

const HOSTILE: &str =
    r"a\n::stop-commands::x\r::error::y\e[2J##[add-mask]z##vso[task.complete]\u202e\uFFFE";

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
    write(
        "::debug::\n::set-output name=x::.yaml",
        "apiVersion: v1\nkind: Pod\nspec: *nowhere\n",
    );
    for format in [
        "text",
        "concise",
        "json",
        "sarif",
        "junit",
        "github",
        "markdown",
        "html",
        "openreports",
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_multi-attach-guard"))
            .args(["check", "--format", format, "."])
            .current_dir(folder.path())
            .output()
            .unwrap();
        let [out, log] = [output.stdout, output.stderr].map(|it| String::from_utf8(it).unwrap());
        assert!(out.contains("rolling-update-overlap"), "{format}: {out}");
        assert!(log.contains("not valid YAML"), "{format}: {log}");
        let ours = |line: &str| {
            format == "github"
                && ["error", "warning", "notice"]
                    .iter()
                    .any(|it| line.starts_with(&format!("::{it} ")))
        };
        for line in out.lines().filter(|line| !ours(line)).chain(log.lines()) {
            assert!(!line.trim_start().starts_with("::"), "{format}: {line:?}");
        }
        for text in [&out, &log] {
            for forbidden in ["\u{1b}", "\r", "\u{202e}", "\u{fffe}", "##[", "##vso["] {
                assert!(
                    !text.contains(forbidden),
                    "{format}, {forbidden:?}: {text:?}"
                );
            }
        }
    }
}
