//! Releases: what GitOps controllers make of a chart, its values and what is done to the result.
//!
//! A format reads an object into [`Release`]s; [`Release::job`] finds its chart;
//! what is rendered is a text beside the others, which may hold more releases.

mod application;
mod flux_kustomization;
mod foreign;
mod helm_release;
mod origin;
mod values;
mod variables;
mod world;

use std::hash::{Hash, Hasher};
use std::io;
use std::path::PathBuf;

use serde_json::{Map, Value};

use super::fetch::Remote;
use super::parsed_object::ParsedObject;
use super::reason::Reason;
use super::render::dependencies;
use super::render::release::{ChartFiles, ChartJob, Job, Setting};
use super::render::roots::{self, RootKind};
use engine::model::object::{Object, ObjectRef};
use manifest::delivery::{Delivery, Role};
use manifest::read::Position;
pub(super) use origin::{place, place_in};
use report::Unopened;
use values::Layer;
pub(super) use variables::Variables;
pub(super) use world::{World, remotes};

/// How deep an Application may lie in the charts of others.
pub(super) const MAX_DEPTH: usize = 4;

/// A chart, or a kustomization, as a controller renders it for one cluster.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Release {
    pub(super) owner: Owner,
    /// Its name.
    pub(super) name: String,
    pub(super) namespace: Option<String>,
    pub(super) chart: Chart,
    /// Each stronger than the ones before it.
    pub(super) values: Vec<Layer>,
    /// Single values, stronger than all layers.
    pub(super) sets: Vec<Setting>,
    /// The fields of kustomizations that the rendered objects go through.
    pub(super) post_renderers: Vec<Map<String, Value>>,
    /// What is substituted in what it is rendered to.
    pub(super) variables: Variables,
    /// What its values also come from, and is not known: the start of a sentence.
    pub(super) unknown: Vec<String>,
    /// The name of its folder, where that is in another repository.
    pub(super) elsewhere: Option<String>,
}

/// The object that defines a release.
#[derive(Clone, Debug)]
pub(super) struct Owner {
    /// Its place among the sources.
    pub(super) place: Position,
    pub(super) reference: ObjectRef,
    /// The file it was rendered from.
    pub(super) template: Option<Box<str>>,
}

/// Where a chart is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Chart {
    /// In a folder of this repository, without links.
    Folder(PathBuf),
    /// A kustomization in a folder of this repository, with fields of one around it.
    Kustomization(PathBuf, Map<String, Value>),
    /// Plain manifests of a folder that was fetched; whether those of its folders too.
    Manifests(PathBuf, bool),
    /// In a repository of charts, or in a registry.
    Remote(Remote),
}

/// What a format makes of an object. Without a release, its files are read where they stand.
type Read = Result<Vec<Release>, Reason>;

/// What reads an object.
type ReadObject = fn(&Delivery, &World<'_>) -> Read;

/// The kinds of objects that are read, and what reads them.
const FORMATS: [(&str, ReadObject); 3] = [
    ("HelmRelease", helm_release::read),
    ("Kustomization", flux_kustomization::read),
    ("Application", application::read),
];

/// The releases among the sources, and what is rendered for them.
#[derive(Default)]
pub(super) struct Wanted {
    pub(super) releases: Vec<Release>,
    /// One for each of them.
    pub(super) jobs: Vec<Job>,
    /// What is not rendered, with the number of its source.
    pub(super) refused: Vec<(usize, Unopened)>,
}

/// The releases of the sources from the number `first` on; `namespaces` are those around them.
///
/// # Errors
/// Nothing can be fetched on this machine.
pub(super) fn wanted(world: &World<'_>, first: usize, namespaces: &[String]) -> io::Result<Wanted> {
    let objects = world.deliveries.iter();
    let objects = objects.filter(|it| it.role == Role::Release && it.place.source >= first);
    let objects = objects.map(|it| (Owner::of(it), of_object(it, world)));
    let read: Vec<(Owner, Read)> = objects.collect();
    let releases = read.iter().filter_map(|(_, read)| read.as_ref().ok());
    let remotes = releases.flatten().flat_map(|it| match &it.chart {
        Chart::Remote(remote) => vec![remote.clone()],
        Chart::Folder(folder) => dependencies::remote(folder),
        Chart::Kustomization(..) | Chart::Manifests(..) => Vec::new(),
    });
    world.fetcher.fetch(remotes.collect())?;
    let files = (first..world.sources.len()).filter_map(|source| of_file(source, world));
    let mut wanted = Wanted {
        refused: files.collect(),
        ..Wanted::default()
    };
    for (owner, read) in read {
        let releases = match read {
            Ok(releases) => releases,
            Err(reason) => {
                let refused = (owner.place.source, unopened(&owner, reason));
                wanted.refused.push(refused);
                continue;
            }
        };
        for mut release in releases {
            let around = &namespaces[owner.place.source - first];
            release.namespace.get_or_insert_with(|| around.clone());
            if let Chart::Folder(folder)
            | Chart::Kustomization(folder, _)
            | Chart::Manifests(folder, _) = &release.chart
            {
                let shown = world.fetcher.shown(folder);
                release.elsewhere = shown.map(|it| it.display().to_string());
            }
            match release.job(world) {
                Ok(job) => {
                    wanted.releases.push(release);
                    wanted.jobs.push(job);
                }
                Err(reason) => {
                    let refused = (owner.place.source, unopened(&owner, reason));
                    wanted.refused.push(refused);
                }
            }
        }
    }
    Ok(wanted)
}

/// Why an object is not looked into.
pub(super) fn unopened(owner: &Owner, reason: Reason) -> Unopened {
    let reference = &owner.reference;
    let path = match &reference.namespace {
        Some(namespace) => format!("{namespace}/{}", reference.name),
        None => reference.name.to_string(),
    };
    Unopened {
        what: reference.kind.to_string(),
        path,
        reason: reason.text,
        missing: reason.missing,
    }
}

/// The releases that the object stands for.
fn of_object(delivery: &Delivery, world: &World<'_>) -> Read {
    if delivery.document.is_null() {
        return Err("it is larger than 4 MiB".into());
    }
    let mut formats = FORMATS.iter();
    match formats.find(|(kind, _)| *kind == delivery.reference.kind.as_str()) {
        Some((_, read)) => read(delivery, world),
        None => Err(foreign::of_kind(&delivery.reference.kind)),
    }
}

/// Why a file of another tool is not rendered, with the number of its source; `None` for other
/// files.
fn of_file(source: usize, world: &World<'_>) -> Option<(usize, Unopened)> {
    let file = &world.sources[source];
    let (format, reason) = foreign::of_file(file.path()?)?;
    // An object may have the name of such a file.
    if file
        .text()
        .ok()?
        .lines()
        .any(|it| it.starts_with("apiVersion:"))
    {
        return None;
    }
    let unopened = Unopened {
        what: format.to_owned(),
        path: file.name.clone(),
        reason: reason.text,
        missing: reason.missing,
    };
    Some((source, unopened))
}

/// Equal are those from one place of one file, however often that is rendered.
impl PartialEq for Owner {
    fn eq(&self, other: &Self) -> bool {
        self.file() == other.file() && self.reference == other.reference
    }
}

impl Eq for Owner {}

impl Hash for Owner {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.file().hash(state);
        self.reference.hash(state);
    }
}

impl Owner {
    /// The file it was rendered from, or the number of its own.
    fn file(&self) -> Result<&str, usize> {
        self.template.as_deref().ok_or(self.place.source)
    }

    fn of(delivery: &Delivery) -> Self {
        Self {
            place: delivery.place.clone(),
            reference: delivery.reference.clone(),
            template: delivery.template.clone(),
        }
    }
}

impl Release {
    /// A release with this chart and nothing more.
    fn new(owner: &Owner, name: &str, namespace: Option<&str>, chart: Chart) -> Self {
        Self {
            owner: owner.clone(),
            name: name.to_owned(),
            namespace: namespace.filter(|it| !it.is_empty()).map(str::to_owned),
            chart,
            values: Vec::new(),
            sets: Vec::new(),
            post_renderers: Vec::new(),
            variables: Variables::default(),
            unknown: Vec::new(),
            elsewhere: None,
        }
    }

    /// As messages name it.
    pub(super) fn shown(&self) -> String {
        self.owner.reference.to_string()
    }

    /// Puts an object of it that names no namespace into that of the release.
    pub(super) fn complete(&self, known: &mut ParsedObject) {
        let is_cluster_wide = matches!(known.object, Object::Namespace(_));
        let metadata = known.object.metadata_mut();
        let Some(metadata) = metadata.filter(|it| it.namespace.is_empty() && !is_cluster_wide)
        else {
            return;
        };
        if let Some(namespace) = &self.namespace {
            metadata.namespace = namespace.as_str().into();
            known.reference.namespace = Some(namespace.as_str().into());
        }
    }

    /// What is rendered for it.
    ///
    /// # Errors
    /// Its chart is not at hand.
    pub(super) fn job(&self, world: &World<'_>) -> Result<Job, Reason> {
        let root = |folder: &PathBuf, kind: RootKind| {
            let root = roots::at(folder, kind, world.places());
            let folder = world.shown(folder);
            root.ok_or_else(|| format!("{folder} holds no {} to render", kind.name()))
        };
        let chart = match &self.chart {
            Chart::Kustomization(folder, fields) => {
                let mut root = root(folder, RootKind::Kustomization)?;
                let components = fields.get("components").and_then(Value::as_array);
                for name in components.into_iter().flatten().filter_map(Value::as_str) {
                    root.add_component(name, world.places());
                }
                let (fields, variables) = (fields.clone(), self.variables.clone());
                return Ok(Job::Kustomization(Box::new(root), fields, variables));
            }
            Chart::Manifests(folder, recursive) => {
                return Ok(Job::Manifests(folder.clone(), *recursive));
            }
            Chart::Folder(folder) => ChartFiles::Folder(Box::new(root(folder, RootKind::Chart)?)),
            Chart::Remote(remote) => match world.fetcher.file(remote) {
                Some(file) => ChartFiles::Archive(file?),
                None => {
                    let url = remote.url();
                    return Err(Reason::elsewhere(format!("its chart is at {url}")));
                }
            },
        };
        Ok(Job::Chart(ChartJob {
            chart,
            name: self.name.clone(),
            namespace: self.namespace.clone(),
            values: self.values.iter().map(|it| it.value.to_string()).collect(),
            sets: self.sets.clone(),
            post_renderers: self.post_renderers.clone(),
        }))
    }
}

/// The text at the end of the path, which is not empty.
fn text<'v>(value: &'v Value, path: &[&str]) -> Option<&'v str> {
    let text = at(value, path)?.as_str()?;
    (!text.is_empty()).then_some(text)
}

/// The value at the end of the path.
fn at<'v>(value: &'v Value, path: &[&str]) -> Option<&'v Value> {
    let found = path.iter().try_fold(value, |value, key| value.get(key))?;
    (!found.is_null()).then_some(found)
}

/// The items of the list at the end of the path.
fn items<'v>(value: &'v Value, path: &[&str]) -> &'v [Value] {
    let list = at(value, path).and_then(Value::as_array);
    list.map_or(&[], Vec::as_slice)
}

/// A name that Helm takes for a release.
fn cut(name: &str) -> String {
    let name: String = name.chars().take(53).collect();
    name.trim_end_matches('-').to_owned()
}
