//! Helmfile's `helmfile.yaml` (<https://helmfile.readthedocs.io/>).

use serde_json::Value;

use super::helm_release::{oci, repository};
use super::values::{At, Layer, keys, set};
use super::world::World;
use super::{Chart, Owner, Read, Reason, Release, at, cut, items, text};

pub(super) fn read(document: &Value, owner: &Owner, world: &World<'_>) -> Read {
    let folder = world.folder_of(owner.place.source);
    let folder = folder.ok_or("it is not in this repository")?;
    let mut releases = Vec::new();
    for entry in items(document, &["releases"]) {
        if at(entry, &["installed"]) != Some(&Value::Bool(false)) {
            let name = text(entry, &["name"]).unwrap_or_default();
            let read = release(document, entry, owner, &folder, world);
            // The others are rendered all the same.
            let refused = |reason| Release::new(owner, name, None, Chart::Refused(reason));
            releases.push(read.unwrap_or_else(refused));
        }
    }
    Ok(releases)
}

fn release(
    document: &Value,
    entry: &Value,
    owner: &Owner,
    folder: &str,
    world: &World<'_>,
) -> Result<Release, Reason> {
    let name = text(entry, &["name"]).unwrap_or_default();
    let is_template = |text: &str| text.contains("{{");
    if is_template(&entry.to_string()) {
        return Err(format!("its release {name} is a template").into());
    }
    let post_renderer = at(entry, &["postRenderer"]);
    let post_renderer = post_renderer.or_else(|| at(document, &["helmDefaults", "postRenderer"]));
    if post_renderer.is_some() {
        let message = format!(
            "its release {name} has a post-renderer, and programs from a repository are never run"
        );
        return Err(message.into());
    }
    let chart = chart(document, entry, folder, world)?;
    let mut release = Release::new(owner, &cut(name), text(entry, &["namespace"]), chart);
    for values in items(entry, &["values"]) {
        match values {
            Value::String(file) if file.ends_with(".gotmpl") => {
                release.unknown.push(format!("The template {file}"));
            }
            Value::String(file) => {
                let (real, text) = world.file(&format!("{folder}/{file}"))?;
                release
                    .values
                    .push(Layer::of_text(file, &text, At::File(real))?);
            }
            value => release.values.push(Layer {
                value: value.clone(),
                at: At::Elsewhere,
            }),
        }
    }
    let mut single = Value::Null;
    for entry in items(entry, &["set"]) {
        if let (Some(name), Some(value)) = (text(entry, &["name"]), entry.get("value")) {
            set(&mut single, &keys(name), value.clone());
        }
    }
    if single.is_object() {
        release.values.push(Layer {
            value: single,
            at: At::Elsewhere,
        });
    }
    if at(entry, &["secrets"]).is_some() {
        release
            .unknown
            .push(format!("The secrets of the release {name}"));
    }
    Ok(release)
}

fn chart(
    document: &Value,
    entry: &Value,
    folder: &str,
    world: &World<'_>,
) -> Result<Chart, Reason> {
    let chart = text(entry, &["chart"]).ok_or("one of its releases names no chart")?;
    let version = text(entry, &["version"]);
    if chart.starts_with("oci://") {
        return Ok(oci(chart, version));
    }
    let known = |name: &str| {
        let mut repositories = items(document, &["repositories"]).iter();
        repositories.find(|it| text(it, &["name"]) == Some(name))
    };
    if let Some((name, chart)) = chart.split_once('/')
        && let Some(found) = known(name)
    {
        let url = text(found, &["url"]).unwrap_or_default();
        return Ok(match found.get("oci") {
            Some(Value::Bool(true)) => oci(&format!("oci://{url}/{chart}"), version),
            _ => repository(url, chart, version),
        });
    }
    Ok(Chart::Folder(world.folder(&format!("{folder}/{chart}"))?))
}
