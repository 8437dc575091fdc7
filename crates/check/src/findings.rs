//! The last stage: creates a report from findings, with the place of each.

use std::path::Path;

use super::excerpts;
use super::files::Files;
use super::fold;
use super::hunk;
use super::judge::Judged;
use super::line;
use super::parse::Parsed;
use super::scope::Context;
use super::text::{Origin, Release, Text};
use super::written;
use engine::model::Text as Name;
use engine::model::object::ObjectRef;
use engine::rules::codes;
use engine::snapshot::{Overlay, Snapshot, View};
use engine::verdict::{Finding, Proposal};
use manifest::locate::Spot;
use manifest::objects::Item;
use manifest::position::Lines;
use manifest::split::{Part, parts};
use report::{Fix, Format, JudgedObject, Located, Notice, Place, Report};

/// The advice if several workloads of a chart use one claim.
const SHARED: &str = "Look for a value of the chart that gives a workload its own claim or its own affinity, or patch what the chart renders.";

/// The findings and notices of one group.
#[derive(Default)]
pub(super) struct Placed {
    findings: Vec<Located>,
    notices: Vec<Notice>,
    /// The notices about incomplete objects.
    incomplete: Vec<Notice>,
}

/// Creates the report.
pub(super) fn collect(parsed: &Parsed, placed: Vec<Placed>, format: Format) -> Report {
    let mut report = Report {
        unread: parsed.reading.unread.clone(),
        not_judged: parsed.reading.not_judged.clone(),
        summary: parsed.reading.summary.clone(),
        ..Report::default()
    };
    for group in placed {
        report.findings.extend(group.findings);
        report.notices.extend(group.notices);
        report.incomplete.extend(group.incomplete);
    }
    if format == Format::Junit {
        // Each object is its own test case.
        report.judged = parsed
            .objects()
            .filter(|(_, known)| known.is_judged())
            .map(|(_, known)| JudgedObject {
                object: known.reference.clone(),
                file: Some(parsed.text(known).source.name.clone()),
            })
            .collect();
    } else {
        report.findings = fold::findings(fold::volumes(report.findings));
        report.incomplete = fold::notices(report.incomplete);
    }
    report.notices = fold::notices(report.notices);
    report.summary.notices = report.notices.len() + report.incomplete.len();
    report.count();
    report
}

/// The findings and notices of objects of one file with their lines, for which the file is read
/// again.
pub(super) fn place(
    parsed: &Parsed,
    files: &dyn Files,
    format: Format,
    judged: Vec<Judged<'_>>,
) -> Placed {
    let Some(first) = judged.first() else {
        return Placed::default();
    };
    let origin = parsed.text(first.context.known);
    let source = &origin.source;
    let text = source.text().unwrap_or_default();
    let shows_excerpts = matches!(format, Format::Text | Format::Wide);
    // Each change by a remedy needs an edit.
    let shows_fixes = matches!(format, Format::Sarif | Format::Html | Format::Markdown);
    let file = FileText {
        parsed,
        files,
        origin,
        path: source.real_path().map(|path| files.path_of(path)),
        lines: Lines::of(&text),
        parts: if shows_fixes && !origin.is_rendered() { parts(&text) } else { Vec::new() },
    };
    let mut placed = Placed::default();
    for object in judged {
        let (context, known) = (&object.context, object.context.known);
        let all = object
            .findings
            .into_iter()
            .map(|(finding, field, spot)| {
                let located = file.locate(known, finding, file.place(known, &field, spot));
                Located { is_unrendered: context.doubt().is_some(), ..located }
            })
            .collect();
        // In JUnit, each finding is its own test case.
        let folded = if format == Format::Junit { all } else { fold::volumes(all) };
        for mut located in folded {
            // Findings on rendered or piped objects may be placed in another file.
            if shows_excerpts && located.file() == Some(&source.name) {
                located.excerpts = excerpts::of(context, &file.lines, &located);
            }
            if format == Format::Html {
                located.users = users(context, &located.finding.volumes);
            }
            placed.findings.push(located);
        }
        let notice = |field, (sentence, spot)| Notice {
            object: Some(known.reference.clone()),
            place: Some(file.place(known, field, spot)),
            text: sentence,
        };
        placed.incomplete.extend(known.incomplete().map(|incomplete| {
            notice(incomplete.fields[0], (incomplete.text.clone(), incomplete.spot))
        }));
        placed
            .notices
            .extend(object.notices.into_iter().map(|other| notice("metadata.annotations", other)));
    }
    placed
}

/// The users of the claims among the checked files.
pub(super) fn users(context: &Context<'_>, claims: &[Name]) -> Vec<ObjectRef> {
    let nothing = Snapshot::new();
    let overlay = Overlay { nearer: Some(context), ..Overlay::NOTHING };
    let view = View::new(&nothing, &overlay);
    report::users(view, &context.known.object.metadata().namespace, claims)
}

/// A file in which findings are placed.
struct FileText<'f> {
    parsed: &'f Parsed,
    files: &'f dyn Files,
    origin: &'f Text,
    path: Option<String>,
    lines: Lines<'f>,
    /// Its documents, if the format shows the changes by remedies.
    parts: Vec<Part<'f>>,
}

impl FileText<'_> {
    fn locate(&self, known: &Item, mut finding: Finding, place: Place) -> Located {
        let is_of_chart = self.origin.release().is_some_and(Release::is_of_helm);
        if is_of_chart && finding.rule == codes::WORKLOADS_SHARE_VOLUME {
            finding.message += &format!(" {SHARED}");
        }
        let mut located = Located::new(finding, Some(place));
        let first = located.finding.remedies.first();
        located.fix = first.and_then(|first| match self.parts.get(known.place.part) {
            Some(part) => hunk::of(part, &known.place.items, first),
            None => self.at_origin(known, first),
        });
        located
    }

    /// The changes by the proposal in the checked file from which a kustomization takes the object.
    fn at_origin(&self, known: &Item, proposal: &Proposal) -> Option<Fix> {
        let is_kustomization = match &self.origin.origin {
            Origin::Kustomization(_) => true,
            Origin::Release(release) => !release.is_of_helm(),
            Origin::Input | Origin::Chart(_) => false,
        };
        let template = known.template.as_deref().filter(|_| is_kustomization);
        let file = self
            .files
            .real(Path::new(template?))
            .filter(|file| self.parsed.reading.parts.contains(file))?;
        hunk::at_origin(self.files, &file, &known.reference, proposal)
    }

    fn place(&self, known: &Item, field: &str, spot: Spot) -> Place {
        let files = self.files;
        if let Some(root) = self.origin.root() {
            return written::of_root(root, known, field, files);
        }
        if let Some(release) = self.origin.release() {
            let owner = release.owner.to_string();
            let of_template = || {
                let (template, object) = (known.template.as_deref()?, &known.reference);
                written::of_template(template, object, field, files.top(), owner, files)
            };
            return release.leaves(field).then(of_template).flatten().unwrap_or_else(|| {
                let holder = &self.parsed.reading.texts[release.place.source].source;
                written::of_release(release, holder, files)
            });
        }
        let of_piped = || written::of_piped(known, field, files);
        self.path.is_none().then(of_piped).flatten().unwrap_or_else(|| Place {
            file: self.origin.source.name.clone(),
            path: self.path.clone(),
            line: line::at(&self.lines, spot),
            template: known.template.as_deref().map(str::to_owned),
        })
    }
}
