//! A text to read, and its origin.

use std::borrow::Borrow;
use std::path::{Path, PathBuf};

use engine::model::object::ObjectRef;
use manifest::read::Position;
use manifest::source::Source;

/// A text to read.
#[derive(Clone)]
pub struct Text {
    /// Its name and content.
    pub source: Source,
    /// Its origin.
    pub origin: Origin,
    /// The namespace that a controller sets on the objects that name none.
    pub namespace: Option<String>,
    /// The name, as in messages, of the kustomization or release that was not rendered and may
    /// change its objects.
    pub doubt: Option<String>,
    /// The numbers of the unrendered kustomizations that include it.
    pub taken_by: Vec<usize>,
}

/// The origin of a text.
#[derive(Clone, Debug)]
pub enum Origin {
    /// A file, standard input or a pipe.
    Input,
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
    /// The folder, by the path through which it was found.
    pub folder: PathBuf,
    /// The folder, with links followed.
    pub real: PathBuf,
    /// The folder that contains all files from which it was rendered.
    pub top: PathBuf,
    /// The file that makes the folder a chart or a kustomization.
    pub file: PathBuf,
}

/// A chart or kustomization that a controller delivers.
#[derive(Clone, Debug)]
pub struct Release {
    /// The object that defines it.
    pub owner: ObjectRef,
    /// The place of that object.
    pub place: Position,
    /// The file from which the object was rendered.
    pub template: Option<Box<str>>,
    /// The field of the object that contains its values, or `spec`.
    pub field: String,
    /// The numbers of the texts that contain the object.
    pub held_by: Vec<usize>,
    /// The namespace of its objects that name none.
    pub namespace: Option<String>,
    /// The program that renders it.
    pub renderer: Renderer,
    /// The chart or kustomization from which it is rendered, as shown in messages.
    pub rendered_from: String,
    /// A further source of its values that is not known: the start of a sentence.
    pub unknown: Option<String>,
}

/// The program that renders a release.
#[derive(Clone, Debug)]
pub enum Renderer {
    /// Helm, from templates and values.
    Helm,
    /// Kustomize, with the values of these fields of a kustomization around it.
    Kustomize(Vec<String>),
    /// No program: its manifests are applied unchanged.
    Nothing,
}

impl Release {
    pub(super) const fn is_of_helm(&self) -> bool {
        matches!(self.renderer, Renderer::Helm)
    }

    /// Whether the field of an object has the value from the object's own file. Helm renders a
    /// template, and a kustomization may patch the field.
    pub(super) fn leaves(&self, field: &str) -> bool {
        let last = field.rsplit('.').next().unwrap_or_default();
        let key = last.split('[').next().unwrap_or_default();
        match &self.renderer {
            Renderer::Kustomize(fields) => {
                key.is_empty() || !fields.iter().any(|changed| changed.contains(key))
            }
            Renderer::Nothing => true,
            Renderer::Helm => false,
        }
    }
}

impl Text {
    /// A text with that origin.
    pub const fn new(source: Source, origin: Origin) -> Self {
        Self { source, origin, namespace: None, doubt: None, taken_by: Vec::new() }
    }

    /// The text of a file or a pipe.
    pub const fn read_from(source: Source) -> Self {
        Self::new(source, Origin::Input)
    }

    /// The same text for a controller that sets another namespace on its objects.
    pub fn in_namespace(&self, namespace: &str) -> Self {
        Self { namespace: Some(namespace.to_owned()), ..self.clone() }
    }

    /// The chart or the kustomization from which it was rendered; `None` for a release.
    pub const fn root(&self) -> Option<&Root> {
        match &self.origin {
            Origin::Chart(root) | Origin::Kustomization(root) => Some(root),
            Origin::Input | Origin::Release(_) => None,
        }
    }

    /// The release for which it was rendered.
    pub fn release(&self) -> Option<&Release> {
        match &self.origin {
            Origin::Release(release) => Some(release),
            _ => None,
        }
    }

    /// The path of the file, with links followed; `None` for other origins.
    pub fn file(&self) -> Option<&Path> {
        self.source.real_path().filter(|_| !self.is_rendered())
    }

    /// Whether it was rendered.
    pub const fn is_rendered(&self) -> bool {
        !matches!(self.origin, Origin::Input)
    }
}

impl Borrow<Source> for Text {
    fn borrow(&self) -> &Source {
        &self.source
    }
}
