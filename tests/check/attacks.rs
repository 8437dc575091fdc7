//! Attacks by a stranger's pull request that cannot be cases as data (`cases/attacks.yaml`):
//! passing an option to a program, starting a program, stopping the check.

use std::io::ErrorKind;
use std::net::TcpListener;
use std::process::Command;

use serde::Deserialize;

use super::cases::SECRET;
use super::releases::gitops;
use super::rendering::{CHART, WEB, check, check_with, reported, tools};
use super::server::{FETCH, Server};
use super::*;

/// The tools, with and without the program that creates namespaces. If the machine does not allow
/// namespaces, both are without it.
pub(super) fn both(names: &[&str]) -> Vec<TempDir> {
    let bins = [names, &[names, &["unshare", "true"]].concat()].map(tools);
    bins.into_iter().flatten().collect()
}

const SHOP: &str = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: shop, namespace: prod}\nspec:\n  chart: {spec: {chart: charts/web, sourceRef: {kind: GitRepository, name: flux-system}}}\n  values:\n    strategy: {type: RollingUpdate}\n";

/// The finding that must be reported despite the attack.
const FOUND: &str = "prod/shop shop.yaml charts/web";

/// One line for each value, more than a release may have.
fn values_without_end(indent: &str) -> String {
    (0..1_000_000).map(|number| format!("{indent}k{number}: 1\n")).collect()
}

#[test]
fn values_without_end_are_refused() {
    let tools = or_skip!(tools(&["helm", "kustomize"]));
    let application = "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: file, namespace: argocd}\nspec:\n  destination: {namespace: prod}\n  source: {repoURL: 'https://example.com/org/gitops', path: charts/web, helm: {valueFiles: [/many.yaml]}}\n";
    let inline = SHOP.replace("name: shop", "name: inline") + &values_without_end("    ");
    let folder = gitops(&[
        ("shop.yaml", SHOP),
        ("inline.yaml", &inline),
        ("many.yaml", &values_without_end("")),
        ("file.yaml", application),
    ]);
    let output = check(&folder, tools.path(), ". --format json");
    assert_eq!(
        reported(&report(&output)),
        [
            FOUND,
            "Application argocd/file: /many.yaml cannot be read: it is larger than 4194304 bytes",
            "HelmRelease prod/inline: it is larger than 4 MiB",
        ]
    );
}

/// Deployments that all use all claims.
fn shared_by_all(number: usize) -> String {
    let names: Vec<String> = (0..number).map(|count| format!("c{count}")).collect();
    let list = |item: fn(&String) -> String| names.iter().map(item).collect::<Vec<_>>().join(", ");
    let mounts = list(|name| format!("{{name: {name}, mountPath: /{name}}}"));
    let volumes =
        list(|name| format!("{{name: {name}, persistentVolumeClaim: {{claimName: {name}}}}}"));
    names
        .iter()
        .map(|name| {
            format!(
                "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {{name: {name}}}\nspec: {{accessModes: [ReadWriteOnce], storageClassName: gp3}}\n---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {name}}}\nspec:\n  selector: {{matchLabels: {{app: {name}}}}}\n  template:\n    metadata: {{labels: {{app: {name}}}}}\n    spec:\n      containers: [{{name: main, image: web, volumeMounts: [{mounts}]}}]\n      volumes: [{volumes}]\n---\n"
            )
        })
        .collect()
}

#[test]
fn workloads_that_share_too_many_claims_are_named_as_such() {
    let folder = gitops(&[("all.yaml", &shared_by_all(70))]);
    let report: Value = report(&run(&folder, &["check", ".", "--format", "json"]));
    let findings = report["findings"].as_array().unwrap();
    assert_eq!(findings.len(), 70);
    for finding in findings {
        let message = finding["message"].as_str().unwrap();
        assert!(message.contains("its claims have more than 4096 users in all"), "{message}");
    }
}

/// A name for each way to write the path of one file outside.
fn names_of(file: &str, number: usize) -> String {
    let names = (0..number).map(|count| format!("../{}{file}", "./".repeat(count)));
    format!("resources: [{}]\n", names.collect::<Vec<_>>().join(","))
}

#[test]
fn a_copy_does_not_grow_without_end() {
    let tools = or_skip!(tools(&["helm", "kustomize"]));
    let large = format!("# {}\n", "x".repeat(1 << 20));
    let folder = gitops(&[
        ("shop.yaml", SHOP),
        ("small.yaml", "# x\n"),
        ("large.yaml", &large),
        ("many/kustomization.yaml", &names_of("small.yaml", 1_001)),
        ("much/kustomization.yaml", &names_of("large.yaml", 64)),
        (
            "grown/kustomization.yaml",
            "helmCharts: [{name: big, releaseName: a}, {name: big, releaseName: b}]\n",
        ),
        ("grown/charts/big/Chart.yaml", "name: big\nversion: 1.0.0\n"),
        ("grown/charts/big/templates/big.yaml", "# {{ repeat 34000000 \"x\" }}\n"),
    ]);
    let output = check(&folder, tools.path(), ". --format json");
    assert_eq!(
        reported(&report(&output)),
        [
            FOUND,
            "kustomization grown: it holds more than 64 MiB or 20000 files",
            "kustomization many: it names more than 1000 resources outside its folder",
            "kustomization much: it holds more than 64 MiB or 20000 files",
        ]
    );
}

/// Each host may take one second, and all of them together ten.
#[test]
fn one_limit_of_time_holds_for_all_hosts() {
    let tools = or_skip!(tools(&["helm", "kustomize"]));
    let server = Server::start(tools.path());
    let release = server.fill(
        "apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {name: charts, namespace: nN}\nspec: {url: 'http://HOST/hang/N'}\n---\napiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: shop, namespace: nN}\nspec:\n  chart: {spec: {chart: web, version: 1.2.3, sourceRef: {kind: HelmRepository, name: charts}}}\n",
    );
    let named = |number: usize| {
        let text = release.replace("nN", &format!("n{number}"));
        (format!("r{number}.yaml"), text.replace("hang/N", &format!("hang/{number}")))
    };
    let files: Vec<(String, String)> = (0..60).map(named).collect();
    let folder = gitops(&borrowed(&files));
    let arguments = format!(". --format json {FETCH} --render-timeout 1");
    let output = check(&folder, tools.path(), &arguments);
    let reasons = reported(&report(&output));
    let [slow, stopped] = ["did not answer within 1 s", "all fetching together may take 10 s"]
        .map(|part| reasons.iter().filter(|reason| reason.contains(part)).count());
    assert_eq!(slow + stopped, 60, "{reasons:#?}");
    assert!(slow >= 4 && stopped >= 4, "{slow} {stopped}");
}

/// More workloads than are judged together, and more than are compared with each other.
#[test]
fn every_workload_of_a_crowded_claim_is_judged() {
    let workload = |number: usize| DEPLOYMENT.replace("name: web", &format!("name: web-{number}"));
    let one: Vec<String> = (0..300).map(workload).collect();
    let mut files = vec![(
        "in/all.yaml".to_owned(),
        [&[CLASS.to_owned(), CLAIM.to_owned()], &one[..]].concat().join("---\n"),
    )];
    files.extend((300..400).map(|number| (format!("in/{number}.yaml"), workload(number))));
    let output = run(&repository(&borrowed(&files)), &["check", "in", "--format", "json"]);
    let found = findings(&output);
    let shared = found.iter().filter(|finding| finding["rule"] == "workloads-share-volume");
    assert_eq!(shared.count(), 399, "all but the first one");
}

/// Words that a stranger could use so that a program takes them for an option, a file or a command.
const WORDS: [&str; 16] = [
    "--post-renderer=sh",
    "--post-renderer",
    "--set-file=x=/etc/hostname",
    "--output-dir=/tmp/written",
    "--values=http://example.com/a",
    "--values=/etc/hostname",
    "-f/etc/hostname",
    "--",
    "-",
    "-a",
    " --post-renderer=sh",
    "a --post-renderer=sh",
    "a\n--post-renderer=sh",
    "a\u{0}b",
    "Upper",
    "a2345678901234567890123456789012345678901234567890123-",
];

/// An entry of `cases/names.yaml`: a manifest with the fields that are passed to programs.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Named {
    file: String,
    text: String,
    fields: Vec<String>,
    #[serde(default)]
    more: Vec<String>,
}

/// One file for each word in each field; `with_more` adds further fields.
fn named(words: &[impl AsRef<str>], with_more: bool) -> Vec<(String, String)> {
    let all: Vec<Named> = serde_saphyr::from_str(include_str!("cases/names.yaml")).unwrap();
    let mut files = Vec::new();
    for entry in &all {
        let more = entry.more.iter().filter(|_| with_more);
        for field in entry.fields.iter().chain(more) {
            for word in words {
                let field = field.replace("WORD", &Value::from(word.as_ref()).to_string());
                let number = files.len().to_string();
                let fill = |text: &str| text.replace("NUMBER", &number).replace("FIELD", &field);
                files.push((fill(&entry.file), fill(&entry.text)));
            }
        }
    }
    files
}

/// Writes a program that prints its arguments and fails.
fn telling(folder: &Path, name: &str) {
    let text = "#!/bin/sh\nprintf 'Error: STARTED' >&2\nfor word in \"$@\"; do printf ' [%s]' \"$word\" >&2; done\nexit 1\n";
    script(&folder.join(name), text);
}

/// Every such name is refused before a program starts, whatever the name is.
#[test]
fn what_a_manifest_names_is_never_an_option() {
    let folder = gitops(&borrowed(&named(&WORDS, false)));
    let bin = tempfile::tempdir().unwrap();
    for name in ["helm", "kustomize"] {
        telling(bin.path(), name);
    }
    let output = check(&folder, bin.path(), ". --format json");
    let reasons = reported(&report(&output));
    assert!(reasons.len() >= 200, "{reasons:#?}");
    let refusals = [
        " is not one that helm takes",
        " is not one that Kubernetes takes",
        " is not among its files",
        ", which is not in its charts folder",
        " with nameTemplate, a field that is not read here",
        ": it names --values=http://example.com/a",
    ];
    let (started, refused): (Vec<_>, Vec<_>) =
        reasons.iter().partition(|reason| reason.contains("STARTED"));
    for reason in refused {
        let is_named = refusals.iter().any(|refusal| reason.contains(refusal));
        assert!(is_named, "{reason}");
    }
    // A parameter, whatever its name, is passed as the value of our own option. Two words can be an
    // API version, and the name of an object is cut.
    let parameters = started.iter().filter(|reason| reason.contains(" [--set="));
    assert_eq!(parameters.count(), WORDS.len() - 2, "{started:#?}");
    assert_eq!(started.len(), WORDS.len() + 1, "{started:#?}");
    for reason in started {
        let mut options = WORDS.iter().filter(|word| word.starts_with('-') && **word != "--");
        let is_told = options.any(|word| reason.contains(&format!("[{word}]")));
        assert!(!is_told, "{reason}");
    }
}

/// Writes a program that replaces helm, looks around, and reports what it could do.
fn curious(bin: &Path, outside: &Path) {
    let folder = outside.display();
    let text = format!(
        "#!/bin/sh\nsaid=\n\
         cat {folder}/secret >/dev/null 2>&1 && said=\"$said reads\"\n\
         ls /proc/1 >/dev/null 2>&1 && said=\"$said processes\"\n\
         (: > {folder}/written) 2>/dev/null && said=\"$said writes\"\n\
         {folder}/program >/dev/null 2>&1 && said=\"$said starts\"\n\
         echo \"Error: done:$said;\" >&2\nexit 1\n"
    );
    script(&bin.join("helm"), &text);
    script(&outside.join("program"), "#!/bin/sh\n");
}

/// `helm` may be a script, which starts programs on the PATH but nothing else.
#[test]
fn what_renders_reads_writes_and_starts_nothing_else() {
    let (bin, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(outside.path().join("secret"), SECRET).unwrap();
    curious(bin.path(), outside.path());
    let folder = repository(&[("shop/Chart.yaml", CHART), ("shop/templates/web.yaml", WEB)]);
    let path = format!("{}:/usr/bin:/bin", bin.path().display());
    let output = check(&folder, Path::new(&path), "--verbose .");
    let (text, said) = (out(&output), err(&output));
    assert!(text.contains("helm says: done:"), "{output:?}");
    assert!(said.contains("Rendering is "), "{output:?}");
    if !said.contains("confined by Landlock") {
        eprintln!("SKIPPED: this machine has no Landlock.");
        return;
    }
    assert!(text.contains("helm says: done:;"), "{output:?}");
    assert!(!outside.path().join("written").exists());
}

/// A program that is not a script, such as helm, cannot start any other program.
#[test]
#[cfg(target_os = "linux")]
fn a_confined_program_starts_no_other() {
    let confined = |options: &[&str]| {
        let mut confine = program(&["confine"]);
        confine.args(options).output().unwrap()
    };
    if out(&confined(&[])).trim() != "Landlock" {
        eprintln!("SKIPPED: this machine has no Landlock.");
        return;
    }
    let own = ["--start=/usr/bin/env", "--start=/lib", "--start=/lib64", "--read=/etc/ld.so.cache"];
    let other = ["--", "/usr/bin/env", "/usr/bin/true"];
    let allowed = confined(&[&own[..], &["--start=/usr/bin"], &other].concat());
    assert_eq!(code(&allowed), 0, "{allowed:?}");
    let refused = confined(&[&own[..], &other].concat());
    assert!(err(&refused).contains("Permission denied"), "{refused:?}");
}

/// Names that a program could take for options. It would then run, read or write files in the
/// folder `machine`, or contact the server.
fn hostile_names(machine: &Path, server: &str) -> Vec<String> {
    let path = |name: &str| machine.join(name).display().to_string();
    let (secret, written) = (path("secret"), path("written"));
    let mut names = vec![
        format!("--post-renderer={}", path("run")),
        format!("--output-dir={written}"),
        format!("--set-file=prefix={secret}"),
        format!("--values={secret}"),
        format!("--values=http://{server}/values"),
        format!("-f{secret}"),
        format!("-fhttp://{server}/values"),
        format!("--repository-cache={written}"),
        format!("--kubeconfig={secret}"),
        format!("--repo=http://{server}"),
        format!("--ca-file={secret}"),
    ];
    names.extend(OPTIONS.map(str::to_owned));
    names
}

const OPTIONS: [&str; 7] = [
    "--set=prefix=hidden",
    "--dependency-update",
    "--validate",
    "--dry-run=server",
    "--name-template={{ env \"TOKEN\" }}",
    "--debug",
    "--show-only=templates/none.yaml",
];

/// Helm 3 runs a post-renderer that its command line names; Helm 4 reads and writes files with such
/// names. With and without namespaces, neither gets such a name.
#[test]
fn no_name_of_a_manifest_is_an_option_of_helm_3_or_4() {
    for helm in ["helm", "helm3"] {
        for bin in both(&[helm, "kustomize"]) {
            let machine = tempfile::tempdir().unwrap();
            let at = |name: &str| machine.path().join(name);
            fs::write(at("secret"), "prefix: hunter2\n").unwrap();
            let touches = format!("#!/bin/sh\ntouch {}\ncat\n", at("ran").display());
            script(&at("run"), &touches);
            let server = TcpListener::bind("127.0.0.1:0").unwrap();
            server.set_nonblocking(true).unwrap();
            let address = server.local_addr().unwrap().to_string();
            let names = hostile_names(machine.path(), &address);
            let mut files = named(&names, true);
            files.push(("shop.yaml".to_owned(), SHOP.to_owned()));
            // The name of a folder can be anything without a slash.
            for name in names.iter().filter(|name| !name.contains('/')) {
                files.push((
                    format!("{name}/Chart.yaml"),
                    "apiVersion: v2\nname: web\nversion: 1.0.0\n".to_owned(),
                ));
                files.push((
                    format!("{name}/templates/web.yaml"),
                    "kind: ConfigMap\napiVersion: v1\nmetadata: {name: a}\n".to_owned(),
                ));
            }
            let folder = gitops(&borrowed(&files));
            // Shows the effect of two of the names if helm does get them.
            for name in &names[..2] {
                Command::new(bin.path().join("helm"))
                    .args(["template", name, "charts/web"])
                    .current_dir(folder.path())
                    .output()
                    .unwrap();
            }
            assert_eq!(at("ran").exists(), helm == "helm3");
            fs::remove_dir_all(at("written")).unwrap();
            fs::remove_file(at("ran")).ok();
            let token = [("TOKEN", "hunter2")];
            let output = check_with(&folder, bin.path(), &token, ". --format json");
            assert!(!at("ran").exists(), "{helm} ran a program");
            assert!(!at("written").exists(), "{helm} wrote a file");
            assert_eq!(server.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
            let said = format!("{}{}", out(&output), err(&output));
            assert!(!said.contains("hunter2"), "{helm} read a file or the environment: {said}");
            let report = report(&output);
            let reported = reported(&report);
            assert_eq!(reported[0], FOUND, "{helm}: {reported:#?}");
        }
    }
}
