//! The `HelmChart` of k3s and RKE2 (<https://docs.k3s.io/add-ons/helm>).

use manifest::delivery::Delivery;
use serde_json::Value;

use super::helm_release::{oci, repository};
use super::values::{At, Layer};
use super::world::World;
use super::{Owner, Read, Reason, Release, at, cut, text};

pub(super) fn read(delivery: &Delivery, world: &World<'_>) -> Read {
    let document = &delivery.document;
    if at(document, &["spec", "chartContent"]).is_some() {
        return Err("it holds its chart packed, in spec.chartContent".into());
    }
    let chart = text(document, &["spec", "chart"]).ok_or("it names no chart")?;
    let version = text(document, &["spec", "version"]);
    let chart = match text(document, &["spec", "repo"]) {
        Some(repo) => repository(repo, chart, version),
        None if chart.starts_with("oci://") => oci(chart, version),
        None => return Err(Reason::elsewhere(format!("its chart is at {chart}"))),
    };
    let own = delivery.reference.namespace.as_deref();
    let namespace = text(document, &["spec", "targetNamespace"]).or(own);
    let name = &delivery.reference.name;
    let mut release = Release::new(&Owner::of(delivery), &cut(name), namespace, chart);
    let near = delivery.place.source;
    let config = world.find("HelmChartConfig", name, own, near);
    let config = config.map(|it| &it.document);
    let own = At::Text("spec.valuesContent".to_owned());
    for (document, at) in [(Some(document), own), (config, At::Elsewhere)] {
        let content = document.and_then(|it| text(it, &["spec", "valuesContent"]));
        if let Some(text) = content {
            let layer = Layer::of_text("spec.valuesContent", text, at)?;
            release.values.push(layer);
        }
    }
    let set = at(document, &["spec", "set"]).and_then(Value::as_object);
    for (name, value) in set.into_iter().flatten() {
        release.sets.push(match value {
            Value::String(value) => {
                format!("--set-string={name}={}", value.replace(',', r"\,"))
            }
            value => format!("--set={name}={value}"),
        });
    }
    if at(document, &["spec", "valuesSecrets"]).is_some() {
        release
            .unknown
            .push("What is in spec.valuesSecrets".to_owned());
    }
    Ok(vec![release])
}
