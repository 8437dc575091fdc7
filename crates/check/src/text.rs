//! A text to read, and where it is from.

use std::borrow::Borrow;
use std::path::{Path, PathBuf};

use engine::model::object::ObjectRef;
use manifest::read::Position;
use manifest::source::Source;

/// A text to read.
pub struct Text {
    /// Its name, and what it says.
    pub source: Source,
    /// Where it is from.
    pub origin: Origin,
    /// The namespace that a controller gives to those of its objects that name none.
    pub namespace: Option<String>,
    /// What was not rendered and may change its objects, as messages name it.
    pub doubt: Option<String>,
    /// The numbers of the kustomizations that take it and were not rendered.
    pub taken_by: Vec<usize>,
}

/// Where a text is from.
#[derive(Clone, Debug)]
pub enum Origin {
    /// A file.
    File,
    /// Standard input, or a pipe.
    Pipe,
    /// A chart that was rendered by itself.
    Chart(Root),
    /// A kustomization that was rendered by itself.
    Kustomization(Root),
    /// A chart, or a kustomization, that a controller delivers.
    Release(Box<Release>),
}

/// A folder that was rendered by itself.
#[derive(Clone, Debug)]
pub struct Root {
    /// The folder, under the name by which it was reached.
    pub folder: PathBuf,
    /// The folder without links.
    pub real: PathBuf,
    /// The folder that all it was rendered from lies in.
    pub top: PathBuf,
    /// The file that makes the folder a chart or a kustomization.
    pub file: PathBuf,
}

/// What a controller delivers.
#[derive(Clone, Debug)]
pub struct Release {
    /// The object that defines it.
    pub owner: ObjectRef,
    /// The place of that object.
    pub place: Position,
    /// The file that the object was rendered from.
    pub template: Option<Box<str>>,
    /// The field of the object that has its values, or all of it.
    pub field: String,
    /// The numbers of the texts that hold the object.
    pub held_by: Vec<usize>,
    /// The namespace of its objects that name none.
    pub namespace: Option<String>,
    /// What renders it.
    pub renderer: Renderer,
    /// What it is rendered from, as messages name it.
    pub rendered_from: String,
    /// What its values also come from, and is not known: the start of a sentence.
    pub unknown: Option<String>,
}

/// What renders a release.
#[derive(Clone, Debug)]
pub enum Renderer {
    /// Helm, from templates and values.
    Helm,
    /// kustomize, with these values of fields of a kustomization around it.
    Kustomize(Vec<String>),
    /// Nothing: its manifests are applied as they stand.
    Nothing,
}

impl Release {
    /// As messages name it.
    pub(super) fn shown(&self) -> String {
        self.owner.to_string()
    }

    pub(super) const fn is_of_helm(&self) -> bool {
        matches!(self.renderer, Renderer::Helm)
    }

    /// Whether the field of an object is what the object's own file makes it: Helm renders a
    /// template, and a kustomization may patch the field.
    pub(super) fn leaves(&self, field: &str) -> bool {
        let last = field.rsplit('.').next().unwrap_or_default();
        let key = last.split('[').next().unwrap_or_default();
        match &self.renderer {
            Renderer::Kustomize(fields) => {
                key.is_empty() || !fields.iter().any(|it| it.contains(key))
            }
            Renderer::Nothing => true,
            Renderer::Helm => false,
        }
    }
}

impl Text {
    /// A text of that origin.
    pub const fn new(source: Source, origin: Origin) -> Self {
        Self {
            source,
            origin,
            namespace: None,
            doubt: None,
            taken_by: Vec::new(),
        }
    }

    /// What stands in a file or comes from a pipe.
    pub fn read_from(source: Source) -> Self {
        let origin = match source.path() {
            Some(_) => Origin::File,
            None => Origin::Pipe,
        };
        Self::new(source, origin)
    }

    /// The same text where a controller gives its objects another namespace.
    pub fn in_namespace(&self, namespace: &str) -> Self {
        Self {
            source: self.source.clone(),
            origin: self.origin.clone(),
            namespace: Some(namespace.to_owned()),
            doubt: self.doubt.clone(),
            taken_by: self.taken_by.clone(),
        }
    }

    /// The chart or the kustomization that it was rendered from; `None` for a release.
    pub const fn root(&self) -> Option<&Root> {
        match &self.origin {
            Origin::Chart(root) | Origin::Kustomization(root) => Some(root),
            Origin::File | Origin::Pipe | Origin::Release(_) => None,
        }
    }

    /// The release that it was rendered for.
    pub fn release(&self) -> Option<&Release> {
        match &self.origin {
            Origin::Release(release) => Some(release),
            _ => None,
        }
    }

    /// The path, without links, of the file that it is.
    pub fn file(&self) -> Option<&Path> {
        match self.origin {
            Origin::File => self.source.real_path(),
            _ => None,
        }
    }

    /// Whether it was rendered.
    pub const fn is_rendered(&self) -> bool {
        !matches!(self.origin, Origin::File | Origin::Pipe)
    }
}

impl Borrow<Source> for Text {
    fn borrow(&self) -> &Source {
        &self.source
    }
}
