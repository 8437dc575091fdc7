//! Charts and kustomizations, rendered by the real helm and the real kustomize.

use std::fs;
use std::path::Path;
use std::process::Output;

use serde_json::Value;
use tempfile::TempDir;

use super::cases::texts;
use super::{CLAIM, CLASS, fed, has, on_path, out, program, repository, script};
use crate::programs::{Located, locate, quick};

/// A folder for a PATH, with links to these programs; `helm3` is called `helm` there. `None` if the
/// machine cannot compile our programs, after printing the reason.
pub(super) fn tools(names: &[&str]) -> Option<TempDir> {
    if quick() {
        eprintln!("helm and kustomize are for `make test-all`.");
        return None;
    }
    let programs = match locate() {
        Located::Found(programs) => programs,
        Located::Missing(reason) if std::env::var_os("CI").is_none() => {
            eprintln!("SKIPPED: {reason}");
            return None;
        }
        Located::Missing(reason) | Located::Failed(reason) => panic!("{reason}"),
    };
    let folder = tempfile::tempdir().unwrap();
    let path = std::env::var_os("PATH").unwrap_or_default();
    for name in names {
        let others = std::env::split_paths(&path).map(|place| place.join(name));
        let program = std::iter::once(programs.path(name))
            .chain(others)
            .find(|file| file.exists())
            .unwrap_or_else(|| panic!("there is no {name}"));
        let called = if *name == "helm3" { "helm" } else { name };
        std::os::unix::fs::symlink(program, folder.path().join(called)).unwrap();
    }
    Some(folder)
}

/// Runs `check` with these arguments.
pub(super) fn check(folder: &TempDir, path: &Path, arguments: &str) -> Output {
    check_with(folder, path, &[], arguments)
}

/// Runs `check` with these arguments and environment variables.
pub(super) fn check_with(
    folder: &TempDir,
    path: &Path,
    variables: &[(&str, &str)],
    arguments: &str,
) -> Output {
    let mut check = program(&["check"]);
    check.args(arguments.split(' ')).envs(variables.iter().copied());
    fed(on_path(&mut check, folder.path(), path), "")
}

/// The findings without their lines, then everything that was not opened, with the reasons.
pub(super) fn reported(report: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let findings = report["findings"].as_array().unwrap().iter();
    let mut reported: Vec<String> = findings
        .map(|finding| {
            let [namespace, name] = ["namespace", "name"].map(|key| text(&finding["object"][key]));
            format!("{namespace}/{name} {} {}", text(&finding["file"]), text(&finding["template"]))
        })
        .collect();
    reported.sort();
    reported.extend(texts(report, "unopened", &["kind", "path", "reason"]));
    reported
}

pub(super) const WEB: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  selector: {matchLabels: {app: web}}
  strategy:
    type: RollingUpdate
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: web, volumeMounts: [{name: data, mountPath: /data}]}]
      volumes:
        - name: data
          persistentVolumeClaim: {claimName: data}
";

pub(super) const CHART: &str = "apiVersion: v2\nname: shop\nversion: 1.0.0\n";

pub(super) fn class_and_claim() -> String {
    format!("{CLASS}---\n{CLAIM}")
}

#[test]
fn a_program_that_hangs_is_stopped_and_the_rest_is_judged() {
    let bin = tempfile::tempdir().unwrap();
    let all = class_and_claim();
    let folder = repository(&[
        ("chart/Chart.yaml", CHART),
        ("app/kustomization.yaml", "resources: [web.yaml, claim.yaml]\n"),
        ("app/web.yaml", WEB),
        ("app/claim.yaml", &all),
    ]);
    let mark = format!("100000.{}", std::process::id());
    let sleeps = format!("#!/bin/sh\n/bin/sleep {mark} &\nwait\n");
    script(&bin.path().join("helm"), &sleeps);
    script(&bin.path().join("kustomize"), "#!/bin/sh\nexec /usr/bin/yes\n");
    let output = check(&folder, bin.path(), ". --render-timeout 1");
    // Its child process ends with it.
    while is_running(&mark) {
        std::thread::yield_now();
    }
    let text = out(&output);
    has(text, "helm was still running after 1 s and was stopped");
    has(text, "The kustomization app was not rendered: kustomize ");
    // The files are checked as they are.
    assert!(text.contains("error[rolling-update-overlap]"), "{text}");
}

/// Whether a process has the word on its command line.
fn is_running(word: &str) -> bool {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    lines.any(|line| line.split(|byte| *byte == 0).any(|argument| argument == word.as_bytes()))
}

/// Rendering uses nothing of the user: no plugins, repositories or network, and no variables in
/// which pipelines keep secrets.
#[test]
fn what_renders_is_on_its_own() {
    let bin = tempfile::tempdir().unwrap();
    let folder = repository(&[("chart/Chart.yaml", CHART)]);
    // The program prints the problems, because it cannot write files.
    let text = "#!/bin/sh\n\
        said=\n\
        seen=$(env)\n\
        for word in /plugins mine /secret hunter2 /home/me; do\n\
          case $seen in *$word*) said=\"$said $word\";; esac\n\
        done\n\
        [ -z \"$(ls \"$HELM_PLUGINS\")\" ] || said=\"$said plugins\"\n\
        echo \"Error: seen:$said; $HTTPS_PROXY $GIT_ALLOW_PROTOCOL\" >&2\n\
        exit 1\n";
    script(&bin.path().join("helm"), text);
    let variables = [
        ("HELM_PLUGINS", "/plugins"),
        ("HELM_NAMESPACE", "mine"),
        ("KUBECONFIG", "/secret"),
        ("GITHUB_TOKEN", "hunter2"),
        ("HOME", "/home/me"),
    ];
    let path = format!("{}:/usr/bin:/bin", bin.path().display());
    let output = check_with(&folder, Path::new(&path), &variables, ".");
    let expected = "helm says: seen:; http://127.0.0.1:9 none.";
    assert!(out(&output).contains(expected), "{output:?}");
}
