//! Deployments with a list that is padded to the size limit of etcd.

use serde::Deserialize;
use serde_json::{Value, json};

use super::shorthand::{merge, object};

/// Bytes of padding; etcd accepts 1.5 MiB of the object as the API server encodes it.
pub(crate) const PADDING: usize = 1_100_000;

/// A list in a pod specification: see `padding.yaml`.
#[derive(Deserialize)]
pub(crate) struct List {
    pub(crate) name: String,
    entry: Value,
    pod: Value,
}

pub(crate) fn lists() -> Vec<List> {
    serde_saphyr::from_str(include_str!("padding.yaml")).unwrap()
}

/// A Deployment that uses claim `one` and has a list of about `bytes` bytes; `spec` is merged into
/// its own.
pub(crate) fn padded(name: &str, list: &List, bytes: usize, spec: &Value) -> Value {
    let mut object = object(json!({
        "kind": "Deployment", "name": name, "replicas": 1, "uses": ["one"],
        "pod": {"terminationGracePeriodSeconds": 0}, "with": {"spec": spec},
    }));
    let entry = list.entry.to_string();
    let entries: Vec<String> = (0..bytes / (entry.len() + 5))
        .map(|number| entry.replace('#', &number.to_string()))
        .collect();
    let filled = list.pod.to_string().replace("\"LIST\"", &entries.join(","));
    let pod = serde_json::from_str(&filled).unwrap();
    merge(&mut object["spec"]["template"]["spec"], &pod);
    object
}
