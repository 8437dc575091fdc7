//! What a stranger's pull request may try: to read what the pipeline may read, to reach a
//! network, to stop the check.

use std::io::ErrorKind;
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::process::Command;

use super::releases::gitops;
use super::rendering::{CHART, WEB, check, check_with, class_and_claim, reported, tools};
use super::*;

/// What nobody may see.
const SECRET: &str = "hunter2";

/// The program's whole output, which names no secret.
#[track_caller]
fn said(output: &Output) -> String {
    let said = format!("{}{}", out(output), err(output));
    assert!(!said.contains(SECRET), "{said}");
    said
}

#[track_caller]
fn contains(output: &Output, parts: &[&str]) {
    let said = said(output);
    for part in parts {
        assert!(said.contains(part), "{part:?} is missing in\n{said}");
    }
}

fn fifo(path: &Path) {
    let made = Command::new("mkfifo").arg(path).status().unwrap();
    assert!(made.success());
}

fn sparse(path: &Path) {
    fs::File::create(path).unwrap().set_len(5 << 30).unwrap();
}

/// The tools, with and without the program that gives namespaces. Where the machine gives
/// none, both are without.
pub(super) fn both(names: &[&str]) -> Vec<TempDir> {
    let bins: Option<Vec<TempDir>> = (0..2).map(|_| tools(names)).collect();
    let bins = bins.unwrap_or_default();
    if let Some(bin) = bins.first() {
        for name in ["unshare", "true"] {
            let program = Path::new("/usr/bin").join(name);
            symlink(program, bin.path().join(name)).unwrap();
        }
    }
    bins
}

/// A template that writes whatever it can read into a name, which reports show.
fn reading(file: &str) -> String {
    let read = format!("name: {{{{ .Files.Get \"{file}\" | quote }}}}");
    WEB.replacen("name: web", &read, 1)
}

#[test]
fn a_chart_reads_nothing_but_itself() {
    let claim = class_and_claim();
    for bin in both(&["helm"]) {
        for (link, target) in [
            ("env", "/proc/self/environ"),
            ("env", "../token"),
            ("env", "../.git/config"),
            ("up", ".."),
            ("charts", "/etc"),
        ] {
            let template = reading(if link == "env" { "env" } else { "up/token" });
            let folder = repository(&[
                ("shop/Chart.yaml", CHART),
                ("shop/templates/web.yaml", &template),
                ("shop/templates/claim.yaml", &claim),
                ("token", SECRET),
                (".git/config", SECRET),
            ]);
            symlink(target, folder.path().join("shop").join(link)).unwrap();
            let output = check_with(&folder, bin.path(), &[("TOKEN", SECRET)], ".");
            let why = format!(
                "The chart shop was not rendered: it holds {link}, a link that leads out of it."
            );
            contains(&output, &[&why]);
        }
    }
}

/// A chart at the top of a repository has Git's folder in it, where pipelines keep a token.
#[test]
fn links_inside_are_followed_and_the_folder_of_git_is_not_there() {
    let claim = class_and_claim();
    let template = reading(".git/config") + "# {{ .Files.Get \"link\" }}\n";
    for bin in both(&["helm"]) {
        let folder = repository(&[
            ("Chart.yaml", CHART),
            (
                "templates/web.yaml",
                &template.replace("| quote", "| default (.Files.Get \"link\") | trim | quote"),
            ),
            ("templates/claim.yaml", &claim),
            ("files/name", "linked"),
            (".git/config", SECRET),
        ]);
        symlink("files/name", folder.path().join("link")).unwrap();
        let output = check(&folder, bin.path(), ".");
        contains(&output, &["Deployment linked: ", "templates/web.yaml:7:3"]);
    }
}

/// What a chart depends on is put beside it under the name that the chart gives it.
#[test]
fn a_chart_puts_nothing_outside_of_its_copy() {
    let bin = or_skip!(tools(&["helm"]));
    let outside = tempfile::tempdir().unwrap();
    let made = outside.path().join("made");
    let up = format!("{}{}", "../".repeat(16), made.display());
    let names = [
        made.display().to_string(),
        up,
        "../templates/made".to_owned(),
        "../../made".to_owned(),
        "..".to_owned(),
        ".".to_owned(),
        "made/".to_owned(),
        "./made".to_owned(),
        String::new(),
    ];
    let mut files = vec![("part/Chart.yaml".to_owned(), CHART.to_owned())];
    for (number, name) in names.iter().enumerate() {
        let chart = format!(
            "{CHART}dependencies: [{{name: \"{name}\", version: '*', repository: 'file://../part'}}]\n"
        );
        files.push((format!("shop{number}/Chart.yaml"), chart));
        files.push((format!("shop{number}/templates/web.yaml"), WEB.to_owned()));
    }
    let folder = repository(&borrowed(&files));
    let output = check(&folder, bin.path(), ". --format json");
    let reported = reported(&report(&output));
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
    assert_eq!(reported.len(), names.len(), "{reported:#?}");
    let refused = reported
        .iter()
        .filter(|it| it.contains("is no name of a file"));
    assert_eq!(refused.count(), names.len(), "{reported:#?}");
}

/// Git and browsers read a backslash in a URL each in their own way.
#[test]
fn git_asks_the_host_that_was_looked_at() {
    let bin = or_skip!(tools(&["kustomize"]));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let private = listener.local_addr().unwrap();
    let text = format!("resources: ['http://localhost:9\\@{private}/org/app//deploy?ref=v1']\n");
    let folder = repository(&[("app/kustomization.yaml", &text)]);
    let git = ["git", "env"].map(|name| Path::new("/usr/bin").join(name));
    for program in git.iter().filter(|it| it.exists()) {
        symlink(program, bin.path().join(program.file_name().unwrap())).unwrap();
    }
    let output = check(&folder, bin.path(), ". --fetch --fetch-from localhost");
    contains(&output, &["The kustomization app was not rendered: "]);
    let asked = listener.accept().map(|(_, from)| from);
    assert_eq!(asked.unwrap_err().kind(), ErrorKind::WouldBlock);
}

/// A comment of a template may name any file as its source.
#[test]
fn a_source_that_a_template_makes_up_is_not_shown() {
    let claim = class_and_claim();
    for bin in both(&["helm"]) {
        for source in [
            "shop/../../token",
            "shop/../.git/config",
            "shop/../../../../../../etc/passwd",
        ] {
            let folder = repository(&[
                ("apps/shop/Chart.yaml", CHART),
                (
                    "apps/shop/templates/web.yaml",
                    &format!("# Source: {source}\n{WEB}"),
                ),
                ("apps/shop/templates/claim.yaml", &claim),
                ("token", SECRET),
                ("apps/.git/config", SECRET),
            ]);
            let output = check(&folder, bin.path(), ".");
            contains(&output, &["error[rolling-update-overlap]"]);
            assert!(!said(&output).contains("root:"), "{output:?}");
        }
    }
}

/// Both ask for a URL on this machine, for which no proxy is used.
#[test]
fn nothing_is_fetched_whatever_the_field() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let url = format!("http://{}/x.yaml", listener.local_addr().unwrap());
    let generator = format!(
        "apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {{name: g}}\nfiles: [\"{url}\"]\n"
    );
    let schema = format!("{{\"properties\": {{\"a\": {{\"$ref\": \"{url}\"}}}}}}");
    let fields = [
        "resources: [\"URL\"]",
        "Resources: [\"URL\"]",
        "RESOURCES: [\"http:\\x2f\\x2fHOST/x.yaml\"]",
        "bases: [\"URL\"]",
        "components: [\"URL\"]",
        "crds: [\"URL\"]",
        "configurations: [\"URL\"]",
        "generators: [\"URL\"]",
        "transformers: [\"URL\"]",
        "validators: [\"URL\"]",
        "openapi: {path: \"URL\"}",
        "patches: [{path: \"URL\"}]",
        "patchesStrategicMerge: [\"URL\"]",
        "patchesJson6902: [{path: \"URL\", target: {kind: A, name: a, version: v1}}]",
        "replacements: [{path: \"URL\"}]",
        "configMapGenerator: [{name: a, files: [\"URL\"]}]",
        "ConfigMapGenerator: [{name: a, envs: [\"URL\"]}]",
        "secretGenerator: [{name: a, env: \"URL\"}]",
        "generators: [gen.yaml]",
        "resources: [\"git::URL\"]",
    ];
    let host = url
        .trim_start_matches("http://")
        .trim_end_matches("/x.yaml");
    let mut files = vec![
        ("chart/Chart.yaml".to_owned(), CHART.to_owned()),
        ("chart/values.schema.json".to_owned(), schema),
        ("chart/values.yaml".to_owned(), "a: 1\n".to_owned()),
        ("chart/templates/claim.yaml".to_owned(), class_and_claim()),
    ];
    for (number, field) in fields.iter().enumerate() {
        let text = field.replace("URL", &url).replace("HOST", host);
        files.push((format!("k{number:02}/kustomization.yaml"), text));
        files.push((format!("k{number:02}/gen.yaml"), generator.clone()));
    }
    let files = borrowed(&files);
    for bin in both(&["helm", "kustomize"]) {
        let folder = repository(&files);
        let output = check(&folder, bin.path(), ". --format json");
        for (number, field) in fields.iter().enumerate() {
            let line = format!("\"path\": \"k{number:02}\"");
            assert!(out(&output).contains(&line), "{field}: {}", out(&output));
        }
        assert!(!out(&output).contains("\"path\": \"chart\""), "{output:?}");
        let asked = listener.accept().map(|(_, from)| from);
        assert_eq!(asked.unwrap_err().kind(), ErrorKind::WouldBlock);
    }
}

#[test]
fn a_kustomization_reads_nothing_outside_of_the_repository() {
    let outside = tempfile::tempdir().unwrap();
    let secret = WEB.replace("name: web", &format!("name: {SECRET}"));
    for (name, text) in [
        ("kustomization.yaml", "resources: [web.yaml]\n"),
        ("web.yaml", &format!("{secret}---\n{}", class_and_claim())),
    ] {
        fs::write(outside.path().join(name), text).unwrap();
    }
    let absolute = outside.path().display().to_string();
    // However deep the copy lies, one of these leads to the folder.
    let ways: Vec<String> = (1..16)
        .map(|up| "../".repeat(up) + absolute.trim_start_matches('/'))
        .collect();
    let names = [absolute, "link".to_owned()];
    let fields = [
        "resources",
        "Resources",
        "components",
        "generators",
        "transformers",
    ];
    let folder = repository(&[]);
    let mut count = 0;
    for name in ways.iter().chain(&names) {
        for field in fields {
            let app = folder.path().join(format!("app{count:02}"));
            fs::create_dir(&app).unwrap();
            let text = format!("{field}: [\"{name}\"]\n");
            fs::write(app.join("kustomization.yaml"), text).unwrap();
            symlink(outside.path(), app.join("link")).unwrap();
            count += 1;
        }
    }
    for bin in both(&["kustomize"]) {
        let output = check(&folder, bin.path(), ". --format json");
        for number in 0..count {
            contains(&output, &[&format!("\"path\": \"app{number:02}\"")]);
        }
    }
}

#[test]
fn files_that_make_roots_are_small_regular_files_of_the_repository() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret"), format!("{SECRET}: [1\n")).unwrap();
    let secret = outside.path().join("secret");
    let bin = or_skip!(tools(&["helm", "kustomize"]));
    let folder = repository(&[
        ("large/values.yaml", "a: 1\n"),
        ("linked/Chart.yaml", CHART),
        ("piped/Chart.yaml", CHART),
        ("base/kustomization.yaml", "resources: []\n"),
        ("app/kustomization.yaml", "resources: [../kust]\n"),
        ("kust/x.yaml", "a: 1\n"),
    ]);
    let at = |name: &str| folder.path().join(name);
    sparse(&at("large/Chart.yaml"));
    symlink(&secret, at("linked/values.yaml")).unwrap();
    fifo(&at("piped/values.yaml"));
    symlink(&secret, at("kust/kustomization.yaml")).unwrap();
    // With less memory than one of the files would take.
    let limited = "ulimit -v 3000000; exec \"$0\" \"$@\"";
    let output = Command::new("sh")
        .args([
            "-c",
            limited,
            env!("CARGO_BIN_EXE_multi-attach-guard"),
            "check",
            ".",
        ])
        .current_dir(folder.path())
        .env("PATH", format!("{}:/usr/bin:/bin", bin.path().display()))
        .output()
        .unwrap();
    contains(
        &output,
        &[
            "The chart large was not rendered: its Chart.yaml cannot be read: it is larger than 1048576 bytes.",
            "The chart linked was not rendered: it holds values.yaml, a link that leads out of it.",
            "The chart piped was not rendered: it holds values.yaml, which is neither a file nor a folder.",
            "The kustomization app was not rendered: ",
        ],
    );
    for values in [
        "linked/values.yaml",
        "piped/values.yaml",
        "large/Chart.yaml",
    ] {
        let output = check(&folder, bin.path(), &format!(". --values {values}"));
        assert_eq!(code(&output), 2);
        contains(&output, &[&format!("--values {values}: it is ")]);
    }
}

#[test]
fn a_policy_is_a_small_regular_file_of_the_repository() {
    let outside = tempfile::tempdir().unwrap();
    let secret = outside.path().join("secret");
    fs::write(&secret, format!("{SECRET}: 1\n")).unwrap();
    type Make<'m> = &'m dyn Fn(&Path);
    let table: [(&str, Make<'_>); 4] = [
        ("a link", &|path| symlink(&secret, path).unwrap()),
        ("a link into Git", &|path| {
            symlink(".git/config", path).unwrap();
        }),
        ("a pipe", &|path| fifo(path)),
        ("without end", &|path| sparse(path)),
    ];
    for (name, make) in table {
        let folder = repository(&[("web.yaml", DEPLOYMENT), (".git/config", SECRET)]);
        make(&folder.path().join(".multi-attach-guard.yaml"));
        for arguments in [
            &["check", "."][..],
            &["check", ".", "--config", ".multi-attach-guard.yaml"],
        ] {
            let output = run(&folder, arguments);
            assert_eq!(code(&output), 2, "{name}");
            contains(
                &output,
                &["The policy file .multi-attach-guard.yaml cannot be read: it is "],
            );
        }
    }
}

#[test]
fn what_is_named_leads_nowhere_else() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(
        outside.path().join("x.yaml"),
        format!("kind: Pod\napiVersion: v1\n{SECRET}: [1\n"),
    )
    .unwrap();
    let folder = repository(&[("web.yaml", DEPLOYMENT)]);
    symlink(outside.path(), folder.path().join("all")).unwrap();
    symlink(
        outside.path().join("x.yaml"),
        folder.path().join("one.yaml"),
    )
    .unwrap();
    for path in ["all", "one.yaml"] {
        let output = run(&folder, &["check", path]);
        assert_eq!(code(&output), 2);
        let why = "This link leads out of the repository; name the file it leads to.";
        contains(&output, &[&format!("{path}: {why}")]);
    }
}

/// Memory and output, of one program and of all.
#[test]
fn a_chart_takes_no_more_than_its_share() {
    let Some(bin) = tools(&["helm"]) else { return };
    let doubling = "{{- $x := \"aaaaaaaaaaaaaaaa\" }}{{- range until 40 }}{{ $x = printf \"%s%s\" $x $x }}{{ end }}{{ $x }}\n";
    let folder = repository(&[
        ("memory/Chart.yaml", CHART),
        ("memory/templates/x.yaml", doubling),
        ("many/Chart.yaml", CHART),
    ]);
    fs::File::create(folder.path().join("many/x.bin"))
        .unwrap()
        .set_len(65 << 20)
        .unwrap();
    let output = check(&folder, bin.path(), ".");
    contains(
        &output,
        &[
            "The chart memory was not rendered: helm needs more than 1024 MiB of memory.",
            "The chart many was not rendered: it holds more than 64 MiB or 20000 files.",
        ],
    );
}

/// More than are judged together, and more than are compared with each other.
#[test]
fn every_workload_of_a_crowded_claim_is_judged() {
    let shared = |number: usize| DEPLOYMENT.replace("name: web", &format!("name: web-{number}"));
    let one: Vec<String> = (0..300).map(shared).collect();
    let mut files = vec![(
        "in/all.yaml".to_owned(),
        [&[CLASS.to_owned(), CLAIM.to_owned()], &one[..]]
            .concat()
            .join("---\n"),
    )];
    files.extend((300..400).map(|number| (format!("in/{number}.yaml"), shared(number))));
    let files = borrowed(&files);
    let output = run(&repository(&files), &["check", "in", "--format", "json"]);
    let found = findings(&output);
    let shared = found
        .iter()
        .filter(|it| it["rule"] == "workloads-share-volume");
    assert_eq!(shared.count(), 399, "all but the first one");
}

/// Where a manifest says what a program is told, with WORD for it. Whoever reads another field
/// adds it here.
pub(super) const NAMED: [(&str, &str); 14] = [
    ("release", "releaseName: WORD"),
    ("release", "releaseName: shop, targetNamespace: WORD"),
    ("metadata", "WORD"),
    ("application", "releaseName: WORD"),
    ("application", "namespace: WORD"),
    ("application", "parameters: [{name: WORD, value: a}]"),
    ("chart", "releaseName: WORD"),
    ("chart", "releaseName: shop, namespace: WORD"),
    ("chart", "releaseName: shop, kubeVersion: WORD"),
    ("chart", "releaseName: shop, apiVersions: [WORD]"),
    ("chart", "releaseName: shop, valuesFile: WORD"),
    ("chart", "releaseName: shop, additionalValuesFiles: [WORD]"),
    ("chart", "releaseName: shop, nameTemplate: WORD"),
    ("chart", "name: WORD"),
];

/// Words that a stranger would like a program to take for an option, a file or a command.
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

/// The file of an object with this field.
pub(super) fn named(shape: &str, field: &str, number: usize) -> (String, String) {
    let git =
        "chart: {spec: {chart: charts/web, sourceRef: {kind: GitRepository, name: flux-system}}}";
    let flux = |name: &str, field: &str| {
        format!(
            "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {{name: {name}, namespace: prod}}\nspec: {{{git}{field}}}\n"
        )
    };
    match shape {
        "release" => (
            format!("r{number}.yaml"),
            flux(&format!("r{number}"), &format!(", {field}")),
        ),
        "metadata" => (format!("r{number}.yaml"), flux(field, "")),
        "application" => (
            format!("a{number}.yaml"),
            format!(
                "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: a{number}, namespace: argocd}}\nspec:\n  destination: {{namespace: prod}}\n  source: {{repoURL: 'https://example.com/org/gitops', path: charts/web, helm: {{{field}}}}}\n"
            ),
        ),
        _ => {
            let name = if field.starts_with("name:") {
                ""
            } else {
                "name: web, "
            };
            (
                format!("k{number}/kustomization.yaml"),
                format!("helmGlobals: {{chartHome: ../charts}}\nhelmCharts: [{{{name}{field}}}]\n"),
            )
        }
    }
}

/// A program that says how it was started, and fails.
fn telling(folder: &Path, name: &str) {
    let text = "#!/bin/sh\nprintf 'Error: STARTED' >&2\nfor word in \"$@\"; do printf ' [%s]' \"$word\" >&2; done\nexit 1\n";
    script(&folder.join(name), text);
}

/// All of them are refused by name before a program starts, whatever it is.
#[test]
fn what_a_manifest_names_is_never_an_option() {
    let mut files = Vec::new();
    for (shape, field) in NAMED {
        for word in WORDS {
            let word = serde_json::to_string(word).unwrap();
            files.push(named(shape, &field.replace("WORD", &word), files.len()));
        }
    }
    let files = borrowed(&files);
    let folder = gitops(&files);
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
        reasons.iter().partition(|it| it.contains("STARTED"));
    for reason in refused {
        let is_named = refusals.iter().any(|it| reason.contains(it));
        assert!(is_named, "{reason}");
    }
    // A parameter is a value behind an option of ours, whatever its name is. Two words may be a
    // version of an API, and the name of an object is cut.
    let parameters = started.iter().filter(|it| it.contains(" [--set="));
    assert_eq!(parameters.count(), WORDS.len() - 2, "{started:#?}");
    assert_eq!(started.len(), WORDS.len() + 1, "{started:#?}");
    for reason in started {
        let mut options = WORDS
            .iter()
            .filter(|it| it.starts_with('-') && **it != "--");
        let is_told = options.any(|word| reason.contains(&format!("[{word}]")));
        assert!(!is_told, "{reason}");
    }
}

/// What looks around in the place of helm, and says what it could do.
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

/// `helm` may be a script, which starts what is on the PATH, and no more.
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

/// A program that is no script, as helm, starts nothing at all.
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
    let own = [
        "--start=/usr/bin/env",
        "--start=/lib",
        "--start=/lib64",
        "--read=/etc/ld.so.cache",
    ];
    let other = ["--", "/usr/bin/env", "/usr/bin/true"];
    let allowed = confined(&[&own[..], &["--start=/usr/bin"], &other].concat());
    assert_eq!(code(&allowed), 0, "{allowed:?}");
    let refused = confined(&[&own[..], &other].concat());
    assert!(err(&refused).contains("Permission denied"), "{refused:?}");
}
