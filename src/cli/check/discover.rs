//! The first stage: the texts to read, rendered where they are meant to be.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};

use super::fetch::Fetcher;
use super::releases::Release;
use super::render::dependencies;
use super::render::roots::{self, Places, Root, RootKind};
use super::render::{Outcome, Render, RenderOptions, Rendering};
use super::repository::Repository;
use manifest::error::ReadError;
use manifest::find::{Exclude, Found, find};
use manifest::source::Source;
use report::{Missing, Unopened, Unread};

/// How to read.
#[derive(Clone, Copy)]
pub(super) struct ReadOptions<'a> {
    pub(super) exclude: &'a Exclude,
    /// The namespace of objects that name none.
    pub(super) namespace: Option<&'a str>,
    pub(super) render: &'a RenderOptions,
    pub(super) rendering: &'a Rendering<'a>,
    pub(super) fetcher: &'a Fetcher<'a>,
    pub(super) repository: &'a Repository,
}

impl<'a> ReadOptions<'a> {
    const fn places(&self) -> Places<'a> {
        Places {
            repository: self.repository,
            fetcher: self.fetcher,
        }
    }
}

/// What happens to kustomizations that can be rendered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kustomizations {
    /// What they are rendered to is read.
    Rendered,
    /// Their files are read, so that they can be edited. What cannot be rendered is
    /// known, and reported only where the others are rendered.
    InPlace,
}

/// What there is to read.
#[derive(Default)]
pub(super) struct Discovered {
    /// Files that are nobody's part, then what roots were rendered to, then what releases were.
    pub(super) sources: Vec<Source>,
    /// The checked files, without links, that are parts of what was rendered.
    pub(super) parts: HashSet<PathBuf>,
    /// What those sources were rendered from that no release is, in the same order.
    roots: Vec<Root>,
    /// What the last of the sources were rendered for, in the same order.
    pub(super) releases: Vec<Release>,
    /// What could not be rendered.
    pub(super) unopened: Vec<Unopened>,
    /// What could not be opened, or was to be rendered and could not be.
    pub(super) unread: Vec<Unread>,
    /// How many charts and kustomizations were not rendered, by kind.
    pub(super) counts: BTreeMap<String, usize>,
    /// Links that lead out of the directories, and were not followed.
    pub(super) links: usize,
    /// Templates of manifests, by their names.
    pub(super) templates: usize,
    /// The files, without links, of kustomizations that were not rendered.
    unrendered: HashMap<PathBuf, Unrendered>,
}

/// What is known of a file that only kustomizations take which were not rendered.
#[derive(Default)]
pub(super) struct Unrendered {
    /// The numbers of those.
    pub(super) roots: Vec<usize>,
    /// The folder of one that may change what is in the file.
    pub(super) changed_by: Option<PathBuf>,
}

/// Finds everything under `paths`, and renders what is meant to be rendered.
///
/// # Errors
/// Nothing can be rendered on this machine, or not with these options.
pub(super) fn discover(
    paths: &[PathBuf],
    kustomizations: Kustomizations,
    options: ReadOptions<'_>,
) -> io::Result<Discovered> {
    let repository = options.repository;
    let (outside, paths): (Vec<PathBuf>, Vec<PathBuf>) = paths
        .iter()
        .cloned()
        .partition(|path| repository.leads_out(path));
    let Found {
        sources,
        errors,
        links,
        templates,
        ..
    } = find(&paths, options.exclude, &mut io::stdin().lock());
    let mut discovered = Discovered {
        links,
        templates,
        ..open(sources, kustomizations, options)?
    };
    let outside = outside.iter().map(|path| Unread {
        file: path.display().to_string(),
        path: Some(repository.path_of(path)),
        at: None,
        message: "This link leads out of the repository; name the file it leads to.".to_owned(),
    });
    let errors = errors.into_iter();
    let errors = errors.map(|error| unread(error, None, repository));
    discovered.unread.splice(..0, errors.chain(outside));
    Ok(discovered)
}

impl Discovered {
    /// The same files after they were changed in place, with the kustomizations that they
    /// make rendered. What charts were rendered to stays.
    ///
    /// # Errors
    /// See [`discover`].
    pub(super) fn again(mut self, options: ReadOptions<'_>) -> io::Result<Self> {
        self.sources.truncate(self.first_release());
        let first = self.sources.len() - self.roots.len();
        let charts = self.sources.split_off(first);
        let mut again = open(self.sources, Kustomizations::Rendered, options)?;
        again.sources.extend(charts);
        again.roots.extend(self.roots);
        again.unopened.splice(..0, self.unopened);
        again.unread.splice(..0, self.unread);
        for (kind, count) in self.counts {
            *again.counts.entry(kind).or_default() += count;
        }
        again.links = self.links;
        again.templates = self.templates;
        Ok(again)
    }

    /// What the source was rendered from; `None` for a file, and for a release.
    pub(super) fn root(&self, source: usize) -> Option<&Root> {
        let first = self.first_release() - self.roots.len();
        self.roots.get(source.checked_sub(first)?)
    }

    /// The release that the source was rendered for.
    pub(super) fn release(&self, source: usize) -> Option<&Release> {
        let number = source.checked_sub(self.first_release())?;
        self.releases.get(number)
    }

    /// The number of the first source that was rendered for a release.
    pub(super) fn first_release(&self) -> usize {
        self.sources.len() - self.releases.len()
    }

    /// The sources, by their numbers, that were rendered from the folder of a root.
    pub(super) fn rendered_from(&self, folder: &Path) -> impl Iterator<Item = usize> {
        let first = self.first_release() - self.roots.len();
        let roots = self.roots.iter().enumerate();
        let found = roots.filter(move |(_, root)| root.real == folder);
        found.map(move |(number, _)| first + number)
    }

    /// How many charts and kustomizations were rendered.
    pub(super) const fn rendered(&self) -> usize {
        self.roots.len() + self.releases.len()
    }

    /// Adds what a release was rendered to.
    pub(super) fn deliver(&mut self, release: Release, text: String) {
        self.sources.push(Source::rendered(&release.shown(), text));
        self.releases.push(release);
    }

    /// Adds why a chart or a kustomization is not looked into.
    fn refuse(&mut self, unopened: Unopened, wish: Render) {
        *self.counts.entry(unopened.what.to_owned()).or_default() += 1;
        report_by(wish, unopened, &mut self.unopened, &mut self.unread);
    }

    pub(super) fn unrendered_at(&self, source: usize) -> Option<&Unrendered> {
        self.unrendered.get(self.sources[source].real_path()?)
    }
}

/// Reports what is not looked into; where all must be rendered, as an error.
pub(super) fn report_by(
    wish: Render,
    unopened: Unopened,
    reported: &mut Vec<Unopened>,
    errors: &mut Vec<Unread>,
) {
    match wish {
        Render::Never => {}
        Render::Require if unopened.missing != Some(Missing::Tool) => errors.push(Unread {
            message: format!(
                "This {} cannot be rendered: {}.",
                unopened.what, unopened.reason
            ),
            path: Some(unopened.path.clone()),
            file: unopened.path,
            at: None,
        }),
        Render::Auto | Render::Require => reported.push(unopened),
    }
}

/// Renders what is to be rendered among `sources`. The files of a chart are never read as
/// manifests, those of a kustomization where it is not rendered, or `InPlace`.
fn open(
    sources: Vec<Source>,
    kustomizations: Kustomizations,
    options: ReadOptions<'_>,
) -> io::Result<Discovered> {
    let files: Vec<PathBuf> = sources
        .iter()
        .filter_map(|source| source.path().map(Path::to_owned))
        .collect();
    let mut wanted = roots::find(&files, options.places());
    let charts = wanted.iter().filter(|root| root.kind == RootKind::Chart);
    let remotes = charts.flat_map(|root| dependencies::remote(&root.real));
    options.fetcher.fetch(remotes.collect())?;
    for root in &mut wanted {
        dependencies::add(root, options.fetcher, options.repository);
    }
    let outcomes = match options.render.render {
        Render::Never => {
            let skipped = |root| Outcome {
                root,
                text: Err(String::new().into()),
            };
            wanted.into_iter().map(skipped).collect()
        }
        Render::Auto | Render::Require => options.rendering.roots(wanted)?,
    };
    let mut sorted = Sorted::default();
    for outcome in outcomes {
        let is_kustomization = outcome.root.kind == RootKind::Kustomization;
        let in_place = is_kustomization && kustomizations == Kustomizations::InPlace;
        sorted.add(outcome, in_place, options.render.render);
    }
    Ok(sorted.with(sources))
}

/// Roots by what came of them.
#[derive(Default)]
struct Sorted {
    discovered: Discovered,
    texts: Vec<Source>,
    /// Charts that were not rendered.
    charts: Vec<Root>,
    /// Kustomizations that were rendered, and whose files are read all the same.
    in_place: Vec<Root>,
    /// Kustomizations that were not rendered.
    unrendered: Vec<Root>,
}

impl Sorted {
    fn add(&mut self, Outcome { root, text }: Outcome, in_place: bool, wish: Render) {
        let (kind, folder) = (root.kind.name(), root.folder.to_string_lossy().into_owned());
        let found = &mut self.discovered;
        match text {
            Ok(_) if in_place => return self.in_place.push(root),
            Err(_) if in_place => return self.unrendered.push(root),
            Ok(text) => {
                self.texts.push(Source::rendered(&folder, text));
                return found.roots.push(root);
            }
            Err(reason) => found.refuse(
                Unopened {
                    what: kind.to_owned(),
                    path: folder,
                    missing: reason.missing,
                    reason: reason.text,
                },
                wish,
            ),
        }
        match root.kind {
            RootKind::Chart => self.charts.push(root),
            RootKind::Kustomization => self.unrendered.push(root),
        }
    }

    /// Divides the files among what was rendered and what was not.
    fn with(mut self, sources: Vec<Source>) -> Discovered {
        let in_place: HashSet<&PathBuf> = self.in_place.iter().flat_map(Root::files).collect();
        for (number, root) in self.unrendered.iter().enumerate() {
            for (file, changed_by) in &root.files {
                if !in_place.contains(file) {
                    let known = self.discovered.unrendered.entry(file.clone());
                    let known: &mut Unrendered = known.or_default();
                    known.roots.push(number);
                    known.changed_by = known.changed_by.take().or(changed_by.clone());
                }
            }
        }
        let held = || self.charts.iter().chain(&self.discovered.roots);
        let charts = held().filter(|root| root.kind == RootKind::Chart);
        let charts: HashSet<&Path> = charts.map(|root| root.real.as_path()).collect();
        let files: HashSet<&PathBuf> = held().flat_map(Root::files).collect();
        let is_free = |source: &Source| {
            !source.real_path().is_some_and(|path| {
                files.contains(&path.to_owned()) || path.ancestors().any(|it| charts.contains(it))
            })
        };
        let (free, parts): (Vec<Source>, Vec<Source>) = sources.into_iter().partition(is_free);
        let mut discovered = self.discovered;
        let parts = parts.iter().filter_map(|source| source.real_path());
        discovered.parts = parts.map(Path::to_owned).collect();
        discovered.sources = free;
        discovered.sources.extend(self.texts);
        discovered
    }
}

/// The error as reports have it. `source` is what it is about, where that could be opened.
pub(super) fn unread(error: ReadError, source: Option<&Source>, repository: &Repository) -> Unread {
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
