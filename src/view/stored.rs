//! How each kind of object is found in its table, and what of it is kept.

use crate::model::autoscaler::Autoscaler;
use crate::model::claim::Claim;
use crate::model::labels::Labels;
use crate::model::metadata::Metadata;
use crate::model::node::Node;
use crate::model::object::{Namespace, Object};
use crate::model::pod::PodVolumeSource;
use crate::model::storage_class::{CsiDriver, StorageClass};
use crate::model::volume::Volume;
use crate::model::workload::Workload;

use super::table::{Key, Stored, Trait};

/// Drops what no decision asks of an object other than the one it judges: the
/// labels of claims, workloads and autoscalers themselves. Their pods' labels
/// stay.
pub(super) fn reduce(object: &mut Object) {
    match object {
        Object::Workload(Workload { metadata, .. })
        | Object::Claim(Claim { metadata, .. })
        | Object::Autoscaler(Autoscaler { metadata, .. }) => metadata.labels = Labels::default(),
        Object::Volume(_)
        | Object::StorageClass(_)
        | Object::CsiDriver(_)
        | Object::Node(_)
        | Object::Namespace(_)
        | Object::Scale(_) => {}
    }
}

/// Objects in files may leave their name to the API server: two of them with
/// different prefixes are two objects.
fn key(family: u8, metadata: &Metadata) -> Key<'_> {
    Key {
        family,
        namespace: &metadata.namespace,
        name: if metadata.name.is_empty() {
            &metadata.generate_name
        } else {
            &metadata.name
        },
    }
}

impl Stored for Claim {
    fn key(&self) -> Key<'_> {
        key(0, &self.metadata)
    }

    fn traits(&self, _: &mut dyn FnMut(Trait<'_>)) {}
}

impl Stored for Volume {
    fn key(&self) -> Key<'_> {
        Key::global(&self.name)
    }

    fn traits(&self, add: &mut dyn FnMut(Trait<'_>)) {
        if self.claim.is_none() {
            add(Trait::FreeOfClass(&self.class));
        }
    }
}

impl Stored for StorageClass {
    fn key(&self) -> Key<'_> {
        Key::global(&self.name)
    }

    fn traits(&self, _: &mut dyn FnMut(Trait<'_>)) {}
}

impl Stored for CsiDriver {
    fn key(&self) -> Key<'_> {
        Key::global(&self.name)
    }

    fn traits(&self, _: &mut dyn FnMut(Trait<'_>)) {}
}

impl Stored for Node {
    fn key(&self) -> Key<'_> {
        Key::global(&self.name)
    }

    fn traits(&self, add: &mut dyn FnMut(Trait<'_>)) {
        for (key, value) in self.labels.iter() {
            add(Trait::NodeLabel { key, value });
        }
    }
}

impl Stored for Namespace {
    fn key(&self) -> Key<'_> {
        Key::global(&self.metadata.name)
    }

    fn traits(&self, _: &mut dyn FnMut(Trait<'_>)) {}
}

impl Stored for Autoscaler {
    fn key(&self) -> Key<'_> {
        key(0, &self.metadata)
    }

    fn traits(&self, add: &mut dyn FnMut(Trait<'_>)) {
        add(Trait::Target {
            namespace: &self.metadata.namespace,
            kind: &self.target_kind,
            name: &self.target_name,
        });
    }
}

impl Stored for Workload {
    fn key(&self) -> Key<'_> {
        key(self.kind as u8, &self.metadata)
    }

    fn traits(&self, add: &mut dyn FnMut(Trait<'_>)) {
        let namespace = self.metadata.namespace.as_str();
        add(Trait::Namespace(namespace));
        for (key, value) in self.template.labels.iter() {
            add(Trait::PodLabel { key, value });
        }
        for volume in &self.template.volumes {
            if let PodVolumeSource::Claim { name } = &volume.source {
                add(Trait::Claim {
                    namespace,
                    claim: name,
                });
            }
        }
        for template in &self.claim_templates {
            let stem = format!("{template}-{}", self.metadata.name);
            add(Trait::ClaimStem {
                namespace,
                stem: &stem,
            });
        }
    }
}
