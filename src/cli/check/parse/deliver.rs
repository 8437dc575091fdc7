//! Renders the releases among the sources, and those that these deliver.
//!
//! A folder may be rendered by itself before a release is found that adds to it. The release's
//! rendering takes its place then, and that of all it delivers.

use std::collections::{HashMap, HashSet};
use std::io;

use super::Reading;
use crate::cli::check::discover::report_by;
use crate::cli::check::namespace::Namespaces;
use crate::cli::check::reason::Reason;
use crate::cli::check::releases::{self, MAX_DEPTH, Release, Wanted, World};
use crate::cli::check::render::Render;
use crate::cli::check::render::release::Job;
use manifest::source::Source;

impl Reading<'_> {
    /// Renders the releases, then those that these deliver. The numbers of the sources whose place
    /// others have taken.
    pub(super) fn deliver(&mut self, namespaces: &Namespaces<'_>) -> io::Result<HashSet<usize>> {
        let wish = match self.options.fetcher.is_required() {
            true => Render::Require,
            false => self.options.render.render,
        };
        let mut first = 0;
        for _ in 0..MAX_DEPTH {
            let sources = &self.discovered.sources;
            let from = self.namespaces(namespaces, first);
            let world = World {
                repository: self.options.repository,
                sources,
                deliveries: &self.deliveries,
                fetcher: self.options.fetcher,
                remotes: &self.remotes,
            };
            let Wanted {
                releases,
                jobs,
                refused,
            } = releases::wanted(&world, first, &from)?;
            first = sources.len();
            let replaced = self.replaced(&releases);
            let waits = |release: &Release| {
                let by = replaced.get(&release.owner.place.source);
                by.is_some_and(|by| by.iter().any(|other| releases[*other] != *release))
            };
            let waits: Vec<bool> = releases.iter().map(waits).collect();
            let (mut now, mut later) = (Vec::new(), Vec::new());
            for (wanted, waits) in releases.into_iter().zip(jobs).zip(waits) {
                if waits { &mut later } else { &mut now }.push(wanted);
            }
            self.render(now, wish)?;
            // What is rendered with all that a release adds holds the same releases again.
            let replaced = self.replaced(&self.discovered.releases);
            later.retain(|(release, _)| !replaced.contains_key(&release.owner.place.source));
            self.render(later, wish)?;
            self.refused.extend(refused);
            if first == self.discovered.sources.len() {
                break;
            }
            self.read(first, || {});
        }
        let superseded = self.superseded();
        for (source, unopened) in std::mem::take(&mut self.refused) {
            if superseded.contains(&source) {
                continue;
            }
            let count = self.summary.unopened.entry(unopened.what.to_owned());
            *count.or_default() += 1;
            report_by(wish, unopened, &mut self.unopened, &mut self.unread);
        }
        Ok(superseded)
    }

    /// Renders those that have not been rendered yet.
    fn render(&mut self, mut wanted: Vec<(Release, Job)>, wish: Render) -> io::Result<()> {
        let first = self.discovered.first_release();
        let rendered = self.discovered.releases.iter().enumerate();
        let rendered: HashMap<&Release, usize> =
            rendered.map(|(number, it)| (it, first + number)).collect();
        wanted.retain(|(release, _)| match rendered.get(release) {
            Some(source) => {
                let owners = self.same.entry(*source).or_default();
                owners.push(release.owner.place.source);
                false
            }
            None => true,
        });
        let (releases, jobs): (Vec<Release>, Vec<Job>) = wanted.into_iter().unzip();
        let texts = match wish {
            Render::Never => {
                let skipped = |_| Err(Reason::from(""));
                jobs.iter().map(skipped).collect()
            }
            Render::Auto | Render::Require => self.options.rendering.releases(&jobs)?,
        };
        for (release, text) in releases.into_iter().zip(texts) {
            match text {
                Ok(text) => self.discovered.deliver(release, text),
                Err(reason) => {
                    let unopened = releases::unopened(&release.owner, reason);
                    self.refused.push((release.owner.place.source, unopened));
                }
            }
        }
        Ok(())
    }

    /// The sources that were rendered from the folder of a release without what it adds, and the
    /// numbers of those releases.
    fn replaced(&self, releases: &[Release]) -> HashMap<usize, Vec<usize>> {
        let mut replaced: HashMap<usize, Vec<usize>> = HashMap::new();
        for (number, release) in releases.iter().enumerate() {
            let Some(folder) = release.chart.folder() else {
                continue;
            };
            for source in self.discovered.rendered_from(folder) {
                replaced.entry(source).or_default().push(number);
            }
        }
        replaced
    }

    /// The sources that a release has made anew, and what was rendered for releases in these.
    fn superseded(&self) -> HashSet<usize> {
        let releases = &self.discovered.releases;
        let first = self.discovered.first_release();
        let replaced = self.replaced(releases);
        let mut superseded: HashSet<usize> = HashSet::new();
        let is_gone = |owner: usize, superseded: &HashSet<usize>| {
            // One that delivers itself stays.
            let by = |other: &usize| {
                let is_elsewhere = releases[*other].owner.place.source != owner;
                is_elsewhere && !superseded.contains(&(first + other))
            };
            let mut others = replaced.get(&owner).into_iter().flatten();
            superseded.contains(&owner) || others.any(by)
        };
        loop {
            let before = superseded.len();
            for (number, release) in releases.iter().enumerate() {
                let source = first + number;
                let more = self.same.get(&source).into_iter().flatten();
                let mut owners = more.chain([&release.owner.place.source]);
                if owners.all(|owner| is_gone(*owner, &superseded)) {
                    superseded.insert(source);
                }
            }
            if superseded.len() == before {
                break;
            }
        }
        let stays = |number: &usize| !superseded.contains(&(first + number));
        let anew = replaced.into_iter();
        let anew = anew.filter(|(_, by)| by.iter().any(stays));
        let anew: Vec<usize> = anew.map(|(source, _)| source).collect();
        superseded.extend(anew);
        superseded
    }

    /// The namespaces that surround the sources from the number `first` on.
    fn namespaces(&self, namespaces: &Namespaces<'_>, first: usize) -> Vec<String> {
        let sources = self.discovered.sources.iter().enumerate().skip(first);
        let of = |(number, source): (usize, &Source)| {
            let of_kustomization = self.kustomizations.namespace_beside(source);
            namespaces
                .around(number, source, of_kustomization)
                .to_string()
        };
        sources.map(of).collect()
    }
}
