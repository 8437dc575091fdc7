//! Argo CD's `Application`
//! (<https://argo-cd.readthedocs.io/en/stable/user-guide/application-specification/>).

use std::collections::HashMap;
use std::path::PathBuf;
use std::slice;

use manifest::delivery::Delivery;
use serde_json::{Value, json};

use super::context::{RenderContext, file_in};
use super::values::mapping;
use super::{Chart, Delivers, Owner, Placed, Read, Reason, Release, at, cut, fields, items, text};
use crate::fetch::Remote;
use crate::rendering::release::Setting;
use crate::rendering::roots::RootKind;
use check::Files as _;

/// The deliveries of an Application, at most one for each of its sources.
pub(super) fn read(delivery: &Delivery, context: &RenderContext<'_>) -> Read {
    let document = &delivery.document;
    let sources = match items(document, &["spec", "sources"]) {
        [] => {
            let one = at(document, &["spec", "source"]);
            slice::from_ref(one.ok_or("it names no source")?)
        }
        several => several,
    };
    let references =
        sources.iter().filter_map(|source| Some((text(source, &["ref"])?, source))).collect();
    let application =
        Application { document, owner: &Owner::of(delivery, context), context, references };
    let mut delivers = Vec::new();
    for (number, source) in sources.iter().enumerate() {
        // The source is only a reference for others.
        if source.get("chart").is_none() && source.get("path").is_none() {
            continue;
        }
        delivers.extend(application.delivers(number, source)?);
    }
    Ok(delivers)
}

struct Application<'a> {
    document: &'a Value,
    owner: &'a Owner,
    context: &'a RenderContext<'a>,
    /// The sources to which others refer, by name.
    references: HashMap<&'a str, &'a Value>,
}

impl Application<'_> {
    /// The delivery of one source.
    fn delivers(&self, number: usize, source: &Value) -> Result<Option<Delivers>, Reason> {
        if source.get("plugin").is_some() {
            return Err("a plugin renders it, and programs from a repository are never run".into());
        }
        let written = source.to_string();
        if let Some(variable) = VARIABLES.iter().find(|variable| written.contains(*variable)) {
            let reason =
                format!("it names {variable}…, which only Argo CD's build environment has");
            return Err(reason.into());
        }
        let namespace = text(self.document, &["spec", "destination", "namespace"]);
        let url = text(source, &["repoURL"]).unwrap_or_default();
        let chart = match self.chart(source, url)? {
            Chart::Manifests(folder, is_recursive) if self.context.is_here(url) => {
                let placed = namespace.map(|namespace| Placed {
                    folder,
                    is_recursive,
                    namespace: namespace.to_owned(),
                });
                return Ok(placed.map(Delivers::Files));
            }
            chart => chart,
        };
        let namespace = text(source, &["helm", "namespace"]).or(namespace);
        let own_name = text(self.document, &["metadata", "name"]).unwrap_or_default();
        let name =
            text(source, &["helm", "releaseName"]).map_or_else(|| cut(own_name), str::to_owned);
        let mut release = Release::new(self.owner, &name, namespace, chart);
        if !release.chart.is_helm() {
            let kustomize = at(source, &["kustomize"]).unwrap_or(&Value::Null);
            release.settings.fields = fields(kustomize, &FIELDS);
            return Ok(Some(Delivers::Release(Box::new(release))));
        }
        for file in items(source, &["helm", "valueFiles"]) {
            let file = file.as_str().unwrap_or_default();
            self.values_file(source, file, &mut release)?;
        }
        self.values(number, source, &mut release)?;
        for parameter in items(source, &["helm", "parameters"]) {
            release.settings.sets.extend(set(parameter));
        }
        Ok(Some(Delivers::Release(Box::new(release))))
    }

    /// The location of the chart or of the manifests in the repository or registry at the URL.
    fn chart(&self, source: &Value, url: &str) -> Result<Chart, Reason> {
        let version = text(source, &["targetRevision"]);
        if let Some(name) = text(source, &["chart"]) {
            // A registry is named without a scheme.
            return Ok(Chart::Remote(if url.contains("://") {
                Remote::chart(url, name, version)
            } else {
                Remote::oci(&format!("oci://{url}/{name}"), version)
            }));
        }
        if url.starts_with("oci://") {
            return Ok(Chart::Remote(Remote::oci(url, version)));
        }
        if url.starts_with('<') || url.starts_with("${") || url.contains("{{") {
            return Err("its source is still to be filled in".into());
        }
        let path = text(source, &["path"]).unwrap_or(".");
        let folder = self.context.folder_at(url, version, path)?;
        Ok(if RootKind::Chart.file_in(&folder).is_some() {
            Chart::Folder(folder)
        } else if RootKind::Kustomization.file_in(&folder).is_some() {
            Chart::Kustomization(folder)
        } else {
            let is_recursive = at(source, &["directory", "recurse"]) == Some(&json!(true));
            Chart::Manifests(folder, is_recursive)
        })
    }

    fn values_file(&self, source: &Value, file: &str, release: &mut Release) -> Result<(), Reason> {
        let (top, path) = match self.located(source, file, &release.chart)? {
            ValuesFile::At(top, path) => (top, path),
            ValuesFile::Unknown(unknown) => {
                release.unknown.push(unknown);
                return Ok(());
            }
        };
        let is_optional = at(source, &["helm", "ignoreMissingValueFiles"]) == Some(&json!(true));
        match file_in(&top, &path) {
            Ok((real, text)) if text.contains("\nsops:") => {
                let encrypted = self.context.path_of(&real);
                release.unknown.push(format!("The values file {encrypted}, which is encrypted,"));
            }
            Ok((_, text)) => {
                release.settings.values.push(mapping(&path, &text)?);
            }
            Err(_) if is_optional => {}
            Err(reason) => return Err(reason.into()),
        }
        Ok(())
    }

    /// The location of a values file.
    fn located(&self, source: &Value, file: &str, chart: &Chart) -> Result<ValuesFile, Reason> {
        if file.contains("://") {
            return Ok(ValuesFile::Unknown(format!("The values file {file}")));
        }
        if let Some(rest) = file.strip_prefix('$') {
            let (name, path) = rest.split_once('/').unwrap_or((rest, ""));
            let found = self
                .references
                .get(name)
                .copied()
                .ok_or_else(|| format!("none of its sources is called {name}"))?;
            let url = text(found, &["repoURL"]).unwrap_or_default();
            let top = if self.context.is_here(url) {
                Ok(self.context.places.repository.top().to_owned())
            } else {
                let remote = Remote::git(url, text(found, &["targetRevision"]));
                self.context.places.fetcher.get(&remote)
            };
            return Ok(match top {
                Ok(top) => ValuesFile::At(top, path.to_owned()),
                Err(_) => {
                    let unknown = format!("The values file {path} of the repository {url}");
                    ValuesFile::Unknown(unknown)
                }
            });
        }
        let is_from_top = file.starts_with('/');
        let (top, path) = match chart {
            Chart::Folder(folder) if !is_from_top => {
                let above = text(source, &["path"]).unwrap_or(".");
                (self.context.top_of(folder), format!("{above}/{file}"))
            }
            Chart::Folder(folder) => (self.context.top_of(folder), file.to_owned()),
            _ if is_from_top => (self.context.places.repository.top(), file.to_owned()),
            _ => {
                let unknown = format!("The values file {file} in the chart");
                return Ok(ValuesFile::Unknown(unknown));
            }
        };
        Ok(ValuesFile::At(top.to_owned(), path))
    }

    /// Reads the values in the object, which are a text or a mapping. The mapping overrides the
    /// text.
    fn values(&self, number: usize, source: &Value, release: &mut Release) -> Result<(), Reason> {
        let from = match items(self.document, &["spec", "sources"]) {
            [] => "spec.source".to_owned(),
            _ => format!("spec.sources[{number}]"),
        };
        let values = &mut release.settings.values;
        let field = if let Some(value) = at(source, &["helm", "valuesObject"]) {
            values.push(value.clone());
            "valuesObject"
        } else if let Some(text) = text(source, &["helm", "values"]) {
            values.push(mapping("helm.values", text)?);
            "values"
        } else if values.is_empty() {
            "valuesObject"
        } else {
            return Ok(());
        };
        release.field = format!("{from}.helm.{field}");
        Ok(())
    }
}

/// The location of a values file.
enum ValuesFile {
    /// A path below the top folder of a repository, whose links are followed.
    At(PathBuf, String),
    /// A file that cannot be read here: the start of a sentence about it.
    Unknown(String),
}

/// The fields of a kustomization that Argo CD sets, except the patches.
const FIELDS: [&str; 7] = [
    "namePrefix",
    "nameSuffix",
    "namespace",
    "commonLabels",
    "commonAnnotations",
    "components",
    "replicas",
];

/// The prefixes of the variables that Argo CD fills in.
const VARIABLES: [&str; 2] = ["$ARGOCD_", "${ARGOCD_"];

/// The setting for a parameter. Argo CD escapes commas.
fn set(parameter: &Value) -> Option<Setting> {
    let name = text(parameter, &["name"])?;
    let value = match parameter.get("value")? {
        Value::String(value) => value.replace(',', r"\,"),
        value => value.to_string(),
    };
    let pair = format!("{name}={value}");
    Some(match parameter.get("forceString") {
        Some(Value::Bool(true)) => Setting::Text(pair),
        _ => Setting::Typed(pair),
    })
}
