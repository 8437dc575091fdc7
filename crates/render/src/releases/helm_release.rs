//! Flux' `HelmRelease` (<https://fluxcd.io/flux/components/helm/helmreleases/>).

use manifest::delivery::{Delivery, value_of};
use serde_json::{Map, Value, json};

use super::context::{RenderContext, file_in, kind_and_name};
use super::values::{keys, mapping, merge, set};
use super::{Chart, Delivers, Owner, Read, Reason, Release, at, cut, items, patch, text};
use crate::fetch::Remote;

pub(super) fn read(delivery: &Delivery, context: &RenderContext<'_>) -> Read {
    let document = &delivery.document;
    let name = &delivery.reference.name;
    let target = text(document, &["spec", "targetNamespace"]);
    let namespace = target.or(delivery.reference.namespace.as_deref());
    let default = match target {
        Some(target) => format!("{target}-{name}"),
        None => name.to_string(),
    };
    let release =
        text(document, &["spec", "releaseName"]).map_or_else(|| cut(&default), str::to_owned);
    let source = Sources { delivery, context };
    let (chart, spec) = source.chart()?;
    let owner = Owner::of(delivery, context);
    let mut release = Release::new(&owner, &release, namespace, chart);
    source.values_files(spec, &mut release)?;
    let mut from = json!({});
    for reference in items(document, &["spec", "valuesFrom"]) {
        source.values_from(reference, &mut from, &mut release);
    }
    let own = at(document, &["spec", "values"]).cloned().unwrap_or_else(|| json!({}));
    release.settings.values.extend([from, own]);
    "spec.values".clone_into(&mut release.field);
    for renderer in items(document, &["spec", "postRenderers"]) {
        let kustomize =
            renderer.get("kustomize").ok_or("it has a post-renderer that is not kustomize")?;
        let fields = post_renderer(kustomize)?;
        release.settings.post_renderers.push(fields);
    }
    Ok(vec![Delivers::Release(Box::new(release))])
}

/// Finds the chart and the values of a release.
struct Sources<'s> {
    delivery: &'s Delivery,
    context: &'s RenderContext<'s>,
}

impl<'s> Sources<'s> {
    /// The chart, and the specification that names it.
    fn chart(&self) -> Result<(Chart, &'s Value), Reason> {
        let document = &self.delivery.document;
        if let Some(spec) = at(document, &["spec", "chart", "spec"]) {
            return Ok((self.of_spec(spec)?, spec));
        }
        let reference = at(document, &["spec", "chartRef"]).ok_or("it names no chart")?;
        let found = self.source(reference)?;
        let spec = found.get("spec").unwrap_or(&Value::Null);
        let chart = match text(reference, &["kind"]) {
            Some("HelmChart") => self.of_spec(spec)?,
            _ => {
                let url = text(spec, &["url"]).unwrap_or_default();
                // A digest is the strongest, then a range (Flux's documentation, "OCIRepository").
                let version = ["digest", "semver", "tag"]
                    .iter()
                    .find_map(|field| text(spec, &["ref", field]));
                Chart::Remote(Remote::oci(url, version))
            }
        };
        Ok((chart, spec))
    }

    fn of_spec(&self, spec: &Value) -> Result<Chart, Reason> {
        let chart = text(spec, &["chart"]).ok_or("it names no chart")?;
        let version = text(spec, &["version"]);
        let reference = at(spec, &["sourceRef"]).unwrap_or(&Value::Null);
        let kind = text(reference, &["kind"]).unwrap_or_default();
        if kind == "GitRepository" {
            let folder = self.context.folder_of_source(self.delivery, reference, chart);
            return Ok(Chart::Folder(folder?));
        }
        if kind != "HelmRepository" {
            return Err(format!("its chart is in a {kind}").into());
        }
        let source = self.source(reference)?;
        let url = text(source, &["spec", "url"]).unwrap_or_default();
        Ok(Chart::Remote(Remote::chart(url, chart, version)))
    }

    /// The content of the object that a reference names.
    fn source(&self, reference: &Value) -> Result<&'s Value, Reason> {
        self.context.source(self.delivery, reference).ok_or_else(|| {
            let (kind, name) = kind_and_name(reference);
            format!("its {kind} {name} is not in this repository").into()
        })
    }

    /// Reads the files of a repository that replace the chart's own values when source-controller
    /// packs the chart.
    fn values_files(&self, spec: &Value, release: &mut Release) -> Result<(), Reason> {
        let one = text(spec, &["valuesFile"]).into_iter();
        let files = items(spec, &["valuesFiles"]).iter().filter_map(Value::as_str);
        let may_lack = at(spec, &["ignoreMissingValuesFiles"]) == Some(&json!(true));
        for file in one.chain(files) {
            let Chart::Folder(folder) = &release.chart else {
                let unknown = format!("The file {file} in the chart");
                release.unknown.push(unknown);
                continue;
            };
            let text = match file_in(self.context.top_of(folder), file) {
                Ok((_, text)) => text,
                Err(_) if may_lack => continue,
                Err(reason) => return Err(reason.into()),
            };
            let own_values = release.settings.own_values.get_or_insert_with(|| json!({}));
            merge(own_values, &mapping(file, &text)?);
        }
        Ok(())
    }

    /// Adds the values from a `ConfigMap` or a `Secret`.
    fn values_from(&self, reference: &Value, into: &mut Value, release: &mut Release) {
        let (kind, name) = kind_and_name(reference);
        let key = text(reference, &["valuesKey"]).unwrap_or("values.yaml");
        let data = match self.context.data(self.delivery, reference) {
            Ok(data) => data,
            Err(unknown) => return release.unknown.push(unknown),
        };
        let Some((_, found)) = data.into_iter().rfind(|(known, _)| known == key) else {
            let unknown = format!("The {kind} {name}, which lacks the key {key},");
            return release.unknown.push(unknown);
        };
        if let Some(path) = text(reference, &["targetPath"]) {
            // As in `helm --set`, a text that looks like a number is one.
            let value = value_of(&found).unwrap_or(Value::String(found));
            return set(into, &keys(path), value);
        }
        match mapping(name, &found) {
            Ok(values) => merge(into, &values),
            Err(_) => release.unknown.push(format!("The {kind} {name}, which is not YAML,")),
        }
    }
}

/// The fields of the kustomization that a post-renderer represents. None of them is a file or a
/// URL.
fn post_renderer(kustomize: &Value) -> Result<Map<String, Value>, Reason> {
    let list = |field: &str| items(kustomize, &[field]).iter();
    let written = list("patches").map(|entry| Some(patch(entry.get("patch")?.as_str()?, entry)));
    let merged =
        list("patchesStrategicMerge").map(|entry| Some(patch(&entry.to_string(), &Value::Null)));
    let operations =
        list("patchesJson6902").map(|entry| Some(patch(&entry.get("patch")?.to_string(), entry)));
    let patches: Vec<Value> = written
        .chain(merged)
        .chain(operations)
        .collect::<Option<_>>()
        .ok_or("it has a post-renderer with a patch that is not written in it")?;
    let images = at(kustomize, &["images"]).map(|images| ("images".to_owned(), images.clone()));
    Ok(images.into_iter().chain([("patches".to_owned(), Value::Array(patches))]).collect())
}
