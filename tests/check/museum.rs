//! Every shape of release with a chart that is elsewhere, from one museum on loopback.

use super::fetching::{Answer, Server, digest, index, packed};
use super::releases::{gitops, reported};
use super::rendering::{check, report, tools};

const ROLLING: &str = "{strategy: {type: RollingUpdate}}";

/// A HelmRelease whose specification names the chart in this way.
fn release(name: &str, chart: &str) -> String {
    format!(
        "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {{name: {name}, namespace: prod}}\nspec:\n  {chart}\n  values: {ROLLING}\n"
    )
}

/// An object of Flux that names the museum.
fn source(kind: &str, spec: &str) -> String {
    format!(
        "apiVersion: source.toolkit.fluxcd.io/v1\nkind: {kind}\nmetadata: {{name: charts, namespace: prod}}\nspec: {{{spec}}}\n"
    )
}

fn application(source: &str) -> String {
    format!(
        "spec:\n  destination: {{namespace: prod}}\n  source: {{{source}, chart: web, targetRevision: 1.2.3, helm: {{valuesObject: {ROLLING}}}}}\n"
    )
}

/// A file for each shape, and how many releases stand in it.
fn shapes(port: u16) -> Vec<(&'static str, String, usize)> {
    let host = format!("127.0.0.1:{port}");
    let url = format!("http://{host}");
    let oci = format!("oci://{host}/charts");
    let argo = |kind: &str, name: &str, rest: &str| {
        format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: {kind}\nmetadata: {{name: {name}, namespace: argocd}}\n{rest}"
        )
    };
    vec![
        (
            "repositories.yaml",
            source("HelmRepository", &format!("url: '{url}'")),
            0,
        ),
        (
            "registries.yaml",
            source(
                "OCIRepository",
                &format!("url: '{oci}/web', ref: {{tag: 1.2.3}}"),
            ),
            0,
        ),
        (
            "chart.yaml",
            source(
                "HelmChart",
                "chart: web, version: 1.x, sourceRef: {kind: HelmRepository, name: charts}",
            ),
            0,
        ),
        (
            "repository.yaml",
            release(
                "a",
                "chart: {spec: {chart: web, version: '>=1.0.0 <2.0.0', sourceRef: {kind: HelmRepository, name: charts}}}",
            ),
            1,
        ),
        (
            "registry.yaml",
            release("b", "chartRef: {kind: OCIRepository, name: charts}"),
            1,
        ),
        (
            "reference.yaml",
            release("c", "chartRef: {kind: HelmChart, name: charts}"),
            1,
        ),
        (
            "application.yaml",
            argo(
                "Application",
                "d",
                &application(&format!("repoURL: '{url}'")),
            ),
            1,
        ),
        (
            "plain.yaml",
            argo(
                "Application",
                "e",
                &application(&format!("repoURL: '{host}/charts'")),
            ),
            1,
        ),
        (
            "umbrella/Chart.yaml",
            format!(
                "apiVersion: v2\nname: umbrella\nversion: 1.0.0\ndependencies: [{{name: web, version: 1.2.3, repository: '{oci}'}}]\n"
            ),
            1,
        ),
        ("umbrella/values.yaml", format!("web: {ROLLING}\n"), 0),
    ]
}

#[test]
fn every_shape_is_opened() {
    let Some(tools) = tools(&["helm", "kustomize"]) else {
        return;
    };
    let server = Server::start();
    let shapes = shapes(server.port);
    let wanted: usize = shapes.iter().map(|(_, _, count)| count).sum();
    let files: Vec<(&str, &str)> = shapes
        .iter()
        .map(|(name, text, _)| (*name, text.as_str()))
        .collect();
    let folder = gitops(&files);
    let chart = packed(tools.path(), &folder.path().join("charts/web"));
    let layer = format!("sha256:{}", digest(&chart));
    let manifest = format!(
        "{{\"layers\": [{{\"mediaType\": \"application/vnd.cncf.helm.chart.content.v1.tar+gzip\", \"digest\": \"{layer}\"}}]}}"
    );
    server.answer("/index.yaml", index("web-1.2.3.tgz", &digest(&chart)));
    server.answer("/web-1.2.3.tgz", Answer::Bytes(chart.clone()));
    server.answer(
        "/v2/charts/web/manifests/1.2.3",
        Answer::Bytes(manifest.into_bytes()),
    );
    server.answer(
        &format!("/v2/charts/web/blobs/{layer}"),
        Answer::Bytes(chart),
    );
    // The chart stands for itself only where nothing delivers it.
    std::fs::remove_dir_all(folder.path().join("charts")).unwrap();
    let output = check(
        &folder,
        tools.path(),
        &[
            ".",
            "--format",
            "json",
            "--fetch=require",
            "--fetch-cache",
            "cache",
            "--fetch-from",
            "127.0.0.1",
        ],
    );
    let report = report(&output);
    let reported = reported(&report);
    assert_eq!(reported.len(), wanted, "{reported:#?} {output:?}");
    assert_eq!(
        report["summary"]["unopened"],
        serde_json::json!({}),
        "{output:?}"
    );
    assert_eq!(report["summary"]["rendered"], wanted, "{output:?}");
}
