//! From files to objects to judge and the facts they are for each other.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};

use super::namespace::Namespaces;
use super::parsed_object::ParsedObject;
use super::progress::Progress;
use super::render::roots::Root;
use super::render::{self, Opened, RenderOptions, Unrendered};
use super::repository::Repository;
use super::scope::{Context, Member, Scopes};
use crate::report::{Summary, Unopened, Unread};
use engine::model::object::Object;
use engine::snapshot::Snapshot;
use manifest::error::ReadError;
use manifest::find::{Exclude, Found, find};
use manifest::helm_hook::HelmHook;
use manifest::kustomization::{FILE_NAMES, Kustomization};
use manifest::objects::{Item, read_objects};
use manifest::source::Source;

/// All that was read.
pub(super) struct Loaded {
    pub(super) sources: Vec<Source>,
    /// The checked files, without links, that are parts of what was rendered.
    pub(super) parts: HashSet<PathBuf>,
    /// What the last of the sources were rendered from, in the same order.
    roots: Vec<Root>,
    /// What could not be rendered.
    pub(super) unopened: Vec<Unopened>,
    /// What was to be rendered and could not be.
    not_rendered: Vec<Unread>,
    /// How many were not rendered, by kind.
    counts: BTreeMap<String, usize>,
    /// The files, without links, of kustomizations that were not rendered.
    unrendered: HashMap<PathBuf, Unrendered>,
    /// In the order of the sources and of their text.
    pub(super) objects: Vec<ParsedObject>,
    /// What is known beside the files.
    pub(super) facts: Snapshot,
    /// Whether the facts hold the cluster's classes, so that a class which is not
    /// in view is not in the cluster.
    pub(super) whole: bool,
    pub(super) unread: Vec<Unread>,
    /// The numbers, but for the findings.
    pub(super) summary: Summary,
}

/// How to read.
#[derive(Clone, Copy)]
pub(super) struct LoadOptions<'a> {
    pub(super) exclude: &'a Exclude,
    /// The namespace of objects that name none.
    pub(super) namespace: Option<&'a str>,
    pub(super) render: &'a RenderOptions,
    pub(super) repository: &'a Repository,
}

impl Loaded {
    /// Reads everything under `paths`, rendered where it is meant to be. `facts` are
    /// known beside it.
    ///
    /// # Errors
    /// Nothing can be rendered on this machine, or not with these options.
    pub(super) fn read(
        paths: &[PathBuf],
        kustomizations: render::Kustomizations,
        reading: LoadOptions<'_>,
        facts: Snapshot,
    ) -> io::Result<Self> {
        let Found {
            sources,
            errors,
            links,
            ..
        } = find(paths, reading.exclude, &mut io::stdin().lock());
        let unread = errors
            .into_iter()
            .map(|error| unread(error, &[], reading.repository))
            .collect();
        let summary = Summary {
            links,
            ..Summary::default()
        };
        let opened = render::open(sources, kustomizations, reading.namespace, reading.render)?;
        Ok(Self::of_opened(opened, unread, summary, reading, facts))
    }

    /// Reads the same files again, after they were changed in place, and renders the
    /// kustomizations that they make. What charts were rendered to stays.
    ///
    /// # Errors
    /// See [`Self::read`].
    pub(super) fn again(mut self, reading: LoadOptions<'_>) -> io::Result<Self> {
        let summary = Summary {
            links: self.summary.links,
            ..Summary::default()
        };
        let first = self.sources.len() - self.roots.len();
        let charts = self.sources.split_off(first);
        let kustomizations = render::Kustomizations::Opened;
        let mut opened = render::open(
            self.sources,
            kustomizations,
            reading.namespace,
            reading.render,
        )?;
        opened.sources.extend(charts);
        opened.roots.extend(self.roots);
        opened.unopened.splice(..0, self.unopened);
        for (kind, count) in self.counts {
            *opened.counts.entry(kind).or_default() += count;
        }
        Ok(Self::of_opened(
            opened,
            self.not_rendered,
            summary,
            reading,
            self.facts,
        ))
    }

    /// What the source was rendered from; `None` for a file.
    pub(super) fn root(&self, source: usize) -> Option<&Root> {
        let first = self.sources.len() - self.roots.len();
        self.roots.get(source.checked_sub(first)?)
    }

    /// The folder of a kustomization that was not rendered and may change what decides
    /// about the object in these surroundings.
    pub(super) fn changed_by(&self, known: &ParsedObject, context: &Context) -> Option<&Path> {
        let sources = [known.place.source];
        let mut sources = sources.iter().chain(&context.sources);
        sources.find_map(|source| self.unrendered_at(*source)?.changed_by.as_deref())
    }

    fn unrendered_at(&self, source: usize) -> Option<&Unrendered> {
        self.unrendered.get(self.sources[source].real_path()?)
    }

    fn of_opened(
        opened: Opened,
        mut unread_files: Vec<Unread>,
        mut summary: Summary,
        reading: LoadOptions<'_>,
        facts: Snapshot,
    ) -> Self {
        let whole = !facts.view().storage_classes().is_empty();
        let sources = opened.sources;
        unread_files.extend(opened.unread.iter().cloned());
        summary.rendered = opened.roots.len();
        summary.unopened.clone_from(&opened.counts);
        let progress = Progress::of(sources.len());
        let read = read_objects(&sources, true, || progress.step());
        drop(progress);

        summary.files = sources.len() - summary.rendered + unread_files.len();
        summary.others = read.others;
        summary.templates = read.templates;
        summary.skipped = read.skipped;
        for (kind, count) in read.unopened {
            *summary.unopened.entry(kind).or_default() += count;
        }
        let errors = read.errors.into_iter();
        unread_files.extend(errors.map(|error| unread(error, &sources, reading.repository)));
        summary.unreadable = unread_files.len();

        let kustomizations = Kustomizations::among(&sources);
        let mut objects = Vec::with_capacity(read.items.len());
        for item in read.items {
            let source = &sources[item.place.source];
            if item.missing.is_some() || kustomizations.have_as_patch(source) {
                summary.fragments += 1;
            } else {
                objects.extend(known(item));
            }
        }
        let namespaces = Namespaces::of(&objects, &sources, reading.namespace);
        for known in &mut objects {
            let source = &sources[known.place.source];
            let overlay = kustomizations.namespace_beside(source);
            namespaces.complete(known, source, overlay);
            bind(&mut known.object, &facts);
        }
        summary.judged = objects.iter().filter(|known| known.is_judged()).count();
        summary.facts = objects.len() - summary.judged;
        Self {
            sources,
            parts: opened.parts,
            roots: opened.roots,
            unopened: opened.unopened,
            not_rendered: opened.unread,
            counts: opened.counts,
            unrendered: opened.unrendered,
            objects,
            facts,
            whole,
            unread: unread_files,
            summary,
        }
    }

    /// Adds what could not be changed.
    pub(super) fn refuse(&mut self, failed: Vec<Unread>) {
        self.unread.extend(failed);
        self.summary.unreadable = self.unread.len();
    }

    /// The objects to judge, those of one file together, by their numbers. What is not
    /// there beside the others is judged apart from them.
    pub(super) fn judged(&self) -> Vec<Vec<usize>> {
        let judged = (0..self.objects.len()).filter(|number| self.objects[*number].is_judged());
        let judged: Vec<usize> = judged.collect();
        let source = |number: &usize| self.objects[*number].place.source;
        let passes = |number: &usize| {
            let hook = self.objects[*number].hook;
            matches!(hook, Some(HelmHook::OutsideRelease | HelmHook::Test))
        };
        judged
            .chunk_by(|a, b| source(a) == source(b) && !passes(a) && !passes(b))
            .map(<[usize]>::to_vec)
            .collect()
    }

    pub(super) fn scopes(&self) -> Scopes<'_> {
        let members = self.objects.iter().map(|known| Member {
            source: known.place.source,
            object: &known.object,
            hook: known.hook,
            judged: known.is_judged(),
        });
        let of_source = |number| self.unrendered_at(number).map_or(&[][..], |it| &it.roots);
        let unrendered = (0..self.sources.len()).map(of_source).collect();
        Scopes::new(members.collect(), &self.sources, unrendered, &self.facts)
    }
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
    /// Each with its folder, without links.
    all: Vec<(PathBuf, Kustomization)>,
    /// Files that are patches, without links.
    patches: HashSet<PathBuf>,
    /// Folders of components, without links.
    components: HashSet<PathBuf>,
}

impl Kustomizations {
    fn among(sources: &[Source]) -> Self {
        let all: Vec<(PathBuf, Kustomization)> = sources
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
        let (_, overlay) = self.all.iter().find(|(it, _)| it == folder)?;
        overlay.namespace.as_deref()
    }
}

fn unread(error: ReadError, sources: &[Source], repository: &Repository) -> Unread {
    let source = sources.iter().find(|source| source.name == error.file);
    let path = match source {
        Some(source) => source.real_path().map(|path| repository.path_of(path)),
        None => Some(repository.path_of(error.file.as_ref())),
    };
    Unread {
        path,
        at: error.line.zip(error.column),
        message: error.problem.to_string(),
        file: error.file,
    }
}
