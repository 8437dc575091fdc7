//! Flux' `Kustomization` (<https://fluxcd.io/flux/components/kustomize/kustomizations/>), where it
//! changes what stands in its folder.

use manifest::delivery::Delivery;
use serde_json::{Map, Value, json};

use super::helm_release::revision;
use super::variables::Variables;
use super::world::World;
use super::{Chart, Owner, Read, Release, at, items, text};
use crate::cli::check::render::roots::{RootKind, holds};

pub(super) fn read(delivery: &Delivery, world: &World<'_>) -> Read {
    let document = &delivery.document;
    let fields = fields(document);
    let variables = at(document, &["spec", "postBuild"])
        .map(|post_build| variables(post_build, delivery, world));
    // Without a change to it, the folder is read where it stands.
    if fields.is_empty() && variables.is_none() {
        return Ok(Vec::new());
    }
    let reference = at(document, &["spec", "sourceRef"]).unwrap_or(&Value::Null);
    let kind = text(reference, &["kind"]).unwrap_or_default();
    match kind {
        "GitRepository" => {}
        "" => return Err("it has no sourceRef".into()),
        kind => return Err(format!("its manifests are in a {kind}").into()),
    }
    let namespace = text(reference, &["namespace"]);
    let namespace = namespace.or(delivery.reference.namespace.as_deref());
    let name = text(reference, &["name"]).unwrap_or_default();
    // One that `flux bootstrap` made need not be in the repository that it is for.
    let source = world.find(kind, name, namespace, delivery.place.source);
    let path = text(document, &["spec", "path"]).unwrap_or(".");
    let url = source.and_then(|it| Some((text(&it.document, &["spec", "url"])?, it)));
    let folder = match url {
        Some((url, source)) if !world.is_here(url) => {
            let reference = revision(&source.document);
            world.folder_of_other(url, reference.as_deref(), path)?
        }
        _ => world.folder(path)?,
    };
    if !holds(&folder, RootKind::Kustomization) {
        return Ok(Vec::new());
    }
    let target = text(document, &["spec", "targetNamespace"]);
    let chart = Chart::Kustomization(folder, fields);
    let release = Release::new(
        &Owner::of(delivery),
        &delivery.reference.name,
        target,
        chart,
    );
    Ok(vec![Release {
        variables: variables.unwrap_or_default(),
        ..release
    }])
}

/// The fields of the kustomization that Flux changes.
fn fields(document: &Value) -> Map<String, Value> {
    let mut fields = Map::new();
    for (from, to) in [
        ("targetNamespace", "namespace"),
        ("namePrefix", "namePrefix"),
        ("nameSuffix", "nameSuffix"),
        ("components", "components"),
    ] {
        if let Some(value) = at(document, &["spec", from]) {
            fields.insert(to.to_owned(), value.clone());
        }
    }
    let patches = items(document, &["spec", "patches"]).iter();
    let patches: Vec<Value> = patches
        .filter(|it| it.get("patch").is_some_and(Value::is_string))
        .map(|it| {
            let mut patch = json!({"patch": it["patch"]});
            if let Some(target) = at(it, &["target"]) {
                patch["target"] = target.clone();
            }
            patch
        })
        .collect();
    if !patches.is_empty() {
        fields.insert("patches".to_owned(), Value::Array(patches));
    }
    fields
}

/// What it substitutes. Those of objects that are not known here stay as they are written.
fn variables(post_build: &Value, delivery: &Delivery, world: &World<'_>) -> Variables {
    let mut variables = Variables::default();
    let namespace = delivery.reference.namespace.as_deref();
    for from in items(post_build, &["substituteFrom"]) {
        let kind = text(from, &["kind"]).unwrap_or_default();
        let name = text(from, &["name"]).unwrap_or_default();
        let near = delivery.place.source;
        variables.extend(world.all_data(kind, name, namespace, near));
    }
    let own = at(post_build, &["substitute"]).and_then(Value::as_object);
    variables.extend(own.into_iter().flatten().map(|(name, value)| {
        let value = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        (name.clone(), value)
    }));
    variables
}
