//! A text to read, and where it is from.

use std::borrow::Borrow;
use std::path::Path;

use super::releases::Release;
use super::render::roots::{Root, RootKind};
use manifest::source::Source;

/// A text to read.
pub(super) struct Text {
    pub(super) source: Source,
    pub(super) origin: Origin,
    /// The namespace that a controller gives to those of its objects that name none.
    pub(super) namespace: Option<String>,
    /// What was not rendered and may change its objects, as messages name it.
    pub(super) doubt: Option<String>,
    /// The numbers of the kustomizations that take it and were not rendered.
    pub(super) taken_by: Vec<usize>,
}

/// Where a text is from.
#[derive(Clone)]
pub(super) enum Origin {
    File,
    /// Standard input, or a pipe.
    Pipe,
    Chart(Root),
    Kustomization(Root),
    Release {
        release: Box<Release>,
        /// The numbers of the texts that hold the release.
        held_by: Vec<usize>,
    },
}

impl Text {
    /// What stands in a file or comes from a pipe.
    pub(super) fn read_from(source: Source) -> Self {
        let origin = match source.path() {
            Some(_) => Origin::File,
            None => Origin::Pipe,
        };
        Self::new(source, origin)
    }

    /// What the root was rendered to.
    pub(super) fn of_root(root: Root, text: String) -> Self {
        let source = Source::rendered(&root.folder.to_string_lossy(), text);
        let origin = match root.kind {
            RootKind::Chart => Origin::Chart(root),
            RootKind::Kustomization => Origin::Kustomization(root),
        };
        Self::new(source, origin)
    }

    /// What the release was rendered to.
    pub(super) fn of_release(release: Release, text: String) -> Self {
        let source = Source::rendered(&release.shown(), text);
        let held_by = vec![release.owner.place.source];
        let release = Box::new(release);
        Self::new(source, Origin::Release { release, held_by })
    }

    /// The same text where a controller gives its objects another namespace.
    pub(super) fn in_namespace(&self, namespace: &str) -> Self {
        Self {
            source: self.source.clone(),
            origin: self.origin.clone(),
            namespace: Some(namespace.to_owned()),
            doubt: self.doubt.clone(),
            taken_by: self.taken_by.clone(),
        }
    }

    const fn new(source: Source, origin: Origin) -> Self {
        Self {
            source,
            origin,
            namespace: None,
            doubt: None,
            taken_by: Vec::new(),
        }
    }

    /// The chart or the kustomization that it was rendered from; `None` for a release.
    pub(super) const fn root(&self) -> Option<&Root> {
        match &self.origin {
            Origin::Chart(root) | Origin::Kustomization(root) => Some(root),
            Origin::File | Origin::Pipe | Origin::Release { .. } => None,
        }
    }

    pub(super) fn release(&self) -> Option<&Release> {
        match &self.origin {
            Origin::Release { release, .. } => Some(release),
            _ => None,
        }
    }

    /// The path, without links, of the file that it is.
    pub(super) fn file(&self) -> Option<&Path> {
        match self.origin {
            Origin::File => self.source.real_path(),
            _ => None,
        }
    }

    pub(super) const fn is_rendered(&self) -> bool {
        !matches!(self.origin, Origin::File | Origin::Pipe)
    }
}

impl Borrow<Source> for Text {
    fn borrow(&self) -> &Source {
        &self.source
    }
}
