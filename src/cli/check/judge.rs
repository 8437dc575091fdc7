//! From objects to findings, each with its line.

use std::cell::OnceCell;
use std::fs;
use std::ops::Range;

use rayon::prelude::*;
use serde_json::Value;

use super::load::Loaded;
use super::parsed_object::ParsedObject;
use super::render::origin;
use super::render::roots::RootKind;
use super::repository::Repository;
use super::scope::Context;
use super::unused_suppressions;
use crate::cli::hunk;
use crate::report::{self, Fix, Format, JudgedObject, Located, Notice, Place, Report};
use engine::analysis::volumes::claims;
use engine::model::object::Object;
use engine::policy::Action;
use engine::rules::{Certainty, Outcome, codes};
use engine::snapshot::{Overlay, View};
use engine::verdict::{
    Document, EffectivePolicy, Finding, Mode, Proposal, Review, Verdict, evaluate,
};
use manifest::field_index::FieldIndex;
use manifest::helm_hook::HelmHook;
use manifest::locate::Spot;
use manifest::position::Lines;
use manifest::split::parts;

/// The document of an object, but for its bulk; made when it is asked for.
pub(super) struct FileDocument<'m> {
    outline: &'m FieldIndex,
    value: OnceCell<Value>,
}

impl<'m> FileDocument<'m> {
    pub(super) fn of(known: &'m ParsedObject) -> Self {
        Self {
            outline: &known.outline,
            value: OnceCell::new(),
        }
    }

    pub(super) fn value(&self) -> &Value {
        self.value.get_or_init(|| self.outline.document())
    }

    /// Where the field stands in the file.
    fn spot(&self, field: &str) -> Spot {
        self.outline.locate(self.value(), field)
    }
}

impl Document for FileDocument<'_> {
    fn object(&self) -> Option<&Value> {
        Some(self.value())
    }

    fn changes_template(&self) -> bool {
        true
    }
}

/// Judges the object number `number` in its surroundings.
pub(super) fn verdict(
    gathered: &Loaded,
    number: usize,
    context: &Context,
    effective: &EffectivePolicy,
    document: &FileDocument<'_>,
    mode: Mode,
) -> Verdict {
    let known = &gathered.objects[number];
    let review = Review {
        object: &known.object,
        old: None,
        reference: &known.reference,
        scaled: None,
        document,
        mode,
    };
    let nearer = [&context.cluster];
    let overlay = Overlay {
        partial: !gathered.whole,
        nearer: &nearer,
        batch: Some((&context.order, number)),
        ..Overlay::NOTHING
    };
    evaluate(&review, View::new(&gathered.facts, &overlay), effective)
}

/// What there is to tell of one object, and where each of it stands.
struct ObjectVerdict {
    number: usize,
    /// Whether the findings hang on what was not rendered.
    is_unrendered: bool,
    findings: Vec<(Finding, Spot)>,
    notices: Vec<(String, Spot)>,
}

/// Judges everything and says where it stands.
pub(super) fn report(
    gathered: &Loaded,
    effective: &EffectivePolicy,
    repository: &Repository,
    format: Format,
) -> Report {
    let scopes = gathered.scopes();
    let placed: Vec<(Vec<Located>, Vec<Notice>)> = gathered
        .judged()
        .into_par_iter()
        .filter_map(|numbers| {
            let context = scopes.around(&numbers);
            let told: Vec<ObjectVerdict> = numbers
                .iter()
                .filter_map(|number| tell(gathered, effective, &context, *number))
                .collect();
            (!told.is_empty()).then(|| of_file(gathered, repository, &context, format, told))
        })
        .collect();
    let mut report = Report {
        unread: gathered.unread.clone(),
        unopened: gathered.unopened.clone(),
        summary: gathered.summary.clone(),
        ..Report::default()
    };
    for (findings, notices) in placed {
        for located in &findings {
            report.summary.count(&located.finding);
        }
        report.summary.notices += notices.len();
        report.findings.extend(findings);
        report.notices.extend(notices);
    }
    if format == Format::Junit {
        let judged = gathered.objects.iter().filter(|known| known.is_judged());
        report.judged = judged.map(|it| named(gathered, it)).collect();
    }
    report
}

fn named(gathered: &Loaded, known: &ParsedObject) -> JudgedObject {
    JudgedObject {
        object: known.reference.clone(),
        file: Some(gathered.sources[known.place.source].name.clone()),
    }
}

/// What there is to tell of the object; `None` for most of them.
fn tell(
    gathered: &Loaded,
    effective: &EffectivePolicy,
    context: &Context,
    number: usize,
) -> Option<ObjectVerdict> {
    let known = &gathered.objects[number];
    let document = FileDocument::of(known);
    let Verdict {
        findings, notices, ..
    } = verdict(
        gathered,
        number,
        context,
        effective,
        &document,
        Mode::Propose,
    );
    let unused_suppressions = match known.object.metadata() {
        Some(metadata) => unused_suppressions::on_object(&metadata.annotations, &findings),
        None => Vec::new(),
    };
    // What has no pods yet may need it as soon as it has, and another overlay may now.
    let asleep = matches!(&known.object, Object::Workload(workload) if !workload.has_pods());
    let changed_by = gathered.changed_by(known, context);
    let unused_suppressions = if unused_suppressions.is_empty()
        || asleep
        || changed_by.is_some()
        || is_taken_twice(gathered, known)
    {
        Vec::new()
    } else {
        unused_suppressions
    };
    if findings.is_empty()
        && notices.is_empty()
        && known.notes.is_empty()
        && unused_suppressions.is_empty()
    {
        return None;
    }
    let mut told = ObjectVerdict {
        number,
        is_unrendered: changed_by.is_some(),
        findings: Vec::new(),
        notices: Vec::new(),
    };
    let annotations = document.spot("metadata.annotations");
    told.notices.extend(
        notices
            .into_iter()
            .chain(unused_suppressions)
            .map(|text| (text, annotations)),
    );
    let of_writing = known.notes.iter();
    told.notices
        .extend(of_writing.map(|note| (note.text.clone(), note.spot)));
    if !findings.is_empty() {
        let start = document.spot("");
        let elsewhere = elsewhere(gathered, known, context).into_iter();
        told.notices.extend(elsewhere.map(|text| (text, start)));
    }
    let metadata = known.object.metadata();
    let namespace = metadata.map_or("", |metadata| &metadata.namespace);
    for mut finding in findings {
        let mut ambiguous = context.ambiguous_of(number);
        if finding.rule == codes::UNRESOLVED_CLAIM
            && let Some(note) = ambiguous.find(|note| finding.volumes.contains(&note.claim))
        {
            finding.message = format!("{}: {}", finding.object, note.text);
            finding.brief = format!("claim \"{}\" is defined more than once", note.claim);
        }
        for assumed in context.assumed_of(number, namespace) {
            if !finding.volumes.contains(&assumed.claim) {
                continue;
            }
            assume(&mut finding);
            let notice = (assumed.text.clone(), document.spot(""));
            if !told.notices.contains(&notice) {
                told.notices.push(notice);
            }
        }
        if let Some(folder) = changed_by {
            assume(&mut finding);
            finding.message += &format!(
                " The kustomization {}, which was not rendered, may change this.",
                folder.display()
            );
        }
        let spot = document.spot(&finding.field_path);
        match as_notice(known, &finding) {
            Some(text) => told.notices.push((text, spot)),
            None => told.findings.push((finding, spot)),
        }
    }
    Some(told)
}

/// Makes the finding an assumption, which is no more than warned of.
fn assume(finding: &mut Finding) {
    finding.certainty = Certainty::Assumed;
    if matches!(finding.action, Action::Deny | Action::Fix) {
        finding.action = Action::Warn;
    }
}

/// Whether several kustomizations take an object of its kind from the same file.
fn is_taken_twice(gathered: &Loaded, known: &ParsedObject) -> bool {
    known.template.is_some()
        && gathered.objects.iter().any(|other| {
            other.template == known.template
                && other.reference.kind == known.reference.kind
                && other.place.source != known.place.source
        })
}

/// What a finding is told as where nobody needs to do anything about it.
fn as_notice(known: &ParsedObject, finding: &Finding) -> Option<String> {
    if finding.action == Action::Ignore {
        return None;
    }
    // A notice names its object itself.
    let object = format!("{}: ", finding.object);
    let message = (finding.message.strip_prefix(&object)).unwrap_or(&finding.message);
    if known.hook == Some(HelmHook::Test) {
        return Some(format!(
            "This is a Helm test, which exists only while somebody runs it: {message}"
        ));
    }
    let Object::Workload(workload) = &known.object else {
        return None;
    };
    let chosen = finding.outcome == Outcome::Delay
        && finding.action == Action::Warn
        && workload
            .strategy
            .room(workload.replicas)
            .is_some_and(|room| room.surge == 0);
    chosen.then(|| format!("With maxSurge: 0, as chosen here: {message}"))
}

/// Says of the claims of a workload that the facts have them in another namespace,
/// where there is only one.
fn elsewhere(gathered: &Loaded, known: &ParsedObject, context: &Context) -> Vec<String> {
    let Object::Workload(workload) = &known.object else {
        return Vec::new();
    };
    let facts = gathered.facts.view();
    let own = &workload.metadata.namespace;
    claims(workload)
        .filter(|claim| context.cluster.view().claim(own, claim).found().is_none())
        .filter(|claim| facts.claim(own, claim).found().is_none())
        .filter_map(|claim| match facts.namespaces_with_claim(claim)[..] {
            [only] => Some(format!(
                "There is no claim \"{claim}\" in namespace {own}, but the facts have one in {only}; if that is the one, pass --namespace {only}."
            )),
            _ => None,
        })
        .collect()
}

/// The findings and notices of objects of one file, which is read again for their
/// lines.
fn of_file(
    gathered: &Loaded,
    repository: &Repository,
    context: &Context,
    format: Format,
    told: Vec<ObjectVerdict>,
) -> (Vec<Located>, Vec<Notice>) {
    let number = gathered.objects[told[0].number].place.source;
    let (source, root) = (&gathered.sources[number], gathered.root(number));
    let path = source.real_path().map(|path| repository.path_of(path));
    let text = source.text().unwrap_or_default();
    let lines = Lines::of(&text);
    let parts = if shows_fixes(format) && root.is_none() {
        parts(&text)
    } else {
        Vec::new()
    };
    let (mut findings, mut notices) = (Vec::new(), Vec::new());
    for told in told {
        let known = &gathered.objects[told.number];
        let place = |field: &str, spot: Spot| {
            if let Some(root) = root {
                let from = known.template.as_deref();
                return Some(origin::place(
                    root,
                    from,
                    &known.reference,
                    field,
                    repository,
                ));
            }
            let (line, column) = lines.line_and_column(spot.start);
            let (_, end_column) = lines.line_and_column(spot.end);
            // Somebody may have changed the file in the meantime.
            let text = text.get(line_around(&text, spot.start));
            Some(Place {
                file: source.name.clone(),
                path: path.clone(),
                line,
                column,
                end_column: end_column.max(column + 1),
                text: text.unwrap_or_default().to_owned(),
                template: known.template.as_deref().map(str::to_owned),
            })
        };
        let located = told.findings.into_iter();
        findings.extend(located.map(|(finding, spot)| {
            let place = place(&finding.field_path, spot);
            let mut located = Located::new(finding, place);
            located.is_unrendered = told.is_unrendered;
            let finding = &located.finding;
            let first = finding.remedies.first();
            located.fix = first.and_then(|first| match parts.get(known.place.part) {
                Some(part) => hunk::of(part, &known.place.items, first),
                None => at_origin(gathered, known, first),
            });
            if format == Format::Html {
                let metadata = known.object.metadata();
                let namespace = metadata.map_or("", |metadata| &metadata.namespace);
                let view = context.cluster.view();
                located.users = report::users(view, namespace, &located.finding.volumes);
            }
            located
        }));
        notices.extend(told.notices.into_iter().map(|(text, spot)| Notice {
            object: Some(known.reference.clone()),
            place: place("metadata.annotations", spot),
            text,
        }));
    }
    (findings, notices)
}

/// What the proposal changes in the checked file that a kustomization takes the object
/// from.
fn at_origin(gathered: &Loaded, known: &ParsedObject, proposal: &Proposal) -> Option<Fix> {
    let root = gathered.root(known.place.source)?;
    let file = fs::canonicalize(known.template.as_deref()?).ok()?;
    let is_part = root.kind == RootKind::Kustomization && gathered.parts.contains(&file);
    is_part
        .then(|| hunk::at_origin(&file, &known.reference, proposal))
        .flatten()
}

/// Whether the format shows what a remedy changes; it takes an edit for each finding.
const fn shows_fixes(format: Format) -> bool {
    matches!(format, Format::Sarif | Format::Html | Format::Markdown)
}

/// The line that the byte `at` is on, without its end.
fn line_around(text: &str, at: usize) -> Range<usize> {
    let bytes = text.as_bytes();
    let at = at.min(bytes.len());
    let before = bytes[..at].iter().rposition(|byte| *byte == b'\n');
    let start = before.map_or(0, |newline| newline + 1);
    let after = bytes[at..].iter().position(|byte| *byte == b'\n');
    let end = after.map_or(bytes.len(), |newline| at + newline);
    let end = if end > start && bytes[end - 1] == b'\r' {
        end - 1
    } else {
        end
    };
    start..end
}
