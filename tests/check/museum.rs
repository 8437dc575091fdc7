//! Every shape of release with a chart that is elsewhere, from one museum on loopback.

use super::fetching::{Answer, FETCH, Server, packed};
use super::releases::gitops;
use super::rendering::{check, reported, tools};
use super::report;

/// The releases, with HOST for the museum.
const SHAPES: &str = "\
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: charts, namespace: prod}
spec: {url: 'http://HOST'}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: OCIRepository
metadata: {name: charts, namespace: prod}
spec: {url: 'oci://HOST/charts/web', ref: {tag: 1.2.3}}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmChart
metadata: {name: charts, namespace: prod}
spec: {chart: web, version: 1.x, sourceRef: {kind: HelmRepository, name: charts}}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: a, namespace: prod}
spec:
  chart: {spec: {chart: web, version: '>=1.0.0 <2.0.0', sourceRef: {kind: HelmRepository, name: charts}}}
  values: {strategy: {type: RollingUpdate}}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: b, namespace: prod}
spec: {chartRef: {kind: OCIRepository, name: charts}, values: {strategy: {type: RollingUpdate}}}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: c, namespace: prod}
spec: {chartRef: {kind: HelmChart, name: charts}, values: {strategy: {type: RollingUpdate}}}
---
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: d, namespace: argocd}
spec:
  destination: {namespace: prod}
  source: {repoURL: 'http://HOST', chart: web, targetRevision: 1.2.3, helm: {valuesObject: {strategy: {type: RollingUpdate}}}}
---
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: e, namespace: argocd}
spec:
  destination: {namespace: prod}
  source: {repoURL: 'HOST/charts', chart: web, targetRevision: 1.2.3, helm: {valuesObject: {strategy: {type: RollingUpdate}}}}
";

/// One more, by a dependency.
const UMBRELLA: &str = "apiVersion: v2\nname: umbrella\nversion: 1.0.0\ndependencies: [{name: web, version: 1.2.3, repository: 'oci://HOST/charts'}]\n";

#[test]
fn every_shape_is_opened() {
    let tools = or_skip!(tools(&["helm", "kustomize"]));
    let server = Server::start();
    let host = format!("127.0.0.1:{}", server.port);
    let folder = gitops(&[
        ("shapes.yaml", &SHAPES.replace("HOST", &host)),
        ("umbrella/Chart.yaml", &UMBRELLA.replace("HOST", &host)),
        (
            "umbrella/values.yaml",
            "web: {strategy: {type: RollingUpdate}}\n",
        ),
    ]);
    let wanted = 6;
    let chart = packed(tools.path(), &folder.path().join("charts/web"));
    server.offers(&chart);
    server.pushes(&chart, Answer::Bytes);
    // The chart stands for itself only where nothing delivers it.
    std::fs::remove_dir_all(folder.path().join("charts")).unwrap();
    let fetch = FETCH.replace("--fetch ", "--fetch=require ");
    let output = check(&folder, tools.path(), &format!(". --format json {fetch}"));
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
