//! The files and folders that a `kustomization.yaml` names.
//!
//! The fields are those of `kustomize.config.k8s.io/v1beta1` `Kustomization` and `v1alpha1`
//! `Component`, as kustomize's api/types/kustomization.go declares them.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::tree::Tree;

/// The file names that kustomize looks for in a folder.
pub const FILE_NAMES: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];

/// Fields that add objects or label them, but do not change anything that decides about their
/// volumes. Annotations and names are not among them: an annotation may silence a rule, and a claim
/// under another name may be bound.
const HARMLESS: [&str; 14] = [
    "buildMetadata",
    "commonLabels",
    "configMapGenerator",
    "crds",
    "generatorOptions",
    "generators",
    "helmGlobals",
    "images",
    "labels",
    "metadata",
    "openapi",
    "secretGenerator",
    "sortOptions",
    "validators",
];

/// The parts of a `kustomization.yaml` that name other files and folders. The names are kept as
/// written: relative paths, URLs, or, for patches, YAML.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kustomization {
    /// Whether it is a `Component`, which others include and which does nothing by itself.
    pub is_component: bool,
    /// The namespace that it sets on its objects.
    pub namespace: Option<String>,
    /// Files and folders with the objects that it includes.
    pub resources: Vec<String>,
    /// Folders of components.
    pub components: Vec<String>,
    /// Files with patches, and inline patches.
    pub patches: Vec<String>,
    /// The charts that it inflates.
    pub charts: Vec<Chart>,
    /// The folder with the charts, if it names one; otherwise kustomize uses `charts`.
    pub chart_home: Option<String>,
    /// Whether it may change fields, other than the namespace, that decide about the volumes of its
    /// objects.
    pub changes: bool,
    /// Every text in it, including keys, in any field. Kustomize may read any of them as a path or
    /// a URL, because it ignores the case of field names.
    pub texts: Vec<String>,
    /// Whether it names files that configure kustomize and may name further files.
    pub has_plugins: bool,
}

/// Fields that name files that configure kustomize.
const PLUGINS: [&str; 3] = ["generators", "transformers", "validators"];

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Fields {
    api_version: String,
    kind: String,
    namespace: Option<String>,
    resources: Option<Vec<String>>,
    bases: Option<Vec<String>>,
    components: Option<Vec<String>>,
    patches: Option<Vec<Patch>>,
    patches_strategic_merge: Option<Vec<String>>,
    patches_json6902: Option<Vec<Patch>>,
    helm_charts: Option<Vec<Chart>>,
    helm_globals: Option<Globals>,
    helm_chart_inflation_generator: Option<Vec<IgnoredAny>>,
    #[serde(flatten)]
    others: BTreeMap<String, IgnoredAny>,
}

#[derive(Deserialize)]
struct Patch {
    path: Option<String>,
    patch: Option<String>,
}

/// A chart that kustomize inflates.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Chart {
    /// Its name.
    pub name: String,
    /// The repository of charts, or the registry; empty for a chart next to the kustomization.
    pub repo: String,
    /// The version.
    pub version: String,
}

impl Chart {
    /// The folder below the chart home in which kustomize looks for the chart before it fetches it.
    pub fn folder(&self) -> String {
        match (self.repo.as_str(), self.version.as_str()) {
            ("", _) | (_, "") => self.name.clone(),
            (_, version) => format!("{0}-{version}/{0}", self.name),
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Globals {
    chart_home: Option<String>,
}

impl Kustomization {
    /// Reads the kustomization in `text`; `None` if the text is not YAML, or is an object of
    /// another kind or another group.
    pub fn read(text: &str) -> Option<Self> {
        let fields: Fields = serde_saphyr::from_str(text).ok()?;
        let ours = fields.api_version.is_empty()
            || fields.api_version.starts_with("kustomize.config.k8s.io/");
        if !ours || !matches!(fields.kind.as_str(), "" | "Kustomization" | "Component") {
            return None;
        }
        let mut resources = fields.resources.unwrap_or_default();
        resources.extend(fields.bases.unwrap_or_default());
        let mut patches = fields.patches_strategic_merge.unwrap_or_default();
        let more = fields.patches.into_iter().chain(fields.patches_json6902);
        patches.extend(more.flatten().filter_map(|patch| patch.path.or(patch.patch)));
        let mut charts = fields.helm_charts.unwrap_or_default();
        let generators = fields.helm_chart_inflation_generator.unwrap_or_default();
        charts.extend(generators.iter().map(|_| Chart::default()));
        let tree = Tree::parse(text).ok()??;
        let components = fields.components.unwrap_or_default();
        let is_plugin = |name: &str| PLUGINS.iter().any(|plugin| name.eq_ignore_ascii_case(plugin));
        let has_plugins = tree
            .entries(tree.root())
            .into_iter()
            .any(|(key, _)| tree.key_text(key).is_some_and(|name| is_plugin(&name)));
        let mut others = fields.others.keys();
        let changes = !patches.is_empty()
            || !components.is_empty()
            || others.any(|field| !HARMLESS.contains(&field.as_str()));
        Some(Self {
            is_component: fields.kind == "Component",
            namespace: fields.namespace,
            resources,
            components,
            patches,
            charts,
            chart_home: fields.helm_globals.and_then(|globals| globals.chart_home),
            changes,
            has_plugins,
            texts: tree
                .nodes
                .iter()
                .filter_map(|node| node.shape.scalar())
                .map(|scalar| scalar.text.to_string())
                .collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Kustomization;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|&word| word.to_owned()).collect()
    }

    #[test]
    fn all_that_is_named_is_read() {
        let text = "\
resources: [deploy.yaml, ../base]
bases:
- ../older
components: [../parts/tls]
patches:
- path: size.yaml
- target: {kind: Deployment}
  patch: |-
    - {op: remove, path: /spec}
patchesStrategicMerge: [old.yaml]
patchesJson6902:
- {target: {kind: Deployment, name: web}, path: ops.json}
helmCharts:
- {name: redis, repo: somewhere}
images: [{name: web, newTag: \"2\"}]
";
        let read = Kustomization::read(text).unwrap();
        assert_eq!(read.resources, words(&["deploy.yaml", "../base", "../older"]));
        assert_eq!(read.components, words(&["../parts/tls"]));
        assert_eq!(read.charts[0].folder(), "redis");
        assert_eq!(read.patches.len(), 4);
        assert!(read.patches.contains(&"ops.json".to_owned()));
        assert!(!read.is_component);
    }

    #[test]
    fn every_text_is_read_whatever_its_field() {
        let text = "\
Resources: [\"https:\\x2f\\x2fa.example/b\"]
openapi: {path: http://c.example/d}
Generators: [../plugins]
";
        let read = Kustomization::read(text).unwrap();
        assert!(read.resources.is_empty());
        for value in ["https://a.example/b", "http://c.example/d", "../plugins"] {
            assert!(read.texts.iter().any(|found| found == value), "{value}");
        }
        assert!(read.has_plugins);
    }

    #[test]
    fn what_only_adds_and_names_changes_nothing() {
        for (text, changes) in [
            ("resources: [a.yaml]\nnamespace: shop\n", false),
            ("labels: [{pairs: {a: b}}]\nimages: [{name: a}]\n", false),
            ("generators: [secrets.yaml]\nsecretGenerator: []\n", false),
            ("helmCharts: [{name: redis}]\npatches: []\n", false),
            ("patches: [{path: size.yaml}]\n", true),
            ("namePrefix: dev-\n", true),
            ("commonAnnotations: {a: b}\n", true),
            ("patchesJson6902: [{path: ops.json}]\n", true),
            ("components: [../tls]\n", true),
            ("transformers: [t.yaml]\n", true),
            ("replicas: [{name: web, count: 2}]\n", true),
            ("replacements: [{path: r.yaml}]\n", true),
        ] {
            let read = Kustomization::read(text).unwrap();
            assert_eq!(read.changes, changes, "{text}");
        }
    }

    #[test]
    fn other_files_are_no_kustomizations() {
        let table = [
            ("kind: Component\napiVersion: kustomize.config.k8s.io/v1alpha1\n", Some(true)),
            ("kind: Kustomization\napiVersion: kustomize.config.k8s.io/v1beta1\n", Some(false)),
            ("namespace: shop\n", Some(false)),
            ("resources:\n", Some(false)),
            (
                "kind: Kustomization\napiVersion: kustomize.toolkit.fluxcd.io/v1\nspec: {path: ./apps}\n",
                None,
            ),
            ("kind: Deployment\napiVersion: apps/v1\n", None),
            ("resources: [\n", None),
            ("resources: word\n", None),
        ];
        for (text, component) in table {
            let read = Kustomization::read(text);
            assert_eq!(read.map(|read| read.is_component), component, "{text}");
        }
    }
}
