//! Random clusters that are made to be hard to judge: many workloads share claims, and the affinity
//! of each refers to all others by a different selector.

use std::fmt::Write as _;

use engine::model::object::{Object, ObjectKind};
use engine::model::workload::WorkloadKind;
use serde::de::DeserializeSeed;

use super::cluster::{claim_of, node};

/// Pseudorandom numbers (xorshift64).
pub(crate) struct Lot(u64);

impl Lot {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        all[(self.0 >> 33) as usize % all.len()]
    }
}

/// The workloads that a workload's affinity names. The selectors differ from one workload to the
/// next, so that no two can be treated as equal.
#[derive(Clone, Copy, Debug)]
enum Names {
    /// All workloads, including itself.
    Everybody,
    /// All workloads except itself.
    TheOthers,
    /// All workloads, by a list of values that is as long as the knot is large.
    EverybodyByList,
    /// The workloads with an even number.
    Half,
    /// All workloads in any namespace.
    Anywhere,
}

/// A cluster, and the workload to judge in it.
pub(crate) struct Knot {
    /// A description of the random choices.
    pub(crate) drawn: String,
    pub(crate) objects: Vec<Object>,
    pub(crate) judged: Object,
}

/// The number of workloads that share claims in the knot for which the goal is set.
pub(crate) const GOAL: usize = 80;

impl Knot {
    pub(crate) fn draw(lot: &mut Lot, sizes: &[usize]) -> Self {
        use Names::{Anywhere, Everybody, EverybodyByList, Half, TheOthers};
        use WorkloadKind::{CronJob, Deployment, Job, StatefulSet};
        let size = lot.one_of(sizes);
        let claims = lot.one_of(&[1, 1, 1, 8, 64]);
        let nodes = lot.one_of(&[3, 3, 40, 2_000]);
        let kinds: &[WorkloadKind] =
            lot.one_of(&[&[Deployment] as &[_], &[Deployment, Job, CronJob, StatefulSet]]);
        let names: &[Names] = lot.one_of(&[
            &[Everybody] as &[_],
            &[EverybodyByList],
            &[Anywhere],
            &[Everybody, Everybody, Everybody, TheOthers],
            &[Everybody, Half],
            &[TheOthers],
        ]);
        let own = lot.one_of(&[Everybody, TheOthers, TheOthers]);
        let own_kind = lot.one_of(kinds);
        let selector = lot.one_of(&["", r#""nodeSelector":{"no":"such"},"#]);
        let drawn = format!(
            "{size} of {kinds:?}, {names:?}, {claims} claims, {nodes} nodes, {selector} judged: {own_kind:?} {own:?}"
        );
        let mut objects: Vec<Object> = (0..nodes).map(|number| node(number).read()).collect();
        for at in 0..claims {
            objects.push(claim_of("shop", &format!("data-{at}"), at).read());
        }
        for number in 1..size {
            let (kind, names) = (lot.one_of(kinds), lot.one_of(names));
            objects.push(workload(kind, number, size, names, claims, selector));
        }
        Self { judged: workload(own_kind, 0, size, own, claims, selector), objects, drawn }
    }
}

fn workload(
    kind: WorkloadKind,
    number: usize,
    size: usize,
    names: Names,
    claims: usize,
    selector: &str,
) -> Object {
    // A value that matches no pod makes each selector different.
    let expression = match names {
        Names::Everybody | Names::Anywhere => {
            format!(r#"{{"key":"knot","operator":"NotIn","values":["none-{number}"]}}"#)
        }
        Names::TheOthers => {
            format!(r#"{{"key":"number","operator":"NotIn","values":["{number}"]}}"#)
        }
        Names::EverybodyByList => {
            let mut values = format!("\"none-{number}\"");
            for other in 0..size {
                // Writing to a string cannot fail.
                let _ = write!(values, ",\"{other}\"");
            }
            format!(r#"{{"key":"number","operator":"In","values":[{values}]}}"#)
        }
        Names::Half => format!(
            r#"{{"key":"half","operator":"NotIn","values":["none-{number}","{}"]}}"#,
            number % 2
        ),
    };
    let namespaces = match names {
        Names::Anywhere => r#","namespaceSelector":{}"#,
        _ => "",
    };
    let volumes: Vec<String> = (0..claims)
        .map(|at| {
            format!(r#"{{"name":"v{at}","persistentVolumeClaim":{{"claimName":"data-{at}"}}}}"#)
        })
        .collect();
    let template = format!(
        r#"{{"metadata":{{"labels":{{"knot":"one","number":"{number}","half":"{}"}}}},"spec":{{{selector}
        "affinity":{{"podAffinity":{{"requiredDuringSchedulingIgnoredDuringExecution":[
          {{"topologyKey":"kubernetes.io/hostname","labelSelector":{{"matchExpressions":[{expression}]}}{namespaces}}}]}}}},
        "volumes":[{}]}}}}"#,
        number % 2,
        volumes.join(",")
    );
    let spec = match kind {
        WorkloadKind::CronJob => {
            format!(
                r#"{{"schedule":"0 3 * * *","jobTemplate":{{"spec":{{"template":{template}}}}}}}"#
            )
        }
        WorkloadKind::Job => format!(r#"{{"template":{template}}}"#),
        _ => format!(
            r#"{{"replicas":2,"selector":{{"matchLabels":{{"number":"{number}"}}}},"template":{template}}}"#
        ),
    };
    let json = format!(
        r#"{{"apiVersion":"{}/v1","kind":"{}","metadata":{{"name":"w-{number}","namespace":"shop"}},"spec":{spec}}}"#,
        ObjectKind::Workload(kind).group(),
        kind.name()
    );
    ObjectKind::Workload(kind).deserialize(&mut serde_json::Deserializer::from_str(&json)).unwrap()
}
