//! Nodes from which nothing is heard while they hold volumes, and what to report to those who
//! wait. Whether the machine is off nobody here knows, so that nothing is done about it.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::DiagnosisInput;
use super::cause::node_lost::{power, price, silent, taint};
use super::health::{Examined, Health};
use super::index::Index;
use super::waiting_pod::WaitingPod;
use engine::model::Text;
use engine::model::uid::Uid;
use engine::model::volume::Volume;
use engine::observed::Pod;

/// A node from which nothing is heard, with volumes that no other node can have meanwhile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FenceAdvice {
    /// The node.
    pub node: Text,
    /// When its Lease was last renewed; `None` where there is none.
    pub last_renewed: Option<Timestamp>,
    /// The persistent volumes that are attached to it, by name. Never empty.
    pub volumes: Vec<Text>,
    /// Who waits for them, each pod once.
    pub waiting: Vec<BlockedPod>,
}

/// A pod that waits, and what to report of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockedPod {
    /// Its namespace.
    pub namespace: Text,
    /// Its name.
    pub name: Text,
    /// Which pod of that name it is.
    pub uid: Uid,
    /// What is held, since when, and the command for when the machine is off: sentences.
    pub note: String,
}

/// What there is to say of every node from which nothing is heard, by name. Of one that is
/// said to be off already, and of one whose Node object is gone, there is nothing: no
/// command would help.
///
/// Told are the pods elsewhere that wait for a volume of the node. Where there are none, as
/// their workload makes the next pod only when the one before is gone, it is the pods on
/// the node that are terminating and cannot. Before that nobody waits: a node that only
/// restarts is back by then.
#[must_use]
pub fn fence_advice(facts: DiagnosisInput<'_>) -> Vec<FenceAdvice> {
    let index = Index::of(facts);
    let mut nodes = silent_nodes(&index);
    if nodes.is_empty() {
        return Vec::new();
    }
    let stuck = WaitingPod::all(&index);
    let waits_elsewhere = stuck.iter().filter_map(|stuck| {
        let volume = stuck.volume.clone()?;
        (stuck.is_certain && !stuck.pod.is_ending()).then_some((stuck.pod, volume))
    });
    let waits_elsewhere: Vec<(&Pod, Text)> = waits_elsewhere.collect();
    let ending = facts.observed.pods.iter().filter(|pod| pod.is_ending());
    let cannot_end: Vec<(&Pod, Text)> = ending
        .filter(|pod| pod.is_living())
        .flat_map(|pod| volumes_of(facts, pod).map(move |volume| (pod, volume)))
        .collect();
    for silent in nodes.values_mut() {
        for volume in silent.advice.volumes.clone() {
            let is_it = |(_, other): &&(&Pod, Text)| *other == volume;
            let mut waiting: Vec<&Pod> = waits_elsewhere
                .iter()
                .filter(is_it)
                .map(|(pod, _)| *pod)
                .collect();
            if waiting.is_empty() {
                let here = cannot_end.iter().filter(is_it).map(|(pod, _)| *pod);
                let node = Some(&silent.advice.node);
                waiting.extend(here.filter(|pod| pod.node.as_ref() == node));
            }
            for pod in waiting {
                silent.report(facts.kubectl, pod, &volume);
            }
        }
    }
    nodes.into_values().map(|silent| silent.advice).collect()
}

/// A node on the way to its advice.
struct Silent {
    examined: Examined,
    advice: FenceAdvice,
}

impl Silent {
    fn report(&mut self, kubectl: &str, pod: &Pod, volume: &str) {
        let waiting = &mut self.advice.waiting;
        if waiting
            .iter()
            .any(|it| (&it.namespace, &it.name) == (&pod.meta.namespace, &pod.meta.name))
        {
            return;
        }
        let name = &self.examined.name;
        let since = self.advice.last_renewed.map(|at| format!("at {at:.0}"));
        waiting.push(BlockedPod {
            namespace: pod.meta.namespace.clone(),
            name: pod.meta.name.clone(),
            uid: pod.meta.uid,
            note: format!(
                "{} volume \"{volume}\". {} {} Then: `{}`. {}",
                match pod.is_ending() {
                    true => "It cannot end, and the next pod waits for",
                    false => "It waits for",
                },
                silent(&self.examined, since),
                power(&self.examined),
                taint(kubectl, name),
                price(name),
            ),
        });
    }
}

/// The nodes that hold volumes and do not answer.
fn silent_nodes(index: &Index<'_>) -> BTreeMap<Text, Silent> {
    let mut nodes: BTreeMap<Text, Silent> = BTreeMap::new();
    for attachment in &index.facts.observed.attachments {
        let (name, volume) = (&attachment.node, &attachment.volume);
        let found = index.facts.objects.view.volume(volume).found();
        let is_shared = found.is_some_and(Volume::is_for_many_nodes);
        if !attachment.attached || volume.is_empty() || is_shared {
            continue;
        }
        if let Some(silent) = nodes.get_mut(name) {
            silent.advice.volumes.push(volume.clone());
            continue;
        }
        let examined = Examined::of(index, name);
        if examined.health == Health::Lost && !examined.out_of_service {
            let lease = index.leases.get(name.as_str());
            let advice = FenceAdvice {
                node: name.clone(),
                last_renewed: lease.and_then(|lease| lease.spec.renew_time),
                volumes: vec![volume.clone()],
                waiting: Vec::new(),
            };
            nodes.insert(name.clone(), Silent { examined, advice });
        }
    }
    for silent in nodes.values_mut() {
        silent.advice.volumes.sort_unstable();
    }
    nodes
}

/// The persistent volumes of a pod's claims.
fn volumes_of<'a>(facts: DiagnosisInput<'a>, pod: &'a Pod) -> impl Iterator<Item = Text> + 'a {
    let claims = pod.claims.iter();
    claims.filter_map(move |claim| {
        let found = facts.objects.view.claim(&pod.meta.namespace, claim);
        Some(found.found()?.spec.volume_name.clone())
    })
}

#[cfg(test)]
mod tests {
    use serde::de::DeserializeSeed;
    use serde_json::{Value, from_value, json};

    use super::*;
    use engine::analysis::{self, NodeAssumption};
    use engine::model::object::ObjectKind;
    use engine::observed::Observed;
    use engine::snapshot::Snapshot;
    use engine::storage::Catalog;

    const NOW: &str = "2026-03-01T12:00:00Z";
    const LONG_AGO: &str = "2026-03-01T11:50:00Z";

    /// A cluster with nodes n1 and n2, and a volume that is attached to n1.
    struct World {
        ready: &'static str,
        renewed: &'static str,
        taints: Value,
        mode: &'static str,
        attached: bool,
        pods: Vec<Value>,
    }

    impl World {
        /// Node n1 has been silent for ten minutes.
        fn new() -> Self {
            Self {
                ready: "Unknown",
                renewed: LONG_AGO,
                taints: json!([]),
                mode: "ReadWriteOnce",
                attached: true,
                pods: Vec::new(),
            }
        }

        fn advice(self) -> Vec<FenceAdvice> {
            let mut cluster = Snapshot::complete();
            let mut apply = |kind: ObjectKind, object: Value| {
                cluster.apply(kind.deserialize(object).unwrap());
            };
            apply(
                ObjectKind::Claim,
                json!({"metadata": {"name": "data", "namespace": "shop"},
                    "spec": {"accessModes": [self.mode], "volumeName": "pv-data"}}),
            );
            apply(
                ObjectKind::Volume,
                json!({"metadata": {"name": "pv-data"},
                    "spec": {"accessModes": [self.mode], "csi": {"driver": "ebs.csi.aws.com"}}}),
            );
            let node = |name: &str, ready: &str, taints: &Value| {
                let conditions = json!([{"type": "Ready", "status": ready}]);
                from_value(
                    json!({"metadata": {"name": name}, "spec": {"taints": taints},
                    "status": {"conditions": conditions}}),
                )
                .unwrap()
            };
            let lease = |name: &str, renewed: &str| {
                from_value(json!({"metadata": {"name": name}, "spec": {"renewTime": renewed}}))
                    .unwrap()
            };
            let attachment = json!({"metadata": {"name": "csi-1"},
                "spec": {"nodeName": "n1", "source": {"persistentVolumeName": "pv-data"}},
                "status": {"attached": self.attached}});
            let pods = self.pods.into_iter();
            let observed = Observed {
                pods: pods.map(|pod| from_value(pod).unwrap()).collect(),
                nodes: vec![
                    node("n1", self.ready, &self.taints),
                    node("n2", "True", &json!([])),
                ],
                leases: vec![
                    lease("n1", self.renewed),
                    lease("n2", "2026-03-01T11:59:57Z"),
                ],
                attachments: vec![from_value(attachment).unwrap()],
                ..Observed::default()
            };
            fence_advice(DiagnosisInput {
                objects: analysis::Facts {
                    view: cluster.view(),
                    catalog: Catalog::embedded().unwrap(),
                    nodes: NodeAssumption::Auto,
                },
                observed: &observed,
                now: NOW.parse().unwrap(),
                kubectl: "kubectl",
            })
        }

        fn with(mut self, pod: Value) -> Self {
            self.pods.push(pod);
            self
        }
    }

    fn pod(name: &str, node: &str, phase: &str, ends: bool) -> Value {
        let uid = format!("0b6d9a4e-3a5c-4b8e-9a43-0000000000{:02x}", name.len());
        json!({
            "metadata": {"name": name, "namespace": "shop", "uid": uid,
                "deletionTimestamp": ends.then_some("2026-03-01T11:56:00Z")},
            "spec": {"nodeName": node, "volumes": [
                {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]},
            "status": {"phase": phase},
        })
    }

    /// The pods that are reported, of the one node that has any.
    fn reported(advice: &[FenceAdvice]) -> Vec<&str> {
        let [advice] = advice else {
            panic!("{advice:?}");
        };
        let waiting = advice.waiting.iter();
        waiting.map(|pod| pod.name.as_str()).collect()
    }

    #[test]
    fn a_node_that_may_be_on_or_holds_nothing_is_not_spoken_of() {
        let off = "node.kubernetes.io/out-of-service";
        let cases = [
            ("silent", World::new(), true),
            (
                "says that it is not ready, then nothing",
                World {
                    ready: "False",
                    ..World::new()
                },
                true,
            ),
            (
                "Ready",
                World {
                    ready: "True",
                    ..World::new()
                },
                false,
            ),
            (
                "renews its Lease",
                World {
                    renewed: "2026-03-01T11:59:40Z",
                    ..World::new()
                },
                false,
            ),
            (
                "a moment ago",
                World {
                    renewed: "2026-03-01T11:59:20Z",
                    ..World::new()
                },
                false,
            ),
            (
                "a moment more",
                World {
                    renewed: "2026-03-01T11:59:19Z",
                    ..World::new()
                },
                true,
            ),
            (
                "holds nothing yet",
                World {
                    attached: false,
                    ..World::new()
                },
                false,
            ),
            (
                "others may have it",
                World {
                    mode: "ReadWriteMany",
                    ..World::new()
                },
                false,
            ),
            (
                "said to be off",
                World {
                    taints: json!([{"key": off, "effect": "NoExecute"}]),
                    ..World::new()
                },
                false,
            ),
        ];
        for (name, world, expected) in cases {
            let advice = world.advice();
            assert_eq!(!advice.is_empty(), expected, "{name}: {advice:?}");
        }
    }

    #[test]
    fn the_advice_names_who_waits_or_who_cannot_end() {
        let old = |ends| pod("web-old", "n1", "Running", ends);
        let new = || pod("web-new-1", "n2", "Pending", false);
        // No pod is terminating: the node may be back before anybody waits.
        assert_eq!(reported(&World::new().with(old(false)).advice()), [""; 0]);
        assert_eq!(
            reported(&World::new().with(old(true)).advice()),
            ["web-old"]
        );
        let both = World::new().with(old(true)).with(new()).advice();
        assert_eq!(reported(&both), ["web-new-1"]);
        // It ends on a node that answers.
        let elsewhere = pod("web-old", "n2", "Running", true);
        assert_eq!(reported(&World::new().with(elsewhere).advice()), [""; 0]);
    }

    #[test]
    fn the_note_says_what_is_held_since_when_and_what_helps() {
        let advice = World::new()
            .with(pod("web-new", "n2", "Pending", false))
            .advice();
        assert_eq!(advice[0].node, "n1");
        assert_eq!(advice[0].volumes, ["pv-data"]);
        assert_eq!(advice[0].last_renewed, Some(LONG_AGO.parse().unwrap()));
        let note = &advice[0].waiting[0].note;
        assert_eq!(
            note,
            "It waits for volume \"pv-data\". Node n1 has the volume and does not answer: Ready is \
             Unknown, and its Lease was last renewed at 2026-03-01T11:50:00Z. Kubernetes keeps \
             the volume attached as long as the machine may still write to it. As the old pod \
             cannot end there, it stays so until somebody acts. Look at the machine itself, in the console \
             of your cloud or data centre: n1 must be powered off. Neither Kubernetes nor this \
             program can see that. Then: `kubectl taint node n1 \
             node.kubernetes.io/out-of-service=nodeshutdown:NoExecute`. The pods of n1 are deleted \
             and their volumes detached, in seconds. If the machine is not off, both nodes write \
             to one disk and the data is lost."
        );
    }
}
