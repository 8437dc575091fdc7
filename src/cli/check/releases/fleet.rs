//! Rancher Fleet's `fleet.yaml` (<https://fleet.rancher.io/ref-fleet-yaml>).

use serde_json::Value;

use super::helm_release::{oci, repository};
use super::values::{At, Layer};
use super::world::World;
use super::{Chart, Owner, Read, Reason, Release, at, cut, items, text};
use crate::cli::check::render::roots::{RootKind, holds};

pub(super) fn read(document: &Value, owner: &Owner, world: &World<'_>) -> Read {
    let folder = world.folder_of(owner.place.source);
    let folder = folder.ok_or("it is not in this repository")?;
    let helm = document.get("helm").unwrap_or(&Value::Null);
    let Some(chart) = chart(helm, &folder, world)? else {
        return Ok(Vec::new());
    };
    let namespace = text(document, &["namespace"]);
    let namespace = namespace.or(text(document, &["defaultNamespace"]));
    let default = folder.replace('/', "-");
    let name = text(helm, &["releaseName"]).unwrap_or(&default);
    let mut release = Release::new(owner, &cut(name), namespace, chart);
    values(
        helm,
        &folder,
        world,
        &mut release,
        At::Field("helm.values".to_owned()),
    )?;
    let mut releases = vec![release.clone()];
    for customization in items(document, &["targetCustomizations"]) {
        let Some(helm) = at(customization, &["helm"]) else {
            continue;
        };
        let mut other = release.clone();
        let namespace = text(customization, &["namespace"]).map(str::to_owned);
        other.namespace = namespace.or(other.namespace);
        values(helm, &folder, world, &mut other, At::Elsewhere)?;
        releases.push(other);
    }
    Ok(releases)
}

/// The chart; `None` where the folder is one of manifests.
fn chart(helm: &Value, folder: &str, world: &World<'_>) -> Result<Option<Chart>, Reason> {
    let version = text(helm, &["version"]);
    let chart = text(helm, &["chart"]);
    if let (Some(url), Some(name)) = (text(helm, &["repo"]), chart) {
        return Ok(Some(repository(url, name, version)));
    }
    let path = match chart.or_else(|| text(helm, &["repo"])) {
        Some(url) if url.starts_with("oci://") => return Ok(Some(oci(url, version))),
        Some(url) if url.contains("://") => {
            return Err(Reason::elsewhere(format!("its chart is at {url}")));
        }
        Some(path) => format!("{folder}/{path}"),
        None => folder.to_owned(),
    };
    let path = world.folder(&path)?;
    Ok(holds(&path, RootKind::Chart).then_some(Chart::Folder(path)))
}

fn values(
    helm: &Value,
    folder: &str,
    world: &World<'_>,
    release: &mut Release,
    at_own: At,
) -> Result<(), Reason> {
    let value = at(helm, &["values"]);
    release.values.extend(value.map(|value| Layer {
        value: value.clone(),
        at: at_own,
    }));
    for file in items(helm, &["valuesFiles"])
        .iter()
        .filter_map(Value::as_str)
    {
        let (real, text) = world.file(&format!("{folder}/{file}"))?;
        release
            .values
            .push(Layer::of_text(file, &text, At::File(real))?);
    }
    if at(helm, &["valuesFrom"]).is_some() {
        release
            .unknown
            .push("What is in helm.valuesFrom".to_owned());
    }
    Ok(())
}
