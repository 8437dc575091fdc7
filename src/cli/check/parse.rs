//! The second stage: from texts to objects to judge and the facts they are for each other.

mod deliver;

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::discover::{Discovered, ReadOptions, unread};
use super::namespace::Namespaces;
use super::parsed_object::ParsedObject;
use super::progress::Progress;
use super::releases::remotes;
use engine::model::object::Object;
use engine::snapshot::Snapshot;
use manifest::delivery::Delivery;
use manifest::kustomization::{FILE_NAMES, Kustomization};
use manifest::objects::{Item, read_objects};
use manifest::source::Source;
use report::{Summary, Unopened, Unread};

/// All objects of the files.
pub(super) struct Parsed {
    pub(super) discovered: Discovered,
    /// In the order of the sources and of their text.
    pub(super) objects: Vec<ParsedObject>,
    /// What is known besides the files.
    pub(super) facts: Snapshot,
    /// Whether the facts hold the cluster's classes, so that a class which is not
    /// in view is not in the cluster.
    pub(super) whole: bool,
    /// Templates and kinds of objects that several kustomizations take from one file.
    taken_twice: HashSet<(Box<str>, String)>,
    pub(super) unread: Vec<Unread>,
    /// What could not be rendered.
    pub(super) unopened: Vec<Unopened>,
    /// The numbers, but for the findings.
    pub(super) summary: Summary,
    /// When they are judged, by which overrides end.
    pub(super) now: Timestamp,
}

/// Reads the objects of all sources, and of what the releases among them deliver. `facts` are
/// known besides them.
///
/// # Errors
/// Nothing can be rendered on this machine, or not with these options.
pub(super) fn parse(
    discovered: Discovered,
    facts: Snapshot,
    options: ReadOptions<'_>,
) -> io::Result<Parsed> {
    let mut reading = Reading {
        kustomizations: Kustomizations::among(&discovered.sources),
        unread: Vec::new(),
        refused: Vec::new(),
        unopened: Vec::new(),
        same: HashMap::new(),
        files: discovered.sources.len() - discovered.rendered() + discovered.unread.len(),
        discovered,
        objects: Vec::new(),
        deliveries: Vec::new(),
        remotes: remotes(options.repository),
        summary: Summary::default(),
        options,
    };
    let progress = Progress::of(reading.discovered.sources.len());
    reading.read(0, || progress.step());
    drop(progress);
    let sources = &reading.discovered.sources;
    let namespaces = Namespaces::of(&reading.objects, sources, options.namespace);
    let superseded = reading.deliver(&namespaces)?;
    Ok(reading.end(&namespaces, facts, &superseded))
}

/// What was read so far.
struct Reading<'a> {
    discovered: Discovered,
    objects: Vec<ParsedObject>,
    deliveries: Vec<Delivery>,
    remotes: Vec<String>,
    kustomizations: Kustomizations,
    /// What could not be read, but for what could not be opened or rendered.
    unread: Vec<Unread>,
    /// Releases that are not rendered, each with the number of its source.
    refused: Vec<(usize, Unopened)>,
    /// Those of them that are reported.
    unopened: Vec<Unopened>,
    /// By the number of a source that was rendered for a release, those that hold the same
    /// release again.
    same: HashMap<usize, Vec<usize>>,
    summary: Summary,
    /// How many files there are, those that cannot be opened with them.
    files: usize,
    options: ReadOptions<'a>,
}

impl Reading<'_> {
    /// Reads the sources from the number `first` on.
    fn read(&mut self, first: usize, done: impl Fn() + Sync) {
        let sources = &self.discovered.sources;
        let read = read_objects(&sources[first..], true, done);
        let summary = &mut self.summary;
        summary.others += read.others;
        summary.templates += read.templates;
        let counts = [
            (&mut summary.skipped, read.skipped),
            (&mut summary.unopened, read.unopened),
        ];
        for (all, counts) in counts {
            for (kind, count) in counts {
                *all.entry(kind).or_default() += count;
            }
        }
        let named = sources.iter().map(|source| (source.name.as_str(), source));
        let named: HashMap<&str, &Source> = named.collect();
        self.unread.extend(read.errors.into_iter().map(|error| {
            let source = named.get(error.file.as_str()).copied();
            unread(error, source, self.options.repository)
        }));
        for mut item in read.items {
            item.place.source += first;
            let source = &sources[item.place.source];
            if item.missing.is_some() || self.kustomizations.have_as_patch(source) {
                summary.fragments += 1;
            } else {
                self.objects.extend(known(item));
            }
        }
        for mut delivery in read.deliveries {
            delivery.place.source += first;
            let source = &sources[delivery.place.source];
            if !self.kustomizations.have_as_patch(source) {
                self.deliveries.push(delivery);
            }
        }
    }

    fn end(
        mut self,
        namespaces: &Namespaces<'_>,
        facts: Snapshot,
        superseded: &HashSet<usize>,
    ) -> Parsed {
        self.objects
            .retain(|known| !superseded.contains(&known.place.source));
        let discovered = self.discovered;
        for known in &mut self.objects {
            let number = known.place.source;
            let source = &discovered.sources[number];
            match discovered.release(number) {
                Some(release) => release.complete(known),
                None => {
                    let beside = self.kustomizations.namespace_beside(source);
                    namespaces.complete(known, source, beside);
                }
            }
            as_created(known, &facts);
        }
        let judged = self
            .objects
            .iter()
            .filter(|known| known.is_judged())
            .count();
        let mut summary = Summary {
            files: self.files,
            rendered: discovered.rendered() - superseded.len(),
            links: discovered.links,
            templates: self.summary.templates + discovered.templates,
            judged,
            facts: self.objects.len() - judged,
            ..self.summary
        };
        for (kind, count) in &discovered.counts {
            *summary.unopened.entry(kind.clone()).or_default() += count;
        }
        let mut unread = discovered.unread.clone();
        unread.extend(self.unread);
        let unopened = [&discovered.unopened[..], &self.unopened].concat();
        summary.unreadable = unread.len();
        Parsed {
            whole: !facts.view().storage_classes().is_empty(),
            taken_twice: taken_twice(&self.objects),
            discovered,
            objects: self.objects,
            facts,
            unread,
            unopened,
            summary,
            now: Timestamp::now(),
        }
    }
}

/// Makes the object what it is once the API server has it.
fn as_created(known: &mut ParsedObject, facts: &Snapshot) {
    bind(&mut known.object, facts);
    // The API server takes it off what it creates, so it excuses nothing.
    if let Some(metadata) = known.object.metadata_mut() {
        metadata.deleting = false;
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

    /// The source that contains the object.
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
