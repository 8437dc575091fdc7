//! Objects that are judged together and are facts for each other.

use std::collections::HashMap;

use crate::model::Text;
use crate::model::autoscaler::Autoscaler;
use crate::model::cluster::{ClusterView, Turn};
use crate::model::layered::Layered;
use crate::model::metadata::Metadata;
use crate::model::object::Object;
use crate::model::workload::{Workload, WorkloadKind};

/// The order in which the objects of a batch are judged. What is found between
/// two of them is reported once, on the later one.
#[derive(Clone, Debug, Default)]
pub struct BatchOrder {
    places: HashMap<Member, usize>,
}

/// `None` as the kind stands for an autoscaler.
type Member = (Option<WorkloadKind>, Text, Text, Text);

fn member(kind: Option<WorkloadKind>, metadata: &Metadata) -> Member {
    (
        kind,
        metadata.namespace.clone(),
        metadata.name.clone(),
        metadata.generate_name.clone(),
    )
}

impl BatchOrder {
    /// The order of `objects`, each with the number by which its turn comes.
    /// Of two with the same kind and name the last counts, as in the index.
    pub fn of<'a>(objects: impl IntoIterator<Item = (usize, &'a Object)>) -> Self {
        let places = objects
            .into_iter()
            .filter_map(|(place, object)| match object {
                Object::Workload(workload) => {
                    Some((member(Some(workload.kind), &workload.metadata), place))
                }
                Object::Autoscaler(autoscaler) => Some((member(None, &autoscaler.metadata), place)),
                _ => None,
            })
            .collect();
        Self { places }
    }
}

/// A view for judging the object whose turn is `current` in a batch.
#[derive(Clone, Copy)]
pub struct BatchView<'a> {
    facts: &'a dyn ClusterView,
    order: &'a BatchOrder,
    current: usize,
}

impl<'a> BatchView<'a> {
    /// `facts` with the batch's own objects among them, seen from `current`.
    #[must_use]
    pub const fn new(facts: &'a dyn ClusterView, order: &'a BatchOrder, current: usize) -> Self {
        Self {
            facts,
            order,
            current,
        }
    }

    fn turn(&self, kind: Option<WorkloadKind>, metadata: &Metadata) -> Turn {
        match self.order.places.get(&member(kind, metadata)) {
            Some(place) if *place < self.current => Turn::Earlier,
            Some(place) if *place > self.current => Turn::Later,
            Some(_) | None => Turn::Never,
        }
    }
}

impl Layered for BatchView<'_> {
    fn beneath(&self) -> &dyn ClusterView {
        self.facts
    }

    fn turn_of_workload(&self, workload: &Workload) -> Turn {
        self.turn(Some(workload.kind), &workload.metadata)
    }

    fn turn_of_autoscaler(&self, autoscaler: &Autoscaler) -> Turn {
        self.turn(None, &autoscaler.metadata)
    }
}

#[cfg(test)]
mod tests {
    use serde::de::DeserializeSeed;
    use serde_json::json;

    use super::*;
    use crate::model::object::ObjectKind;
    use crate::view::index::Index;

    fn workload(kind: WorkloadKind, name: &str) -> Object {
        ObjectKind::Workload(kind)
            .deserialize(json!({"metadata": {"namespace": "shop", "name": name}}))
            .unwrap()
    }

    #[test]
    fn turns_are_counted_from_the_present_object() {
        let batch = [
            workload(WorkloadKind::Deployment, "a"),
            workload(WorkloadKind::Deployment, "b"),
            workload(WorkloadKind::StatefulSet, "b"),
        ];
        let order = BatchOrder::of(batch.iter().enumerate());
        let index = Index::complete();
        let view = BatchView::new(&index, &order, 1);
        let cases = [
            (WorkloadKind::Deployment, "a", Turn::Earlier),
            (WorkloadKind::Deployment, "b", Turn::Never),
            (WorkloadKind::StatefulSet, "b", Turn::Later),
            (WorkloadKind::StatefulSet, "a", Turn::Never),
        ];
        for (kind, name, expected) in cases {
            let Object::Workload(other) = workload(kind, name) else {
                unreachable!("a workload was made");
            };
            assert_eq!(view.workload_turn(&other), expected, "{kind} {name}");
        }
    }
}
