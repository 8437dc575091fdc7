//! One bad Deployment, hidden in many ways: each time it is found, or what holds it is named, and
//! the exit code says so.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use super::rendering::{CHART, WEB, check, class_and_claim, tools};
use super::{out, report, repository};

/// What a way of hiding consists of: a name, the files beside the claim, and where the Deployment
/// stands.
type Way = (&'static str, &'static [(&'static str, &'static str)], &'static str);

const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: map}\n";
const COMPONENT: &str = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n";
const LISTS_MAP: &str = "resources: [map.yaml]\n";
const LIBRARY: &str = "apiVersion: v2\nname: shop\nversion: 1.0.0\ntype: library\n";

const GOOD: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web-good}\nspec:\n  strategy: {type: Recreate}\n  selector: {matchLabels: {app: good}}\n  template:\n    metadata: {labels: {app: good}}\n    spec: {containers: [{name: main, image: web}]}\n";

const WAYS: [Way; 37] = [
    ("a component that nobody uses", &[("a/kustomization.yaml", COMPONENT)], "a/web.yaml"),
    (
        "a component that lists it, and that nobody uses",
        &[("a/kustomization.yaml", "kind: Component\nresources: [web.yaml]\n")],
        "a/web.yaml",
    ),
    ("a folder below a component", &[("a/kustomization.yaml", COMPONENT)], "a/b/c/web.yaml"),
    ("a component of itself", &[("a/kustomization.yaml", "components: [.]\n")], "a/web.yaml"),
    (
        "the folder above as a component",
        &[("a/kustomization.yaml", "components: [..]\n")],
        "web.yaml",
    ),
    (
        "a component that is not there, above",
        &[
            ("a/b/kustomization.yaml", "components: [../..]\nresources: [map.yaml]\n"),
            ("a/b/map.yaml", MAP),
        ],
        "other/web.yaml",
    ),
    (
        "a patch of nothing",
        &[("a/kustomization.yaml", "patches: [{path: web.yaml}]\n")],
        "a/web.yaml",
    ),
    (
        "a patch of another object",
        &[
            (
                "a/kustomization.yaml",
                "resources: [map.yaml]\npatches: [{path: web.yaml, target: {kind: ConfigMap}}]\n",
            ),
            ("a/map.yaml", MAP),
        ],
        "a/web.yaml",
    ),
    (
        "a patch outside of the folder",
        &[
            (
                "a/kustomization.yaml",
                "resources: [map.yaml]\npatches: [{path: ../web.yaml, target: {kind: ConfigMap}}]\n",
            ),
            ("a/map.yaml", MAP),
        ],
        "web.yaml",
    ),
    (
        "a strategic merge patch",
        &[
            ("a/kustomization.yaml", "resources: [map.yaml]\npatchesStrategicMerge: [web.yaml]\n"),
            ("a/map.yaml", MAP),
        ],
        "a/web.yaml",
    ),
    (
        "a JSON patch",
        &[
            (
                "a/kustomization.yaml",
                "resources: [map.yaml]\npatchesJson6902: [{path: web.yaml, target: {version: v1, kind: ConfigMap, name: map}}]\n",
            ),
            ("a/map.yaml", MAP),
        ],
        "a/web.yaml",
    ),
    (
        "a file that a kustomization does not list",
        &[("a/kustomization.yaml", LISTS_MAP), ("a/map.yaml", MAP)],
        "a/web.yaml",
    ),
    (
        "a kustomization that fails",
        &[("a/kustomization.yaml", "resources: [web.yaml, absent.yaml]\n")],
        "a/web.yaml",
    ),
    (
        "a kustomization of a URL",
        &[("a/kustomization.yaml", "resources: [web.yaml, 'https://example.com/x?ref=v1']\n")],
        "a/web.yaml",
    ),
    ("a generator", &[("a/kustomization.yaml", "generators: [web.yaml]\n")], "a/web.yaml"),
    (
        "a transformer",
        &[
            ("a/kustomization.yaml", "resources: [map.yaml]\ntransformers: [web.yaml]\n"),
            ("a/map.yaml", MAP),
        ],
        "a/web.yaml",
    ),
    (
        "a replacement",
        &[
            ("a/kustomization.yaml", "resources: [map.yaml]\nreplacements: [{path: web.yaml}]\n"),
            ("a/map.yaml", MAP),
        ],
        "a/web.yaml",
    ),
    (
        "a file of a generated ConfigMap",
        &[("a/kustomization.yaml", "configMapGenerator: [{name: m, files: [web.yaml]}]\n")],
        "a/web.yaml",
    ),
    ("a folder with a Chart.yaml", &[("a/Chart.yaml", CHART)], "a/web.yaml"),
    (
        "beside a chart's templates",
        &[("a/Chart.yaml", CHART), ("a/templates/map.yaml", MAP)],
        "a/web.yaml",
    ),
    (
        "a folder in a chart",
        &[("a/Chart.yaml", CHART), ("a/templates/map.yaml", MAP)],
        "a/b/web.yaml",
    ),
    ("a library chart", &[("a/Chart.yaml", LIBRARY)], "a/web.yaml"),
    ("a chart that is no YAML", &[("a/Chart.yaml", "{{ broken")], "a/templates/web.yaml"),
    (
        "a chart without its dependencies",
        &[(
            "a/Chart.yaml",
            "apiVersion: v2\nname: a\nversion: 1.0.0\ndependencies: [{name: b, version: 1.0.0, repository: 'https://example.com'}]\n",
        )],
        "a/templates/web.yaml",
    ),
    (
        "a chart whose other template fails",
        &[("a/Chart.yaml", CHART), ("a/templates/fail.yaml", "{{ fail \"no\" }}\n")],
        "a/templates/web.yaml",
    ),
    ("a hidden file", &[], ".web.yaml"),
    ("a hidden folder", &[], "a/.b/web.yaml"),
    (
        "a Helmfile that names its folder",
        &[("helmfile.yaml", "releases: [{name: web, chart: ./a}]\n")],
        "a/web.yaml",
    ),
    ("a fleet.yaml beside it", &[("a/fleet.yaml", "defaultNamespace: shop\n")], "a/web.yaml"),
    (
        "an ApplicationSet that names its folder",
        &[(
            "set.yaml",
            "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: all}\nspec: {generators: [], template: {metadata: {name: web}, spec: {source: {path: a, repoURL: 'https://example.com/x'}, destination: {namespace: shop}}}}\n",
        )],
        "a/web.yaml",
    ),
    (
        "a Flux Kustomization of another folder",
        &[
            (
                "flux.yaml",
                "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: a, namespace: flux-system}\nspec: {path: ./a, prune: true, sourceRef: {kind: GitRepository, name: flux-system}}\n",
            ),
            ("a/kustomization.yaml", LISTS_MAP),
            ("a/map.yaml", MAP),
        ],
        "a/web.yaml",
    ),
    ("a link out of the repository", &[("outside", "")], "web.yaml"),
    (
        "a component, beside a workload whose name contains the name",
        &[("a/kustomization.yaml", COMPONENT), ("good.yaml", GOOD)],
        "a/web.yaml",
    ),
    (
        "a patch of another object, beside a workload whose name contains the name",
        &[
            (
                "a/kustomization.yaml",
                "resources: [map.yaml, good.yaml]\npatches: [{path: web.yaml, target: {kind: ConfigMap}}]\n",
            ),
            ("a/map.yaml", MAP),
            ("a/good.yaml", GOOD),
        ],
        "a/web.yaml",
    ),
    (
        "a file that no kustomization lists, beside a workload whose name contains the name",
        &[("a/kustomization.yaml", "resources: [good.yaml]\n"), ("a/good.yaml", GOOD)],
        "a/web.yaml",
    ),
    ("a patch in a kustomization", &[("a/map.yaml", MAP)], "a/kustomization.yaml"),
    (
        "the folder of a chart's CustomResourceDefinitions",
        &[("a/Chart.yaml", CHART), ("a/templates/map.yaml", MAP)],
        "a/crds/web.yaml",
    ),
];

/// A kustomization with the object as a patch of another one.
fn in_a_kustomization(object: &str) -> String {
    let patch: String = object.lines().map(|line| format!("    {line}\n")).collect();
    format!("resources: [map.yaml]\npatches:\n- target: {{kind: ConfigMap}}\n  patch: |-\n{patch}")
}

#[test]
fn what_is_hidden_is_found_or_named() {
    let tools = or_skip!(tools(&["helm", "kustomize", "kubectl"]));
    let (elsewhere, claim) = (tempfile::tempdir().unwrap(), class_and_claim());
    let mut wrong = Vec::new();
    for (way, files, place) in WAYS {
        let text = match place {
            "a/kustomization.yaml" => in_a_kustomization(WEB),
            _ => WEB.to_owned(),
        };
        let all = [&[("claim.yaml", claim.as_str()), (place, &text)], files].concat();
        let folder = repository(&all);
        if files == [("outside", "")] {
            fs::rename(folder.path().join(place), elsewhere.path().join(place)).unwrap();
            symlink(elsewhere.path().join(place), folder.path().join(place)).unwrap();
        }
        for mode in ["--fail-on incomplete", "--render require --fail-on incomplete"] {
            let output = check(&folder, tools.path(), &format!(". {mode} --format json"));
            let found = report(&output);
            let texts = |list: &str, key: &str| -> Vec<String> {
                let list = found[list].as_array().into_iter().flatten();
                list.filter_map(|one| Some(one.pointer(key)?.as_str()?.to_owned())).collect()
            };
            let is_found = texts("findings", "/object/name").iter().any(|name| name == "web");
            let named = [texts("notJudged", "/where"), texts("errors", "/file")].concat();
            let is_named = named.iter().any(|name| name == "." || place.starts_with(name.as_str()));
            if !(is_found || is_named) || output.status.success() {
                wrong.push(format!("{way}, {mode}: {}", out(&output)));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), WAYS.len(), wrong.join("\n"));
}

#[test]
fn a_tracked_file_that_is_ignored_is_named() {
    let tools = or_skip!(tools(&["helm", "kustomize", "git"]));
    let claim = class_and_claim();
    let ignores = "built/\nweb.yaml\nmap.yaml\n";
    let folder = repository(&[
        ("claim.yaml", &claim),
        (".gitignore", ignores),
        ("a/web.yaml", WEB),
        ("a/map.yaml", MAP),
        ("built/untracked.yaml", WEB),
        (".ignore", "b/\n"),
        ("b/api.yaml", &WEB.replace("name: web", "name: api")),
    ]);
    let git = |arguments: &str| {
        let mut command = Command::new("git");
        command.args(arguments.split(' ')).current_dir(folder.path());
        assert!(command.output().unwrap().status.success(), "git {arguments}");
    };
    fs::remove_dir(folder.path().join(".git")).unwrap();
    git("init --quiet");
    git("add --force a .gitignore");
    // A stranger's repository could bring its configuration.
    git("config core.fsmonitor touch started;");
    let found = report(&check(&folder, tools.path(), ". --format json"));
    let names: Vec<&str> = found["notJudged"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["where"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["a/web.yaml"], "{found:#}");
    let about: Vec<&str> = found["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["object"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(about, ["api"], "{found:#}");
    assert!(!folder.path().join("started").exists());
}
