//! Repairing manifests where they stand.

use std::borrow::Cow;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

use json_patch::Patch;
use serde_json::Value;
use similar::TextDiff;

use super::judge::{FileDocument, verdict};
use super::load::Loaded;
use super::merge_patch;
use super::parsed_object::ParsedObject;
use super::scope::Context;
use super::values;
use crate::report::Unread;
use engine::analysis::volumes::claims;
use engine::model::object::Object;
use engine::verdict::{EffectivePolicy, Mode};
use manifest::edit;
use manifest::source::Source;
use manifest::split::{Part, parts};

/// What came of repairing.
#[derive(Default)]
pub(super) struct Edits {
    /// Diffs and patches to print.
    pub(super) output: String,
    /// What was changed, a sentence each.
    pub(super) done: Vec<String>,
    /// What could not be changed.
    pub(super) failed: Vec<Unread>,
}

/// An object for which there is a remedy.
struct Repairable<'g> {
    known: &'g ParsedObject,
    document: FileDocument<'g>,
    patch: Patch,
    /// The names of the remedies in the patch.
    remedies: String,
}

/// Repairs every object for which there is a remedy; `mode` says which. With `dry`, the
/// files stay as they are and the output holds diffs.
pub(super) fn repair(
    gathered: &Loaded,
    effective: &EffectivePolicy,
    mode: Mode,
    dry: bool,
) -> Edits {
    let scopes = gathered.scopes();
    let mut edits = Edits::default();
    for numbers in gathered.judged() {
        let context = scopes.around(&numbers);
        let of_file: Vec<Repairable<'_>> = numbers
            .iter()
            .filter(|number| !rests_on_an_assumption(&context, gathered, **number))
            .filter_map(|number| {
                let known = &gathered.objects[*number];
                let document = FileDocument::of(known);
                let verdict = verdict(gathered, *number, &context, effective, &document, mode);
                let remedies = verdict.findings.iter().flat_map(|it| &it.remedies);
                let remedies: Vec<&str> = remedies.map(|it| it.remedy.name).collect();
                Some(Repairable {
                    known,
                    patch: verdict.patch?,
                    remedies: remedies.join(", "),
                    document,
                })
            })
            .collect();
        if !of_file.is_empty() {
            edits.file(gathered, &of_file, dry);
        }
    }
    edits
}

/// Whether what is known of a claim that the object uses is only assumed, or a
/// kustomization that was not rendered may change the object.
fn rests_on_an_assumption(context: &Context, gathered: &Loaded, number: usize) -> bool {
    let known = &gathered.objects[number];
    if gathered.changed_by(known, context).is_some() {
        return true;
    }
    let Object::Workload(workload) = &known.object else {
        return false;
    };
    let mut assumed = context.assumed_of(number, &workload.metadata.namespace);
    assumed.any(|note| claims(workload).any(|claim| *claim == note.claim))
}

impl Repairable<'_> {
    /// The patch that kustomize applies to the object, with a word on what it is for.
    fn patch_for_kustomize(&self) -> String {
        let object = &self.known.reference;
        let template = self.known.template.as_deref();
        let origin = template.map_or_else(String::new, |template| {
            format!(", rendered from {template}")
        });
        let patch = merge_patch::strategic(object, self.document.value(), &self.repaired());
        let patch = edit::to_yaml(&patch);
        format!("---\n# A patch for {object}{origin}.\n{patch}")
    }

    /// The object before and after, written anew.
    fn rewritten(&self) -> (String, String) {
        (
            edit::to_yaml(self.document.value()),
            edit::to_yaml(&self.repaired()),
        )
    }

    fn changes_the_strategy(&self) -> bool {
        let mut changes = self.patch.iter();
        changes.any(|change| change.path().as_str().starts_with("/spec/strategy"))
    }

    fn repaired(&self) -> Value {
        let mut after = self.document.value().clone();
        // The patch was made for this very object.
        let _ = json_patch::patch(&mut after, &self.patch);
        after
    }
}

/// Where to change what cannot be edited in its file: what was rendered or piped.
fn where_to_change(source: &Source, repairable: &Repairable<'_>) -> String {
    let object = &repairable.known.reference;
    let Some(template) = repairable.known.template.as_deref() else {
        return format!(
            "{object} was read from {}: change it where it is written, or apply the patch.",
            source.name
        );
    };
    let chart = if source.rendered {
        Path::new(&source.name)
    } else {
        Path::new(template.split('/').next().unwrap_or_default())
    };
    let inner = Path::new(template);
    let inner = inner.strip_prefix(chart).unwrap_or(inner);
    let setting = repairable
        .changes_the_strategy()
        .then(|| values::that_sets_the_strategy(chart, inner, &object.kind))
        .flatten();
    let value = match setting {
        Some(it) => format!(
            "the value {} ({}:{})",
            it.path,
            chart.join("values.yaml").display(),
            it.line
        ),
        None => "the value that becomes the field, if the chart has one".to_owned(),
    };
    format!("{object} is rendered from {template}: change {value}, else apply the patch.")
}

impl Edits {
    fn file(&mut self, gathered: &Loaded, repairable: &[Repairable<'_>], dry: bool) {
        let source = &gathered.sources[repairable[0].known.place.source];
        let Ok(before) = source.text() else { return };
        let parts = parts(&before);
        let mut texts: Vec<Cow<'_, str>> = parts.iter().map(|part| part.text.into()).collect();
        let mut done = Vec::new();
        for of_part in repairable.chunk_by(|a, b| a.known.place.part == b.known.place.part) {
            let at = of_part[0].known.place.part;
            let Some(part) = parts.get(at) else { continue };
            if let Some(edited) = self.part(source, of_part, part, dry, &mut done) {
                texts[at] = edited.into();
            }
        }
        let after = texts.concat();
        if *before == *after {
            return;
        }
        if dry {
            self.diff(source, &before, &after);
            return;
        }
        let Some(path) = source.path() else { return };
        match replace(path, &after) {
            Ok(()) => {
                self.done.append(&mut done);
            }
            Err(error) => self.fail(source, format!("This file cannot be written: {error}.")),
        }
    }

    /// The text of a document with its objects repaired; `None` where it stays as
    /// it is.
    fn part(
        &mut self,
        source: &Source,
        repairable: &[Repairable<'_>],
        part: &Part<'_>,
        dry: bool,
        done: &mut Vec<String>,
    ) -> Option<String> {
        if source.path().is_none() || part.template().is_some() {
            let advice = repairable.iter().map(|it| where_to_change(source, it));
            self.done.extend(advice);
            if !dry {
                for it in repairable {
                    self.output += &it.patch_for_kustomize();
                }
                return None;
            }
        }
        let changes: Vec<edit::Change<'_>> = repairable
            .iter()
            .map(|it| (&*it.known.place.items, &it.patch))
            .collect();
        let (edited, came_of) = edit::apply_each(part.text, &changes);
        for (it, came_of) in repairable.iter().zip(came_of) {
            let object = &it.known.reference;
            match came_of {
                Ok(()) => done.push(format!(
                    "{}: repaired {object} with {}.",
                    source.name, it.remedies
                )),
                Err(refusal) => {
                    if dry {
                        let (before, after) = it.rewritten();
                        self.diff(source, &before, &after);
                    } else {
                        self.output += &it.patch_for_kustomize();
                    }
                    self.fail(
                        source,
                        format!("{object} is not edited: {refusal} Apply the patch by hand."),
                    );
                }
            }
        }
        Some(edited)
    }

    fn diff(&mut self, source: &Source, before: &str, after: &str) {
        let diff = TextDiff::from_lines(before, after);
        let name = source.name.trim_start_matches('/');
        self.output += &diff
            .unified_diff()
            .header(&format!("a/{name}"), &format!("b/{name}"))
            .to_string();
    }

    fn fail(&mut self, source: &Source, message: String) {
        self.failed.push(Unread {
            file: source.name.clone(),
            path: None,
            at: None,
            message,
        });
    }
}

/// Writes the file as a whole or not at all, under the permissions it has. The
/// file written beside it first must be a new one: what a repository puts there,
/// a link for example, is not written to.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let path = path.canonicalize()?;
    let directory = path.parent().unwrap_or(Path::new("."));
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".multi-attach-guard");
    let overlay = directory.join(name);
    let mut file = fs::File::create_new(&overlay)?;
    let written = fs::metadata(&path)
        .and_then(|metadata| file.set_permissions(metadata.permissions()))
        .and_then(|()| file.write_all(text.as_bytes()))
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&overlay, &path));
    if written.is_err() {
        // The first error says more than one about the leftovers.
        let _ = fs::remove_file(&overlay);
    }
    written
}
