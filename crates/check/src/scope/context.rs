//! Collects the objects that are facts for those of one file, starting from the places that name
//! them.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap, HashSet};

use super::super::ids::{ObjectId, TextId};
use super::super::parse::Parsed;
use super::{Answer, Key, Resolved, Scopes, claim_key, global, key, target_key};
use engine::model::Text;
use engine::model::claim::Claim;
use engine::model::object::{Object, ObjectKind};
use engine::model::words::some;
use engine::model::workload::{Workload, WorkloadKind};
use engine::snapshot::{BatchOrder, Snapshot};
use manifest::helm_hook::HelmHook;
use manifest::objects::Item;

/// The most users of one claim that are judged together.
const MAX_USERS: usize = 64;

/// The most pods of a StatefulSet whose claims are considered.
const MAX_ORDINALS: i64 = 16;

/// The objects that are facts for those of one file.
pub(crate) struct Context<'p> {
    pub(crate) parsed: &'p Parsed,
    pub(crate) cluster: Snapshot,
    pub(crate) order: BatchOrder,
    /// The numbers of the incomplete ones.
    incomplete: Vec<ObjectId>,
    /// The name of something that was not rendered and may change one of them.
    doubt: Option<&'p str>,
    notes: Notes,
}

/// The notes about claims that are not certain.
#[derive(Default)]
struct Notes {
    /// The ambiguous claims, each with its workload: several definitions are equally near, and none
    /// is used.
    ambiguous: Vec<(ObjectId, ClaimNote)>,
    /// The claims, each with its workload, that are defined in an unrelated folder.
    assumed: Vec<(ObjectId, ClaimNote)>,
    /// The claims, by their namespace, whose class is ambiguous, because several definitions are
    /// equally near.
    classless: Vec<(Text, ClaimNote)>,
}

/// The advice if several definitions are equally near.
pub(crate) const APPLIED_TOGETHER: &str = "Check only manifests that are applied together";

/// A note about a claim that a workload names.
pub(crate) struct ClaimNote {
    pub(crate) claim: Text,
    /// One or two sentences.
    pub(crate) text: String,
    /// Whether it is only about the other users of the claim.
    pub(crate) is_about_users: bool,
}

impl ClaimNote {
    fn new(claim: &Text, text: String) -> Self {
        Self { claim: claim.clone(), text, is_about_users: false }
    }
}

impl<'p> Context<'p> {
    /// The name, as shown in messages, of something that was not rendered and may change fields
    /// that matter for the object in this context.
    pub(crate) fn doubt(&self, known: &Item) -> Option<&'p str> {
        self.parsed.text(known).doubt.as_deref().or(self.doubt)
    }

    /// The incomplete workloads.
    pub(crate) fn incomplete(&self) -> impl Iterator<Item = &'p Workload> {
        self.incomplete.iter().filter_map(|id| match &self.parsed.object(*id).object {
            Object::Workload(workload) => Some(workload),
            _ => None,
        })
    }

    /// The notes on assumptions in the judgement of the object.
    pub(crate) fn assumed_of(&self, id: ObjectId) -> impl Iterator<Item = &ClaimNote> {
        let object = &self.parsed.object(id).object;
        let namespace = &object.metadata().namespace;
        let classless = self.notes.classless.iter().filter(move |(of, _)| of == namespace);
        of(&self.notes.assumed, id).chain(classless.map(|(_, note)| note))
    }

    /// The notes on ambiguous claims in the judgement of the object.
    pub(crate) fn ambiguous_of(&self, id: ObjectId) -> impl Iterator<Item = &ClaimNote> {
        of(&self.notes.ambiguous, id)
    }
}

fn of(notes: &[(ObjectId, ClaimNote)], id: ObjectId) -> impl Iterator<Item = &ClaimNote> {
    notes.iter().filter(move |(workload, _)| *workload == id).map(|(_, note)| note)
}

impl<'p> Scopes<'p> {
    /// The context of the objects, all from one file.
    pub(crate) fn around(&self, ids: &[ObjectId]) -> Context<'p> {
        let from = self.source(ids[0]);
        let mut walk = Walk {
            scopes: self,
            from,
            taken: HashMap::new(),
            waiting: Vec::new(),
            has_volumes: false,
            has_workloads: HashSet::new(),
            notes: Notes::default(),
        };
        // Of two objects with one name in a file, the last one counts.
        for id in ids.iter().rev() {
            walk.take(*id, Depth::Judged);
        }
        while let Some((id, depth)) = walk.waiting.pop() {
            walk.visit(id, depth);
        }
        for driver in &self.drivers {
            walk.named(&key(self.object(*driver)));
        }
        let mut taken: Vec<ObjectId> = walk.taken.into_values().collect();
        taken.sort_unstable();
        let mut cluster = Snapshot::new();
        for id in &taken {
            cluster.apply(self.object(*id).clone());
        }
        taken.retain(|id| self.parsed.object(*id).is_judged());
        let doubts = taken.iter().map(|id| {
            let known = self.parsed.object(*id);
            self.parsed.text(known).doubt.as_deref()
        });
        Context {
            parsed: self.parsed,
            cluster,
            order: BatchOrder::of(taken.iter().map(|id| (id.0, self.object(*id)))),
            doubt: doubts.flatten().next(),
            incomplete: taken
                .iter()
                .copied()
                .filter(|id| self.parsed.object(*id).incomplete().is_some())
                .collect(),
            notes: walk.notes,
        }
    }
}

/// The distance of an object from the judged ones.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    /// It is one of the judged objects.
    Judged,
    /// A judged object names it, or it shares a claim with one.
    Neighbor,
    /// It is only a fact.
    Fact,
}

struct Walk<'s, 'p> {
    scopes: &'s Scopes<'p>,
    from: TextId,
    taken: HashMap<Key, ObjectId>,
    waiting: Vec<(ObjectId, Depth)>,
    /// Whether the volumes that nobody names were collected.
    has_volumes: bool,
    /// The namespaces whose workloads were collected.
    has_workloads: HashSet<Text>,
    notes: Notes,
}

impl<'p> Walk<'_, 'p> {
    fn take(&mut self, id: ObjectId, depth: Depth) {
        let key = key(self.scopes.object(id));
        let known = self.taken.contains_key(&key);
        if !known {
            self.taken.insert(key, id);
        }
        if !known || depth == Depth::Judged {
            self.waiting.push((id, depth));
        }
    }

    /// Collects the definition of `key` as seen from `source`, if there is exactly one.
    fn take_one(&mut self, source: TextId, key: &Key) -> Option<ObjectId> {
        let definition = self.scopes.one(source, key)?;
        self.take(definition, Depth::Fact);
        Some(definition)
    }

    /// Collects the definition of `key` in this scope, or otherwise in other scopes.
    fn named(&mut self, key: &Key) -> Answer {
        let answer = match self.scopes.answer(self.from, key) {
            Answer::Nothing => self.scopes.elsewhere(self.from, key),
            answer => answer,
        };
        self.taken(answer)
    }

    /// Collects the object of the answer.
    fn taken(&mut self, answer: Answer) -> Answer {
        if let Answer::One(id) = answer {
            self.take(id, Depth::Fact);
        }
        answer
    }

    fn visit(&mut self, id: ObjectId, depth: Depth) {
        let scopes = self.scopes;
        let source = scopes.source(id);
        match scopes.object(id) {
            Object::Workload(workload) if depth != Depth::Fact => {
                self.workload(id, workload, depth);
            }
            Object::Claim(claim) => {
                if depth == Depth::Judged {
                    let key = key(scopes.object(id));
                    self.users(id, &key, Resolved::One(id));
                }
                match scopes.places.nearness(self.from, source) {
                    Some(_) => self.storage(claim),
                    None => self.storage_elsewhere(source, claim),
                }
            }
            Object::Autoscaler(autoscaler) if depth == Depth::Judged => {
                let target = &autoscaler.spec.scale_target_ref;
                let workload = target_key(&autoscaler.metadata.namespace, target)
                    .and_then(|target| scopes.one(source, &target));
                if let Some(workload) = workload {
                    self.take(workload, Depth::Neighbor);
                }
            }
            _ => {}
        }
        let metadata = scopes.object(id).metadata();
        let namespace = global(ObjectKind::Namespace, &metadata.namespace);
        self.take_one(self.from, &namespace);
    }

    /// Collects the objects that decide which storage a claim has or gets.
    fn storage(&mut self, claim: &Claim) {
        let scopes = self.scopes;
        let class = match claim.class() {
            Some(class) => self.named(&global(ObjectKind::StorageClass, class)),
            None => self.taken(scopes.nearest_beside(self.from, &scopes.default_classes)),
        };
        if let Answer::Several(classes) = class
            && !scopes.is_settled(claim, &classes)
        {
            let metadata = &claim.metadata;
            let text = self.several_classes(claim.class(), &classes);
            let note = ClaimNote::new(&metadata.name, text);
            self.notes.classless.push((metadata.namespace.clone(), note));
        }
        if !claim.spec.volume_name.is_empty() {
            self.named(&global(ObjectKind::Volume, &claim.spec.volume_name));
        }
        if !self.has_volumes {
            self.has_volumes = true;
            self.take_nearest(&scopes.volumes);
        }
    }

    /// Does the same for a claim of another scope, as seen from its source `there`. The class and
    /// the volume of that claim may have the name of different objects in this scope. Default
    /// classes and free volumes of the other scope do not matter for the claims of this one.
    fn storage_elsewhere(&mut self, there: TextId, claim: &Claim) {
        let scopes = self.scopes;
        let class = claim.class().map(|name| global(ObjectKind::StorageClass, name));
        let name = &claim.spec.volume_name;
        let volume = (!name.is_empty()).then(|| global(ObjectKind::Volume, name));
        for key in class.into_iter().chain(volume) {
            if matches!(scopes.answer(self.from, &key), Answer::Nothing)
                && let Answer::One(id) = scopes.answer(there, &key)
            {
                self.take(id, Depth::Fact);
            }
        }
    }

    /// Collects the objects in the folder of this file, above it or inside it; of several with one
    /// name, the nearest, if the nearest agree. `numbers` has one object for each name.
    fn take_nearest(&mut self, ids: &[ObjectId]) {
        let scopes = self.scopes;
        for id in ids {
            let key = key(scopes.object(*id));
            let namesakes = scopes.definitions(&key);
            self.taken(scopes.nearest_beside(self.from, namesakes));
        }
    }

    fn workload(&mut self, id: ObjectId, workload: &Workload, depth: Depth) {
        let scopes = self.scopes;
        let namespace = &workload.metadata.namespace;
        let alone = scopes.parsed.object(id).hook == Some(HelmHook::OutsideRelease);
        let shares = depth == Depth::Judged && !alone;
        for template in &workload.claim_templates {
            self.storage(template);
        }
        for (claim, template) in workload.ephemeral_claims() {
            self.storage(template);
            if depth == Depth::Judged {
                let key = claim_key(namespace, claim);
                self.users(id, &key, Resolved::Missing);
            }
        }
        let runtime_class = &workload.template.runtime_class;
        if !runtime_class.is_empty() {
            self.named(&global(ObjectKind::RuntimeClass, runtime_class));
        }
        let with_template = self.template_source(id, workload).unwrap_or(workload);
        for claim in with_template.template.claims() {
            let key = claim_key(namespace, claim.clone());
            let definition = self.claim(id, workload.kind, &key, depth);
            if shares {
                self.users(id, &key, definition);
            }
        }
        if shares {
            self.claims_of_templates(id, workload);
        }
        let own = key(scopes.object(id));
        for scaler in scopes.scalers.get(&own).into_iter().flatten() {
            if scopes.one(scopes.source(*scaler), &own) == Some(id) {
                self.take(*scaler, Depth::Fact);
            }
        }
        // An affinity selects by labels, so it may apply to any workload.
        if !workload.template.affinity.is_empty()
            && !alone
            && self.has_workloads.insert(namespace.clone())
            && let Some(others) = scopes.workloads.get(namespace)
        {
            self.take_nearest(scopes.around_in(others, self.from));
        }
    }

    /// Collects the workload that has the pod template of a Rollout, if it is a different one.
    fn template_source(&mut self, id: ObjectId, workload: &Workload) -> Option<&'p Workload> {
        let scopes = self.scopes;
        let source = workload.template_source.as_ref()?;
        let key = target_key(&workload.metadata.namespace, source)?;
        let definition = self.take_one(scopes.source(id), &key)?;
        match scopes.object(definition) {
            Object::Workload(target) => Some(target),
            _ => None,
        }
    }

    /// Collects a claim that the workload names, and returns its definition.
    fn claim(&mut self, id: ObjectId, kind: WorkloadKind, key: &Key, depth: Depth) -> Resolved {
        let scopes = self.scopes;
        let source = scopes.source(id);
        let (_, _, name) = key;
        let note = |text| (id, ClaimNote::new(name, text));
        match scopes.answer(source, key) {
            Answer::One(definition) => {
                let defined = scopes.source(definition);
                // A Pod is often a trial, and does not refer to a claim in another folder.
                let is_far =
                    kind == WorkloadKind::Pod && !scopes.places.belongs_to(source, defined);
                if is_far && !(scopes.is_only(key) && scopes.names_its_namespace(id)) {
                    return Resolved::Missing;
                }
                self.take(definition, Depth::Fact);
                if depth == Depth::Judged {
                    if let Object::Claim(claim) = scopes.object(definition)
                        && !is_far
                    {
                        self.twins(id, claim);
                    }
                    if is_far || scopes.places.is_apart(source, defined) {
                        let file = scopes.name(definition);
                        self.notes.assumed.push(note(format!(
                                                        "The claim \"{name}\" was found in {file}, an unrelated folder, so this is an assumption. To be sure, check the two folders on their own, or add the claim to the facts about the cluster."
                        )));
                    }
                }
                Resolved::One(definition)
            }
            Answer::Several(definitions) => {
                if depth == Depth::Judged {
                    let text = self.several(name, &definitions, "are equally near");
                    self.notes.ambiguous.push(note(text));
                }
                Resolved::Ambiguous
            }
            Answer::Nothing => {
                let found = self.claim_elsewhere(id, key, depth);
                let is_meant = scopes.is_only(key) && scopes.names_its_namespace(id);
                found.filter(|_| is_meant).into()
            }
        }
    }

    /// Collects the other claims for the storage to which `claim` is bound, and their users.
    fn twins(&mut self, id: ObjectId, claim: &Claim) {
        let scopes = self.scopes;
        for twin in scopes.claims_of_twins(claim) {
            let definition = self.take_one(scopes.source(id), &twin);
            self.users(id, &twin, definition.into());
        }
    }

    /// Collects the claims that a StatefulSet creates for its first pods.
    fn claims_of_templates(&mut self, id: ObjectId, workload: &Workload) {
        let source = self.scopes.source(id);
        for stem in workload.claim_stems() {
            let first = workload.first_ordinal;
            let pods = workload.replicas.min(MAX_ORDINALS);
            for ordinal in first..first.saturating_add(pods) {
                let claim = format!("{stem}-{ordinal}");
                let key = claim_key(&workload.metadata.namespace, claim);
                let definition = self.take_one(source, &key);
                self.users(id, &key, definition.into());
            }
        }
    }

    /// Collects a claim that is not in the scope of its workload, but on which other scopes agree.
    fn claim_elsewhere(&mut self, id: ObjectId, key: &Key, depth: Depth) -> Option<ObjectId> {
        let scopes = self.scopes;
        let (_, _, claim) = key;
        let (found, notes, text) = match scopes.elsewhere(scopes.source(id), key) {
            Answer::Nothing => return None,
            Answer::One(definition) => {
                self.take(definition, Depth::Fact);
                let file = scopes.name(definition);
                let text = format!(
                    "The claim \"{claim}\" was found in {file}, which is checked apart from this, so this is an assumption. To be sure, add the claim to the facts about the cluster."
                );
                (Some(definition), &mut self.notes.assumed, text)
            }
            Answer::Several(definitions) => {
                let how = "are checked apart from this and differ";
                let text = self.several(claim, &definitions, how);
                (None, &mut self.notes.ambiguous, text)
            }
        };
        if depth == Depth::Judged {
            notes.push((id, ClaimNote::new(claim, text)));
        }
        found
    }

    /// Collects the workloads that use the same claim as the object does. `definition` is the claim
    /// to which it refers; if that is missing, the facts may have it.
    fn users(&mut self, id: ObjectId, key: &Key, definition: Resolved) {
        let scopes = self.scopes;
        let is_fact = scopes.is_fact(key);
        let meanings = scopes.meanings(key);
        let alike = match definition {
            Resolved::Ambiguous => None,
            Resolved::Missing if is_fact => Some(&meanings.all),
            Resolved::One(_) | Resolved::Missing => meanings.by_definition.get(&definition),
        };
        let Some(alike) = alike else { return };
        let near = scopes.around_in(&alike.all, self.from);
        let places = &scopes.places;
        let is_user = |user: &ObjectId| {
            let source = scopes.source(*user);
            *user != id
                && (is_fact
                    || !places.is_apart(self.from, source)
                        && (definition != Resolved::Missing || places.is_beside(self.from, source)))
        };
        let mut users: Vec<ObjectId> = near.iter().copied().filter(is_user).collect();
        if users.is_empty() && scopes.is_only(key) && scopes.names_its_namespace(id) {
            return self.far_users(id, key, near);
        }
        let nearness = |user: ObjectId| places.nearness(self.from, scopes.source(user));
        users.sort_by_key(|user| (Reverse(nearness(*user)), *user));
        users.truncate(MAX_USERS);
        // The later of two users is at fault, so the earliest user is always included.
        users.extend(alike.first.filter(is_user));
        for user in users {
            self.take(user, Depth::Neighbor);
        }
    }

    /// Collects the workloads that use the claim in unrelated folders or other scopes, and name its
    /// namespace.
    fn far_users(&mut self, id: ObjectId, key: &Key, users: &[ObjectId]) {
        let scopes = self.scopes;
        let (_, _, claim) = key;
        let others =
            users.iter().copied().filter(|user| *user != id && scopes.names_its_namespace(*user));
        for user in others.take(MAX_USERS) {
            self.take(user, Depth::Neighbor);
            let file = scopes.name(user);
            let text = format!(
                "The claim \"{claim}\" is also used in {file}, which is checked apart from this, so this is an assumption. To be sure, check the two together as they are applied."
            );
            let note = ClaimNote { is_about_users: true, ..ClaimNote::new(claim, text) };
            self.notes.assumed.push((id, note));
        }
    }

    /// `how` says why no definition is better than the others.
    fn several(&self, claim: &str, definitions: &[ObjectId], how: &str) -> String {
        format!(
            "claim \"{claim}\" is defined in {}, which {how}, so none of them is taken. {APPLIED_TOGETHER}, or add the claim to the facts about the cluster.",
            self.files(definitions)
        )
    }

    /// `name` is the class that the claim names.
    fn several_classes(&self, name: Option<&str>, classes: &[ObjectId]) -> String {
        let files = self.files(classes);
        let what = match name {
            Some(name) => format!("StorageClass \"{name}\" is defined differently in {files}"),
            None => format!("Different StorageClasses are marked as the default one in {files}"),
        };
        format!(
            "{what}, so none of them is taken. Add the right one to the facts about the cluster."
        )
    }

    /// The files that contain the definitions.
    fn files(&self, definitions: &[ObjectId]) -> String {
        let files: BTreeSet<&str> = definitions.iter().map(|id| self.scopes.name(*id)).collect();
        some(files.into_iter().map(str::to_owned).collect())
    }
}
