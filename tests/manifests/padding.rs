//! Objects padded to what etcd takes: no list makes one pass unjudged.

use serde_json::{Value, json};

use crate::installed::{client_config, register_changed};
use crate::requests::{Snapshot, of_claim, workload};

/// Bytes of padding; etcd takes 1.5 MiB of the object as the API server encodes it.
const PADDING: usize = 1_100_000;

/// A list of a pod that may still run on every node, an entry of it, and how it is put into the pod.
type Case = (&'static str, fn(usize) -> Value, fn(&mut Value, Vec<Value>));

const LISTS: [Case; 10] = [
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
        |at| json!({"name": "data", "mountPath": format!("/m{at}")}),
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
        "host aliases",
        |at| json!({"ip": "10.0.0.1", "hostnames": [format!("k{at}")]}),
        |pod, list| pod["hostAliases"] = list.into(),
    ),
];

#[test]
fn no_list_makes_an_object_pass_unjudged() {
    let Some(cluster) = Snapshot::start() else {
        return;
    };
    let plane = &cluster.plane;
    for name in ["padded-a", "padded-b"] {
        let labels = json!({"kubernetes.io/hostname": name});
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}});
        plane
            .kubectl(&["create", "-f", "-"], Some(&node.to_string()))
            .success();
    }
    // A debug build is slow, and whether it is in time is no question here.
    register_changed(plane, "fencing", |_, webhook| {
        webhook["clientConfig"] = client_config(plane, &cluster.guard, webhook);
        webhook["timeoutSeconds"] = json!(30);
    });
    let mut passed = Vec::new();
    for (name, entry, put) in LISTS {
        let one = entry(0).to_string().len() + 5;
        let object = workload("Deployment", "padded", &of_claim("one"), &json!({}));
        let mut object: Value = serde_json::from_str(&object).unwrap();
        let list = (0..PADDING / one).map(entry).collect();
        put(&mut object["spec"]["template"]["spec"], list);
        let create = ["create", "--dry-run=server", "--validate=ignore", "-f", "-"];
        let output = cluster.run(&create, Some(&object.to_string()));
        if !output
            .stderr
            .contains("multi-attach-guard.dev\" denied the request")
        {
            let said: String = output.stderr.chars().take(500).collect();
            passed.push(format!("{name}: {said}"));
        }
    }
    assert!(passed.is_empty(), "{passed:#?}");
}
