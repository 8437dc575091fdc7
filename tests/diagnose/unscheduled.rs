//! Pods that wait for a node or for a claim, not for another pod.

use serde_json::{Value, json};

use crate::harness;
use crate::harness::fake_nodes::ZONAL_DRIVER;
use crate::harness::shorthand::object;
use crate::incident::{self, Incident, beside_web, deployment, merged, on, workload};
use crate::rollouts::set_image;

/// Makes a claim with this class; returns the shorthand for a workload that uses it.
fn claim(incident: &Incident, name: &str, class: &str) -> Value {
    incident.apply(&incident::claim(name, class));
    json!({"uses": [name]})
}

/// Once uncordoned, the node takes the Job; if its pod is deleted instead, both run elsewhere.
pub(crate) fn a_job_beside_a_pod_on_a_cordoned_node(incident: &Incident) {
    let job = workload("Job", "dump", &beside_web());
    incident.apply(&deployment("web", &json!({})));
    for way in 0..2 {
        incident.until_runs("web");
        let node = incident.node_of("web");
        incident.kubectl(&["cordon", &node]);
        incident.apply(&job);
        let case = incident.until("follower");
        let ways = incident::ways_out(&case);
        assert_eq!(ways.len(), 2, "{case:#}");
        incident.run(&ways[way]);
        incident.until_nothing_waits();
        incident.until_runs("dump");
        assert_eq!(incident.node_of("dump"), incident.node_of("web"));
        assert_eq!(incident.node_of("web") == node, way == 0);
        incident.uncordon();
        incident.delete(&job);
    }
}

/// Limits the volume of claim `data` to a node.
fn pin(incident: &Incident, node: &str) {
    let affinity = json!({"spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": [{
        "matchExpressions": [
            {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]},
        ],
    }]}}}})
    .to_string();
    let volume = format!("pv/{}", incident.volume);
    incident.kubectl(&["patch", &volume, "--type=merge", "-p", &affinity]);
}

/// Only the first of three revisions is right; `rollout undo` alone goes to the second.
pub(crate) fn two_revisions_that_send_the_pod_elsewhere(incident: &Incident) {
    let [there, elsewhere] = [&incident.nodes[0], &incident.nodes[1]];
    pin(incident, there);
    let recreated = |node: &str| merged(on(node), &json!({"strategy": "Recreate"}));
    incident.starts(&deployment("web", &recreated(there)));
    incident.apply(&deployment("web", &recreated(elsewhere)));
    incident.until("no-node-for-volume");
    set_image(incident, 3);
    let revision = r".metadata.annotations.deployment\.kubernetes\.io/revision";
    incident.kubectl(&["wait", &format!("--for=jsonpath={{{revision}}}=3"), "deployment/web"]);
    let case = incident.until("no-node-for-volume");
    assert!(incident::ways_out(&case)[0].ends_with("--to-revision=1"), "{case:#}");
    incident.leads_out(&case);
    incident.until_runs("web");
    assert_eq!(incident.node_of("web"), *there);
}

pub(crate) fn a_volume_on_a_cordoned_node(incident: &Incident) {
    let node = &incident.nodes[0];
    pin(incident, node);
    incident.kubectl(&["cordon", node]);
    incident.apply(&deployment("web", &json!({})));
    let case = incident.until("no-node-for-volume");
    incident::says(&case, &format!("kubernetes.io/hostname is {node}"));
    incident.look(&incident::commands(&case, "check")[0]);
    incident.leads_out(&case);
    incident.until_runs("web");
}

/// The answer is the same for the name of the claim, the pod or the workload.
pub(crate) fn a_claim_that_nobody_provisions(incident: &Incident) {
    let uses = claim(incident, "media", "no-such-class");
    incident.apply(&deployment("web", &uses));
    let case = incident.until("unbound-claim");
    incident::says(&case, "no-such-class");
    let pod = format!("pod/{}", case["waiting"][0]["pod"].as_str().unwrap());
    let whole = format!("{}/media", incident.namespace);
    for name in ["pvc/media", &pod, "deploy/web", &whole] {
        harness::until("the same answer", incident::PATIENCE, || {
            let (status, output) = incident.diagnose(&[name]);
            let same = status == 1 && output.contains("(unbound-claim)");
            harness::seen(same, (name, output))
        });
    }
    incident.look(&incident::commands(&case, "check")[0]);
    // Follows the advice: without a volume, the claim holds no data.
    incident.kubectl(&["delete", "pvc/media", "--wait=false"]);
    incident.kubectl(&["delete", "pod", "-l", "app=web", "--wait=false"]);
    incident.kubectl(&["wait", "--for=delete", "--timeout=120s", "pvc/media"]);
    incident.volume("media", "by-hand", &json!({}));
    claim(incident, "media", "by-hand");
    incident.until_nothing_waits();
    incident.until_runs("web");
}

/// The volume is retained, and still bound to a deleted claim with the same name.
pub(crate) fn a_volume_of_an_earlier_claim(incident: &Incident) {
    a_claim_again(incident, &json!({}));
}

/// The same for a claim that was restored from a backup, with the annotation for bound claims.
pub(crate) fn a_claim_that_was_bound_before(incident: &Incident) {
    let bound = json!({"pv.kubernetes.io/bind-completed": "yes"});
    a_claim_again(incident, &json!({"metadata": {"annotations": bound}}));
}

fn a_claim_again(incident: &Incident, with: &Value) {
    incident.kubectl(&["delete", "pvc/data", "--timeout=120s"]);
    incident.until_phase(&format!("pv/{}", incident.volume), "Released");
    let named = json!({"spec": {"volumeName": incident.volume}});
    incident.apply(&merged(merged(incident::claim("data", "by-hand"), &named), with));
    incident.apply(&deployment("web", &json!({})));
    let case = incident.until("unbound-claim");
    incident::says(&case, "an earlier claim of the same name");
    incident.leads_out(&case);
    incident.until_runs("web");
}

/// The scheduler does not know this, because the driver does not ask it to check.
pub(crate) fn a_node_without_the_driver(incident: &Incident) {
    let [first, second] = [&incident.nodes[0], &incident.nodes[1]];
    incident.cluster.nodes.lose_plugin(first);
    incident.kubectl(&["cordon", second]);
    incident.apply(&incident::recreated("web"));
    let case = incident.until("driver-error");
    incident::says(&case, &format!("Node {first} does not have"));
    incident.look(&incident::commands(&case, "check")[0]);
    incident.kubectl(&["uncordon", second]);
    for command in incident::commands(&case, "before") {
        incident.run(&command);
    }
    incident.leads_out(&case);
    incident.until_runs("web");
    assert_eq!(incident.node_of("web"), *second);
}

pub(crate) fn one_disk_behind_two_volumes(incident: &Incident) {
    incident.starts(&deployment("web", &json!({})));
    let node = incident.node_of("web");
    let class = format!("{}-twin", incident.namespace);
    let same = json!({"spec": {"csi": {"volumeHandle": incident.volume}}});
    incident.volume("twin", &class, &same);
    let uses = claim(incident, "twin", &class);
    let elsewhere = on(&incident.other_node(&node));
    incident.apply(&deployment("copy", &merged(uses, &elsewhere)));
    let case = incident.until("same-disk");
    incident::says(&case, &format!("{} of claim {}/data", incident.volume, incident.namespace));
    incident.looks(&case);
    for command in incident::commands(&case, "before") {
        incident.run(&command);
        let volume = format!("pv/{}", incident.volume);
        let policy = incident.field(&volume, ".spec.persistentVolumeReclaimPolicy");
        assert_eq!(policy, "Retain");
        incident.end("the volumes stay when their claims go");
    }
    // Stops one of the two workloads.
    incident.kubectl(&["scale", "deployment/copy", "--replicas=0"]);
    incident.until_nothing_waits();
}

/// No scheduler handles the pod, so nothing binds its claim. The new pod uses the scheduler.
pub(crate) fn a_pod_that_names_its_node(incident: &Incident) {
    let late = format!("{}-late", incident.namespace);
    let binds = json!({"provisioner": ZONAL_DRIVER, "volumeBindingMode": "WaitForFirstConsumer"});
    incident.apply(&object(json!({"kind": "StorageClass", "name": late, "with": binds})));
    let uses = claim(incident, "late", &late);
    let named = json!({"pod": {"nodeName": incident.nodes[0]}});
    incident.apply(&deployment("web", &merged(uses, &named)));
    let case = incident.until("node-name-unbound");
    incident.looks(&case);
    incident.leads_out(&case);
    incident.until_runs("web");
    assert_eq!(incident.node_of("web"), incident.nodes[0]);
}

/// By the driver's report, the nodes have room for a smaller volume.
pub(crate) fn nodes_without_room_for_a_volume(incident: &Incident) {
    let class = format!("{}-local", incident.namespace);
    let reports = r#"{"spec":{"storageCapacity":true}}"#;
    incident.kubectl(&["patch", "csidriver", ZONAL_DRIVER, "--type=merge", "-p", reports]);
    let late = json!({"provisioner": ZONAL_DRIVER, "volumeBindingMode": "WaitForFirstConsumer"});
    incident.apply(&object(json!({"kind": "StorageClass", "name": class, "with": late})));
    incident.apply(&json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "CSIStorageCapacity",
        "metadata": {"name": "room", "namespace": "{namespace}"},
        "storageClassName": class, "nodeTopology": {}, "capacity": "2Gi",
    }));
    let sized = |size: &str| {
        let requests = json!({"spec": {"resources": {"requests": {"storage": size}}}});
        incident.apply(&merged(incident::claim("local", &class), &requests));
    };
    sized("5Gi");
    incident.apply(&deployment("web", &json!({"uses": ["local"]})));
    let case = incident.until("unbound-claim");
    incident::says(&case, "did not have enough free storage");
    let shown = incident.look(&incident::in_texts(&case, "csistoragecapacities"));
    assert!(shown.contains("2Gi"), "{shown}");
    // Follows the advice: without a volume, the claim holds no data.
    incident.kubectl(&["delete", "pvc/local", "--timeout=120s"]);
    sized("1Gi");
    incident.until_nothing_waits();
    incident.until_runs("web");
}

/// By their CSINodes, the nodes can attach one volume, and have it already.
pub(crate) fn nodes_that_attach_no_more_volumes(incident: &Incident) {
    for node in &incident.nodes {
        let mut drivers: Value =
            serde_json::from_str(&incident.field(&format!("csinode/{node}"), ".spec.drivers"))
                .unwrap();
        for driver in drivers.as_array_mut().unwrap() {
            driver["allocatable"] = json!({"count": 1});
        }
        incident.kubectl(&["delete", "csinode", node]);
        let full = json!({"spec": {"drivers": drivers}});
        incident.apply(&object(json!({"kind": "CSINode", "name": node, "with": full})));
    }
    incident.starts(&deployment("web", &json!({})));
    let node = incident.node_of("web");
    let there = on(&node);
    incident.volume("more", "by-hand", &json!({}));
    let uses = claim(incident, "more", "by-hand");
    incident.apply(&deployment("more", &merged(uses, &there)));
    let case = incident.until("attach-limit");
    incident.looks(&case);
    // Follows the advice: stops a workload that has a volume on the full node.
    incident.kubectl(&["scale", "deployment/web", "--replicas=0"]);
    incident.leads_out(&case);
}
