//! Questions that stay open because something could not be read.

use engine::model::observed::Observed;

/// The resources that must be read before the program can say that nothing waits.
const NEEDED: [&str; 4] =
    ["pods", "persistentvolumeclaims", "persistentvolumes", "volumeattachments"];

/// A sentence for each resource that could not be read.
pub(super) fn questions(observed: &Observed) -> Vec<String> {
    observed.unread.iter().map(|unread| unread.leaves_open(question(&unread.resource))).collect()
}

/// The question that a resource would answer, as the end of "It is not known ".
fn question(resource: &str) -> &'static str {
    match resource {
        "pods" => "which pods wait, and which have a volume",
        "persistentvolumeclaims" => "which volume a pod's claim stands for",
        "persistentvolumes" => "how many nodes may have a volume at a time",
        "volumeattachments" => "to which node a volume is attached, and what the driver says",
        "nodes" => "whether the node that has a volume is alive",
        "leases" => "when a node was last heard of",
        "events" => "what Kubernetes has said of the pods that wait",
        "storageclasses" => "which class a volume has",
        "csidrivers" => "whether a driver attaches its volumes",
        "csinodes" => "which nodes have a driver",
        "namespaces" => "which namespaces there are",
        "runtimeclasses" => "on which nodes RuntimeClasses let their pods run",
        "deployments" => "how Deployments replace their pods, and the patch that would help",
        "statefulsets" => "how many pods StatefulSets want",
        "daemonsets" => "on which nodes DaemonSets want pods",
        "replicasets" => "how many pods ReplicaSets want",
        "replicationcontrollers" => "how many pods ReplicationControllers want",
        "jobs" => "how many pods Jobs want",
        "cronjobs" => "how many pods CronJobs want",
        "horizontalpodautoscalers" => "whether an autoscaler asks for more pods",
        _ => "what they say",
    }
}

/// Whether too little could be read to say that nothing waits.
pub(super) fn is_blind(observed: &Observed) -> bool {
    NEEDED.iter().any(|resource| !observed.has_read(resource))
}
