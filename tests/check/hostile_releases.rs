//! Releases of hostile repositories: they end, run nothing and hide nothing else.

use std::fmt::Write as _;
use std::fs;

use super::releases::{gitops, reported};
use super::rendering::{check, report, tools};

const SHOP: &str = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: shop, namespace: prod}\nspec:\n  chart: {spec: {chart: charts/web, sourceRef: {kind: GitRepository, name: flux-system}}}\n  values:\n    strategy: {type: RollingUpdate}\n";

/// The finding that is there beside all that is hostile.
const FOUND: &str = "prod/shop shop.yaml charts/web";

/// What is reported besides that one.
fn other_reports(files: &[(&str, &str)]) -> Option<Vec<String>> {
    let tools = tools(&["helm", "kustomize"])?;
    let mut all = vec![("shop.yaml", SHOP)];
    all.extend(files);
    let folder = gitops(&all);
    let output = check(&folder, tools.path(), &[".", "--format", "json"]);
    let mut reported = reported(&report(&output));
    assert!(!folder.path().join("ran").exists(), "{output:?}");
    let at = reported.iter().position(|it| it == FOUND);
    reported.remove(at.unwrap_or_else(|| panic!("{reported:?} {output:?}")));
    Some(reported)
}

#[test]
fn circles_of_applications_end() {
    let chart = "apiVersion: v2\nname: apps\nversion: 1.0.0\n";
    let both = |path: &str| {
        format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: {path}}}\nspec:\n  destination: {{namespace: prod}}\n  source: {{repoURL: 'https://example.com/org/gitops', path: {path}}}\n"
        )
    };
    let Some(reported) = other_reports(&[
        ("one/Chart.yaml", chart),
        ("one/templates/two.yaml", &both("two")),
        ("two/Chart.yaml", chart),
        ("two/templates/one.yaml", &both("one")),
        ("two/templates/self.yaml", &both("two")),
    ]) else {
        return;
    };
    assert_eq!(reported, [""; 0]);
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
    let Some(reported) = other_reports(&[
        ("inline.yaml", &inline),
        ("many.yaml", &file),
        ("file.yaml", application),
    ]) else {
        return;
    };
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
    let Some(tools) = tools(&["helm", "kustomize"]) else {
        return;
    };
    let folder = gitops(&[("shop.yaml", SHOP)]);
    let template = folder.path().join("charts/web/templates/web.yaml");
    let text = fs::read_to_string(&template).unwrap();
    let asks = "{{- $there := lookup \"v1\" \"Secret\" \"prod\" \"shop\" }}\n{{- if $there }}\n{{- fail \"there is a cluster\" }}\n{{- end }}\n";
    fs::write(&template, format!("{asks}{text}")).unwrap();
    let hook = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: migrate, annotations: {helm.sh/hook: pre-upgrade}}\nspec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}}\n";
    fs::write(template.with_file_name("hook.yaml"), hook).unwrap();
    let output = check(&folder, tools.path(), &[".", "--format", "json"]);
    assert_eq!(reported(&report(&output)), [FOUND], "{output:?}");
}

/// What refers to itself, and what is no chart.
#[test]
fn releases_that_lead_nowhere_are_named() {
    let release = |name: &str, spec: &str| {
        format!(
            "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {{name: {name}, namespace: prod}}\nspec: {{{spec}}}\n"
        )
    };
    let chart = "apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmChart\nmetadata: {name: circle, namespace: prod}\nspec: {chart: web, sourceRef: {kind: HelmChart, name: circle}}\n";
    let git =
        "chart: {spec: {chart: charts/web, sourceRef: {kind: GitRepository, name: flux-system}}}";
    let application = "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: own, namespace: argocd}\nspec:\n  destination: {namespace: prod}\n  sources:\n  - {repoURL: 'https://example.com/org/gitops', path: charts/web, ref: own, helm: {valueFiles: [$own/charts/web/values.yaml, $none/values.yaml]}}\n";
    let Some(reported) = other_reports(&[
        ("chart.yaml", chart),
        (
            "circle.yaml",
            &release("circle", "chartRef: {kind: HelmChart, name: circle}"),
        ),
        (
            "program.yaml",
            &release(
                "program",
                &format!("{git}, postRenderers: [{{exec: {{command: ./run}}}}]"),
            ),
        ),
        ("run", "#!/bin/sh\ntouch ran\n"),
        ("own.yaml", application),
    ]) else {
        return;
    };
    assert_eq!(
        reported,
        [
            "HelmRelease prod/circle: its chart is in a HelmChart",
            "Application argocd/own: none of its sources is called none",
            "HelmRelease prod/program: it has a post-renderer that is not kustomize",
        ]
    );
}
