//! Steps that do not end: pods that do not terminate, volumes that nobody attaches or unmounts.

use serde_json::{Value, json};

use crate::harness::NodeSpec;
use crate::harness::fake_nodes::HANGS;
use crate::incident::{self, Incident, beside_web, deployment, merged, on, workload};
use crate::rollouts::set_image;

/// A strategy that replaces each pod by the next one and never has two.
pub(crate) fn one_by_one() -> Value {
    json!({"strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}})
}

pub(crate) fn a_pod_that_does_not_end(incident: &Incident) {
    incident.starts(&workload("StatefulSet", "web", &json!({})));
    incident.kubectl(&["annotate", "pod/web-0", &format!("{HANGS}=yes")]);
    incident.kubectl(&["delete", "pod/web-0", "--wait=false"]);
    let case = incident.until("stalled");
    let shown = incident.look(&incident::commands(&case, "check")[0]);
    assert!(shown.contains("Terminating"), "{shown}");
    std::thread::scope(|scope| {
        scope.spawn(|| incident.run(&incident::ways_out(&case)[0]));
        incident.kubectl(&["annotate", "pod/web-0", &format!("{HANGS}-")]);
    });
    incident.until_nothing_waits();
    incident.until_runs("web");
}

pub(crate) fn a_volume_that_stays_mounted(incident: &Incident) {
    incident.starts(&deployment("web", &one_by_one()));
    incident.cluster.nodes.keep_mounted(&incident.volume);
    incident.kubectl(&["cordon", &incident.node_of("web")]);
    set_image(incident, 2);
    let case = incident.until_late("stalled");
    let shown = incident.look(&incident::commands(&case, "check")[0]);
    assert!(shown.contains(&incident.volume), "{shown}");
    // Without a pod nobody waits, and an audit still names the volume.
    incident.kubectl(&["scale", "deployment/web", "--replicas=0"]);
    incident.kubectl(&["wait", "--for=delete", "--timeout=120s", "pod", "-l", "app=web"]);
    let audit = format!("multi-attach-guard audit -n {} -o json", incident.namespace);
    let report: Value = serde_json::from_str(&incident.printed(&audit)).unwrap();
    let said = report["notices"].to_string();
    assert!(said.contains("and no pod needs what is attached to it"), "{report:#}");
    let of_node = said.split('`').find(|part| part.contains(" node/")).unwrap();
    let left = incident.look(of_node);
    assert!(left.contains("Volumes are left on"), "{left}");
    incident.kubectl(&["scale", "deployment/web", "--replicas=1"]);
    let again = incident.until("delay");
    incident.cluster.nodes.let_go(&incident.volume);
    incident.leads_out(&again);
    incident.uncordon();
}

pub(crate) fn a_node_to_which_nobody_attaches(incident: &Incident) {
    let node = format!("{}-c", incident.namespace);
    incident.cluster.nodes.add(&[NodeSpec { is_unmanaged: true, ..incident.node(&node) }]);
    incident.apply(&deployment("web", &merged(one_by_one(), &on(&node))));
    let case = incident.until_late("stalled");
    let shown = incident.look(&incident::commands(&case, "check")[0]);
    assert!(!shown.contains("true"), "{shown}");
    let managed = "volumes.kubernetes.io/controller-managed-attach-detach=true";
    incident.kubectl(&["annotate", "node", &node, managed]);
    incident.leads_out(&case);
}

/// A pod that requests this number of processors, in shorthand.
fn requests(cpus: &str) -> Value {
    json!({"container": {"resources": {"requests": {"cpu": cpus}}}})
}

/// A Job that must run beside a pod on a full node.
pub(crate) fn a_job_beside_a_pod_on_a_full_node(incident: &Incident) {
    incident.starts(&deployment("web", &json!({})));
    let node = incident.node_of("web");
    let all_of_it = merged(merged(on(&node), &requests("8")), &json!({"uses": []}));
    let hog = deployment("hog", &all_of_it);
    incident.starts(&hog);
    let job = merged(beside_web(), &requests("1"));
    incident.apply(&workload("Job", "dump", &job));
    let case = incident.until("follower");
    let shown = incident.look(&incident::commands(&case, "check")[0]);
    assert!(shown.contains("Allocated resources"), "{shown}");
    incident.delete(&hog);
    incident.leads_out(&case);
    incident.until_runs("dump");
}
