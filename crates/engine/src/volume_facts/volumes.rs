//! The constraints that keep pods on one node.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash};

use serde::Serialize;
use serde_json::{Value, json};

use super::{ANY, Members, ONE_NODE, ONE_POD, VolumeFacts, probe};
use crate::analysis::{Analysis, AttachConstraint, Certainty, Facts, UsedVolume};
use crate::model::in_tree::InTreeType;
use crate::rules::described;

/// The constraint of a volume on its pods, with the words for it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Constraint {
    /// A mark of the nodes that reach it: volumes with different marks are not judged together.
    pub reach: String,
    /// The description of the volume: `is ReadWriteOnce (ebs.csi.aws.com)`.
    pub is: String,
    /// The number of nodes on which pods with it can be: `3 nodes are eligible`.
    pub nodes: String,
}

impl VolumeFacts {
    pub(super) fn add_volumes(&mut self, namespace: &str, members: &Members, facts: Facts<'_>) {
        for name in &members.claims {
            let source = json!({ "persistentVolumeClaim": { "claimName": name } });
            if let Some(constraint) = self.constraint(namespace, &source, facts) {
                self.claims.insert(name.clone(), constraint);
            }
        }
        for in_tree in InTreeType::all() {
            let source = json!({ in_tree.field: {} });
            if let Some(constraint) =
                self.constraint(namespace, &source, facts).filter(|constraint| constraint != ANY)
            {
                self.inline.insert(in_tree.field, constraint);
            }
        }
    }

    /// The name of the constraint on pods with that volume; `None` if it is not certain, or if the
    /// volume holds them on one node.
    fn constraint(&mut self, namespace: &str, source: &Value, facts: Facts<'_>) -> Option<String> {
        let probe = probe::deployment(namespace, source)?;
        let analysis = Analysis::of(&probe, None, facts);
        let [volume] = &*analysis.volumes else {
            return None;
        };
        let kind = match &volume.attach_constraint {
            AttachConstraint::Exclusive { grounds, .. } => {
                let is_certain = grounds.certainty() == Certainty::Verified
                    && !analysis.pins_rollouts()
                    && !volume.one_pod_a_node;
                is_certain.then_some(ONE_NODE)?
            }
            AttachConstraint::SinglePod => ONE_POD,
            AttachConstraint::Free => {
                let keeps_no_pod = volume.reach.is_none()
                    && !volume.keeps_its_node()
                    && !volume.stays_in_its_zone
                    && !volume.one_pod_a_node;
                return keeps_no_pod.then(|| ANY.to_owned());
            }
            AttachConstraint::Driver(_) | AttachConstraint::Unknown(_) => return None,
        };
        let constraint = Constraint {
            reach: reach(volume),
            is: described(volume),
            nodes: analysis.placement.eligible.to_string(),
        };
        let name = format!("{kind}-{:08x}", mark(&constraint));
        self.constraints.entry(name.clone()).or_insert(constraint);
        Some(name)
    }
}

/// A mark of the nodes that reach the volume.
fn reach(volume: &UsedVolume) -> String {
    match &volume.reach {
        Some(reach) => format!("{:08x}", mark(&format!("{reach:?}"))),
        // The scheduler chooses one zone for all such volumes of a pod.
        None if volume.stays_in_its_zone => "zone".to_owned(),
        None => String::new(),
    }
}

fn mark(value: &impl Hash) -> u32 {
    let hasher = BuildHasherDefault::<DefaultHasher>::default();
    let [_, _, _, _, rest @ ..] = hasher.hash_one(value).to_be_bytes();
    u32::from_be_bytes(rest)
}
