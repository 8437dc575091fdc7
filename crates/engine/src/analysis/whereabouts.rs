//! The nodes to which a volume is attached.

use super::{Facts, UsedVolume};
use crate::model::Text;
use crate::model::node::CSI;
use crate::model::volume::Volume;

/// The nodes to which a bound volume is known to be attached; there may be none.
pub(crate) fn attached_to(volume: &UsedVolume, namespace: &str, facts: Facts<'_>) -> Vec<Text> {
    let view = facts.view;
    let Some(bound) = volume.claim.as_deref().and_then(|claim| view.bound_volume(namespace, claim))
    else {
        return Vec::new();
    };
    let mut nodes = view.nodes_attached(&bound.metadata.name);
    if nodes.is_empty()
        && let Some(name) = unique_name(bound)
    {
        let having = view
            .nodes(None)
            .take_while(|node| view.spend(1 + node.status.volumes_attached.len() / 16))
            .filter(|node| {
                node.status.volumes_attached.iter().any(|attached| attached.name == name)
            });
        for node in having {
            view.depends_on_node(node);
            nodes.push(node.metadata.name.clone());
        }
    }
    nodes
}

/// The attach-detach controller's name for a volume of a CSI driver (`GetUniqueVolumeNameFromSpec`
/// in `pkg/volume/util/util.go`).
fn unique_name(volume: &Volume) -> Option<Text> {
    let driver = volume.csi_driver()?;
    let handle = &volume.spec.handle;
    (!handle.is_empty()).then(|| format!("{CSI}{driver}^{handle}").into())
}
