//! Faults for which no pod waits yet.

use std::collections::BTreeMap;

use serde_json::json;

use super::cause::{FORCED, NAMED, SLOW, describe};
use super::diagnosis::DiagnosisInput;
use super::health::{Examined, Health};
use super::index::Index;
use super::report_case::state;
use super::span::span;
use super::told::merged;
use engine::model::Text;
use engine::model::live_pod::Pod;
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
        .map(|node| Remark {
            text: facts.told("out-of-service", json!({ "there": node.name })).explanation,
            about: vec![node.name.into()],
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
            let more = json!({
                "namespace": namespace,
                "claim": claim,
                "pod": pod.meta.name,
                "user": describe(pod),
                "phase": pod.phase,
            });
            Remark {
                about: vec![claim.clone(), pod.meta.name.clone(), pod.workload().1],
                text: facts.told("kept-claim", more).explanation,
            }
        })
    })
}

/// A remark for each node that keeps volumes.
fn kept_attachments(index: &Index<'_>) -> Vec<Remark> {
    let observed = index.facts.observed;
    let mut nodes: BTreeMap<&str, (Vec<Text>, Vec<String>)> = BTreeMap::new();
    for attachment in observed.attachments.iter().filter(|_| observed.has_read("pods")) {
        if let Some((claim, seconds)) = kept(attachment, index) {
            let (about, volumes) = nodes.entry(&attachment.node).or_default();
            about.extend([attachment.volume.clone(), claim.name.clone()]);
            let more = json!({
                "volume": attachment.volume,
                "namespace": claim.namespace,
                "claim": claim.name,
                "state": state(attachment),
                "since": span(seconds),
            });
            volumes.push(index.facts.told("kept-attachment", more).explanation);
        }
    }
    nodes
        .into_iter()
        .filter_map(|(node, (about, volumes))| {
            Some(Remark { about, text: on_node(index, node, volumes)? })
        })
        .collect()
}

/// The claim of a volume that stays attached although no pod needs it, for longer than a detach
/// takes, from a lost node by force, and the number of seconds since it was attached, or since its
/// detach began.
fn kept<'a>(attachment: &VolumeAttachment, index: &Index<'a>) -> Option<(&'a ClaimRef, i64)> {
    let metadata = &attachment.metadata;
    let seconds = index.since(metadata.deletion_timestamp.or_else(|| metadata.created())?);
    let is_alive = Examined::of(index, &attachment.node).health == Health::Alive;
    let limit = if is_alive { SLOW } else { FORCED };
    let claim = claim_without_pods(index, attachment).filter(|_| seconds > limit)?;
    Some((claim, seconds))
}

fn on_node(index: &Index<'_>, name: &str, mut volumes: Vec<String>) -> Option<String> {
    let node = Examined::of(index, name);
    if node.health == Health::Unknown {
        return None;
    }
    let rest = volumes.len().saturating_sub(NAMED);
    volumes.truncate(NAMED);
    volumes.extend((rest > 0).then(|| format!("{rest} more")));
    let more = merged(node.values(), json!({ "list": volumes }));
    Some(index.facts.told("kept-attachments", more).explanation)
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
        is_read && !pods.iter().any(needs) && !has_next()
    };
    let mut twins = view.twins(volume).into_iter().filter_map(|twin| twin.spec.claim_ref.as_ref());
    volume.spec.claim_ref.as_ref().filter(|claim| is_free(claim) && twins.all(is_free))
}
