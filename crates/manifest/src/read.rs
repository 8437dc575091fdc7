//! Reads many manifests at once and passes each object to the caller.

use std::borrow::Borrow;

#[cfg(feature = "files")]
use rayon::prelude::*;

use super::error::{Fault, Problem, ReadError};
use super::openshift_template;
use super::position::Lines;
use super::source::Source;
use super::split::{Part, parts};
use super::template;
use super::tree::Tree;
use super::visit::{Manifest, visit};

/// Files with more documents than this are divided between the threads by document.
#[cfg(feature = "files")]
const MANY: usize = 100;

/// The position of an object, by which it can be found again. The default is the first document of
/// the first source.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The index of the source.
    pub source: usize,
    /// The index of the document in the source.
    pub part: usize,
    /// The index of the item in the `List`, and in the lists inside it; empty for a document that
    /// is itself an object.
    pub items: Box<[usize]>,
}

/// The result of reading.
pub struct ParsedFile<T> {
    /// The caller's result for each object, in the order of the text.
    pub objects: Vec<T>,
    /// The number of documents that are not Kubernetes objects, values files for example.
    pub others: usize,
    /// The index of the source of each document that is a template and must be rendered first.
    pub templates: Vec<usize>,
    /// Manifests that could not be read; the others are read even so.
    pub errors: Vec<ReadError>,
}

impl<T> Default for ParsedFile<T> {
    fn default() -> Self {
        Self { objects: Vec::new(), others: 0, templates: Vec::new(), errors: Vec::new() }
    }
}

impl<T> FromIterator<Self> for ParsedFile<T> {
    fn from_iter<I: IntoIterator<Item = Self>>(readings: I) -> Self {
        let mut all = Self::default();
        for reading in readings {
            all.objects.extend(reading.objects);
            all.others += reading.others;
            all.templates.extend(reading.templates);
            all.errors.extend(reading.errors);
        }
        all
    }
}

/// Reads every object of `sources`, on all processors, and keeps the results of `each`. No text and
/// no tree outlives the call of `each`.
pub fn read<S: Borrow<Source> + Sync, T: Send>(
    sources: &[S],
    each: impl Fn(Position, &Manifest<'_, '_>) -> T + Sync,
) -> ParsedFile<T> {
    #[cfg(feature = "files")]
    let sources = sources.par_iter();
    #[cfg(not(feature = "files"))]
    let sources = sources.iter();
    let one = |(at, source): (usize, &S)| read_source(source.borrow(), at, &each);
    let readings: Vec<ParsedFile<T>> = sources.enumerate().map(one).collect();
    readings.into_iter().collect()
}

fn read_source<T: Send>(
    source: &Source,
    at: usize,
    each: &(impl Fn(Position, &Manifest<'_, '_>) -> T + Sync),
) -> ParsedFile<T> {
    let mut all = ParsedFile::default();
    let text = match source.text() {
        Ok(text) => text,
        Err(error) => {
            let is_text = !matches!(error.problem, Problem::Binary | Problem::NotUtf8);
            let is_manifest = |part: &Part<'_>| template::says_it_is_a_manifest(part.text);
            if source.named || is_text || parts(&source.guess()).iter().any(is_manifest) {
                all.errors.push(error);
            } else {
                all.others += 1;
            }
            return all;
        }
    };
    let parts = parts(&text);
    // Rendered output has no ytt templates left.
    if !source.rendered && template::is_ytt(&text) {
        let (templates, others): (Vec<&Part<'_>>, Vec<&Part<'_>>) = parts
            .iter()
            .filter(|part| !part.is_blank())
            .partition(|part| template::may_be_a_manifest(part.text));
        all.templates = vec![at; templates.len()];
        all.others = others.len();
        return all;
    }
    let one = |(number, part)| read_part(source, at, number, part, each);
    #[cfg(feature = "files")]
    if parts.len() > MANY {
        let readings: Vec<ParsedFile<T>> = parts.par_iter().enumerate().map(one).collect();
        return readings.into_iter().collect();
    }
    parts.iter().enumerate().map(one).collect()
}

fn read_part<T>(
    source: &Source,
    at: usize,
    number: usize,
    part: &Part<'_>,
    each: &impl Fn(Position, &Manifest<'_, '_>) -> T,
) -> ParsedFile<T> {
    let mut reading = ParsedFile::default();
    if part.is_blank() {
        return reading;
    }
    let mut tree = match Tree::parse(part.text) {
        Ok(Some(tree)) => tree,
        Ok(None) => return reading,
        Err(fault) => {
            if template::is_template(part.text) && template::may_be_a_manifest(part.text) {
                reading.templates.push(at);
            } else if template::says_it_is_a_manifest(part.text) {
                let lines = Lines::of(part.text);
                reading.errors.push(located(&source.name, &lines, part, fault));
            } else {
                reading.others += 1;
            }
            return reading;
        }
    };
    openshift_template::fill_in(&mut tree);
    reading.others = visit(&tree, part, &mut |manifest, items| {
        let place = Position { source: at, part: number, items: items.into() };
        reading.objects.push(each(place, manifest));
    });
    reading
}

/// Converts a fault of a document to an error of its file; `lines` are those of the document.
pub(super) fn located(file: &str, lines: &Lines<'_>, part: &Part<'_>, fault: Fault) -> ReadError {
    let (line, column) = lines.line_and_column(fault.at);
    ReadError::at(file, (line + part.line - 1, column), fault.problem)
}

#[cfg(test)]
mod tests {
    use super::super::source::Source;
    use super::{ParsedFile, Position, read};

    fn reading(texts: &[&str]) -> ParsedFile<(Position, String)> {
        let sources: Vec<Source> = texts
            .iter()
            .enumerate()
            .map(|(at, text)| Source::in_memory(&format!("{at}.yaml"), (*text).to_owned()))
            .collect();
        read(&sources, |place, manifest| {
            let name = manifest
                .tree
                .entry(manifest.id, "metadata")
                .and_then(|(_, metadata)| manifest.tree.string(metadata, "name"))
                .unwrap_or_default();
            let object = format!("{} {} {name}", manifest.api_version, manifest.kind);
            (place, object)
        })
    }

    fn objects(reading: &ParsedFile<(Position, String)>) -> Vec<(usize, usize, &[usize], &str)> {
        reading
            .objects
            .iter()
            .map(|(place, object)| (place.source, place.part, &*place.items, object.as_str()))
            .collect()
    }

    #[test]
    fn objects_come_in_the_order_of_the_text() {
        let many: Vec<String> = (0..50)
            .map(|number| format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: p{number}}}\n"))
            .collect();
        let texts: Vec<&str> = many.iter().map(String::as_str).collect();
        let reading = reading(&texts);
        let names: Vec<&str> = reading.objects.iter().map(|(_, object)| &object[7..]).collect();
        let expected: Vec<String> = (0..50).map(|number| format!("p{number}")).collect();
        assert_eq!(names, expected);
    }

    #[test]
    fn a_file_of_many_documents_is_shared_out_and_loses_nothing() {
        let text: String = (0..500)
            .map(|number| {
                format!("---\napiVersion: v1\nkind: Pod\nmetadata: {{name: p{number}}}\n")
            })
            .collect();
        let reading = reading(&[&text]);
        for (number, (place, object)) in reading.objects.iter().enumerate() {
            assert_eq!((place.part, object), (number, &format!("v1 Pod p{number}")));
        }
        assert_eq!(reading.objects.len(), 500);
    }

    #[test]
    fn lists_are_opened() {
        let reading = reading(&[
            "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pod, metadata: {name: a}}\n- apiVersion: v1\n  kind: List\n  items:\n  - {apiVersion: v1, kind: Pod, metadata: {name: b}}\n",
            "---\n---\napiVersion: apps/v1\nkind: DeploymentList\nitems: [{metadata: {name: c}}]\n",
            "apiVersion: v1\nkind: WishList\nmetadata: {name: d}\n",
        ]);
        assert_eq!(
            objects(&reading),
            [
                (0, 0, &[0][..], "v1 Pod a"),
                (0, 0, &[1, 0][..], "v1 Pod b"),
                (1, 1, &[0][..], "apps/v1 Deployment c"),
                (2, 0, &[][..], "v1 WishList d"),
            ]
        );
    }

    #[test]
    fn what_is_no_object_is_counted() {
        let reading = reading(&["replicaCount: 1\n", "- a\n", "# nothing\n", "", "plain words"]);
        assert_eq!((reading.objects.len(), reading.others), (0, 3));
        assert!(reading.errors.is_empty(), "{:?}", reading.errors);
    }

    /// With this head, a text with a fault is a manifest; without it, the text is not reported.
    const HEAD: &str = "apiVersion: v1\nkind: Pod\n";

    #[test]
    fn bad_input_is_named_with_its_place_and_the_rest_is_read() {
        let bomb = {
            let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
            for level in 1..10 {
                let below = format!("*a{}", level - 1);
                text += &format!("a{level}: &a{level} [{}]\n", vec![below; 10].join(", "));
            }
            text
        };
        let deep = format!("a: {}{}", "[".repeat(220), "]".repeat(220));
        let table: &[(&str, &str, &str)] = &[
            (
                "unclosed bracket",
                "a: 1\nb: [1, 2\n",
                "0.yaml:4:4: This is not valid YAML: unclosed bracket '['.",
            ),
            ("bad indentation", "a:\n  b: 1\n c: 2\n", "0.yaml:5:2: This is not valid YAML: "),
            ("tab", "a:\n\tb: 1\n", "0.yaml:4:2: This is not valid YAML: tabs"),
            ("quoted text indented too little, without an end", "a: 'one\ntwo\nb: 1\n", "0.yaml:"),
            ("unknown alias", "a: *b\n", "0.yaml:3:4: This is not valid YAML: "),
            (
                "list as key",
                "? [a]\n: b\n",
                "0.yaml:3:3: This key is a list, a mapping or null; expected a plain word as the key.",
            ),
            (
                "tag that does not fit",
                "a: !!int foo\n",
                "0.yaml:3:10: The value \"foo\" does not fit its tag !!int.",
            ),
            (
                "binary tag",
                "a: !!binary wh-t\n",
                "0.yaml:3:13: The value \"wh-t\" does not fit its tag !!binary.",
            ),
            (
                "infinity",
                "a: .inf\n",
                "0.yaml:3:4: The number .inf cannot be kept in a Kubernetes object; expected a finite number.",
            ),
            (
                "merge of a word",
                "a: &a word\nb:\n  <<: *a\n",
                "0.yaml:5:7: Only a mapping, or a list of mappings, can be merged with `<<`.",
            ),
            (
                "alias inside its anchor",
                "a: &a [*a]\n",
                "0.yaml:3:8: This alias stands for a value that contains it;",
            ),
            (
                "billion laughs",
                &bomb,
                "0.yaml:1:1: The aliases of this document stand for more than 400,000 values;",
            ),
            ("nested without end", &deep, "0.yaml:3:"),
        ];
        let good = "apiVersion: v1\nkind: Pod\nmetadata: {name: good}\n";
        for (name, text, message) in table {
            let manifest = reading(&[&format!("{HEAD}{text}"), good]);
            let messages: Vec<String> = manifest.errors.iter().map(ToString::to_string).collect();
            assert_eq!(messages.len(), 1, "{name}: {messages:?}");
            assert!(messages[0].starts_with(message), "{name}: {}", messages[0]);
            assert_eq!(objects(&manifest), [(1, 0, &[][..], "v1 Pod good")], "{name}");
            let other = reading(&[text, good]);
            assert!(other.errors.is_empty(), "{name}: {:?}", other.errors);
            assert_eq!((other.objects.len(), other.others), (1, 1), "{name}");
        }
    }

    #[test]
    fn templates_are_counted() {
        let table = [
            "a: 1\n{{- if .Values.x }}\nb: 2\n{{- end }}\n",
            "a:\n  b: {{ .Values.b }}\n",
            "a: {% if b %}\n",
            "image: @IMAGE@\n",
        ];
        for text in table {
            let read = reading(&[&format!("{HEAD}{text}")]);
            assert_eq!((&*read.templates, read.others), (&[0][..], 0), "{text}");
            assert!(read.errors.is_empty(), "{text}: {:?}", read.errors);
        }
    }

    #[test]
    fn a_template_of_ytt_is_one_as_a_whole() {
        let pod = format!("{HEAD}metadata: {{name: a}}\n");
        let template = format!(
            "#@ load(\"@ytt:data\", \"data\")\n---\n{pod}---\n{pod}spec: #@ data.values.spec\n"
        );
        let read = reading(&[&template, &pod]);
        assert_eq!((&*read.templates, read.others, read.errors.len()), (&[0, 0][..], 0, 0));
        assert_eq!(objects(&read), [(1, 0, &[][..], "v1 Pod a")]);
    }

    #[test]
    fn a_broken_document_leaves_the_others_of_its_file() {
        let reading = reading(&[
            "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n---\nkind: Pod\napiVersion: v1\nb: [\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: c}\n",
        ]);
        assert_eq!(reading.errors[0].at.map(|(line, _)| line), Some(7));
        assert_eq!(objects(&reading), [(0, 0, &[][..], "v1 Pod a"), (0, 2, &[][..], "v1 Pod c")]);
    }

    #[test]
    fn braces_in_strings_are_no_template() {
        let reading = reading(&[
            "apiVersion: v1\nkind: Rule\nmetadata: {name: r}\nsummary: \"{{ $labels.pod }} is down\"\n",
        ]);
        assert_eq!(reading.objects.len(), 1);
    }

    #[test]
    fn comments_by_the_hundred_are_read() {
        let text = format!(
            "apiVersion: v1\nkind: Pod\nspec:\n  a:\n{}  - b\n",
            "  # a line of a long comment\n".repeat(300)
        );
        assert_eq!(reading(&[&text]).objects.len(), 1);
    }
}
