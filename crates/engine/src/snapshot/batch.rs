//! The order of objects that are judged together and are facts for each other.

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

/// The order in which the objects of a batch are judged. A finding about two of them is reported
/// once, on the later one.
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

    /// The turn of that object, relative to the one with the position `current`.
    pub(super) fn turn(&self, kind: ObjectKind, metadata: &Metadata, current: usize) -> Turn {
        match self.positions.get(&member(kind, metadata)) {
            Some(position) if *position < current => Turn::Earlier,
            Some(position) if *position > current => Turn::Later,
            Some(_) | None => Turn::Never,
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
            let turn = order.turn(ObjectKind::Workload(kind), other.metadata(), 1);
            assert_eq!(turn, expected, "{kind} {name}");
        }
    }
}
