//! Faults for which no pod waits yet.

use std::collections::BTreeMap;

use super::cause::{FORCED, NAMED, SLOW, describe};
use super::command;
use super::diagnosis::DiagnosisInput;
use super::health::{Examined, Health};
use super::index::Index;
use super::span::span;
use engine::model::Text;
use engine::model::live_pod::Pod;
use engine::model::node::OUT_OF_SERVICE;
use engine::model::volume::ClaimRef;
use engine::model::volume_attachment::VolumeAttachment;
use engine::model::workload::WorkloadKind;

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
    living.chain(kept_claims(facts)).chain(kept_attachments(&index)).collect()
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

/// Attachments that no pod needs, with their claims.
type Kept<'a> = Vec<(&'a VolumeAttachment, &'a ClaimRef)>;

/// A remark for each node that keeps volumes for longer than a detach takes.
fn kept_attachments(index: &Index<'_>) -> Vec<Remark> {
    let facts = index.facts;
    let mut nodes: BTreeMap<&str, Kept<'_>> = BTreeMap::new();
    let attachments = &facts.observed.attachments;
    for attachment in attachments.iter().filter(|_| facts.observed.has_read("pods")) {
        if let Some(claim) = claim_without_pods(index, attachment) {
            nodes.entry(&attachment.node).or_default().push((attachment, claim));
        }
    }
    nodes.into_iter().filter_map(|(node, kept)| on_node(index, node, kept)).collect()
}

fn on_node(index: &Index<'_>, name: &str, mut kept: Kept<'_>) -> Option<Remark> {
    let facts = index.facts;
    let node = Examined::of(index, name);
    let (state, limit) = match node.health {
        Health::Alive => ("is Ready", SLOW),
        Health::NotReady => ("is not Ready", FORCED),
        Health::Lost => ("does not answer", FORCED),
        Health::Gone => ("no longer exists", FORCED),
        Health::Unknown => return None,
    };
    let age = |attachment: &VolumeAttachment| {
        let meta = &attachment.metadata;
        let since = meta.deletion_timestamp.or_else(|| meta.created())?;
        Some(facts.now.as_second() - since.as_second()).filter(|seconds| *seconds > limit)
    };
    kept.retain(|(attachment, _)| age(attachment).is_some());
    let in_words = |(attachment, claim): &(&VolumeAttachment, &ClaimRef)| {
        let age = span(age(attachment).unwrap_or_default());
        let is = match (attachment.metadata.is_being_deleted(), attachment.attached) {
            (true, _) => format!("being detached for {age}"),
            (false, true) => format!("attached {age} ago"),
            (false, false) => format!("being attached for {age}"),
        };
        let said = attachment.detach_error.as_ref();
        format!(
            "volume {} of claim {}/{} ({is}{})",
            attachment.volume,
            claim.namespace,
            claim.name,
            said.map(|words| format!("; the driver says: \"{words}\"")).unwrap_or_default()
        )
    };
    let more = kept.len().checked_sub(NAMED).filter(|more| *more > 0);
    let named = kept.iter().take(NAMED).map(in_words);
    let list: Vec<String> = named.chain(more.map(|more| format!("{more} more"))).collect();
    let target = format!("node/{name}");
    (!kept.is_empty()).then(|| Remark {
        text: format!(
            "Node {name} {state}, and no pod needs what is attached to it: {}. {} `{}` says what to do.",
            list.join(", "),
            node.outlook(facts),
            command::own(facts.kubectl, &["diagnose", &target])
        ),
        about: kept
            .iter()
            .flat_map(|(attachment, claim)| [attachment.volume.clone(), claim.name.clone()])
            .collect(),
    })
}

/// The claim of the attached volume, if no pod needs the volume on that node: none is there, and
/// none starts or ends elsewhere, which `cases` explains. A PersistentVolume of the same disk counts
/// too.
fn claim_without_pods<'a>(
    index: &Index<'a>,
    attachment: &VolumeAttachment,
) -> Option<&'a ClaimRef> {
    let view = index.facts.objects.view;
    let volume = view.volume(&attachment.volume).found()?;
    let is_free = |claim: &ClaimRef| {
        // The pods of a namespace that was not read are not known.
        let is_read = view.namespace(&claim.namespace).found().is_some();
        let pods = index.users(&claim.namespace, &claim.name);
        let needs = |pod: &&Pod| {
            pod.is_starting()
                || pod.is_ending()
                || (pod.is_living() && pod.node.as_ref() == Some(&attachment.node))
        };
        let has_next = || {
            !pods.iter().any(|pod| pod.is_living())
                && view
                    .workloads_using(&claim.namespace, &claim.name)
                    .into_iter()
                    .any(|user| user.kind != WorkloadKind::CronJob && user.has_pods())
        };
        is_read && !pods.iter().any(|pod| needs(pod)) && !has_next()
    };
    let mut twins = view.twins(volume).into_iter().filter_map(|twin| twin.spec.claim_ref.as_ref());
    volume.spec.claim_ref.as_ref().filter(|claim| is_free(claim) && twins.all(is_free))
}
