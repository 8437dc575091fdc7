//! Deployments with a list that is padded to what etcd takes.

use serde_json::{Value, json};

use super::shorthand::object;

/// Bytes of padding; etcd takes 1.5 MiB of the object as the API server encodes it.
pub(crate) const PADDING: usize = 1_100_000;

/// A list of a pod that may still run on every node, an entry of it, and how it is put into the pod.
pub(crate) type List = (&'static str, fn(usize) -> Value, fn(&mut Value, Vec<Value>));

pub(crate) const LISTS: [List; 16] = [
    (
        "volumes",
        |at| json!({"name": format!("e{at}"), "emptyDir": {}}),
        |pod, mut list| {
            // What decides comes last.
            list.extend(pod["volumes"].as_array().into_iter().flatten().cloned());
            pod["volumes"] = list.into();
        },
    ),
    (
        "containers",
        |at| json!({"name": format!("c{at}"), "image": "i"}),
        |pod, list| pod["containers"].as_array_mut().unwrap().extend(list),
    ),
    (
        "environment",
        |at| json!({"name": format!("E{at}"), "value": ""}),
        |pod, list| pod["containers"][0]["env"] = list.into(),
    ),
    (
        "mounts",
        |at| json!({"name": "one", "mountPath": format!("/m{at}")}),
        |pod, list| pod["containers"][0]["volumeMounts"] = list.into(),
    ),
    (
        "tolerations",
        |at| json!({"key": format!("k{at}"), "operator": "Exists"}),
        |pod, list| pod["tolerations"] = list.into(),
    ),
    (
        "preferences",
        |at| {
            let expression = json!({"key": format!("k{at}"), "operator": "Exists"});
            json!({"weight": 1, "preference": {"matchExpressions": [expression]}})
        },
        |pod, list| {
            pod["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"] =
                list.into();
        },
    ),
    (
        "values",
        |at| json!(format!("v{at}")),
        |pod, list| {
            let expression = json!({"key": "k", "operator": "NotIn", "values": list});
            pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] =
                json!({"nodeSelectorTerms": [{"matchExpressions": [expression]}]});
        },
    ),
    (
        "spread constraints",
        |at| json!({"maxSkew": 1, "topologyKey": format!("k{at}"), "whenUnsatisfiable": "ScheduleAnyway"}),
        |pod, list| pod["topologySpreadConstraints"] = list.into(),
    ),
    (
        "readiness gates",
        |at| json!({"conditionType": format!("k{at}")}),
        |pod, list| pod["readinessGates"] = list.into(),
    ),
    (
        "init containers",
        |at| json!({"name": format!("i{at}"), "image": "i"}),
        |pod, list| pod["initContainers"] = list.into(),
    ),
    (
        "projected sources",
        |at| json!({"configMap": {"name": format!("k{at}")}}),
        |pod, list| {
            let volume = json!({"name": "p", "projected": {"sources": list}});
            pod["volumes"].as_array_mut().unwrap().insert(0, volume);
        },
    ),
    (
        "ephemeral volumes",
        |at| {
            let spec = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1"}}});
            json!({"name": format!("e{at}"), "ephemeral": {"volumeClaimTemplate": {"spec": spec}}})
        },
        |pod, list| pod["volumes"].as_array_mut().unwrap().extend(list),
    ),
    (
        "node selector terms",
        |at| json!({"matchExpressions": [{"key": format!("k{at}"), "operator": "DoesNotExist"}]}),
        |pod, list| {
            pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] =
                json!({"nodeSelectorTerms": list});
        },
    ),
    (
        "terms of pod anti-affinity",
        |at| json!({"topologyKey": format!("k{at}"), "labelSelector": {"matchLabels": {"a": "b"}}}),
        |pod, list| {
            pod["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] =
                list.into();
        },
    ),
    (
        "pull secrets",
        |at| json!({"name": format!("s{at}")}),
        |pod, list| pod["imagePullSecrets"] = list.into(),
    ),
    (
        "host aliases",
        |at| json!({"ip": "10.0.0.1", "hostnames": [format!("k{at}")]}),
        |pod, list| pod["hostAliases"] = list.into(),
    ),
];

/// A Deployment with a list of so many bytes, which uses claim `one`; `spec` is merged into its own.
pub(crate) fn padded(name: &str, (_, entry, put): List, bytes: usize, spec: &Value) -> Value {
    let one = entry(0).to_string().len() + 5;
    let mut object = object(json!({
        "kind": "Deployment", "name": name, "replicas": 1, "uses": ["one"],
        "pod": {"terminationGracePeriodSeconds": 0}, "with": {"spec": spec},
    }));
    let list = (0..bytes / one).map(entry).collect();
    put(&mut object["spec"]["template"]["spec"], list);
    object
}
