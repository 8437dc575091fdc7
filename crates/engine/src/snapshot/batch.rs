//! The order of objects that are judged together and are facts for each other.

use std::fmt::Debug;

use hashbrown::HashMap;

use crate::model::Text;
use crate::model::metadata::Metadata;
use crate::model::object::{Object, ObjectKind};

/// The turn of another object of the batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Never: it is only a fact.
    Never,
    /// Before the current one.
    Earlier,
    /// After the current one.
    Later,
}

/// The order in which objects are judged together. A finding about two of them is reported once, on
/// the later one.
pub trait Order: Debug {
    /// The position of the object; `None` if it is only a fact.
    fn position(&self, kind: ObjectKind, metadata: &Metadata) -> Option<usize>;
}

/// The order of the objects of a batch.
#[derive(Clone, Debug, Default)]
pub struct BatchOrder {
    positions: HashMap<Member, usize>,
}

/// The kind, namespace, name and generated name of an object.
type Member = (ObjectKind, [Text; 3]);

fn member(kind: ObjectKind, metadata: &Metadata) -> Member {
    let names = [&metadata.namespace, &metadata.name, &metadata.generate_name];
    (kind, names.map(Text::clone))
}

impl BatchOrder {
    /// The order of `objects`, each with its position. The last of two objects with the same
    /// kind and name counts, as in the cluster.
    pub fn of<'a>(objects: impl IntoIterator<Item = (usize, &'a Object)>) -> Self {
        let positions = objects
            .into_iter()
            .filter(|(_, object)| matches!(object, Object::Workload(_) | Object::Autoscaler(_)))
            .map(|(position, object)| (member(object.kind(), object.metadata()), position))
            .collect();
        Self { positions }
    }
}

impl Order for BatchOrder {
    fn position(&self, kind: ObjectKind, metadata: &Metadata) -> Option<usize> {
        self.positions.get(&member(kind, metadata)).copied()
    }
}

impl Turn {
    /// The turn of the object with this position, relative to the one with the position `current`.
    pub(super) fn of(position: Option<usize>, current: usize) -> Self {
        match position {
            Some(position) if position < current => Self::Earlier,
            Some(position) if position > current => Self::Later,
            Some(_) | None => Self::Never,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde::de::DeserializeSeed;
    use serde_json::json;

    use super::*;
    use crate::model::workload::WorkloadKind;

    fn workload(kind: WorkloadKind, name: &str) -> Object {
        ObjectKind::Workload(kind)
            .deserialize(json!({"metadata": {"namespace": "shop", "name": name}}))
            .unwrap()
    }

    #[test]
    fn turns_are_relative_to_the_current_object() {
        let batch = [
            workload(WorkloadKind::Deployment, "a"),
            workload(WorkloadKind::Deployment, "b"),
            workload(WorkloadKind::StatefulSet, "b"),
        ];
        let order = BatchOrder::of(batch.iter().enumerate());
        let cases = [
            (WorkloadKind::Deployment, "a", Turn::Earlier),
            (WorkloadKind::Deployment, "b", Turn::Never),
            (WorkloadKind::StatefulSet, "b", Turn::Later),
            (WorkloadKind::StatefulSet, "a", Turn::Never),
        ];
        for (kind, name, expected) in cases {
            let other = workload(kind, name);
            let position = order.position(ObjectKind::Workload(kind), other.metadata());
            assert_eq!(Turn::of(position, 1), expected, "{kind} {name}");
        }
    }
}
