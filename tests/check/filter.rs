//! `check --fix -` as a filter, with other programs around it as docs/gitops.md shows.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

use super::rendering::{CHART, WEB, class_and_claim, tools};
use super::{CLAIM, CLASS, begins, code, err, has, out, program, repository, run_with};

/// The block with `part` in the section of docs/gitops.md.
fn block(part: &str) -> &'static str {
    let page = include_str!("../../docs/gitops.md");
    let (_, section) = page.split_once("\n## Repair what is rendered\n").unwrap();
    let section = section.split("\n## ").next().unwrap();
    let mut blocks = section.split("```").skip(1).step_by(2).filter(|block| block.contains(part));
    blocks.next().unwrap_or_else(|| panic!("no block has {part}")).split_once('\n').unwrap().1
}

/// Runs a command as printed, where these tools and the program are on the PATH.
fn shell(folder: &Path, tools: &TempDir, line: &str) -> Output {
    let program = program(&[]);
    let built = Path::new(program.get_program()).parent().unwrap();
    let path = format!("{}:{}:/usr/bin:/bin", tools.path().display(), built.display());
    let mut bash = Command::new("bash");
    bash.args(["-e", "-o", "pipefail", "-c", line]).current_dir(folder);
    bash.env_clear().envs([("PATH", path.as_str()), ("ARGOCD_APP_NAME", "shop")]);
    bash.env("HOME", tools.path()).output().unwrap()
}

fn is_repaired(output: &Output) {
    assert_eq!(code(output), 0, "{}", err(output));
    has(out(output), "type: Recreate");
    assert!(!out(output).contains("RollingUpdate"), "{}", out(output));
    has(out(output), "kind: PersistentVolumeClaim");
}

#[test]
fn helm_and_argo_cd_send_what_they_render_through_it() {
    let all = class_and_claim();
    let chart = [
        ("charts/shop/Chart.yaml", CHART),
        ("charts/shop/templates/web.yaml", WEB),
        ("charts/shop/templates/claim.yaml", &all),
        ("guard/plugin.yaml", block("postrenderer/v1")),
    ];
    for (helm, line) in [("helm3", "--post-renderer-args"), ("helm", "helm plugin install")] {
        let Some(tools) = tools(&[helm]) else { return };
        let folder = repository(&chart);
        is_repaired(&shell(folder.path(), &tools, block(line)));
        let plugin: Value = serde_saphyr::from_str(block("ConfigManagementPlugin")).unwrap();
        let command = plugin.pointer("/spec/generate/command/2").and_then(Value::as_str).unwrap();
        is_repaired(&shell(&folder.path().join("charts/shop"), &tools, command));
    }
}

#[test]
fn kustomize_runs_it_as_a_function() {
    let Some(tools) = tools(&["kustomize"]) else { return };
    let all = class_and_claim();
    let folder = repository(&[
        (
            "overlays/production/kustomization.yaml",
            "resources: [web.yaml, claim.yaml]\ntransformers: [guard.yaml]\n",
        ),
        ("overlays/production/web.yaml", WEB),
        ("overlays/production/claim.yaml", &all),
        ("overlays/production/guard.yaml", block("kind: Repair")),
    ]);
    is_repaired(&shell(folder.path(), &tools, block("--enable-exec")));
}

#[test]
fn only_the_repaired_text_is_written_and_only_if_all_of_it_was_read() {
    let folder = repository(&[]);
    let filter = |input: &str| run_with(&folder, &["check", "--fix", "-"], input);
    let right = format!("# The shop.\n{CLASS}---\n{CLAIM}");
    let silent = filter(&right);
    assert_eq!((code(&silent), out(&silent)), (0, &*right));

    let faulty = format!("{right}---\n# Source: shop/templates/web.yaml\n{WEB}");
    let repaired = filter(&faulty);
    assert_eq!(out(&repaired), faulty.replace("type: RollingUpdate", "type: Recreate"));
    has(err(&repaired), "-: repaired Deployment web with recreate.");
    has(err(&repaired), "No findings.");
    let json = run_with(&folder, &["check", "--fix", "-", "--format", "json"], &faulty);
    assert_eq!(out(&json), out(&repaired));
    has(err(&json), "\"findings\": []");
    let patch = run_with(&folder, &["check", "--diff", "-"], &faulty);
    begins(out(&patch), "---\n# A patch for Deployment web");

    let replicas = WEB.replace("spec:\n  selector", "spec:\n  replicas: 3\n  selector");
    let incurable = format!("{right}---\n{}", replicas.replace("RollingUpdate", "Recreate"));
    let left = filter(&incurable);
    assert_eq!((code(&left), out(&left)), (1, &*incurable));

    let in_part = format!("{faulty}---\nkind: [\n");
    for (unreadable, exit_code) in [("", 2), ("}{", 2), ("a: [", 2), (&*in_part, 1)] {
        let refused = filter(unreadable);
        assert_eq!((code(&refused), out(&refused)), (exit_code, ""), "{unreadable}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "only .git");
}
