//! Which of the checked objects speak for which.
//!
//! One repository holds the manifests of many clusters, environments and examples,
//! and they share names. An object is looked up from where it is named: in the same
//! file first, then in the same folder, in those inside it, in the folder above, in
//! those inside that, and so on. What was rendered together is a scope of its own, and
//! so is what a kustomization takes that could not be rendered. From there the others
//! are seen only for a claim, or what its storage is decided by, that is
//! not there, and only where all of them agree on it. Of a class or a volume that nobody
//! names, only those count that lie in the same folder, or above, or inside; of several
//! with one name, and of default classes, the nearest. A claim in a folder apart, such as
//! `test/volumes` for `docs/examples`, or in another scope is no more than an assumption.
//! Facts about a cluster speak for all.

mod context;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

pub(super) use context::Context;
use engine::analysis::volumes::claims;
use engine::model::Text;
use engine::model::claim::Claim;
use engine::model::in_tree::csi_driver_of;
use engine::model::metadata::Metadata;
use engine::model::object::{Object, ObjectKind};
use engine::model::volume::Volume;
use engine::model::workload::{Workload, WorkloadKind};
use engine::snapshot::Snapshot;
use engine::storage::likely_classes;
use manifest::helm_hook::HelmHook;
use manifest::source::Source;

/// An object as its scope needs it.
#[derive(Clone, Copy)]
pub(super) struct Member<'g> {
    pub(super) source: usize,
    pub(super) object: &'g Object,
    pub(super) hook: Option<HelmHook>,
    /// Whether it is judged, and not only a fact.
    pub(super) judged: bool,
}

/// What an object is looked up by: kind, namespace, name.
type Key = (ObjectKind, Text, Text);

/// Every object of the checked files, by what others name it.
pub(super) struct Scopes<'g> {
    members: Vec<Member<'g>>,
    /// One for each source.
    places: Vec<Scope>,
    /// What the sources are called.
    names: Vec<&'g str>,
    facts: &'g Snapshot,
    definitions: HashMap<Key, Vec<usize>>,
    /// Workloads by the namespace and the name of a claim in their template.
    users: HashMap<(Text, Text), Vec<usize>>,
    /// StatefulSets by the namespace and the name, but for the number, of the claims
    /// they make.
    makers: HashMap<(Text, Text), Vec<usize>>,
    /// Autoscalers by the workload that they scale.
    scalers: HashMap<Key, Vec<usize>>,
    /// One of each name, by their namespace.
    workloads: HashMap<Text, Vec<usize>>,
    /// One of each name.
    volumes: Vec<usize>,
    default_classes: Vec<usize>,
    drivers: Vec<Text>,
}

/// Where a source is, as far as it decides who sees what.
struct Scope {
    /// `None` for standard input and pipes, which are everywhere.
    folder: Option<PathBuf>,
    /// Its number where it was rendered; `None` for files.
    rendered: Option<usize>,
    /// The numbers of the kustomizations that take it and were not rendered.
    unrendered: Vec<usize>,
}

impl Scope {
    fn of(number: usize, source: &Source, unrendered: &[usize]) -> Self {
        let folder = source.real_path().and_then(Path::parent);
        Self {
            folder: folder.map(Path::to_owned),
            rendered: source.rendered.then_some(number),
            unrendered: unrendered.to_vec(),
        }
    }

    fn sees(&self, other: &Self) -> bool {
        self.rendered == other.rendered
            && (self.unrendered.is_empty() && other.unrendered.is_empty()
                || self.is_taken_with(other))
    }

    /// Whether a kustomization that was not rendered takes both.
    fn is_taken_with(&self, other: &Self) -> bool {
        let mut roots = self.unrendered.iter();
        roots.any(|root| other.unrendered.contains(root))
    }
}

/// What a name stands for.
enum Answer {
    One(usize),
    /// Several definitions are equally near, and they differ.
    Several(Vec<usize>),
    Nothing,
}

impl<'g> Scopes<'g> {
    /// `unrendered`: for each source, the numbers of the kustomizations that take it and
    /// were not rendered.
    pub(super) fn new(
        members: Vec<Member<'g>>,
        sources: &'g [Source],
        unrendered: Vec<&[usize]>,
        facts: &'g Snapshot,
    ) -> Self {
        let places = sources.iter().zip(unrendered).enumerate();
        let places = places.map(|(number, (source, roots))| Scope::of(number, source, roots));
        let mut scopes = Self {
            members,
            places: places.collect(),
            names: sources.iter().map(|source| source.name.as_str()).collect(),
            facts,
            definitions: HashMap::new(),
            users: HashMap::new(),
            makers: HashMap::new(),
            scalers: HashMap::new(),
            workloads: HashMap::new(),
            volumes: Vec::new(),
            default_classes: Vec::new(),
            drivers: Vec::new(),
        };
        for number in 0..scopes.members.len() {
            scopes.enter(number);
        }
        scopes
    }

    fn enter(&mut self, number: usize) {
        let object = self.members[number].object;
        let key = key(object);
        let is_new = !self.definitions.contains_key(&key);
        match object {
            Object::Workload(workload) => {
                let namespace = &workload.metadata.namespace;
                for claim in claims(workload) {
                    let users = self.users.entry((namespace.clone(), claim.clone()));
                    users.or_default().push(number);
                }
                for (claim, _) in workload.ephemeral_claims() {
                    let users = self.users.entry((namespace.clone(), claim.into()));
                    users.or_default().push(number);
                }
                for stem in stems(workload) {
                    let makers = self.makers.entry((namespace.clone(), stem));
                    makers.or_default().push(number);
                }
                if is_new {
                    let workloads = self.workloads.entry(namespace.clone());
                    workloads.or_default().push(number);
                }
            }
            Object::Autoscaler(_) => {
                if let Some(target) = target(object) {
                    self.scalers.entry(target).or_default().push(number);
                }
            }
            Object::Volume(_) if is_new => self.volumes.push(number),
            Object::StorageClass(class) if class.is_default() => self.default_classes.push(number),
            Object::CsiDriver(driver) if is_new => {
                self.drivers.push(driver.metadata.name.clone());
            }
            // The nodes of a file are not those of the cluster it is for.
            Object::Node(_) => return,
            _ => {}
        }
        self.definitions.entry(key).or_default().push(number);
    }

    /// The claims of other volumes that are the same volume as that of `claim`.
    fn claims_of_twins(&self, claim: &Claim) -> impl Iterator<Item = Key> {
        let volume = global(ObjectKind::Volume, &claim.spec.volume_name);
        let own = self.definitions.get(&volume).and_then(|it| it.first());
        let own = own.and_then(|number| self.volume(*number));
        let volumes = self.volumes.iter().filter_map(|it| self.volume(*it));
        volumes.filter_map(move |twin| {
            let own = own.filter(|own| own.metadata.name != twin.metadata.name)?;
            let named = twin.claimed_by().filter(|_| twin.is_same_as(own))?;
            Some((
                ObjectKind::Claim,
                named.namespace.clone(),
                named.name.clone(),
            ))
        })
    }

    fn volume(&self, number: usize) -> Option<&'g Volume> {
        match self.members[number].object {
            Object::Volume(volume) => Some(volume),
            _ => None,
        }
    }

    /// How near `to` is to `from`, both numbers of sources; `None` where one does not
    /// see the other.
    fn nearness(&self, from: usize, to: usize) -> Option<usize> {
        let (here, there) = (&self.places[from], &self.places[to]);
        if !here.sees(there) {
            return None;
        }
        if from == to {
            return Some(usize::MAX);
        }
        Some(match (&here.folder, &there.folder) {
            (Some(here), Some(there)) => {
                let shared = here.components().zip(there.components());
                let shared = shared.take_while(|(a, b)| a == b).count();
                // What lies in a folder is nearer than what lies in one inside it.
                2 * shared + usize::from(here.starts_with(there))
            }
            _ => 0,
        })
    }

    /// Whether one of two sources lies in the folder of the other.
    fn is_beside(&self, from: usize, to: usize) -> bool {
        let (here, there) = (&self.places[from], &self.places[to]);
        here.sees(there)
            && match (&here.folder, &there.folder) {
                (Some(here), Some(there)) => here.starts_with(there) || there.starts_with(here),
                _ => true,
            }
    }

    /// Whether two sources lie in one folder or one inside the other, or are taken by one
    /// kustomization.
    fn belongs_to(&self, from: usize, to: usize) -> bool {
        self.is_beside(from, to) || self.places[from].is_taken_with(&self.places[to])
    }

    /// Whether two sources lie in folders apart: neither in the folder of the other, nor
    /// in two folders side by side, nor taken by one kustomization.
    fn is_apart(&self, from: usize, to: usize) -> bool {
        let (here, there) = (&self.places[from], &self.places[to]);
        if here.is_taken_with(there) {
            return false;
        }
        let (Some(here), Some(there)) = (&here.folder, &there.folder) else {
            return false;
        };
        let shared = here.components().zip(there.components());
        let shared = shared.take_while(|(a, b)| a == b).count();
        let (here, there) = (here.components().count(), there.components().count());
        shared < here && shared < there && here.max(there) > shared + 1
    }

    /// What `key` stands for where it is named in the source `from`.
    fn answer(&self, from: usize, key: &Key) -> Answer {
        let Some(definitions) = self.definitions.get(key) else {
            return Answer::Nothing;
        };
        self.agreed(self.nearest(from, definitions))
    }

    /// The same, looked for in the other scopes, unless the facts tell.
    fn elsewhere(&self, from: usize, key: &Key) -> Answer {
        if self.is_fact(key) {
            return Answer::Nothing;
        }
        let definitions = self.definitions.get(key).into_iter().flatten().copied();
        let is_out_of_sight =
            |number: &usize| self.nearness(from, self.members[*number].source).is_none();
        self.agreed(definitions.filter(is_out_of_sight).collect())
    }

    fn is_fact(&self, (kind, namespace, name): &Key) -> bool {
        let facts = self.facts.view();
        match kind {
            ObjectKind::Claim => facts.claim(namespace, name).found().is_some(),
            ObjectKind::Volume => facts.volume(name).found().is_some(),
            ObjectKind::StorageClass => facts.storage_class(name).found().is_some(),
            ObjectKind::CsiDriver => facts.csi_driver(name).found().is_some(),
            _ => false,
        }
    }

    /// Those of the members that are nearest to the source `from`, as far as it sees any.
    fn nearest(&self, from: usize, members: &[usize]) -> Vec<usize> {
        let near = |number: usize| self.nearness(from, self.members[number].source);
        let Some(nearest) = members.iter().filter_map(|it| near(*it)).max() else {
            return Vec::new();
        };
        let mut all = members.to_vec();
        all.retain(|it| near(*it) == Some(nearest));
        all
    }

    /// What those of the members stand for together that are nearest to the source `from`,
    /// of those in its folder, or above, or inside.
    fn nearest_beside(&self, from: usize, members: &[usize]) -> Answer {
        let mut overlay = members.to_vec();
        overlay.retain(|it| self.is_beside(from, self.members[*it].source));
        self.agreed(self.nearest(from, &overlay))
    }

    /// Whether the class of a claim does not hang on which of `classes` is meant: the claim
    /// is bound, the facts know its class, or its name is one that a driver of these gives
    /// its class.
    fn is_settled(&self, claim: &Claim, classes: &[usize]) -> bool {
        let facts = self.facts.view();
        let metadata = &claim.metadata;
        let known = facts.claim(&metadata.namespace, &metadata.name).found();
        let is_bound = |claim: &Claim| !claim.spec.volume_name.is_empty();
        if is_bound(claim) || known.is_some_and(is_bound) {
            return true;
        }
        let Some(name) = claim.class() else {
            return facts.default_storage_class().found().is_some();
        };
        let is_of = |driver: &str| {
            classes.iter().any(|it| match self.members[*it].object {
                Object::StorageClass(class) => {
                    csi_driver_of(class.driver()) == csi_driver_of(driver)
                }
                _ => false,
            })
        };
        facts.storage_class(name).found().is_some()
            || likely_classes(name).iter().any(|it| is_of(it.driver()))
    }

    /// What definitions stand for that are equally near.
    fn agreed(&self, mut nearest: Vec<usize>) -> Answer {
        if nearest.is_empty() {
            return Answer::Nothing;
        }
        // Within one file the last one counts, as for the API server.
        nearest.reverse();
        let mut files = HashSet::new();
        nearest.retain(|number| {
            files.insert((
                self.members[*number].source,
                key(self.members[*number].object),
            ))
        });
        nearest.reverse();
        let first = nearest[0];
        let alike = nearest[1..]
            .iter()
            .all(|other| means_the_same(self.members[first].object, self.members[*other].object));
        if alike {
            Answer::One(first)
        } else {
            Answer::Several(nearest)
        }
    }

    fn one(&self, from: usize, key: &Key) -> Option<usize> {
        match self.answer(from, key) {
            Answer::One(number) => Some(number),
            Answer::Several(_) | Answer::Nothing => None,
        }
    }
}

/// What an object is looked up by.
fn key(object: &Object) -> Key {
    let named =
        |kind, metadata: &Metadata| (kind, metadata.namespace.clone(), metadata.shown_name());
    match object {
        Object::Workload(it) => named(ObjectKind::Workload(it.kind), &it.metadata),
        Object::Claim(it) => named(ObjectKind::Claim, &it.metadata),
        Object::Autoscaler(it) => named(ObjectKind::Autoscaler, &it.metadata),
        Object::Scale(it) => named(ObjectKind::Scale, &it.metadata),
        Object::Lease(it) => named(ObjectKind::Lease, &it.metadata),
        Object::Namespace(it) => global(ObjectKind::Namespace, &it.metadata.name),
        Object::Volume(it) => global(ObjectKind::Volume, &it.metadata.name),
        Object::StorageClass(it) => global(ObjectKind::StorageClass, &it.metadata.name),
        Object::CsiDriver(it) => global(ObjectKind::CsiDriver, &it.metadata.name),
        Object::Node(it) => global(ObjectKind::Node, &it.metadata.name),
        Object::VolumeAttachment(it) => global(ObjectKind::VolumeAttachment, &it.metadata.name),
        Object::RuntimeClass(it) => global(ObjectKind::RuntimeClass, &it.metadata.name),
    }
}

fn global(kind: ObjectKind, name: &str) -> Key {
    (kind, Text::default(), name.into())
}

/// The workload that an autoscaler scales.
fn target(object: &Object) -> Option<Key> {
    let Object::Autoscaler(autoscaler) = object else {
        return None;
    };
    let kind = WorkloadKind::from_name(&autoscaler.spec.scale_target_ref.kind)?;
    Some((
        ObjectKind::Workload(kind),
        autoscaler.metadata.namespace.clone(),
        autoscaler.spec.scale_target_ref.name.clone(),
    ))
}

/// The names of the claims that a StatefulSet makes, but for the number.
fn stems(workload: &Workload) -> impl Iterator<Item = Text> {
    let templates = workload.claim_templates.iter();
    templates
        .map(|template| format!("{}-{}", template.metadata.name, workload.metadata.name).into())
}

/// Whether two definitions of one thing differ in what decides.
fn means_the_same(a: &Object, b: &Object) -> bool {
    match (a.clone(), b) {
        (Object::Claim(mut a), Object::Claim(b)) => {
            a.metadata.clone_from(&b.metadata);
            a == *b
        }
        (Object::Workload(mut a), Object::Workload(b)) => {
            a.metadata.clone_from(&b.metadata);
            a == *b
        }
        (Object::StorageClass(mut a), Object::StorageClass(b)) => {
            // Its annotations may correct what the catalog says.
            a.metadata.name.clone_from(&b.metadata.name);
            a.metadata.labels.clone_from(&b.metadata.labels);
            a == *b
        }
        (a, b) => a == *b,
    }
}
