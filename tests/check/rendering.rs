//! Charts and kustomizations, rendered by the real helm and the real kustomize.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use super::cases::texts;
use super::{CLAIM, CLASS, borrowed, fed, has, on_path, out, program, report, repository, script};
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

/// Nobody can know which of them run at the same time, but all of them share the time.
#[test]
fn the_limit_of_time_holds_for_all_together() {
    let bin = tempfile::tempdir().unwrap();
    script(&bin.path().join("helm"), "#!/bin/sh\nexec /bin/sleep 100000\n");
    let files = ["a", "b", "c", "d", "e", "f"]
        .map(|chart| (format!("{chart}/Chart.yaml"), CHART.to_owned()));
    let folder = repository(&borrowed(&files));
    let output = check(&folder, bin.path(), ". --format json --render-timeout 1");
    let reasons = reported(&report(&output));
    let [slow, late] = ["was still running after ", "all rendering together may take 1 s"]
        .map(|part| reasons.iter().filter(|reason| reason.contains(part)).count());
    assert_eq!(slow + late, files.len(), "{reasons:#?}");
    assert!(slow >= 1 && late >= 2, "{reasons:#?}");
}

/// A user at a terminal sees that helm hangs, and presses Ctrl-C. The second program that the script
/// starts would hang as well.
#[test]
fn an_interrupt_ends_rendering_and_prints_the_findings() {
    let bin = tempfile::tempdir().unwrap();
    let all = class_and_claim();
    let folder = repository(&[
        ("a/Chart.yaml", CHART),
        ("b/Chart.yaml", CHART),
        ("web.yaml", WEB),
        ("claim.yaml", &all),
    ]);
    script(&bin.path().join("helm"), "#!/bin/sh\nexec /bin/sleep 100000\n");
    let program = program(&[]);
    let line = format!("exec {} check .", program.get_program().display());
    let mut terminal = Command::new("/usr/bin/script");
    terminal.args(["-qec", &line, "/dev/null"]).env("NO_COLOR", "1");
    let child = on_path(&mut terminal, folder.path(), bin.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut child) = child else {
        eprintln!("SKIPPED: this machine has no terminal for programs.");
        return;
    };
    let (mut keys, mut screen) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let (mut seen, mut bytes, mut is_pressed) = (String::new(), [0; 1024], false);
    while let Ok(length) = screen.read(&mut bytes)
        && length > 0
    {
        seen += &String::from_utf8_lossy(&bytes[..length]);
        if !is_pressed && seen.contains("Rendered 0 of 2 in 2 s.") {
            keys.write_all(b"\x03").unwrap();
            is_pressed = true;
        }
    }
    has(&seen, "error[rolling-update-overlap]");
    has(&seen, "the run was interrupted");
    has(&seen, "The run was interrupted: the report covers what was rendered before.");
    assert_eq!(child.wait().unwrap().code(), Some(130), "{seen}");
}

/// A folder that a release delivers is first rendered by itself, from the same files.
#[test]
fn what_is_the_same_is_rendered_once() {
    let bin = tempfile::tempdir().unwrap();
    let flux = "\
        apiVersion: kustomize.toolkit.fluxcd.io/v1\n\
        kind: Kustomization\n\
        metadata: {name: app}\n\
        spec:\n  \
          path: ./app\n  \
          sourceRef: {kind: GitRepository, name: flux-system}\n  \
          postBuild: {substitute: {NAME: shop}}\n";
    let folder = repository(&[
        ("flux.yaml", flux),
        ("app/kustomization.yaml", "resources: [web.yaml]\n"),
        ("app/web.yaml", WEB),
    ]);
    let printed = WEB.replace("  name: web\n", "  name: ${NAME}\n");
    let text = format!(
        "#!/bin/sh\n\
        if [ -e \"$HOME/seen\" ]; then echo 'Error: once more' >&2; exit 1; fi\n\
        : > \"$HOME/seen\"\n\
        printf '%s' '{printed}'\n"
    );
    script(&bin.path().join("kustomize"), &text);
    let output = check(&folder, bin.path(), ". --format json");
    let seen = reported(&report(&output));
    assert!(matches!(&seen[..], [one] if one.starts_with("default/shop ")), "{seen:#?}");
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
