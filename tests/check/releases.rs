//! Releases of GitOps controllers, rendered by the real helm and the real kustomize. Most cases are
//! in `cases/releases.yaml`.

use std::fs;

use tempfile::TempDir;

use super::rendering::{check, reported, tools};
use super::{CLASS, out, report, repository};

/// A chart whose values set the strategy and the access mode.
const CHART: [(&str, &str); 3] = [
    ("charts/web/Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.2.3\n"),
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

const RELEASE: &str = "\
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata:
  name: shop
  namespace: prod
spec:
  chart:
    spec:
      chart: ./charts/web
      sourceRef: {kind: GitRepository, name: flux-system, namespace: flux-system}
  interval: 2h
";

/// The printed post-renderer, pasted unchanged, repairs the release.
#[test]
fn a_post_renderer_is_printed_for_a_release() {
    let tools = or_skip!(tools(&["helm", "kustomize"]));
    let template = TEMPLATE.replace("{{ toJson .Values.strategy }}", "{type: RollingUpdate}");
    let folder = gitops(&[("charts/web/templates/web.yaml", &template), ("shop.yaml", RELEASE)]);
    let check = |more: &str| check(&folder, tools.path(), &format!("shop.yaml class.yaml {more}"));
    let fixed = check("--fix");
    let (_, renderer) = out(&fixed).split_once("spec:\n").expect("a post-renderer");
    fs::write(folder.path().join("shop.yaml"), RELEASE.to_owned() + renderer).unwrap();
    let after = report(&check("--format json"));
    assert_eq!(reported(&after), [""; 0], "{}", out(&fixed));
    assert_eq!(after["summary"]["rendered"], 1);
}
