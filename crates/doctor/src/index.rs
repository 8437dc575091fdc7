//! The observed objects, indexed by the keys of their look-ups.

use std::collections::HashMap;

use jiff::Timestamp;

use super::clock::Clock;
use super::diagnosis::DiagnosisInput;
use engine::model::event::Event;
use engine::model::lease::Lease;
use engine::model::live_pod::Pod;
use engine::model::metadata::Metadata;
use engine::model::node::NodeState;
use engine::model::volume_attachment::VolumeAttachment;

/// The observed objects, indexed by the keys of their look-ups.
pub(super) struct Index<'a> {
    pub(super) facts: DiagnosisInput<'a>,
    pub(super) clock: Clock,
    /// The pods that use a claim, by namespace and claim.
    users: HashMap<(&'a str, &'a str), Vec<&'a Pod>>,
    /// The attachments of a volume.
    attachments: HashMap<&'a str, Vec<&'a VolumeAttachment>>,
    /// The Events about a pod or a claim, by namespace and name, the newest first.
    events: HashMap<(&'a str, &'a str), Vec<&'a Event>>,
    pub(super) nodes: HashMap<&'a str, &'a NodeState>,
    pub(super) leases: HashMap<&'a str, &'a Lease>,
}

impl<'a> Index<'a> {
    pub(super) fn of(facts: DiagnosisInput<'a>) -> Self {
        let observed = facts.observed;
        let mut users: HashMap<_, Vec<&Pod>> = HashMap::new();
        for pod in &observed.pods {
            for claim in &pod.claims {
                let key = (pod.meta.namespace.as_str(), claim.as_str());
                users.entry(key).or_default().push(pod);
            }
        }
        let mut attachments: HashMap<_, Vec<&VolumeAttachment>> = HashMap::new();
        for attachment in &observed.attachments {
            let volume = attachment.volume.as_str();
            attachments.entry(volume).or_default().push(attachment);
        }
        let mut events: HashMap<_, Vec<&Event>> = HashMap::new();
        for event in &observed.events {
            let about = &event.involved_object;
            let key = (about.namespace.as_str(), about.name.as_str());
            events.entry(key).or_default().push(event);
        }
        for list in events.values_mut() {
            list.sort_by_key(|event| std::cmp::Reverse(event.said_at()));
        }
        Self {
            facts,
            clock: Clock::of(observed, facts.now),
            users,
            attachments,
            events,
            nodes: observed.nodes.iter().map(|node| (node.metadata.name.as_str(), node)).collect(),
            leases: observed
                .leases
                .iter()
                .map(|lease| (lease.metadata.name.as_str(), lease))
                .collect(),
        }
    }

    /// The number of seconds since then; negative if it is to come.
    pub(super) fn since(&self, then: Timestamp) -> i64 {
        self.facts.now.as_second() - then.as_second()
    }

    pub(super) fn users<'s>(&'s self, namespace: &'s str, claim: &'s str) -> &'s [&'a Pod] {
        self.users.get(&(namespace, claim)).map_or(&[], Vec::as_slice)
    }

    pub(super) fn attachments(&self, volume: &str) -> &[&'a VolumeAttachment] {
        self.attachments.get(volume).map_or(&[], Vec::as_slice)
    }

    /// The Events about this very pod, the newest first; those about an earlier pod of the same
    /// name are left out.
    pub(super) fn events(&self, pod: &'a Pod) -> impl Iterator<Item = &'a Event> {
        self.events_of(&pod.meta).filter(|event| event.is_about(pod))
    }

    /// The Events about objects of this namespace and name, the newest first.
    pub(super) fn events_of<'s>(
        &'s self,
        object: &'s Metadata,
    ) -> impl Iterator<Item = &'a Event> + use<'s, 'a> {
        let key = (object.namespace.as_str(), object.name.as_str());
        self.events.get(&key).into_iter().flatten().copied()
    }
}
