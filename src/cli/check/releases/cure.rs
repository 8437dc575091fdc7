//! What the author of a release can change so that a finding goes.
//!
//! Charts name the value that becomes a field as they like. So keys that charts use are tried:
//! the release is rendered again with each, and judged again. A key counts only where the
//! finding is gone then and no other one came.

mod candidates;
mod edit;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io;
use std::path::PathBuf;

use serde_json::{Map, Value, json};

use super::Release;
use super::values::{At, Layer, merge, set};
use crate::cli::check::discover::ReadOptions;
use crate::cli::check::judge;
use crate::cli::check::parse::Parsed;
use crate::cli::check::repository::Repository;
use crate::cli::check::scope::Scopes;
use candidates::{Kind, candidates};
use engine::model::object::ObjectRef;
use engine::policy::Action;
use engine::verdict::{EffectivePolicy, Finding};
use manifest::read::Position;

/// The most times that one release is rendered again.
const MAX_TRIALS: usize = 24;

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

/// A release with faults, and what is still to be tried for it.
struct FaultyRelease {
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
    let mut faulty = Vec::new();
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
        faulty.push(FaultyRelease::new(source, release, values, &of_it));
    }
    while faulty.iter().any(|it| !it.faults.is_empty()) {
        if !round(parsed, effective, options, &mut faulty, &mut cures)? {
            break;
        }
    }
    let left = faulty.into_iter().flat_map(|it| it.faults);
    let has_values = |source: usize| {
        let release = parsed.discovered.release(source);
        release.is_some_and(|it| it.chart.is_helm())
    };
    // For others, no value was tried.
    let tried = left.filter(|it| Kind::of(it.rule).is_some() && has_values(it.source));
    cures.0.extend(tried.map(|fault| (fault, None)));
    Ok(cures)
}

/// Tries the next cure of each; whether there was one.
fn round(
    parsed: &mut Parsed,
    effective: &EffectivePolicy,
    options: ReadOptions<'_>,
    faulty: &mut [FaultyRelease],
    cures: &mut Cures,
) -> io::Result<bool> {
    let (mut tried, mut jobs) = (Vec::new(), Vec::new());
    for (number, at_fault) in faulty.iter_mut().enumerate() {
        if at_fault.faults.is_empty() {
            continue;
        }
        let release = parsed.discovered.release(at_fault.source);
        if let (Some(release), Some(cure)) = (release, at_fault.trials.next())
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
        .filter_map(|((number, _), text)| Some((faulty[*number].source, text.ok()?)))
        .collect();
    let sources: BTreeSet<usize> = rendered.iter().map(|(source, _)| *source).collect();
    let before = parsed.exchange(rendered);
    let after: HashSet<Fault> = findings(parsed, effective, &sources)
        .into_iter()
        .map(|(fault, _)| fault)
        .collect();
    for (number, cure) in tried {
        let release = &mut faulty[number];
        if !sources.contains(&release.source) {
            continue;
        }
        let mut new = after.iter().filter(|it| it.source == release.source);
        if new.any(|fault| !release.before.contains(fault)) {
            continue;
        }
        let is_there = |fault: &Fault| {
            let mut objects = parsed.objects.iter();
            objects.any(|it| it.place.source == fault.source && it.reference == fault.object)
        };
        release.faults.retain(|fault| {
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

impl FaultyRelease {
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
            let found = candidates(&values, kind).into_iter().take(MAX_TRIALS - 1);
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
            At::Field(_) | At::Text(_) | At::File(_) => true,
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
}
