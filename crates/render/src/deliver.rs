//! Renders the releases among the texts, and the releases that these deliver.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};

use super::Paths;
use super::discover::{CHECK, Kustomizations, refuse};
use super::fetch::Fetch;
use super::reason::Reason;
use super::releases::{
    self, MAX_DEPTH, Placed, Refused, Release, RenderContext, Standing, remotes,
};
use super::rendering::release::Job;
use super::rendering::{Render, Renderer};
use super::superseded::{ByFolder, superseded};
use check::text::Origin;
use check::{Reading, Text};
use manifest::delivery::value_of;
use manifest::source::{Source, shown};
use report::{Cause, NotJudged};
use serde_json::Value;

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
    paths.helm_releases.borrow_mut().clear();
    let mut delivering = Delivering {
        reading,
        releases: Vec::new(),
        remotes: remotes(paths.input.repository),
        refused: Vec::new(),
        standing: Vec::new(),
        kustomizations,
        wish,
        paths,
    };
    delivering.deliver()?;
    let superseded = delivering.superseded();
    let unlisted = delivering.unlisted(&superseded);
    delivering.reading.not_judged.extend(unlisted);
    delivering.report(&superseded);
    Ok(delivering.end(&superseded))
}

impl Paths<'_> {
    /// The values of the Helm release whose output is the text with this number: those of its
    /// chart, and then those that it sets. Empty for other texts.
    pub fn values_of_release(&self, number: usize) -> Vec<Value> {
        let Some(job) = self.helm_releases.borrow().get(&number).cloned() else {
            return Vec::new();
        };
        let in_chart = match &job.settings.own_values {
            Some(values) => Some(values.clone()),
            None => {
                self.render_one(&job, &Renderer::values_in_chart).and_then(|text| value_of(&text))
            }
        };
        in_chart.into_iter().chain(job.settings.values).collect()
    }

    /// The output of the same release when it sets these values in addition; `None` if there is
    /// none, or it cannot be rendered.
    pub fn release_with(&self, number: usize, values: Value) -> Option<String> {
        let mut job = self.helm_releases.borrow().get(&number)?.clone();
        job.settings.values.push(values);
        self.render_one(&job, &Renderer::job)
    }

    fn render_one(
        &self,
        job: &Job,
        each: &impl AsyncFn(&Renderer, &Job) -> Result<String, Reason>,
    ) -> Option<String> {
        self.render_all(std::slice::from_ref(job), Render::Auto, each).ok()?.pop()?.ok()
    }
}

/// The texts and releases that were read so far.
struct Delivering<'a> {
    reading: Reading,
    /// The rendered releases, by the numbers of their texts.
    releases: Vec<(usize, Release)>,
    remotes: Vec<String>,
    /// Releases that are not rendered.
    refused: Vec<Refused>,
    standing: Vec<Standing>,
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
            let by_folder = ByFolder::of(
                rendered.iter().map(|(release, _)| release).enumerate(),
                self.kustomizations,
            );
            let waiting: Vec<bool> = rendered
                .iter()
                .map(|(release, _)| {
                    let holder = &self.reading.texts[release.owner.place.source];
                    by_folder.replacing(holder).any(|other| rendered[other].0 != *release)
                })
                .collect();
            let (mut now, mut later) = (Vec::new(), Vec::new());
            for (release, waits) in rendered.into_iter().zip(waiting) {
                if waits { &mut later } else { &mut now }.push(release);
            }
            self.render(now)?;
            // The output with the additions of a release contains the same releases again, so the
            // superseded ones are not rendered.
            let superseded = self.superseded();
            later.retain(|(release, _)| !superseded.contains(&release.owner.place.source));
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
            text.file().and_then(Path::parent).is_some_and(|folder| {
                folder == placed.folder || placed.is_recursive && folder.starts_with(&placed.folder)
            })
        };
        let mut more = Vec::new();
        for text in self.reading.texts.iter_mut().filter(|text| takes(text)) {
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
        let known: HashMap<&Release, usize> =
            self.releases.iter().map(|(number, release)| (release, *number)).collect();
        let (mut releases, mut jobs) = (Vec::new(), Vec::new());
        for (release, job) in wanted {
            let same = known.get(&release).and_then(|number| self.reading.texts.get_mut(*number));
            if let Some(Origin::Release(origin)) = same.map(|text| &mut text.origin) {
                origin.held_by.push(release.owner.place.source);
                continue;
            }
            releases.push(release);
            jobs.push(job);
        }
        let rendered = self.paths.render_all(&jobs, self.wish, &Renderer::job)?;
        for ((release, job), text) in releases.into_iter().zip(jobs).zip(rendered) {
            match text {
                Ok(text) => {
                    if release.chart.is_helm() {
                        let number = self.reading.texts.len();
                        self.paths.helm_releases.borrow_mut().insert(number, job);
                    }
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
        self.releases.iter().map(|(number, release)| (*number, release))
    }

    fn superseded(&self) -> HashSet<usize> {
        let releases = ByFolder::of(self.numbered(), self.kustomizations);
        superseded(&self.reading.texts, &releases, &self.standing, self.kustomizations)
    }

    /// The files of objects and releases in a folder that a release delivers, but without them,
    /// because no kustomization lists them.
    fn unlisted(&self, superseded: &HashSet<usize>) -> Vec<NotJudged> {
        let texts = &self.reading.texts;
        let repository = self.paths.input.repository;
        let refused = self.refused.iter().filter(|refused| !superseded.contains(&refused.holder));
        let in_doubt: Vec<&PathBuf> = refused.flat_map(|refused| &refused.folders).collect();
        let generated: HashSet<&Path> = self
            .numbered()
            .filter(|(_, release)| release.chart.is_generated())
            .filter_map(|(number, release)| Some((number, release.chart.folder()?.as_path())))
            .chain(self.standing.iter().map(|standing| (standing.holder, &*standing.folder)))
            .filter(|(number, _)| !superseded.contains(number))
            .map(|(_, folder)| folder)
            .collect();
        // The values of a chart decide which of its files have objects.
        let is_below = |text: &Text| {
            let root = match &text.origin {
                Origin::Kustomization(root) => Some(root.real.as_path()),
                _ => text.file(),
            };
            root.is_some_and(|path| path.ancestors().any(|above| generated.contains(above)))
        };
        let kept = self.reading.files_of(|text| !superseded.contains(&text), repository);
        self.reading
            .files_of(|text| superseded.contains(&text) && is_below(&texts[text]), repository)
            .difference(&kept)
            .filter(|file| file.is_file() && !in_doubt.iter().any(|top| file.starts_with(top)))
            .map(|file| {
                let name = shown(&repository.name_of(file));
                let reason = "a release delivers its folder, but no kustomization there lists it";
                NotJudged::new("file", name, reason, Cause::Unlisted).with_command(CHECK)
            })
            .collect()
    }

    /// Reports releases that are not rendered, and marks the objects in their folders of the
    /// repository as in doubt.
    fn report(&mut self, superseded: &HashSet<usize>) {
        for refused in std::mem::take(&mut self.refused) {
            if superseded.contains(&refused.holder) {
                continue;
            }
            for text in &mut self.reading.texts {
                let root = text.root().map(|root| root.real.as_path());
                let is_in = root.or_else(|| text.file()).is_some_and(|path| {
                    refused.folders.iter().any(|folder| path.starts_with(folder))
                });
                if is_in && text.doubt.is_none() {
                    text.doubt = Some(refused.name.clone());
                }
            }
            refuse(&mut self.reading, refused.not_judged, self.wish);
        }
    }

    fn end(mut self, superseded: &HashSet<usize>) -> Reading {
        self.reading.leave_out(superseded);
        for hidden in self.reading.hidden() {
            refuse(&mut self.reading, hidden.with_command(CHECK), self.wish);
        }
        let texts = &self.reading.texts;
        let files = superseded.iter().filter_map(|number| texts[*number].file());
        self.reading.parts.extend(files.map(Path::to_owned));
        self.reading.summary.rendered = texts
            .iter()
            .enumerate()
            .filter(|(number, text)| text.is_rendered() && !superseded.contains(number))
            .count();
        self.reading
    }
}
