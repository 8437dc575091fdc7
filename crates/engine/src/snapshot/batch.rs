//! The order of objects that are judged together and are facts for each other.

use hashbrown::{Equivalent, HashMap};

use crate::model::Text;
use crate::model::metadata::Metadata;
use crate::model::object::{Object, ObjectKind};

/// When another object of the batch is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
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

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Member {
    kind: ObjectKind,
    namespace: Text,
    name: Text,
    generate_name: Text,
}

/// A [`Member`] that is borrowed; it has the same hash.
#[derive(Hash)]
struct MemberRef<'a> {
    kind: ObjectKind,
    namespace: &'a str,
    name: &'a str,
    generate_name: &'a str,
}

impl<'a> MemberRef<'a> {
    fn of(kind: ObjectKind, metadata: &'a Metadata) -> Self {
        Self {
            kind,
            namespace: &metadata.namespace,
            name: &metadata.name,
            generate_name: &metadata.generate_name,
        }
    }
}

impl Equivalent<Member> for MemberRef<'_> {
    fn equivalent(&self, member: &Member) -> bool {
        self.kind == member.kind
            && self.namespace == member.namespace
            && self.name == member.name
            && self.generate_name == member.generate_name
    }
}

impl BatchOrder {
    /// The order of `objects`, each with its position. The last of two objects with the same
    /// kind and name counts, as in the cluster.
    pub fn of<'a>(objects: impl IntoIterator<Item = (usize, &'a Object)>) -> Self {
        let member = |kind, metadata: &Metadata| Member {
            kind,
            namespace: metadata.namespace.clone(),
            name: metadata.name.clone(),
            generate_name: metadata.generate_name.clone(),
        };
        let positions = objects
            .into_iter()
            .filter_map(|(position, object)| match object {
                Object::Workload(workload) => {
                    let kind = ObjectKind::Workload(workload.kind);
                    Some((member(kind, &workload.metadata), position))
                }
                Object::Autoscaler(autoscaler) => {
                    let member = member(autoscaler.kind.object_kind(), &autoscaler.metadata);
                    Some((member, position))
                }
                _ => None,
            })
            .collect();
        Self { positions }
    }

    /// When that object is judged, relative to the one with the position `current`.
    pub(super) fn turn(&self, kind: ObjectKind, metadata: &Metadata, current: usize) -> Turn {
        match self.positions.get(&MemberRef::of(kind, metadata)) {
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
            let turn = order.turn(ObjectKind::Workload(kind), other.metadata().unwrap(), 1);
            assert_eq!(turn, expected, "{kind} {name}");
        }
    }
}
