//! Faults for which no pod waits yet.

use super::DiagnosisInput;
use super::cause::describe;
use super::command;
use super::health::{Examined, Health};
use super::index::Index;
use engine::model::Text;
use engine::model::live_pod::Pod;
use engine::model::node::OUT_OF_SERVICE;

/// A fault for which no pod waits, with the way out.
#[derive(Clone, Debug)]
pub struct Remark {
    /// The names of the objects that it is about.
    pub about: Vec<Text>,
    /// The fault and the way out, in sentences.
    pub text: String,
}

/// Every such fault.
pub fn remarks(facts: DiagnosisInput<'_>) -> Vec<Remark> {
    let index = Index::of(facts);
    let nodes = facts.observed.nodes.iter();
    let living = nodes
        .map(|node| Examined::of(&index, &node.metadata.name))
        .filter(|node| node.health == Health::Alive && node.out_of_service)
        .map(|node| {
            let untaint = format!("{OUT_OF_SERVICE}-");
            Remark {
                text: format!(
                    "Node {0} is Ready and still has the taint {OUT_OF_SERVICE}: volumes of pods there are detached while they are mounted. `{1}` removes it.",
                    node.name,
                    command::line(facts.kubectl, &["taint", "node", &node.name, &untaint])
                ),
                about: vec![node.name.into()],
            }
        });
    living.chain(kept_claims(facts)).collect()
}

/// Claims that are being deleted, and stay because a pod that has finished names them. Kubernetes
/// counts every pod with a node (`podUsesPVC` in `pkg/controller/volume/pvcprotection`).
fn kept_claims(facts: DiagnosisInput<'_>) -> impl Iterator<Item = Remark> {
    let finished = |pod: &&Pod| pod.node.is_some() && !pod.is_living();
    facts.observed.pods.iter().filter(finished).flat_map(move |pod| {
        let namespace = &pod.meta.namespace;
        let view = facts.objects.view;
        let is_ending = move |claim: &&Text| {
            let found = view.claim(namespace, claim).found();
            found.is_some_and(|found| found.metadata.is_being_deleted())
        };
        pod.claims.iter().filter(is_ending).map(move |claim| {
            let name = format!("pod/{}", pod.meta.name);
            let delete = ["-n", namespace.as_str(), "delete", &name];
            Remark {
                about: vec![claim.clone(), pod.meta.name.clone(), pod.workload().1],
                text: format!(
                    "Claim {namespace}/{claim} is being deleted, and stays as long as {} names it, although it has finished ({}). Until then no new pod starts with a claim of that name. Unless the reclaim policy of its volume is Retain, the data go with the claim: copy first what is still needed. Then `{}` ends that.",
                    describe(pod),
                    pod.phase,
                    command::line(facts.kubectl, &delete)
                ),
            }
        })
    })
}
