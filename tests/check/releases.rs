//! Releases of GitOps controllers, rendered by the real helm and the real kustomize. Most cases are
//! in `cases/releases.yaml`.

use std::fs;

use serde_json::Value;
use tempfile::TempDir;

use super::rendering::{check, reported, tools};
use super::{CLASS, out, report, repository};

/// A chart whose strategy and access mode hang on its values.
const CHART: [(&str, &str); 3] = [
    (
        "charts/web/Chart.yaml",
        "apiVersion: v2\nname: web\nversion: 1.2.3\n",
    ),
    (
        "charts/web/values.yaml",
        "strategy: {type: Recreate}\naccessMode: ReadWriteOnce\nprefix: ''\n",
    ),
    ("charts/web/templates/web.yaml", TEMPLATE),
];

const TEMPLATE: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Values.prefix }}{{ .Release.Name }}
spec:
  selector: {matchLabels: {app: web}}
  strategy: {{ toJson .Values.strategy }}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: web, volumeMounts: [{name: data, mountPath: /data}]}]
      volumes:
        - name: data
          persistentVolumeClaim: {claimName: {{ .Values.claim | default .Release.Name }}}
---
{{- if not .Values.claim }}
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: {{ .Release.Name }}
spec:
  accessModes: [{{ .Values.accessMode }}]
  storageClassName: gp3
{{- end }}
";

/// A repository with the chart, a class and these files.
pub(super) fn gitops(files: &[(&str, &str)]) -> TempDir {
    let mut all = CHART.to_vec();
    all.push(("class.yaml", CLASS));
    all.extend(files);
    let folder = repository(&all);
    std::fs::write(
        folder.path().join(".git/config"),
        "[core]\n\tbare = false\n[remote \"origin\"]\n\turl = git@example.com:org/gitops.git\n",
    )
    .unwrap();
    folder
}

fn run(files: &[(&str, &str)]) -> Option<Value> {
    let tools = tools(&["helm", "kustomize"])?;
    let folder = gitops(files);
    let output = check(&folder, tools.path(), ". --format json");
    Some(report(&output))
}

fn release(spec: &str) -> String {
    format!(
        "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata:\n  name: shop\n  namespace: prod\nspec:\n  interval: 1h\n  chart:\n    spec:\n      chart: ./charts/web\n      sourceRef: {{kind: GitRepository, name: flux-system, namespace: flux-system}}\n{spec}"
    )
}

#[test]
fn a_kustomization_inflates_charts_that_are_at_hand() {
    let kustomization = "namespace: prod\nhelmCharts:\n- name: web\n  releaseName: shop\n  valuesInline: {strategy: {type: RollingUpdate}}\n";
    let other = "helmCharts: [{name: redis, repo: 'https://example.com/charts', version: 1.0.0}]\n";
    let report = or_skip!(run(&[
        ("apps/kustomization.yaml", kustomization),
        ("apps/charts/web/Chart.yaml", CHART[0].1),
        ("apps/charts/web/values.yaml", CHART[1].1),
        ("apps/charts/web/templates/web.yaml", CHART[2].1),
        ("other/kustomization.yaml", other),
    ]));
    let reported = reported(&report);
    assert!(
        reported[0].starts_with("prod/shop apps/kustomization.yaml apps"),
        "{reported:?}"
    );
    assert_eq!(
        reported[1..],
        ["kustomization other: it inflates the chart \"redis\", which is not in its charts folder"]
    );
}

/// The printed post-renderer, pasted as it is, repairs.
#[test]
fn a_post_renderer_is_printed_for_a_release() {
    let tools = or_skip!(tools(&["helm", "kustomize"]));
    let template = TEMPLATE.replace("{{ toJson .Values.strategy }}", "{type: RollingUpdate}");
    let text = release("  interval: 2h\n").replace("  interval: 1h\n", "");
    let files = [
        ("charts/web/templates/web.yaml", template.as_str()),
        ("shop.yaml", &text),
    ];
    let folder = gitops(&files);
    let fixed = check(&folder, tools.path(), "shop.yaml class.yaml --fix");
    let renderer = out(&fixed)
        .split_once("spec:\n")
        .expect("a post-renderer")
        .1;
    fs::write(folder.path().join("shop.yaml"), text + renderer).unwrap();
    let after = report(&check(
        &folder,
        tools.path(),
        "shop.yaml class.yaml --format json",
    ));
    assert_eq!(reported(&after), [""; 0], "{}", out(&fixed));
    assert_eq!(after["summary"]["rendered"], 1);
}

#[test]
fn a_notice_on_what_a_chart_makes_stands_at_the_release() {
    let tools = or_skip!(tools(&["helm", "kustomize"]));
    let template = TEMPLATE.replace(
        "metadata:\n  name: {{ .Values.prefix",
        "metadata:\n  annotations: {multi-attach-guard.dev/ignore: none, multi-attach-guard.dev/reason: a test}\n  name: {{ .Values.prefix",
    );
    let release = release("");
    let folder = gitops(&[
        ("shop.yaml", &release),
        ("charts/web/templates/web.yaml", &template),
    ]);
    let text = check(&folder, tools.path(), ".");
    let (_, place) = out(&text)
        .split_once("lists \"none\", and there is no such rule.\n")
        .expect("a notice");
    assert!(place.starts_with("--> shop.yaml:"), "{place}");
}

#[test]
fn two_workloads_of_a_chart_on_one_claim_learn_what_remains() {
    let other = TEMPLATE
        .replace(
            "{{ .Release.Name }}\nspec",
            "{{ .Release.Name }}-worker\nspec",
        )
        .replace("app: web", "app: worker")
        .split("---\n{{- if")
        .next()
        .unwrap()
        .to_owned();
    let release = release("  values: {strategy: {type: Recreate}}\n").replace("web", "two");
    let report = or_skip!(run(&[
        ("shop.yaml", &release),
        ("charts/two/Chart.yaml", &CHART[0].1.replace("web", "two")),
        ("charts/two/values.yaml", CHART[1].1),
        ("charts/two/templates/web.yaml", TEMPLATE),
        ("charts/two/templates/worker.yaml", &other),
    ]));
    let findings = report["findings"].as_array().unwrap().iter();
    let shared: Vec<&str> = findings
        .filter(|it| it["rule"] == "workloads-share-volume")
        .filter_map(|it| it["message"].as_str())
        .collect();
    assert_eq!(shared.len(), 1, "{report:#}");
    assert!(
        shared[0].ends_with("Look for a value of the chart that gives a workload its own claim or its own affinity, or patch what the chart renders."),
        "{shared:?}"
    );
}
