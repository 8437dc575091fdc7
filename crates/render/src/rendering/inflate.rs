//! Charts that a kustomization inflates.
//!
//! Kustomize would start Helm with any arguments in an entry of `helmCharts`. Therefore Helm
//! renders the chart here, to a file of the copy that replaces the entry, and kustomize does not
//! start Helm.

use std::fs;
use std::path::{Path, PathBuf};

use manifest::delivery::value_of;
use serde_json::{Map, Value, json};

use super::roots::{Inflated, Root, RootKind};
use super::{MAX_VALUES, Renderer, helm_template};
use crate::files::{is_inside, normal, text_inside};
use crate::program::command_line::{CommandLine, Field, Word};
use crate::program::run::Failure;
use crate::program::sandbox::Copy;
use crate::reason::Reason;

/// The fields of an entry that are read here.
const FIELDS: [&str; 14] = [
    "additionalValuesFiles",
    "apiVersions",
    "includeCRDs",
    "kubeVersion",
    "name",
    "namespace",
    "releaseName",
    "repo",
    "skipHooks",
    "skipTests",
    "valuesFile",
    "valuesInline",
    "valuesMerge",
    "version",
];

/// A command line of Helm for a chart, and its output file.
struct Planned {
    line: CommandLine,
    chart: PathBuf,
    file: PathBuf,
}

impl Renderer {
    /// Renders the charts that kustomizations of the root inflate.
    pub(super) async fn inflate(&self, root: &Root, copy: &Copy) -> Result<(), Reason> {
        let mut planned = Vec::new();
        for all in root.inflated.chunk_by(|a, b| a.file == b.file) {
            planned.extend(replace(all, copy)?);
        }
        // No program starts before all entries are read.
        for Planned { line, chart, file } in planned {
            let folder = chart.strip_prefix(&self.here).unwrap_or(&chart);
            let rendered = self.helm(&line, copy).await;
            let text = rendered.map_err(|reason| reason.in_folder(RootKind::Chart, folder))?;
            copy.count(1, text.len() as u64)?;
            fs::write(file, text).map_err(Failure::Copy)?;
        }
        Ok(())
    }
}

/// Replaces the entries of `helmCharts` in one kustomization of the copy with files.
fn replace(all: &[Inflated], copy: &Copy) -> Result<Vec<Planned>, Reason> {
    let kustomization = &copy.of_original(&all[0].file);
    let folder = kustomization.parent().unwrap_or(copy.folder());
    let text = fs::read_to_string(kustomization).map_err(Failure::Copy)?;
    let mut fields = match value_of(&text) {
        Some(Value::Object(fields)) => fields,
        _ => Map::new(),
    };
    let entries = fields.remove("helmCharts").unwrap_or_default();
    let (mut planned, mut names) = (Vec::new(), Vec::new());
    for inflated in all {
        let entry = entries.get(inflated.number).unwrap_or(&Value::Null);
        let name = format!("inflated-chart-{}.yaml", inflated.number);
        let file = folder.join(&name);
        let mut chart = copy.of_original(&inflated.chart);
        if inflated.chart.is_file() {
            chart = file.with_extension("tgz");
            copy.copy_file(&inflated.chart, &chart)?;
        }
        let line = line(entry, inflated.number, folder, copy)?.word(chart.as_path());
        copy.set_original(file.clone(), &inflated.file);
        planned.push(Planned { line, chart: inflated.chart.clone(), file });
        names.push(Value::String(name));
    }
    let resources = fields.entry("resources").or_insert_with(|| json!([]));
    if let Value::Array(resources) = resources {
        resources.extend(names);
    } else {
        *resources = Value::Array(names);
    }
    fs::write(kustomization, Value::Object(fields).to_string()).map_err(Failure::Copy)?;
    Ok(planned)
}

/// The command line with which kustomize would let Helm render an entry of `helmCharts` in a
/// kustomization of `folder`; the caller adds the chart. An entry with an unknown field is refused.
fn line(entry: &Value, number: usize, folder: &Path, copy: &Copy) -> Result<CommandLine, Reason> {
    let text = |field: &str| entry.get(field).and_then(Value::as_str);
    let texts = |field: &str| {
        entry.get(field).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
    };
    let mut keys = entry.as_object().into_iter().flat_map(Map::keys);
    if let Some(field) = keys.find(|key| !FIELDS.contains(&key.as_str())) {
        let chart = text("name").unwrap_or_default();
        let unread = "a field that is not read here";
        return Err(format!("it inflates the chart {chart:?} with {field}, {unread}").into());
    }
    let mut line = helm_template();
    if let Some(namespace) = text("namespace") {
        line.option("--namespace", &Word::new(Field::Namespace, namespace)?);
    }
    if let Some(version) = text("kubeVersion") {
        line.option("--kube-version", &Word::new(Field::KubeVersion, version)?);
    }
    for version in texts("apiVersions") {
        line.option("--api-versions", &Word::new(Field::ApiVersion, version)?);
    }
    for (field, option) in [
        ("includeCRDs", "--include-crds"),
        ("skipHooks", "--no-hooks"),
        ("skipTests", "--skip-tests"),
    ] {
        if entry.get(field) == Some(&Value::Bool(true)) {
            line.flag(option);
        }
    }
    let mut values = Vec::new();
    if let Some(file) = text("valuesFile") {
        values.push(content_of(file, folder, copy)?);
    }
    if let Some(inline) = entry.get("valuesInline").filter(|inline| inline.is_object()) {
        let inline = inline.to_string();
        match text("valuesMerge") {
            Some("merge") => values.insert(0, inline),
            Some("replace") => values = vec![inline],
            _ => values.push(inline),
        }
    }
    for file in texts("additionalValuesFiles") {
        values.push(content_of(file, folder, copy)?);
    }
    // Helm splits file names at commas, so the files get new names.
    for (at, content) in values.into_iter().enumerate() {
        let file = folder.join(format!("inflated-values-{number}-{at}.yaml"));
        fs::write(&file, content).map_err(Failure::Copy)?;
        line.option("--values", file.as_path());
    }
    // If the release has no name, kustomize would let Helm generate one. Here, it gets the chart's.
    let release = text("releaseName").or(text("name")).unwrap_or_default();
    Ok(line.word(&Word::new(Field::ReleaseName, release)?))
}

/// The content of a file in the copy that a kustomization of `folder` names.
fn content_of(name: &str, folder: &Path, copy: &Copy) -> Result<String, Reason> {
    let file = fs::canonicalize(normal(&folder.join(name)))
        .ok()
        .filter(|file| is_inside(copy.folder(), file) && file.is_file())
        .ok_or_else(|| {
            format!("the values file {name} of a chart that it inflates is not among its files")
        })?;
    text_inside(copy.folder(), &file, MAX_VALUES)
        .map_err(|error| format!("its values file {name} cannot be read: {error}").into())
}
