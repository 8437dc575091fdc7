//! Where what a release delivers can be changed.

use std::fs;
use std::path::{Path, PathBuf};

use super::values::At;
use super::{Chart, Release};
use crate::cli::check::fetch::Remote;
use crate::cli::check::files::text_inside;
use crate::cli::check::parsed_object::ParsedObject;
use crate::cli::check::render::dependencies;
use crate::cli::check::render::origin::{line_in, shown};
use crate::cli::check::repository::Repository;
use manifest::delivery::spot_at;
use manifest::objects::read_objects;
use manifest::position::Lines;
use manifest::read::Position;
use manifest::source::{MAX_BYTES, Source};
use report::Place;

/// The place of a release's values in its object, or of the whole object. The source is the one
/// that the release was read from.
pub(in crate::cli::check) fn place(
    release: &Release,
    source: &Source,
    repository: &Repository,
) -> Place {
    let owner = &release.owner;
    let mut layers = release.values.iter().rev();
    let field = layers.find_map(|it| match &it.at {
        At::Field(field) | At::Text(field) => Some(field.as_str()),
        At::Elsewhere => None,
    });
    let field = field.unwrap_or("spec");
    let template = owner.template.as_deref().map(Path::new);
    let written = template.and_then(|it| in_template(release, it, field, repository));
    let Written {
        file,
        path,
        text,
        start,
        end,
    } = written.unwrap_or_else(|| {
        let text = source.text().unwrap_or_default().into_owned();
        let path = source.real_path().map(|path| repository.path_of(path));
        Written::of(source.name.clone(), path, text, &owner.place, field)
    });
    let lines = Lines::of(&text);
    let (line, column) = lines.line_and_column(start);
    let (_, end_column) = lines.line_and_column(end);
    Place {
        file,
        path,
        line,
        column,
        end_column: end_column.max(column + 1),
        text: text.lines().nth(line - 1).unwrap_or_default().to_owned(),
        template: Some(match &release.elsewhere {
            Some(name) => name.clone(),
            None => release.chart.shown(repository),
        }),
    }
}

/// The field of an object in the file of the repository, named `from`, that it was rendered from.
pub(in crate::cli::check) fn place_in(
    from: &str,
    release: &Release,
    known: &ParsedObject,
    field: &str,
    repository: &Repository,
) -> Option<Place> {
    let line = line_in(from, repository.root(), &known.reference, field)?;
    Some(line.in_file(from.to_owned(), release.shown(), repository))
}

/// A field in the text of a file.
struct Written {
    file: String,
    path: Option<String>,
    text: String,
    start: usize,
    end: usize,
}

impl Written {
    fn of(file: String, path: Option<String>, text: String, place: &Position, field: &str) -> Self {
        let spot = spot_at(&text, place, field);
        let (start, end) = spot.map_or((0, 0), |spot| (spot.start, spot.end));
        Self {
            file,
            path,
            text,
            start,
            end,
        }
    }
}

/// The field in the object of the file that a kustomization takes it from.
fn in_template(
    release: &Release,
    file: &Path,
    field: &str,
    repository: &Repository,
) -> Option<Written> {
    let real = fs::canonicalize(file).ok()?;
    let text = text_inside(repository.root(), &real, MAX_BYTES).ok()?;
    let parsed = read_objects(&[Source::in_memory("", text.clone())], true, || {});
    let reference = &release.owner.reference;
    let mut named = parsed.deliveries.into_iter().filter(|it| {
        it.reference.kind == reference.kind && reference.name.contains(&*it.reference.name)
    });
    let place = named.next().map_or_else(Position::start, |it| it.place);
    let path = Some(repository.path_of(&real));
    Some(Written::of(shown(file), path, text, &place, field))
}

impl Chart {
    /// As messages name it.
    pub(in crate::cli::check) fn shown(&self, repository: &Repository) -> String {
        match self {
            Self::Remote(remote) => remote.to_string(),
            Self::Folder(folder)
            | Self::Kustomization(folder, _)
            | Self::Generated(folder, _)
            | Self::Manifests(folder, _) => repository.path_of(folder),
        }
    }

    /// Whether the field of an object is what the object's own file makes it: Helm renders a
    /// template, and a kustomization may patch the field.
    pub(in crate::cli::check) fn leaves(&self, field: &str) -> bool {
        let last = field.rsplit('.').next().unwrap_or_default();
        let key = last.split('[').next().unwrap_or_default();
        match self {
            Self::Kustomization(_, fields) | Self::Generated(_, fields) => {
                key.is_empty() || !fields.values().any(|it| it.to_string().contains(key))
            }
            Self::Manifests(..) => true,
            Self::Folder(_) | Self::Remote(_) => false,
        }
    }

    /// Whether Helm renders it, with values.
    pub(in crate::cli::check) const fn is_helm(&self) -> bool {
        matches!(self, Self::Folder(_) | Self::Remote(_))
    }

    /// The folder that it is rendered from, without what a release adds.
    pub(in crate::cli::check) const fn folder(&self) -> Option<&PathBuf> {
        match self {
            Self::Folder(folder) | Self::Kustomization(folder, _) | Self::Generated(folder, _) => {
                Some(folder)
            }
            Self::Manifests(..) | Self::Remote(_) => None,
        }
    }

    /// The folder on this machine that holds it.
    pub(super) const fn folder_on_disk(&self) -> Option<&PathBuf> {
        match self {
            Self::Manifests(folder, _) => Some(folder),
            _ => self.folder(),
        }
    }

    /// What is fetched for it.
    pub(super) fn remotes(&self) -> Vec<Remote> {
        match self {
            Self::Remote(remote) => vec![remote.clone()],
            Self::Folder(folder) => dependencies::remote(folder),
            Self::Kustomization(..) | Self::Generated(..) | Self::Manifests(..) => Vec::new(),
        }
    }
}
