//! The objects of the kinds that are read here, from many manifests.

use std::borrow::Borrow;
use std::collections::{BTreeMap, HashSet};

use super::completeness::{Completeness, Incomplete, Missing};
use super::delivery::{Delivery, Role};
use super::error::{Fault, Problem, ReadError, RenderedFrom};
use super::field_index::FieldIndex;
use super::helm_hook::HelmHook;
use super::locate::{Spot, locate, path_to};
use super::read::{Position, located, read};
use super::source::Source;
use super::template;
use super::versions::{Gone, kind_of};
use super::visit::Manifest;
use engine::model::Text;
use engine::model::object::{Object, ObjectKind, ObjectRef};

/// The most placeholders that one object may have in the place of a number or a list.
const MAX_PLACEHOLDERS: usize = 32;

/// An object of a kind that is read here.
pub struct Item {
    /// Its position in the manifests.
    pub place: Position,
    /// The byte offset of its start in the file.
    pub start: usize,
    /// The object as its manifest names it, without a namespace if the manifest sets none.
    pub reference: ObjectRef,
    /// The object.
    pub object: Object,
    /// Whether it has all required fields.
    pub completeness: Completeness,
    /// The Helm hook that it is, if it is one.
    pub hook: Option<HelmHook>,
    /// The Helm template from which it was rendered.
    pub template: Option<Box<str>>,
    /// The kept parts of its document; none if they were not requested.
    pub outline: FieldIndex,
    /// Hints for its author about problems that do not prevent reading it.
    pub notes: Vec<Note>,
}

impl Item {
    /// Whether a check judges it; the others are only facts.
    pub const fn is_judged(&self) -> bool {
        matches!(self.object, Object::Workload(_) | Object::Claim(_) | Object::Autoscaler(_))
    }

    /// Its namespace, if it must be in one and names none.
    pub fn unnamed_namespace(&mut self) -> Option<&mut Text> {
        let is_namespaced = self.object.kind().is_namespaced();
        let namespace = &mut self.object.metadata_mut().namespace;
        (is_namespaced && namespace.is_empty()).then_some(namespace)
    }

    /// Sets the namespace, also in its reference, if it names none.
    pub fn put_into(&mut self, namespace: &str) {
        if let Some(unnamed) = self.unnamed_namespace() {
            *unnamed = namespace.into();
            self.reference.namespace = Some(namespace.into());
        }
    }

    /// Whether it is only a part of an object.
    pub const fn is_part(&self) -> bool {
        matches!(self.completeness, Completeness::Part(_))
    }

    /// Whether it has all required fields.
    pub const fn is_whole(&self) -> bool {
        matches!(self.completeness, Completeness::Whole)
    }

    /// The required fields that it lacks, if the rest can be judged.
    pub const fn incomplete(&self) -> Option<&Incomplete> {
        match &self.completeness {
            Completeness::Incomplete(incomplete) => Some(incomplete),
            Completeness::Whole | Completeness::Part(_) => None,
        }
    }

    /// Gives it a name, also in its reference.
    pub fn call(&mut self, name: &str) {
        self.object.metadata_mut().name = name.into();
        self.reference.name = name.into();
    }

    /// Whether it is a hook that never runs at the same time as the rest of its release.
    pub const fn passes(&self) -> bool {
        matches!(self.hook, Some(HelmHook::OutsideRelease | HelmHook::Test))
    }
}

/// A hint about the way in which an object is written.
#[derive(Clone, Debug)]
pub struct Note {
    /// The place, in bytes of the file.
    pub spot: Spot,
    /// One or two sentences.
    pub text: String,
}

/// The objects of some sources.
#[derive(Default)]
pub struct Objects {
    /// The objects of the kinds that are read here, in the order of the text.
    pub items: Vec<Item>,
    /// The number of objects of each other kind.
    pub skipped: BTreeMap<String, usize>,
    /// Releases and the objects they refer to, in the order of the text, if outlines were
    /// requested.
    pub deliveries: Vec<Delivery>,
    /// The number of documents that are not Kubernetes objects.
    pub others: usize,
    /// The index of the source of each document or object that is a template and must be rendered
    /// first.
    pub templates: Vec<usize>,
    /// Manifests that could not be read.
    pub errors: Vec<ReadError>,
}

/// The result of reading one object while its file is in memory.
enum Outcome {
    Skipped(Text),
    Delivery(Box<Delivery>),
    Template,
    Wrong(Box<ReadError>),
    Item(Box<Item>),
}

/// Reads the objects of `sources`, on all processors; with their outlines if `outlines` is set.
pub fn read_objects<S: Borrow<Source> + Sync>(sources: &[S], outlines: bool) -> Objects {
    let reading = read(sources, |place, manifest| {
        let file = &sources[place.source].borrow().name;
        (place.source, outcome(file, place, manifest, outlines))
    });
    let mut objects = Objects {
        others: reading.others,
        templates: reading.templates,
        errors: reading.errors,
        ..Objects::default()
    };
    for (source, outcome) in reading.objects {
        match outcome {
            // SOPS may encrypt the kind too.
            Outcome::Skipped(kind) if kind.starts_with("ENC[") => objects.others += 1,
            Outcome::Skipped(kind) => *objects.skipped.entry(kind.into()).or_default() += 1,
            Outcome::Delivery(delivery) => {
                if delivery.role != Role::Release {
                    let kind = delivery.reference.kind.to_string();
                    *objects.skipped.entry(kind).or_default() += 1;
                }
                objects.deliveries.push(*delivery);
            }
            Outcome::Template => objects.templates.push(source),
            Outcome::Wrong(error) => objects.errors.push(*error),
            Outcome::Item(item) => objects.items.push(*item),
        }
    }
    objects
}

fn outcome(file: &str, place: Position, manifest: &Manifest<'_, '_>, outlines: bool) -> Outcome {
    let Some((kind, gone)) = kind_of(manifest.api_version, manifest.kind) else {
        if outlines && let Some(delivery) = Delivery::of(place, manifest) {
            return Outcome::Delivery(Box::new(delivery));
        }
        return Outcome::Skipped(manifest.kind.into());
    };
    if template::is_unrendered(manifest, kind) {
        return Outcome::Template;
    }
    let (tree, id, part) = (manifest.tree, manifest.id, manifest.part);
    let missing = Missing::of(manifest, kind);
    match decode(manifest, kind) {
        Ok(object) => Outcome::Item(Box::new(Item {
            place,
            start: part.start + tree.node(id).start as usize,
            reference: reference(manifest, &object),
            completeness: missing.completeness(manifest, &object),
            object,
            hook: HelmHook::of(tree, id),
            template: part.template().map(Into::into),
            outline: if outlines { FieldIndex::of(tree, id, part) } else { FieldIndex::default() },
            notes: notes(manifest, gone),
        })),
        Err(_) if missing.may_be_patch() || template::is_template(part.text) => Outcome::Template,
        Err(fault) => {
            let rendered = rendered_from(manifest, fault.at).map(Box::new);
            let error = located(file, tree.lines(), part, fault);
            Outcome::Wrong(Box::new(ReadError { rendered, ..error }))
        }
    }
}

/// The source of the object, if it is rendered, and its field at the byte `at`.
fn rendered_from(manifest: &Manifest<'_, '_>, at: usize) -> Option<RenderedFrom> {
    let (tree, id) = (manifest.tree, manifest.id);
    let name = tree.entry(id, "metadata").and_then(|(_, metadata)| tree.string(metadata, "name"));
    Some(RenderedFrom {
        template: manifest.part.template()?.to_owned(),
        object: ObjectRef {
            api_version: manifest.api_version.into(),
            kind: manifest.kind.into(),
            namespace: None,
            name: name.unwrap_or_default().into(),
        },
        field: path_to(tree, id, at),
    })
}

/// Reads an object. A placeholder in the place of something other than text is read as a missing
/// value.
fn decode(manifest: &Manifest<'_, '_>, kind: ObjectKind) -> Result<Object, Fault> {
    let (tree, id) = (manifest.tree, manifest.id);
    let is_placeholder =
        |at| tree.scalar_at(at).is_some_and(|scalar| template::is_placeholder(&scalar.text));
    let mut placeholders = Vec::new();
    loop {
        let reason = match tree.decode(id, kind, &placeholders) {
            Ok(mut object) => {
                // A count with a placeholder must not be read as the 0 of a missing one.
                if let Object::Workload(workload) = &mut object
                    && workload.replicas == 0
                    && template::holds_placeholder(tree, id, "spec.replicas")
                {
                    workload.replicas = 1;
                }
                return Ok(object);
            }
            Err(reason) => reason,
        };
        let at = reason.at.unwrap_or(tree.node(id).start as usize);
        if placeholders.len() == MAX_PLACEHOLDERS
            || placeholders.contains(&at)
            || !is_placeholder(at)
        {
            let kind = kind.name();
            return Err(Fault::new(at, Problem::Malformed { kind, reason }));
        }
        placeholders.push(at);
    }
}

fn reference(manifest: &Manifest<'_, '_>, object: &Object) -> ObjectRef {
    let metadata = object.metadata();
    let namespace = Some(metadata.namespace.clone());
    ObjectRef {
        api_version: manifest.api_version.into(),
        kind: manifest.kind.into(),
        namespace: namespace
            .filter(|namespace| !namespace.is_empty() && object.kind().is_namespaced()),
        name: metadata.shown_name(),
    }
}

fn notes(manifest: &Manifest<'_, '_>, gone: Option<Gone>) -> Vec<Note> {
    let (tree, id, part) = (manifest.tree, manifest.id, manifest.part);
    let mut notes = Vec::new();
    if let Some(Gone { successor, since }) = gone {
        notes.push(Note {
            spot: locate(tree, id, "apiVersion").moved_by(part.start),
            text: format!(
                "Kubernetes {since} and later refuse {}; write apiVersion: {successor}. The object is judged as if it said so.",
                manifest.api_version
            ),
        });
    }
    // Rendered output gives no lines, so the same key at two places gives the same note.
    let mut said = HashSet::new();
    for repeated in tree.repeated(id) {
        let node = tree.node(repeated.second);
        let key = tree.key_text(repeated.second).unwrap_or_default();
        let line = |at| manifest.line(tree.node(at).start as usize);
        let times = match (line(repeated.first), line(repeated.second)) {
            (Some(first), Some(second)) => {
                format!("is set on line {first} and again on line {second}")
            }
            _ => "is set twice".to_owned(),
        };
        let text =
            format!("The key \"{key}\" {times}; the last one counts. Remove one of the two.");
        if said.insert(text.clone()) {
            let (start, end) = (node.start as usize, node.end as usize);
            let spot = Spot { start, end }.moved_by(part.start);
            notes.push(Note { spot, text });
        }
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::super::source::Source;
    use super::{Completeness, read_objects};

    /// The result of [`read_objects`] for a text: the reference, missing field and notes of each
    /// item, then the rest.
    fn summary(text: &str) -> String {
        let read = read_objects(&[Source::in_memory("-", text.to_owned())], true);
        let mut summary: Vec<String> = read
            .items
            .iter()
            .map(|item| {
                let missing = match &item.completeness {
                    Completeness::Whole => String::new(),
                    Completeness::Incomplete(incomplete) => format!(": {}", incomplete.text),
                    Completeness::Part(field) => format!(" without {field}"),
                };
                let notes: Vec<&str> = item.notes.iter().map(|note| note.text.as_str()).collect();
                format!("{}{missing}{}", item.reference, notes.concat())
            })
            .collect();
        summary.extend((!read.templates.is_empty()).then(|| "template".to_owned()));
        summary.extend((read.others > 0).then(|| "other".to_owned()));
        summary.extend(read.skipped.keys().map(|kind| format!("skipped {kind}")));
        summary.extend(read.errors.iter().map(ToString::to_string));
        summary.join("; ")
    }

    #[test]
    fn every_object_is_sorted() {
        const DEPLOYMENT: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n";
        const WHOLE: &str = "selector: {}, template: {metadata: {labels: {a: b}}, spec: {}}";
        const REST: &str = "The rest is judged, and each finding on it is an assumption.";
        let abridged = |pod: &str| {
            format!(
                "apiVersion: apps/v1\nkind: Deployment\nspec:\n  template:\n    spec: {{{pod}}}\n"
            )
        };
        let deployment = |rest: &str| format!("{DEPLOYMENT}spec: {{{rest}, {WHOLE}}}\n");
        let claim = |modes: &str| {
            format!(
                "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {{name: c}}\nspec: {{accessModes: {modes}}}"
            )
        };
        let table = [
            (deployment("replicas: 1"), "Deployment web"),
            (
                "apiVersion: node.k8s.io/v1\nkind: RuntimeClass\nmetadata: {name: gvisor}\n"
                    .to_owned(),
                "RuntimeClass gvisor",
            ),
            (
                "apiVersion: storage.k8s.io/v1\nkind: CSINode\nmetadata: {name: n1}\n".to_owned(),
                "CSINode n1",
            ),
            (
                "apiVersion: v1\nkind: PersistentVolume\nmetadata: {generateName: pv-}\nspec: {accessModes: [ReadWriteOnce]}\n"
                    .to_owned(),
                "PersistentVolume pv-* without metadata.name",
            ),
            (deployment("replicas: 1.0"), "Deployment web"),
            (deployment("replicas: '${N}'"), "Deployment web"),
            (deployment("replicas: \"{{ n }}\""), "Deployment web"),
            (deployment("strategy: {type: '${S}'}"), "template"),
            (
                deployment("replicas: many"),
                "-:4:18: This Deployment cannot be read: expected a whole number, found the text \"many\".",
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
                "Deployment web without spec.template.spec",
            ),
            (abridged("containers: [{name: a}]"), "Deployment  without metadata.name"),
            (
                abridged("containers: [{image: a}]"),
                "Deployment : metadata.name (line 1), spec.selector (line 3) and spec.template.metadata.labels (line 4) are missing, and the API server requires them. REST",
            ),
            (
                format!("# Source: web/templates/web.yaml\n{}", deployment("replicas: 1").replace("labels: {a: b}", "")),
                "Deployment web: spec.template.metadata.labels is missing, and the API server requires it. REST",
            ),
            (
                claim("[ReadWriteOnce]").replace("name: c", "labels: {}"),
                "PersistentVolumeClaim : metadata.name (line 3) is missing, and the API server requires it. REST",
            ),
            (
                claim("[ReadWriteOnce]").replace("name: c", "generateName: c-"),
                "PersistentVolumeClaim c-*",
            ),
            (format!("{DEPLOYMENT}spec: {{replicas: two}}\n"), "template"),
            (
                deployment("replicas: 1").replace("name: web", "labels: {}"),
                "Deployment  without metadata.name",
            ),
            (
                format!(
                    "- {}",
                    deployment("replicas: 1").trim_end().replace('\n', "\n  ")
                ),
                "Deployment web",
            ),
            ("- a: 1\n- b: 2\n".to_owned(), "other"),
            (claim("[ReadWriteOnce]"), "PersistentVolumeClaim c"),
            (
                claim("null"),
                "PersistentVolumeClaim c without spec.accessModes",
            ),
            (claim("['${M}']"), "template"),
            (
                claim("ReadWriteOnce"),
                "-:4:21: This PersistentVolumeClaim cannot be read: expected a list of access modes, found the text \"ReadWriteOnce\".",
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
                format!(
                    "# Source: web/templates/web.yaml\n{}",
                    deployment("replicas: 1, replicas: 2, x: {replicas: 1, replicas: 2}")
                ),
                "Deployment webThe key \"replicas\" is set twice; the last one counts. Remove one of the two.",
            ),
            (
                "apiVersion: v1\nkind: Service\nmetadata: {name: s, name: t}\n".to_owned(),
                "skipped Service",
            ),
            ("replicas: 1\nreplicas: 2\n".to_owned(), "other"),
        ];
        for (text, expected) in table {
            assert_eq!(summary(&text), expected.replace("REST", REST), "{text}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn what_is_no_text_is_an_error_only_where_it_is_a_manifest_or_was_named() {
        use super::super::find::{Exclude, find};
        use std::fs;
        let folder = tempfile::tempdir().unwrap();
        let manifest = b"apiVersion: v1\nkind: Pod\nmetadata: {name: caf\xe9}\n".to_vec();
        for (name, bytes, is_manifest) in [
            ("binary.yaml", b"a: \0\x01".to_vec(), false),
            ("latin1.yaml", b"a: caf\xe9\n".to_vec(), false),
            ("pod.yaml", manifest, true),
        ] {
            let file = folder.path().join(name);
            fs::write(&file, bytes).unwrap();
            for (path, errors) in [(folder.path(), is_manifest), (&file, true)] {
                let found = find(&[path.to_owned()], &Exclude::nothing(), &mut std::io::empty());
                let read = read_objects(&found.sources, false);
                assert_eq!(
                    (read.errors.len(), read.others),
                    (usize::from(errors), usize::from(!errors)),
                    "{name}"
                );
            }
            fs::remove_file(file).unwrap();
        }
    }
}
