//! Pods that wait for a node or for a claim, not for another pod.

use serde_json::{Value, json};

use crate::harness;
use crate::harness::fake_nodes::ZONAL_DRIVER;
use crate::harness::shorthand::object;
use crate::stage::{self, Stage, beside_web, deployment, merged, on, workload};

/// Makes a claim with this class; returns the shorthand for a workload that uses it.
fn claim(stage: &Stage, name: &str, class: &str) -> Value {
    stage.apply(&stage::claim(name, class));
    json!({"uses": [name]})
}

/// Once uncordoned, the node takes the Job; if its pod is deleted instead, both run elsewhere.
pub(crate) fn a_job_beside_a_pod_on_a_cordoned_node(stage: &Stage) {
    let job = workload("Job", "dump", &beside_web());
    stage.apply(&deployment("web", &json!({})));
    for way in 0..2 {
        stage.until_runs("web");
        let node = stage.node_of("web");
        stage.kubectl(&["cordon", &node]);
        stage.apply(&job);
        let case = stage.until("follower");
        let ways = stage::ways_out(&case);
        assert_eq!(ways.len(), 2, "{case:#}");
        stage.run(&ways[way]);
        stage.until_nothing_waits();
        stage.until_runs("dump");
        assert_eq!(stage.node_of("dump"), stage.node_of("web"));
        assert_eq!(stage.node_of("web") == node, way == 0);
        stage.uncordon();
        stage.delete(&job);
    }
}

pub(crate) fn a_volume_on_a_cordoned_node(stage: &Stage) {
    let node = &stage.nodes[0];
    let affinity = json!({"spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": [{
        "matchExpressions": [
            {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]},
        ],
    }]}}}});
    let volume = format!("pv/{}", stage.volume);
    let affinity = affinity.to_string();
    stage.kubectl(&["patch", &volume, "--type=merge", "-p", &affinity]);
    stage.kubectl(&["cordon", node]);
    stage.apply(&deployment("web", &json!({})));
    let case = stage.until("no-node-for-volume");
    stage::says(&case, &format!("kubernetes.io/hostname is {node}"));
    stage.look(&stage::commands(&case, "check")[0]);
    stage.leads_out(&case);
    stage.until_runs("web");
}

/// The answer is the same for the name of the claim, the pod or the workload.
pub(crate) fn a_claim_that_nobody_provisions(stage: &Stage) {
    let uses = claim(stage, "media", "no-such-class");
    stage.apply(&deployment("web", &uses));
    let case = stage.until("unbound-claim");
    stage::says(&case, "no-such-class");
    let pod = format!("pod/{}", case["waiting"][0]["pod"].as_str().unwrap());
    let whole = format!("{}/media", stage.namespace);
    for name in ["pvc/media", &pod, "deploy/web", &whole] {
        harness::until("the same answer", stage::PATIENCE, || {
            let (status, output) = stage.diagnose(&[name]);
            let same = status == 1 && output.contains("(unbound-claim)");
            harness::seen(same, (name, output))
        });
    }
    stage.look(&stage::commands(&case, "check")[0]);
    // Follows the advice: without a volume, the claim holds no data.
    stage.kubectl(&["delete", "pvc/media", "--wait=false"]);
    stage.kubectl(&["delete", "pod", "-l", "app=web", "--wait=false"]);
    stage.kubectl(&["wait", "--for=delete", "--timeout=120s", "pvc/media"]);
    stage.volume("media", "by-hand", &json!({}));
    claim(stage, "media", "by-hand");
    stage.until_nothing_waits();
    stage.until_runs("web");
}

/// The volume is retained, and still bound to a deleted claim with the same name.
pub(crate) fn a_volume_of_an_earlier_claim(stage: &Stage) {
    a_claim_again(stage, &json!({}));
}

/// The same for a claim that was restored from a backup, with the annotation for bound claims.
pub(crate) fn a_claim_that_was_bound_before(stage: &Stage) {
    let bound = json!({"pv.kubernetes.io/bind-completed": "yes"});
    a_claim_again(stage, &json!({"metadata": {"annotations": bound}}));
}

fn a_claim_again(stage: &Stage, with: &Value) {
    stage.kubectl(&["delete", "pvc/data", "--timeout=120s"]);
    stage.until_phase(&format!("pv/{}", stage.volume), "Released");
    let named = json!({"spec": {"volumeName": stage.volume}});
    stage.apply(&merged(
        merged(stage::claim("data", "by-hand"), &named),
        with,
    ));
    stage.apply(&deployment("web", &json!({})));
    let case = stage.until("unbound-claim");
    stage::says(&case, "an earlier claim of the same name");
    stage.leads_out(&case);
    stage.until_runs("web");
}

/// The scheduler does not know this, because the driver does not ask it to check.
pub(crate) fn a_node_without_the_driver(stage: &Stage) {
    let [first, second] = [&stage.nodes[0], &stage.nodes[1]];
    stage.world.nodes.lose_plugin(first);
    stage.kubectl(&["cordon", second]);
    stage.apply(&stage::recreated("web"));
    let case = stage.until("driver-error");
    stage::says(&case, &format!("Node {first} does not have"));
    stage.look(&stage::commands(&case, "check")[0]);
    stage.kubectl(&["uncordon", second]);
    for command in stage::commands(&case, "before") {
        stage.run(&command);
    }
    stage.leads_out(&case);
    stage.until_runs("web");
    assert_eq!(stage.node_of("web"), *second);
}

pub(crate) fn one_disk_behind_two_volumes(stage: &Stage) {
    stage.starts(&deployment("web", &json!({})));
    let node = stage.node_of("web");
    let class = format!("{}-twin", stage.namespace);
    let same = json!({"spec": {"csi": {"volumeHandle": stage.volume}}});
    stage.volume("twin", &class, &same);
    let uses = claim(stage, "twin", &class);
    let elsewhere = on(&stage.other_node(&node));
    stage.apply(&deployment("copy", &merged(uses, &elsewhere)));
    let case = stage.until("same-disk");
    stage::says(
        &case,
        &format!("{} of claim {}/data", stage.volume, stage.namespace),
    );
    stage.looks(&case);
    for command in stage::commands(&case, "before") {
        stage.run(&command);
        let volume = format!("pv/{}", stage.volume);
        let policy = stage.field(&volume, ".spec.persistentVolumeReclaimPolicy");
        assert_eq!(policy, "Retain");
        stage.end("the volumes stay when their claims go");
    }
    // Stops one of the two workloads.
    stage.kubectl(&["scale", "deployment/copy", "--replicas=0"]);
    stage.until_nothing_waits();
}

/// No scheduler handles the pod, so nothing binds its claim. The new pod uses the scheduler.
pub(crate) fn a_pod_that_names_its_node(stage: &Stage) {
    let late = format!("{}-late", stage.namespace);
    let binds = json!({"provisioner": ZONAL_DRIVER, "volumeBindingMode": "WaitForFirstConsumer"});
    stage.apply(&object(
        json!({"kind": "StorageClass", "name": late, "with": binds}),
    ));
    let uses = claim(stage, "late", &late);
    let named = json!({"pod": {"nodeName": stage.nodes[0]}});
    stage.apply(&deployment("web", &merged(uses, &named)));
    let case = stage.until("node-name-unbound");
    stage.looks(&case);
    stage.leads_out(&case);
    stage.until_runs("web");
    assert_eq!(stage.node_of("web"), stage.nodes[0]);
}

/// By their CSINodes, the nodes can attach one volume, and have it already.
pub(crate) fn nodes_that_attach_no_more_volumes(stage: &Stage) {
    for node in &stage.nodes {
        let drivers = stage.field(&format!("csinode/{node}"), ".spec.drivers");
        let mut drivers: Value = serde_json::from_str(&drivers).unwrap();
        for driver in drivers.as_array_mut().unwrap() {
            driver["allocatable"] = json!({"count": 1});
        }
        stage.kubectl(&["delete", "csinode", node]);
        let full = json!({"spec": {"drivers": drivers}});
        stage.apply(&object(
            json!({"kind": "CSINode", "name": node, "with": full}),
        ));
    }
    stage.starts(&deployment("web", &json!({})));
    let node = stage.node_of("web");
    let there = on(&node);
    stage.volume("more", "by-hand", &json!({}));
    let uses = claim(stage, "more", "by-hand");
    stage.apply(&deployment("more", &merged(uses, &there)));
    let case = stage.until("attach-limit");
    stage.looks(&case);
    // Follows the advice: stops a workload that has a volume on the full node.
    stage.kubectl(&["scale", "deployment/web", "--replicas=0"]);
    stage.leads_out(&case);
}
