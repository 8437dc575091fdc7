//! The objects that one judgement sees from the place of its object, and the record of those for
//! which it asked.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::fmt;

use super::super::ids::{ObjectId, TextId};
use super::super::parse::Parsed;
use super::{Answer, Key, Scopes, claim_key, global, key, key_of, listed_in, target_of};
use engine::model::Text;
use engine::model::claim::Claim;
use engine::model::metadata::Metadata;
use engine::model::object::{Object, ObjectKind};
use engine::model::words::some;
use engine::model::workload::{Workload, WorkloadKind};
use engine::snapshot::{IndexKey, ObjectKey, Order, Place};
use manifest::helm_hook::HelmHook;
use manifest::objects::Item;

/// The most users of one claim that are judged together.
const MAX_USERS: usize = 64;

/// The most definitions of one name that are judged one by one.
const MAX_ALTERNATIVES: usize = 4;

/// The key under which the default class is found.
const DEFAULT_CLASS: Key = (ObjectKind::StorageClass, Text::const_new(""), Text::const_new(""));

/// The objects that the judgement of one object sees from its place.
pub(crate) struct Context<'s> {
    scopes: &'s Scopes<'s>,
    pub(crate) parsed: &'s Parsed,
    /// The object that is judged.
    pub(crate) id: ObjectId,
    pub(crate) known: &'s Item,
    /// The text from which names are looked up.
    from: TextId,
    /// The answers that were given.
    answers: RefCell<HashMap<Key, Answer>>,
    /// The lists that were given, by the key of their claim or as in [`Scopes::listed`].
    lists: RefCell<HashMap<Key, Vec<ObjectId>>>,
    /// The name of something that was not rendered and may change an object that was given.
    doubt: Cell<Option<&'s str>>,
}

/// The advice if several definitions are equally near.
pub(crate) const APPLIED_TOGETHER: &str = "Check only manifests that are applied together";

/// A note about a claim that is not certain.
pub(crate) struct Note {
    pub(crate) kind: NoteKind,
    /// One or two sentences.
    pub(crate) text: String,
}

/// The reason for which a claim is not certain.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoteKind {
    /// Several definitions are equally near, and none is used.
    Ambiguous,
    /// It is defined in an unrelated folder or another scope, or its class is ambiguous.
    Assumed,
    /// Its other users are in an unrelated folder or another scope.
    AssumedUsers,
}

impl fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Context")
    }
}

impl Order for Context<'_> {
    fn position(&self, kind: ObjectKind, metadata: &Metadata) -> Option<usize> {
        let answers = self.answers.borrow();
        answers.get(&key_of(kind, metadata)).and_then(Answer::one).map(|id| id.0)
    }
}

impl Place for Context<'_> {
    fn object(&self, key: ObjectKey<'_>) -> Option<&Object> {
        let id = self.find((key.kind, key.namespace.into(), key.name.into()))?;
        Some(self.scopes.object(id))
    }

    fn objects(&self, keys: &[IndexKey<'_>]) -> Vec<&Object> {
        let list = match keys.last() {
            Some(IndexKey::Claim { namespace, claim }) => {
                claim_key(&Text::from(*namespace), *claim)
            }
            Some(IndexKey::Target { namespace, kind, name }) => {
                let Some(kind) = WorkloadKind::from_name(kind) else {
                    return Vec::new();
                };
                (ObjectKind::Workload(kind), Text::from(*namespace), Text::from(*name))
            }
            Some(IndexKey::DefaultClass) => {
                let class = self.find(DEFAULT_CLASS);
                return self.given(class.as_slice());
            }
            Some(IndexKey::Kind(kind @ ObjectKind::StorageClass)) => global(*kind, ""),
            Some(IndexKey::FreeOfClass(_) | IndexKey::ClaimedBy { .. } | IndexKey::Handle(_)) => {
                global(ObjectKind::Volume, "")
            }
            Some(IndexKey::Namespace(namespace)) => listed_in(namespace),
            // A selector over all namespaces sees the workloads of its own.
            Some(IndexKey::PodLabel { .. }) | None => {
                listed_in(&self.known.object.metadata().namespace)
            }
            Some(
                IndexKey::ClaimStem { .. }
                | IndexKey::Kind(_)
                | IndexKey::NodeLabel { .. }
                | IndexKey::Attached(_),
            ) => return Vec::new(),
        };
        let known = self.lists.borrow().get(&list).cloned();
        let ids = known.unwrap_or_else(|| {
            let ids = self.list(&list);
            self.lists.borrow_mut().insert(list, ids.clone());
            ids
        });
        self.given(&ids)
    }
}

impl<'s> Context<'s> {
    pub(crate) fn of(scopes: &'s Scopes<'s>, id: ObjectId) -> Self {
        let own = scopes.source(id);
        let object = scopes.object(id);
        let mut answers = HashMap::from([(key(object), Answer::One(id))]);
        let mut from = own;
        // An autoscaler is judged with its workload, as seen from there.
        if let (Object::Autoscaler(_), Some(target)) = (object, target_of(object)) {
            let answer = scopes.answer(own, &target);
            from = answer.one().map_or(own, |workload| scopes.source(workload));
            answers.insert(target, answer);
        }
        Self {
            scopes,
            parsed: scopes.parsed,
            id,
            known: scopes.parsed.object(id),
            from,
            answers: RefCell::new(answers),
            lists: RefCell::default(),
            doubt: Cell::default(),
        }
    }

    /// Whether the default class may be one that does not attach its volumes.
    pub(crate) fn is_default_in_doubt(&self) -> bool {
        let mut texts = self.parsed.with_local_path.iter();
        texts.any(|text| self.scopes.places.is_beside(self.from, *text))
    }

    /// The name, as shown in messages, of something that was not rendered and may change fields
    /// on which the judgement depends.
    pub(crate) fn doubt(&self) -> Option<&'s str> {
        self.parsed.text(self.known).doubt.as_deref().or(self.doubt.get())
    }

    /// Whether an incomplete workload that was given is one of `these`.
    pub(crate) fn gave_incomplete(&self, these: impl Fn(&Workload) -> bool) -> bool {
        let answers = self.answers.borrow();
        let mut given = answers.values().filter_map(Answer::one).map(|id| self.parsed.object(id));
        given.any(|known| {
            known.incomplete().is_some()
                && matches!(&known.object, Object::Workload(workload) if these(workload))
        })
    }

    /// The claim of that name in the namespace of the judged object.
    pub(crate) fn claim(&self, name: &Text) -> Option<(ObjectId, &'s Claim)> {
        let id = self.find(self.claim_key(name))?;
        match self.scopes.object(id) {
            Object::Claim(claim) => Some((id, claim)),
            _ => None,
        }
    }

    fn claim_key(&self, name: &Text) -> Key {
        claim_key(&self.known.object.metadata().namespace, name.clone())
    }

    /// The definition of `key` that counts here.
    fn find(&self, key: Key) -> Option<ObjectId> {
        if let Some(answer) = self.answers.borrow().get(&key) {
            return answer.one();
        }
        let answer = self.resolve(&key);
        let id = answer.one();
        self.answers.borrow_mut().insert(key, answer);
        id.inspect(|id| self.note_doubt(*id))
    }

    fn note_doubt(&self, id: ObjectId) {
        let known = self.parsed.object(id);
        if self.doubt.get().is_none() && known.is_judged() {
            self.doubt.set(self.parsed.text(known).doubt.as_deref());
        }
    }

    fn resolve(&self, key: &Key) -> Answer {
        let scopes = self.scopes;
        if *key == DEFAULT_CLASS {
            return scopes.nearest_beside(self.from, &scopes.default_classes);
        }
        match (scopes.answer(self.from, key), key.0) {
            (Answer::One(claim), ObjectKind::Claim)
                if self.is_far(claim) && !self.is_meant(key) =>
            {
                Answer::Nothing
            }
            (Answer::Nothing, ObjectKind::StorageClass | ObjectKind::Volume) => {
                match self.of_distant_claim(key) {
                    Some(id) => Answer::One(id),
                    None => scopes.elsewhere(self.from, key),
                }
            }
            (
                Answer::Nothing,
                ObjectKind::Claim | ObjectKind::CsiDriver | ObjectKind::RuntimeClass,
            ) => scopes.elsewhere(self.from, key),
            (answer, _) => answer,
        }
    }

    /// Whether a Pod names the claim in another folder. A Pod is often a trial, and does not refer
    /// to such a claim.
    fn is_far(&self, claim: ObjectId) -> bool {
        self.known.object.kind() == ObjectKind::Workload(WorkloadKind::Pod)
            && self.is_in_sight(claim)
            && !self.scopes.places.belongs_to(self.from, self.scopes.source(claim))
    }

    /// Whether the judged object can only mean the claim, wherever it is.
    fn is_meant(&self, key: &Key) -> bool {
        self.scopes.is_only(key) && self.scopes.names_its_namespace(self.id)
    }

    fn is_in_sight(&self, id: ObjectId) -> bool {
        self.scopes.places.nearness(self.from, self.scopes.source(id)).is_some()
    }

    /// The class or the volume that a claim of another scope names, as seen from there.
    fn of_distant_claim(&self, key: &Key) -> Option<ObjectId> {
        let (kind, _, name) = key;
        let names = |id: &ObjectId| match self.scopes.object(*id) {
            Object::Claim(claim) if *kind == ObjectKind::Volume => claim.spec.volume_name == *name,
            Object::Claim(claim) => claim.class() == Some(name),
            _ => false,
        };
        let answers = self.answers.borrow();
        let given = answers.values().filter_map(Answer::one);
        let claim = given.filter(|id| names(id) && !self.is_in_sight(*id)).min()?;
        self.scopes.answer(self.scopes.source(claim), key).one()
    }

    /// The objects, without those whose name has another definition here.
    fn given(&self, ids: &[ObjectId]) -> Vec<&'s Object> {
        let mut answers = self.answers.borrow_mut();
        let mut given = ids.to_vec();
        given.retain(|id| {
            let answer = answers.entry(key(self.scopes.object(*id))).or_insert(Answer::Nothing);
            let counts = answer.one().is_none_or(|known| known == *id);
            if counts {
                *answer = Answer::One(*id);
                self.note_doubt(*id);
            }
            counts
        });
        given.sort_unstable();
        given.dedup();
        given.into_iter().map(|id| self.scopes.object(id)).collect()
    }

    fn list(&self, list: &Key) -> Vec<ObjectId> {
        let scopes = self.scopes;
        let is_alone = self.known.hook == Some(HelmHook::OutsideRelease);
        match list.0 {
            ObjectKind::Claim | ObjectKind::Namespace if is_alone => vec![self.id],
            ObjectKind::Claim => self.users(list),
            ObjectKind::Workload(_) => {
                let target = self.find(list.clone());
                let refers =
                    |id: &ObjectId| scopes.answer(scopes.source(*id), list).one() == target;
                let referrers = scopes.referrers.get(list).into_iter().flatten().copied();
                referrers.filter(refers).collect()
            }
            _ => {
                let all = scopes.listed.get(list).map_or(&[][..], Vec::as_slice);
                let near = match list.0 {
                    ObjectKind::Namespace => scopes.around_in(all, self.from),
                    _ => all,
                };
                let nearest = |id: &ObjectId| {
                    let namesakes = scopes.definitions(&key(scopes.object(*id)));
                    scopes.nearest_beside(self.from, namesakes).one()
                };
                near.iter().filter_map(nearest).collect()
            }
        }
    }

    /// The workloads that use the same claim as the judged object does. If the definition of the
    /// claim is missing, the facts may have it.
    fn users(&self, key: &Key) -> Vec<ObjectId> {
        let (scopes, places) = (self.scopes, &self.scopes.places);
        let is_fact = scopes.is_fact(key);
        let meanings = scopes.meanings(key);
        let meant = self.meant(key);
        let alike = match meant {
            Answer::Nothing if is_fact => Some(&meanings.all),
            _ => meanings.by_definition.get(&meant),
        };
        let Some(alike) = alike else {
            return vec![self.id];
        };
        let near = scopes.around_in(&alike.all, self.from);
        let is_user = |user: &ObjectId| {
            let source = scopes.source(*user);
            *user != self.id
                && (is_fact
                    || !self.is_apart(*user)
                        && (meant != Answer::Nothing || places.is_beside(self.from, source)))
        };
        let mut users: Vec<ObjectId> = near.iter().copied().filter(is_user).collect();
        if users.is_empty() && self.is_meant(key) {
            let others = near.iter().filter(|user| scopes.names_its_namespace(**user));
            users = others.copied().take(MAX_USERS).collect();
        } else {
            let nearness = |user: ObjectId| places.nearness(self.from, scopes.source(user));
            users.sort_by_cached_key(|user| (Reverse(nearness(*user)), *user));
            users.truncate(MAX_USERS);
            // The later of two users is at fault, so the earliest user is always included.
            users.extend(alike.first.filter(is_user));
        }
        users.push(self.id);
        users
    }

    /// The claim that the judged object means.
    fn meant(&self, key: &Key) -> Answer {
        let claim = self.find(key.clone());
        match self.scopes.answer(self.from, key) {
            several @ Answer::Several(_) => several,
            _ => claim
                .filter(|claim| self.is_in_sight(*claim) || self.is_meant(key))
                .map_or(Answer::Nothing, Answer::One),
        }
    }

    /// The same context with each definition of the one name that has several; empty if there is
    /// no such name, or another one.
    pub(crate) fn alternatives(&self) -> Vec<Self> {
        let answers = self.answers.borrow();
        let mut ambiguous = answers.iter().filter_map(|(key, answer)| match answer {
            Answer::Several(ids) => Some((key, ids)),
            Answer::One(_) | Answer::Nothing => None,
        });
        let (Some((key, ids)), None) = (ambiguous.next(), ambiguous.next()) else {
            return Vec::new();
        };
        let with = |id: &ObjectId| {
            let context = Self::of(self.scopes, self.id);
            context.answers.borrow_mut().insert(key.clone(), Answer::One(*id));
            context
        };
        ids.iter().filter(|_| ids.len() <= MAX_ALTERNATIVES).map(with).collect()
    }

    /// The same context without the claims and classes that were found in other scopes, and a
    /// sentence about each of them; `None` if there are none.
    pub(crate) fn without_other_scopes(&self) -> Option<(Self, Vec<String>)> {
        let context = Self::of(self.scopes, self.id);
        let mut notes = Vec::new();
        for (key, answer) in &*self.answers.borrow() {
            let (kind, _, name) = key;
            let what = match kind {
                ObjectKind::Claim => "claim",
                ObjectKind::StorageClass => "StorageClass",
                _ => continue,
            };
            // A class that stands in a plain file is applied to the whole cluster.
            let is_elsewhere = |id: &ObjectId| {
                !self.is_in_sight(*id)
                    && (*kind == ObjectKind::Claim
                        || self.parsed.text(self.parsed.object(*id)).is_rendered())
            };
            if let Some(id) = answer.one().filter(is_elsewhere) {
                let file = self.scopes.name(id);
                notes.push(format!(
                    "No fault was found because the {what} \"{name}\" was found in {file}, which is checked apart from this, so this is an assumption. To be sure, add the {what} to the facts about the cluster."
                ));
                context.answers.borrow_mut().insert(key.clone(), Answer::Nothing);
            }
        }
        notes.sort_unstable();
        (!notes.is_empty()).then_some((context, notes))
    }

    /// The notes about the claim of that name, its class and its other users, as far as the
    /// judgement asked for them.
    pub(crate) fn notes(&self, name: &Text) -> Vec<Note> {
        let key = self.claim_key(name);
        let of_claim = self.note_of_claim(&key);
        of_claim
            .into_iter()
            .chain(self.notes_of_users(&key))
            .chain(self.note_of_class(name))
            .collect()
    }

    fn note_of_claim(&self, key: &Key) -> Option<Note> {
        let (scopes, (_, _, name)) = (self.scopes, key);
        match self.answers.borrow().get(key)? {
            _ if !matches!(self.known.object, Object::Workload(_)) => None,
            Answer::One(claim) => {
                let file = scopes.name(*claim);
                let text = if !self.is_in_sight(*claim) {
                    format!(
                        "The claim \"{name}\" was found in {file}, which is checked apart from this, so this is an assumption. To be sure, add the claim to the facts about the cluster."
                    )
                } else if self.is_apart(*claim) || self.is_far(*claim) {
                    format!(
                        "The claim \"{name}\" was found in {file}, an unrelated folder, so this is an assumption. To be sure, check the two folders on their own, or add the claim to the facts about the cluster."
                    )
                } else {
                    return None;
                };
                Some(Note { kind: NoteKind::Assumed, text })
            }
            Answer::Several(claims) => {
                let how = if self.is_in_sight(claims[0]) {
                    "are equally near"
                } else {
                    "are checked apart from this and differ"
                };
                let text = format!(
                    "claim \"{name}\" is defined in {}, which {how}, so none of them is taken. {APPLIED_TOGETHER}, or add the claim to the facts about the cluster.",
                    self.places(claims)
                );
                Some(Note { kind: NoteKind::Ambiguous, text })
            }
            Answer::Nothing => None,
        }
    }

    /// The notes about users in unrelated folders or other scopes, which count if they name the
    /// namespace of the claim.
    fn notes_of_users(&self, key: &Key) -> Vec<Note> {
        let (_, _, claim) = key;
        let lists = self.lists.borrow();
        let users = lists.get(key).filter(|_| self.is_meant(key)).into_iter().flatten();
        users
            .filter(|user| self.is_apart(**user))
            .map(|user| Note {
                kind: NoteKind::AssumedUsers,
                text: format!(
                    "The claim \"{claim}\" is also used in {}, which is checked apart from this, so this is an assumption. To be sure, check the two together as they are applied.",
                    self.scopes.name(*user)
                ),
            })
            .collect()
    }

    fn note_of_class(&self, claim: &Text) -> Option<Note> {
        let defined = self.claim(claim).filter(|(id, _)| self.is_in_sight(*id));
        let made = || match &self.known.object {
            Object::Workload(workload) => workload
                .claim_templates
                .iter()
                .find(|template| template.metadata.name == *claim)
                .or_else(|| workload.ephemeral_claim(claim)),
            _ => None,
        };
        let definition = defined.map(|(_, definition)| definition).or_else(made)?;
        let class = definition.class();
        let answers = self.answers.borrow();
        let Answer::Several(classes) =
            answers.get(&global(ObjectKind::StorageClass, class.unwrap_or_default()))?
        else {
            return None;
        };
        if self.scopes.is_settled(definition, classes) {
            return None;
        }
        let files = self.places(classes);
        let what = match class {
            Some(name) => format!("StorageClass \"{name}\" is defined differently in {files}"),
            None => format!("Different StorageClasses are marked as the default one in {files}"),
        };
        let text = format!(
            "{what}, so none of them is taken. Add the right one to the facts about the cluster."
        );
        Some(Note { kind: NoteKind::Assumed, text })
    }

    fn is_apart(&self, id: ObjectId) -> bool {
        self.scopes.places.is_apart(self.from, self.scopes.source(id))
    }

    /// The files and lines of the definitions.
    fn places(&self, definitions: &[ObjectId]) -> String {
        let places: BTreeSet<String> =
            definitions.iter().map(|id| self.parsed.place_of(*id)).collect();
        some(places.into_iter().collect())
    }

    /// What is known of the claim of that name without a definition here.
    pub(crate) fn undefined(&self, name: &Text) -> String {
        let key = self.claim_key(name);
        match self.answers.borrow().get(&key) {
            Some(Answer::Several(claims)) => format!("defined in {}", self.places(claims)),
            _ if self.scopes.is_fact(&key) => "defined in the facts".to_owned(),
            _ => "not among the checked files".to_owned(),
        }
    }
}
