//! Renders the releases among the texts, and the releases that these deliver.
//!
//! A folder may be rendered by itself before a release is found that adds to it. The output of the
//! release then replaces that rendering, and everything that it delivers.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};

use super::Paths;
use super::discover::{Kustomizations, refuse};
use super::fetch::Fetch;
use super::releases::{self, MAX_DEPTH, Placed, Refused, Release, RenderContext, remotes};
use super::rendering::release::Job;
use super::rendering::{Render, Renderer};
use check::text::Origin;
use check::{Reading, Text};
use manifest::source::Source;

/// Adds the objects that the releases among the texts deliver.
///
/// # Errors
/// Nothing can be rendered on this machine or with these options.
pub(super) fn deliver(
    reading: Reading,
    kustomizations: Kustomizations,
    paths: &Paths<'_>,
) -> io::Result<Reading> {
    let wish = match paths.input.fetch.fetch {
        Fetch::Require => Render::Require,
        Fetch::Never | Fetch::Auto => paths.input.render.render,
    };
    let mut delivering = Delivering {
        reading,
        releases: Vec::new(),
        remotes: remotes(paths.input.repository),
        refused: Vec::new(),
        standing: HashSet::new(),
        kustomizations,
        wish,
        paths,
    };
    delivering.deliver()?;
    let superseded = delivering.superseded();
    delivering.report(&superseded);
    Ok(delivering.end(&superseded))
}

/// The texts and releases that were read so far.
struct Delivering<'a> {
    reading: Reading,
    /// The rendered releases, by the numbers of their texts.
    releases: Vec<(usize, Release)>,
    remotes: Vec<String>,
    /// Releases that are not rendered.
    refused: Vec<Refused>,
    /// Folders, with links followed, that a release delivers unchanged.
    standing: HashSet<PathBuf>,
    kustomizations: Kustomizations,
    wish: Render,
    paths: &'a Paths<'a>,
}

impl Delivering<'_> {
    /// Renders the releases, then those that these deliver.
    fn deliver(&mut self) -> io::Result<()> {
        let mut first = 0;
        for _ in 0..MAX_DEPTH {
            let context = RenderContext {
                places: self.paths.places(),
                reading: &self.reading,
                remotes: &self.remotes,
            };
            let wanted = releases::wanted(&context, first)?;
            first = self.reading.texts.len();
            self.standing.extend(wanted.standing);
            self.refused.extend(wanted.refused);
            for placed in &wanted.placed {
                self.place(placed);
            }
            let rendered = wanted.rendered;
            let numbered = rendered.iter().map(|(it, _)| it).enumerate();
            let replaced = self.replaced(numbered);
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
            // The output with the additions of a release contains the same releases again, so the
            // replaced ones are not rendered.
            let replaced = self.replaced(self.numbered());
            later.retain(|(release, _)| !replaced.contains_key(&release.owner.place.source));
            self.render(later)?;
            if first == self.reading.texts.len() {
                break;
            }
            self.reading.read(self.paths.input.repository);
        }
        Ok(())
    }

    /// Sets on the files of a folder the namespace into which a release delivers them. If several
    /// releases deliver a file, each namespace gets its own text.
    fn place(&mut self, placed: &Placed) {
        let takes = |text: &Text| {
            let folder = text.file().and_then(Path::parent);
            folder.is_some_and(|it| {
                it == placed.folder || placed.is_recursive && it.starts_with(&placed.folder)
            })
        };
        let mut more = Vec::new();
        for text in self.reading.texts.iter_mut().filter(|it| takes(it)) {
            let namespace = placed.namespace.as_str();
            match text.namespace.as_deref() {
                None => text.namespace = Some(namespace.to_owned()),
                Some(known) if known == namespace => {}
                Some(_) => more.push(text.in_namespace(namespace)),
            }
        }
        self.reading.texts.extend(more);
    }

    /// Renders the releases that have not been rendered yet.
    fn render(&mut self, wanted: Vec<(Release, Job)>) -> io::Result<()> {
        let known = self.releases.iter();
        let known: HashMap<&Release, usize> = known.map(|(number, it)| (it, *number)).collect();
        let (mut releases, mut jobs) = (Vec::new(), Vec::new());
        for (release, job) in wanted {
            let same = known.get(&release);
            let same = same.and_then(|number| self.reading.texts.get_mut(*number));
            if let Some(Origin::Release(known)) = same.map(|text| &mut text.origin) {
                known.held_by.push(release.owner.place.source);
                continue;
            }
            releases.push(release);
            jobs.push(job);
        }
        let texts = self.paths.render_all(&jobs, self.wish, &Renderer::job)?;
        for (release, text) in releases.into_iter().zip(texts) {
            match text {
                Ok(text) => {
                    let source = Source::rendered(&release.owner.reference.to_string(), text);
                    let origin = Box::new(release.origin(self.paths.places()));
                    let texts = &mut self.reading.texts;
                    self.releases.push((texts.len(), release));
                    texts.push(Text::new(source, Origin::Release(origin)));
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

    fn numbered(&self) -> impl Iterator<Item = (usize, &Release)> {
        let releases = self.releases.iter();
        releases.map(|(number, release)| (*number, release))
    }

    /// The texts that contain the objects of one of these releases without its additions, each with
    /// the numbers of those releases.
    fn replaced<'r>(
        &self,
        releases: impl Iterator<Item = (usize, &'r Release)>,
    ) -> HashMap<usize, Vec<usize>> {
        let mut by_folder: HashMap<&Path, Vec<(usize, bool)>> = HashMap::new();
        for (number, release) in releases {
            if let Some(folder) = release.chart.folder() {
                let holds_files = release.chart.is_generated()
                    && (self.kustomizations == Kustomizations::Rendered || release.changes());
                let of_folder = by_folder.entry(folder).or_default();
                of_folder.push((number, holds_files));
            }
        }
        let mut replaced: HashMap<usize, Vec<usize>> = HashMap::new();
        if by_folder.is_empty() {
            return replaced;
        }
        for (number, text) in self.reading.texts.iter().enumerate() {
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

    /// The texts that the output of a release replaces, and the output of releases that only such
    /// texts contain.
    fn superseded(&self) -> HashSet<usize> {
        let texts = &self.reading.texts;
        let replaced = self.replaced(self.numbered());
        let mut superseded: HashSet<usize> = HashSet::new();
        let is_gone = |holder: usize, superseded: &HashSet<usize>| {
            // A release that delivers itself is kept.
            let by = |other: &usize| {
                let release = texts[*other].release();
                let is_elsewhere = release.is_some_and(|it| it.place.source != holder);
                is_elsewhere && !superseded.contains(other)
            };
            let mut others = replaced.get(&holder).into_iter().flatten();
            superseded.contains(&holder) || others.any(by)
        };
        loop {
            let before = superseded.len();
            for (number, text) in texts.iter().enumerate() {
                let is_superseded = text.release().is_some_and(|release| {
                    let mut holders = release.held_by.iter();
                    holders.all(|holder| is_gone(*holder, &superseded))
                });
                if is_superseded {
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

    /// Reports releases that are not rendered, and marks the objects in their folders of the
    /// repository as in doubt.
    fn report(&mut self, superseded: &HashSet<usize>) {
        for refused in std::mem::take(&mut self.refused) {
            if superseded.contains(&refused.holder) {
                continue;
            }
            for text in &mut self.reading.texts {
                let path = text.root().map(|it| it.real.as_path());
                let is_in = path.or_else(|| text.file()).is_some_and(|path| {
                    let mut folders = refused.folders.iter();
                    folders.any(|folder| path.starts_with(folder))
                });
                if is_in && text.doubt.is_none() {
                    text.doubt = Some(refused.shown.clone());
                }
            }
            refuse(&mut self.reading, refused.unopened, self.wish);
        }
    }

    fn end(mut self, superseded: &HashSet<usize>) -> Reading {
        self.reading.leave_out(superseded);
        let texts = &self.reading.texts;
        let files = superseded.iter().filter_map(|it| texts[*it].file());
        self.reading.parts.extend(files.map(Path::to_owned));
        let is_counted =
            |(number, text): &(usize, &Text)| text.is_rendered() && !superseded.contains(number);
        let rendered = self.reading.texts.iter().enumerate().filter(is_counted);
        self.reading.summary.rendered = rendered.count();
        self.reading
    }
}
