//! What Flux and Argo CD deliver of plain folders, kustomizations and charts, and what of it is
//! not known here.

use super::releases::{gitops, reported};
use super::rendering::{WEB, check, report, tools};
use super::{CLAIM, CLASS};

/// Facts of a cluster with one claim of a name in two namespaces.
const FACTS: &str = "\
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Node, metadata: {name: n1, labels: {kubernetes.io/hostname: n1}}}
- {apiVersion: v1, kind: Node, metadata: {name: n2, labels: {kubernetes.io/hostname: n2}}}
- {apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: gp3}, provisioner: ebs.csi.aws.com}
- {apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: efs}, provisioner: efs.csi.aws.com}
- {apiVersion: storage.k8s.io/v1, kind: CSIDriver, metadata: {name: ebs.csi.aws.com}, spec: {attachRequired: true}}
- {apiVersion: storage.k8s.io/v1, kind: CSIDriver, metadata: {name: efs.csi.aws.com}, spec: {attachRequired: false}}
- {apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data, namespace: prod}, spec: {accessModes: [ReadWriteOnce], storageClassName: gp3}}
- {apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data, namespace: shop}, spec: {accessModes: [ReadWriteMany], storageClassName: efs}}
";

/// Sets Recreate, as a patch of a kustomization does.
const RECREATE: &str = "[{target: {kind: Deployment}, patch: '[{\"op\": \"add\", \"path\": \"/spec/strategy\", \"value\": {\"type\": \"Recreate\"}}]'}]";

fn flux(spec: &str) -> String {
    format!(
        "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {{name: web, namespace: flux-system}}\nspec:\n  interval: 5m\n  prune: true\n  path: ./apps/web\n  sourceRef: {{kind: GitRepository, name: flux-system}}\n{spec}"
    )
}

fn argo(name: &str, namespace: &str, source: &str) -> String {
    format!(
        "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: {name}, namespace: argocd}}\nspec:\n  project: default\n  destination: {{server: 'https://kubernetes.default.svc', namespace: {namespace}}}\n  source:\n    repoURL: https://example.com/org/gitops\n    targetRevision: HEAD\n{source}"
    )
}

fn release(spec: &str) -> String {
    format!(
        "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {{name: shop, namespace: prod}}\nspec:\n  chart:\n    spec:\n      chart: ./charts/web\n      sourceRef: {{kind: GitRepository, name: flux-system}}\n{spec}"
    )
}

/// What is said of the files, as `action certainty rule namespace/name`, then what is not
/// rendered, with the reason.
fn said(files: &[(&str, &str)], arguments: &[&str]) -> Option<Vec<String>> {
    let tools = tools(&["helm", "kustomize"])?;
    let folder = gitops(files);
    std::fs::remove_file(folder.path().join("class.yaml")).unwrap();
    let all = [&[".", "--format", "json"], arguments].concat();
    let report = report(&check(&folder, tools.path(), &all));
    let Some(findings) = report["findings"].as_array() else {
        panic!("{report}");
    };
    let mut said: Vec<String> = findings
        .iter()
        .map(|it| {
            let text = |value: &serde_json::Value| value.as_str().unwrap_or("-").to_owned();
            let object = &it["object"];
            format!(
                "{} {} {} {}/{}",
                text(&it["action"]),
                text(&it["certainty"]),
                text(&it["rule"]),
                text(&object["namespace"]),
                text(&object["name"])
            )
        })
        .collect();
    let unopened = reported(&report).split_off(findings.len());
    said.extend(unopened);
    Some(said)
}

const DENIED: &str = "deny verified rolling-update-overlap";

#[test]
fn a_destination_reaches_what_names_no_namespace() {
    let facts = (".facts.yaml", FACTS);
    let kustomization = ("apps/web/kustomization.yaml", "resources: [web.yaml]\n");
    let below = ("apps/web/below/web.yaml", WEB);
    let recursive = "    path: apps/web\n    directory: {recurse: true}\n";
    for (more, source, expected) in [
        (&[][..], "    path: apps/web\n", vec!["prod/web"]),
        (
            &[kustomization][..],
            "    path: apps/web\n",
            vec!["prod/web"],
        ),
        (&[below][..], recursive, vec!["prod/web", "prod/web"]),
    ] {
        for namespace in ["prod", "shop"] {
            let application = argo("web", namespace, source);
            let mut files = vec![
                ("apps/web/web.yaml", WEB),
                ("argo/web.yaml", application.as_str()),
                facts,
            ];
            files.extend(more);
            let arguments = ["--facts", ".facts.yaml"];
            let Some(said) = said(&files, &arguments) else {
                return;
            };
            let expected = expected.iter().filter(|_| namespace == "prod");
            let expected: Vec<String> = expected.map(|it| format!("{DENIED} {it}")).collect();
            assert_eq!(said, expected, "{namespace}: {application}");
        }
    }
}

#[test]
fn one_path_is_judged_as_each_delivers_it() {
    let claim = format!("{CLASS}---\n{CLAIM}");
    let patched = format!("    path: apps/web\n    kustomize: {{patches: {RECREATE}}}\n");
    let (a, b) = (
        argo("a", "a", &patched),
        argo("b", "b", "    path: apps/web\n"),
    );
    let kustomization = "resources: [web.yaml, claim.yaml]\n";
    let mut files = vec![
        ("apps/web/kustomization.yaml", kustomization),
        ("apps/web/web.yaml", WEB),
        ("apps/web/claim.yaml", claim.as_str()),
        ("argo/a.yaml", &a),
    ];
    let Some(one) = said(&files, &[]) else { return };
    assert_eq!(one, [""; 0]);
    files.push(("argo/b.yaml", &b));
    assert_eq!(said(&files, &[]).unwrap(), [format!("{DENIED} b/web")]);
    // Files of a folder that two deliver into two namespaces.
    let plain = argo("a", "a", "    path: apps/web\n");
    let files = [
        ("apps/web/web.yaml", WEB),
        ("apps/web/claim.yaml", &claim),
        ("argo/a.yaml", &plain),
        ("argo/b.yaml", &b),
    ];
    assert_eq!(
        said(&files, &[]).unwrap(),
        [format!("{DENIED} a/web"), format!("{DENIED} b/web")]
    );
    // Of Flux, one delivers the folder as it stands.
    let patched = flux(&format!("  patches: {RECREATE}\n"));
    let other = flux("").replace("name: web,", "name: other,");
    for (other, expected) in [("", vec![]), (&other, vec![format!("{DENIED} -/web")])] {
        let files = [
            ("apps/web/kustomization.yaml", kustomization),
            ("apps/web/web.yaml", WEB),
            ("apps/web/claim.yaml", &claim),
            ("flux/a.yaml", &patched),
            ("flux/b.yaml", other),
        ];
        assert_eq!(said(&files, &[]).unwrap(), expected, "{other}");
    }
}

/// Flux makes one of all manifests below, and of the kustomizations there.
#[test]
fn a_folder_without_a_kustomization_is_made_one() {
    let claim = format!("{CLASS}---\n{CLAIM}");
    let patched = flux(&format!("  targetNamespace: prod\n  patches: {RECREATE}\n"));
    let moved = flux("  targetNamespace: prod\n");
    let base = "resources: [web.yaml]\n";
    let rolls = vec![format!("{DENIED} prod/web")];
    for (what, release, more, expected) in [
        ("patched", &patched, &[][..], vec![]),
        ("moved", &moved, &[], rolls.clone()),
        (
            "with a kustomization below",
            &moved,
            &[("apps/web/deploy/kustomization.yaml", base)],
            rolls,
        ),
        (
            "with what is no manifest",
            &patched,
            &[("apps/web/values.yaml", "a: 1\n")],
            vec![
                "warn assumed rolling-update-overlap -/web".to_owned(),
                "Kustomization flux-system/web".to_owned(),
            ],
        ),
    ] {
        let mut files = vec![
            ("apps/web/deploy/web.yaml", WEB),
            ("apps/web/claim.yaml", claim.as_str()),
            ("flux/web.yaml", release.as_str()),
        ];
        files.extend(more);
        let Some(mut said) = said(&files, &[]) else {
            return;
        };
        if let Some(last) = said
            .last_mut()
            .filter(|it| it.contains(": kustomize says: "))
        {
            *last = last.split(": ").next().unwrap().to_owned();
        }
        assert_eq!(said, expected, "{what}");
    }
}

#[test]
fn what_a_kustomization_names_outside_of_its_folder_is_read() {
    let text = format!("{}---\n{WEB}", CLAIM.replace("gp3", "${CLASS}"));
    let patch = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {strategy: {type: Recreate, rollingUpdate: null}}\n";
    let kustomization = "resources: [../namespace.yaml, web.yaml]\n";
    let patched = format!("{kustomization}patches: [{{path: ../web.yaml}}]\n");
    let release = flux("  targetNamespace: shop\n  postBuild: {substitute: {CLASS: gp3}}\n");
    for (kustomization, expected) in [
        (kustomization, vec![format!("{DENIED} shop/web")]),
        (&patched, vec![]),
    ] {
        let files = [
            ("apps/web/kustomization.yaml", kustomization),
            ("apps/web/web.yaml", &text),
            ("apps/web.yaml", patch),
            (
                "apps/namespace.yaml",
                "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n",
            ),
            ("class/class.yaml", CLASS),
            ("clusters/web.yaml", &release),
        ];
        let Some(said) = said(&files, &[]) else {
            return;
        };
        assert_eq!(said, expected, "{kustomization}");
    }
}

#[test]
fn values_files_of_flux_take_the_place_of_the_values_in_the_chart() {
    let rolling = "accessMode: ReadWriteOnce\nprefix: ''\nstrategy: {type: RollingUpdate}\n";
    for (files, more, expected) in [
        ("[charts/web/prod.yaml]", "", vec![DENIED]),
        ("[charts/web/values.yaml]", "", vec![]),
        (
            "[charts/web/prod.yaml, charts/web/gone.yaml]",
            "      ignoreMissingValuesFiles: true\n",
            vec![DENIED],
        ),
    ] {
        let text = release(&format!("      valuesFiles: {files}\n{more}"));
        let all = [
            ("shop.yaml", text.as_str()),
            ("charts/web/prod.yaml", rolling),
            ("class/class.yaml", CLASS),
        ];
        let Some(said) = said(&all, &[]) else { return };
        let expected: Vec<String> = expected
            .iter()
            .map(|it| format!("{it} prod/shop"))
            .collect();
        assert_eq!(said, expected, "{files}");
    }
}

#[test]
fn components_of_an_application_are_applied() {
    let claim = format!("{CLASS}---\n{CLAIM}");
    let component = format!(
        "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatches: {RECREATE}\n"
    );
    let source = "    path: apps/web\n    kustomize: {components: [../../components/recreate]}\n";
    let application = argo("web", "shop", source);
    let Some(said) = said(
        &[
            (
                "apps/web/kustomization.yaml",
                "resources: [web.yaml, claim.yaml]\n",
            ),
            ("apps/web/web.yaml", WEB),
            ("apps/web/claim.yaml", &claim),
            ("components/recreate/kustomization.yaml", &component),
            ("argo/web.yaml", &application),
        ],
        &[],
    ) else {
        return;
    };
    assert_eq!(said, [""; 0]);
}

/// A field outside of the table: named, counted, and nothing of its folder is certain.
#[test]
fn of_a_field_that_is_not_known_nothing_is_certain() {
    let claim = format!("{CLASS}---\n{CLAIM}");
    let unknown = |field: &str| format!("its field {field} is not one that is read here");
    let plain = "    path: apps/web\n";
    let table = [
        (
            flux("  newThing: {a: b}\n"),
            "Kustomization flux-system/web",
            unknown("spec.newThing.a"),
        ),
        (
            flux("  patches: [{path: p.yaml}]\n"),
            "Kustomization flux-system/web",
            unknown("spec.patches.path"),
        ),
        (
            argo(
                "web",
                "shop",
                &format!("{plain}    directory: {{include: '*.yaml'}}\n"),
            ),
            "Application argocd/web",
            unknown("spec.source.directory.include"),
        ),
        (
            argo(
                "web",
                "shop",
                &format!("{plain}    kustomize: {{forceCommonLabels: true}}\n"),
            ),
            "Application argocd/web",
            unknown("spec.source.kustomize.forceCommonLabels"),
        ),
        (
            argo(
                "web",
                "shop",
                "    path: charts/web\n    helm: {fileParameters: [{name: a, path: b}]}\n",
            ),
            "Application argocd/web",
            unknown("spec.source.helm.fileParameters.name"),
        ),
        (
            argo(
                "web",
                "shop",
                "    path: charts/web\n    helm: {parameters: [{name: claim, value: $ARGOCD_APP_NAME-data}]}\n",
            ),
            "Application argocd/web",
            "it names $ARGOCD_…, which only Argo CD's build environment has".to_owned(),
        ),
        (
            release("  upgrade: {preserveValues: true}\n"),
            "HelmRelease prod/shop",
            unknown("spec.upgrade.preserveValues"),
        ),
    ];
    let chart = "strategy: {type: RollingUpdate}\naccessMode: ReadWriteOnce\nprefix: ''\n";
    for (text, name, reason) in table {
        let Some(said) = said(
            &[
                ("apps/web/web.yaml", WEB),
                ("apps/web/claim.yaml", &claim),
                ("charts/web/values.yaml", chart),
                ("release.yaml", &text),
            ],
            &[],
        ) else {
            return;
        };
        let is_in_doubt = |it: &&String| it.starts_with("warn assumed rolling-update-overlap");
        assert_eq!(
            said.iter().filter(is_in_doubt).count(),
            1,
            "{text}{said:#?}"
        );
        // What it does not take is as certain as before.
        let certain = said.iter().find(|it| it.starts_with("deny"));
        assert!(
            certain.is_some_and(|it| it.ends_with("-/web")),
            "{text}{said:#?}"
        );
        assert_eq!(said.last(), Some(&format!("{name}: {reason}")), "{text}");
        assert_eq!(said.len(), 3, "{text}{said:#?}");
    }
}
