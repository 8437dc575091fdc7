//! Which of the checked objects speak for which.
//!
//! One repository holds the manifests of many clusters, environments and examples,
//! and they share names. An object is looked up from where it is named: in the same
//! file first, then in the same folder and those inside it, then in the folder above,
//! and so on; what was rendered together sees nothing else. Of a class or a volume
//! that nobody names, only those count that lie in the same folder, or above, or
//! inside. A definition in a folder apart, such as `test/volumes` for `docs/examples`, is
//! no more than an assumption. Facts about a cluster speak for all.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use crate::cluster::{BatchOrder, Cluster};
use crate::manifest::hook::Hook;
use crate::manifest::source::Source;
use crate::model::Text;
use crate::model::claim::Claim;
use crate::model::metadata::Metadata;
use crate::model::object::{Object, ObjectKind};
use crate::model::workload::{Workload, WorkloadKind};
use crate::situation::volumes::claims;

/// The most users of one claim that are looked at together.
const MAX_USERS: usize = 64;

/// The most pods of a StatefulSet whose claims are looked at.
const MAX_ORDINALS: i64 = 16;

/// An object as its scope needs it.
#[derive(Clone, Copy)]
pub(super) struct Member<'g> {
    pub(super) source: usize,
    pub(super) object: &'g Object,
    pub(super) hook: Option<Hook>,
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
    facts: &'g Cluster,
    definitions: HashMap<Key, Vec<usize>>,
    /// Workloads by the namespace and the name of a claim in their template.
    users: HashMap<(Text, Text), Vec<usize>>,
    /// StatefulSets by the namespace and the name, but for the number, of the claims
    /// they make.
    makers: HashMap<(Text, Text), Vec<usize>>,
    /// Autoscalers by the workload that they scale.
    scalers: HashMap<Key, Vec<usize>>,
    workloads: HashMap<Text, Vec<usize>>,
    volumes: Vec<usize>,
    default_classes: Vec<usize>,
    drivers: Vec<Text>,
}

/// Where a source is, as far as it decides who sees what.
struct Scope {
    /// `None` for standard input and pipes, which are everywhere.
    folder: Option<PathBuf>,
    /// Its number where it was rendered; `None` for plain files.
    rendered: Option<usize>,
}

impl Scope {
    fn of(number: usize, source: &Source) -> Self {
        let folder = source.real_path().and_then(Path::parent);
        Self {
            folder: folder.map(Path::to_owned),
            rendered: source.rendered.then_some(number),
        }
    }
}

/// What a name stands for.
enum Answer {
    One(usize),
    /// Several definitions are equally near, and they differ.
    Several(Vec<usize>),
    Nothing,
}

/// The objects that speak for those of one file.
pub(super) struct Surroundings {
    pub(super) cluster: Cluster,
    pub(super) order: BatchOrder,
    /// What can be said about names that stand for nothing, by workload.
    pub(super) notes: Vec<(usize, String)>,
    /// What workloads use that is defined in a folder apart, in sentences.
    assumed: Vec<(usize, String)>,
}

impl Surroundings {
    /// What is only assumed where the object number `number` is judged, in sentences.
    pub(super) fn assumed_of(&self, number: usize) -> impl Iterator<Item = &String> {
        let of_it = self.assumed.iter().filter(move |(it, _)| *it == number);
        of_it.map(|(_, text)| text)
    }
}

impl<'g> Scopes<'g> {
    pub(super) fn new(members: Vec<Member<'g>>, sources: &'g [Source], facts: &'g Cluster) -> Self {
        let places = sources.iter().enumerate();
        let mut scopes = Self {
            members,
            places: places.map(|(number, it)| Scope::of(number, it)).collect(),
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
        match object {
            Object::Workload(workload) => {
                let namespace = &workload.metadata.namespace;
                for claim in claims(workload) {
                    let users = self.users.entry((namespace.clone(), claim.clone()));
                    users.or_default().push(number);
                }
                for stem in stems(workload) {
                    let makers = self.makers.entry((namespace.clone(), stem));
                    makers.or_default().push(number);
                }
                let workloads = self.workloads.entry(namespace.clone());
                workloads.or_default().push(number);
            }
            Object::Autoscaler(_) => {
                if let Some(target) = target(object) {
                    self.scalers.entry(target).or_default().push(number);
                }
            }
            Object::Volume(_) => self.volumes.push(number),
            Object::StorageClass(class) if class.is_default() => self.default_classes.push(number),
            Object::CsiDriver(driver) => self.drivers.push(driver.metadata.name.clone()),
            // The nodes of a file are not those of the cluster it is for.
            Object::Node(_) => return,
            _ => {}
        }
        self.definitions
            .entry(key(object))
            .or_default()
            .push(number);
    }

    /// How near `to` is to `from`, both numbers of sources; `None` where one does not
    /// see the other.
    fn nearness(&self, from: usize, to: usize) -> Option<usize> {
        let (here, there) = (&self.places[from], &self.places[to]);
        if here.rendered != there.rendered {
            return None;
        }
        if from == to {
            return Some(usize::MAX);
        }
        Some(match (&here.folder, &there.folder) {
            (Some(here), Some(there)) => {
                let shared = here.components().zip(there.components());
                shared.take_while(|(a, b)| a == b).count()
            }
            _ => 0,
        })
    }

    /// Whether one of two sources lies in the folder of the other.
    fn is_beside(&self, from: usize, to: usize) -> bool {
        let (here, there) = (&self.places[from], &self.places[to]);
        here.rendered == there.rendered
            && match (&here.folder, &there.folder) {
                (Some(here), Some(there)) => here.starts_with(there) || there.starts_with(here),
                _ => true,
            }
    }

    /// Whether two sources lie in folders apart: neither in the folder of the other, nor
    /// in two folders side by side.
    fn is_apart(&self, from: usize, to: usize) -> bool {
        let (here, there) = (&self.places[from].folder, &self.places[to].folder);
        let (Some(here), Some(there)) = (here, there) else {
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
        let near = |number: usize| self.nearness(from, self.members[number].source);
        let Some(nearest) = definitions.iter().filter_map(|it| near(*it)).max() else {
            return Answer::Nothing;
        };
        let mut nearest: Vec<usize> = definitions
            .iter()
            .copied()
            .filter(|it| near(*it) == Some(nearest))
            .collect();
        // Within one file the last one counts, as for the API server.
        nearest.reverse();
        let mut files = HashSet::new();
        nearest.retain(|number| files.insert(self.members[*number].source));
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

    /// What speaks for the members `numbers`, all of one file.
    pub(super) fn around(&self, numbers: &[usize]) -> Surroundings {
        let from = self.members[numbers[0]].source;
        let mut walk = Walk {
            scopes: self,
            from,
            taken: HashMap::new(),
            waiting: Vec::new(),
            notes: Vec::new(),
            assumed: Vec::new(),
        };
        // Of two with one name in a file, the last one counts.
        for number in numbers.iter().rev() {
            walk.take(*number, Depth::Judged);
        }
        while let Some((number, depth)) = walk.waiting.pop() {
            walk.visit(number, depth);
        }
        for driver in &self.drivers {
            let key = (ObjectKind::CsiDriver, Text::default(), driver.clone());
            walk.named(&key);
        }
        let mut taken: Vec<usize> = walk.taken.into_values().collect();
        taken.sort_unstable();
        let mut cluster = Cluster::new();
        for number in &taken {
            cluster.apply(self.members[*number].object.clone());
        }
        let judged = taken.iter().filter(|number| self.members[**number].judged);
        Surroundings {
            cluster,
            order: BatchOrder::of(judged.map(|number| (*number, self.members[*number].object))),
            notes: walk.notes,
            assumed: walk.assumed,
        }
    }
}

/// How far an object is from those that are judged.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    /// It is one of them.
    Judged,
    /// One of them names it, or it shares a claim with one of them.
    Beside,
    /// It is a fact and no more.
    Fact,
}

struct Walk<'s, 'g> {
    scopes: &'s Scopes<'g>,
    from: usize,
    taken: HashMap<Key, usize>,
    waiting: Vec<(usize, Depth)>,
    notes: Vec<(usize, String)>,
    assumed: Vec<(usize, String)>,
}

impl Walk<'_, '_> {
    fn take(&mut self, number: usize, depth: Depth) {
        let key = key(self.scopes.members[number].object);
        let known = self.taken.contains_key(&key);
        if !known {
            self.taken.insert(key, number);
        }
        if !known || depth == Depth::Judged {
            self.waiting.push((number, depth));
        }
    }

    fn named(&mut self, key: &Key) {
        if let Some(number) = self.scopes.one(self.from, key) {
            self.take(number, Depth::Fact);
        }
    }

    fn visit(&mut self, number: usize, depth: Depth) {
        let scopes = self.scopes;
        let source = scopes.members[number].source;
        match scopes.members[number].object {
            Object::Workload(workload) if depth != Depth::Fact => {
                self.workload(number, workload, depth);
            }
            Object::Claim(claim) => {
                let metadata = &claim.metadata;
                if depth == Depth::Judged {
                    self.users(number, &metadata.namespace, &metadata.name, Some(number));
                }
                self.storage(claim);
            }
            Object::Autoscaler(_) if depth == Depth::Judged => {
                let target = target(scopes.members[number].object);
                let target = target.and_then(|target| scopes.one(source, &target));
                if let Some(target) = target {
                    self.take(target, Depth::Beside);
                }
            }
            _ => {}
        }
        if let Some(metadata) = scopes.members[number].object.metadata() {
            self.named(&global(ObjectKind::Namespace, &metadata.namespace));
        }
    }

    /// Takes what decides which storage a claim has or gets.
    fn storage(&mut self, claim: &Claim) {
        let scopes = self.scopes;
        match claim.class() {
            Some(class) => self.named(&global(ObjectKind::StorageClass, class)),
            None => self.beside(&scopes.default_classes),
        }
        if !claim.spec.volume_name.is_empty() {
            self.named(&global(ObjectKind::Volume, &claim.spec.volume_name));
        }
        self.beside(&scopes.volumes);
    }

    fn beside(&mut self, numbers: &[usize]) {
        for number in numbers {
            if self
                .scopes
                .is_beside(self.from, self.scopes.members[*number].source)
            {
                self.take(*number, Depth::Fact);
            }
        }
    }

    fn workload(&mut self, number: usize, workload: &Workload, depth: Depth) {
        let scopes = self.scopes;
        let Member { source, hook, .. } = scopes.members[number];
        let metadata = &workload.metadata;
        let alone = hook == Some(Hook::Apart);
        for template in &workload.claim_templates {
            self.storage(template);
        }
        for claim in claims(workload) {
            let key = (ObjectKind::Claim, metadata.namespace.clone(), claim.clone());
            let answer = scopes.answer(source, &key);
            let definition = match answer {
                Answer::One(definition) => {
                    self.take(definition, Depth::Fact);
                    let defined = scopes.members[definition].source;
                    if depth == Depth::Judged && scopes.is_apart(source, defined) {
                        self.assumed
                            .push((number, apart(claim, scopes.names[defined])));
                    }
                    Some(definition)
                }
                Answer::Several(definitions) => {
                    if depth == Depth::Judged {
                        self.notes.push((number, self.several(claim, &definitions)));
                    }
                    continue;
                }
                Answer::Nothing => None,
            };
            if depth == Depth::Judged && !alone {
                self.users(number, &metadata.namespace, claim, definition);
            }
        }
        if depth == Depth::Judged && !alone {
            for stem in stems(workload) {
                let first = workload.first_ordinal;
                let pods = workload.replicas.min(MAX_ORDINALS);
                for ordinal in first..first.saturating_add(pods) {
                    let claim: Text = format!("{stem}-{ordinal}").into();
                    let key = (ObjectKind::Claim, metadata.namespace.clone(), claim.clone());
                    let definition = scopes.one(source, &key);
                    if let Some(definition) = definition {
                        self.take(definition, Depth::Fact);
                    }
                    self.users(number, &metadata.namespace, &claim, definition);
                }
            }
        }
        let own = key(scopes.members[number].object);
        for scaler in scopes.scalers.get(&own).into_iter().flatten() {
            if scopes.one(scopes.members[*scaler].source, &own) == Some(number) {
                self.take(*scaler, Depth::Fact);
            }
        }
        // Whom an affinity chooses is not told by a name.
        if !workload.template.affinity.is_empty() && !alone {
            let others = scopes.workloads.get(&metadata.namespace);
            self.beside(others.map_or(&[], Vec::as_slice));
        }
    }

    /// Takes those that use the same claim as `number` does. `definition` is the claim
    /// it means; without one, the facts may hold it.
    fn users(&mut self, number: usize, namespace: &Text, claim: &Text, definition: Option<usize>) {
        let scopes = self.scopes;
        let by_name = scopes.users.get(&(namespace.clone(), claim.clone()));
        let stem = claim.rsplit_once('-').map(|(stem, _)| stem.into());
        let by_template = stem.and_then(|stem| scopes.makers.get(&(namespace.clone(), stem)));
        let is_fact = scopes
            .facts
            .view()
            .claim(namespace, claim)
            .found()
            .is_some();
        let key = (ObjectKind::Claim, namespace.clone(), claim.clone());
        let mut users: Vec<usize> = [by_name, by_template]
            .into_iter()
            .flatten()
            .flatten()
            .copied()
            .filter(|user| {
                let Member { source, hook, .. } = scopes.members[*user];
                let means_it = || match (definition, scopes.answer(source, &key)) {
                    (Some(ours), Answer::One(theirs)) => ours == theirs,
                    (None, Answer::Nothing) => {
                        scopes.nearness(self.from, source).is_some()
                            && (is_fact || scopes.is_beside(self.from, source))
                    }
                    _ => false,
                };
                *user != number
                    && (is_fact || !scopes.is_apart(self.from, source))
                    && !matches!(hook, Some(Hook::Apart | Hook::Test))
                    && (is_fact && definition.is_none() || means_it())
            })
            .collect();
        users.sort_by_key(|user| Reverse(scopes.nearness(self.from, scopes.members[*user].source)));
        for user in users.into_iter().take(MAX_USERS) {
            self.take(user, Depth::Beside);
        }
    }

    fn several(&self, claim: &str, definitions: &[usize]) -> String {
        let mut files: Vec<String> = definitions
            .iter()
            .map(|number| self.scopes.names[self.scopes.members[*number].source].to_owned())
            .collect();
        files.sort();
        let more = files.len().saturating_sub(3);
        files.truncate(3);
        if more > 0 {
            files.push(format!("{more} more"));
        }
        format!(
            "The claim \"{claim}\" is defined in {}, which are equally near to it, so that none of them is taken. Check one folder at a time.",
            listed(&files)
        )
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
        Object::Namespace(it) => global(ObjectKind::Namespace, &it.metadata.name),
        Object::Volume(it) => global(ObjectKind::Volume, &it.metadata.name),
        Object::StorageClass(it) => global(ObjectKind::StorageClass, &it.metadata.name),
        Object::CsiDriver(it) => global(ObjectKind::CsiDriver, &it.metadata.name),
        Object::Node(it) => global(ObjectKind::Node, &it.metadata.name),
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
        (a, b) => a == *b,
    }
}

fn apart(claim: &str, file: &str) -> String {
    format!(
        "The claim \"{claim}\" is taken from {file}, in a folder apart, so that this is an assumption. Check the two folders alone, or give the facts of the cluster, to be sure."
    )
}

fn listed(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}
