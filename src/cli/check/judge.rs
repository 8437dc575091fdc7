//! From objects to findings, each with its line.

use std::cell::OnceCell;
use std::ops::Range;

use rayon::prelude::*;
use serde_json::Value;

use super::gather::{Gathered, Member};
use super::repository::Repository;
use crate::cluster::{Beside, View};
use crate::manifest::locate::Spot;
use crate::manifest::outline::Outline;
use crate::manifest::place::Lines;
use crate::report::{Format, Judged, Located, Notice, Place, Report};
use crate::verdict::{Aim, Raw, Review, Settings, Verdict, evaluate};

/// The document of a member, but for its bulk; made when it is asked for.
pub(super) struct Document<'m> {
    outline: &'m Outline,
    value: OnceCell<Value>,
}

impl<'m> Document<'m> {
    pub(super) fn of(member: &'m Member) -> Self {
        Self {
            outline: &member.outline,
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

impl Raw for Document<'_> {
    fn object(&self) -> Option<&Value> {
        Some(self.value())
    }

    fn old(&self) -> Option<&Value> {
        None
    }
}

/// Judges the member number `number`.
pub(super) fn verdict(
    gathered: &Gathered,
    number: usize,
    settings: &Settings,
    document: &Document<'_>,
    aim: Aim,
) -> Verdict {
    let member = &gathered.members[number];
    let review = Review {
        object: &member.object,
        old: None,
        reference: &member.reference,
        scaled: None,
        raw: document,
        aim,
    };
    let beside = Beside {
        batch: Some((&gathered.order, number)),
        ..Beside::NOTHING
    };
    evaluate(&review, View::new(&gathered.cluster, &beside), settings)
}

/// What there is to tell of one member, and where each of it stands.
struct Told {
    number: usize,
    verdict: Verdict,
    findings: Vec<Spot>,
    annotations: Spot,
}

/// Judges everything and says where it stands.
pub(super) fn report(
    gathered: &Gathered,
    settings: &Settings,
    repository: &Repository,
    format: Format,
) -> Report {
    let told: Vec<Told> = (0..gathered.members.len())
        .into_par_iter()
        .filter_map(|number| tell(gathered, settings, number))
        .collect();
    let files: Vec<&[Told]> = told
        .chunk_by(|a, b| {
            gathered.members[a.number].place.source == gathered.members[b.number].place.source
        })
        .collect();
    let placed: Vec<(Vec<Located>, Vec<Notice>)> = files
        .into_par_iter()
        .map(|told| of_file(gathered, repository, told))
        .collect();
    let mut report = Report {
        unread: gathered.unread.clone(),
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
        report.judged = gathered
            .members
            .iter()
            .map(|it| judged(gathered, it))
            .collect();
    }
    report
}

fn judged(gathered: &Gathered, member: &Member) -> Judged {
    Judged {
        object: member.reference.clone(),
        file: Some(gathered.sources[member.place.source].name.clone()),
    }
}

/// What there is to tell of the member; `None` for most of them.
fn tell(gathered: &Gathered, settings: &Settings, number: usize) -> Option<Told> {
    let member = &gathered.members[number];
    let document = Document::of(member);
    let verdict = verdict(gathered, number, settings, &document, Aim::Propose);
    if verdict.findings.is_empty() && verdict.notices.is_empty() && member.notes.is_empty() {
        return None;
    }
    let findings = verdict
        .findings
        .iter()
        .map(|finding| document.spot(&finding.field_path))
        .collect();
    Some(Told {
        number,
        findings,
        annotations: document.spot("metadata.annotations"),
        verdict,
    })
}

/// The findings and notices of members of one file, which is read again for their
/// lines.
fn of_file(
    gathered: &Gathered,
    repository: &Repository,
    told: &[Told],
) -> (Vec<Located>, Vec<Notice>) {
    let source = &gathered.sources[gathered.members[told[0].number].place.source];
    let path = source.real_path().map(|path| repository.path_of(path));
    let text = source.text().unwrap_or_default();
    let lines = Lines::of(&text);
    let (mut findings, mut notices) = (Vec::new(), Vec::new());
    for told in told {
        let member = &gathered.members[told.number];
        let place = |spot: Spot| {
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
                template: member.template.as_deref().map(str::to_owned),
            })
        };
        let spots = told.findings.iter().copied();
        let placed = told.verdict.findings.iter().zip(spots);
        findings.extend(placed.map(|(it, spot)| Located::new(it.clone(), place(spot))));
        let notice = |text: &str, spot| Notice {
            object: member.reference.clone(),
            place: place(spot),
            text: text.to_owned(),
        };
        let of_policy = told.verdict.notices.iter();
        notices.extend(of_policy.map(|text| notice(text, told.annotations)));
        let of_writing = member.notes.iter();
        notices.extend(of_writing.map(|note| notice(&note.text, note.spot)));
    }
    (findings, notices)
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
