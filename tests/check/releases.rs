//! Releases of GitOps controllers, rendered by the real helm and the real kustomize.

use serde_json::Value;
use tempfile::TempDir;

use super::rendering::{check, class_and_claim, found, report, tools};
use super::{CLASS, code, err, repository};

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

const ROLLING: &str = "strategy: {type: RollingUpdate}";

/// A repository with the chart, a class and these files.
fn gitops(files: &[(&str, &str)]) -> TempDir {
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
    let output = check(&folder, tools.path(), &[".", "--format", "json"]);
    Some(report(&output))
}

fn release(spec: &str) -> String {
    format!(
        "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata:\n  name: shop\n  namespace: prod\nspec:\n  interval: 1h\n  chart:\n    spec:\n      chart: ./charts/web\n      sourceRef: {{kind: GitRepository, name: flux-system, namespace: flux-system}}\n{spec}"
    )
}

fn application(source: &str) -> String {
    format!(
        "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: shop, namespace: argocd}}\nspec:\n  destination: {{namespace: prod, server: https://kubernetes.default.svc}}\n  source:\n    repoURL: https://example.com/org/gitops\n{source}"
    )
}

/// What was found, then what was not opened, with the reason.
fn told(report: &Value) -> Vec<String> {
    let mut told = found(report);
    for unopened in report["unopened"].as_array().unwrap() {
        let text = |key: &str| unopened[key].as_str().unwrap().to_owned();
        told.push(format!("{} {}: {}", text("kind"), text("path"), text("reason")));
    }
    told
}

#[test]
fn a_helm_release_is_rendered_with_all_its_values() {
    let rolling = format!("  values:\n    {ROLLING}\n");
    let from = |rest: &str| {
        release(&format!(
            "  valuesFrom:\n  - {{kind: ConfigMap, name: shop{rest}}}\n"
        ))
    };
    let data = |kind: &str, field: &str, key: &str, text: &str| {
        format!("---\napiVersion: v1\nkind: {kind}\nmetadata: {{name: shop, namespace: prod}}\n{field}:\n  {key}: \"{text}\"\n")
    };
    let config = data("ConfigMap", "data", "values.yaml", ROLLING);
    let typed = data("ConfigMap", "data", "type", "RollingUpdate");
    let secret = data("Secret", "data", "values.yaml", "c3RyYXRlZ3k6IHt0eXBlOiBSb2xsaW5nVXBkYXRlfQ==");
    let encrypted = format!("{secret}sops: {{mac: x}}\n");
    let secret_release = from("").replace("ConfigMap", "Secret");
    let patch = "  values: {strategy: {type: RollingUpdate}}\n  postRenderers:\n  - kustomize:\n      patches:\n      - target: {kind: Deployment}\n        patch: |\n          - {op: replace, path: /spec/strategy, value: {type: Recreate}}\n";
    let found = |line: usize| format!("prod/shop apps/shop.yaml:{line} charts/web");
    let table: [(&str, String, Vec<String>); 8] = [
        ("the chart's own values", release(""), vec![]),
        ("values", release(&rolling), vec![found(12)]),
        ("a ConfigMap", from("") + &config, vec![found(6)]),
        ("a Secret", secret_release.clone() + &secret, vec![found(6)]),
        (
            "a single value",
            from(", valuesKey: type, targetPath: strategy.type") + &typed,
            vec![found(6)],
        ),
        (
            "values are stronger",
            from("") + "  values: {strategy: {type: Recreate}}\n" + &config,
            vec![],
        ),
        ("a patch after rendering", release(patch), vec![]),
        ("an encrypted Secret", secret_release + &encrypted, vec![]),
    ];
    for (what, text, expected) in table {
        let Some(report) = run(&[("apps/shop.yaml", &text)]) else {
            return;
        };
        assert_eq!(told(&report), expected, "{what}: {report:#}");
        assert_eq!(report["summary"]["unopened"], serde_json::json!({}), "{what}");
    }
}
