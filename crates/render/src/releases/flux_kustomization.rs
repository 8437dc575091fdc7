//! Flux' `Kustomization` (<https://fluxcd.io/flux/components/kustomize/kustomizations/>).

use std::collections::BTreeMap;
use std::path::PathBuf;

use manifest::delivery::Delivery;
use serde_json::Value;

use super::context::RenderContext;
use super::{Chart, Delivers, Owner, Read, Reason, Release, at, fields, items, text};
use crate::rendering::variables::Variables;

pub(super) fn read(delivery: &Delivery, context: &RenderContext<'_>) -> Read {
    let document = &delivery.document;
    let spec = at(document, &["spec"]).unwrap_or(&Value::Null);
    let mut fields = fields(spec, &["namePrefix", "nameSuffix", "components"]);
    let namespace = at(spec, &["targetNamespace"]);
    fields.extend(namespace.map(|name| ("namespace".to_owned(), name.clone())));
    let variables = at(document, &["spec", "postBuild"])
        .map(|post_build| variables(post_build, delivery, context));
    let folder = folder(delivery, context);
    if fields.is_empty() && variables.is_none() {
        return Ok(folder.ok().map(Delivers::Folder).into_iter().collect());
    }
    let chart = Chart::Kustomization(folder?);
    let (owner, name) = (Owner::of(delivery, context), &delivery.reference.name);
    let namespace = namespace.and_then(Value::as_str);
    let mut release = Release::new(&owner, name, namespace, chart);
    release.settings.fields = fields;
    (release.settings.variables, release.unknown) = variables.unwrap_or_default();
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

/// The variables that it substitutes, and further sources of variables that are not known.
fn variables(
    post_build: &Value,
    delivery: &Delivery,
    context: &RenderContext<'_>,
) -> (Variables, Vec<String>) {
    let (mut variables, mut unknown) = (BTreeMap::new(), Vec::new());
    for from in items(post_build, &["substituteFrom"]) {
        match context.data(delivery, from) {
            Ok(data) => variables.extend(data),
            Err(what) => unknown.push(what),
        }
    }
    let own = at(post_build, &["substitute"]).and_then(Value::as_object);
    variables.extend(own.into_iter().flatten().map(|(name, value)| {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        (name.clone(), value)
    }));
    (Variables(variables), unknown)
}
