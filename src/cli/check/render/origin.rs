//! From a rendered object back to the file it came from.
//!
//! Helm writes `# Source: chart/templates/web.yaml` above each object. kustomize
//! annotates each with its origin when asked to; [`of_kustomize`] turns that into
//! the same comment, so that a rendered text says in one way where it is from.

use std::fs;
use std::path::{Component, Path, PathBuf};

use super::super::files::{MAX_ROOT_FILE, text_inside};
use super::super::repository::Repository;
use super::roots::Root;
use engine::model::object::ObjectRef;
use manifest::source::MAX_BYTES;
use report::Place;

/// The start of the line above an object.
const SOURCE: &str = "# Source: ";

/// The annotation of kustomize's `buildMetadata: [originAnnotations]`.
const ORIGIN: &str = "config.kubernetes.io/origin: |";

/// Helm's output with the files named as the user names them: `chart` is the
/// folder that Helm calls by the chart's name.
pub(super) fn of_helm(text: &str, chart: &Path) -> String {
    with_lines(text, |line| {
        let source = line.strip_prefix(SOURCE)?;
        let (_, inner) = source.trim_end().split_once('/')?;
        Some(format!("{SOURCE}{}", shown(&chart.join(inner))))
    })
}

/// kustomize's output with a line above each object that names its file.
/// `file_of` gives the path, without links, of what an origin names.
pub(super) fn of_kustomize(
    text: &str,
    file_of: impl Fn(&str) -> PathBuf,
    naming: &Naming,
    fetched: Option<&Path>,
) -> String {
    let mut out = String::with_capacity(text.len() + 1024);
    for document in text.split_inclusive("\n---\n") {
        if let Some(origin) = origin(document) {
            let file = naming.of(&file_of(origin), fetched);
            out.push_str(&format!("{SOURCE}{file}\n"));
        }
        out.push_str(document);
    }
    out
}

/// How files are called in messages: by the path from the working directory
/// where they are under it.
pub(super) struct Naming {
    /// The working directory without links.
    pub(super) here: PathBuf,
}

impl Naming {
    fn of(&self, real: &Path, fetched: Option<&Path>) -> String {
        if let Some(file) = fetched.and_then(|top| super::super::fetch::shown(top, real)) {
            return shown(&file);
        }
        shown(real.strip_prefix(&self.here).unwrap_or(real))
    }
}

/// The file that the annotation of a document names.
fn origin(document: &str) -> Option<&str> {
    let mut lines = document.lines();
    let indent = lines.find_map(|line| line.find(ORIGIN).filter(|at| is_blank(&line[..*at])))?;
    lines
        .take_while(|line| line.len() > indent && is_blank(&line[..=indent]))
        .map(str::trim)
        .find_map(|line| {
            line.strip_prefix("path: ")
                .or_else(|| line.strip_prefix("configuredIn: "))
        })
}

fn is_blank(text: &str) -> bool {
    text.bytes().all(|byte| byte == b' ')
}

/// The text with the lines for which `each` has something else.
fn with_lines(text: &str, each: impl Fn(&str) -> Option<String>) -> String {
    let mut out = String::with_capacity(text.len() + 1024);
    for line in text.split_inclusive('\n') {
        match each(line) {
            Some(other) => {
                out.push_str(&other);
                out.push('\n');
            }
            None => out.push_str(line),
        }
    }
    out
}

pub(in crate::cli::check) fn shown(path: &Path) -> String {
    match path.strip_prefix(".") {
        Ok(inner) if !inner.as_os_str().is_empty() => inner.to_string_lossy().into_owned(),
        _ => path.to_string_lossy().into_owned(),
    }
}

/// A line of a file, counted from 1, the columns of what stands on it, counted
/// from 1 in characters, and its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::cli::check) struct Line {
    number: usize,
    column: usize,
    end_column: usize,
    text: String,
}

impl Line {
    fn of(number: usize, text: &str) -> Self {
        let indent = text.chars().take_while(|c| *c == ' ').count();
        Self {
            number,
            column: indent + 1,
            end_column: text.trim_end().chars().count().max(indent + 1) + 1,
            text: text.to_owned(),
        }
    }

    /// The place of an object that was rendered from `template`.
    pub(in crate::cli::check) fn in_file(
        self,
        file: String,
        template: String,
        repository: &Repository,
    ) -> Place {
        let real = fs::canonicalize(&file).unwrap_or_else(|_| PathBuf::from(&file));
        Place {
            path: Some(repository.path_of(&real)),
            file,
            line: self.number,
            column: self.column,
            end_column: self.end_column,
            text: self.text,
            template: Some(template),
        }
    }
}

/// The position of the rendered `object` in its source: where [`line_in`] finds it, else the
/// start of the file that makes the root one. A template may name any file, so only those of
/// the root are read.
pub(in crate::cli::check) fn place(
    root: &Root,
    from: Option<&str>,
    object: &ObjectRef,
    field: &str,
    repository: &Repository,
) -> Place {
    let template = shown(&root.folder);
    let found = from.and_then(|it| Some((it.to_owned(), line_in(it, &root.top, object, field)?)));
    let (file, line) = found.unwrap_or_else(|| {
        let file = root.file();
        let text = text_inside(&root.top, &file, MAX_ROOT_FILE).unwrap_or_default();
        (shown(&file), first_line(&text))
    });
    line.in_file(file, template, repository)
}

/// The line of the file `from` that `object` was rendered from, or the file's start. `None`
/// where the file is not in the folder `top` or cannot be read.
pub(in crate::cli::check) fn line_in(
    from: &str,
    top: &Path,
    object: &ObjectRef,
    field: &str,
) -> Option<Line> {
    let text = text_inside(top, Path::new(from), MAX_BYTES).ok()?;
    let line = line_of(&text, &object.kind, &object.name, field);
    Some(line.unwrap_or_else(|| first_line(&text)))
}

/// The position of an object of standard input in the file that its text names as its source,
/// where that is a file of the repository with an object of the kind.
pub(in crate::cli::check) fn place_of_piped(
    from: &str,
    object: &ObjectRef,
    field: &str,
    repository: &Repository,
) -> Option<Place> {
    let file = Path::new(from);
    let is_plain = |part| matches!(part, Component::Normal(_));
    let is_plain = file.components().all(is_plain);
    let text = text_inside(repository.root(), file, MAX_BYTES).ok();
    let line = line_of(
        &text.filter(|_| is_plain)?,
        &object.kind,
        &object.name,
        field,
    )?;
    Some(line.in_file(from.to_owned(), "standard input".to_owned(), repository))
}

fn first_line(text: &str) -> Line {
    Line::of(1, text.lines().next().unwrap_or_default())
}

/// The position of the object that is rendered as `kind` and `name` in the text it
/// was rendered from: the line of `field` (`spec.strategy` for example) where it
/// is known, else the line with its kind. The text may be a template, so lines
/// are looked at and nothing is parsed. `None` where no line has the kind.
fn line_of(source: &str, kind: &str, name: &str, field: &str) -> Option<Line> {
    let lines: Vec<&str> = source.lines().collect();
    let of_kind: Vec<usize> = (0..lines.len())
        .filter(|&at| value_of(lines[at], 0, "kind").is_some_and(|it| it == kind))
        .collect();
    let document = |at: usize| {
        let start = lines[..at]
            .iter()
            .rposition(|line| line.starts_with("---"))
            .map_or(0, |marker| marker + 1);
        let end = lines[at..]
            .iter()
            .position(|line| line.starts_with("---"))
            .map_or(lines.len(), |marker| at + marker);
        start..end
    };
    let is_called = |at: &&usize| {
        lines[document(**at)].iter().any(|line| {
            value_of(line, 2, "name").is_some_and(|it| !it.is_empty() && name.contains(it))
        })
    };
    let at = *of_kind.iter().find(is_called).or(of_kind.first())?;
    let mut found = at;
    // A field of a list's item is looked for no deeper than the list.
    let mut from = document(at).start;
    let end = document(at).end;
    for (depth, key) in field.split('.').enumerate() {
        let (key, is_item) = key.split_once('[').map_or((key, false), |it| (it.0, true));
        let next = (from..end).find(|&line| value_of(lines[line], depth * 2, key).is_some());
        let Some(next) = next else { break };
        found = next;
        from = next + 1;
        if is_item {
            break;
        }
    }
    Some(Line::of(found + 1, lines[found]))
}

/// The value of `key` on a line that starts with it after `indent` blanks.
fn value_of<'l>(line: &'l str, indent: usize, key: &str) -> Option<&'l str> {
    let (blanks, rest) = line.split_at_checked(indent)?;
    let value = rest.strip_prefix(key)?.strip_prefix(':')?;
    let value = value.split(" #").next().unwrap_or_default().trim();
    is_blank(blanks).then(|| value.trim_matches(['"', '\'']))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::super::files::normal;
    use super::{Naming, line_of, of_helm, of_kustomize};

    #[test]
    fn files_are_named_as_the_user_names_them() {
        let text = "---\n# Source: web/templates/web.yaml\nkind: A\n---\n# Source: web/charts/db/templates/db.yaml\nkind: B\n";
        assert_eq!(
            of_helm(text, Path::new("./apps/shop")),
            "---\n# Source: apps/shop/templates/web.yaml\nkind: A\n---\n# Source: apps/shop/charts/db/templates/db.yaml\nkind: B\n"
        );
        let text = "kind: A\nmetadata:\n  annotations:\n    config.kubernetes.io/origin: |\n      path: ../../work/base/a.yaml\n  name: a\n---\nkind: B\n---\nkind: C\nmetadata:\n  annotations:\n    config.kubernetes.io/origin: |\n      configuredIn: ../../other/kustomization.yaml\n      configuredBy: {}\n";
        let naming = Naming {
            here: "/work".into(),
        };
        let file_of = |origin: &str| normal(&Path::new("/tmp/x").join(origin));
        let named = of_kustomize(text, file_of, &naming, None);
        let sources: Vec<&str> = named.lines().filter(|it| it.starts_with('#')).collect();
        assert_eq!(
            sources,
            [
                "# Source: base/a.yaml",
                "# Source: /other/kustomization.yaml"
            ]
        );
        assert_eq!(named.matches("\n---\n").count(), 2);
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
            let found = line_of(template, "Deployment", name, field);
            let found = found.map(|it| (it.number, it.column, it.end_column));
            assert_eq!(found, place, "{name} {field}");
        }
        assert_eq!(line_of(template, "StatefulSet", "web", "spec"), None);
        assert_eq!(line_of("kind: {{ .kind }}\n", "Job", "x", "spec"), None);
    }
}
