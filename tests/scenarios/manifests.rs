//! The objects that a scenario's steps apply. `{run}` is replaced by the scenario's namespace,
//! whose name also distinguishes the cluster-wide objects and nodes of different runs.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::harness::shorthand::Shorthand;

pub(crate) const HOSTNAME: &str = "kubernetes.io/hostname";
pub(crate) const ZONE: &str = "topology.kubernetes.io/zone";

/// An object: a whole manifest if it has an `apiVersion`, otherwise shorthand. By default, its pods
/// use the claim `data`, and they stay on the scenario's nodes.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "Value")]
pub(crate) struct Manifest(pub(crate) Value);

impl TryFrom<Value> for Manifest {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        if value.get("apiVersion").is_some() {
            return Ok(Self(value));
        }
        let mut shorthand: Shorthand =
            serde_json::from_value(value).map_err(|error| error.to_string())?;
        let claim = || vec!["data".to_owned()];
        shorthand.uses.get_or_insert_with(claim);
        Ok(Self(for_scenario(shorthand.manifest())))
    }
}

/// Adds the fields that every object of a scenario has.
fn for_scenario(mut object: Value) -> Value {
    let kind = object["kind"].as_str().unwrap_or_default().to_owned();
    match kind.as_str() {
        "PersistentVolumeClaim" => object["spec"]["storageClassName"] = json!("{run}"),
        // The default of ten minutes would make the test too long.
        "Deployment" => object["spec"]["progressDeadlineSeconds"] = json!(8),
        // kubectl 1.30 requires the field.
        "StatefulSet" => object["spec"]["serviceName"] = object["metadata"]["name"].clone(),
        _ => {}
    }
    let template = match kind.as_str() {
        "PersistentVolumeClaim" => None,
        "Pod" => Some(&mut object),
        "CronJob" => object.pointer_mut("/spec/jobTemplate/spec/template"),
        _ => object.pointer_mut("/spec/template"),
    };
    if let Some(template) = template {
        template["metadata"]["labels"]["part-of"] = json!("{run}");
        let spec = &mut template["spec"];
        // Otherwise a kubelet would wait for the ConfigMap with the API server's authority, whose
        // controller is off.
        spec["automountServiceAccountToken"] = json!(false);
        let grace = &mut spec["terminationGracePeriodSeconds"];
        if grace.is_null() {
            *grace = json!(3);
        }
        // Keeps the pods to the scenario's own nodes; all others are tainted.
        let own = json!({ "key": "scenario", "operator": "Equal", "value": "{run}", "effect": "NoSchedule" });
        match spec["tolerations"].as_array_mut() {
            Some(tolerations) => tolerations.push(own),
            None => spec["tolerations"] = json!([own]),
        }
        let cpus = &mut spec["containers"][0]["resources"]["requests"]["cpu"];
        if cpus.is_null() {
            // A request that makes the scheduler prefer an emptier node.
            *cpus = json!("1");
        }
    }
    object
}

/// A requirement that a node's label has this value.
pub(crate) fn in_values(label: &str, value: &str) -> Value {
    json!({ "key": label, "operator": "In", "values": [value] })
}
