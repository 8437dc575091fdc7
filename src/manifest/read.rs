//! Reading many manifests at once.

use std::collections::BTreeMap;

use rayon::prelude::*;

use super::error::{Fault, Problem, ReadError};
use super::fragment;
use super::hook::Hook;
use super::locate::{Spot, locate};
use super::objects::{Manifest, visit};
use super::outline::Outline;
use super::place::line_and_column;
use super::source::Source;
use super::split::{Part, parts};
use super::template;
use super::tree::Tree;
use super::unopened;
use super::versions::{Gone, kind_of};
use crate::model::Text;
use crate::model::metadata::Metadata;
use crate::model::object::{Object, ObjectKind, ObjectRef};

/// Files of more documents are shared out between the threads by document.
const MANY: usize = 100;

/// Placeholders that one object may hold where a number or a list should be.
const MAX_PLACEHOLDERS: usize = 32;

/// Where an object stands, so that it can be found again.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
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
    pub objects: Vec<(Position, T)>,
    /// Documents that are no Kubernetes objects, values files for example.
    pub others: usize,
    /// Documents and objects that are to be filled in before they can be read.
    pub templates: usize,
    /// Manifests that could not be read; the rest was read all the same.
    pub errors: Vec<ReadError>,
}

impl<T> Default for Reading<T> {
    fn default() -> Self {
        Self {
            objects: Vec::new(),
            others: 0,
            templates: 0,
            errors: Vec::new(),
        }
    }
}

impl<T> Reading<T> {
    fn append(&mut self, other: Self) {
        self.objects.extend(other.objects);
        self.others += other.others;
        self.templates += other.templates;
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
    let readings: Vec<Reading<T>> = sources
        .par_iter()
        .enumerate()
        .map(|(at, source)| {
            let reading = read_source(source, at, &each);
            done();
            reading
        })
        .collect();
    let mut all = Reading::default();
    for reading in readings {
        all.append(reading);
    }
    all
}

fn read_source<T: Send>(
    source: &Source,
    at: usize,
    each: &(impl Fn(&Manifest<'_, '_>) -> T + Sync),
) -> Reading<T> {
    let mut all = Reading::default();
    let text = match source.text() {
        Ok(text) => text,
        Err(error) => {
            let is_text = !matches!(
                error.problem,
                Problem::Binary | Problem::NotUtf8 | Problem::Utf16
            );
            let guess = || source.guess();
            if source.named || is_text || parts(&guess()).iter().any(says_it_is_a_manifest) {
                all.errors.push(error);
            } else {
                all.others += 1;
            }
            return all;
        }
    };
    let parts = parts(&text);
    let one = |(number, part)| read_part(source, at, number, part, each);
    if parts.len() > MANY {
        let readings: Vec<Reading<T>> = parts.par_iter().enumerate().map(one).collect();
        for reading in readings {
            all.append(reading);
        }
    } else {
        for reading in parts.iter().enumerate().map(one) {
            all.append(reading);
        }
    }
    all
}

fn says_it_is_a_manifest(part: &Part<'_>) -> bool {
    template::says_it_is_a_manifest(part.text)
}

fn read_part<T>(
    source: &Source,
    at: usize,
    number: usize,
    part: &Part<'_>,
    each: &impl Fn(&Manifest<'_, '_>) -> T,
) -> Reading<T> {
    let mut reading = Reading::default();
    if part.is_blank() {
        return reading;
    }
    let tree = match Tree::parse(part.text) {
        Ok(Some(tree)) => tree,
        Ok(None) => return reading,
        Err(fault) => {
            if template::is_template(part.text) {
                reading.templates += 1;
            } else if says_it_is_a_manifest(part) {
                reading.errors.push(located(&source.name, part, fault));
            } else {
                reading.others += 1;
            }
            return reading;
        }
    };
    reading.others = visit(&tree, part, &mut |manifest, items| {
        let place = Position {
            source: at,
            part: number,
            items: items.into(),
        };
        reading.objects.push((place, each(manifest)));
    });
    reading
}

/// A fault of a document as an error of its file.
fn located(file: &str, part: &Part<'_>, fault: Fault) -> ReadError {
    let (line, column) = line_and_column(part.text, fault.at);
    ReadError {
        file: file.to_owned(),
        line: Some(line + part.line - 1),
        column: Some(column),
        problem: fault.problem,
    }
}

/// An object of a kind that is read here.
#[derive(Debug)]
pub struct Item {
    /// Where it stands.
    pub place: Position,
    /// Where it starts, in bytes of the file.
    pub start: usize,
    /// The object as its manifest names it, without a namespace it does not say.
    pub reference: ObjectRef,
    /// The object.
    pub object: Object,
    /// The first field without which it is only a part of an object.
    pub missing: Option<&'static str>,
    /// The Helm hook that it is.
    pub hook: Option<Hook>,
    /// The Helm template it was rendered from.
    pub template: Option<Box<str>>,
    /// What is kept of its document, where that was asked for.
    pub outline: Option<Outline>,
    /// What its author should know, though it is read.
    pub notes: Vec<Note>,
}

/// Something about the writing of an object.
#[derive(Clone, Debug)]
pub struct Note {
    /// Where, in bytes of the file.
    pub spot: Spot,
    /// A sentence or two.
    pub text: String,
}

/// The objects of some sources.
#[derive(Debug, Default)]
pub struct Objects {
    /// Those of kinds that are read here, in the order of the text.
    pub items: Vec<Item>,
    /// How many of other kinds there are.
    pub skipped: BTreeMap<String, usize>,
    /// How many stand for objects that a controller makes of them, by kind.
    pub unopened: BTreeMap<String, usize>,
    /// Documents that are no Kubernetes objects.
    pub others: usize,
    /// Documents and objects that are to be filled in before they can be read.
    pub templates: usize,
    /// Manifests that could not be read.
    pub errors: Vec<ReadError>,
}

/// What is made of one object while its file is at hand.
enum Outcome {
    Skipped(Text),
    Unopened(Text),
    Template,
    Wrong(Box<ReadError>),
    Item(Box<Item>),
}

/// Reads the objects of `sources`, on all processors; their outlines too where
/// `outlines` says so. `done` is told each time a source was read.
pub fn read_objects(sources: &[Source], outlines: bool, done: impl Fn() + Sync) -> Objects {
    let reading = read(sources, |manifest| outcome(manifest, outlines), done);
    let mut objects = Objects {
        others: reading.others,
        templates: reading.templates,
        errors: reading.errors,
        ..Objects::default()
    };
    for (place, outcome) in reading.objects {
        match outcome {
            Outcome::Skipped(kind) => *objects.skipped.entry(kind.into()).or_default() += 1,
            Outcome::Unopened(kind) => *objects.unopened.entry(kind.into()).or_default() += 1,
            Outcome::Template => objects.templates += 1,
            Outcome::Wrong(error) => objects.errors.push(ReadError {
                file: sources[place.source].name.clone(),
                ..*error
            }),
            Outcome::Item(item) => objects.items.push(Item { place, ..*item }),
        }
    }
    objects
}

fn outcome(manifest: &Manifest<'_, '_>, outlines: bool) -> Outcome {
    let Some((kind, gone)) = kind_of(manifest.api_version, manifest.kind) else {
        return if unopened::stands_for_others(manifest.api_version, manifest.kind) {
            Outcome::Unopened(manifest.kind.into())
        } else {
            Outcome::Skipped(manifest.kind.into())
        };
    };
    if template::is_unrendered(manifest, kind) {
        return Outcome::Template;
    }
    let (tree, id, part) = (manifest.tree, manifest.id, manifest.part);
    let missing = fragment::missing(tree, id, kind, manifest.api_version);
    match decode(manifest, kind) {
        Ok(object) => Outcome::Item(Box::new(Item {
            place: Position {
                source: 0,
                part: 0,
                items: Box::default(),
            },
            start: part.start + tree.node(id).start as usize,
            reference: reference(manifest, &object),
            missing: missing.or_else(|| is_nameless(&object).then_some("metadata.name")),
            object,
            hook: Hook::of(tree, id),
            template: part.template().map(Into::into),
            outline: outlines.then(|| Outline::of(tree, id, part)),
            notes: notes(manifest, gone),
        })),
        // A patch may hold anything in the place of a list or a number.
        Err(_) if missing.is_some() || template::is_template(part.text) => Outcome::Template,
        Err(fault) => Outcome::Wrong(Box::new(located("", part, fault))),
    }
}

/// Reads an object. A placeholder in the place of something other than text is
/// read as if nothing stood there.
fn decode(manifest: &Manifest<'_, '_>, kind: ObjectKind) -> Result<Object, Fault> {
    let (tree, id) = (manifest.tree, manifest.id);
    let mut blank = Vec::new();
    loop {
        let reason = match tree.decode_seed(id, kind, &blank) {
            Ok(object) => return Ok(object),
            Err(reason) => reason,
        };
        let at = reason.at().unwrap_or(tree.node(id).start as usize);
        if blank.len() == MAX_PLACEHOLDERS || blank.contains(&at) || !is_placeholder(tree, at) {
            let kind = kind.name();
            return Err(Fault::new(at, Problem::Malformed { kind, reason }));
        }
        blank.push(at);
    }
}

fn is_placeholder(tree: &Tree<'_>, at: usize) -> bool {
    tree.scalar_at(at)
        .is_some_and(|scalar| template::is_placeholder(&scalar.text))
}

fn reference(manifest: &Manifest<'_, '_>, object: &Object) -> ObjectRef {
    let metadata = object.metadata();
    let (tree, id) = (manifest.tree, manifest.id);
    let written = || {
        let metadata = tree.at(id, &["metadata"])?;
        tree.string(metadata, "name").map(Text::from)
    };
    ObjectRef {
        api_version: manifest.api_version.into(),
        kind: manifest.kind.into(),
        namespace: metadata
            .map(|metadata| metadata.namespace.clone())
            .filter(|namespace| !namespace.is_empty()),
        name: metadata.map_or_else(|| written().unwrap_or_default(), Metadata::shown_name),
    }
}

fn is_nameless(object: &Object) -> bool {
    match object {
        Object::Volume(volume) => volume.metadata.name.is_empty(),
        Object::StorageClass(class) => class.metadata.name.is_empty(),
        Object::CsiDriver(driver) => driver.metadata.name.is_empty(),
        Object::Node(node) => node.metadata.name.is_empty(),
        _ => object
            .metadata()
            .is_none_or(|metadata| metadata.shown_name().is_empty()),
    }
}

fn notes(manifest: &Manifest<'_, '_>, gone: Option<Gone>) -> Vec<Note> {
    let (tree, id, part) = (manifest.tree, manifest.id, manifest.part);
    let in_file = |spot: Spot| Spot {
        start: spot.start + part.start,
        end: spot.end + part.start,
    };
    let line = |id| {
        let (line, _) = line_and_column(part.text, tree.node(id).start as usize);
        line + part.line - 1
    };
    let mut notes = Vec::new();
    if let Some(Gone { successor, since }) = gone {
        notes.push(Note {
            spot: in_file(locate(tree, id, "apiVersion")),
            text: format!(
                "Kubernetes {since} and later refuse {}; write apiVersion: {successor}. The object is judged as if it said so.",
                manifest.api_version
            ),
        });
    }
    for repeated in tree.repeated() {
        if tree.holds(id, repeated.second) {
            let node = tree.node(repeated.second);
            let key = tree.key_text(repeated.second).unwrap_or_default();
            notes.push(Note {
                spot: in_file(Spot {
                    start: node.start as usize,
                    end: node.end as usize,
                }),
                text: format!(
                    "The key \"{key}\" is set on line {} and again on line {}; the last one counts. Remove one of the two.",
                    line(repeated.first),
                    line(repeated.second)
                ),
            });
        }
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::super::source::Source;
    use super::{Reading, read, read_objects};

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

    /// What is no object, or none that is read here, cannot be a manifest at fault.
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
            (
                "bad indentation",
                "a:\n  b: 1\n c: 2\n",
                "0.yaml:5:2: This is not valid YAML: ",
            ),
            (
                "tab",
                "a:\n\tb: 1\n",
                "0.yaml:4:2: This is not valid YAML: tabs",
            ),
            (
                "quoted text indented too little, without an end",
                "a: 'one\ntwo\nb: 1\n",
                "0.yaml:",
            ),
            (
                "unknown alias",
                "a: *b\n",
                "0.yaml:3:4: This is not valid YAML: ",
            ),
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
            assert_eq!(
                objects(&manifest),
                [(1, 0, &[][..], "v1 Pod good")],
                "{name}"
            );
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
            assert_eq!((read.templates, read.others), (1, 0), "{text}");
            assert!(read.errors.is_empty(), "{text}: {:?}", read.errors);
        }
    }

    /// What [`read_objects`] makes of a text: a word a field for each item, then what
    /// else there is.
    fn told(text: &str) -> String {
        let read = read_objects(&[Source::in_memory("-", text.to_owned())], true, || {});
        let mut told: Vec<String> = read
            .items
            .iter()
            .map(|item| {
                let missing = item
                    .missing
                    .map_or_else(String::new, |it| format!(" without {it}"));
                let notes: Vec<&str> = item.notes.iter().map(|note| note.text.as_str()).collect();
                format!("{}{missing}{}", item.reference, notes.concat())
            })
            .collect();
        told.extend((read.templates > 0).then(|| "template".to_owned()));
        told.extend((read.others > 0).then(|| "other".to_owned()));
        told.extend(read.skipped.keys().map(|kind| format!("skipped {kind}")));
        told.extend(read.errors.iter().map(ToString::to_string));
        told.join("; ")
    }

    #[test]
    fn every_object_is_sorted() {
        const DEPLOYMENT: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n";
        const WHOLE: &str = "selector: {}, template: {spec: {}}";
        let deployment = |rest: &str| format!("{DEPLOYMENT}spec: {{{rest}, {WHOLE}}}\n");
        let claim = |modes: &str| {
            format!(
                "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {{name: c}}\nspec: {{accessModes: {modes}}}"
            )
        };
        let table = [
            (deployment("replicas: 1"), "Deployment web"),
            (deployment("replicas: 1.0"), "Deployment web"),
            (deployment("replicas: '${N}'"), "Deployment web"),
            (deployment("replicas: \"{{ n }}\""), "Deployment web"),
            (deployment("strategy: {type: '${S}'}"), "template"),
            (
                deployment("replicas: many"),
                "-:4:18: This Deployment cannot be read: invalid type: string \"many\", expected i64.",
            ),
            (
                deployment("replicas: 1").replace("web", "'{{ n }}'"),
                "template",
            ),
            (
                deployment("replicas: 1").replace("web", "'${N}'"),
                "Deployment ${N}",
            ),
            (deployment("replicas: 1") + "sops: {mac: x}\n", "template"),
            (
                format!("{DEPLOYMENT}spec: {{replicas: 2}}\n"),
                "Deployment web without spec.selector",
            ),
            (format!("{DEPLOYMENT}spec: {{replicas: two}}\n"), "template"),
            (
                deployment("replicas: 1").replace("name: web", "labels: {}"),
                "Deployment  without metadata.name",
            ),
            (claim("[ReadWriteOnce]"), "PersistentVolumeClaim c"),
            (
                claim("null"),
                "PersistentVolumeClaim c without spec.accessModes",
            ),
            (claim("['${M}']"), "template"),
            (
                claim("ReadWriteOnce"),
                "-:4:21: This PersistentVolumeClaim cannot be read: invalid type: string \"ReadWriteOnce\", expected a list of access modes.",
            ),
            (
                deployment("replicas: 1").replace("apps/v1", "extensions/v1beta1"),
                "Deployment webKubernetes 1.16 and later refuse extensions/v1beta1; write apiVersion: apps/v1. The object is judged as if it said so.",
            ),
            (
                deployment("replicas: 1, replicas: 2"),
                "Deployment webThe key \"replicas\" is set on line 4 and again on line 4; the last one counts. Remove one of the two.",
            ),
            (
                "apiVersion: v1\nkind: Service\nmetadata: {name: s, name: t}\n".to_owned(),
                "skipped Service",
            ),
            ("replicas: 1\nreplicas: 2\n".to_owned(), "other"),
        ];
        for (text, expected) in table {
            assert_eq!(told(&text), expected, "{text}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn what_is_no_text_is_an_error_only_where_it_is_a_manifest_or_was_named() {
        use super::super::source::{Exclude, find};
        use std::fs;
        let folder = tempfile::tempdir().unwrap();
        let manifest = b"apiVersion: v1\nkind: Pod\nmetadata: {name: caf\xe9}\n".to_vec();
        let wide: Vec<u8> = [0xff, 0xfe]
            .into_iter()
            .chain(
                "kind: Pod\napiVersion: v1\n"
                    .encode_utf16()
                    .flat_map(u16::to_le_bytes),
            )
            .collect();
        for (name, bytes, is_manifest) in [
            ("binary.yaml", b"a: \0\x01".to_vec(), false),
            ("latin1.yaml", b"a: caf\xe9\n".to_vec(), false),
            ("pod.yaml", manifest, true),
            ("wide.yaml", wide, true),
            ("utf16.yaml", b"\xff\xfea\0:\0".to_vec(), false),
        ] {
            let file = folder.path().join(name);
            fs::write(&file, bytes).unwrap();
            for (path, errors) in [(folder.path(), is_manifest), (&file, true)] {
                let found = find(
                    &[path.to_owned()],
                    &Exclude::nothing(),
                    &mut std::io::empty(),
                );
                let read = read_objects(&found.sources, false, || {});
                assert_eq!(
                    (read.errors.len(), read.others),
                    (usize::from(errors), usize::from(!errors)),
                    "{name}"
                );
            }
            fs::remove_file(file).unwrap();
        }
    }

    #[test]
    fn a_broken_document_leaves_the_others_of_its_file() {
        let reading = reading(&[
            "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n---\nkind: Pod\napiVersion: v1\nb: [\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: c}\n",
        ]);
        assert_eq!(reading.errors[0].line, Some(7));
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
