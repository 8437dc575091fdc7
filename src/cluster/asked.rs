//! Single objects that the API server is asked for on behalf of one judgement.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use super::stored::{Stored, Typed};
use super::view::Lookup;
use crate::model::Text;
use crate::model::object::ObjectKind;

/// Names one object that is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Question {
    /// The object's kind.
    pub kind: ObjectKind,
    /// Empty for objects that have none.
    pub namespace: Text,
    /// The object's name.
    pub name: Text,
}

/// The answers to single questions, and the questions that a judgement met and
/// nobody has asked yet. As long as there are any, its result may not stand.
#[derive(Debug, Default)]
pub struct Asked {
    answers: HashMap<Question, Lookup<Arc<Stored>>>,
    open: RefCell<Vec<Question>>,
}

impl Asked {
    /// The open questions, which are none from then on.
    pub fn take_open(&mut self) -> Vec<Question> {
        std::mem::take(self.open.get_mut())
    }

    /// Adds answers.
    pub fn extend(&mut self, answers: impl IntoIterator<Item = (Question, Lookup<Arc<Stored>>)>) {
        self.answers.extend(answers);
    }

    /// Whether an object of that kind is worth a question where it is not known:
    /// what a review names is there in nearly every case. Classes and CSI drivers
    /// are not, as many claims live well without either.
    pub(super) const fn is_worth(kind: ObjectKind) -> bool {
        matches!(
            kind,
            ObjectKind::Claim
                | ObjectKind::Volume
                | ObjectKind::Namespace
                | ObjectKind::Workload(_)
        )
    }

    /// What was answered about the object; without an answer the question is
    /// open, and it is not known whether the object is there.
    pub(super) fn look_up<T: Typed>(
        &self,
        kind: ObjectKind,
        namespace: &str,
        name: &str,
    ) -> Lookup<&T> {
        let in_a_namespace = matches!(kind, ObjectKind::Claim | ObjectKind::Workload(_));
        if !is_name(name) || (in_a_namespace && !is_name(namespace)) {
            return Lookup::Absent;
        }
        let question = Question {
            kind,
            namespace: namespace.into(),
            name: name.into(),
        };
        match self.answers.get(&question) {
            Some(Lookup::Found(object)) => T::of(object).map_or(Lookup::NotSynced, Lookup::Found),
            Some(Lookup::Absent) => Lookup::Absent,
            Some(Lookup::NotSynced) => Lookup::NotSynced,
            None => {
                let mut open = self.open.borrow_mut();
                if !open.contains(&question) {
                    open.push(question);
                }
                Lookup::NotSynced
            }
        }
    }
}

/// Whether an object can have that name (RFC 1123 subdomain, as Kubernetes
/// demands of all these kinds). Of anything else it is known without a question
/// that it is absent, and the question could lead elsewhere: `../secrets`.
fn is_name(name: &str) -> bool {
    let edge = |byte: Option<&u8>| {
        byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    let bytes = name.as_bytes();
    bytes.len() <= 253
        && edge(bytes.first())
        && edge(bytes.last())
        && bytes
            .iter()
            .all(|byte| edge(Some(byte)) || matches!(byte, b'-' | b'.'))
}
