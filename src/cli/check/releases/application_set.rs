//! Argo CD's `ApplicationSet`
//! (<https://argo-cd.readthedocs.io/en/stable/operator-manual/applicationset/>).

use manifest::delivery::{Delivery, value_of};
use serde_json::{Value, json};

use super::values::merge;
use super::world::World;
use super::{
    Chart, MAX_GENERATED, Owner, Read, Reason, Release, application, at, generators, items,
    template, text,
};

pub(super) fn read(delivery: &Delivery, world: &World<'_>) -> Read {
    let document = &delivery.document;
    let syntax = match at(document, &["spec", "goTemplate"]) {
        Some(Value::Bool(true)) => template::Syntax::Go,
        _ => template::Syntax::Names,
    };
    let mut parameters = Vec::new();
    for generator in items(document, &["spec", "generators"]) {
        parameters.extend(generators::parameters(generator, syntax, world)?);
    }
    if parameters.len() > MAX_GENERATED {
        let reason = format!("it generates more than {MAX_GENERATED} Applications");
        return Err(reason.into());
    }
    let owner = Owner {
        is_template: true,
        ..Owner::of(delivery)
    };
    let mut releases = Vec::new();
    let mut refused = None;
    for application in applications(document, &parameters, syntax, world)? {
        match application::of_document(&application, &owner, world) {
            Ok(more) => releases.extend(more),
            Err(reason) => refused = refused.or(Some(reason)),
        }
    }
    // The first of them stands for all, and the others are rendered all the same.
    releases.extend(refused.map(|it| Release::new(&owner, "", None, Chart::Refused(it))));
    Ok(releases)
}

/// Those parts of a template that say what is delivered.
fn read_parts(template: &Value) -> Value {
    let part = |path: &[&str]| at(template, path).cloned().unwrap_or_default();
    json!({
        "metadata": {"name": part(&["metadata", "name"])},
        "spec": {
            "source": part(&["spec", "source"]),
            "sources": part(&["spec", "sources"]),
            "destination": part(&["spec", "destination"]),
        },
    })
}

/// An Application for each of the parameters.
fn applications(
    document: &Value,
    parameters: &[Value],
    syntax: template::Syntax,
    world: &World<'_>,
) -> Result<Vec<Value>, Reason> {
    let template = at(document, &["spec", "template"]).unwrap_or(&Value::Null);
    let patch = text(document, &["spec", "templatePatch"]).unwrap_or_default();
    let both = json!([read_parts(template), patch]);
    let templates: Vec<(&Value, &Value)> = parameters.iter().map(|it| (&both, it)).collect();
    let mut applications = template::render(&templates, syntax, world)?;
    for both in &mut applications {
        let (mut application, patch) = (both[0].take(), both[1].as_str().unwrap_or_default());
        if !patch.trim().is_empty() {
            let patch = value_of(patch).ok_or("its templatePatch is not YAML")?;
            merge(&mut application, &patch);
        }
        *both = application;
    }
    Ok(applications)
}
