//! The second stage: reads the texts, and renders the releases among them, and those that these
//! deliver.
//!
//! A folder may be rendered by itself before a release is found that adds to it. The release's
//! rendering takes its place then, and that of all it delivers.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};

use super::discover::{Discovered, Kustomizations, ReadOptions, report_by, unread};
use super::namespace::Namespaces;
use super::neighbours::Neighbours;
use super::parsed_object::ParsedObject;
use super::progress::Progress;
use super::reason::Reason;
use super::releases::{
    self, Chart, MAX_DEPTH, Placed, Refused, Release, RenderContext, Wanted, remotes,
};
use super::render::Render;
use super::render::release::Job;
use super::text::{Origin, Text};
use manifest::delivery::Delivery;
use manifest::objects::{Item, read_objects};
use report::{Summary, Unopened, Unread};

/// All texts, with the objects in them.
pub(super) struct Delivered<'a> {
    pub(super) discovered: Discovered,
    /// In the order of the texts, but for those whose place others have taken.
    pub(super) objects: Vec<ParsedObject>,
    pub(super) neighbours: Neighbours,
    pub(super) namespaces: Namespaces<'a>,
    /// The numbers, but for those of the objects and the findings.
    pub(super) summary: Summary,
    /// What could not be read, opened or rendered.
    pub(super) unread: Vec<Unread>,
    /// What is not rendered.
    pub(super) unopened: Vec<Unopened>,
}

/// Reads the objects of all texts, and of what the releases among them deliver.
///
/// # Errors
/// Nothing can be rendered on this machine, or not with these options.
pub(super) fn deliver<'a>(
    discovered: Discovered,
    kustomizations: Kustomizations,
    options: ReadOptions<'a>,
) -> io::Result<Delivered<'a>> {
    let files = discovered.texts.len() - discovered.rendered() + discovered.unread.len();
    let mut reading = Reading {
        neighbours: Neighbours::among(&discovered.texts),
        unread: Vec::new(),
        refused: Vec::new(),
        unopened: Vec::new(),
        standing: HashSet::new(),
        discovered,
        objects: Vec::new(),
        deliveries: Vec::new(),
        remotes: remotes(options.repository),
        summary: Summary::default(),
        kustomizations,
        options,
    };
    let progress = Progress::of(reading.discovered.texts.len());
    reading.read(0, || progress.step());
    drop(progress);
    let texts = &reading.discovered.texts;
    let namespaces = Namespaces::of(&reading.objects, texts, options.namespace);
    reading.deliver(&namespaces)?;
    let superseded = reading.superseded();
    reading.report(&superseded);
    Ok(reading.end(files, namespaces, &superseded))
}

/// What was read so far.
struct Reading<'a> {
    discovered: Discovered,
    objects: Vec<ParsedObject>,
    deliveries: Vec<Delivery>,
    remotes: Vec<String>,
    neighbours: Neighbours,
    /// What could not be read, but for what could not be opened or rendered.
    unread: Vec<Unread>,
    /// Releases that are not rendered.
    refused: Vec<Refused>,
    /// Those of them that are reported.
    unopened: Vec<Unopened>,
    /// Folders, without links, that a release delivers as they stand.
    standing: HashSet<PathBuf>,
    summary: Summary,
    kustomizations: Kustomizations,
    options: ReadOptions<'a>,
}

impl Reading<'_> {
    /// Reads the texts from the number `first` on.
    fn read(&mut self, first: usize, done: impl Fn() + Sync) {
        let texts = &self.discovered.texts;
        let read = read_objects(&texts[first..], true, done);
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
        let named = texts.iter().map(|it| (it.source.name.as_str(), &it.source));
        let named: HashMap<&str, _> = named.collect();
        self.unread.extend(read.errors.into_iter().map(|error| {
            let source = named.get(error.file.as_str()).copied();
            unread(error, source, self.options.repository)
        }));
        for mut item in read.items {
            item.place.source += first;
            let text = &texts[item.place.source];
            if item.missing.is_some() || self.neighbours.have_as_patch(text) {
                summary.fragments += 1;
            } else {
                self.objects.extend(known(item));
            }
        }
        for mut delivery in read.deliveries {
            delivery.place.source += first;
            let text = &texts[delivery.place.source];
            if !self.neighbours.have_as_patch(text) {
                self.deliveries.push(delivery);
            }
        }
    }

    /// Renders the releases, then those that these deliver.
    fn deliver(&mut self, namespaces: &Namespaces<'_>) -> io::Result<()> {
        let mut first = 0;
        for _ in 0..MAX_DEPTH {
            let texts = &self.discovered.texts;
            let around = self.namespaces(namespaces, first);
            let context = RenderContext {
                repository: self.options.repository,
                texts,
                deliveries: &self.deliveries,
                fetcher: self.options.fetcher,
                remotes: &self.remotes,
            };
            let Wanted {
                rendered,
                placed,
                standing,
                refused,
            } = releases::wanted(&context, first, &around)?;
            first = texts.len();
            self.standing.extend(standing);
            self.refused.extend(refused);
            for placed in placed {
                self.place(&placed);
            }
            let numbered: Vec<(usize, &Release)> =
                rendered.iter().map(|(it, _)| it).enumerate().collect();
            let replaced = self.replaced(&numbered);
            let waits = |release: &Release| {
                let by = replaced.get(&release.owner.place.source);
                by.is_some_and(|by| by.iter().any(|other| rendered[*other].0 != *release))
            };
            let waits: Vec<bool> = rendered.iter().map(|(it, _)| waits(it)).collect();
            let (mut now, mut later) = (Vec::new(), Vec::new());
            for (wanted, waits) in rendered.into_iter().zip(waits) {
                if waits { &mut later } else { &mut now }.push(wanted);
            }
            self.render(now)?;
            // What is rendered with all that a release adds holds the same releases again.
            let replaced = self.replaced(&self.releases());
            later.retain(|(release, _)| !replaced.contains_key(&release.owner.place.source));
            self.render(later)?;
            if first == self.discovered.texts.len() {
                break;
            }
            self.read(first, || {});
        }
        Ok(())
    }

    /// Gives the files of a folder the namespace that a release delivers them into: those of
    /// several releases are as many texts.
    fn place(&mut self, placed: &Placed) {
        let takes = |text: &Text| {
            let folder = text.file().and_then(Path::parent);
            folder.is_some_and(|it| match placed.is_recursive {
                true => it.starts_with(&placed.folder),
                false => it == placed.folder,
            })
        };
        let mut more = Vec::new();
        for text in self.discovered.texts.iter_mut().filter(|it| takes(it)) {
            let namespace = placed.namespace.as_str();
            match text.namespace.as_deref() {
                None => text.namespace = Some(namespace.to_owned()),
                Some(known) if known == namespace => {}
                Some(_) => more.push(text.in_namespace(namespace)),
            }
        }
        self.discovered.texts.extend(more);
    }

    /// Renders those that have not been rendered yet.
    fn render(&mut self, wanted: Vec<(Release, Job)>) -> io::Result<()> {
        let known = self.releases().into_iter();
        let known: HashMap<&Release, usize> = known.map(|(number, it)| (it, number)).collect();
        let same = wanted.iter().map(|(it, _)| known.get(it).copied());
        let same: Vec<Option<usize>> = same.collect();
        let (mut releases, mut jobs) = (Vec::new(), Vec::new());
        for ((release, job), same) in wanted.into_iter().zip(same) {
            let same = same.and_then(|number| self.discovered.texts.get_mut(number));
            if let Some(Origin::Release { held_by, .. }) = same.map(|text| &mut text.origin) {
                held_by.push(release.owner.place.source);
                continue;
            }
            releases.push(release);
            jobs.push(job);
        }
        let texts = match self.wish() {
            Render::Never => {
                let skipped = |_| Err(Reason::from(""));
                jobs.iter().map(skipped).collect()
            }
            Render::Auto | Render::Require => self.options.rendering.releases(&jobs)?,
        };
        for (release, text) in releases.into_iter().zip(texts) {
            match text {
                Ok(text) => {
                    let text = Text::of_release(release, text);
                    self.discovered.texts.push(text);
                }
                Err(reason) => {
                    let folders = release.chart.folder().cloned().into_iter().collect();
                    let refused = Refused::of(&release.owner, folders, reason);
                    self.refused.push(refused);
                }
            }
        }
        Ok(())
    }

    fn wish(&self) -> Render {
        match self.options.fetcher.is_required() {
            true => Render::Require,
            false => self.options.render.render,
        }
    }

    /// What was rendered for releases, by its number.
    fn releases(&self) -> Vec<(usize, &Release)> {
        let texts = self.discovered.texts.iter().enumerate();
        texts
            .filter_map(|(number, text)| Some((number, text.release()?)))
            .collect()
    }

    /// The texts that hold, without what a release adds, what one of these releases delivers, and
    /// the numbers of those.
    fn replaced(&self, releases: &[(usize, &Release)]) -> HashMap<usize, Vec<usize>> {
        let mut by_folder: HashMap<&Path, Vec<(usize, bool)>> = HashMap::new();
        for (number, release) in releases {
            if let Some(folder) = release.chart.folder() {
                let holds_files = matches!(release.chart, Chart::Generated(..))
                    && (self.kustomizations == Kustomizations::Rendered || release.changes());
                let of_folder = by_folder.entry(folder).or_default();
                of_folder.push((*number, holds_files));
            }
        }
        let mut replaced: HashMap<usize, Vec<usize>> = HashMap::new();
        if by_folder.is_empty() {
            return replaced;
        }
        for (number, text) in self.discovered.texts.iter().enumerate() {
            let root = text.root().map(|it| it.real.as_path());
            let Some(path) = root.or_else(|| text.file()) else {
                continue;
            };
            if path.ancestors().any(|it| self.standing.contains(it)) {
                continue;
            }
            let by = path.ancestors().flat_map(|above| {
                let of_folder = by_folder.get(above).into_iter().flatten();
                let is_it = move |it: &&(usize, bool)| it.1 || root == Some(above);
                of_folder.filter(is_it).map(|it| it.0)
            });
            let by: Vec<usize> = by.collect();
            if !by.is_empty() {
                replaced.insert(number, by);
            }
        }
        replaced
    }

    /// The texts that a release has made anew, and what was rendered for releases in these.
    fn superseded(&self) -> HashSet<usize> {
        let texts = &self.discovered.texts;
        let replaced = self.replaced(&self.releases());
        let mut superseded: HashSet<usize> = HashSet::new();
        let is_gone = |holder: usize, superseded: &HashSet<usize>| {
            // One that delivers itself stays.
            let by = |other: &usize| {
                let release = texts[*other].release();
                let is_elsewhere = release.is_some_and(|it| it.owner.place.source != holder);
                is_elsewhere && !superseded.contains(other)
            };
            let mut others = replaced.get(&holder).into_iter().flatten();
            superseded.contains(&holder) || others.any(by)
        };
        loop {
            let before = superseded.len();
            for (number, text) in texts.iter().enumerate() {
                if let Origin::Release { held_by, .. } = &text.origin
                    && held_by.iter().all(|holder| is_gone(*holder, &superseded))
                {
                    superseded.insert(number);
                }
            }
            if superseded.len() == before {
                break;
            }
        }
        let stays = |number: &usize| !superseded.contains(number);
        let anew = replaced.iter().filter(|(_, by)| by.iter().any(stays));
        let anew: Vec<usize> = anew.map(|(number, _)| *number).collect();
        superseded.extend(anew);
        superseded
    }

    /// Reports what is not rendered. What it takes from a folder of the repository is in doubt.
    fn report(&mut self, superseded: &HashSet<usize>) {
        let wish = self.wish();
        for refused in std::mem::take(&mut self.refused) {
            if superseded.contains(&refused.holder) {
                continue;
            }
            for text in &mut self.discovered.texts {
                let path = text.root().map(|it| it.real.as_path());
                let is_in = path.or_else(|| text.file()).is_some_and(|path| {
                    refused
                        .folders
                        .iter()
                        .any(|folder| path.starts_with(folder))
                });
                if is_in && text.doubt.is_none() {
                    text.doubt = Some(refused.shown.clone());
                }
            }
            let unopened = refused.unopened;
            let count = self.summary.unopened.entry(unopened.what.clone());
            *count.or_default() += 1;
            report_by(wish, unopened, &mut self.unopened, &mut self.unread);
        }
    }

    /// The namespaces that surround the texts from the number `first` on.
    fn namespaces(&self, namespaces: &Namespaces<'_>, first: usize) -> Vec<String> {
        let texts = self.discovered.texts.iter().enumerate().skip(first);
        let around = |(number, text): (usize, &Text)| match &text.namespace {
            Some(namespace) => namespace.clone(),
            None => {
                let beside = self.neighbours.namespace_beside(text);
                namespaces.around(number, text, beside).to_string()
            }
        };
        texts.map(around).collect()
    }

    fn end<'n>(
        mut self,
        files: usize,
        namespaces: Namespaces<'n>,
        superseded: &HashSet<usize>,
    ) -> Delivered<'n> {
        self.objects
            .retain(|known| !superseded.contains(&known.place.source));
        let mut discovered = self.discovered;
        let files_of_releases = superseded
            .iter()
            .filter_map(|it| discovered.texts[*it].file());
        let parts: Vec<PathBuf> = files_of_releases.map(Path::to_owned).collect();
        discovered.parts.extend(parts);
        let is_counted =
            |(number, text): &(usize, &Text)| text.is_rendered() && !superseded.contains(number);
        let rendered = discovered.texts.iter().enumerate().filter(is_counted);
        let mut summary = Summary {
            files,
            rendered: rendered.count(),
            links: discovered.links,
            templates: self.summary.templates + discovered.templates,
            ..self.summary
        };
        for (kind, count) in &discovered.counts {
            *summary.unopened.entry(kind.clone()).or_default() += count;
        }
        Delivered {
            unread: [&discovered.unread[..], &self.unread].concat(),
            unopened: [&discovered.unopened[..], &self.unopened].concat(),
            discovered,
            objects: self.objects,
            neighbours: self.neighbours,
            namespaces,
            summary,
        }
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
