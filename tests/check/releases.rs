//! Releases of GitOps controllers, rendered by the real helm and the real kustomize.

use std::fs;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::rendering::{check, found, report, tools};
use super::{CLAIM, CLASS, DEPLOYMENT, out, repository};

/// The name of a file and its text.
type File<'f> = (&'f str, &'f str);

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
pub(super) fn reported(report: &Value) -> Vec<String> {
    // The line of a value is not what these tests are about.
    let place = |it: String| match it.split(':').collect::<Vec<_>>()[..] {
        [start, end] => {
            let end = end.trim_start_matches(|c: char| c.is_ascii_digit());
            format!("{start}{end}")
        }
        _ => it,
    };
    let mut reported: Vec<String> = found(report).into_iter().map(place).collect();
    for unopened in report["unopened"].as_array().into_iter().flatten() {
        let text = |key: &str| unopened[key].as_str().unwrap().to_owned();
        reported.push(format!(
            "{} {}: {}",
            text("kind"),
            text("path"),
            text("reason")
        ));
    }
    reported
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
        format!(
            "---\napiVersion: v1\nkind: {kind}\nmetadata: {{name: shop, namespace: prod}}\n{field}:\n  {key}: \"{text}\"\n"
        )
    };
    let config = data("ConfigMap", "data", "values.yaml", ROLLING);
    let typed = data("ConfigMap", "data", "type", "RollingUpdate");
    let secret = data(
        "Secret",
        "data",
        "values.yaml",
        "c3RyYXRlZ3k6IHt0eXBlOiBSb2xsaW5nVXBkYXRlfQ==",
    );
    let encrypted = format!("{secret}sops: {{mac: x}}\n");
    let secret_release = from("").replace("ConfigMap", "Secret");
    let patch = "  values: {strategy: {type: RollingUpdate}}\n  postRenderers:\n  - kustomize:\n      patches:\n      - target: {kind: Deployment}\n        patch: |\n          - {op: replace, path: /spec/strategy, value: {type: Recreate}}\n";
    let found = || "prod/shop apps/shop.yaml charts/web".to_owned();
    let table: [(&str, String, Vec<String>); 8] = [
        ("the chart's own values", release(""), vec![]),
        ("values", release(&rolling), vec![found()]),
        ("a ConfigMap", from("") + &config, vec![found()]),
        ("a Secret", secret_release.clone() + &secret, vec![found()]),
        (
            "a single value",
            from(", valuesKey: type, targetPath: strategy.type") + &typed,
            vec![found()],
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
        assert_eq!(reported(&report), expected, "{what}: {report:#}");
        assert_eq!(report["summary"]["unopened"], json!({}), "{what}");
    }
}

#[test]
fn an_application_is_rendered_with_all_its_values() {
    let chart = "    path: charts/web\n";
    let found = || "prod/shop apps/shop.yaml charts/web".to_owned();
    let several = "  sources:\n  - {repoURL: 'git@example.com:org/gitops.git', ref: values}\n  - repoURL: https://example.com/org/gitops\n    path: charts/web\n    helm: {valueFiles: [$values/envs/prod.yaml]}\n";
    let several = application("").replace(
        "  source:\n    repoURL: https://example.com/org/gitops\n",
        several,
    );
    let values = ("envs/prod.yaml", ROLLING);
    let own = ("charts/web/prod.yaml", ROLLING);
    let patched = "    path: base\n    kustomize: {patches: [{target: {kind: Deployment}, patch: '[{\"op\": \"replace\", \"path\": \"/spec/strategy\", \"value\": {\"type\": \"Recreate\"}}]'}]}\n";
    let base = super::rendering::WEB.to_owned() + "---\n" + CLAIM;
    let base = [
        (
            "base/kustomization.yaml",
            "namespace: prod\nresources: [web.yaml]\n",
        ),
        ("base/web.yaml", &*base),
    ];
    let table: [(&str, String, &[File<'_>], Vec<String>); 14] = [
        ("the chart's own values", application(chart), &[], vec![]),
        ("a text of values", application(&format!("{chart}    helm:\n      values: |\n        {ROLLING}\n")), &[], vec![found()]),
        ("an object of values", application(&format!("{chart}    helm:\n      valuesObject: {{{ROLLING}}}\n")), &[], vec![found()]),
        ("parameters", application(&format!("{chart}    helm:\n      parameters: [{{name: strategy.type, value: RollingUpdate}}]\n")), &[], vec![found()]),
        ("another name", application(&format!("{chart}    helm: {{releaseName: web, valuesObject: {{{ROLLING}}}}}\n")), &[], vec!["prod/web apps/shop.yaml charts/web".to_owned()]),
        ("a file beside the chart", application(&format!("{chart}    helm: {{valueFiles: [prod.yaml]}}\n")), &[own], vec![found()]),
        ("a file of another source", several, &[values], vec![found()]),
        ("a file that may be missing", application(&format!("{chart}    helm: {{valueFiles: [no.yaml], ignoreMissingValueFiles: true}}\n")), &[], vec![]),
        ("a patched kustomization", application(patched), &base, vec![]),
        ("another repository", application(chart).replace("/gitops", "/other"), &[], vec!["Application argocd/shop: it needs https://example.com/org/other".to_owned()]),
        ("a mirror", application(&format!("{chart}    helm: {{valuesObject: {{{ROLLING}}}}}\n")).replace("example.com", "mirror.example.org"), &[], vec![found()]),
        ("a placeholder", application(chart).replace("https://example.com/org/gitops", "<REPOSITORY>"), &[], vec!["Application argocd/shop: its source is still to be filled in".to_owned()]),
        ("a plugin", application(&format!("{chart}    plugin: {{name: cmp}}\n")), &[], vec!["Application argocd/shop: a plugin renders it, and programs from a repository are never run".to_owned()]),
        ("a missing file", application(&format!("{chart}    helm: {{valueFiles: [../../../etc/passwd]}}\n")), &[], vec!["Application argocd/shop: there is no file charts/web/../../../etc/passwd in this repository".to_owned()]),
    ];
    for (what, text, files, expected) in table {
        let mut all = vec![("apps/shop.yaml", text.as_str())];
        all.extend(files);
        let Some(report) = run(&all) else { return };
        assert_eq!(reported(&report), expected, "{what}: {text}{report:#}");
    }
}

/// The formats of other tools, each with the start of its command.
const FOREIGN: [(&str, &str, &str); 5] = [
    (
        "ApplicationSet argocd/all",
        "argocd appset generate FILE -o yaml | multi-attach-guard check -",
        "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: all, namespace: argocd}\nspec: {generators: [{clusters: {}}], template: {}}\n",
    ),
    (
        "HelmChart kube-system/web",
        "helm template NAME CHART --repo URL -n NAMESPACE -f VALUES | multi-attach-guard check -",
        "apiVersion: helm.cattle.io/v1\nkind: HelmChart\nmetadata: {name: web, namespace: kube-system}\nspec: {chart: web, repo: 'https://example.com'}\n",
    ),
    (
        "fleet.yaml envs/fleet.yaml",
        "fleet apply -o BUNDLE NAME FOLDER",
        "defaultNamespace: prod\nhelm: {chart: ../charts/web}\n",
    ),
    (
        "helmfile.yaml helmfile.yaml",
        "helmfile template | multi-attach-guard check -",
        "releases:\n- {name: shop, chart: ./charts/web}\n- {name: '{{ exec \"touch\" (list \"ran\") }}', chart: a}\n",
    ),
    (
        "helmfile.yaml helmfile.d/a.yaml",
        "helmfile template | multi-attach-guard check -",
        "releases: [{name: shop, postRenderer: ./run}]\n",
    ),
];

#[test]
fn formats_of_other_tools_are_counted_with_their_command_and_change_no_exit_code() {
    let (mut files, mut expected) = (vec![("class.yaml", CLASS)], Vec::new());
    for (name, command, text) in &FOREIGN {
        let (kind, path) = name.split_once(' ').unwrap();
        let file = match kind {
            "ApplicationSet" => "set.yaml",
            "HelmChart" => "chart.yaml",
            _ => path,
        };
        files.push((file, text));
        expected.push((*name, *command));
    }
    // An object may have the name of such a file.
    files.push((
        "games/fleet.yaml",
        "apiVersion: agones.dev/v1\nkind: Fleet\nmetadata: {name: a}\n",
    ));
    let folder = repository(&files);
    for more in [&[][..], &["--render=require"], &["--fix"]] {
        let output = super::run(
            &folder,
            &[&["check", ".", "--format", "json"], more].concat(),
        );
        assert_eq!(super::code(&output), 0, "{more:?}: {output:?}");
        let reported = reported(&report(&output));
        assert_eq!(reported.len(), expected.len(), "{more:?}: {reported:#?}");
        for (name, command) in &expected {
            let of_it: Vec<&String> = reported.iter().filter(|it| it.starts_with(name)).collect();
            assert!(
                matches!(of_it[..], [one] if one.contains(command)),
                "{more:?}: {name}: {reported:#?}"
            );
        }
    }
    let text = super::run(&folder, &["check", "."]);
    assert_eq!(
        out(&text).matches("helmfile template | ").count(),
        1,
        "{text:?}"
    );
    assert!(!folder.path().join("ran").exists());
}

/// `argocd appset generate` prints a sequence of Applications.
#[test]
fn a_sequence_of_piped_applications_is_rendered() {
    let Some(tools) = tools(&["helm"]) else {
        return;
    };
    let folder = gitops(&[]);
    let one = |name: &str| {
        application(&format!(
            "    path: charts/web\n    helm: {{valuesObject: {{{ROLLING}}}}}\n"
        ))
        .replace("name: shop", &format!("name: {name}"))
    };
    let item = |text: String| format!("- {}", text.trim_end().replace('\n', "\n  "));
    let piped = format!("{}\n{}\n", item(one("dev")), item(one("prod")));
    fs::write(folder.path().join("generated"), piped).unwrap();
    let output = check(
        &folder,
        tools.path(),
        &["generated", "class.yaml", "--format", "json"],
    );
    assert_eq!(
        reported(&report(&output)),
        [
            "prod/dev generated charts/web",
            "prod/prod generated charts/web"
        ],
        "{output:?}"
    );
}

#[test]
fn what_charts_and_overlays_make_of_releases_is_rendered() {
    let parent = "{{- range .Values.apps }}\napiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: '{{ . }}'}\nspec:\n  destination: {namespace: prod}\n  source:\n    repoURL: https://example.com/org/gitops\n    path: charts/web\n    helm: {valuesObject: {strategy: {type: RollingUpdate}}}\n---\n{{- end }}\n";
    let overlay = release("").replace("  namespace: prod\n", "");
    let patch = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: shop}\nspec: {values: {strategy: {type: RollingUpdate}}}\n";
    let table: [(&str, Vec<File<'_>>, Vec<&str>); 2] = [
        (
            "Applications of an Application's chart",
            vec![
                (
                    "apps/Chart.yaml",
                    "apiVersion: v2\nname: apps\nversion: 1.0.0\n",
                ),
                ("apps/values.yaml", "apps: [shop]\n"),
                ("apps/templates/apps.yaml", parent),
            ],
            vec!["prod/shop apps/templates/apps.yaml charts/web"],
        ),
        (
            "an overlay that changes the values",
            vec![
                ("base/kustomization.yaml", "resources: [shop.yaml]\n"),
                ("base/shop.yaml", &overlay),
                (
                    "prod/kustomization.yaml",
                    "namespace: prod\nresources: [../base]\npatches: [{path: values.yaml}]\n",
                ),
                ("prod/values.yaml", patch),
            ],
            vec!["prod/shop base/shop.yaml charts/web"],
        ),
    ];
    for (what, files, expected) in table {
        let Some(report) = run(&files) else { return };
        assert_eq!(reported(&report), expected, "{what}: {report:#}");
    }
}

/// The claim stands beside the release, as in most repositories of Flux.
#[test]
fn what_lies_beside_a_release_speaks_for_it() {
    let text = release(&format!("  values:\n    claim: data\n    {ROLLING}\n"));
    let claim = CLAIM.replace("{name: data}", "{name: data, namespace: prod}");
    let kustomization = "namespace: prod\nresources: [shop.yaml, claim.yaml]\n";
    for files in [
        vec![
            ("apps/shop.yaml", text.as_str()),
            ("apps/claim.yaml", &claim),
        ],
        vec![
            ("apps/shop.yaml", &text),
            ("apps/claim.yaml", CLAIM),
            ("apps/kustomization.yaml", kustomization),
        ],
    ] {
        let Some(report) = run(&files) else { return };
        assert_eq!(
            reported(&report),
            ["prod/shop apps/shop.yaml charts/web"],
            "{report:#}"
        );
        assert_eq!(report["findings"][0]["certainty"], "verified", "{report:#}");
    }
}

#[test]
fn a_kustomization_inflates_charts_that_are_at_hand() {
    let kustomization = "namespace: prod\nhelmCharts:\n- name: web\n  releaseName: shop\n  valuesInline: {strategy: {type: RollingUpdate}}\n";
    let other = "helmCharts: [{name: redis, repo: 'https://example.com/charts', version: 1.0.0}]\n";
    let Some(report) = run(&[
        ("apps/kustomization.yaml", kustomization),
        ("apps/charts/web/Chart.yaml", CHART[0].1),
        ("apps/charts/web/values.yaml", CHART[1].1),
        ("apps/charts/web/templates/web.yaml", CHART[2].1),
        ("other/kustomization.yaml", other),
    ]) else {
        return;
    };
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
    let Some(tools) = tools(&["helm", "kustomize"]) else {
        return;
    };
    let template = TEMPLATE.replace("{{ toJson .Values.strategy }}", "{type: RollingUpdate}");
    let text = release("  interval: 2h\n").replace("  interval: 1h\n", "");
    let files = [
        ("charts/web/templates/web.yaml", template.as_str()),
        ("shop.yaml", &text),
    ];
    let folder = gitops(&files);
    let fixed = check(&folder, tools.path(), &["shop.yaml", "class.yaml", "--fix"]);
    let renderer = out(&fixed)
        .split_once("spec:\n")
        .expect("a post-renderer")
        .1;
    fs::write(folder.path().join("shop.yaml"), text + renderer).unwrap();
    let after = report(&check(
        &folder,
        tools.path(),
        &["shop.yaml", "class.yaml", "--format", "json"],
    ));
    assert_eq!(reported(&after), [""; 0], "{}", out(&fixed));
    assert_eq!(after["summary"]["rendered"], 1);
}

#[test]
fn what_flux_adds_to_a_folder_is_rendered_with_it() {
    let flux = |more: &str| {
        format!(
            "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {{name: shop, namespace: flux-system}}\nspec:\n  path: ./apps/shop\n  sourceRef: {{kind: GitRepository, name: flux-system}}\n{more}"
        )
    };
    let added = "  targetNamespace: prod\n  components: [../../components/volume]\n";
    let substitute = "  postBuild:\n    substitute: {APP: shop}\n    substituteFrom: [{kind: ConfigMap, name: settings}, {kind: Secret, name: elsewhere}]\n";
    let web = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: ${APP}\nspec:\n  selector: {matchLabels: {app: web}}\n  strategy:\n    type: ${STRATEGY}\n  template:\n    metadata: {labels: {app: web}}\n    spec:\n      containers: [{name: web, image: web, volumeMounts: [{name: data, mountPath: /data}]}]\n      volumes:\n      - name: data\n        persistentVolumeClaim:\n          claimName: ${CLAIM:-${APP}}\n";
    let claim = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata:\n  name: ${CLAIM:-${APP}}\nspec:\n  accessModes:\n  - ${MODE:-ReadWriteOnce}\n  storageClassName: gp3\n";
    let component =
        "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: [claim.yaml]\n";
    let settings = |strategy: &str| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: settings, namespace: flux-system}}\ndata: {{STRATEGY: {strategy}}}\n"
        )
    };
    let rolling = settings("RollingUpdate");
    let recreate = settings("Recreate");
    let gone = added.replace("components/volume", "components/gone");
    let table: [(&str, String, &str, &[&str]); 5] = [
        (
            "all of it",
            flux(&format!("{added}{substitute}")),
            &rolling,
            &["prod/shop apps/shop/web.yaml Kustomization flux-system/shop"],
        ),
        (
            "another value",
            flux(&format!("{added}{substitute}")),
            &recreate,
            &[],
        ),
        (
            "a patch",
            flux(&format!(
                "{added}  patches: [{{patch: '[{{\"op\": \"replace\", \"path\": \"/spec/strategy\", \"value\": {{\"type\": \"RollingUpdate\"}}}}]', target: {{kind: Deployment}}}}]\n{substitute}"
            )),
            &recreate,
            &["prod/shop flux/shop.yaml apps/shop"],
        ),
        (
            "a component that is not there",
            flux(&format!("{gone}{substitute}")),
            &rolling,
            &[
                "Kustomization flux-system/shop: it takes the component ../../components/gone, which is not in this repository",
            ],
        ),
        (
            "a strategy that is not known",
            flux(&format!(
                "{added}  postBuild: {{substitute: {{APP: shop}}}}\n"
            )),
            &rolling,
            &[],
        ),
    ];
    for (what, text, settings, expected) in table {
        let Some(report) = run(&[
            ("flux/shop.yaml", &text),
            ("flux/settings.yaml", settings),
            ("apps/shop/kustomization.yaml", "resources: [web.yaml]\n"),
            ("apps/shop/web.yaml", web),
            ("components/volume/kustomization.yaml", component),
            ("components/volume/claim.yaml", claim),
        ]) else {
            return;
        };
        assert_eq!(reported(&report), expected, "{what}: {text}{report:#}");
    }
}

/// What `--fix` changes is read again, and what is not looked into stays as much as it was.
#[test]
fn a_release_that_is_not_rendered_counts_once_with_a_fix() {
    let Some(tools) = tools(&["helm"]) else {
        return;
    };
    let remote = release("").replace("chart: ./charts/web", "chart: web");
    let remote = remote.replace("kind: GitRepository", "kind: HelmRepository");
    let folder = gitops(&[("shop.yaml", &remote)]);
    let output = check(&folder, tools.path(), &[".", "--fix", "--format", "json"]);
    let report = report(&output);
    assert_eq!(report["summary"]["unopened"], json!({"HelmRelease": 1}));
    assert_eq!(
        report["unopened"].as_array().map(Vec::len),
        Some(1),
        "{report:#}"
    );
}

/// A Kustomization that delivers itself, as `flux bootstrap` makes it, and patches the others.
#[test]
fn what_a_kustomization_adds_to_others_is_rendered_with_them() {
    let flux = |name: &str, path: &str, more: &str| {
        format!(
            "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {{name: {name}, namespace: flux-system}}\nspec:\n  path: {path}\n  sourceRef: {{kind: GitRepository, name: flux-system}}\n{more}"
        )
    };
    let release = release(&format!("  values: {{{ROLLING}}}\n"));
    let web = DEPLOYMENT.replace("type: RollingUpdate", "type: ${STRATEGY:=RollingUpdate}");
    let both = "resources: [flux.yaml, apps.yaml]\n";
    let all = "resources: [web.yaml, claim.yaml, release.yaml]\n";
    // What is patched is a reference without which nothing in `apps` can be rendered at first.
    let reference = "  sourceRef: {kind: GitRepository, name: flux-system}\n";
    let patch = |strategy: &str| {
        format!(
            "  patches: [{{target: {{kind: Kustomization}}, patch: '[{{\"op\": \"add\", \"path\": \"/spec/postBuild\", \"value\": {{\"substitute\": {{\"STRATEGY\": \"{strategy}\"}}}}}}, {{\"op\": \"add\", \"path\": \"/spec/sourceRef\", \"value\": {{\"kind\": \"GitRepository\", \"name\": \"flux-system\"}}}}]'}}]\n"
        )
    };
    let found = |namespace: &str| format!("{namespace}/shop apps/release.yaml charts/web");
    let rolls = "shop/web apps/web.yaml Kustomization flux-system/apps".to_owned();
    for (target, strategy, expected) in [
        ("shop", "RollingUpdate", vec![found("shop"), rolls]),
        ("shop", "Recreate", vec![found("shop")]),
        // The release is the same as in the folder by itself.
        ("prod", "Recreate", vec![found("prod")]),
    ] {
        let apps = flux("apps", "./apps", &format!("  targetNamespace: {target}\n"));
        let Some(report) = run(&[
            ("prod/kustomization.yaml", both),
            (
                "prod/flux.yaml",
                &flux("flux-system", "./prod", &patch(strategy)),
            ),
            ("prod/apps.yaml", &apps.replace(reference, "")),
            ("apps/kustomization.yaml", all),
            ("apps/web.yaml", &web),
            ("apps/claim.yaml", CLAIM),
            ("apps/release.yaml", &release),
        ]) else {
            return;
        };
        assert_eq!(
            reported(&report),
            expected,
            "{target}: {strategy}: {report:#}"
        );
    }
}

#[test]
fn what_several_releases_take_of_one_folder_is_repaired_there() {
    let Some(tools) = tools(&["kustomize"]) else {
        return;
    };
    let release = |name: &str| {
        let text = format!(
            "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {{name: {name}, namespace: flux-system}}\nspec:\n  path: ./web\n  targetNamespace: {name}\n  sourceRef: {{kind: GitRepository, name: flux-system}}\n"
        );
        (format!("flux/{name}.yaml"), text)
    };
    let [(prod, in_prod), (test, in_test)] = ["prod", "test"].map(release);
    let web = format!("{DEPLOYMENT}---\n{CLAIM}");
    let folder = repository(&[
        (&prod, &in_prod),
        (&test, &in_test),
        ("web/kustomization.yaml", "resources: [web.yaml]\n"),
        ("web/web.yaml", &web),
        ("class.yaml", CLASS),
    ]);
    let text = check(&folder, tools.path(), &["."]);
    let text = out(&text);
    assert_eq!(text.matches("error[").count(), 1, "{text}");
    assert!(text.contains("--> web/web.yaml:"), "{text}");
    assert!(
        text.contains("rendered from Kustomization flux-system/prod"),
        "{text}"
    );
    let diff = check(&folder, tools.path(), &[".", "--diff"]);
    let diff = out(&diff);
    assert!(diff.starts_with("diff --git a/web/web.yaml"), "{diff}");
    assert!(!diff.contains("# A patch for"), "{diff}");
    check(&folder, tools.path(), &[".", "--fix"]);
    let after = report(&check(&folder, tools.path(), &[".", "--format", "json"]));
    assert_eq!(reported(&after), [""; 0], "{after:#}");
}

#[test]
fn a_notice_on_what_a_chart_makes_stands_at_the_release() {
    let Some(tools) = tools(&["helm", "kustomize"]) else {
        return;
    };
    let template = TEMPLATE.replace(
        "metadata:\n  name: {{ .Values.prefix",
        "metadata:\n  annotations: {multi-attach-guard.dev/ignore: none, multi-attach-guard.dev/reason: a test}\n  name: {{ .Values.prefix",
    );
    let release = release("");
    let folder = gitops(&[
        ("shop.yaml", &release),
        ("charts/web/templates/web.yaml", &template),
    ]);
    let text = check(&folder, tools.path(), &["."]);
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
    let Some(report) = run(&[
        ("shop.yaml", &release),
        ("charts/two/Chart.yaml", &CHART[0].1.replace("web", "two")),
        ("charts/two/values.yaml", CHART[1].1),
        ("charts/two/templates/web.yaml", TEMPLATE),
        ("charts/two/templates/worker.yaml", &other),
    ]) else {
        return;
    };
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
