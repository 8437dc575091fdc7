//! Where what a release delivers can be changed.

use std::fs;
use std::path::{Path, PathBuf};

use super::values::At;
use super::{Chart, Release};
use crate::cli::check::files::text_inside;
use crate::cli::check::render::origin::shown;
use crate::cli::check::repository::Repository;
use crate::report::Place;
use manifest::delivery::spot_at;
use manifest::objects::read_objects;
use manifest::position::Lines;
use manifest::source::{MAX_BYTES, Source};

/// The place of the release's values in the file that it stands in, or of the whole object. The
/// source is the one that it was read from.
pub(in crate::cli::check) fn place(
    release: &Release,
    source: &Source,
    repository: &Repository,
) -> Place {
    let owner = &release.owner;
    let field = release.values.iter().rev().find_map(|layer| match &layer.at {
        At::Field(field) => Some(field.as_str()),
        At::File(_) | At::Elsewhere => None,
    });
    let field = field.unwrap_or("spec");
    let written = match &owner.template {
        Some(file) => in_template(release, Path::new(&**file), field, repository),
        None => None,
    };
    let (file, path, text, start, end) = written.unwrap_or_else(|| {
        let text = source.text().unwrap_or_default().into_owned();
        let spot = spot_at(&text, &owner.place, field);
        let (start, end) = spot.map_or((0, 0), |spot| (spot.start, spot.end));
        let path = source.real_path().map(|path| repository.path_of(path));
        (source.name.clone(), path, text, start, end)
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
        template: Some(release.chart.shown(repository)),
    }
}

/// The object in the file that a kustomization takes it from: its name, path, text and the field.
fn in_template(
    release: &Release,
    file: &Path,
    field: &str,
    repository: &Repository,
) -> Option<(String, Option<String>, String, usize, usize)> {
    let real = fs::canonicalize(file).ok()?;
    let text = text_inside(repository.root(), &real, MAX_BYTES).ok()?;
    let parsed = read_objects(&[Source::in_memory("", text.clone())], true, || {});
    let reference = &release.owner.reference;
    let mut named = parsed.deliveries.iter().filter(|it| {
        it.reference.kind == reference.kind && reference.name.contains(&*it.reference.name)
    });
    let spot = named.next().and_then(|it| spot_at(&text, &it.place, field));
    let (start, end) = spot.map_or((0, 0), |spot| (spot.start, spot.end));
    let path = Some(repository.path_of(&real));
    Some((shown(file), path, text, start, end))
}

impl Chart {
    /// As messages name it.
    pub(in crate::cli::check) fn shown(&self, repository: &Repository) -> String {
        match self {
            Self::Folder(folder) | Self::Kustomization(folder, _) => repository.path_of(folder),
            Self::Repository { url, name, version } => {
                format!("{}/{name} {version}", url.trim_end_matches('/'))
            }
            Self::Oci { url, version } => format!("{url} {version}"),
        }
    }

    /// The folder of this repository that it is rendered from.
    pub(in crate::cli::check) const fn folder(&self) -> Option<&PathBuf> {
        match self {
            Self::Folder(folder) | Self::Kustomization(folder, _) => Some(folder),
            Self::Repository { .. } | Self::Oci { .. } => None,
        }
    }
}
