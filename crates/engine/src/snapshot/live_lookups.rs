//! What the API server is asked for on behalf of one judgement.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;

use super::key::ObjectKey;
use super::lookup::Lookup;
use super::store::Snapshot;
use super::stored::{StoredObject, Typed};
use crate::model::Text;
use crate::model::metadata::is_name;
use crate::model::object::ObjectKind;

/// Names one object that is asked for, or all of a kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LookupRequest {
    /// The kind of object.
    pub kind: ObjectKind,
    /// Empty for objects that have none and, where all are asked for, for those
    /// of all namespaces.
    pub namespace: Text,
    /// The object's name; empty where all objects are asked for.
    pub name: Text,
}

/// As in "PersistentVolumeClaim shop/data" or "all Node objects".
impl fmt::Display for LookupRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, namespace, name) = (self.kind.name(), &self.namespace, &self.name);
        match (namespace.is_empty(), name.is_empty()) {
            (true, true) => write!(f, "all {kind} objects"),
            (false, true) => write!(f, "all {kind} objects in {namespace}"),
            (true, false) => write!(f, "{kind} {name}"),
            (false, false) => write!(f, "{kind} {namespace}/{name}"),
        }
    }
}

impl LookupRequest {
    fn of(key: ObjectKey<'_>) -> Self {
        Self {
            kind: key.kind,
            namespace: key.namespace.into(),
            name: key.name.into(),
        }
    }

    fn all(kind: ObjectKind, namespace: &str) -> Self {
        Self::of(ObjectKey {
            kind,
            namespace,
            name: "",
        })
    }
}

/// The answers to the questions of one judgement, and the questions that nobody
/// has asked yet. As long as there are any, its result may not stand.
#[derive(Debug, Default)]
pub struct LiveLookups {
    /// Whether what the cluster holds is doubted as well, not only what it lacks.
    confirms_cached: bool,
    answers: HashMap<LookupRequest, Answer>,
    /// The objects of the answers.
    heard: Snapshot,
    open: RefCell<Vec<LookupRequest>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    /// What is not among the objects heard of is absent.
    Heard,
    /// The cluster is up to date in this.
    Confirmed,
    /// No answer.
    None,
}

/// Open questions beyond these are not noted: nobody would ask so many.
const MOST_OPEN: usize = 64;

/// Nodes that are asked for one by one. Two decide in most cases.
const MOST_NODES: usize = 8;

impl LiveLookups {
    /// Asks about everything a judgement uses, not only what the cluster lacks:
    /// a cache may be behind.
    #[must_use]
    pub fn confirming_everything() -> Self {
        Self {
            confirms_cached: true,
            ..Self::default()
        }
    }

    /// The open questions, which are none from then on.
    pub fn take_open(&mut self) -> Vec<LookupRequest> {
        std::mem::take(self.open.get_mut())
    }

    /// Notes what was found of one object.
    pub fn found(&mut self, question: LookupRequest, object: Lookup<StoredObject>) {
        let answer = match object {
            Lookup::Found(object) => {
                self.heard.hold(&object);
                Answer::Heard
            }
            Lookup::Absent => Answer::Heard,
            Lookup::NotSynced => Answer::None,
        };
        self.answers.insert(question, answer);
    }

    /// Notes all objects of a kind.
    pub fn listed(&mut self, question: LookupRequest, objects: &[StoredObject]) {
        for object in objects {
            self.heard.put(object);
        }
        self.answers.insert(question, Answer::Heard);
    }

    /// Notes that the cluster knows all objects of a kind.
    pub fn confirmed(&mut self, question: LookupRequest) {
        self.answers.insert(question, Answer::Confirmed);
    }

    /// The questions that got no answer.
    pub fn unanswered(&self) -> impl Iterator<Item = &LookupRequest> {
        self.answers
            .iter()
            .filter(|(_, answer)| **answer == Answer::None)
            .map(|(question, _)| question)
    }

    /// Whether what the cluster holds is doubted, too.
    pub(super) const fn confirms_cached(&self) -> bool {
        self.confirms_cached
    }

    /// Whether the cluster's own answers stand as they are.
    pub(super) fn is_idle(&self) -> bool {
        !self.confirms_cached && self.answers.is_empty()
    }

    /// The objects of the answers, to be looked through beside the cluster's.
    pub(super) const fn heard(&self) -> &Snapshot {
        &self.heard
    }

    /// The answer about one object of which the cluster says `cached`; without
    /// an answer the question is open.
    pub(super) fn look_up<'a, T: Typed>(
        &'a self,
        key: ObjectKey<'_>,
        cached: Lookup<&'a T>,
    ) -> Lookup<&'a T> {
        let is_asked = match cached {
            Lookup::Found(_) => self.confirms_cached,
            Lookup::Absent => self.confirms_cached || is_worth(key.kind),
            // Of what is not followed nothing is believed that could be old.
            Lookup::NotSynced => is_worth(key.kind),
        };
        if !is_asked {
            return cached;
        }
        // Of what no object can be called it is known without a question that it is absent,
        // and the question could lead elsewhere: `../secrets`.
        if !is_name(key.name) || (key.kind.is_namespaced() && !is_name(key.namespace)) {
            return match cached {
                Lookup::Found(_) => cached,
                Lookup::Absent | Lookup::NotSynced => Lookup::Absent,
            };
        }
        match self.answer(key) {
            Some(Answer::Heard) => {
                return self.heard.get(key).map_or(Lookup::Absent, Lookup::Found);
            }
            Some(Answer::Confirmed) => return cached,
            Some(Answer::None) => {}
            None => self.note(LookupRequest::of(key)),
        }
        match cached {
            Lookup::Absent if is_worth(key.kind) => Lookup::NotSynced,
            cached => cached,
        }
    }

    /// Whether an object that the cluster holds is to be shown as it holds it;
    /// otherwise it is among those heard of, or gone.
    pub(super) fn shows(&self, key: ObjectKey<'_>) -> bool {
        self.answer(key) != Some(Answer::Heard)
    }

    /// Says that a judgement uses an object that the cluster holds.
    pub(super) fn uses(&self, key: ObjectKey<'_>) {
        if !self.confirms_cached || self.answer(key).is_some() {
            return;
        }
        if self.has_nodes_enough(key.kind) {
            self.uses_all(key.kind, "");
        } else {
            self.note(LookupRequest::of(key));
        }
    }

    /// Says that a judgement uses that there are no more objects of a kind than
    /// those known.
    pub(super) fn uses_all(&self, kind: ObjectKind, namespace: &str) {
        let question = LookupRequest::all(kind, namespace);
        if self.confirms_cached && !self.answers.contains_key(&question) {
            self.note(question);
        }
    }

    /// Whether all objects of that kind are among those heard of.
    pub(super) fn has_heard_all(&self, kind: ObjectKind) -> bool {
        self.answers.get(&LookupRequest::all(kind, "")) == Some(&Answer::Heard)
    }

    /// Whether so many nodes are asked for that the others can only be counted.
    pub(super) fn has_nodes_enough(&self, kind: ObjectKind) -> bool {
        let is_node = |question: &&LookupRequest| question.kind == ObjectKind::Node;
        kind == ObjectKind::Node
            && (self.open.borrow().iter().filter(is_node).count()
                + self.answers.keys().filter(is_node).count())
                > MOST_NODES
    }

    fn answer(&self, key: ObjectKey<'_>) -> Option<Answer> {
        if self.answers.is_empty() {
            return None;
        }
        let heard = |question| {
            let answer = self.answers.get(&question).copied();
            answer.filter(|answer| *answer == Answer::Heard)
        };
        self.answers
            .get(&LookupRequest::of(key))
            .copied()
            .or_else(|| heard(LookupRequest::all(key.kind, key.namespace)))
            .or_else(|| heard(LookupRequest::all(key.kind, "")))
    }

    fn note(&self, question: LookupRequest) {
        let mut open = self.open.borrow_mut();
        if open.len() < MOST_OPEN && !open.contains(&question) {
            open.push(question);
        }
    }
}

/// Whether an object of that kind is worth a question where it is not known:
/// what a review names is there in nearly every case. Classes and CSI drivers
/// are not, as many claims live well without either.
const fn is_worth(kind: ObjectKind) -> bool {
    matches!(
        kind,
        ObjectKind::Claim
            | ObjectKind::Volume
            | ObjectKind::Namespace
            | ObjectKind::Workload(_)
            | ObjectKind::Lease
    )
}
