//! The second stage: from texts to objects to judge and the facts they are for each other.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::discover::{Discovered, ReadOptions, unread};
use super::namespace::Namespaces;
use super::parsed_object::ParsedObject;
use super::progress::Progress;
use crate::report::{Summary, Unread};
use engine::model::object::Object;
use engine::snapshot::Snapshot;
use manifest::kustomization::{FILE_NAMES, Kustomization};
use manifest::objects::{Item, read_objects};
use manifest::source::Source;

/// All objects of the files.
pub(super) struct Parsed {
    pub(super) discovered: Discovered,
    /// In the order of the sources and of their text.
    pub(super) objects: Vec<ParsedObject>,
    /// What is known beside the files.
    pub(super) facts: Snapshot,
    /// Whether the facts hold the cluster's classes, so that a class which is not
    /// in view is not in the cluster.
    pub(super) whole: bool,
    /// Templates and kinds of objects that several kustomizations take from one file.
    taken_twice: HashSet<(Box<str>, String)>,
    pub(super) unread: Vec<Unread>,
    /// The numbers, but for the findings.
    pub(super) summary: Summary,
    /// When they are judged, by which overrides end.
    pub(super) now: Timestamp,
}

/// Reads the objects of all sources. `facts` are known beside them.
pub(super) fn parse(discovered: Discovered, facts: Snapshot, options: ReadOptions<'_>) -> Parsed {
    let sources = &discovered.sources;
    let progress = Progress::of(sources.len());
    let read = read_objects(sources, true, || progress.step());
    drop(progress);

    let mut unread_files = discovered.unread.clone();
    let mut summary = Summary {
        files: sources.len() - discovered.rendered() + unread_files.len(),
        rendered: discovered.rendered(),
        links: discovered.links,
        others: read.others,
        templates: read.templates,
        skipped: read.skipped,
        unopened: discovered.counts.clone(),
        ..Summary::default()
    };
    for (kind, count) in read.unopened {
        *summary.unopened.entry(kind).or_default() += count;
    }
    let named = sources.iter().map(|source| (source.name.as_str(), source));
    let named: HashMap<&str, &Source> = named.collect();
    unread_files.extend(read.errors.into_iter().map(|error| {
        let source = named.get(error.file.as_str()).copied();
        unread(error, source, options.repository)
    }));
    summary.unreadable = unread_files.len();

    let kustomizations = Kustomizations::among(sources);
    let mut objects = Vec::with_capacity(read.items.len());
    for item in read.items {
        let source = &sources[item.place.source];
        if item.missing.is_some() || kustomizations.have_as_patch(source) {
            summary.fragments += 1;
        } else {
            objects.extend(known(item));
        }
    }
    let namespaces = Namespaces::of(&objects, sources, options.namespace);
    for known in &mut objects {
        let source = &sources[known.place.source];
        let of_kustomization = kustomizations.namespace_beside(source);
        namespaces.complete(known, source, of_kustomization);
        bind(&mut known.object, &facts);
        // The API server takes it off what it creates, so it excuses nothing.
        if let Some(metadata) = known.object.metadata_mut() {
            metadata.deleting = false;
        }
    }
    summary.judged = objects.iter().filter(|known| known.is_judged()).count();
    summary.facts = objects.len() - summary.judged;
    Parsed {
        whole: !facts.view().storage_classes().is_empty(),
        taken_twice: taken_twice(&objects),
        discovered,
        objects,
        facts,
        unread: unread_files,
        summary,
        now: Timestamp::now(),
    }
}

impl Parsed {
    /// Adds what could not be changed.
    pub(super) fn refuse(&mut self, failed: Vec<Unread>) {
        self.unread.extend(failed);
        self.summary.unreadable = self.unread.len();
    }

    /// Whether several kustomizations take an object of its kind from the same file.
    pub(super) fn is_taken_twice(&self, known: &ParsedObject) -> bool {
        known.template.as_ref().is_some_and(|template| {
            let kind = known.reference.kind.to_string();
            self.taken_twice.contains(&(template.clone(), kind))
        })
    }

    /// The source that the object stands in.
    pub(super) fn source(&self, known: &ParsedObject) -> &Source {
        &self.discovered.sources[known.place.source]
    }
}

fn taken_twice(objects: &[ParsedObject]) -> HashSet<(Box<str>, String)> {
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

fn known(item: Item) -> Option<ParsedObject> {
    Some(ParsedObject {
        place: item.place,
        reference: item.reference,
        object: item.object,
        outline: item.outline?,
        hook: item.hook,
        template: item.template,
        notes: item.notes,
    })
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

/// What the kustomizations among the files say of the files beside them.
struct Kustomizations {
    /// By their folder, without links.
    all: HashMap<PathBuf, Kustomization>,
    /// Files that are patches, without links.
    patches: HashSet<PathBuf>,
    /// Folders of components, without links.
    components: HashSet<PathBuf>,
}

impl Kustomizations {
    fn among(sources: &[Source]) -> Self {
        let all: HashMap<PathBuf, Kustomization> = sources
            .iter()
            .filter_map(|source| {
                let path = source.real_path()?;
                let name = path.file_name()?;
                FILE_NAMES.iter().find(|known| name == **known)?;
                let read = Kustomization::read(&source.text().ok()?)?;
                Some((path.parent()?.to_owned(), read))
            })
            .collect();
        let real = |folder: &Path, name: &String| folder.join(name).canonicalize().ok();
        let (mut patches, mut components) = (HashSet::new(), HashSet::new());
        for (folder, read) in &all {
            // A patch may stand in the kustomization itself, and is no name then.
            let names = read.patches.iter().filter(|name| !name.contains('\n'));
            patches.extend(names.filter_map(|name| real(folder, name)));
            components.extend(read.components.iter().filter_map(|it| real(folder, it)));
            if read.is_component {
                components.insert(folder.clone());
            }
        }
        Self {
            all,
            patches,
            components,
        }
    }

    fn have_as_patch(&self, source: &Source) -> bool {
        !self.all.is_empty()
            && source.real_path().is_some_and(|path| {
                self.patches.contains(path)
                    || path.ancestors().any(|it| self.components.contains(it))
            })
    }

    /// The namespace that the kustomization in the folder of `source` gives.
    fn namespace_beside(&self, source: &Source) -> Option<&str> {
        let folder = source.real_path()?.parent()?;
        self.all.get(folder)?.namespace.as_deref()
    }
}
