//! Releases of hostile repositories: they end, run nothing and hide nothing else.

use std::fmt::Write as _;
use std::fs;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::attacks::{NAMED, both, named};
use super::releases::gitops;
use super::rendering::{check, check_with, reported, tools};
use super::{borrowed, err, out, report, script};

const SHOP: &str = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: shop, namespace: prod}\nspec:\n  chart: {spec: {chart: charts/web, sourceRef: {kind: GitRepository, name: flux-system}}}\n  values:\n    strategy: {type: RollingUpdate}\n";

/// The finding that is there beside all that is hostile.
const FOUND: &str = "prod/shop shop.yaml charts/web";

/// What is reported besides that one.
fn other_reports(files: &[(&str, &str)]) -> Option<Vec<String>> {
    let tools = tools(&["helm", "kustomize"])?;
    let mut all = vec![("shop.yaml", SHOP)];
    all.extend(files);
    let folder = gitops(&all);
    let output = check(&folder, tools.path(), ". --format json");
    let mut reported = reported(&report(&output));
    assert!(!folder.path().join("ran").exists(), "{output:?}");
    let at = reported.iter().position(|it| it == FOUND);
    reported.remove(at.unwrap_or_else(|| panic!("{reported:?} {output:?}")));
    Some(reported)
}

#[test]
fn values_without_end_are_refused() {
    let mut keys = String::new();
    for number in 0..1_000_000 {
        writeln!(keys, "    k{number}: 1").unwrap();
    }
    let inline = SHOP.replace("name: shop", "name: inline") + &keys;
    let file = keys.replace("    ", "");
    let application = "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: file, namespace: argocd}\nspec:\n  destination: {namespace: prod}\n  source: {repoURL: 'https://example.com/org/gitops', path: charts/web, helm: {valueFiles: [/many.yaml]}}\n";
    let reported = or_skip!(other_reports(&[
        ("inline.yaml", &inline),
        ("many.yaml", &file),
        ("file.yaml", application),
    ]));
    assert_eq!(
        reported,
        [
            "Application argocd/file: /many.yaml cannot be read: it is larger than 4194304 bytes",
            "HelmRelease prod/inline: it is larger than 4 MiB",
        ]
    );
}

/// `lookup` finds nothing without a cluster, and hooks are rendered with the rest.
#[test]
fn charts_that_ask_a_cluster_are_rendered_without_one() {
    let tools = or_skip!(tools(&["helm", "kustomize"]));
    let folder = gitops(&[("shop.yaml", SHOP)]);
    let template = folder.path().join("charts/web/templates/web.yaml");
    let text = fs::read_to_string(&template).unwrap();
    let asks = "{{- $there := lookup \"v1\" \"Secret\" \"prod\" \"shop\" }}\n{{- if $there }}\n{{- fail \"there is a cluster\" }}\n{{- end }}\n";
    fs::write(&template, format!("{asks}{text}")).unwrap();
    let hook = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: migrate, annotations: {helm.sh/hook: pre-upgrade}}\nspec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}}\n";
    fs::write(template.with_file_name("hook.yaml"), hook).unwrap();
    let output = check(&folder, tools.path(), ". --format json");
    assert_eq!(reported(&report(&output)), [FOUND], "{output:?}");
}

/// Names that a program takes for an option, where it does not run them, read this file of
/// the machine or write into this folder.
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

/// More fields that a program is told.
const MORE: [(&str, &str); 3] = [
    ("application", "valueFiles: [WORD]"),
    ("application", "kubeVersion: WORD"),
    ("application", "apiVersions: [WORD]"),
];

/// Helm 3 runs a post-renderer that its command line names; Helm 4 reads and writes files by such
/// names. With namespaces and without, neither is told one.
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
            let mut files = vec![("shop.yaml".to_owned(), SHOP.to_owned())];
            for (shape, field) in NAMED.into_iter().chain(MORE) {
                for name in &names {
                    let name = Value::from(name.as_str()).to_string();
                    files.push(named(shape, &field.replace("WORD", &name), files.len()));
                }
            }
            // A folder can have any name that has no slash.
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
            // What becomes of two of the names where helm is told them.
            for name in &names[..2] {
                let mut told = Command::new(bin.path().join("helm"));
                let told = told.args(["template", name, "charts/web"]);
                told.current_dir(folder.path()).output().unwrap();
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
            assert!(
                !said.contains("hunter2"),
                "{helm} read a file or the environment: {said}"
            );
            let report = report(&output);
            let reported = reported(&report);
            assert_eq!(reported[0], FOUND, "{helm}: {reported:#?}");
        }
    }
}
