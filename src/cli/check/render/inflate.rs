//! Charts that a kustomization inflates and that were fetched.
//!
//! kustomize inflates folders only, and pulls what is packed. So Helm renders the packed chart into
//! a file of the copy, which takes the place of the entry in `helmCharts`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use manifest::delivery::value_of;
use serde_json::{Value, json};

use super::super::files::{is_inside, normal};
use super::super::reason::Reason;
use super::Renderer;
use super::program::Failure;
use super::roots::{Inflated, Root};
use super::sandbox::Copy;

impl Renderer {
    /// Renders the charts that were fetched for kustomizations of the root.
    pub(super) async fn inflate(&self, root: &Root, copy: &Copy) -> Result<(), Reason> {
        let mut files: BTreeMap<&Path, Vec<&Inflated>> = BTreeMap::new();
        for inflated in &root.inflated {
            files.entry(&inflated.file).or_default().push(inflated);
        }
        for (file, all) in files {
            let copied = copy.of_original(file);
            let folder = copied.parent().unwrap_or(copy.folder());
            let text = fs::read_to_string(&copied).map_err(failed)?;
            let mut kustomization = value_of(&text).unwrap_or_default();
            let mut charts = kustomization
                .get_mut("helmCharts")
                .map(Value::take)
                .unwrap_or_default();
            let mut rendered = Vec::new();
            for Inflated {
                number, archive, ..
            } in all
            {
                let entry = charts.get_mut(*number).map(Value::take).unwrap_or_default();
                let options = options(&entry, *number, folder, copy)?;
                let text = |field: &str| entry.get(field).and_then(Value::as_str);
                let release = text("releaseName").or(text("name")).unwrap_or_default();
                let text = self.helm_template(release, archive, &options, copy).await?;
                let name = format!("inflated-chart-{number}.yaml");
                fs::write(folder.join(&name), text).map_err(failed)?;
                rendered.push(Value::String(name));
            }
            if let (Some(fields), Value::Array(mut charts)) =
                (kustomization.as_object_mut(), charts)
            {
                charts.retain(|it| !it.is_null());
                fields.insert("helmCharts".to_owned(), Value::Array(charts));
                let resources = fields.entry("resources").or_insert_with(|| json!([]));
                if let Some(resources) = resources.as_array_mut() {
                    resources.extend(rendered);
                }
            }
            fs::write(&copied, kustomization.to_string()).map_err(failed)?;
        }
        Ok(())
    }
}

/// The options of `helm template` for an entry of `helmCharts` in a kustomization of `folder`, as
/// kustomize has them.
fn options(
    entry: &Value,
    number: usize,
    folder: &Path,
    copy: &Copy,
) -> Result<Vec<OsString>, Reason> {
    let text = |field: &str| entry.get(field).and_then(Value::as_str);
    let is_set = |field: &str| entry.get(field) == Some(&Value::Bool(true));
    let mut options: Vec<OsString> = Vec::new();
    if let Some(namespace) = text("namespace") {
        options.push(format!("--namespace={namespace}").into());
    }
    for (field, option) in [
        ("includeCRDs", "--include-crds"),
        ("skipHooks", "--no-hooks"),
    ] {
        if is_set(field) {
            options.push(option.into());
        }
    }
    let mut values = Vec::new();
    if let Some(file) = text("valuesFile") {
        values.push(file_of(file, folder, copy)?);
    }
    if let Some(inline) = entry.get("valuesInline").filter(|it| it.is_object()) {
        let file = copy.folder().join(format!("inflated-values-{number}.yaml"));
        fs::write(&file, inline.to_string()).map_err(failed)?;
        match text("valuesMerge") {
            Some("merge") => values.insert(0, file),
            Some("replace") => values = vec![file],
            _ => values.push(file),
        }
    }
    let more = entry.get("additionalValuesFiles").and_then(Value::as_array);
    for file in more.into_iter().flatten().filter_map(Value::as_str) {
        values.push(file_of(file, folder, copy)?);
    }
    for file in values {
        options.extend(["--values".into(), file.into()]);
    }
    Ok(options)
}

/// A file that a kustomization of `folder` names, in the copy.
fn file_of(name: &str, folder: &Path, copy: &Copy) -> Result<PathBuf, Reason> {
    let file = fs::canonicalize(normal(&folder.join(name))).ok();
    let file = file.filter(|it| is_inside(copy.folder(), it) && it.is_file());
    file.ok_or_else(|| {
        format!("the values file {name} of a chart that it inflates is not among its files").into()
    })
}

fn failed(error: std::io::Error) -> Reason {
    Failure::Copy(error).to_string().into()
}
