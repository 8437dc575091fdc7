//! The place in which a rendered object is written: in a template, in the file of a kustomization,
//! or in the object of a release.

use std::path::{Component, Path};

use super::files::Files;
use super::line;
use super::text::{Release, Root};
use engine::model::object::ObjectRef;
use manifest::delivery::spot_at;
use manifest::error::MAX_BYTES;
use manifest::objects::{Item, read_objects};
use manifest::position::Lines;
use manifest::read::Position;
use manifest::source::{Source, shown};
use report::{Line, Place};

/// The most bytes that are read of the file that makes a folder a chart or a kustomization.
const MAX_ROOT_FILE: u64 = 1 << 20;

/// The place of a rendered object in its source: the one that [`of_template`] finds, or otherwise
/// the start of the file that makes the folder a root. A template may name any file, so only files
/// of the root are read.
pub(super) fn of_root(root: &Root, known: &Item, field: &str, files: &dyn Files) -> Place {
    let folder = shown(&root.folder);
    let found = known.template.as_deref().and_then(|template| {
        of_template(template, &known.reference, field, &root.top, folder.clone(), files)
    });
    found.unwrap_or_else(|| {
        let text = files.text(&root.top, &root.file, MAX_ROOT_FILE);
        let line = first_line(&text.unwrap_or_default());
        line::in_file(line, shown(&root.file), Some(folder), files)
    })
}

/// The line of the file `template`, from which the object was rendered, or the start of that file.
/// `None` if the file is not in the folder `top` or cannot be read. `rendered` is the chart,
/// kustomization or release that messages name.
pub(super) fn of_template(
    template: &str,
    object: &ObjectRef,
    field: &str,
    top: &Path,
    rendered: String,
    files: &dyn Files,
) -> Option<Place> {
    let text = files.text(top, Path::new(template), MAX_BYTES)?;
    let line = line_of(&text, object, field).unwrap_or_else(|| first_line(&text));
    Some(line::in_file(line, template.to_owned(), Some(rendered), files))
}

/// The place of an object from standard input in the file that its text names as its source, if
/// that is a file of the repository with an object of that kind.
pub(super) fn of_piped(known: &Item, field: &str, files: &dyn Files) -> Option<Place> {
    let from = known.template.as_deref()?;
    let file = Path::new(from);
    let is_plain = |part| matches!(part, Component::Normal(_));
    if !file.components().all(is_plain) {
        return None;
    }
    let text = files.text(files.top(), file, MAX_BYTES)?;
    let line = line_of(&text, &known.reference, field)?;
    let piped = "standard input".to_owned();
    Some(line::in_file(line, from.to_owned(), Some(piped), files))
}

fn first_line(text: &str) -> Line {
    line::whole(1, text.lines().next().unwrap_or_default())
}

/// The line of a rendered object in the text from which it was rendered: the line of `field`
/// (`spec.strategy` for example) if it is found, otherwise the line with its kind. The text may be
/// a template, so its lines are searched without a parser. `None` if no line has the kind.
fn line_of(source: &str, object: &ObjectRef, field: &str) -> Option<Line> {
    let lines: Vec<&str> = source.lines().collect();
    let of_kind: Vec<usize> = (0..lines.len())
        .filter(|&at| value_of(lines[at], 0, "kind").is_some_and(|value| *object.kind == *value))
        .collect();
    let document = |at: usize| {
        let is_marker = |line: &&str| line.starts_with("---");
        let start = lines[..at].iter().rposition(is_marker);
        let end = lines[at..].iter().position(is_marker);
        start.map_or(0, |marker| marker + 1)..end.map_or(lines.len(), |marker| at + marker)
    };
    let is_called = |at: &&usize| {
        lines[document(**at)].iter().any(|line| {
            value_of(line, 2, "name")
                .is_some_and(|name| !name.is_empty() && object.name.contains(name))
        })
    };
    let at = *of_kind.iter().find(is_called).or(of_kind.first())?;
    let mut found = at;
    let mut rest = document(at);
    for (depth, key) in field.split('.').enumerate() {
        let (key, is_item) = key.split_once('[').map_or((key, false), |(list, _)| (list, true));
        let Some(next) = rest.find(|&line| value_of(lines[line], depth * 2, key).is_some()) else {
            break;
        };
        found = next;
        // A field of a list's item is searched only down to the list.
        if is_item {
            break;
        }
    }
    Some(line::whole(found + 1, lines[found]))
}

/// The value of `key` on a line that starts with it after `indent` spaces.
fn value_of<'l>(line: &'l str, indent: usize, key: &str) -> Option<&'l str> {
    let (blanks, rest) = line.split_at_checked(indent)?;
    let value =
        rest.strip_prefix(key)?.strip_prefix(':')?.split(" #").next().unwrap_or_default().trim();
    let is_indented = blanks.bytes().all(|byte| byte == b' ');
    is_indented.then(|| value.trim_matches(['"', '\'']))
}

/// The place of a release's values in its object, or of its `spec`. `source` is the one from which
/// the release was read.
pub(super) fn of_release(release: &Release, source: &Source, files: &dyn Files) -> Place {
    let template = release.template.as_deref().map(Path::new);
    template.and_then(|file| in_template(release, file, files)).unwrap_or_else(|| {
        let text = source.text().unwrap_or_default();
        Place {
            file: source.name.clone(),
            path: source.real_path().map(|path| files.path_of(path)),
            line: values_at(release, &text, &release.place),
            template: Some(release.rendered_from.clone()),
        }
    })
}

/// The same place in the file from which a kustomization takes the object.
fn in_template(release: &Release, file: &Path, files: &dyn Files) -> Option<Place> {
    let text = files.text(files.top(), file, MAX_BYTES)?;
    let parsed = read_objects(&[Source::in_memory("", text.clone())], true);
    let reference = &release.owner;
    let named = parsed.deliveries.into_iter().find(|delivery| {
        delivery.reference.kind == reference.kind
            && reference.name.contains(&*delivery.reference.name)
    });
    let place = named.map(|delivery| delivery.place).unwrap_or_default();
    let line = values_at(release, &text, &place);
    let rendered = Some(release.rendered_from.clone());
    Some(line::in_file(line, shown(file), rendered, files))
}

/// The line of the values of a release whose object is at `place` of a file with this text.
fn values_at(release: &Release, text: &str, place: &Position) -> Line {
    let spot = spot_at(text, place, &release.field).unwrap_or_default();
    line::at(&Lines::of(text), spot)
}

#[cfg(test)]
mod tests {
    use super::line_of;
    use engine::model::object::ObjectRef;

    fn object(kind: &str, name: &str) -> ObjectRef {
        ObjectRef {
            api_version: "v1".into(),
            kind: kind.into(),
            namespace: None,
            name: name.into(),
        }
    }

    #[test]
    fn the_line_of_an_object_is_found_in_what_it_was_rendered_from() {
        let template = "\
{{- if .Values.web }}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include \"web.fullname\" . }}
spec:
  replicas: 1
  strategy:
    type: RollingUpdate
  template:
    spec:
      volumes:
        - name: data
{{- end }}
---
kind: Deployment
metadata:
  name: \"db\"   # the database
spec: {}
";
        let table = [
            ("web", "spec.strategy", Some((8, 3, 12))),
            ("web", "spec.replicas", Some((7, 3, 14))),
            ("web", "spec.template.spec.volumes[0]", Some((12, 7, 15))),
            ("web", "spec.paused", Some((6, 1, 6))),
            ("web", "metadata.annotations", Some((4, 1, 10))),
            ("prod-db", "spec.strategy", Some((19, 1, 9))),
        ];
        for (name, field, place) in table {
            let found = line_of(template, &object("Deployment", name), field)
                .map(|line| (line.number, line.column, line.end_column));
            assert_eq!(found, place, "{name} {field}");
        }
        let other = object("StatefulSet", "web");
        assert_eq!(line_of(template, &other, "spec"), None);
        let job = object("Job", "x");
        assert_eq!(line_of("kind: {{ .kind }}\n", &job, "spec"), None);
    }
}
