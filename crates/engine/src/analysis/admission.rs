//! The constraints that admission adds to a pod template: the node selector of its namespace in
//! OpenShift, and the scheduling constraints of its RuntimeClass.

use super::Facts;
use crate::model::Text;
use crate::model::labels::Labels;
use crate::model::metadata::NODE_SELECTOR;
use crate::model::node::{Node, Toleration};
use crate::model::pod::HOSTNAME;
use crate::model::quantity::Quantity;
use crate::model::runtime_class::RuntimeScheduling;
use crate::model::workload::Workload;
use crate::snapshot::View;

/// The label that OpenShift's own operator gives every node.
const OPENSHIFT: &str = "node.openshift.io/os_id";

/// The constraints that admission adds to a pod template.
#[derive(Default)]
pub(super) struct Additions<'a> {
    /// Labels that nodes must have because of the namespace.
    namespace: Labels,
    runtime: Option<&'a RuntimeScheduling>,
    /// Tolerations for the extended resources that the pods request.
    resources: Box<[Toleration]>,
}

impl<'a> Additions<'a> {
    pub(super) fn of(workload: &Workload, facts: Facts<'a>) -> Self {
        let view = facts.view;
        let selector = view
            .namespace(&workload.metadata.namespace)
            .found()
            .and_then(|namespace| namespace.metadata.annotations.get(NODE_SELECTOR))
            // Only OpenShift applies it to pods. (The annotation of the plugin `PodNodeSelector` is
            // not read, because nothing shows whether the plugin is on.)
            .filter(|_| is_openshift(view));
        let name = &workload.template.runtime_class;
        let runtime = (!name.is_empty()).then(|| view.runtime_class(name).found());
        Self {
            namespace: selector.into_iter().flat_map(pairs).collect(),
            runtime: runtime.flatten().map(|class| &class.scheduling),
            resources: Box::default(),
        }
    }

    /// Adds tolerations of the taints that are named like one of the resources.
    pub(super) fn tolerate(&mut self, resources: &[(Text, Quantity)]) {
        self.resources = resources
            .iter()
            .map(|(resource, _)| Toleration {
                key: resource.clone(),
                operator: "Exists".into(),
                effect: "NoSchedule".into(),
                ..Toleration::default()
            })
            .collect();
    }

    /// Whether the added labels choose `node`.
    pub(super) fn select(&self, node: &Node) -> bool {
        let labels = &node.metadata.labels;
        self.namespace.is_subset(labels)
            && self.runtime.is_none_or(|runtime| runtime.node_selector.is_subset(labels))
    }

    pub(super) fn tolerations(&self) -> impl Iterator<Item = &Toleration> + Clone {
        self.runtime.into_iter().flat_map(|runtime| &runtime.tolerations).chain(&self.resources)
    }

    /// The host to which the added labels lead.
    pub(super) fn host(&self) -> Option<&str> {
        let runtime = || self.runtime?.node_selector.get(HOSTNAME);
        self.namespace.get(HOSTNAME).or_else(runtime)
    }
}

fn is_openshift(view: View<'_>) -> bool {
    view.nodes(None).next().is_some_and(|node| {
        view.depends_on_node(node);
        node.metadata.labels.get(OPENSHIFT).is_some()
    })
}

/// The pairs of `key=value,…`.
fn pairs(selector: &str) -> impl Iterator<Item = (&str, &str)> {
    selector
        .split(',')
        .filter_map(|pair| pair.split_once('='))
        .map(|(key, value)| (key.trim(), value.trim()))
}
