//! Reading many manifests at once.

use super::error::{Fault, Problem, ReadError};
use super::objects::{Manifest, visit};
use super::parallel::in_order;
use super::place::line_and_column;
use super::source::Source;
use super::split::{Part, parts};
use super::template;
use super::tree::Tree;

/// Files above this size are shared out between the threads by document.
const LARGE: u64 = 1 << 20;

/// Where an object stands, so that it can be found again.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The number of the source.
    pub source: usize,
    /// The number of the document in the source.
    pub part: usize,
    /// The item's number in the `List`, and in the lists inside it; empty for a
    /// document that is an object itself.
    pub items: Box<[usize]>,
}

/// What came of reading.
#[derive(Debug)]
pub struct Reading<T> {
    /// What was made of each object, in the order of the text.
    pub objects: Vec<(Place, T)>,
    /// Documents that are no Kubernetes objects, values files for example.
    pub others: usize,
    /// What could not be read; the rest was read all the same.
    pub errors: Vec<ReadError>,
}

impl<T> Default for Reading<T> {
    fn default() -> Self {
        Self {
            objects: Vec::new(),
            others: 0,
            errors: Vec::new(),
        }
    }
}

impl<T> Reading<T> {
    fn append(&mut self, other: Self) {
        self.objects.extend(other.objects);
        self.others += other.others;
        self.errors.extend(other.errors);
    }
}

/// Reads every object of `sources`, on all processors, and keeps what `each`
/// makes of it. No text and no tree outlives the call of `each`. `done` is told
/// each time a source was read.
pub fn read<T: Send>(
    sources: &[Source],
    each: impl Fn(&Manifest<'_, '_>) -> T + Sync,
    done: impl Fn() + Sync,
) -> Reading<T> {
    let small: Vec<usize> = (0..sources.len())
        .filter(|at| sources[*at].bytes <= LARGE)
        .collect();
    let mut readings = in_order(small.len(), |at| {
        let reading = read_source(sources, small[at], &each, false);
        done();
        (small[at], reading)
    });
    for (at, source) in sources.iter().enumerate() {
        if source.bytes > LARGE {
            readings.push((at, read_source(sources, at, &each, true)));
            done();
        }
    }
    readings.sort_by_key(|(at, _)| *at);
    let mut all = Reading::default();
    for (_, reading) in readings {
        all.append(reading);
    }
    all
}

fn read_source<T: Send>(
    sources: &[Source],
    at: usize,
    each: &(impl Fn(&Manifest<'_, '_>) -> T + Sync),
    share: bool,
) -> Reading<T> {
    let source = &sources[at];
    let text = match source.text() {
        Ok(text) => text,
        Err(error) => {
            let errors = vec![error];
            return Reading {
                errors,
                ..Reading::default()
            };
        }
    };
    let parts = parts(&text);
    let mut all = Reading::default();
    let one = |number: usize| read_part(source, at, number, &parts[number], each);
    if share {
        for reading in in_order(parts.len(), one) {
            all.append(reading);
        }
    } else {
        for number in 0..parts.len() {
            all.append(one(number));
        }
    }
    all
}

fn read_part<T>(
    source: &Source,
    at: usize,
    number: usize,
    part: &Part<'_>,
    each: &impl Fn(&Manifest<'_, '_>) -> T,
) -> Reading<T> {
    let mut reading = Reading::default();
    let tree = match Tree::parse(part.text) {
        Ok(Some(tree)) => tree,
        Ok(None) => return reading,
        Err(_) if part.is_blank() => return reading,
        Err(fault) => {
            reading.errors.push(located(&source.name, part, fault));
            return reading;
        }
    };
    reading.others = visit(&tree, part, &mut |manifest, items| {
        if let Some(fault) = template::unrendered(manifest) {
            reading.errors.push(located(&source.name, part, fault));
            return;
        }
        let place = Place {
            source: at,
            part: number,
            items: items.into(),
        };
        reading.objects.push((place, each(manifest)));
    });
    reading
}

/// A fault of a document as an error of its file. A document that does not
/// parse and has template markers where values should be is a template.
fn located(file: &str, part: &Part<'_>, mut fault: Fault) -> ReadError {
    let broken = matches!(
        fault.problem,
        Problem::Syntax { .. } | Problem::KeyIsNotText | Problem::DuplicateKey { .. }
    );
    if let Some(at) = template::marker(part.text).filter(|_| broken) {
        fault = Fault::new(at, Problem::Template);
    }
    if let Problem::DuplicateKey { first_line, .. } = &mut fault.problem {
        *first_line += part.line - 1;
    }
    let (line, column) = line_and_column(part.text, fault.at);
    ReadError {
        file: file.to_owned(),
        line: Some(line + part.line - 1),
        column: Some(column),
        problem: fault.problem,
    }
}

#[cfg(test)]
mod tests {
    use super::super::source::Source;
    use super::{Reading, read};

    fn reading(texts: &[&str]) -> Reading<String> {
        let sources: Vec<Source> = texts
            .iter()
            .enumerate()
            .map(|(at, text)| Source::in_memory(&format!("{at}.yaml"), (*text).to_owned()))
            .collect();
        read(
            &sources,
            |manifest| {
                let name = manifest
                    .tree
                    .entry(manifest.id, "metadata")
                    .and_then(|(_, metadata)| manifest.tree.string(metadata, "name"))
                    .unwrap_or_default();
                format!("{} {} {name}", manifest.api_version, manifest.kind)
            },
            || {},
        )
    }

    fn objects(reading: &Reading<String>) -> Vec<(usize, usize, &[usize], &str)> {
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
        let names: Vec<&str> = reading
            .objects
            .iter()
            .map(|(_, object)| &object[7..])
            .collect();
        let expected: Vec<String> = (0..50).map(|number| format!("p{number}")).collect();
        assert_eq!(names, expected);
    }

    #[test]
    fn a_large_file_is_shared_out_and_loses_nothing() {
        let filler = "x".repeat(3000);
        let text: String = (0..500)
            .map(|number| format!("---\napiVersion: v1\nkind: Pod\nmetadata: {{name: p{number}}}\ndata: {filler}\n"))
            .collect();
        assert!(text.len() as u64 > super::LARGE);
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
        let reading = reading(&[
            "replicaCount: 1\n",
            "- a\n",
            "# nothing\n",
            "",
            "plain words",
        ]);
        assert_eq!((reading.objects.len(), reading.others), (0, 3));
        assert!(reading.errors.is_empty(), "{:?}", reading.errors);
    }

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
                "0.yaml:2:4: This is not valid YAML: unclosed bracket '['.",
            ),
            (
                "bad indentation",
                "a:\n  b: 1\n c: 2\n",
                "0.yaml:3:2: This is not valid YAML: ",
            ),
            (
                "tab",
                "a:\n\tb: 1\n",
                "0.yaml:2:2: This is not valid YAML: tabs",
            ),
            (
                "unknown alias",
                "a: *b\n",
                "0.yaml:1:4: This is not valid YAML: ",
            ),
            (
                "duplicate key",
                "a: 1\nb: 2\na: 3\n",
                "0.yaml:3:1: The key \"a\" is already set on line 1; expected every key once. Remove one of the two.",
            ),
            (
                "duplicate key by meaning",
                "yes: 1\non: 2\n",
                "0.yaml:2:1: The key \"true\" is already set on line 1;",
            ),
            (
                "duplicate key in a later document",
                "x: 1\n---\na: {b: 1, b: 2}\n",
                "0.yaml:3:11: The key \"b\" is already set on line 3;",
            ),
            (
                "duplicate among many",
                "a1: 1\na2: 1\na3: 1\na4: 1\na5: 1\na6: 1\na7: 1\na8: 1\na9: 1\nb1: 1\nb2: 1\nb3: 1\nb4: 1\nb5: 1\nb6: 1\nb7: 1\nb8: 1\na1: 2\n",
                "0.yaml:18:1: The key \"a1\" is already set on line 1;",
            ),
            (
                "template by line",
                "a: 1\n{{- if .Values.x }}\nb: 2\n{{- end }}\n",
                "0.yaml:2:1: This is a Helm template that has not been rendered;",
            ),
            (
                "template by value",
                "a:\n  b: {{ .Values.b }}\n",
                "0.yaml:2:6: This is a Helm template that has not been rendered;",
            ),
            (
                "template in a quoted name",
                "apiVersion: v1\nkind: Pod\nmetadata:\n  name: \"{{ .Release.Name }}\"\n",
                "0.yaml:4:9: This is a Helm template that has not been rendered;",
            ),
            (
                "list as key",
                "? [a]\n: b\n",
                "0.yaml:1:3: This key is a list, a mapping or null; expected a plain word as the key.",
            ),
            (
                "tag that does not fit",
                "a: !!int foo\n",
                "0.yaml:1:10: The value \"foo\" does not fit its tag !!int.",
            ),
            (
                "binary tag",
                "a: !!binary aGk=\n",
                "0.yaml:1:13: The tag !!binary is not for manifests;",
            ),
            (
                "infinity",
                "a: .inf\n",
                "0.yaml:1:4: The number .inf cannot be kept in a Kubernetes object; expected a finite number.",
            ),
            (
                "merge of a word",
                "a: &a word\nb:\n  <<: *a\n",
                "0.yaml:3:7: Only a mapping, or a list of mappings, can be merged with `<<`.",
            ),
            (
                "alias inside its anchor",
                "a: &a [*a]\n",
                "0.yaml:1:8: This alias stands for a value that contains it;",
            ),
            (
                "billion laughs",
                &bomb,
                "0.yaml:1:1: The aliases of this document stand for more than 400,000 values;",
            ),
            ("nested without end", &deep, "0.yaml:1:"),
        ];
        let good = "apiVersion: v1\nkind: Pod\nmetadata: {name: good}\n";
        for (name, text, message) in table {
            let reading = reading(&[text, good]);
            let messages: Vec<String> = reading.errors.iter().map(ToString::to_string).collect();
            assert_eq!(messages.len(), 1, "{name}: {messages:?}");
            assert!(messages[0].starts_with(message), "{name}: {}", messages[0]);
            assert_eq!(
                objects(&reading),
                [(1, 0, &[][..], "v1 Pod good")],
                "{name}"
            );
        }
    }

    #[test]
    fn a_broken_document_leaves_the_others_of_its_file() {
        let reading = reading(&[
            "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n---\nb: [\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: c}\n",
        ]);
        assert_eq!(reading.errors[0].line, Some(5));
        assert_eq!(
            objects(&reading),
            [(0, 0, &[][..], "v1 Pod a"), (0, 2, &[][..], "v1 Pod c")]
        );
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
