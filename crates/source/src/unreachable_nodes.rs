//! Reads what is attached to unreachable nodes, if there are any.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kube::Client;
use tokio::time::Instant;

use super::one_shot::{ListRequest, OneShot, Reader};
use engine::model::Text;
use engine::observed::{NodeState, Observed};
use engine::snapshot::View;

/// Every node of `view`; `None` if the nodes are not known, or all of them are reachable for
/// the controller manager.
#[must_use]
pub fn nodes(view: View<'_>) -> Option<Vec<NodeState>> {
    let mut nodes = Vec::new();
    view.visit_nodes(None, &mut |node| {
        nodes.push(NodeState {
            name: node.metadata.name.clone(),
            ready: node.status.ready,
            ..NodeState::default()
        });
        true
    });
    nodes.iter().any(is_unreachable).then_some(nodes)
}

/// Reads what is attached to the unreachable ones of `nodes` and, if something is, their Leases,
/// the pods on them and all pending pods, with the time of the API server's clock. Resources
/// that are refused, or not read by `deadline`, are recorded as unread.
pub async fn read(
    client: &Client,
    nodes: Vec<NodeState>,
    deadline: Instant,
) -> (Observed, Timestamp) {
    let reader = Reader { client, deadline };
    let mut one_shot = OneShot::default();
    reader
        .read(&[ListRequest::attachments()], &mut one_shot)
        .await;
    let (unreachable, reachable): (Vec<_>, Vec<_>) = nodes.into_iter().partition(is_unreachable);
    let mut attached: BTreeSet<Text> = unreachable.into_iter().map(|node| node.name).collect();
    let attachments = &one_shot.observed.attachments;
    attached.retain(|name| attachments.iter().any(|it| it.node == *name));
    if attached.is_empty() {
        one_shot.observed.attachments.clear();
        return (one_shot.observed, Timestamp::now());
    }
    let pods = |fields: &str| ListRequest::new("", "pods", "Pod", None).with_fields(fields);
    let node = |fields: &str| ListRequest::new("", "nodes", "Node", None).with_fields(fields);
    let mut requests = vec![ListRequest::leases(), pods("status.phase=Pending")];
    for name in &attached {
        // Again, because the snapshot lacks some of its taints and may be outdated.
        requests.push(node(&format!("metadata.name={name}")));
        let on_node = format!("spec.nodeName={name},status.phase!=Pending");
        requests.push(pods(&on_node));
    }
    let ((), now) = tokio::join!(reader.read(&requests, &mut one_shot), reader.time());
    one_shot.observed.nodes.extend(reachable);
    (one_shot.observed, now.unwrap_or_else(Timestamp::now))
}

/// Whether its condition Ready is unknown, as when its kubelet has not reported for a while.
const fn is_unreachable(node: &NodeState) -> bool {
    node.ready.is_none()
}
