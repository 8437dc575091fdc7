//! The third stage: finds which of the checked objects are facts for each other.
//!
//! One repository holds the manifests of many clusters, environments and examples, and these share
//! names. The search for an object starts at the place that names it: first in the same file, then
//! in the same folder, in the folders inside it, in the folder above, in the folders inside that,
//! and so on. Objects that were rendered together are a separate scope, and so are the objects of a
//! kustomization that could not be rendered. Other scopes are searched only for a missing claim and
//! its class, and the result counts only if all of them agree. Classes and volumes that nobody
//! names count only if they are in the same folder, above it or inside it; of several with one
//! name, and of default classes, the nearest one counts. A claim in an unrelated folder, such as
//! `test/volumes` for `docs/examples`, or in another scope is only an assumption. Facts about a
//! cluster apply to all objects.

mod context;
mod place;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use super::ids::{ObjectId, TextId};
use super::parse::Parsed;
pub(super) use context::{APPLIED_TOGETHER, Context, NoteKind};
use engine::model::Text;
use engine::model::claim::Claim;
use engine::model::in_tree::csi_driver_of;
use engine::model::metadata::Metadata;
use engine::model::object::{Object, ObjectKind};
use engine::model::workload::WorkloadKind;
use engine::snapshot::ObjectKey;
use engine::storage::likely_classes;
use place::Places;

/// The most objects of one file that are judged on one processor.
const MAX_GROUP: usize = 128;

/// The key of an object: kind, namespace, name.
type Key = (ObjectKind, Text, Text);

/// The objects of the checked files, by the keys with which others refer to them.
pub(super) struct Scopes<'p> {
    pub(super) parsed: &'p Parsed,
    places: Places,
    definitions: HashMap<Key, Vec<ObjectId>>,
    /// The workloads by the claims in their template.
    users: HashMap<Key, Vec<ObjectId>>,
    /// The StatefulSets by the claims that they create, without the number in their names.
    makers: HashMap<Key, Vec<ObjectId>>,
    /// The known users of each claim, grouped by definition; filled on first use.
    meanings: Mutex<HashMap<Key, Arc<Meanings>>>,
    /// The autoscalers and Rollouts by the workload to which they refer.
    referrers: HashMap<Key, Vec<ObjectId>>,
    /// The volumes, the classes and the workloads of each namespace, one for each name.
    listed: HashMap<Key, Vec<ObjectId>>,
    default_classes: Vec<ObjectId>,
}

/// The users of a claim.
#[derive(Default)]
struct Meanings {
    all: Users,
    /// The users by the definition that they refer to.
    by_definition: HashMap<Answer, Users>,
}

/// Some users of a claim, in the order of their places.
#[derive(Default)]
struct Users {
    all: Vec<ObjectId>,
    /// The first of them in the order of the input.
    first: Option<ObjectId>,
}

impl Users {
    fn push(&mut self, user: ObjectId) {
        self.first = Some(self.first.map_or(user, |first| first.min(user)));
        self.all.push(user);
    }
}

/// The definition of a name.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Answer {
    One(ObjectId),
    /// Several definitions are equally near, and they differ.
    Several(Vec<ObjectId>),
    Nothing,
}

impl Answer {
    const fn one(&self) -> Option<ObjectId> {
        match self {
            Self::One(id) => Some(*id),
            Self::Several(_) | Self::Nothing => None,
        }
    }
}

impl<'p> Scopes<'p> {
    pub(super) fn of(parsed: &'p Parsed) -> Self {
        let mut scopes = Self {
            parsed,
            places: Places::of(&parsed.reading.texts),
            definitions: HashMap::new(),
            users: HashMap::new(),
            makers: HashMap::new(),
            meanings: Mutex::default(),
            referrers: HashMap::new(),
            listed: HashMap::new(),
            default_classes: Vec::new(),
        };
        for (id, _) in parsed.objects() {
            scopes.enter(id);
        }
        let Self { places, listed, definitions, default_classes, .. } = &mut scopes;
        let lists = listed.values_mut().chain(definitions.values_mut());
        for ids in lists.chain([default_classes]) {
            ids.sort_by_key(|id| (places.rank(parsed.text_of(*id)), *id));
        }
        scopes
    }

    /// The objects to judge, with those of one file together.
    pub(super) fn groups(&self) -> Vec<Vec<ObjectId>> {
        let parsed = self.parsed;
        let judged: Vec<ObjectId> =
            parsed.objects().filter(|(_, known)| known.is_judged()).map(|(id, _)| id).collect();
        judged
            .chunk_by(|a, b| self.source(*a) == self.source(*b))
            .flat_map(|of_file| of_file.chunks(MAX_GROUP))
            .map(<[ObjectId]>::to_vec)
            .collect()
    }

    fn object(&self, id: ObjectId) -> &'p Object {
        &self.parsed.object(id).object
    }

    /// The name of the text that contains the object.
    fn name(&self, id: ObjectId) -> &'p str {
        &self.parsed.text(self.parsed.object(id)).source.name
    }

    /// The text that contains the object.
    fn source(&self, id: ObjectId) -> TextId {
        self.parsed.text_of(id)
    }

    fn enter(&mut self, id: ObjectId) {
        let object = self.object(id);
        let key = key(object);
        let is_new = !self.definitions.contains_key(&key);
        let list = match object {
            Object::Workload(workload) => Some(listed_in(&workload.metadata.namespace)),
            Object::Volume(_) | Object::StorageClass(_) => Some(global(object.kind(), "")),
            _ => None,
        };
        if let Some(list) = list.filter(|_| is_new) {
            self.listed.entry(list).or_default().push(id);
        }
        match object {
            Object::Workload(workload) => {
                let namespace = &workload.metadata.namespace;
                let ephemeral = workload.ephemeral_claims().map(|(claim, _)| Text::from(claim));
                for claim in workload.template.claims().cloned().chain(ephemeral) {
                    self.users.entry(claim_key(namespace, claim)).or_default().push(id);
                }
                for stem in workload.claim_stems() {
                    self.makers.entry(claim_key(namespace, stem)).or_default().push(id);
                }
            }
            Object::StorageClass(class) if class.is_default() => self.default_classes.push(id),
            // The nodes in a file are not those of the cluster for which it is meant.
            Object::Node(_) => return,
            _ => {}
        }
        if let Some(target) = target_of(object) {
            self.referrers.entry(target).or_default().push(id);
        }
        self.definitions.entry(key).or_default().push(id);
    }

    /// All definitions of `key`, in the order of places.
    fn definitions(&self, key: &Key) -> &[ObjectId] {
        self.definitions.get(key).map_or(&[][..], Vec::as_slice)
    }

    /// The definition of `key` as seen from the source `from`.
    fn answer(&self, from: TextId, key: &Key) -> Answer {
        self.agreed(self.nearest(from, self.definitions(key)))
    }

    /// The definition in the other scopes, unless the facts have one.
    fn elsewhere(&self, from: TextId, key: &Key) -> Answer {
        if self.is_fact(key) {
            return Answer::Nothing;
        }
        let definitions = self.definitions(key).iter().copied();
        let is_out_of_sight =
            |id: &ObjectId| self.places.nearness(from, self.source(*id)).is_none();
        self.agreed(definitions.filter(is_out_of_sight).collect())
    }

    fn is_fact(&self, (kind, namespace, name): &Key) -> bool {
        self.parsed.facts.view().is_known(*kind, namespace, name)
    }

    /// Those of `ids` that are nearest to the source `from` and in scope for it. `ids` is
    /// in the order of places.
    fn nearest(&self, from: TextId, ids: &[ObjectId]) -> Vec<ObjectId> {
        let near = |id: ObjectId| self.places.nearness(from, self.source(id));
        let nearest_of = |candidates: &[ObjectId]| {
            let nearest = candidates.iter().filter_map(|id| near(*id)).max()?;
            let all = candidates.iter().filter(|id| near(**id) == Some(nearest));
            Some(all.copied().collect())
        };
        nearest_of(self.around_in(ids, from)).or_else(|| nearest_of(ids)).unwrap_or_default()
    }

    /// The definition by those of `members` that are in the folder of the source `from`, above it
    /// or inside it, and nearest to it.
    fn nearest_beside(&self, from: TextId, members: &[ObjectId]) -> Answer {
        let mut nearby = members.to_vec();
        nearby.retain(|id| self.places.is_beside(from, self.source(*id)));
        self.agreed(self.nearest(from, &nearby))
    }

    /// Whether the choice between `classes` does not matter for a claim: the claim is bound, the
    /// facts have its class, or its name is one that a driver of these classes usually gives its
    /// class.
    fn is_settled(&self, claim: &Claim, classes: &[ObjectId]) -> bool {
        let facts = self.parsed.facts.view();
        if !claim.spec.volume_name.is_empty() {
            return true;
        }
        let Some(name) = claim.class() else {
            return facts.default_storage_class().found().is_some();
        };
        let is_of = |driver: &str| {
            classes.iter().any(|id| match self.object(*id) {
                Object::StorageClass(class) => {
                    csi_driver_of(class.driver()) == csi_driver_of(driver)
                }
                _ => false,
            })
        };
        facts.storage_class(name).found().is_some()
            || likely_classes(name).iter().any(|class| is_of(class.driver()))
    }

    /// The definition that equally near objects agree on.
    fn agreed(&self, mut nearest: Vec<ObjectId>) -> Answer {
        if nearest.is_empty() {
            return Answer::Nothing;
        }
        // Within one file the last one counts, as it does for the API server.
        nearest.reverse();
        let mut files = HashSet::new();
        nearest.retain(|id| files.insert((self.source(*id), key(self.object(*id)))));
        nearest.reverse();
        let first = nearest[0];
        let is_alike = |other: &ObjectId| means_the_same(self.object(first), self.object(*other));
        if nearest[1..].iter().all(is_alike) {
            Answer::One(first)
        } else {
            Answer::Several(nearest)
        }
    }

    /// Whether the claim with that name is the only one in the repository, in a namespace that its
    /// own manifest names.
    fn is_only(&self, key: &Key) -> bool {
        matches!(self.definitions(key), [only] if self.names_its_namespace(*only))
            && !self.is_fact(key)
    }

    fn names_its_namespace(&self, id: ObjectId) -> bool {
        self.parsed.object(id).reference.namespace.is_some()
    }

    /// The users of a claim, by the definition that they refer to.
    fn meanings(&self, key: &Key) -> Arc<Meanings> {
        let lock = || self.meanings.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = lock().get(key) {
            return Arc::clone(known);
        }
        let meanings = Arc::new(self.find_meanings(key));
        lock().insert(key.clone(), Arc::clone(&meanings));
        meanings
    }

    fn find_meanings(&self, key: &Key) -> Meanings {
        let (_, namespace, claim) = key;
        let by_template = claim
            .rsplit_once('-')
            .and_then(|(stem, _)| self.makers.get(&claim_key(namespace, stem)));
        let mut users: Vec<ObjectId> = [self.users.get(key), by_template]
            .into_iter()
            .flatten()
            .flatten()
            .copied()
            .filter(|user| !self.parsed.object(*user).passes())
            .collect();
        users.sort_by_key(|user| (self.places.rank(self.source(*user)), *user));
        let mut meanings = Meanings::default();
        let mut of_source = HashMap::new();
        for user in users {
            meanings.all.push(user);
            let source = self.source(user);
            let meant = of_source.entry(source).or_insert_with(|| self.meant(source, key));
            meanings.by_definition.entry(meant.clone()).or_default().push(user);
        }
        meanings
    }

    /// The claim that a user in the text `from` means.
    fn meant(&self, from: TextId, key: &Key) -> Answer {
        match self.answer(from, key) {
            Answer::Nothing if self.is_only(key) => self.elsewhere(from, key),
            answer => answer,
        }
    }

    /// Those of `ids` that can be nearest to the source `from`. `ids` is in the order of
    /// places.
    fn around_in<'n>(&self, ids: &'n [ObjectId], from: TextId) -> &'n [ObjectId] {
        let rank = self.places.rank(from);
        let at = ids.partition_point(|id| self.places.rank(self.source(*id)) < rank);
        let end = ids.len().min(at + MAX_LOOK);
        &ids[at.saturating_sub(MAX_LOOK)..end]
    }
}

/// The most objects that are searched for the nearest one, in each direction.
const MAX_LOOK: usize = 512;

/// The key of an object.
fn key(object: &Object) -> Key {
    key_of(object.kind(), object.metadata())
}

fn key_of(kind: ObjectKind, metadata: &Metadata) -> Key {
    let ObjectKey { namespace, name, .. } = ObjectKey::of(kind, metadata);
    (kind, namespace.into(), name.into())
}

fn global(kind: ObjectKind, name: &str) -> Key {
    (kind, Text::default(), name.into())
}

fn claim_key(namespace: &Text, name: impl Into<Text>) -> Key {
    (ObjectKind::Claim, namespace.clone(), name.into())
}

/// The key under which the workloads of a namespace are listed.
fn listed_in(namespace: &str) -> Key {
    (ObjectKind::Namespace, namespace.into(), Text::default())
}

/// The key of the workload to which an autoscaler or a Rollout refers.
fn target_of(object: &Object) -> Option<Key> {
    let target = match object {
        Object::Autoscaler(autoscaler) => &autoscaler.spec.scale_target_ref,
        Object::Workload(workload) => workload.template_source.as_ref()?,
        _ => return None,
    };
    let kind = ObjectKind::Workload(WorkloadKind::from_name(&target.kind)?);
    Some((kind, object.metadata().namespace.clone(), target.name.clone()))
}

/// Whether two definitions of one object are the same in all fields that matter.
fn means_the_same(a: &Object, b: &Object) -> bool {
    let mut a = a.clone();
    let (own, other) = (a.metadata_mut(), b.metadata());
    match b {
        Object::Claim(_) | Object::Workload(_) => own.clone_from(other),
        // The annotations may correct the catalog, so they are compared.
        Object::StorageClass(_) => {
            own.name.clone_from(&other.name);
            own.labels.clone_from(&other.labels);
        }
        _ => {}
    }
    a == *b
}
