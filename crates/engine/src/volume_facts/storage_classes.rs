//! Which access modes the StorageClasses of the cluster do not give.

use std::collections::{BTreeMap, HashSet};

use super::{VolumeFacts, probe};
use crate::analysis::{Certainty, Facts};
use crate::model::Text;
use crate::model::object::{Object, ObjectRef};
use crate::rules::{ClaimReview, Outcome, judge_claim};
use crate::snapshot::{Lookup, StoredObject, View};
use crate::verdict::{EffectivePolicy, denial_of};

/// Why a claim is denied, by its StorageClass and `accessMode/volumeMode`.
pub type StorageClasses = BTreeMap<Text, BTreeMap<String, String>>;

/// At most so many classes are looked at, the first by name.
const MOST_CLASSES: usize = 32;

const ACCESS_MODES: [&str; 3] = ["ReadWriteMany", "ReadOnlyMany", "ReadWriteOncePod"];
const VOLUME_MODES: [&str; 2] = ["Filesystem", "Block"];

/// What the classes of the cluster do not give. Classes whose volumes are unconstrained are left
/// out, as a claim may be bound to it.
fn of(view: View<'_>, effective: &EffectivePolicy) -> StorageClasses {
    let facts = Facts {
        view,
        catalog: effective.catalog(),
        nodes: effective.policy().nodes(),
    };
    let mut all = StorageClasses::new();
    for class in provisioned(view) {
        let mut refused = BTreeMap::new();
        for modes in ACCESS_MODES
            .iter()
            .flat_map(|access| VOLUME_MODES.map(|volume| [*access, volume]))
        {
            if let Some(reason) = reason(&class, modes, facts) {
                refused.insert(modes.join("/"), reason);
            }
        }
        if !refused.is_empty() {
            all.insert(class, refused);
        }
    }
    all
}

/// The classes whose claims are bound to no volume that is there already, by name.
fn provisioned(view: View<'_>) -> Vec<Text> {
    let is_unbound = |object: &StoredObject| match object {
        StoredObject::Volume(volume) => {
            let bound = volume.claimed_by().is_some_and(|claim| {
                matches!(
                    view.claim(&claim.namespace, &claim.name),
                    Lookup::Found(found) if found.spec.volume_name == volume.metadata.name
                )
            });
            (!bound && !volume.is_spent()).then(|| Text::from(volume.class()))
        }
        _ => None,
    };
    let unbound: HashSet<Text> = view.cluster().objects().filter_map(is_unbound).collect();
    let classes = view.storage_classes().into_iter();
    classes
        .map(|class| class.metadata.name.clone())
        .filter(|name| !unbound.contains(name))
        .take(MOST_CLASSES)
        .collect()
}

/// Why a claim with these modes is denied: the denial after the object.
fn reason(class: &str, modes: [&str; 2], facts: Facts<'_>) -> Option<String> {
    let Some(Object::Claim(claim)) = probe::claim("", "claim", class, modes) else {
        return None;
    };
    let hazards = judge_claim(&ClaimReview {
        claim: &claim,
        old: None,
        facts,
    });
    let hazard = hazards.into_iter().next()?;
    let is_certain = hazard.outcome == Outcome::Stuck && hazard.certainty == Certainty::Verified;
    let object = ObjectRef {
        api_version: "v1".into(),
        kind: "PersistentVolumeClaim".into(),
        namespace: None,
        name: claim.metadata.name.clone(),
    };
    is_certain.then(|| after_object(&denial_of(&object, &hazard)))
}

/// A denial without the object that it begins with.
fn after_object(denial: &str) -> String {
    let rest = denial.split_once(": ").map_or(denial, |(_, rest)| rest);
    rest.to_owned()
}

impl VolumeFacts {
    /// What the classes of the cluster do not give, for [`VolumeFacts::of`].
    #[must_use]
    pub fn storage_classes(view: View<'_>, effective: &EffectivePolicy) -> StorageClasses {
        of(view, effective)
    }
}
