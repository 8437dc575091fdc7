//! Releases: charts and kustomizations with the values and changes that GitOps controllers apply.
//!
//! A format reads an object into [`Release`]s, and [`Release::job`] finds its chart. The rendered
//! output is a text like the others, and may contain more releases.

mod application;
mod context;
mod flux_kustomization;
mod foreign;
mod helm_release;
mod known;
mod named;
mod origin;
mod values;

use std::hash::{Hash, Hasher};
use std::io;
use std::path::PathBuf;

use serde_json::{Map, Value, json};

use super::fetch::Remote;
use super::reason::Reason;
use super::rendering::dependencies;
use super::rendering::release::{Files, Job, Settings};
use super::rendering::roots::{self, RootKind};
pub(super) use context::{RenderContext, remotes};
use engine::model::object::ObjectRef;
use manifest::delivery::{Delivery, Role};
use manifest::read::Position;
use report::NotJudged;

/// The most levels of Applications in the output of other releases.
pub(super) const MAX_DEPTH: usize = 4;

/// A chart, or a kustomization, as a controller renders it for one cluster.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Release {
    pub(super) owner: Owner,
    pub(super) chart: Chart,
    pub(super) settings: Settings,
    /// The field of its object that contains values, or `spec`.
    pub(super) field: String,
    /// Further sources of its values that are not known, each as the start of a sentence.
    pub(super) unknown: Vec<String>,
}

/// The object that defines a release.
#[derive(Clone, Debug)]
pub(super) struct Owner {
    /// Its place among the sources.
    pub(super) place: Position,
    pub(super) reference: ObjectRef,
    /// The file from which it was rendered.
    pub(super) template: Option<Box<str>>,
    /// That file, or otherwise the one that contains it.
    file: Box<str>,
}

/// The location of a chart or of manifests.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Chart {
    /// A folder of this repository, or a fetched one, with links followed.
    Folder(PathBuf),
    /// A kustomization in a folder. If the folder contains no kustomization, one is generated from
    /// all manifests in it and below.
    Kustomization(PathBuf),
    /// Plain manifests of a folder, and whether those in its subfolders are included.
    Manifests(PathBuf, bool),
    /// A chart in a repository of charts, or in a registry.
    Remote(Remote),
}

/// The way in which a controller delivers a chart or a folder.
enum Delivers {
    /// It creates objects from it.
    Release(Box<Release>),
    /// It applies the files unchanged, into a namespace.
    Files(Placed),
    /// It applies the folder, whose links are followed, unchanged.
    Folder(PathBuf),
}

/// The files of a folder whose objects get a namespace if they name none.
pub(super) struct Placed {
    /// The folder, with links followed.
    pub(super) folder: PathBuf,
    /// Whether the files in its subfolders are included.
    pub(super) is_recursive: bool,
    pub(super) namespace: String,
}

/// The result of reading an object in its format.
type Read = Result<Vec<Delivers>, Reason>;

/// The deliveries of the releases among some texts.
#[derive(Default)]
pub(super) struct Wanted {
    /// The releases to render.
    pub(super) rendered: Vec<(Release, Job)>,
    pub(super) placed: Vec<Placed>,
    pub(super) standing: Vec<Standing>,
    pub(super) refused: Vec<Refused>,
}

/// A folder that a delivery applies unchanged.
pub(super) struct Standing {
    /// The number of the text that contains the delivery.
    pub(super) holder: usize,
    /// The folder, with links followed.
    pub(super) folder: PathBuf,
}

/// A release that is not rendered.
pub(super) struct Refused {
    /// The number of the text that contains it.
    pub(super) holder: usize,
    /// Its name as shown in messages.
    pub(super) name: String,
    /// The folders of this repository, with links followed, that it may change.
    pub(super) folders: Vec<PathBuf>,
    pub(super) not_judged: NotJudged,
}

impl Refused {
    pub(super) fn of(owner: &Owner, folders: Vec<PathBuf>, reason: Reason) -> Self {
        let reference = &owner.reference;
        let path = match &reference.namespace {
            Some(namespace) => format!("{namespace}/{}", reference.name),
            None => reference.name.to_string(),
        };
        Self {
            holder: owner.place.source,
            name: reference.to_string(),
            folders,
            not_judged: reason.not_judged(&reference.kind, path),
        }
    }
}

/// The deliveries of the releases in the texts from the number `first` on.
///
/// # Errors
/// Nothing can be fetched on this machine.
pub(super) fn wanted(context: &RenderContext<'_>, first: usize) -> io::Result<Wanted> {
    let (texts, namespaces) = (&context.reading.texts, context.reading.namespaces(first));
    let objects: Vec<(&Delivery, Owner, Read)> = context
        .reading
        .deliveries
        .iter()
        .filter(|delivery| delivery.role == Role::Release && delivery.place.source >= first)
        .map(|delivery| (delivery, Owner::of(delivery, context), of_object(delivery, context)))
        .collect();
    let remotes = objects
        .iter()
        .filter_map(|(_, _, read)| read.as_ref().ok())
        .flatten()
        .flat_map(|delivers| match delivers {
            Delivers::Release(release) => release.chart.remotes(),
            Delivers::Files(_) | Delivers::Folder(_) => Vec::new(),
        })
        .collect();
    context.places.fetcher.fetch(remotes)?;
    let files = (first..texts.len()).filter_map(|text| of_file(text, context));
    let mut wanted = Wanted { refused: files.collect(), ..Wanted::default() };
    for (delivery, owner, read) in objects {
        let holder = owner.place.source;
        let add = |delivers| wanted.add(delivers, holder, &namespaces[holder - first], context);
        let done = read.and_then(|read| read.into_iter().try_for_each(add));
        if let Err(reason) = done {
            let folders = named::by_object(delivery, context);
            wanted.refused.push(Refused::of(&owner, folders, reason));
        }
    }
    Ok(wanted)
}

impl Wanted {
    fn add(
        &mut self,
        delivers: Delivers,
        holder: usize,
        around: &str,
        context: &RenderContext<'_>,
    ) -> Result<(), Reason> {
        match delivers {
            Delivers::Files(placed) => self.placed.push(placed),
            Delivers::Folder(folder) => self.standing.push(Standing { holder, folder }),
            Delivers::Release(mut release) => {
                let namespace = &mut release.settings.namespace;
                namespace.get_or_insert_with(|| around.to_owned());
                let job = release.job(context)?;
                self.rendered.push((*release, job));
            }
        }
        Ok(())
    }
}

/// The deliveries of the object.
fn of_object(delivery: &Delivery, context: &RenderContext<'_>) -> Read {
    if delivery.document.is_null() {
        return Err("it is larger than 4 MiB".into());
    }
    let (read, known): (fn(&Delivery, &RenderContext<'_>) -> Read, _) =
        match delivery.reference.kind.as_str() {
            "HelmRelease" => (helm_release::read, known::HELM_RELEASE),
            "Kustomization" => (flux_kustomization::read, known::KUSTOMIZATION),
            "Application" => (application::read, known::APPLICATION),
            kind => {
                let file = &context.reading.texts[delivery.place.source].source.name;
                return Err(foreign::of_kind(kind, file));
            }
        };
    let read = read(delivery, context)?;
    match known.unknown(&delivery.document) {
        Some(field) => Err(format!("its field {field} is not one that is read here").into()),
        None => Ok(read),
    }
}

/// The refusal of a file that another program renders; `None` for other files.
fn of_file(number: usize, context: &RenderContext<'_>) -> Option<Refused> {
    let file = &context.reading.texts[number].source;
    let (format, reason) = foreign::of_file(file.path()?, &file.name)?;
    // A file with an object may have such a name.
    let text = file.text().ok()?;
    if text.lines().any(|line| line.starts_with("apiVersion:")) {
        return None;
    }
    Some(Refused {
        holder: number,
        name: format!("The file {}", file.name),
        folders: named::by_file(file.real_path()?, &text, context),
        not_judged: reason.not_judged(format, file.name.clone()),
    })
}

/// Two owners are equal if they come from the same place in the same file, even if that file is
/// rendered several times.
impl PartialEq for Owner {
    fn eq(&self, other: &Self) -> bool {
        self.file == other.file && self.reference == other.reference
    }
}

impl Eq for Owner {}

impl Hash for Owner {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.file.hash(state);
        self.reference.hash(state);
    }
}

impl Owner {
    fn of(delivery: &Delivery, context: &RenderContext<'_>) -> Self {
        let text = &context.reading.texts[delivery.place.source].source;
        let template = delivery.template.clone();
        Self {
            place: delivery.place.clone(),
            reference: delivery.reference.clone(),
            file: template.as_deref().unwrap_or(&text.name).into(),
            template,
        }
    }
}

impl Release {
    /// A release with this chart and no other settings.
    fn new(owner: &Owner, name: &str, namespace: Option<&str>, chart: Chart) -> Self {
        Self {
            owner: owner.clone(),
            chart,
            settings: Settings {
                name: name.to_owned(),
                namespace: namespace.filter(|namespace| !namespace.is_empty()).map(str::to_owned),
                ..Settings::default()
            },
            field: "spec".to_owned(),
            unknown: Vec::new(),
        }
    }

    /// Whether it changes more than the namespace of the objects of its kustomization.
    pub(super) fn changes(&self) -> bool {
        self.settings.fields.keys().any(|field| field != "namespace")
            || !self.settings.variables.0.is_empty()
    }

    /// The job that renders it.
    ///
    /// # Errors
    /// Its chart is not available.
    pub(super) fn job(&self, context: &RenderContext<'_>) -> Result<Job, Reason> {
        let root = |folder: &PathBuf, kind: RootKind| {
            roots::at(folder, kind, context.places).ok_or_else(|| {
                format!("{} holds no {} to render", context.path_of(folder), kind.name())
            })
        };
        let files = match &self.chart {
            Chart::Kustomization(folder) => {
                let mut root = if self.chart.is_generated() {
                    roots::generated(folder, context.places)
                } else {
                    root(folder, RootKind::Kustomization)?
                };
                let components = self.settings.fields.get("components").and_then(Value::as_array);
                for name in components.into_iter().flatten().filter_map(Value::as_str) {
                    root.add_component(name, context.places);
                }
                Files::Root(Box::new(root))
            }
            Chart::Manifests(folder, recursive) => Files::Manifests(folder.clone(), *recursive),
            Chart::Folder(folder) => {
                let mut root = root(folder, RootKind::Chart)?;
                dependencies::add(&mut root, context.places);
                Files::Root(Box::new(root))
            }
            Chart::Remote(remote) => match context.places.fetcher.file(remote) {
                Some(file) => Files::Archive(file?),
                None => {
                    let text = format!("its chart is at {}", remote.url());
                    return Err(Reason::elsewhere(remote.url(), &text));
                }
            },
        };
        let settings = self.settings.clone();
        Ok(Job { files, settings })
    }
}

/// The text at the end of the path; `None` if it is empty.
fn text<'v>(value: &'v Value, path: &[&str]) -> Option<&'v str> {
    let text = at(value, path)?.as_str()?;
    (!text.is_empty()).then_some(text)
}

/// The value at the end of the path; `None` if it is null.
fn at<'v>(value: &'v Value, path: &[&str]) -> Option<&'v Value> {
    let found = path.iter().try_fold(value, |value, key| value.get(key))?;
    (!found.is_null()).then_some(found)
}

/// The items of the list at the end of the path.
fn items<'v>(value: &'v Value, path: &[&str]) -> &'v [Value] {
    at(value, path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The fields with these names that a controller puts into a kustomization, and the patches that
/// are written in `from`.
fn fields(from: &Value, names: &[&str]) -> Map<String, Value> {
    let mut fields: Map<String, Value> = names
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), at(from, &[name])?.clone())))
        .collect();
    let patches: Vec<Value> = items(from, &["patches"])
        .iter()
        .filter_map(|entry| Some(patch(entry.get("patch")?.as_str()?, entry)))
        .collect();
    if !patches.is_empty() {
        fields.insert("patches".to_owned(), Value::Array(patches));
    }
    fields
}

/// A patch of a kustomization with this content, for the target in `entry`.
fn patch(content: &str, entry: &Value) -> Value {
    let mut patch = json!({"patch": content});
    if let Some(target) = at(entry, &["target"]) {
        patch["target"] = target.clone();
    }
    patch
}

/// The name, shortened to the length that Helm accepts for a release.
fn cut(name: &str) -> String {
    let name: String = name.chars().take(53).collect();
    name.trim_end_matches('-').to_owned()
}
