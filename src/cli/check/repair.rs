//! Repairing manifests where they stand, after which they are parsed again.

use std::borrow::Cow;

use json_patch::Patch;
use serde_json::Value;
use similar::TextDiff;

use super::judge::{FileDocument, verdict};
use super::merge_patch;
use super::parse::Parsed;
use super::parsed_object::ParsedObject;
use super::replace::replace;
use super::scope::{Context, Scopes};
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
struct Repairable<'p> {
    known: &'p ParsedObject,
    document: FileDocument<'p>,
    patch: Patch,
    /// The names of the remedies in the patch.
    remedies: String,
}

/// Repairs every object for which there is a remedy; `mode` says which. With `dry`, the
/// files stay as they are and the output holds diffs.
pub(super) fn repair(parsed: &Parsed, effective: &EffectivePolicy, mode: Mode, dry: bool) -> Edits {
    let scopes = Scopes::of(parsed);
    let mut repairable = Vec::new();
    for numbers in scopes.groups() {
        let context = scopes.around(&numbers);
        let sure = numbers
            .iter()
            .filter(|number| !rests_on_an_assumption(&context, parsed, **number));
        repairable.extend(sure.filter_map(|number| {
            let known = &parsed.objects[*number];
            let document = FileDocument::of(known, parsed.now);
            let verdict = verdict(parsed, *number, &context, effective, &document, mode);
            let remedies = verdict.findings.iter().flat_map(|it| &it.remedies);
            let remedies: Vec<&str> = remedies.map(|it| it.remedy.name).collect();
            Some(Repairable {
                known,
                patch: verdict.patch?,
                remedies: remedies.join(", "),
                document,
            })
        }));
    }
    let mut edits = Edits::default();
    let source = |it: &Repairable<'_>| it.known.place.source;
    for of_file in repairable.chunk_by(|a, b| source(a) == source(b)) {
        edits.file(parsed, of_file, dry);
    }
    edits
}

/// Whether what is known of a claim that the object uses is only assumed, or a
/// kustomization that was not rendered may change the object.
fn rests_on_an_assumption(context: &Context<'_>, parsed: &Parsed, number: usize) -> bool {
    let known = &parsed.objects[number];
    if context.changed_by(parsed, known).is_some() {
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
    format!(
        "{object} is rendered from {template}: change the value that becomes the field, if the chart has one, else apply the patch."
    )
}

impl Edits {
    fn file(&mut self, parsed: &Parsed, repairable: &[Repairable<'_>], dry: bool) {
        let source = parsed.source(repairable[0].known);
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
            Ok(lost) => {
                self.done.append(&mut done);
                self.done.extend(
                    lost.iter()
                        .map(|what| format!("{}: {what} could not be kept.", source.name)),
                );
            }
            Err(error) => self.fail(source, error.to_string()),
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
