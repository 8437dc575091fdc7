//! The third stage: from texts to objects to judge and the facts they are for each other.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use jiff::Timestamp;

use super::made_classes::{has_local_path, made_classes, named_classes};
use super::parsed_object::ParsedObject;
use super::reading::Reading;
use super::text::Text;
use engine::model::Text as Name;
use engine::model::object::Object;
use engine::snapshot::Snapshot;
use report::{Summary, Unopened, Unread};

/// All objects of the texts.
pub struct Parsed {
    pub(super) texts: Vec<Text>,
    /// The checked files, without links, that are parts of what was rendered.
    pub(super) parts: HashSet<PathBuf>,
    /// In the order of the texts and of what stands in them.
    pub(super) objects: Vec<ParsedObject>,
    /// What is known besides the files.
    pub facts: Snapshot,
    /// Whether the facts hold the cluster's classes, so that a class which is not
    /// in view is not in the cluster.
    pub(super) facts_have_classes: bool,
    /// The classes that nothing defines, and that are made by what was not rendered.
    pub(super) made_classes: Vec<Name>,
    /// Whether a claim without a class may get one that attaches nothing.
    pub(super) is_default_in_doubt: bool,
    /// Templates and kinds of objects that several kustomizations take from one file.
    shared: HashSet<(Box<str>, String)>,
    pub(super) unread: Vec<Unread>,
    /// What could not be rendered.
    pub(super) unopened: Vec<Unopened>,
    /// The numbers, but for the findings.
    pub(super) summary: Summary,
    /// When they are judged, by which overrides end.
    pub(super) now: Timestamp,
}

/// Completes the objects by where they are. `facts` are known besides them.
pub fn parse(reading: Reading, facts: Snapshot, now: Timestamp) -> Parsed {
    let Reading {
        texts,
        parts,
        mut objects,
        neighbours,
        namespaces,
        mut summary,
        unread,
        unopened,
        unrendered_charts,
        ..
    } = reading;
    for known in &mut objects {
        let text = &texts[known.place.source];
        let release = text.release().and_then(|it| it.namespace.as_deref());
        match text.namespace.as_deref().or(release) {
            Some(namespace) => known.put_into(namespace),
            None => {
                let beside = neighbours.namespace_beside(text);
                namespaces.complete(known, text, beside);
            }
        }
        as_created(known, &facts);
    }
    let named = named_classes(&objects);
    let is_default_in_doubt = has_local_path(&named);
    let made_classes = made_classes(&named, &objects, &facts, &texts, &unrendered_charts);
    summary.judged = objects.iter().filter(|known| known.is_judged()).count();
    summary.facts = objects.len() - summary.judged;
    summary.unreadable = unread.len();
    Parsed {
        facts_have_classes: !facts.view().storage_classes().is_empty(),
        is_default_in_doubt,
        made_classes,
        shared: shared(&objects),
        texts,
        parts,
        objects,
        facts,
        unread,
        unopened,
        summary,
        now,
    }
}

/// Makes the object what it is once the API server has it.
fn as_created(known: &mut ParsedObject, facts: &Snapshot) {
    bind(&mut known.object, facts);
    // The API server takes it off what it creates, so it excuses nothing.
    known.object.metadata_mut().deleted = None;
}

impl Parsed {
    /// Adds what could not be changed.
    pub fn refuse(&mut self, failed: Vec<Unread>) {
        self.unread.extend(failed);
        self.summary.unreadable = self.unread.len();
    }

    /// Whether several kustomizations take an object of its kind from the same file.
    pub(super) fn is_shared(&self, known: &ParsedObject) -> bool {
        known.template.as_ref().is_some_and(|template| {
            let kind = known.reference.kind.to_string();
            self.shared.contains(&(template.clone(), kind))
        })
    }

    /// The text that contains the object.
    pub(super) fn text(&self, known: &ParsedObject) -> &Text {
        &self.texts[known.place.source]
    }
}

fn shared(objects: &[ParsedObject]) -> HashSet<(Box<str>, String)> {
    let mut first: HashMap<(&str, &str), usize> = HashMap::new();
    let templates = objects
        .iter()
        .filter_map(|known| Some((known.template.as_deref()?, known)));
    templates
        .filter(|(template, known)| {
            let source = known.place.source;
            *first
                .entry((template, &known.reference.kind))
                .or_insert(source)
                != source
        })
        .map(|(template, known)| (template.into(), known.reference.kind.to_string()))
        .collect()
}

/// Adds to a claim of a file what the facts know of the same claim and no manifest
/// says: the volume that it is bound to, and that one's access modes.
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
