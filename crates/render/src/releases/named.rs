//! The folders of this repository that a delivery names. If the delivery is not rendered, nothing is
//! certain about the charts, kustomizations and manifests in them.
//!
//! Names may be templates and globs. Nothing is evaluated: a placeholder stands for any name.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use wildmatch::WildMatch;

use super::context::RenderContext;
use super::{at, items, text};
use crate::files::{is_inside, normal};
use check::Files as _;
use manifest::delivery::Delivery;

/// The most folders that one name may stand for.
const MAX_FOLDERS: usize = 1_000;

/// The keys of a helmfile and of a `fleet.yaml` whose values name folders.
const KEYS: [&str; 2] = ["chart:", "dir:"];

/// The keys of a `fleet.yaml` that change the manifests in its own folder.
const CHANGES: [&str; 3] = ["helm:", "kustomize:", "targetCustomizations:"];

/// The folders, with links followed, that the object names.
pub(super) fn by_object(delivery: &Delivery, context: &RenderContext<'_>) -> Vec<PathBuf> {
    let spec = at(&delivery.document, &["spec"]).unwrap_or(&Value::Null);
    let mut generated = Vec::new();
    strings(at(spec, &["generators"]).unwrap_or(&Value::Null), &mut generated);
    let of_application = at(spec, &["template", "spec"]).unwrap_or(spec);
    let of_release = at(spec, &["chart", "spec"])
        .filter(|chart| text(chart, &["sourceRef", "kind"]) == Some("GitRepository"))
        .and_then(|chart| text(chart, &["chart"]));
    let of_chart = text(spec, &["chart"]).filter(|chart| chart.contains('/'));
    let top = context.places.repository.top();
    sources_here(of_application, context)
        .chain(of_release)
        .chain(of_chart)
        .chain(text(spec, &["path"]))
        .flat_map(|path| filled_in(path, &generated))
        .flat_map(|path| matching(top, top, &path))
        .collect()
}

/// The folders, with links followed, that a helmfile or a `fleet.yaml` with this text names. `fleet`
/// applies the file's own folder if it names no chart.
pub(super) fn by_file(file: &Path, content: &str, context: &RenderContext<'_>) -> Vec<PathBuf> {
    let Some(own) = file.parent() else {
        return Vec::new();
    };
    let top = context.places.repository.top_of(own);
    let names = KEYS.iter().flat_map(|key| values(content, key));
    let named: Vec<PathBuf> = names.flat_map(|name| matching(top, own, &name)).collect();
    let is_fleet = file.file_stem().is_some_and(|stem| stem == "fleet");
    if named.is_empty() && is_fleet && CHANGES.iter().any(|key| content.contains(key)) {
        return vec![own.to_owned()];
    }
    named
}

/// The paths that the sources of an Application name in this repository.
fn sources_here<'v>(
    spec: &'v Value,
    context: &'v RenderContext<'_>,
) -> impl Iterator<Item = &'v str> {
    items(spec, &["sources"])
        .iter()
        .chain(at(spec, &["source"]))
        .filter(|source| {
            let url = text(source, &["repoURL"]).unwrap_or_default();
            url.contains("{{") || context.is_here(url)
        })
        .filter_map(|source| text(source, &["path"]))
}

/// The path, or if it starts with a placeholder, one path for each string of the generators, which
/// may be the value of the placeholder.
fn filled_in(path: &str, generated: &[&str]) -> Vec<String> {
    let values = generated.iter().filter(|value| !value.is_empty());
    match path.strip_prefix("{{").and_then(|rest| rest.split_once("}}")) {
        Some((_, rest)) => values.map(|value| pattern(&format!("{value}{rest}"))).collect(),
        None => vec![pattern(path)],
    }
}

/// All strings in the value.
fn strings<'v>(value: &'v Value, into: &mut Vec<&'v str>) {
    match value {
        Value::String(string) => into.push(string),
        Value::Array(inner) => inner.iter().for_each(|item| strings(item, into)),
        Value::Object(inner) => inner.values().for_each(|field| strings(field, into)),
        _ => {}
    }
}

/// The values of the key in a text that may be a template of YAML, and not YAML.
fn values(content: &str, key: &str) -> Vec<String> {
    let lines = content.lines().filter(|line| !line.trim_start().starts_with('#')).map(pattern);
    let values = lines.flat_map(|line| {
        line.match_indices(key)
            .map(|(start, _)| line.split_at(start))
            .filter(|(before, _)| before.is_empty() || before.ends_with([' ', '{', ',']))
            .filter_map(|(_, found)| {
                let value = found[key.len()..].trim_start().trim_start_matches(['"', '\'']);
                Some(value.split([',', '}', ' ', '"', '\'']).next()?.to_owned())
            })
            .collect::<Vec<_>>()
    });
    // A placeholder at the start may stand for a folder elsewhere.
    values.filter(|value| !value.is_empty() && !value.starts_with('*')).collect()
}

/// The text with `*` in the place of each placeholder.
fn pattern(text: &str) -> String {
    let mut parts = text.split("{{");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |pattern, part| {
        let (_, rest) = part.split_once("}}").unwrap_or_default();
        format!("{pattern}*{rest}")
    })
}

/// The folders, with links followed, for which the pattern stands in the folder `from`. A file
/// stands for its folder.
fn matching(top: &Path, from: &Path, pattern: &str) -> Vec<PathBuf> {
    let start = if pattern.starts_with('/') { top } else { from };
    let mut found = vec![start.to_owned()];
    for part in pattern.split('/').filter(|part| !part.is_empty()) {
        // Everything below a folder belongs to it.
        if part == "**" {
            break;
        }
        found = found.iter().flat_map(|folder| entries(folder, part)).take(MAX_FOLDERS).collect();
    }
    let real = found.iter().filter_map(|path| fs::canonicalize(path).ok());
    real.filter_map(|real| if real.is_dir() { Some(real) } else { Some(real.parent()?.to_owned()) })
        .filter(|real| is_inside(top, real))
        .collect()
}

/// The entries of the folder with a name like the pattern.
fn entries(folder: &Path, part: &str) -> Vec<PathBuf> {
    if !part.contains('*') {
        return vec![normal(&folder.join(part))];
    }
    let wanted = WildMatch::new(part);
    fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| wanted.matches(&entry.file_name().to_string_lossy()))
        .map(|entry| entry.path())
        .collect()
}
