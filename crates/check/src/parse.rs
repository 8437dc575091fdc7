//! The second stage: from texts to objects to judge and the facts they are for each other.

use std::collections::{HashMap, HashSet};

use jiff::Timestamp;

use super::ids::TextId;
use super::made_classes::{made_classes, named_classes, names_local_path};
use super::namespace::note;
use super::reading::Reading;
use engine::model::Text as Name;
use engine::model::object::Object;
use engine::snapshot::Snapshot;
use manifest::completeness::Completeness;
use manifest::objects::Item;
use report::Unread;

/// All objects of the texts.
pub struct Parsed {
    /// The texts, and the completed objects with their counts.
    pub(super) reading: Reading,
    /// The facts that do not come from the files.
    pub facts: Snapshot,
    /// Whether the facts contain the cluster's classes, so that a class that is not among them is
    /// not in the cluster.
    pub(super) facts_have_classes: bool,
    /// The classes that no object defines, but that charts which were not rendered create.
    pub(super) made_classes: Vec<Name>,
    /// The texts with claims of local-path, which is the default class where it exists.
    pub(super) with_local_path: Vec<TextId>,
    /// The origins whose objects are in several texts; see [`origin`].
    shared: HashSet<(Box<str>, Name)>,
    /// The time of judgement, which decides whether overrides have ended.
    pub(super) now: Timestamp,
}

/// Completes the objects with the namespaces of their places and with `facts`, which do not come
/// from the files.
pub fn parse(mut reading: Reading, facts: Snapshot, now: Timestamp) -> Parsed {
    let texts = &reading.texts;
    for known in &mut reading.objects {
        let id = TextId::of(known);
        let text = &texts[id.0];
        if text.doubt.is_some() {
            // The fields may come from what was not rendered.
            known.completeness = Completeness::Whole;
        }
        let release = text.release().and_then(|release| release.namespace.as_deref());
        match text.namespace.as_deref().or(release) {
            Some(namespace) => known.put_into(namespace),
            None => {
                if let Some(unnamed) = known.unnamed_namespace() {
                    *unnamed = reading.namespaces.around(id, text, &reading.neighbours);
                }
            }
        }
        bind(&mut known.object, &facts);
        // The API server clears this field on objects that it creates, so it must not excuse
        // anything.
        known.object.metadata_mut().deletion_timestamp = None;
    }
    let objects = &reading.objects;
    let named = objects.iter().flat_map(named_classes).collect();
    let made_classes = made_classes(&named, &reading, &facts);
    let mut with_local_path: Vec<TextId> =
        objects.iter().filter(|known| names_local_path(known)).map(TextId::of).collect();
    with_local_path.dedup();
    let mut texts_of = HashMap::new();
    for known in objects {
        if let Some(origin) = origin(known) {
            note(&mut texts_of, origin, &TextId::of(known));
        }
    }
    texts_of.retain(|_, only| only.is_none());
    let summary = &mut reading.summary;
    summary.judged = objects.iter().filter(|known| known.is_judged()).count();
    summary.facts = objects.len() - summary.judged;
    summary.incomplete = objects.iter().filter(|known| known.incomplete().is_some()).count();
    summary.unreadable = reading.unread.len();
    Parsed {
        facts_have_classes: !facts.view().storage_classes().is_empty(),
        with_local_path,
        made_classes,
        shared: texts_of.into_keys().collect(),
        reading,
        facts,
        now,
    }
}

impl Parsed {
    /// Adds the files that could not be changed.
    pub fn refuse(&mut self, failed: Vec<Unread>) {
        self.reading.unread.extend(failed);
        self.reading.summary.unreadable = self.reading.unread.len();
    }

    /// Whether several kustomizations take an object of its kind from the same file.
    pub(super) fn is_shared(&self, known: &Item) -> bool {
        origin(known).is_some_and(|origin| self.shared.contains(&origin))
    }
}

/// The file from which the object was rendered, and its kind.
fn origin(known: &Item) -> Option<(Box<str>, Name)> {
    Some((known.template.clone()?, known.reference.kind.clone()))
}

/// Adds to a claim of a file the fields that only the facts have: the volume to which the claim is
/// bound, and the access modes of that volume.
fn bind(object: &mut Object, facts: &Snapshot) {
    let Object::Claim(claim) = object else { return };
    let metadata = &claim.metadata;
    let there = facts.view().claim(&metadata.namespace, &metadata.name);
    if let Some(there) = there.found()
        && claim.spec.volume_name.is_empty()
    {
        claim.spec.volume_name = there.spec.volume_name.clone();
        claim.status.access_modes = there.status.access_modes;
    }
}
