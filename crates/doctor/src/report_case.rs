//! Pods that wait for the same volume for the same reason, as one entry of the report.

use std::collections::{BTreeMap, HashSet};

use serde::Serialize;

use super::action::{Purpose, SuggestedAction};
use super::cause::{Cause, Documents, Judgement, owner};
use super::diagnosis::DiagnosisInput;
use super::health::Examined;
use super::index::Index;
use super::waiting_pod::WaitingPod;
use engine::model::Text;
use engine::model::access_mode::AccessMode;
use engine::model::object::ObjectRef;
use engine::model::volume_attachment::VolumeAttachment;

/// Pods that wait for one volume for one reason, with the way out.
#[derive(Clone, Debug, Serialize)]
pub struct CaseEntry {
    /// The cause's public name.
    pub cause: &'static str,
    /// The cause in a few words.
    pub title: &'static str,
    /// Whether it passes by itself.
    pub passes: bool,
    /// The explanation of the cause, in sentences.
    #[serde(rename = "because")]
    pub explanation: String,
    /// The volume.
    pub volume: VolumeEntry,
    /// The pods that wait.
    pub waiting: Vec<WaitingEntry>,
    /// The pods that have the volume or are in the way.
    pub holders: Vec<HolderEntry>,
    /// The volume's attachments.
    pub attachments: Vec<AttachmentEntry>,
    /// The nodes of these pods and attachments.
    pub nodes: Vec<Examined>,
    /// The steps to take, in this order.
    pub steps: Vec<SuggestedAction>,
}

impl CaseEntry {
    /// The safest way out, after the steps and conditions without which it could do harm.
    pub fn safest(&self) -> Vec<&SuggestedAction> {
        let of = |purpose| self.steps.iter().filter(move |step| step.purpose == purpose);
        of(Purpose::Before).chain(of(Purpose::WayOut).take(1)).collect()
    }
}

/// A volume.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VolumeEntry {
    /// The claim's namespace.
    pub namespace: Text,
    /// The claim's name.
    pub claim: Text,
    /// The persistent volume's name, if it is known.
    pub name: Option<Text>,
    /// The class, if it is known.
    pub class: Option<Text>,
    /// The driver; empty if it is not known.
    pub driver: Text,
    /// The access modes that decide: those of the volume, or of the claim if it is unbound.
    pub access_modes: Vec<&'static str>,
}

/// A pod that waits.
#[derive(Clone, Debug, Serialize)]
pub struct WaitingEntry {
    /// Its name.
    pub pod: Text,
    /// The workload that made it, such as `Deployment web`; its own name if nothing made it.
    pub workload: String,
    /// The node on which it waits; `None` if it has none yet.
    pub node: Option<Text>,
    /// The start of the wait, as RFC 3339.
    pub since: Option<String>,
    /// The length of the wait in seconds.
    pub seconds: Option<i64>,
    /// The message of Kubernetes about the wait; `None` if there is none, or no longer any.
    pub message: Option<String>,
}

/// A pod that has the volume.
#[derive(Clone, Debug, Serialize)]
pub struct HolderEntry {
    /// Its name.
    pub pod: Text,
    /// The workload that made it.
    pub workload: String,
    /// Its node.
    pub node: Option<Text>,
    /// The phase, such as `Running`, or `Terminating`.
    pub state: Text,
}

/// An attachment of the volume.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AttachmentEntry {
    /// The VolumeAttachment's name.
    pub name: Text,
    /// The node.
    pub node: Text,
    /// `attached`, `attaching` or `detaching`.
    pub state: &'static str,
    /// The driver's message about a failed attach.
    pub attach_error: Option<String>,
    /// The driver's message about a failed detach.
    pub detach_error: Option<String>,
}

/// Every case; those that do not pass by themselves come first. `documents` returns objects as the
/// API server has them; without them some commands cannot be written.
pub fn cases(
    facts: DiagnosisInput<'_>,
    documents: impl FnOnce(&[ObjectRef]) -> Documents,
) -> Vec<CaseEntry> {
    let index = Index::of(facts);
    let mut groups: BTreeMap<_, (&Cause, Vec<WaitingPod<'_>>)> = BTreeMap::new();
    for waiting in WaitingPod::all(&index) {
        let Some(cause) = Cause::of(&waiting) else {
            continue;
        };
        let key = (
            waiting.pod.meta.namespace.clone(),
            waiting.claim.clone(),
            waiting.pod.workload(),
            &cause.code,
        );
        groups.entry(key).or_insert((cause, Vec::new())).1.push(waiting);
    }
    // Each document is a request, and an outage may have many cases that need none.
    let mut seen = HashSet::new();
    let wanted: Vec<ObjectRef> = groups
        .values()
        .filter(|(cause, _)| cause.documents)
        .flat_map(|(_, pods)| pods[0].wants())
        .filter(|object| seen.insert(object.clone()))
        .collect();
    let documents = documents(&wanted);
    let mut entries: Vec<CaseEntry> = groups
        .into_values()
        .map(|(cause, mut pods)| {
            pods[0].documents = Some(&documents);
            entry(cause, &pods)
        })
        .collect();
    entries.sort_by_cached_key(|entry| {
        (
            entry.passes,
            entry.volume.namespace.clone(),
            entry.volume.claim.clone(),
            entry.waiting.first().map(|waiting| waiting.pod.clone()),
        )
    });
    entries
}

/// The entry of at least one pod; the steps are those for the first.
fn entry(cause: &'static Cause, pods: &[WaitingPod<'_>]) -> CaseEntry {
    let first = &pods[0];
    let Judgement { explanation, steps } = cause.judge(first).unwrap_or_default();
    let names: Vec<&Text> = pods.iter().map(|waiting| &waiting.pod.meta.name).collect();
    let others = pods.iter().filter_map(|waiting| waiting.pod.node.clone());
    let mut seen = HashSet::new();
    CaseEntry {
        cause: &cause.code,
        title: &cause.title,
        passes: cause.passes,
        explanation,
        volume: VolumeEntry {
            namespace: first.pod.meta.namespace.clone(),
            claim: first.claim.clone(),
            name: first.volume.clone(),
            class: first.class().map(Text::from),
            driver: first.used.driver.clone(),
            access_modes: first.used.modes.iter().map(AccessMode::name).collect(),
        },
        holders: first
            .holders
            .iter()
            .filter(|pod| !names.contains(&&pod.meta.name))
            .map(|pod| HolderEntry {
                pod: pod.meta.name.clone(),
                workload: owner(pod),
                node: pod.node.clone(),
                state: match pod.phase.as_str() {
                    _ if pod.is_ending() => "Terminating".into(),
                    "" => "Pending".into(),
                    phase => phase.into(),
                },
            })
            .collect(),
        attachments: first
            .shown_attachments()
            .map(|attachment| AttachmentEntry {
                name: attachment.metadata.name.clone(),
                node: attachment.node.clone(),
                state: state(attachment),
                attach_error: attachment.attach_error.clone(),
                detach_error: attachment.detach_error.clone(),
            })
            .collect(),
        nodes: first
            .shown_nodes()
            .into_iter()
            .chain(others)
            .filter(|name| seen.insert(name.clone()))
            .map(|name| first.examined(&name))
            .collect(),
        steps,
        waiting: pods
            .iter()
            .map(|waiting| WaitingEntry {
                pod: waiting.pod.meta.name.clone(),
                workload: owner(waiting.pod),
                node: waiting.pod.node.clone(),
                since: waiting.pod.waits_since().map(|since| since.to_string()),
                seconds: waiting.waited().map(|seconds| seconds.max(0)),
                message: waiting.words().map(str::to_owned),
            })
            .collect(),
    }
}

/// How far an attachment has come.
pub(super) const fn state(attachment: &VolumeAttachment) -> &'static str {
    match (attachment.metadata.is_being_deleted(), attachment.attached) {
        (true, _) => "detaching",
        (false, true) => "attached",
        (false, false) => "attaching",
    }
}
