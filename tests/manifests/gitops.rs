//! `action.yml`, `.pre-commit-hooks.yaml` and `docs/gitops.md` name only existing things, and the
//! action works as documented.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output};
use std::thread;

use clap::Parser;
use engine::remedy::REMEDIES;
use engine::rules::codes;
use multi_attach_guard::cli::Cli;
use serde_json::Value;
use source::policy_file;

use crate::harness;
use crate::harness::output::{code, err, has, out};
use crate::pages::{blocks, section};
use crate::release::release;
use crate::rendered::{documents, script};
use crate::repository;

const PROGRAM: &str = "multi-attach-guard";

/// Names of other programs in `docs/gitops.md` that look like rules.
const FOREIGN: [&str; 6] = [
    "deployment-strategy",
    "deployment-replicas",
    "deployment-has-host-podantiaffinity",
    "no-rolling-update-strategy",
    "minimum-three-replicas",
    "no-anti-affinity",
];

fn text(name: &str) -> String {
    fs::read_to_string(repository(name)).unwrap()
}

/// The inline code of a page.
fn spans(page: &str) -> impl Iterator<Item = &str> {
    page.split("\n```").step_by(2).flat_map(|prose| prose.split('`').skip(1).step_by(2))
}

/// The arguments of every call of the program in shell text.
fn calls(text: &str) -> Vec<Vec<&str>> {
    text.lines()
        .flat_map(|line| line.split(['|', ';', '>']))
        .filter_map(|command| {
            command
                .trim()
                .trim_start_matches("- ")
                .split(" #")
                .next()
                .unwrap_or_default()
                .strip_prefix(PROGRAM)?
                .strip_prefix(' ')
        })
        .map(|arguments| arguments.split_whitespace().collect())
        .collect()
}

#[track_caller]
fn is_understood(arguments: &[&str]) {
    if let Err(error) = Cli::try_parse_from([&[PROGRAM], arguments].concat()) {
        panic!("{PROGRAM} {}: {error}", arguments.join(" "));
    }
}

#[test]
fn every_command_of_the_page_is_understood() {
    let page = text("docs/gitops.md");
    let mut seen = BTreeSet::new();
    let shell = blocks(&page).into_iter().map(|(_, block)| block);
    for text in shell.chain(spans(&page)) {
        for arguments in calls(text) {
            is_understood(&arguments);
            // A pipeline also fails if a wrong path leaves nothing to judge.
            let is_strict = arguments.contains(&"incomplete");
            assert_eq!(is_strict, arguments.contains(&"--fail-if-no-objects"), "{arguments:?}");
            seen.insert(arguments[0].to_owned());
        }
    }
    // In prose, options may be written without a path.
    for span in spans(&page).filter(|span| span.starts_with("check ")) {
        is_understood(&span.split(' ').chain(["."]).collect::<Vec<_>>());
    }
    assert_eq!(seen, ["check", "snapshot"].map(str::to_owned).into());
}

#[test]
fn every_block_of_the_page_parses() {
    let page = text("docs/gitops.md");
    let mut policies = 0;
    for (language, block) in blocks(&page) {
        match language {
            "yaml" => drop(documents(block)),
            "json" => drop(serde_json::from_str::<Value>(block).unwrap()),
            // Other programs start it as a post-renderer or a function.
            "sh" if block.contains("post-renderer") || block.contains("--enable-exec") => {}
            "sh" => assert!(!calls(block).is_empty(), "{block}"),
            other => panic!("a block in {other:?}"),
        }
        if block.starts_with("# .multi-attach-guard.yaml\n") {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("policy.yaml");
            fs::write(&path, block).unwrap();
            policy_file::effective(Some(&path)).unwrap();
            policies += 1;
        }
    }
    assert_eq!(policies, 1);
}

#[test]
fn every_name_on_the_page_exists() {
    let page = text("docs/gitops.md");
    let hooks = hooks();
    let known = |name: &str| {
        codes::find(name).is_some()
            || REMEDIES.iter().any(|remedy| remedy.name == name)
            || hooks.iter().any(|hook| hook["id"] == name)
            || FOREIGN.contains(&name)
    };
    let kebab = |name: &&str| {
        let has_hyphen = name.contains('-') && !name.starts_with('-');
        has_hyphen && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'-')
    };
    let mut names: Vec<&str> = spans(&page).filter(kebab).collect();
    for (_, block) in blocks(&page) {
        for line in block.lines() {
            names.extend(line.trim().strip_prefix("multi-attach-guard.dev/ignore: "));
            names.extend(line.trim().strip_prefix("- id: "));
        }
    }
    assert!(names.contains(&"rolling-update-overlap") && names.contains(&"multi-attach-guard-fix"));
    for name in names {
        assert!(known(name), "there is no {name}");
    }
}

/// A Flux repository, and an app of cdk8s.
const TOOLS: [(&str, &[(&str, &str)]); 2] = [
    (
        "flate",
        &[
            (
                "clusters/production/apps.yaml",
                "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\n\
                 metadata: {name: apps, namespace: flux-system}\n\
                 spec:\n  interval: 10m\n  path: ./apps\n  prune: true\n  \
                 sourceRef: {kind: GitRepository, name: flux-system}\n",
            ),
            (
                "apps/kustomization.yaml",
                "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [web.yaml]\n",
            ),
        ],
    ),
    (
        "cdk8s",
        &[
            ("cdk8s.yaml", "language: typescript\napp: node main.js\n"),
            (
                "main.js",
                "const { App, Chart, ApiObject } = require('cdk8s');\n\
                 const app = new App(), chart = new Chart(app, 'shop', { namespace: 'shop' });\n\
                 const metadata = { name: 'web' }, labels = { app: 'web' };\n\
                 const volumes = [{ name: 'data', persistentVolumeClaim: { claimName: 'web' } }];\n\
                 const volumeMounts = [{ name: 'data', mountPath: '/data' }];\n\
                 const containers = [{ name: 'web', image: 'web', volumeMounts }];\n\
                 const template = { metadata: { labels }, spec: { containers, volumes } };\n\
                 new ApiObject(chart, 'claim', { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata,\n\
                   spec: { accessModes: ['ReadWriteOnce'] } });\n\
                 new ApiObject(chart, 'web', { apiVersion: 'apps/v1', kind: 'Deployment', metadata,\n\
                   spec: { selector: { matchLabels: labels }, template } });\n\
                 app.synth();\n",
            ),
        ],
    ),
];

/// Each line of the page works as it is printed, if this machine has its program.
#[test]
fn what_other_tools_print_is_judged() {
    let page = text("docs/gitops.md").replace("\\|", "|");
    let built = Path::new(env!("CARGO_BIN_EXE_multi-attach-guard")).parent().unwrap();
    for (name, files) in TOOLS {
        let tool = harness::or_skip!(harness::require_tool(name)).canonicalize().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let example = text("examples/web.yaml");
        for (file, content) in files.iter().chain([&("apps/web.yaml", &*example)]) {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        let line = spans(&page).find(|span| span.starts_with(&format!("{name} "))).unwrap();
        let modules = tool.ancestors().find(|place| place.ends_with("node_modules"));
        let inherited = std::env::var("PATH").unwrap();
        let path = format!("{}:{}:{inherited}", tool.parent().unwrap().display(), built.display());
        let mut bash = Command::new("bash");
        bash.args(["-c", &format!("git init --quiet && {line}")]).current_dir(&folder);
        bash.env("PATH", path).env("NODE_PATH", modules.unwrap_or(Path::new("")));
        let judged = bash.output().unwrap();
        has(out(&judged), "[rolling-update-overlap]: Deployment shop/web");
        has(out(&judged), "2 objects checked in 1 file.");
    }
}

fn hooks() -> Vec<Value> {
    serde_saphyr::from_str(&text(".pre-commit-hooks.yaml")).unwrap()
}

#[test]
fn every_hook_is_understood() {
    for hook in hooks() {
        let entry = hook["entry"].as_str().unwrap();
        let further = hook["args"].as_array().unwrap().iter();
        let arguments: Vec<&str> = entry
            .split(' ')
            .skip(1)
            .chain(further.map(|argument| argument.as_str().unwrap()))
            .collect();
        is_understood(&arguments);
        assert_eq!(entry.split(' ').next(), Some(PROGRAM));
    }
}

/// The configuration on the page, in a repository of a user who has only the release's wheel.
#[test]
fn pre_commit_runs_the_hooks() {
    let tool = harness::or_skip!(harness::require_tool("pre-commit"));
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let write = |name: &str, text: &str| {
        fs::create_dir_all(at(name).parent().unwrap()).unwrap();
        fs::write(at(name), text).unwrap();
    };
    for file in [".pre-commit-hooks.yaml", "pyproject.toml", "Cargo.toml", "README.md"] {
        write(&format!("hooks/{file}"), &text(file));
    }
    write("hooks/.ci/wheels.py", &text(".ci/wheels.py"));
    write("user/apps/web.yaml", &text("examples/web.yaml"));
    write("user/clusters/all.yaml", &text("examples/facts/cluster.yaml"));
    let git = "git init --quiet && git add --all && \
        git -c user.name=a -c user.email=a@a commit --quiet --message=a && git rev-parse HEAD";
    let commit = script(&at("hooks"), git);
    script(&at("user"), git);
    let built = env!("CARGO_BIN_EXE_multi-attach-guard");
    fs::create_dir(at("dist")).unwrap();
    release(&at("dist"), &format!("#!/bin/sh\nexec '{built}' \"$@\"\n"));
    let section = section("gitops.md", "pre-commit");
    let config = blocks(&section)[0]
        .1
        .replace("https://github.com/multi-attach-guard/multi-attach-guard", "../hooks")
        .replace(concat!("v", env!("CARGO_PKG_VERSION")), commit.trim());
    for (hook, exit_code, says) in [
        ("multi-attach-guard", 1, "[rolling-update-overlap]: Deployment shop/web"),
        ("multi-attach-guard-fix", 1, "files were modified by this hook"),
        ("multi-attach-guard", 0, "Passed"),
    ] {
        let id = format!("id: {hook}");
        write("user/.pre-commit-config.yaml", &config.replace("id: multi-attach-guard", &id));
        let mut pre_commit = Command::new(&tool);
        pre_commit.args(["run", "--all-files"]).current_dir(at("user"));
        pre_commit.env("PRE_COMMIT_HOME", at("home"));
        pre_commit.env("PIP_NO_INDEX", "1").env("PIP_FIND_LINKS", at("dist"));
        let output = pre_commit.output().unwrap();
        assert_eq!(code(&output), exit_code, "{hook}: {output:?}");
        has(out(&output), says);
    }
}

fn action() -> Value {
    documents(&text("action.yml")).swap_remove(0)
}

/// The input that a variable of a step is set to.
fn input_of(variable: &Value) -> &str {
    variable
        .as_str()
        .unwrap()
        .strip_prefix("${{ inputs.")
        .and_then(|input| input.strip_suffix(" }}"))
        .unwrap_or_else(|| panic!("{variable}"))
}

#[test]
fn every_input_of_the_action_is_used_and_no_other() {
    let action = action();
    let inputs: BTreeSet<&str> =
        action["inputs"].as_object().unwrap().keys().map(String::as_str).collect();
    let steps = action["runs"]["steps"].as_array().unwrap();
    let variables = steps.iter().filter_map(|step| step["env"].as_object());
    let used = variables.flat_map(|of_step| of_step.values()).map(input_of);
    assert_eq!(used.collect::<BTreeSet<_>>(), inputs);
    let page = text("docs/gitops.md");
    let mut seen = 0;
    for (_, block) in blocks(&page) {
        if !block.contains("uses: multi-attach-guard/") {
            continue;
        }
        let document = documents(block).swap_remove(0);
        let job = document.pointer("/jobs/manifests/steps");
        for step in job.unwrap_or(&document).as_array().unwrap() {
            let uses = step["uses"].as_str().unwrap_or_default();
            let given = step["with"].as_object().into_iter().flatten();
            for (input, _) in given.filter(|_| uses.starts_with("multi-attach-guard/")) {
                assert!(inputs.contains(&**input), "the action has no input {input}");
                seen += 1;
            }
        }
    }
    assert!(seen > 0);
    // No text from users becomes part of a script.
    for step in steps {
        let script = step["run"].as_str().unwrap_or_default();
        assert!(!script.contains("${{"), "{script}");
    }
}

/// Runs a step of the action in `folder` as a runner would, with these inputs and the defaults of
/// the others.
fn run_step(id: &str, folder: &Path, inputs: &[(&str, &str)]) -> Output {
    let action = action();
    let mut steps = action["runs"]["steps"].as_array().unwrap().iter();
    let step = steps.find(|step| step["id"] == id).unwrap();
    let mut command = Command::new("bash");
    command
        .args(["--noprofile", "--norc", "-e", "-o", "pipefail", "-c"])
        .arg(step["run"].as_str().unwrap())
        .current_dir(folder)
        .env("GITHUB_ACTION_PATH", env!("CARGO_MANIFEST_DIR"))
        .env("HOME", folder.join("home"));
    for (variable, value) in step["env"].as_object().unwrap() {
        let input = input_of(value);
        let given = inputs.iter().find(|(name, _)| *name == input);
        let default = action["inputs"][input]["default"].as_str().unwrap();
        command.env(variable, given.map_or(default, |(_, set_to)| set_to));
    }
    command.output().unwrap()
}

/// A download must not be redirected to a protocol that allows others to change it on the way.
#[test]
fn a_download_follows_no_redirect_to_http() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let downloads = format!("http://{}", server.local_addr().unwrap());
    let elsewhere = format!("{downloads}/elsewhere");
    let asked = thread::spawn(move || {
        let (mut stream, _) = server.accept().unwrap();
        // The request is one small packet.
        assert!(stream.read(&mut [0; 4096]).unwrap() > 0);
        let answer = format!(
            "HTTP/1.1 302 Found\r\nlocation: {elsewhere}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        );
        stream.write_all(answer.as_bytes()).unwrap();
        server.set_nonblocking(true).unwrap();
        server
    });
    let folder = tempfile::tempdir().unwrap();
    let fetched = run_step("program", folder.path(), &[("downloads", &downloads)]);
    assert!(!fetched.status.success(), "{fetched:?}");
    has(err(&fetched), "could not be downloaded");
    let again = asked.join().unwrap().accept();
    assert!(again.is_err(), "It asked there: {again:?}");
}

#[test]
fn the_action_checks_the_paths_it_is_given() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("my apps/web.yaml", &text("examples/web.yaml"));
    write("facts/all.yaml", &text("examples/facts/cluster.yaml"));
    write("policy.yaml", "defaults: {outcomes: {deadlock: warn}}\n");
    let served = tempfile::tempdir().unwrap();
    let built = env!("CARGO_BIN_EXE_multi-attach-guard");
    let program = format!("#!/bin/sh\nexec '{built}' \"$@\"\n");
    release(served.path(), &program);
    let downloads = format!("file://{}", served.path().display());
    let fetched = run_step("program", folder.path(), &[("downloads", &downloads)]);
    assert!(fetched.status.success(), "{fetched:?}");
    let error = "::error file=my apps/web.yaml,line=";
    let warning = "::warning file=my apps/web.yaml,line=";
    let findings = "{\n  \"findings\": [";
    let paths = ("paths", "my apps\n");
    let facts = ("facts", "facts\n");
    let policy = ("config", "policy.yaml");
    for (inputs, expected, start) in [
        (&[][..], 1, error),
        (&[paths, facts], 1, error),
        (&[paths], 0, warning),
        (&[paths, ("fail-on", "warn")], 1, warning),
        (&[paths, facts, policy], 0, warning),
        (&[paths, facts, ("format", "json")], 1, findings),
        (&[paths, facts, ("output", "out.txt")], 1, ""),
        (&[("paths", "$(touch x)")], 2, "::error"),
    ] {
        let output = run_step("check", folder.path(), inputs);
        assert_eq!(code(&output), expected, "{inputs:?}: {output:?}");
        let out = out(&output);
        assert!(out.starts_with(start), "{inputs:?}: {out}");
        assert!(!start.is_empty() || out.is_empty(), "{inputs:?}: {out}");
    }
    let written = fs::read_to_string(folder.path().join("out.txt")).unwrap();
    assert!(written.starts_with(error), "{written}");
    assert!(!folder.path().join("x").exists());
}
