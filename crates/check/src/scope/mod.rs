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
pub(super) use context::{APPLIED_TOGETHER, Context};
use engine::model::Text;
use engine::model::autoscaler::ScaleTarget;
use engine::model::claim::Claim;
use engine::model::in_tree::csi_driver_of;
use engine::model::object::{Object, ObjectKind};
use engine::model::volume::Volume;
use engine::model::workload::WorkloadKind;
use engine::storage::likely_classes;
use manifest::objects::Item;
use place::Places;

/// The most objects of one file that are judged together. Each of them is compared with all the
/// others; objects in other groups are treated like objects in other files.
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
    /// The autoscalers by the workload that they scale.
    scalers: HashMap<Key, Vec<ObjectId>>,
    /// The workloads by their namespace, one for each name.
    workloads: HashMap<Text, Vec<ObjectId>>,
    /// The volumes, one for each name.
    volumes: Vec<ObjectId>,
    default_classes: Vec<ObjectId>,
    drivers: Vec<ObjectId>,
}

/// The users of a claim.
#[derive(Default)]
struct Meanings {
    all: Users,
    /// The users by the definition that they refer to.
    by_definition: HashMap<Resolved, Users>,
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

/// The definition to which a workload refers by the name of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Resolved {
    One(ObjectId),
    Missing,
    /// Several definitions are equally near.
    Ambiguous,
}

impl From<Option<ObjectId>> for Resolved {
    fn from(definition: Option<ObjectId>) -> Self {
        definition.map_or(Self::Missing, Self::One)
    }
}

/// The definition of a name.
enum Answer {
    One(ObjectId),
    /// Several definitions are equally near, and they differ.
    Several(Vec<ObjectId>),
    Nothing,
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
            scalers: HashMap::new(),
            workloads: HashMap::new(),
            volumes: Vec::new(),
            default_classes: Vec::new(),
            drivers: Vec::new(),
        };
        for (id, _) in parsed.objects() {
            scopes.enter(id);
        }
        let Self { places, workloads, definitions, default_classes, .. } = &mut scopes;
        let lists = workloads.values_mut().chain(definitions.values_mut());
        for ids in lists.chain([default_classes]) {
            ids.sort_by_key(|id| (places.rank(parsed.text_of(*id)), *id));
        }
        scopes
    }

    /// The objects to judge, with those of one file together. Objects that never run
    /// at the same time as the others are judged separately.
    pub(super) fn groups(&self) -> Vec<Vec<ObjectId>> {
        let parsed = self.parsed;
        let judged: Vec<ObjectId> =
            parsed.objects().filter(|(_, known)| known.is_judged()).map(|(id, _)| id).collect();
        let passes = |id: &ObjectId| parsed.object(*id).passes();
        judged
            .chunk_by(|a, b| self.source(*a) == self.source(*b) && !passes(a) && !passes(b))
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
                if is_new {
                    self.workloads.entry(namespace.clone()).or_default().push(id);
                }
            }
            Object::Autoscaler(autoscaler) => {
                let target = &autoscaler.spec.scale_target_ref;
                if let Some(target) = target_key(&autoscaler.metadata.namespace, target) {
                    self.scalers.entry(target).or_default().push(id);
                }
            }
            Object::Volume(_) if is_new => self.volumes.push(id),
            Object::StorageClass(class) if class.is_default() => self.default_classes.push(id),
            Object::CsiDriver(_) if is_new => self.drivers.push(id),
            // The nodes in a file are not those of the cluster for which it is meant.
            Object::Node(_) => return,
            _ => {}
        }
        self.definitions.entry(key).or_default().push(id);
    }

    /// The claims of other PersistentVolumes for the same storage as that of `claim`.
    fn claims_of_twins(&self, claim: &Claim) -> impl Iterator<Item = Key> {
        let volume = global(ObjectKind::Volume, &claim.spec.volume_name);
        let own = self.definitions(&volume).first().and_then(|id| self.volume(*id));
        let volumes = self.volumes.iter().filter_map(|id| self.volume(*id));
        volumes.filter_map(move |twin| {
            let own = own.filter(|own| own.metadata.name != twin.metadata.name)?;
            let named = twin.claimed_by().filter(|_| twin.is_same_as(own))?;
            Some(claim_key(&named.namespace, named.name.clone()))
        })
    }

    /// The claim that an object refers to by that name: the only one, or the only one in its own
    /// source.
    pub(super) fn claim(&self, user: &Item, name: &Text) -> Option<(&'p Item, &'p Claim)> {
        let namespace = &user.object.metadata().namespace;
        let all = self.definitions(&claim_key(namespace, name.clone()));
        let mut own = all.iter().filter(|id| self.source(**id) == TextId::of(user));
        let id = match (all, own.next(), own.next()) {
            ([only], ..) => only,
            (_, Some(first), None) => first,
            _ => return None,
        };
        let known = self.parsed.object(*id);
        match &known.object {
            Object::Claim(claim) => Some((known, claim)),
            _ => None,
        }
    }

    fn volume(&self, id: ObjectId) -> Option<&'p Volume> {
        match self.object(id) {
            Object::Volume(volume) => Some(volume),
            _ => None,
        }
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
        let facts = self.parsed.facts.view();
        match kind {
            ObjectKind::Claim => facts.claim(namespace, name).found().is_some(),
            ObjectKind::Volume => facts.volume(name).found().is_some(),
            ObjectKind::StorageClass => facts.storage_class(name).found().is_some(),
            ObjectKind::CsiDriver => facts.csi_driver(name).found().is_some(),
            _ => false,
        }
    }

    /// Those of `numbers` that are nearest to the source `from` and in scope for it. `numbers` is
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
        let metadata = &claim.metadata;
        let known = facts.claim(&metadata.namespace, &metadata.name).found();
        let is_bound = |definition: &Claim| !definition.spec.volume_name.is_empty();
        if is_bound(claim) || known.is_some_and(is_bound) {
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
        let is_alike = |other: &ObjectId| {
            let (first, other) = (self.object(first), self.object(*other));
            means_the_same(first, other) || self.are_both_local(first, other)
        };
        if nearest[1..].iter().all(is_alike) {
            Answer::One(first)
        } else {
            Answer::Several(nearest)
        }
    }

    /// Whether two definitions of one claim name volumes that differ only in the node that holds
    /// them.
    fn are_both_local(&self, a: &Object, b: &Object) -> bool {
        let (Object::Claim(a), Object::Claim(b)) = (a, b) else {
            return false;
        };
        let (Some(volume), Some(other)) = (self.volume_of(a), self.volume_of(b)) else {
            return false;
        };
        let mut claim = a.clone();
        claim.metadata.clone_from(&b.metadata);
        claim.spec.volume_name.clone_from(&b.spec.volume_name);
        let are_local = volume.spec.node_affinity.is_some() && other.spec.node_affinity.is_some();
        let mut same = volume.clone();
        same.metadata.clone_from(&other.metadata);
        same.spec.node_affinity.clone_from(&other.spec.node_affinity);
        are_local && claim == *b && same == *other
    }

    /// The volume that the claim names, if there is exactly one with that name.
    fn volume_of(&self, claim: &Claim) -> Option<&'p Volume> {
        let key = global(ObjectKind::Volume, &claim.spec.volume_name);
        match self.definitions(&key) {
            [only] => self.volume(*only),
            _ => None,
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

    fn one(&self, from: TextId, key: &Key) -> Option<ObjectId> {
        match self.answer(from, key) {
            Answer::One(id) => Some(id),
            Answer::Several(_) | Answer::Nothing => None,
        }
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
            let find = || match self.answer(source, key) {
                Answer::One(definition) => Resolved::One(definition),
                Answer::Several(_) => Resolved::Ambiguous,
                Answer::Nothing => match self.elsewhere(source, key) {
                    Answer::One(only) if self.is_only(key) => Resolved::One(only),
                    _ => Resolved::Missing,
                },
            };
            let meant = *of_source.entry(source).or_insert_with(find);
            meanings.by_definition.entry(meant).or_default().push(user);
        }
        meanings
    }

    /// Those of `numbers` that can be nearest to the source `from`. `numbers` is in the order of
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
    let (kind, metadata) = (object.kind(), object.metadata());
    if kind.is_namespaced() {
        (kind, metadata.namespace.clone(), metadata.shown_name())
    } else {
        global(kind, &metadata.name)
    }
}

fn global(kind: ObjectKind, name: &str) -> Key {
    (kind, Text::default(), name.into())
}

fn claim_key(namespace: &Text, name: impl Into<Text>) -> Key {
    (ObjectKind::Claim, namespace.clone(), name.into())
}

/// The key of the workload to which an autoscaler or a Rollout of the namespace refers.
fn target_key(namespace: &Text, target: &ScaleTarget) -> Option<Key> {
    let kind = ObjectKind::Workload(WorkloadKind::from_name(&target.kind)?);
    Some((kind, namespace.clone(), target.name.clone()))
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
