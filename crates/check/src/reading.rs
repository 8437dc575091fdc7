//! The first stage: reads the objects from the texts.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use super::files::Files;
use super::ids::TextId;
use super::namespace::Namespaces;
use super::neighbours::Neighbours;
use super::text::Text;
use manifest::delivery::Delivery;
use manifest::error::ReadError;
use manifest::objects::{Item, read_objects};
use manifest::source::Source;
use report::{Summary, Unopened, Unread};

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
    /// The charts, kustomizations and opaque objects that could not be rendered.
    pub unopened: Vec<Unopened>,
    /// The files of each chart that was not rendered.
    pub unrendered_charts: Vec<Vec<Source>>,
    /// The counts, except those of the objects and the findings.
    pub summary: Summary,
    /// The objects, in the order of the texts.
    pub(super) objects: Vec<Item>,
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
        let (texts, first) = (&self.texts, self.read);
        let read = read_objects(&texts[first..], true);
        let summary = &mut self.summary;
        summary.others += read.others;
        summary.templates += read.templates;
        for (kind, count) in read.skipped {
            *summary.skipped.entry(kind).or_default() += count;
        }
        let named: HashMap<&str, _> =
            texts.iter().map(|text| (text.source.name.as_str(), &text.source)).collect();
        self.unread.extend(read.errors.into_iter().map(|error| {
            let source = named.get(error.file.as_str()).copied();
            unread(error, source, files)
        }));
        let mut nameless = HashMap::new();
        for mut item in read.items {
            item.place.source += first;
            let text = &texts[item.place.source];
            if item.is_part() || self.neighbours.have_as_patch(text) {
                summary.fragments += 1;
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
        self.read = texts.len();
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

    /// Leaves out the objects of these texts, which other texts replace.
    pub fn leave_out(&mut self, texts: &HashSet<usize>) {
        self.objects.retain(|known| !texts.contains(&known.place.source));
    }
}

/// Converts the error for reports. `source` is the source of the error, if it could be opened.
pub fn unread(error: ReadError, source: Option<&Source>, files: &dyn Files) -> Unread {
    let path = match source {
        Some(source) => source.real_path().map(|path| files.path_of(path)),
        None => Some(files.path_of(error.file.as_ref())),
    };
    Unread { path, at: error.at, message: error.problem.to_string(), file: error.file }
}
