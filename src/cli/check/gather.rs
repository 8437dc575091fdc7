//! From files to objects to judge and the facts they are for each other.

use std::io;
use std::path::PathBuf;

use super::progress::Progress;
use super::repository::Repository;
use crate::cluster::{BatchOrder, Cluster};
use crate::manifest::error::ReadError;
use crate::manifest::outline::Outline;
use crate::manifest::read::{Item, Note, Place, read_objects};
use crate::manifest::source::{Exclude, Source, find};
use crate::model::object::{Object, ObjectRef};
use crate::report::{Summary, Unread};

/// The namespace of objects that name none, as for kubectl.
const DEFAULT_NAMESPACE: &str = "default";

/// An object to judge.
pub(super) struct Member {
    pub(super) place: Place,
    /// The object as its manifest names it, without a namespace it does not say.
    pub(super) reference: ObjectRef,
    pub(super) object: Object,
    pub(super) outline: Outline,
    /// The Helm template it was rendered from.
    pub(super) template: Option<Box<str>>,
    pub(super) notes: Vec<Note>,
}

/// All that was read.
pub(super) struct Gathered {
    pub(super) sources: Vec<Source>,
    pub(super) members: Vec<Member>,
    pub(super) order: BatchOrder,
    pub(super) cluster: Cluster,
    pub(super) unread: Vec<Unread>,
    /// The numbers, but for the findings.
    pub(super) summary: Summary,
}

impl Gathered {
    /// Reads everything under `paths`, but for what is excluded; what is found there
    /// is added to `cluster`.
    pub(super) fn read(
        paths: &[PathBuf],
        exclude: &Exclude,
        cluster: Cluster,
        repository: &Repository,
    ) -> Self {
        let found = find(paths, exclude, &mut io::stdin().lock());
        let unread = found
            .errors
            .into_iter()
            .map(|error| unread(error, &[], repository))
            .collect();
        let summary = Summary {
            links: found.links,
            ..Summary::default()
        };
        Self::of_sources(found.sources, unread, summary, cluster, repository)
    }

    /// Reads the same files again, after they were changed.
    pub(super) fn again(self, cluster: Cluster, repository: &Repository) -> Self {
        let summary = Summary {
            links: self.summary.links,
            ..Summary::default()
        };
        Self::of_sources(self.sources, Vec::new(), summary, cluster, repository)
    }

    fn of_sources(
        sources: Vec<Source>,
        mut unread_files: Vec<Unread>,
        mut summary: Summary,
        mut cluster: Cluster,
        repository: &Repository,
    ) -> Self {
        let progress = Progress::of(sources.len());
        let read = read_objects(&sources, true, || progress.step());
        drop(progress);

        summary.files = sources.len() + unread_files.len();
        summary.others = read.others;
        summary.templates = read.templates;
        summary.skipped = read.skipped;
        let errors = read.errors.into_iter();
        unread_files.extend(errors.map(|error| unread(error, &sources, repository)));
        let mut members = Vec::new();
        for item in read.items {
            let Item {
                place,
                reference,
                mut object,
                missing,
                template,
                outline,
                notes,
                ..
            } = item;
            if missing.is_some() {
                summary.fragments += 1;
                continue;
            }
            place_in_default_namespace(&mut object);
            cluster.apply(object.clone());
            match outline {
                Some(outline) if is_judged(&object) => members.push(Member {
                    place,
                    reference,
                    object,
                    outline,
                    template,
                    notes,
                }),
                _ => summary.facts += 1,
            }
        }
        summary.judged = members.len();
        summary.unreadable = unread_files.len();
        let objects = members.iter().map(|member| &member.object);
        let order = BatchOrder::of(objects.enumerate());
        Self {
            sources,
            members,
            order,
            cluster,
            unread: unread_files,
            summary,
        }
    }
}

fn unread(error: ReadError, sources: &[Source], repository: &Repository) -> Unread {
    let source = sources.iter().find(|source| source.name == error.file);
    let path = match source {
        Some(source) => source.real_path().map(|path| repository.path_of(path)),
        None => Some(repository.path_of(error.file.as_ref())),
    };
    Unread {
        path,
        at: error.line.zip(error.column),
        message: error.problem.to_string(),
        file: error.file,
    }
}

const fn is_judged(object: &Object) -> bool {
    matches!(
        object,
        Object::Workload(_) | Object::Claim(_) | Object::Autoscaler(_)
    )
}

fn place_in_default_namespace(object: &mut Object) {
    if !matches!(object, Object::Namespace(_))
        && let Some(metadata) = object.metadata_mut()
        && metadata.namespace.is_empty()
    {
        metadata.namespace = DEFAULT_NAMESPACE.into();
    }
}
