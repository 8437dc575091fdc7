//! The lines that a finding refers to: the field at fault, the claim's name in the pod template,
//! and the claim's access modes if they are in another file.

use serde_json::Value;

use super::ids::TextId;
use super::line;
use super::parse::Parsed;
use super::scope::Context;
use engine::model::Text;
use engine::model::claim::Claim;
use engine::model::object::Object;
use engine::rules::RULES;
use engine::verdict::Finding;
use manifest::objects::Item;
use manifest::position::Lines;
use report::{Excerpt, Line, Located, Mark, Place};

/// The most claims of a finding that are marked.
const MOST_CLAIMS: usize = 3;

/// Lines that are at least this far apart are in separate excerpts.
const FAR: usize = 1000;

/// The excerpts of the object's file, whose lines are `lines`, and of the claims' own files.
pub(super) fn of(context: &Context<'_>, lines: &Lines<'_>, located: &Located) -> Vec<Excerpt> {
    let (parsed, known) = (context.parsed, context.known);
    let finding = &located.finding;
    let Some(place) = &located.place else {
        return Vec::new();
    };
    let document = known.outline.document();
    let mut marks = vec![at_fault(place, lines, &document, finding)];
    let mut elsewhere = Vec::new();
    if let Object::Workload(workload) = &known.object {
        let volumes = format!("{}.volumes", workload.kind.pod_spec_path());
        for name in finding.volumes.iter().take(MOST_CLAIMS) {
            let Some(path) = claim_name(&document, &volumes, name) else {
                continue;
            };
            let label = match context.claim(name) {
                Some((id, claim)) => {
                    let there = parsed.object(id);
                    let is_here = TextId::of(there) == TextId::of(known);
                    if is_here || parsed.text(there).is_rendered() {
                        described(claim)
                    } else {
                        let (excerpt, at) = definition(parsed, there, claim);
                        elsewhere.push(excerpt);
                        format!("defined in {at}")
                    }
                }
                None => context.undefined(name),
            };
            let spot = known.outline.locate(&document, &path);
            // The line at fault has its own label.
            if path != finding.field_path {
                marks.push(mark(lines, line::at(lines, spot), label));
            }
        }
    }
    let mut excerpts = grouped(&place.file, marks);
    excerpts.extend(elsewhere);
    excerpts
}

/// Groups the marks of one file into excerpts, with distant marks in separate ones. The excerpt
/// with the fault is first.
fn grouped(file: &str, mut marks: Vec<Mark>) -> Vec<Excerpt> {
    marks.sort_by_key(|mark| (mark.line.number, mark.line.column));
    let mut excerpts: Vec<Excerpt> = marks
        .chunk_by(|a, b| b.line.number - a.line.number < FAR)
        .map(|marks| Excerpt { file: file.to_owned(), marks: marks.to_vec() })
        .collect();
    excerpts.sort_by_key(|excerpt| !excerpt.marks.iter().any(|mark| mark.is_fault));
    excerpts
}

/// The mark of the field at fault, or of the nearest field around it if it is missing.
fn at_fault(place: &Place, lines: &Lines<'_>, document: &Value, finding: &Finding) -> Mark {
    let wrong =
        RULES.iter().find(|rule| rule.code == finding.rule).map_or("", |rule| rule.at_fault);
    let label = match missing(document, &finding.field_path) {
        Some(name) => format!("no {name}: {wrong}"),
        None => wrong.to_owned(),
    };
    Mark { is_fault: true, ..mark(lines, place.line.clone(), label) }
}

/// The last name in the field's path, if the field is missing.
fn missing<'f>(document: &Value, field: &'f str) -> Option<&'f str> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '.';
    if field.is_empty() || !field.chars().all(is_plain) {
        return None;
    }
    let pointer = format!("/{}", field.replace('.', "/"));
    match document.pointer(&pointer) {
        Some(_) => None,
        None => field.rsplit('.').next(),
    }
}

/// The path of the field by which a volume of the pod names the claim.
fn claim_name(document: &Value, volumes: &str, name: &Text) -> Option<String> {
    let list = document.pointer(&format!("/{}", volumes.replace('.', "/")))?;
    let number = list.as_array()?.iter().position(|volume| {
        volume["persistentVolumeClaim"]["claimName"].as_str() == Some(name.as_str())
    })?;
    Some(format!("{volumes}[{number}].persistentVolumeClaim.claimName"))
}

/// The excerpt of the claim in its own file, and its file and line.
fn definition(parsed: &Parsed, there: &Item, claim: &Claim) -> (Excerpt, String) {
    let source = &parsed.text(there).source;
    let text = source.text().unwrap_or_default();
    let document = there.outline.document();
    let spot = there.outline.locate(&document, "spec.accessModes");
    let lines = Lines::of(&text);
    let mark = mark(&lines, line::at(&lines, spot), described(claim));
    let at = format!("{}:{}", source.name, mark.line.number);
    let excerpt = Excerpt { file: source.name.clone(), marks: vec![mark] };
    (excerpt, at)
}

/// Describes the claim, for example `ReadWriteOnce, class "gp3"`.
pub(super) fn described(claim: &Claim) -> String {
    let modes = claim.spec.access_modes;
    match claim.class() {
        Some("") => format!("{modes}, without a class"),
        Some(class) if !class.chars().all(is_in_names) => {
            format!("{modes}, its class is still to be filled in")
        }
        Some(class) => format!("{modes}, class \"{class}\""),
        None => format!("{modes}, the default class"),
    }
}

/// Whether the character is common in names, even if it is not allowed in this one.
fn is_in_names(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "-_.".contains(letter)
}

/// The mark of a line that is not itself at fault.
fn mark(lines: &Lines<'_>, line: Line, label: String) -> Mark {
    let before = line.number.checked_sub(2).map_or("", |at| lines.text_of(at));
    Mark { line, before: before.to_owned(), label, is_fault: false }
}
