//! The first stage: reads the objects from the texts.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;
use std::path::PathBuf;

use super::files::Files;
use super::ids::TextId;
use super::namespace::Namespaces;
use super::neighbours::Neighbours;
use super::text::Text;
use super::written::of_template;
use engine::model::object::{Object, ObjectRef};
use manifest::delivery::{Delivery, Role};
use manifest::error::{ReadError, RenderedFrom};
use manifest::objects::{Item, read_objects};
use manifest::source::Source;
use report::{Cause, NotJudged, Summary, Unread};

/// Texts, and the objects that were read from them.
#[derive(Default)]
pub struct Reading {
    /// The texts. Further texts may be added, and [`Self::read`] then reads them.
    pub texts: Vec<Text>,
    /// Releases and the objects they refer to.
    pub deliveries: Vec<Delivery>,
    /// The checked files, with links followed, that are parts of rendered output.
    pub parts: HashSet<PathBuf>,
    /// The files and documents that could not be read.
    pub unread: Vec<Unread>,
    /// Everything that could have had findings and is not judged, except unreadable files.
    pub not_judged: Vec<NotJudged>,
    /// The files of each chart that was not rendered.
    pub unrendered_charts: Vec<Vec<Source>>,
    /// The counts, except those of the objects and the findings.
    pub summary: Summary,
    /// The objects, in the order of the texts.
    pub(super) objects: Vec<Item>,
    /// The whole objects in patches and components, each with the name of its file.
    withheld: Vec<(String, Item)>,
    pub(super) neighbours: Neighbours,
    pub(super) namespaces: Namespaces,
    /// The number of texts that were read.
    read: usize,
}

impl Reading {
    /// Reads the texts. `namespace` applies to objects that name none, unless a kustomization, a
    /// release or a controller sets one.
    pub fn of(texts: Vec<Text>, namespace: Option<&str>, files: &dyn Files) -> Self {
        let mut reading =
            Self { neighbours: Neighbours::among(&texts, files), texts, ..Self::default() };
        reading.summary.files = reading.texts.iter().filter(|text| !text.is_rendered()).count();
        reading.read(files);
        reading.namespaces = Namespaces::of(&reading.objects, &reading.texts, namespace);
        reading
    }

    /// Reads the texts that were added.
    pub fn read(&mut self, files: &dyn Files) {
        self.read_texts(self.read..self.texts.len(), files);
        self.read = self.texts.len();
    }

    /// Reads the text with this number again, from another source.
    pub(super) fn read_again(&mut self, number: usize, source: Source, files: &dyn Files) {
        self.texts[number].source = source;
        self.objects.retain(|known| known.place.source != number);
        self.read_texts(number..number + 1, files);
        self.objects.sort_by_key(|known| known.place.source);
    }

    fn read_texts(&mut self, numbers: Range<usize>, files: &dyn Files) {
        let (texts, first) = (&self.texts, numbers.start);
        let read = read_objects(&texts[numbers], true);
        let summary = &mut self.summary;
        summary.others += read.others;
        let template =
            |number: usize| NotJudged::template(texts[first + number].source.name.clone());
        self.not_judged.extend(read.templates.into_iter().map(template));
        for (kind, count) in read.skipped {
            *summary.skipped.entry(kind).or_default() += count;
        }
        let named: HashMap<&str, &Text> =
            texts.iter().map(|text| (text.source.name.as_str(), text)).collect();
        for error in read.errors {
            let text = named.get(error.file.as_str());
            let at_template = text.and_then(|text| unread_template(&error, text, files));
            let found =
                at_template.unwrap_or_else(|| unread(error, text.map(|text| &text.source), files));
            // Several overlays may render the same object.
            if !self.unread.contains(&found) {
                self.unread.push(found);
            }
        }
        let mut nameless = HashMap::new();
        for mut item in read.items {
            item.place.source += first;
            let text = &texts[item.place.source];
            let is_withheld = self.neighbours.have_as_patch(text);
            if is_withheld || item.is_part() {
                summary.fragments += 1;
                if item.is_whole() {
                    self.withheld.push((text.source.name.clone(), item));
                }
                continue;
            }
            if item.reference.name.is_empty() {
                // Two objects without a name are not one object.
                let count = nameless.entry((item.place.source, item.object.kind())).or_insert(0);
                *count += 1;
                item.call(&match count {
                    1 => "(no name)".to_owned(),
                    count => format!("(no name {count})"),
                });
            }
            self.objects.push(item);
        }
        for mut delivery in read.deliveries {
            delivery.place.source += first;
            let text = &texts[delivery.place.source];
            if !self.neighbours.have_as_patch(text) {
                self.deliveries.push(delivery);
            }
        }
    }

    /// The namespaces of the texts from the number `first` on.
    pub fn namespaces(&self, first: usize) -> Vec<String> {
        let texts = self.texts.iter().enumerate().skip(first);
        let around = |(number, text): (usize, &Text)| {
            let found = || self.namespaces.around(TextId(number), text, &self.neighbours);
            text.namespace.clone().unwrap_or_else(|| found().into())
        };
        texts.map(around).collect()
    }

    /// The files, with links followed, of the judged objects and the releases in the `wanted` texts;
    /// for an object without a file, its folder.
    pub fn files_of(&self, wanted: impl Fn(usize) -> bool, files: &dyn Files) -> BTreeSet<PathBuf> {
        let objects = self
            .objects
            .iter()
            .filter(|known| known.is_judged())
            .map(|known| (known.place.source, known.template.as_deref()));
        let releases = self
            .deliveries
            .iter()
            .filter(|delivery| delivery.role == Role::Release)
            .map(|delivery| (delivery.place.source, delivery.template.as_deref()));
        let names: BTreeSet<&str> = objects
            .chain(releases)
            .filter(|(text, _)| wanted(*text))
            .map(|(text, template)| template.unwrap_or(&self.texts[text].source.name))
            .collect();
        names.into_iter().filter_map(|name| files.real(name.as_ref())).collect()
    }

    /// Takes note of the whole objects in patches of what was rendered.
    pub fn withhold(&mut self, patches: &[Source]) {
        let whole = read_objects(patches, false).items.into_iter().filter(Item::is_whole);
        let named = whole.map(|item| (patches[item.place.source].name.clone(), item));
        self.withheld.extend(named);
    }

    /// The files with whole objects that only patches or components hold, and that are in nothing
    /// that is judged.
    pub fn hidden(&self) -> Vec<NotJudged> {
        let is_judged =
            |withheld: &Item| self.objects.iter().any(|judged| may_contain(judged, withheld));
        let mut hidden: Vec<NotJudged> = Vec::new();
        for (file, item) in self.withheld.iter().filter(|(_, item)| !is_judged(item)) {
            if hidden.last().is_none_or(|last| last.place != *file) {
                let ObjectRef { kind, name, .. } = &item.reference;
                let reason = format!(
                    "it is a patch or part of a component, and no judged manifest contains its {kind} {name} as it is written there"
                );
                hidden.push(NotJudged::new("file", file.clone(), &reason, Cause::Unused));
            }
        }
        hidden
    }

    /// Leaves out the objects of these texts, which other texts replace.
    pub fn leave_out(&mut self, texts: &HashSet<usize>) {
        self.objects.retain(|known| !texts.contains(&known.place.source));
    }
}

/// Whether the judged object may be the result of the withheld one: what that one states about its
/// pods is still there. A kustomization may have put words around the names, and something else may
/// have added claims.
fn may_contain(judged: &Item, withheld: &Item) -> bool {
    let is_named = judged.reference.kind == withheld.reference.kind
        && judged.reference.name.contains(&*withheld.reference.name);
    let decides_alike = match (&judged.object, &withheld.object) {
        (Object::Workload(own), Object::Workload(other)) => {
            let has = |claim: &engine::model::Text| {
                own.template.claims().any(|its| its.contains(&**claim))
            };
            let document = withheld.outline.document();
            let states = |field: &str| document["spec"].get(field).is_some();
            let has_strategy = states("strategy") || states("updateStrategy");
            (!has_strategy || own.strategy == other.strategy)
                && (!states("replicas") || own.replicas == other.replicas)
                && other.template.claims().all(has)
        }
        (Object::Autoscaler(own), Object::Autoscaler(other)) => {
            own.spec.max_replicas == other.spec.max_replicas
        }
        _ => true,
    };
    is_named && decides_alike
}

/// The error of a rendered object, at the field in the file from which it was rendered.
fn unread_template(error: &ReadError, text: &Text, files: &dyn Files) -> Option<Unread> {
    let RenderedFrom { template, object, field } = error.rendered.as_deref()?;
    let top = text.root().map_or(files.top(), |root| root.top.as_path());
    let place = of_template(template, object, field, top, String::new(), files)?;
    let message = error.problem.to_string();
    Some(Unread {
        file: place.file,
        path: place.path,
        at: Some((place.line.number, place.line.column)),
        message: format!("{} in {field}.", message.trim_end_matches('.')),
    })
}

/// Converts the error for reports. `source` is the source of the error, if it could be opened.
pub fn unread(error: ReadError, source: Option<&Source>, files: &dyn Files) -> Unread {
    let path = match source {
        Some(source) => source.real_path().map(|path| files.path_of(path)),
        None => Some(files.path_of(error.file.as_ref())),
    };
    Unread { path, at: error.at, message: error.problem.to_string(), file: error.file }
}
