//! Flux' `Kustomization` (<https://fluxcd.io/flux/components/kustomize/kustomizations/>).

use std::path::PathBuf;

use manifest::delivery::Delivery;
use serde_json::{Map, Value, json};

use super::context::RenderContext;
use super::{Chart, Delivers, Owner, Read, Reason, Release, at, items, text};
use crate::rendering::variables::Variables;

pub(super) fn read(delivery: &Delivery, context: &RenderContext<'_>) -> Read {
    let document = &delivery.document;
    let fields = fields(document);
    let variables = at(document, &["spec", "postBuild"])
        .map(|post_build| variables(post_build, delivery, context));
    let folder = folder(delivery, context);
    if fields.is_empty() && variables.is_none() {
        return Ok(folder.ok().map(Delivers::Folder).into_iter().collect());
    }
    let chart = Chart::Kustomization(folder?, fields);
    let (owner, name) = (Owner::of(delivery, context), &delivery.reference.name);
    let target = text(document, &["spec", "targetNamespace"]);
    let (variables, unknown) = variables.unwrap_or_default();
    let release = Release {
        variables,
        unknown,
        ..Release::new(&owner, name, target, chart)
    };
    Ok(vec![Delivers::Release(Box::new(release))])
}

/// The folder that it applies, with links followed.
fn folder(delivery: &Delivery, context: &RenderContext<'_>) -> Result<PathBuf, Reason> {
    let document = &delivery.document;
    let reference = at(document, &["spec", "sourceRef"]).unwrap_or(&Value::Null);
    let kind = text(reference, &["kind"]).unwrap_or_default();
    match kind {
        "GitRepository" => {}
        "" => return Err("it has no sourceRef".into()),
        kind => return Err(format!("its manifests are in a {kind}").into()),
    }
    let path = text(document, &["spec", "path"]).unwrap_or(".");
    context.folder_of_source(delivery, reference, path)
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

/// The variables that it substitutes, and further sources of variables that are not known.
fn variables(
    post_build: &Value,
    delivery: &Delivery,
    context: &RenderContext<'_>,
) -> (Variables, Vec<String>) {
    let (mut variables, mut unknown) = (Variables::default(), Vec::new());
    for from in items(post_build, &["substituteFrom"]) {
        match context.data(delivery, from) {
            Ok(data) => variables.extend(data),
            Err(what) => unknown.push(what),
        }
    }
    let own = at(post_build, &["substitute"]).and_then(Value::as_object);
    variables.extend(own.into_iter().flatten().map(|(name, value)| {
        let value = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        (name.clone(), value)
    }));
    (variables, unknown)
}
