//! From files to objects to judge and the facts they are for each other.

use std::io;
use std::path::PathBuf;

use super::progress::Progress;
use super::repository::Repository;
use crate::cluster::{BatchOrder, Cluster};
use crate::manifest::cut::Cut;
use crate::manifest::objects::Manifest;
use crate::manifest::place::line_and_column;
use crate::manifest::read::{Place, read};
use crate::manifest::source::{Source, find};
use crate::model::Text;
use crate::model::metadata::Metadata;
use crate::model::object::{Object, ObjectKind, ObjectRef};
use crate::report::{Summary, Unread};

/// The namespace of objects that name none, as for kubectl.
const DEFAULT_NAMESPACE: &str = "default";

/// An object to judge.
pub(super) struct Member {
    pub(super) place: Place,
    /// The object as its manifest names it, without a namespace it does not say.
    pub(super) reference: ObjectRef,
    pub(super) object: Object,
    /// What need not be read again to say where a finding stands.
    pub(super) cut: Option<Cut>,
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

/// What is made of one object while its file is at hand.
enum Read {
    Skipped(Text),
    Malformed {
        line: usize,
        column: usize,
        message: String,
    },
    Object {
        reference: ObjectRef,
        object: Box<Object>,
        cut: Option<Cut>,
    },
}

impl Gathered {
    /// Reads everything under `paths`; what is found there is added to `cluster`.
    pub(super) fn read(paths: &[PathBuf], cluster: Cluster, repository: &Repository) -> Self {
        let found = find(paths, &mut io::stdin().lock());
        let unread: Vec<Unread> = found
            .errors
            .into_iter()
            .map(|error| Unread {
                path: Some(repository.path_of(error.file.as_ref())),
                at: error.line.zip(error.column),
                message: error.problem.to_string(),
                file: error.file,
            })
            .collect();
        Self::of_sources(found.sources, unread, cluster, repository)
    }

    /// Reads the same files again, after they were changed.
    pub(super) fn again(self, cluster: Cluster, repository: &Repository) -> Self {
        Self::of_sources(self.sources, Vec::new(), cluster, repository)
    }

    fn of_sources(
        sources: Vec<Source>,
        mut unread: Vec<Unread>,
        mut cluster: Cluster,
        repository: &Repository,
    ) -> Self {
        let progress = Progress::of(sources.len());
        let reading = read(&sources, read_object, || progress.step());
        drop(progress);

        let path_of = |source: &Source| source.real_path().map(|path| repository.path_of(path));
        let mut summary = Summary {
            files: sources.len() + unread.len(),
            others: reading.others,
            ..Summary::default()
        };
        unread.extend(reading.errors.into_iter().map(|error| {
            let source = sources.iter().find(|source| source.name == error.file);
            Unread {
                path: source.and_then(path_of),
                at: error.line.zip(error.column),
                message: error.problem.to_string(),
                file: error.file,
            }
        }));
        let mut members = Vec::new();
        for (place, read) in reading.objects {
            match read {
                Read::Skipped(kind) => {
                    *summary.skipped.entry(kind.into()).or_default() += 1;
                }
                Read::Malformed {
                    line,
                    column,
                    message,
                } => {
                    let source = &sources[place.source];
                    unread.push(Unread {
                        file: source.name.clone(),
                        path: path_of(source),
                        at: Some((line, column)),
                        message,
                    });
                }
                Read::Object {
                    reference,
                    object,
                    cut,
                } if is_judged(&object) => {
                    let object = *object;
                    cluster.apply(object.clone());
                    members.push(Member {
                        place,
                        reference,
                        object,
                        cut,
                    });
                }
                Read::Object { object, .. } => {
                    summary.facts += 1;
                    cluster.apply(*object);
                }
            }
        }
        summary.judged = members.len();
        summary.unreadable = unread.len();
        let objects = members.iter().map(|member| &member.object);
        let order = BatchOrder::of(objects.enumerate());
        Self {
            sources,
            members,
            order,
            cluster,
            unread,
            summary,
        }
    }
}

const fn is_judged(object: &Object) -> bool {
    matches!(
        object,
        Object::Workload(_) | Object::Claim(_) | Object::Autoscaler(_)
    )
}

fn read_object(manifest: &Manifest<'_, '_>) -> Read {
    let Some(kind) = ObjectKind::of_manifest(manifest.api_version, manifest.kind) else {
        return Read::Skipped(manifest.kind.into());
    };
    match manifest.tree.decode_seed(manifest.id, kind) {
        Ok(mut object) => {
            let reference = reference(manifest, &object);
            if !matches!(object, Object::Namespace(_))
                && let Some(metadata) = object.metadata_mut()
                && metadata.namespace.is_empty()
            {
                metadata.namespace = DEFAULT_NAMESPACE.into();
            }
            let cut = match &object {
                Object::Workload(workload) if !workload.template.volumes.is_empty() => {
                    let containers = format!("{}.containers", workload.kind.pod_spec_path());
                    Cut::of(manifest.tree, manifest.id, &containers)
                }
                _ => None,
            };
            Read::Object {
                reference,
                object: Box::new(object),
                cut,
            }
        }
        Err(error) => {
            let start = manifest.tree.node(manifest.id).start as usize;
            let at = error.at().unwrap_or(start);
            let (line, column) = line_and_column(manifest.part.text, at);
            Read::Malformed {
                line: line + manifest.part.line - 1,
                column,
                message: format!("This {} cannot be read: {error}.", manifest.kind),
            }
        }
    }
}

fn reference(manifest: &Manifest<'_, '_>, object: &Object) -> ObjectRef {
    let metadata = object.metadata();
    ObjectRef {
        api_version: manifest.api_version.into(),
        kind: manifest.kind.into(),
        namespace: metadata
            .map(|metadata| metadata.namespace.clone())
            .filter(|namespace| !namespace.is_empty()),
        name: metadata.map(Metadata::shown_name).unwrap_or_default(),
    }
}
