//! Collects the texts to read, and renders charts and kustomizations among them.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};

use super::Paths;
use super::rendering::roots::{self, Root, RootKind};
use super::rendering::{Render, Renderer, dependencies};
use super::repository::Repository;
use check::text::Origin;
use check::{Files as _, Reading, Text, unread};
use engine::model::object::Object;
use manifest::delivery::Role;
use manifest::find::{Exclude, Found, Hidden, find};
use manifest::objects::read_objects;
use manifest::source::{Source, shown};
use report::{Cause, NotJudged, Unread};

/// The treatment of kustomizations that can be rendered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kustomizations {
    /// Their rendered output is read.
    Rendered,
    /// Their files are read, so that they can be edited. Kustomizations that cannot be rendered are
    /// recognized, but reported only in the mode `Rendered`.
    InPlace,
}

/// The files under the paths, before anything is rendered. Pipes are read once.
pub(super) struct Files {
    pub found: Found,
    unread: Vec<Unread>,
}

/// The most files, and bytes of them, that [`Paths::keep_nearest`] keeps.
const MOST_NEAR: (usize, usize) = (300, 1 << 20);

impl Paths<'_> {
    /// Keeps only the files that are nearest to one of the `places`, and their texts in memory: as
    /// many as can be judged again after each key that a user presses.
    pub fn keep_nearest(&mut self, places: &[&Path]) {
        // The folders to go up, and then down.
        let way = |from: &Path, to: &Path| {
            let shared = from.components().zip(to.components()).take_while(|(a, b)| a == b).count();
            (from.components().count() - shared, to.components().count() - shared)
        };
        let found = &mut self.files.found;
        // Hidden files are only counted.
        found.hidden.clear();
        let mut all: Vec<_> = std::mem::take(&mut found.sources).into_iter().enumerate().collect();
        all.sort_by_cached_key(|(_, source)| {
            let to = source.real_path()?;
            places.iter().filter_map(|place| Some(way(place.parent()?, to))).min()
        });
        let (most, mut left) = MOST_NEAR;
        let near = all.into_iter().take(most).map_while(|(at, source)| {
            // A file that cannot be read is reported when it is read again.
            let Ok(text) = source.text().map(Cow::into_owned) else { return Some((at, source)) };
            left = left.checked_sub(text.len())?;
            Some((at, source.with_text(text)))
        });
        let mut near: Vec<_> = near.collect();
        near.sort_by_key(|(at, _)| *at);
        found.sources = near.into_iter().map(|(_, source)| source).collect();
    }
}

/// Finds everything under `paths`. If programs may be started, Git names the tracked files that are
/// ignored.
pub(super) fn files(
    paths: &[PathBuf],
    exclude: &Exclude,
    repository: &Repository,
    render: Render,
) -> Files {
    let (outside, paths): (Vec<PathBuf>, Vec<PathBuf>) =
        paths.iter().cloned().partition(|path| repository.leads_out(path));
    let mut found = find(&paths, exclude, &mut io::stdin());
    if render != Render::Never {
        add_ignored(&mut found, &paths, exclude, repository);
    }
    let errors = found.errors.drain(..).map(|error| unread(error, None, repository));
    let outside = outside.iter().map(|path| Unread {
        file: path.display().to_string(),
        path: Some(repository.path_of(path)),
        at: None,
        message: "This link leads out of the repository; name the file it leads to.".to_owned(),
    });
    let unread = errors.chain(outside).collect();
    Files { found, unread }
}

/// Adds the tracked files in the directories among `paths` that are ignored.
fn add_ignored(found: &mut Found, paths: &[PathBuf], exclude: &Exclude, repository: &Repository) {
    let folders: Vec<(&PathBuf, PathBuf)> =
        paths.iter().filter_map(|path| Some((path, path.canonicalize().ok()?))).collect();
    for file in repository.tracked_and_ignored() {
        let inner = folders.iter().find_map(|(path, real)| {
            let inner = file.strip_prefix(real).ok()?;
            Some((path, inner))
        });
        if let Some((path, inner)) = inner {
            found.add_ignored(path, inner, exclude);
        }
    }
}

/// Renders charts and kustomizations among the files, and reads all texts. The templates of a chart
/// are never read as manifests; the files of a kustomization are read if it is not rendered, or
/// `InPlace`.
///
/// # Errors
/// Nothing can be rendered on this machine or with these options.
pub(super) fn discover(paths: &Paths<'_>, kustomizations: Kustomizations) -> io::Result<Reading> {
    let sources = paths.files.found.sources.iter();
    let files: Vec<PathBuf> = sources.filter_map(Source::path).map(Path::to_owned).collect();
    let mut wanted = roots::find(&files, paths.places());
    let remotes = wanted
        .iter()
        .filter(|root| root.kind == RootKind::Chart)
        .flat_map(|root| dependencies::remote(&root.real))
        .collect();
    paths.fetcher.fetch(remotes)?;
    for root in &mut wanted {
        dependencies::add(root, paths.places());
    }
    let texts = paths.render_all(&wanted, paths.input.render.render, &Renderer::root)?;
    let mut sorted = Sorted::default();
    for (root, text) in wanted.into_iter().zip(texts) {
        let is_kustomization = root.kind == RootKind::Kustomization;
        let in_place = is_kustomization && kustomizations == Kustomizations::InPlace;
        match text {
            Ok(_) if in_place => sorted.in_place.push(root),
            Ok(text) => sorted.rendered.push((root, text)),
            Err(reason) => {
                if !in_place {
                    let path = root.folder.to_string_lossy().into_owned();
                    sorted.refused.push(reason.not_judged(root.kind.name(), path));
                }
                match root.kind {
                    RootKind::Chart => sorted.charts.push(root),
                    RootKind::Kustomization => sorted.unrendered.push(root),
                }
            }
        }
    }
    Ok(sorted.read(paths))
}

/// The templates, links and hidden files that are not read and may hold objects to judge. The
/// `held` ones are rendered.
fn skipped(found: &Found, repository: &Repository, held: &HashSet<&Path>) -> Vec<NotJudged> {
    let templates =
        found.templates.iter().map(|template| NotJudged::template(template.name.clone()));
    let links = found.links.iter().map(|link| {
        let not_followed = |reason| NotJudged::new("link", shown(link), reason, Cause::Link);
        if !link.exists() {
            not_followed("it leads nowhere")
        } else if repository.leads_out(link) {
            not_followed("it leads out of the repository")
        } else {
            not_followed("it leads out of the checked folder").with_command(CHECK)
        }
    });
    templates.chain(links).chain(hidden(&found.hidden, held)).collect()
}

/// The hidden files and folders, except the `held` ones, with workloads, autoscalers or releases.
/// Claims alone may be facts.
fn hidden(files: &[Hidden], held: &HashSet<&Path>) -> impl Iterator<Item = NotJudged> {
    let read = read_objects(files, true);
    let objects = read
        .items
        .iter()
        .filter(|item| !item.is_part())
        .filter(|item| matches!(item.object, Object::Workload(_) | Object::Autoscaler(_)))
        .map(|item| item.place.source);
    let releases = read
        .deliveries
        .iter()
        .filter(|delivery| delivery.role == Role::Release)
        .map(|delivery| delivery.place.source);
    let tops: BTreeSet<&Path> =
        objects.chain(releases).map(|number| files[number].top.as_path()).collect();
    tops.into_iter().filter(|top| !held.contains(top)).map(|top| {
        let is_hidden =
            top.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        let (what, reason) = match (is_hidden, top.is_dir()) {
            (true, true) => ("hidden folder", "hidden files are skipped"),
            (true, false) => ("hidden file", "hidden files are skipped"),
            (false, _) => ("file", "it is ignored, although Git tracks it"),
        };
        NotJudged::new(what, shown(top), reason, Cause::Hidden).with_command(CHECK)
    })
}

/// The command that judges a path.
pub(super) const CHECK: &str = "multi-attach-guard check";

/// Reports a chart, kustomization or release that is not rendered. It is an error if
/// everything must be rendered, unless only another program can render it.
pub(super) fn refuse(reading: &mut Reading, refused: NotJudged, wish: Render) {
    let NotJudged { what, place, reason, command, cause } = &refused;
    match wish {
        Render::Never if *cause != Cause::Foreign => reading.not_judged.push(NotJudged {
            command: Some("multi-attach-guard check --render auto".to_owned()),
            ..NotJudged::new(what, place.clone(), "rendering is off", Cause::NotWanted)
        }),
        Render::Require if *cause != Cause::Foreign => {
            let run = command.as_ref().map(|command| format!(" Run `{command}`."));
            reading.unread.push(Unread {
                message: format!(
                    "This {what} cannot be rendered: {reason}.{}",
                    run.unwrap_or_default()
                ),
                path: Some(place.clone()),
                file: place.clone(),
                at: None,
            });
        }
        Render::Never | Render::Auto | Render::Require => reading.not_judged.push(refused),
    }
}

/// Roots, sorted by the result of rendering them.
#[derive(Default)]
struct Sorted {
    /// The charts and kustomizations that are not rendered, with the reasons.
    refused: Vec<NotJudged>,
    /// The rendered charts and kustomizations, with their output.
    rendered: Vec<(Root, String)>,
    /// Charts that were not rendered.
    charts: Vec<Root>,
    /// Kustomizations that were rendered, and whose files are still read.
    in_place: Vec<Root>,
    /// Kustomizations that were not rendered.
    unrendered: Vec<Root>,
}

impl Sorted {
    /// Divides the files into parts of rendered and unrendered roots, and reads all texts: first
    /// the files that belong to no root, then the output of charts and kustomizations.
    fn read(self, paths: &Paths<'_>) -> Reading {
        let (files, input) = (&paths.files, paths.input);
        let sources = &files.found.sources;
        let in_place: HashSet<&PathBuf> =
            self.in_place.iter().flat_map(|root| root.files.keys()).collect();
        let mut unrendered: HashMap<&Path, (Vec<usize>, Option<String>)> = HashMap::new();
        for (number, root) in self.unrendered.iter().enumerate() {
            let changeable = root.files.iter().filter(|(file, _)| !in_place.contains(file));
            for (file, changed_by) in changeable {
                let (taken_by, doubt) = unrendered.entry(file).or_default();
                taken_by.push(number);
                if let (None, Some(folder)) = (&doubt, changed_by) {
                    *doubt = Some(format!("The kustomization {}", folder.display()));
                }
            }
        }
        let rendered = || self.rendered.iter().map(|(root, _)| root);
        let charts: HashSet<&Path> = rendered()
            .filter(|root| root.kind == RootKind::Chart)
            .chain(&self.charts)
            .map(|root| root.real.as_path())
            .collect();
        let held: HashSet<&PathBuf> = rendered().flat_map(|root| root.files.keys()).collect();
        let patches: HashSet<&PathBuf> = rendered().flat_map(|root| &root.patches).collect();
        let is_part = |path: &PathBuf| {
            held.contains(path) || roots::is_of_chart(path, |folder| charts.contains(folder))
        };
        let tops = files.found.hidden.iter().map(|hidden| hidden.top.as_path());
        let held_hidden: HashSet<&Path> =
            tops.filter(|top| top.canonicalize().is_ok_and(|real| is_part(&real))).collect();
        let files_of = |chart: &Root| {
            let is_its = |source: &&Source| {
                source.real_path().is_some_and(|path| path.starts_with(&chart.real))
            };
            sources.iter().filter(is_its).cloned().collect()
        };
        let unrendered_charts = self.charts.iter().map(files_of).collect();
        let inline_patches = rendered().flat_map(|root| &root.inline_patches);
        let mut held_patches: Vec<Source> = inline_patches
            .map(|(file, patch)| Source::in_memory(&file.to_string_lossy(), patch.clone()))
            .collect();
        let (mut texts, mut parts) = (Vec::new(), HashSet::new());
        for source in sources {
            if let Some(path) = source.real_path().map(Path::to_owned).filter(is_part) {
                if patches.contains(&path) {
                    held_patches.push(source.clone());
                }
                parts.insert(path);
                continue;
            }
            let mut text = Text::read_from(source.clone());
            if let Some((taken_by, doubt)) = text.file().and_then(|file| unrendered.remove(file)) {
                (text.taken_by, text.doubt) = (taken_by, doubt);
            }
            texts.push(text);
        }
        texts.extend(self.rendered.into_iter().map(of_root));
        let mut reading = Reading::of(texts, input.namespace, input.repository);
        reading.withhold(&held_patches);
        (reading.parts, reading.unrendered_charts) = (parts, unrendered_charts);
        reading.not_judged.extend(skipped(&files.found, input.repository, &held_hidden));
        // Files that could not be opened come before files that could not be read.
        let unread = std::mem::replace(&mut reading.unread, files.unread.clone());
        for unopened in self.refused {
            refuse(&mut reading, unopened, input.render.render);
        }
        reading.summary.files += reading.unread.len();
        reading.unread.extend(unread);
        reading
    }
}

/// The output of the root as a text.
fn of_root((root, text): (Root, String)) -> Text {
    let source = Source::rendered(&root.folder.to_string_lossy(), text);
    let origin = check::text::Root {
        file: root.file(),
        folder: root.folder,
        real: root.real,
        top: root.top,
    };
    let origin = match root.kind {
        RootKind::Chart => Origin::Chart(origin),
        RootKind::Kustomization => Origin::Kustomization(origin),
    };
    Text::new(source, origin)
}
