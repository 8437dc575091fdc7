//! The objects that speak for those of one file, gathered from where they are named.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

use super::{Answer, Key, Member, Scopes, global, key, stems, target};
use engine::analysis::volumes::claims;
use engine::model::Text;
use engine::model::claim::Claim;
use engine::model::object::{Object, ObjectKind};
use engine::model::workload::{Workload, WorkloadKind};
use engine::snapshot::{BatchOrder, Snapshot};
use manifest::helm_hook::HelmHook;

/// The most users of one claim that are looked at together.
const MAX_USERS: usize = 64;

/// The most pods of a StatefulSet whose claims are looked at.
const MAX_ORDINALS: i64 = 16;

/// The objects that speak for those of one file.
pub(in crate::cli::check) struct Context {
    pub(in crate::cli::check) cluster: Snapshot,
    pub(in crate::cli::check) order: BatchOrder,
    /// Where the workloads, claims and autoscalers among them are, by the number.
    pub(in crate::cli::check) sources: BTreeSet<usize>,
    /// Claims of workloads that stand for nothing, as several definitions are equally near.
    ambiguous: Vec<(usize, ClaimNote)>,
    /// Claims of workloads that are defined in a folder apart.
    assumed: Vec<(usize, ClaimNote)>,
    /// Claims, by their namespace, whose class stands for nothing, as several are equally
    /// near.
    classless: Vec<(Text, ClaimNote)>,
}

/// Something to know about a claim that a workload names.
pub(in crate::cli::check) struct ClaimNote {
    pub(in crate::cli::check) claim: Text,
    /// A sentence or two.
    pub(in crate::cli::check) text: String,
}

impl Context {
    /// What is only assumed where the object number `number` is judged.
    pub(in crate::cli::check) fn assumed_of(
        &self,
        number: usize,
        namespace: &str,
    ) -> impl Iterator<Item = &ClaimNote> {
        let classless = self.classless.iter();
        let classless = classless.filter(move |(of, _)| of == namespace);
        of(&self.assumed, number).chain(classless.map(|(_, note)| note))
    }

    /// What is ambiguous where the object number `number` is judged.
    pub(in crate::cli::check) fn ambiguous_of(
        &self,
        number: usize,
    ) -> impl Iterator<Item = &ClaimNote> {
        of(&self.ambiguous, number)
    }
}

fn of(notes: &[(usize, ClaimNote)], number: usize) -> impl Iterator<Item = &ClaimNote> {
    let of_it = notes.iter().filter(move |(it, _)| *it == number);
    of_it.map(|(_, note)| note)
}

impl Scopes<'_> {
    /// What speaks for the members `numbers`, all of one file.
    pub(in crate::cli::check) fn around(&self, numbers: &[usize]) -> Context {
        let from = self.members[numbers[0]].source;
        let mut walk = Walk {
            scopes: self,
            from,
            taken: HashMap::new(),
            waiting: Vec::new(),
            ambiguous: Vec::new(),
            assumed: Vec::new(),
            classless: Vec::new(),
        };
        // Of two with one name in a file, the last one counts.
        for number in numbers.iter().rev() {
            walk.take(*number, Depth::JudgedObject);
        }
        while let Some((number, depth)) = walk.waiting.pop() {
            walk.visit(number, depth);
        }
        for driver in &self.drivers {
            walk.named(&global(ObjectKind::CsiDriver, driver));
        }
        let mut taken: Vec<usize> = walk.taken.into_values().collect();
        taken.sort_unstable();
        let mut cluster = Snapshot::new();
        for number in &taken {
            cluster.apply(self.members[*number].object.clone());
        }
        taken.retain(|number| self.members[*number].judged);
        let judged = taken.iter().map(|it| (*it, self.members[*it].object));
        Context {
            cluster,
            order: BatchOrder::of(judged),
            sources: taken.iter().map(|it| self.members[*it].source).collect(),
            ambiguous: walk.ambiguous,
            assumed: walk.assumed,
            classless: walk.classless,
        }
    }
}

/// How far an object is from those that are judged.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    /// It is one of them.
    JudgedObject,
    /// One of them names it, or it shares a claim with one of them.
    Overlay,
    /// It is a fact and no more.
    Fact,
}

struct Walk<'s, 'g> {
    scopes: &'s Scopes<'g>,
    from: usize,
    taken: HashMap<Key, usize>,
    waiting: Vec<(usize, Depth)>,
    ambiguous: Vec<(usize, ClaimNote)>,
    assumed: Vec<(usize, ClaimNote)>,
    classless: Vec<(Text, ClaimNote)>,
}

impl Walk<'_, '_> {
    fn take(&mut self, number: usize, depth: Depth) {
        let key = key(self.scopes.members[number].object);
        let known = self.taken.contains_key(&key);
        if !known {
            self.taken.insert(key, number);
        }
        if !known || depth == Depth::JudgedObject {
            self.waiting.push((number, depth));
        }
    }

    /// Takes what `key` stands for here, or else in other scopes.
    fn named(&mut self, key: &Key) -> Answer {
        let answer = match self.scopes.answer(self.from, key) {
            Answer::Nothing => self.scopes.elsewhere(self.from, key),
            answer => answer,
        };
        if let Answer::One(number) = answer {
            self.take(number, Depth::Fact);
        }
        answer
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
                if depth == Depth::JudgedObject {
                    self.users(number, &metadata.namespace, &metadata.name, Some(number));
                }
                match scopes.nearness(self.from, source) {
                    Some(_) => self.storage(claim),
                    None => self.storage_elsewhere(source, claim),
                }
            }
            Object::Autoscaler(_) if depth == Depth::JudgedObject => {
                let target = target(scopes.members[number].object);
                let target = target.and_then(|target| scopes.one(source, &target));
                if let Some(target) = target {
                    self.take(target, Depth::Overlay);
                }
            }
            _ => {}
        }
        if let Some(metadata) = scopes.members[number].object.metadata() {
            let namespace = global(ObjectKind::Namespace, &metadata.namespace);
            if let Some(namespace) = scopes.one(self.from, &namespace) {
                self.take(namespace, Depth::Fact);
            }
        }
    }

    /// Takes what decides which storage a claim has or gets.
    fn storage(&mut self, claim: &Claim) {
        let scopes = self.scopes;
        let class = match claim.class() {
            Some(class) => self.named(&global(ObjectKind::StorageClass, class)),
            None => self.default_class(),
        };
        if let Answer::Several(classes) = class
            && !scopes.is_settled(claim, &classes)
        {
            self.classless.push((
                claim.metadata.namespace.clone(),
                ClaimNote {
                    claim: claim.metadata.name.clone(),
                    text: self.several_classes(claim.class(), &classes),
                },
            ));
        }
        if !claim.spec.volume_name.is_empty() {
            self.named(&global(ObjectKind::Volume, &claim.spec.volume_name));
        }
        self.overlay(&scopes.volumes);
    }

    /// The same for a claim of another scope, as its source `there` sees it. What decides
    /// about it may be named like, and be another one than, what decides about the claims of
    /// this one; default classes and free volumes there say nothing of these.
    fn storage_elsewhere(&mut self, there: usize, claim: &Claim) {
        let scopes = self.scopes;
        let class = claim.class().map(|it| global(ObjectKind::StorageClass, it));
        let volume = &claim.spec.volume_name;
        let volume = (!volume.is_empty()).then(|| global(ObjectKind::Volume, volume));
        for key in class.into_iter().chain(volume) {
            if matches!(scopes.answer(self.from, &key), Answer::Nothing)
                && let Answer::One(number) = scopes.answer(there, &key)
            {
                self.take(number, Depth::Fact);
            }
        }
    }

    /// Takes the nearest default class.
    fn default_class(&mut self) -> Answer {
        let answer = self
            .scopes
            .nearest_beside(self.from, &self.scopes.default_classes);
        if let Answer::One(number) = answer {
            self.take(number, Depth::Fact);
        }
        answer
    }

    /// Takes those that lie in the folder of this file, or above, or inside: of several
    /// with one name the nearest, where they agree. `numbers`: one for each name.
    fn overlay(&mut self, numbers: &[usize]) {
        let scopes = self.scopes;
        for number in numbers {
            let key = key(scopes.members[*number].object);
            let namesakes = scopes.definitions.get(&key).map_or(&[][..], Vec::as_slice);
            if let Answer::One(nearest) = scopes.nearest_beside(self.from, namesakes) {
                self.take(nearest, Depth::Fact);
            }
        }
    }

    fn workload(&mut self, number: usize, workload: &Workload, depth: Depth) {
        let scopes = self.scopes;
        let Member { source, hook, .. } = scopes.members[number];
        let metadata = &workload.metadata;
        let alone = hook == Some(HelmHook::OutsideRelease);
        for template in &workload.claim_templates {
            self.storage(template);
        }
        let ephemeral: Vec<_> = workload.ephemeral_claims().collect();
        for (claim, template) in ephemeral {
            self.storage(template);
            if depth == Depth::JudgedObject {
                self.users(number, &metadata.namespace, &claim.into(), None);
            }
        }
        let runtime_class = &workload.template.runtime_class;
        if !runtime_class.is_empty() {
            self.named(&global(ObjectKind::RuntimeClass, runtime_class));
        }
        for claim in claims(workload) {
            let key = (ObjectKind::Claim, metadata.namespace.clone(), claim.clone());
            let answer = scopes.answer(source, &key);
            let definition = match answer {
                // Who tries something out with a pod means no claim of another folder.
                Answer::One(definition)
                    if workload.kind == WorkloadKind::Pod
                        && !scopes.belongs_to(source, scopes.members[definition].source) =>
                {
                    None
                }
                Answer::One(definition) => {
                    self.take(definition, Depth::Fact);
                    let defined = scopes.members[definition].source;
                    if depth == Depth::JudgedObject
                        && let Object::Claim(claim) = scopes.members[definition].object
                    {
                        for twin in scopes.claims_of_twins(claim) {
                            let definition = scopes.one(source, &twin);
                            if let Some(definition) = definition {
                                self.take(definition, Depth::Fact);
                            }
                            self.users(number, &twin.1, &twin.2, definition);
                        }
                    }
                    if depth == Depth::JudgedObject && scopes.is_apart(source, defined) {
                        let assumed = ClaimNote {
                            claim: claim.clone(),
                            text: apart(claim, scopes.names[defined]),
                        };
                        self.assumed.push((number, assumed));
                    }
                    Some(definition)
                }
                Answer::Several(definitions) => {
                    if depth == Depth::JudgedObject {
                        let note = ClaimNote {
                            claim: claim.clone(),
                            text: self.several(claim, &definitions),
                        };
                        self.ambiguous.push((number, note));
                    }
                    continue;
                }
                Answer::Nothing => {
                    self.claim_elsewhere(number, claim, &key, depth);
                    None
                }
            };
            if depth == Depth::JudgedObject && !alone {
                self.users(number, &metadata.namespace, claim, definition);
            }
        }
        if depth == Depth::JudgedObject && !alone {
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
            self.overlay(others.map_or(&[], Vec::as_slice));
        }
    }

    /// Takes a claim that its workload does not see, but that other scopes agree on.
    fn claim_elsewhere(&mut self, number: usize, claim: &Text, key: &Key, depth: Depth) {
        let scopes = self.scopes;
        let source = scopes.members[number].source;
        let (notes, text) = match scopes.elsewhere(source, key) {
            Answer::Nothing => return,
            Answer::One(definition) => {
                self.take(definition, Depth::Fact);
                let file = scopes.names[scopes.members[definition].source];
                (&mut self.assumed, rendered_apart(claim, file))
            }
            Answer::Several(definitions) => {
                let text = self.several_apart(claim, &definitions);
                (&mut self.ambiguous, text)
            }
        };
        if depth == Depth::JudgedObject {
            let claim = claim.clone();
            notes.push((number, ClaimNote { claim, text }));
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
                    && !matches!(hook, Some(HelmHook::OutsideRelease | HelmHook::Test))
                    && (is_fact && definition.is_none() || means_it())
            })
            .collect();
        users.sort_by_key(|user| Reverse(scopes.nearness(self.from, scopes.members[*user].source)));
        for user in users.into_iter().take(MAX_USERS) {
            self.take(user, Depth::Overlay);
        }
    }

    fn several(&self, claim: &str, definitions: &[usize]) -> String {
        format!(
            "claim \"{claim}\" is defined in {}, which are equally near, so none of them is taken. Check one folder at a time, or add the claim to the facts about the cluster.",
            self.files(definitions)
        )
    }

    fn several_apart(&self, claim: &str, definitions: &[usize]) -> String {
        format!(
            "claim \"{claim}\" is defined in {}, which are checked apart from this and differ, so none of them is taken. Add the claim to the facts about the cluster.",
            self.files(definitions)
        )
    }

    /// `name`: the one that the claim names.
    fn several_classes(&self, name: Option<&str>, classes: &[usize]) -> String {
        let files = self.files(classes);
        let what = match name {
            Some(name) => format!("StorageClass \"{name}\" is defined differently in {files}"),
            None => format!("Different StorageClasses are marked as the default one in {files}"),
        };
        format!(
            "{what}, so none of them is taken. Add the right one to the facts about the cluster."
        )
    }

    /// Where they are defined.
    fn files(&self, definitions: &[usize]) -> String {
        let mut files: Vec<String> = definitions
            .iter()
            .map(|number| self.scopes.names[self.scopes.members[*number].source].to_owned())
            .collect();
        files.sort();
        files.dedup();
        let more = files.len().saturating_sub(3);
        files.truncate(3);
        if more > 0 {
            files.push(format!("{more} more"));
        }
        listed(&files)
    }
}

fn rendered_apart(claim: &str, file: &str) -> String {
    format!(
        "The claim \"{claim}\" was found in {file}, which is checked apart from this, so this is an assumption. To be sure, add the claim to the facts about the cluster."
    )
}

fn apart(claim: &str, file: &str) -> String {
    format!(
        "The claim \"{claim}\" was found in {file}, an unrelated folder, so this is an assumption. To be sure, check the two folders on their own, or add the claim to the facts about the cluster."
    )
}

fn listed(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}
