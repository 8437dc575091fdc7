//! What nodes hold from which nothing is heard, read where there are such nodes.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kube::Client;
use tokio::time::Instant;

use super::one_shot::{ListRequest, OneShot, Reader};
use engine::model::Text;
use engine::observed::{NodeState, Observed};
use engine::snapshot::View;

/// Every node of `view`; `None` while the controller manager hears of all of them, or it is
/// not known which there are.
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
    nodes.iter().any(is_silent).then_some(nodes)
}

/// Reads what is attached to those of `nodes` that are silent and, where something is,
/// their Leases, the pods on them and those that wait anywhere, by the API server's clock.
/// What is refused, or not read by `deadline`, is noted as unread.
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
    let (silent, answering): (Vec<_>, Vec<_>) = nodes.into_iter().partition(is_silent);
    let mut holding: BTreeSet<Text> = silent.into_iter().map(|node| node.name).collect();
    let attachments = &one_shot.observed.attachments;
    holding.retain(|name| attachments.iter().any(|it| it.node == *name));
    if holding.is_empty() {
        one_shot.observed.attachments.clear();
        return (one_shot.observed, Timestamp::now());
    }
    let pods = |fields: &str| ListRequest::beside("", "pods", "Pod", None).only(fields);
    let node = |fields: &str| ListRequest::beside("", "nodes", "Node", None).only(fields);
    let mut sources = vec![ListRequest::leases(), pods("status.phase=Pending")];
    for name in &holding {
        // Once more, with all its taints and as it is now.
        sources.push(node(&format!("metadata.name={name}")));
        let there = format!("spec.nodeName={name},status.phase!=Pending");
        sources.push(pods(&there));
    }
    let ((), now) = tokio::join!(reader.read(&sources, &mut one_shot), reader.time());
    one_shot.observed.nodes.extend(answering);
    (one_shot.observed, now.unwrap_or_else(Timestamp::now))
}

/// Whether the controller manager has heard nothing of it for a while.
const fn is_silent(node: &NodeState) -> bool {
    node.ready.is_none()
}
