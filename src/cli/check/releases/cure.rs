//! What the author of a release can change so that a finding goes.
//!
//! Charts name the value that becomes a field as they like. So keys that charts use are tried:
//! the release is rendered again with each, and judged again. A key counts only where the
//! finding is gone then and no other one came.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io;
use std::path::PathBuf;

use json_patch::Patch;
use serde_json::{Map, Value, json};

use super::Release;
use super::values::{At, Layer, merge, set};
use crate::cli::check::discover::ReadOptions;
use crate::cli::check::judge;
use crate::cli::check::parse::Parsed;
use crate::cli::check::repository::Repository;
use crate::cli::check::scope::Scopes;
use engine::model::object::ObjectRef;
use engine::policy::Action;
use engine::rules::codes;
use engine::verdict::{EffectivePolicy, Finding};
use manifest::delivery::{document_at, value_of};
use manifest::edit::{self, EditError};
use manifest::read::Position;
use manifest::split::parts;

/// The most times that one release is rendered again.
const MAX_TRIALS: usize = 24;

/// The most values of one chart that are looked through, and how deep.
const MAX_VALUES: usize = 20_000;
const MAX_DEPTH: usize = 6;

/// What was found about one object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::cli::check) struct Fault {
    /// The source that the object was rendered to.
    source: usize,
    object: ObjectRef,
    rule: &'static str,
}

/// What cures a fault.
#[derive(Clone, Debug)]
pub(in crate::cli::check) enum Cure {
    /// A value of the release, at the path in the layer.
    Value {
        layer: Option<usize>,
        path: Vec<String>,
        value: Value,
    },
    /// A post-renderer with these fields of a kustomization.
    PostRenderer(Map<String, Value>),
}

/// The cures that were found. A fault that was looked into and has none is among them.
#[derive(Debug, Default)]
pub(in crate::cli::check) struct Cures(HashMap<Fault, Option<Cure>>);

impl Cures {
    /// What was found for the finding: `None` where nothing was looked for.
    pub(in crate::cli::check) fn of(
        &self,
        source: usize,
        finding: &Finding,
    ) -> Option<Option<&Cure>> {
        let fault = Fault {
            source,
            object: finding.object.clone(),
            rule: finding.rule,
        };
        self.0.get(&fault).map(Option::as_ref)
    }

    /// The cures of one source.
    pub(in crate::cli::check) fn for_source(&self, source: usize) -> Vec<(&Fault, &Cure)> {
        let of_it = self.0.iter().filter(|(fault, _)| fault.source == source);
        let mut found: Vec<_> = of_it
            .filter_map(|(fault, cure)| Some((fault, cure.as_ref()?)))
            .collect();
        found.sort_by_key(|(fault, _)| (fault.object.to_string(), fault.rule));
        found
    }
}

impl Fault {
    /// Whether its cure changes how pods are replaced, and nothing else.
    pub(in crate::cli::check) fn is_about_strategy(&self) -> bool {
        matches!(Kind::of(self.rule), Some(Kind::Strategy))
    }

    pub(in crate::cli::check) const fn object(&self) -> &ObjectRef {
        &self.object
    }
}

/// What a value decides about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Strategy,
    AccessMode,
    Replicas,
}

impl Kind {
    fn of(rule: &str) -> Option<Self> {
        Some(match rule {
            codes::ROLLING_UPDATE_OVERLAP | codes::SINGLE_POD_VOLUME => Self::Strategy,
            codes::LEFTOVER_ROLLING_UPDATE => Self::Strategy,
            codes::UNSUPPORTED_ACCESS_MODE => Self::AccessMode,
            codes::REPLICAS_SHARE_VOLUME => Self::Replicas,
            _ => return None,
        })
    }

    /// Names that charts give to such values.
    const fn keys(self) -> &'static [&'static str] {
        match self {
            Self::Strategy => &[
                "strategy",
                "updateStrategy",
                "deploymentStrategy",
                "strategyType",
                "deploymentStrategyType",
                "updateStrategyType",
            ],
            Self::AccessMode => &["accessMode", "accessModes"],
            Self::Replicas => &["replicaCount", "replicas"],
        }
    }

    /// The values to try under a key that has this value.
    fn values(self, there: Option<&Value>) -> Vec<Value> {
        let texts = |text: &str| match there {
            Some(Value::Array(_)) => vec![json!([text])],
            Some(Value::String(_)) => vec![json!(text)],
            _ => vec![json!(text), json!([text])],
        };
        match self {
            Self::Strategy => {
                let kind = || json!({"type": "Recreate"});
                let whole = || json!({"type": "Recreate", "rollingUpdate": null});
                match there {
                    Some(Value::String(_)) => vec![json!("Recreate")],
                    Some(Value::Object(_)) => vec![kind(), whole()],
                    _ => vec![kind(), json!("Recreate")],
                }
            }
            Self::AccessMode => texts("ReadWriteOnce"),
            Self::Replicas => vec![json!(1)],
        }
    }
}

/// Keys beside which a chart may read one that its values do not name.
const BESIDE: [&str; 6] = [
    "replicas",
    "replicaCount",
    "containers",
    "image",
    "persistence",
    "accessMode",
];

/// Paths in the values of a chart, and what may be set there: what is there first.
fn candidates(values: &Value, kind: Kind) -> Vec<(Vec<String>, Value)> {
    let (mut named, mut unnamed) = (Vec::new(), Vec::new());
    let mut waiting = vec![(Vec::new(), values)];
    let mut seen = 0;
    while let Some((path, value)) = waiting.pop() {
        let Some(entries) = value.as_object() else {
            continue;
        };
        seen += entries.len();
        if seen > MAX_VALUES {
            break;
        }
        let is_beside = path.is_empty() || BESIDE.iter().any(|key| entries.contains_key(*key));
        for key in kind.keys() {
            let there = entries.get(*key);
            let into = match there {
                Some(_) => &mut named,
                None if is_beside => &mut unnamed,
                None => continue,
            };
            let mut path: Vec<String> = path.clone();
            path.push((*key).to_owned());
            let values = kind.values(there.filter(|it| !it.is_null()));
            into.extend(values.into_iter().map(|value| (path.clone(), value)));
        }
        if path.len() < MAX_DEPTH {
            for (key, value) in entries.iter().rev() {
                let mut path = path.clone();
                path.push(key.clone());
                waiting.push((path, value));
            }
        }
    }
    // The nearest to the top first.
    let depth = |it: &(Vec<String>, Value)| it.0.len();
    named.sort_by_key(depth);
    unnamed.sort_by_key(depth);
    named.extend(unnamed);
    named.truncate(MAX_TRIALS - 1);
    named
}

/// A release with faults, and what is still to be tried for it.
struct Patient {
    source: usize,
    before: Vec<Fault>,
    faults: Vec<Fault>,
    trials: std::vec::IntoIter<Cure>,
}

/// Looks for what cures the findings on what releases deliver.
///
/// # Errors
/// Nothing can be rendered on this machine.
pub(in crate::cli::check) fn find(
    parsed: &mut Parsed,
    effective: &EffectivePolicy,
    options: ReadOptions<'_>,
) -> io::Result<Cures> {
    let releases = 0..parsed.discovered.sources.len();
    let releases: BTreeSet<usize> = releases
        .filter(|source| parsed.discovered.release(*source).is_some())
        .collect();
    let mut cures = Cures::default();
    if releases.is_empty() {
        return Ok(cures);
    }
    let found = findings(parsed, effective, &releases);
    let mut patients = Vec::new();
    for source in releases {
        let of_it = found.iter().filter(|(fault, _)| fault.source == source);
        let of_it: Vec<&(Fault, Option<Value>)> = of_it.collect();
        if of_it.is_empty() {
            continue;
        }
        let Some(release) = parsed.discovered.release(source) else {
            continue;
        };
        let Ok(job) = release.job(&parsed.world(options)) else {
            continue;
        };
        let values = options.rendering.chart_values(&job)?;
        patients.push(Patient::new(source, release, values, &of_it));
    }
    while patients.iter().any(|it| !it.faults.is_empty()) {
        if !round(parsed, effective, options, &mut patients, &mut cures)? {
            break;
        }
    }
    for fault in patients.into_iter().flat_map(|it| it.faults) {
        cures.0.insert(fault, None);
    }
    Ok(cures)
}

/// Tries the next cure of each; whether there was one.
fn round(
    parsed: &mut Parsed,
    effective: &EffectivePolicy,
    options: ReadOptions<'_>,
    patients: &mut [Patient],
    cures: &mut Cures,
) -> io::Result<bool> {
    let (mut tried, mut jobs) = (Vec::new(), Vec::new());
    for (number, patient) in patients.iter_mut().enumerate() {
        if patient.faults.is_empty() {
            continue;
        }
        let release = parsed.discovered.release(patient.source);
        if let (Some(release), Some(cure)) = (release, patient.trials.next())
            && let Ok(job) = cure.given_to(release).job(&parsed.world(options))
        {
            tried.push((number, cure));
            jobs.push(job);
        }
    }
    // A chart may refuse a value, and is not rendered then.
    let texts = options.rendering.releases(&jobs)?.into_iter();
    let texts = tried.iter().zip(texts);
    let rendered: Vec<(usize, String)> = texts
        .filter_map(|((number, _), text)| Some((patients[*number].source, text.ok()?)))
        .collect();
    let sources: BTreeSet<usize> = rendered.iter().map(|(source, _)| *source).collect();
    let before = parsed.exchange(rendered);
    let after: HashSet<Fault> = findings(parsed, effective, &sources)
        .into_iter()
        .map(|(fault, _)| fault)
        .collect();
    for (number, cure) in tried {
        let patient = &mut patients[number];
        if !sources.contains(&patient.source) {
            continue;
        }
        let mut new = after.iter().filter(|it| it.source == patient.source);
        if new.any(|fault| !patient.before.contains(fault)) {
            continue;
        }
        let is_there = |fault: &Fault| {
            let mut objects = parsed.objects.iter();
            objects.any(|it| it.place.source == fault.source && it.reference == fault.object)
        };
        patient.faults.retain(|fault| {
            let is_cured = !after.contains(fault) && is_there(fault);
            if is_cured {
                cures.0.insert(fault.clone(), Some(cure.clone()));
            }
            !is_cured
        });
    }
    parsed.exchange(before);
    Ok(!jobs.is_empty())
}

/// What is reported of the sources, with the patch of the first remedy.
fn findings(
    parsed: &Parsed,
    effective: &EffectivePolicy,
    sources: &BTreeSet<usize>,
) -> Vec<(Fault, Option<Value>)> {
    let scopes = Scopes::of(parsed);
    let mut found = Vec::new();
    for numbers in scopes.groups() {
        let source = parsed.objects[numbers[0]].place.source;
        if !sources.contains(&source) {
            continue;
        }
        let judged = judge::judge(parsed, &scopes, effective, &numbers);
        let objects = judged.into_iter().flat_map(|it| it.objects);
        for (finding, _) in objects.flat_map(|it| it.findings) {
            if finding.action != Action::Ignore {
                let patch = finding.remedies.first();
                let patch = patch.and_then(|it| serde_json::to_value(&it.patch).ok());
                let fault = Fault {
                    source,
                    object: finding.object,
                    rule: finding.rule,
                };
                found.push((fault, patch));
            }
        }
    }
    found
}

impl Patient {
    fn new(
        source: usize,
        release: &Release,
        chart: Value,
        found: &[&(Fault, Option<Value>)],
    ) -> Self {
        let mut values = chart;
        for layer in &release.values {
            merge(&mut values, &layer.value);
        }
        let faults: Vec<Fault> = found.iter().map(|(fault, _)| fault.clone()).collect();
        let mut kinds: Vec<Kind> = Vec::new();
        for kind in faults.iter().filter_map(|fault| Kind::of(fault.rule)) {
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        let layer = release.editable();
        let mut trials: Vec<Cure> = Vec::new();
        for kind in kinds {
            let found = candidates(&values, kind).into_iter();
            trials.extend(found.map(|(path, value)| Cure::Value { layer, path, value }));
        }
        if &*release.owner.reference.kind == "HelmRelease" {
            let patches = found.iter().filter_map(|(fault, patch)| {
                let target = json!({"kind": fault.object.kind, "name": fault.object.name});
                let patch = patch.as_ref()?.to_string();
                Some(json!({"target": target, "patch": patch}))
            });
            trials.extend(patches.map(|patch| {
                let mut fields = Map::new();
                fields.insert("patches".to_owned(), json!([patch]));
                Cure::PostRenderer(fields)
            }));
        }
        Self {
            source,
            before: faults.clone(),
            faults,
            trials: trials.into_iter(),
        }
    }
}

impl Cure {
    /// The release with the cure.
    fn given_to(&self, release: &Release) -> Release {
        let mut release = release.clone();
        match self {
            Self::Value { layer, path, value } => {
                let mut addition = Value::Null;
                set(&mut addition, path, value.clone());
                match layer.and_then(|layer| release.values.get_mut(layer)) {
                    Some(layer) => merge(&mut layer.value, &addition),
                    None => release.values.push(Layer {
                        value: addition,
                        at: At::Elsewhere,
                    }),
                }
            }
            Self::PostRenderer(fields) => release.post_renderers.push(fields.clone()),
        }
        release
    }
}

impl Release {
    /// The file that the value of the cure is written in: its name, its path without links and
    /// the place of the document; `None` where the release was rendered, or is not edited.
    pub(in crate::cli::check) fn written_in(
        &self,
        cure: &Cure,
        parsed: &Parsed,
        repository: &Repository,
    ) -> Option<(String, PathBuf, Position)> {
        let Cure::Value { layer, .. } = cure else {
            return None;
        };
        match &self.values.get((*layer)?)?.at {
            At::Field(_) | At::Text(_) => {
                let source = &parsed.discovered.sources[self.owner.place.source];
                let path = source.path().and(source.real_path())?;
                let name = source.name.clone();
                Some((name, path.to_owned(), self.owner.place.clone()))
            }
            At::File(path) => {
                let name = repository.name_of(path).display().to_string();
                Some((name, path.clone(), Position::start()))
            }
            At::Elsewhere => None,
        }
    }

    /// The strongest layer of values that can be edited.
    fn editable(&self) -> Option<usize> {
        let is_editable = |layer: &Layer| match &layer.at {
            At::Field(_) | At::Text(_) => !self.owner.is_template,
            At::File(_) => true,
            At::Elsewhere => false,
        };
        self.values.iter().rposition(is_editable)
    }
}

impl Cure {
    /// What to do about a finding on the release: a sentence.
    pub(in crate::cli::check) fn sentence(&self, release: &Release, file: &str) -> String {
        match self {
            Self::Value { path, value, layer } => {
                let field = match layer.map(|layer| &release.values[layer].at) {
                    Some(At::Field(field) | At::Text(field)) => format!("{field}."),
                    _ => String::new(),
                };
                let path = path.join(".");
                let subject = match layer {
                    Some(_) => format!("Set {field}{path} to {value} in {file}"),
                    None => format!("Give {} the value {path}: {value}", release.shown()),
                };
                format!("{subject}: rendered again with it, the finding is gone.")
            }
            Self::PostRenderer(_) => format!(
                "No value of the chart was found that changes this; `check --fix` prints a post-renderer for {}, with which it was rendered again, and the finding is gone.",
                release.shown()
            ),
        }
    }

    /// The text of a file with the value set in the document at `place`; `None` where it is not
    /// written in one that can be edited.
    pub(in crate::cli::check) fn edit(
        &self,
        release: &Release,
        text: &str,
        place: &Position,
    ) -> Option<Result<String, EditError>> {
        let Self::Value { layer, path, value } = self else {
            return None;
        };
        let document = document_at(text, place)?;
        let mut into = match &release.values.get((*layer)?)?.at {
            At::Field(field) => steps(field),
            At::File(_) => Vec::new(),
            At::Text(field) => return in_text(text, place, &document, field, path, value),
            At::Elsewhere => return None,
        };
        into.extend(path.iter().cloned());
        let parts = parts(text);
        let part = parts.get(place.part)?;
        let patch = patch(&document, &into, value)?;
        let edited = edit::apply(part.text, &place.items, &patch);
        let end = part.start + part.text.len();
        Some(edited.map(|edited| [&text[..part.start], &edited, &text[end..]].concat()))
    }
}

/// Sets the value in a document that is a text in a field of another one.
fn in_text(
    text: &str,
    place: &Position,
    document: &Value,
    field: &str,
    path: &[String],
    value: &Value,
) -> Option<Result<String, EditError>> {
    let pointer = format!("/{}", steps(field).join("/"));
    let inner = document.pointer(&pointer)?.as_str()?;
    let patch = patch(&value_of(inner)?, path, value)?;
    let edited = match edit::apply(inner, &[], &patch) {
        Ok(edited) => edited,
        Err(refusal) => return Some(Err(refusal)),
    };
    let mut wanted = document.clone();
    *wanted.pointer_mut(&pointer)? = Value::String(edited.clone());
    // As a block scalar has it; another way of writing is not edited.
    let found = (1..=MAX_INDENT).find_map(|indent| {
        let block = indented(inner, indent);
        (text.matches(&block).count() == 1)
            .then(|| text.replacen(&block, &indented(&edited, indent), 1))
            .filter(|text| document_at(text, place).as_ref() == Some(&wanted))
    });
    let field = field.to_owned();
    Some(found.ok_or(EditError::Unusual { field }))
}

/// The most blanks before the lines of a block scalar.
const MAX_INDENT: usize = 40;

fn indented(text: &str, indent: usize) -> String {
    let line = |line: &str| match line.trim().is_empty() {
        true => line.to_owned(),
        false => format!("{}{line}", " ".repeat(indent)),
    };
    text.split_inclusive('\n').map(line).collect()
}

/// What sets the value at the path in the document.
fn patch(document: &Value, path: &[String], value: &Value) -> Option<Patch> {
    let mut operations = Vec::new();
    additions(document, path, value, &mut String::new(), &mut operations);
    serde_json::from_value(Value::Array(operations)).ok()
}

/// The steps of a field's path: `spec.sources[1].helm` has four.
fn steps(field: &str) -> Vec<String> {
    let parts = field.split(['.', '[']);
    parts
        .map(|part| part.trim_end_matches(']').to_owned())
        .collect()
}

/// The operations that set `value` at the path below `here`, which is at `pointer`.
fn additions(
    here: &Value,
    path: &[String],
    value: &Value,
    pointer: &mut String,
    into: &mut Vec<Value>,
) {
    let there = |key: &String| match here {
        Value::Array(items) => items.get(key.parse::<usize>().ok()?),
        _ => here.get(key),
    };
    if let Some((key, rest)) = path.split_first() {
        *pointer += &format!("/{}", key.replace('~', "~0").replace('/', "~1"));
        match there(key) {
            Some(inner) if inner.is_object() || inner.is_array() => {
                additions(inner, rest, value, pointer, into);
            }
            _ => {
                let mut nested = Value::Null;
                set(&mut nested, rest, value.clone());
                into.push(json!({"op": "add", "path": pointer, "value": nested}));
            }
        }
        return;
    }
    match (here, value) {
        (Value::Object(_), Value::Object(entries)) => {
            for (key, value) in entries {
                let path = format!("{pointer}/{key}");
                into.push(json!({"op": "add", "path": path, "value": value}));
            }
        }
        _ => into.push(json!({"op": "replace", "path": pointer, "value": value})),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Kind, additions, candidates, steps};

    #[test]
    fn a_value_is_added_where_its_path_ends() {
        let document = json!({"spec": {"sources": [{}, {"helm": {"valuesObject": null}}],
            "values": {"a/b": {"type": "x"}, "c": 1}}});
        for (field, value, expected) in [
            (
                "spec.values.a/b",
                json!({"type": "y"}),
                json!([["/spec/values/a~1b/type", "y"]]),
            ),
            ("spec.values.c", json!(2), json!([["/spec/values/c", 2]])),
            (
                "spec.values.d.e",
                json!(2),
                json!([["/spec/values/d", {"e": 2}]]),
            ),
            (
                "spec.sources[1].helm.valuesObject.a",
                json!(1),
                json!([["/spec/sources/1/helm/valuesObject", {"a": 1}]]),
            ),
            (
                "spec.sources[0].helm.a",
                json!(1),
                json!([["/spec/sources/0/helm", {"a": 1}]]),
            ),
        ] {
            let mut operations = Vec::new();
            additions(
                &document,
                &steps(field),
                &value,
                &mut String::new(),
                &mut operations,
            );
            let short: Vec<Value> = operations
                .iter()
                .map(|it| json!([it["path"], it["value"]]))
                .collect();
            assert_eq!(json!(short), expected, "{field}");
        }
    }

    #[test]
    fn what_the_values_name_is_tried_first() {
        let values = json!({"server": {"replicas": 1, "updateStrategy": {"type": "RollingUpdate"}}, "x": {"strategy": "a"}});
        let tried: Vec<String> = candidates(&values, Kind::Strategy)
            .into_iter()
            .take(4)
            .map(|(path, value)| format!("{}={value}", path.join(".")))
            .collect();
        assert_eq!(
            tried,
            [
                r#"server.updateStrategy={"type":"Recreate"}"#,
                r#"server.updateStrategy={"type":"Recreate","rollingUpdate":null}"#,
                r#"x.strategy="Recreate""#,
                r#"strategy={"type":"Recreate"}"#,
            ]
        );
    }
}
