//! Charts and kustomizations, rendered by the real helm and the real kustomize.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{CLAIM, CLASS, code, err, out, repository};
use crate::programs::{Located, locate, quick};

/// A folder with links to these programs, for a PATH, in which `helm3` is called `helm`; `None` where the machine
/// has no means to compile them, which the test then says.
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
    for name in names {
        let program = programs.path(name);
        assert!(
            program.exists(),
            "there is no {name} in the folder of programs"
        );
        let called = folder
            .path()
            .join(if *name == "helm3" { "helm" } else { name });
        std::os::unix::fs::symlink(program, called).unwrap();
    }
    Some(folder)
}

pub(super) fn check(folder: &TempDir, path: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_multi-attach-guard"))
        .arg("check")
        .args(arguments)
        .current_dir(folder.path())
        .env("PATH", path)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

pub(super) fn report(output: &Output) -> Value {
    serde_json::from_str(out(output)).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// A finding in short: its object, file and line.
pub(super) fn found(report: &Value) -> Vec<String> {
    let mut found: Vec<String> = report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| {
            let namespace = it["object"]["namespace"].as_str().unwrap_or("-");
            let name = it["object"]["name"].as_str().unwrap();
            let (file, line) = (it["file"].as_str().unwrap(), &it["line"]);
            let from = it["template"].as_str().unwrap_or("-");
            format!("{namespace}/{name} {file}:{line} {from}")
        })
        .collect();
    found.sort();
    found
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

const TEMPLATE: &str = "\
{{- if .Values.enabled }}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}-{{ .Values.name }}
  namespace: {{ .Release.Namespace }}
spec:
  selector: {matchLabels: {app: web}}
  strategy:
    type: {{ .Values.strategy }}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: web, volumeMounts: [{name: data, mountPath: /data}]}]
      volumes:
        - name: data
          persistentVolumeClaim: {claimName: data}
{{- end }}
";

const VALUES: &str = "enabled: true\nname: web\nstrategy: RollingUpdate\n";

pub(super) fn class_and_claim() -> String {
    format!("{CLASS}---\n{CLAIM}")
}

#[test]
fn kustomizations_are_rendered_each_as_a_cluster_of_its_own() {
    let Some(bin) = tools(&["kustomize"]) else {
        return;
    };
    let base = class_and_claim();
    let folder = repository(&[
        (
            "base/kustomization.yaml",
            "resources: [web.yaml, claim.yaml]\n",
        ),
        ("base/web.yaml", WEB),
        ("base/claim.yaml", &base),
        (
            "dev/kustomization.yaml",
            "namespace: dev\nresources: [../base]\n",
        ),
        (
            "prod/kustomization.yaml",
            "namespace: prod\nnamePrefix: p-\nresources: [../base]\npatches: [{path: recreate.yaml}]\n",
        ),
        (
            "prod/recreate.yaml",
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {strategy: {type: Recreate, rollingUpdate: null}}\n",
        ),
    ]);
    let output = check(&folder, bin.path(), &[".", "--format", "json"]);
    let report = report(&output);
    assert_eq!(
        found(&report),
        ["dev/web base/web.yaml:7 dev"],
        "{report:#}"
    );
    assert_eq!(report["summary"]["rendered"], 2);
    assert_eq!(report["summary"]["unopened"], json!({}));
    assert_eq!(code(&output), 1);

    // What one overlay does not need, another does.
    let annotations = "metadata:\n  annotations: {multi-attach-guard.dev/ignore: rolling-update-overlap, multi-attach-guard.dev/reason: soon}\n  name: web\n";
    let silent = WEB.replace("metadata:\n  name: web\n", annotations);
    fs::write(folder.path().join("base/web.yaml"), silent).unwrap();
    let output = check(&folder, bin.path(), &[".", "--format", "json"]);
    let report = self::report(&output);
    assert_eq!(report["summary"]["suppressed"], 1, "{report:#}");
    assert_eq!(report["summary"]["notices"], 0, "{report:#}");
}

/// What decides about storage is often in a kustomization of its own.
#[test]
fn what_a_kustomization_lacks_is_taken_from_the_others_where_they_agree() {
    let Some(tools) = tools(&["kustomize"]) else {
        return;
    };
    let shop = |text: &str| {
        text.replace(
            "metadata: {name: data}",
            "metadata: {name: data, namespace: shop}",
        )
    };
    let web = WEB.replace("  name: web\n", "  name: web\n  namespace: shop\n");
    let claim = shop(CLAIM);
    let shared = claim.replace("ReadWriteOnce", "ReadWriteMany");
    let nfs = CLASS.replace("ebs.csi.aws.com", "nfs.csi.k8s.io");
    let judged = |files: &[(&str, &str)]| {
        let mut all = vec![("apps/web.yaml", web.as_str())];
        all.extend(files);
        let folder = repository(&all);
        let report = report(&check(&folder, tools.path(), &[".", "--format", "json"]));
        let list = |what: &str| report[what].as_array().cloned().unwrap_or_default();
        let findings = list("findings");
        let found: Vec<String> = findings
            .iter()
            .map(|it| {
                format!("{} {} {}", it["action"], it["certainty"], it["rule"]).replace('"', "")
            })
            .collect();
        let notices = list("notices");
        let reported: Vec<String> = notices
            .iter()
            .chain(&findings)
            .map(|it| it["message"].as_str().unwrap().to_owned())
            .collect();
        (found, reported.join("\n"))
    };
    let apps = (
        "apps/kustomization.yaml",
        "resources: [web.yaml, claim.yaml]\n",
    );
    let with_class = |class: &str| {
        judged(&[
            apps,
            ("apps/claim.yaml", &claim),
            ("infra/class.yaml", class),
        ])
    };
    assert_eq!(with_class(&nfs).0, [""; 0], "a class that is a plain file");
    assert_eq!(
        with_class(CLASS).0,
        ["deny verified rolling-update-overlap"]
    );
    let infra = ("infra/kustomization.yaml", "resources: [class.yaml]\n");
    let rendered = [
        apps,
        ("apps/claim.yaml", &claim),
        infra,
        ("infra/class.yaml", &nfs),
    ];
    assert_eq!(
        judged(&rendered).0,
        [""; 0],
        "a class that is rendered on its own"
    );

    let only_web = ("apps/kustomization.yaml", "resources: [web.yaml]\n");
    let data = ("data/kustomization.yaml", "resources: [claim.yaml]\n");
    let elsewhere = |class: &str, claim: &str| {
        judged(&[
            only_web,
            ("class.yaml", class),
            data,
            ("data/claim.yaml", claim),
        ])
    };
    let (found, _) = elsewhere(&nfs, &shared);
    assert_eq!(found, [""; 0], "a claim that is rendered on its own");
    let volume = "{apiVersion: v1, kind: PersistentVolume, metadata: {name: share}, spec: {accessModes: [ReadWriteMany], storageClassName: gp3, nfs: {server: nas, path: /}}}";
    let named = format!("{shared}  volumeName: share\n---\n{volume}\n");
    let (found, reported) = judged(&[only_web, data, ("data/claim.yaml", &named)]);
    assert_eq!(found, [""; 0], "with the volume that it names: {reported}");
    let (found, reported) = elsewhere(CLASS, &claim);
    assert_eq!(found, ["warn assumed rolling-update-overlap"]);
    assert!(reported.contains("The claim \"data\" was found in data, which is checked apart from this, so this is an assumption."), "{reported}");

    // What decides about a claim of another scope does not decide about one's own.
    let both = web.replace(
        "          persistentVolumeClaim: {claimName: data}\n",
        "          persistentVolumeClaim: {claimName: data}\n        - name: logs\n          persistentVolumeClaim: {claimName: logs}\n",
    );
    let logs = claim
        .replace("name: data", "name: logs")
        .replace("gp3", "std");
    let own = claim.replace("gp3", "std");
    let std = |class: &str| class.replace("name: gp3", "name: std");
    let files = [
        (
            "apps/kustomization.yaml",
            "resources: [both.yaml, claim.yaml, class.yaml]\n",
        ),
        ("apps/both.yaml", &both),
        ("apps/claim.yaml", &own),
        ("apps/class.yaml", &std(&nfs)),
        (
            "data/kustomization.yaml",
            "resources: [claim.yaml, class.yaml]\n",
        ),
        ("data/claim.yaml", &logs),
        ("data/class.yaml", &std(CLASS)),
    ];
    let folder = repository(&files);
    let output = check(&folder, tools.path(), &[".", "--format", "json"]);
    assert_eq!(
        report(&output)["findings"],
        json!([]),
        "both are of a class that is shared"
    );

    let more = ("more/kustomization.yaml", "resources: [claim.yaml]\n");
    let two = [
        only_web,
        ("class.yaml", &nfs),
        data,
        ("data/claim.yaml", &claim),
        more,
        ("more/claim.yaml", &shared),
    ];
    let (found, reported) = judged(&two);
    assert_eq!(found, ["warn assumed unresolved-claim"]);
    assert!(reported.contains("claim \"data\" is defined in data and more, which are checked apart from this and differ, so none of them is taken. Add the claim to the facts about the cluster."), "{reported}");
}

#[test]
fn kubectl_renders_where_there_is_no_kustomize() {
    let Some(bin) = tools(&["kubectl"]) else {
        return;
    };
    let folder = repository(&[
        (
            "kustomization.yaml",
            "namespace: shop\nresources: [web.yaml, claim.yaml]\n",
        ),
        ("web.yaml", WEB),
        ("claim.yaml", &class_and_claim()),
    ]);
    let output = check(&folder, bin.path(), &[".", "--format", "json"]);
    assert_eq!(found(&report(&output)), ["shop/web web.yaml:7 ."]);
}

#[test]
fn charts_are_rendered_with_their_values_and_those_given() {
    let Some(bin) = tools(&["helm"]) else { return };
    let folder = repository(&[
        ("charts/shop/Chart.yaml", CHART),
        ("charts/shop/values.yaml", VALUES),
        ("charts/shop/templates/web.yaml", TEMPLATE),
        ("charts/shop/templates/claim.yaml", &class_and_claim()),
        ("more.yaml", "name: api\n"),
    ]);
    let place = "charts/shop/templates/web.yaml:9 charts/shop";
    let own = check(&folder, bin.path(), &[".", "--format", "json"]);
    assert_eq!(
        found(&report(&own)),
        [format!("default/shop-web {place}")],
        "{own:?}"
    );
    // Helm takes keys that stand there twice.
    let twice = format!("{CHART}annotations: {{a: b}}\nannotations: {{a: b}}\n");
    fs::write(folder.path().join("charts/shop/Chart.yaml"), twice).unwrap();
    let odd = check(&folder, bin.path(), &[".", "--format", "json"]);
    let expected = format!("default/release-web {place}");
    assert_eq!(found(&report(&odd)), [expected], "{odd:?}");
    fs::write(folder.path().join("charts/shop/Chart.yaml"), CHART).unwrap();
    let given = ["charts", "--values", "more.yaml", "--format", "json"];
    let given = check(&folder, bin.path(), &given);
    assert_eq!(
        found(&report(&given)),
        [format!("default/shop-api {place}")]
    );
    let set = check(
        &folder,
        bin.path(),
        &[".", "--set", "strategy=Recreate", "--format", "json"],
    );
    assert_eq!(found(&report(&set)), [] as [&str; 0], "{set:?}");
    assert_eq!(code(&set), 0);
    let wrong = check(&folder, bin.path(), &[".", "--values", "absent.yaml"]);
    assert_eq!(code(&wrong), 2);
    assert!(err(&wrong).contains("--values absent.yaml"), "{wrong:?}");
}

/// Where a file stands for itself it is edited; what a chart makes is not.
#[test]
fn files_of_a_kustomization_are_repaired_where_they_stand() {
    let Some(bin) = tools(&["helm", "kustomize"]) else {
        return;
    };
    let files = [
        (
            "app/kustomization.yaml",
            "namespace: shop\nresources: [web.yaml, claim.yaml]\n",
        ),
        ("app/web.yaml", WEB),
        ("app/claim.yaml", &class_and_claim()),
        ("chart/Chart.yaml", CHART),
        ("chart/values.yaml", VALUES),
        ("chart/templates/web.yaml", TEMPLATE),
        ("chart/templates/claim.yaml", &class_and_claim()),
    ];
    let folder = repository(&files);
    let before = check(&folder, bin.path(), &["."]);
    assert!(out(&before).contains("`check --fix` does it"), "{before:?}");
    let sarif = report(&check(&folder, bin.path(), &[".", "--format", "sarif"]));
    let fixes: Vec<&Value> = sarif["runs"][0]["results"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|result| result.get("fixes"))
        .collect();
    let change = &fixes[0][0]["artifactChanges"][0];
    assert_eq!(change["artifactLocation"]["uri"], "app/web.yaml");
    assert_eq!(
        change["replacements"][0]["insertedContent"]["text"],
        "    type: Recreate\n"
    );
    assert_eq!(fixes.len(), 1, "{sarif:#}");

    let output = check(&folder, bin.path(), &[".", "--fix"]);
    let web = fs::read_to_string(folder.path().join("app/web.yaml")).unwrap();
    assert!(web.contains("strategy:\n    type: Recreate\n"), "{web}");
    let template = fs::read_to_string(folder.path().join("chart/templates/web.yaml")).unwrap();
    assert_eq!(template, TEMPLATE);
    let patch =
        "# A patch for Deployment default/shop-web, rendered from chart/templates/web.yaml.";
    assert!(out(&output).contains(patch), "{output:?}");
    assert_eq!(out(&output).matches("# A patch").count(), 1, "{output:?}");
    assert!(
        err(&output).contains("2 rendered charts and kustomizations"),
        "{output:?}"
    );
}

/// What cannot be rendered is a line of its own, and not an error.
#[test]
fn what_is_not_rendered_is_reported_and_counted() {
    let Some(bin) = tools(&["helm", "kustomize"]) else {
        return;
    };
    let folder = repository(&[
        (
            "needs/Chart.yaml",
            "apiVersion: v2\nname: needs\nversion: 1.0.0\ndependencies: [{name: db, version: 1.0.0, repository: \"https://charts.example.com\"}]\n",
        ),
        ("needs/templates/x.yaml", "a: {{ .Values.x }}\n"),
        ("broken/Chart.yaml", CHART),
        (
            "broken/templates/x.yaml",
            "{{ fail \"choose a database\" }}\n",
        ),
        (
            "remote/kustomization.yaml",
            "resources: [\"https://example.com/x.yaml\"]\n",
        ),
        (
            "generated/kustomization.yaml",
            "configMapGenerator: [{name: d, files: [\"https://example.com/d.json\"]}]\n",
        ),
        ("self/kustomization.yaml", "resources: [../self]\n"),
        ("gone/kustomization.yaml", "resources: [absent.yaml]\n"),
        (
            "inflated/kustomization.yaml",
            "helmCharts: [{name: redis, repo: \"https://charts.example.com\"}]\n",
        ),
        (
            "release.yaml",
            "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: r}\n",
        ),
        (
            "app.yaml",
            "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: a}\n",
        ),
    ]);
    let output = check(&folder, bin.path(), &["."]);
    let text = out(&output);
    for part in [
        "1 chart and 2 kustomizations (inflated, needs, remote) were not rendered: they need what is not in this repository; `--fetch` gets what is missing.",
        "The chart broken was not rendered: helm says: ",
        "choose a database",
        "The kustomization generated was not rendered: it ",
        ", and rendering has no network; render it yourself and pipe the result into `check -`.",
        "The kustomization self was not rendered: kustomize says: ",
        "The kustomization gone was not rendered: kustomize says: ",
        "No findings in what was looked at.",
        "Not looked into: 1 Application, 1 HelmRelease, 2 charts and 5 kustomizations.",
    ] {
        assert!(text.contains(part), "{part:?} is missing in\n{text}");
    }
    for kind in [
        "HelmRelease r was not rendered: it names no chart",
        "Application a was not rendered: it names no source",
    ] {
        assert!(text.contains(kind), "{text}");
    }
    assert_eq!(text.matches(" not rendered: ").count(), 7, "{text}");
    assert_eq!(code(&output), 0, "{output:?}");

    let required = check(&folder, bin.path(), &[".", "--render", "require"]);
    assert_eq!(code(&required), 2);
    assert!(err(&required).contains("needs: This chart cannot be rendered: it depends on db"));
    let never = check(&folder, bin.path(), &[".", "--render", "never"]);
    assert!(!out(&never).contains("was not rendered"), "{never:?}");
    assert!(
        out(&never).contains("2 charts and 5 kustomizations."),
        "{never:?}"
    );
    let bare = check(&folder, Path::new("/nonexistent"), &["."]);
    assert!(
        out(&bare)
            .contains("2 charts (broken, needs) were not rendered: there is no helm on the PATH.")
    );
    assert!(
        out(&bare).contains("there is neither kustomize nor kubectl on the PATH"),
        "{bare:?}"
    );
}

/// A patch may change what the files of a kustomization say, and what it does not list is
/// not deployed with it.
#[test]
fn what_was_not_rendered_is_certain_only_where_nothing_changes_it() {
    let Some(bin) = tools(&["kustomize"]) else {
        return;
    };
    let patch = "patches: [{path: recreate.yaml}]\n";
    let recreate = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {strategy: {type: Recreate, rollingUpdate: null}}\n";
    let old = WEB
        .replace("name: web\nspec", "name: old\nspec")
        .replace("RollingUpdate", "Recreate");
    let claim = class_and_claim();
    let gone = "resources: [../base, absent.yaml]\n";
    let denied = &["deny verified rolling-update-overlap"][..];
    let warned = &["warn assumed rolling-update-overlap"][..];
    type Case<'c> = (&'c str, &'c str, &'c str, &'c [&'c str]);
    let moved = format!("namespace: shop\n{gone}");
    let patched = format!("{gone}{patch}");
    let generated = format!("resources: [../base]\n{patch}generators: [absent.yaml]\n");
    let rendered = format!("resources: [../base]\n{patch}");
    let table: [Case<'_>; 6] = [
        ("only lists", gone, "", denied),
        ("moves to a namespace", &moved, "", warned),
        ("patches", &patched, "", warned),
        ("patches and generates", &generated, "", warned),
        ("is rendered", &rendered, "", &[]),
        (
            "is rendered elsewhere",
            &patched,
            "resources: [../base]\n",
            denied,
        ),
    ];
    for (name, prod, dev, expected) in table {
        let mut files = vec![
            (
                "base/kustomization.yaml",
                "resources: [web.yaml, claim.yaml]\n",
            ),
            ("base/web.yaml", WEB),
            ("base/claim.yaml", &claim),
            ("base/old.yaml", &old),
            ("prod/kustomization.yaml", prod),
            ("prod/recreate.yaml", recreate),
        ];
        if !dev.is_empty() {
            files.push(("dev/kustomization.yaml", dev));
        }
        let folder = repository(&files);
        let output = check(&folder, bin.path(), &[".", "--format", "json"]);
        let report = report(&output);
        let findings = report["findings"].as_array().unwrap();
        let found: Vec<String> = findings
            .iter()
            .map(|it| {
                format!("{} {} {}", it["action"], it["certainty"], it["rule"]).replace('"', "")
            })
            .collect();
        assert_eq!(found, expected, "{name}: {report:#}");
        assert_eq!(code(&output), i32::from(expected == denied), "{name}");
        if expected == warned {
            let message = findings[0]["message"].as_str().unwrap();
            let why = " The kustomization prod, which was not rendered, may change this.";
            assert!(message.ends_with(why), "{name}: {message}");
            let reported = check(&folder, bin.path(), &["."]);
            assert!(
                !out(&reported).contains("--facts FILE"),
                "{name}: {reported:?}"
            );
            check(&folder, bin.path(), &[".", "--fix"]);
            let web = fs::read_to_string(folder.path().join("base/web.yaml")).unwrap();
            assert_eq!(web, WEB, "{name}: an assumption is not repaired");
        }
    }
}

#[test]
fn a_program_that_hangs_is_stopped_and_the_rest_is_judged() {
    let bin = tempfile::tempdir().unwrap();
    let script = |name: &str, text: &str| {
        use std::os::unix::fs::PermissionsExt;
        let path = bin.path().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    };
    let all = class_and_claim();
    let folder = repository(&[
        ("chart/Chart.yaml", CHART),
        (
            "app/kustomization.yaml",
            "resources: [web.yaml, claim.yaml]\n",
        ),
        ("app/web.yaml", WEB),
        ("app/claim.yaml", &all),
    ]);
    let mark = format!("100000.{}", std::process::id());
    script("helm", &format!("#!/bin/sh\n/bin/sleep {mark} &\nwait\n"));
    script("kustomize", "#!/bin/sh\nexec /usr/bin/yes\n");
    let output = check(&folder, bin.path(), &[".", "--render-timeout", "1"]);
    // What it started ends with it.
    while is_running(&mark) {
        std::thread::yield_now();
    }
    let text = out(&output);
    assert!(
        text.contains("helm was still running after 1 s and was stopped"),
        "{output:?}"
    );
    assert!(
        text.contains("The kustomization app was not rendered: kustomize "),
        "{text}"
    );
    // Its files are looked at as they are.
    assert!(text.contains("error[rolling-update-overlap]"), "{text}");
}

/// Whether a process has the word on its command line.
fn is_running(word: &str) -> bool {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut lines = processes.filter_map(|it| fs::read(it.path().join("cmdline")).ok());
    lines.any(|line| {
        line.split(|byte| *byte == 0)
            .any(|it| it == word.as_bytes())
    })
}

/// Nothing of the user's is reached: neither plugins nor repositories nor a network, and none
/// of the variables in which pipelines keep secrets.
#[test]
fn what_renders_is_on_its_own() {
    let bin = tempfile::tempdir().unwrap();
    let path = bin.path().join("helm");
    let folder = repository(&[("chart/Chart.yaml", CHART)]);
    // It says what is wrong, as it writes no file.
    let script = "#!/bin/sh\n\
        said=\n\
        seen=$(env)\n\
        for word in /plugins mine /secret hunter2 /home/me; do\n\
          case $seen in *$word*) said=\"$said $word\";; esac\n\
        done\n\
        [ -z \"$(ls \"$HELM_PLUGINS\")\" ] || said=\"$said plugins\"\n\
        echo \"Error: seen:$said; $HTTPS_PROXY $GIT_ALLOW_PROTOCOL\" >&2\n\
        exit 1\n";
    fs::write(&path, script).unwrap();
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let variables: [(&str, OsString); 5] = [
        ("HELM_PLUGINS", "/plugins".into()),
        ("HELM_NAMESPACE", "mine".into()),
        ("KUBECONFIG", "/secret".into()),
        ("GITHUB_TOKEN", "hunter2".into()),
        ("HOME", "/home/me".into()),
    ];
    let output = Command::new(env!("CARGO_BIN_EXE_multi-attach-guard"))
        .args(["check", "."])
        .current_dir(folder.path())
        .env("PATH", format!("{}:/usr/bin:/bin", bin.path().display()))
        .envs(variables)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let expected = "helm says: seen:; http://127.0.0.1:9 none.";
    assert!(out(&output).contains(expected), "{output:?}");
}
