//! The facts that could not be read, and the effect on the audit.

use engine::model::object::ObjectKind;
use engine::model::observed::Observed;
use engine::model::workload::WorkloadKind;

/// Sentences for each resource that could not be read: the open question, and the effect.
pub(super) fn open(observed: &Observed) -> Vec<String> {
    let unread = observed.unread.iter();
    unread
        .map(|unread| {
            let which = format!("which {} there are", unread.resource);
            let (question, cost) = question_and_cost(&unread.resource).unwrap_or((
                which.as_str(),
                // Only the kinds of workloads are left.
                "They are not judged, nor seen as users of a volume.",
            ));
            format!("{} {cost}", unread.leaves_open(question))
        })
        .collect()
}

/// The question that a resource answers, as the end of "It is not known ", and the effect if it
/// cannot be read; `None` for a kind of workload.
fn question_and_cost(resource: &str) -> Option<(&'static str, &'static str)> {
    Some(match resource {
        "persistentvolumes" => (
            "what access modes bound volumes have, and where they are",
            "Bound claims are judged by their status and their class.",
        ),
        "storageclasses" => (
            "what the classes can give",
            "Classes are judged by their names, so that findings are likely or assumed.",
        ),
        "csidrivers" => ("whether drivers attach their volumes", "The catalog is used instead."),
        "csinodes" => ("which nodes have a driver", "Nodes that lack a driver count as eligible."),
        "nodes" => ("which nodes there are", "Several nodes are assumed."),
        "namespaces" => (
            "what Namespaces say in labels and annotations",
            "Their overrides are not seen; where the policy chooses by label, the strictest entry holds.",
        ),
        "runtimeclasses" => (
            "on which nodes RuntimeClasses let pods run",
            "Their node selectors and tolerations are left out.",
        ),
        "volumeattachments" => {
            ("where volumes are attached", "The causes of waiting pods are less certain.")
        }
        "pods" => (
            "which pods wait",
            "Waiting pods are not seen, and neither are pods without a controller.",
        ),
        "events" => (
            "what Kubernetes has said of pods that wait",
            "The causes of waiting pods are less certain.",
        ),
        "leases" => ("when nodes were last heard of", "A lost node may not be seen as one."),
        "persistentvolumeclaims" => (
            "which claims there are",
            "Claims are not judged, and workloads only by the names of their claims.",
        ),
        "horizontalpodautoscalers" => ("what autoscalers ask for", "They are not judged."),
        _ => return None,
    })
}

/// Whether a resource that is judged could not be read, so that the absence of findings proves
/// little. Pods do not count: nearly all of them are judged with the workload that manages them.
/// Kinds that not every cluster serves do not count either.
pub(super) fn is_blind(observed: &Observed) -> bool {
    let workloads = WorkloadKind::ALL.into_iter();
    workloads
        .filter(|kind| kind.is_built_in() && *kind != WorkloadKind::Pod)
        .map(ObjectKind::Workload)
        .chain([ObjectKind::Claim, ObjectKind::Autoscaler])
        .any(|kind| !observed.has_read(kind.plural()))
}
