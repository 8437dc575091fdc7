//! From objects to findings, each with its line.

use std::ops::Range;

use serde_json::Value;

use super::gather::{Gathered, Member};
use super::repository::Repository;
use crate::cluster::{Beside, View};
use crate::manifest::cut::Cut;
use crate::manifest::decode::LeftOut;
use crate::manifest::locate::locate;
use crate::manifest::objects::object_at;
use crate::manifest::parallel::in_order;
use crate::manifest::place::Lines;
use crate::manifest::split::{Part, parts};
use crate::manifest::tree::{Id, Tree};
use crate::report::{Format, Judged, Located, Notice, Place, Report};
use crate::verdict::{Aim, Raw, Review, Settings, Verdict, evaluate};

/// Parts of documents that no remedy and no rule reads, and that are most of them.
const UNREAD: &[LeftOut] = &[
    ("spec", "containers"),
    ("spec", "initContainers"),
    ("spec", "ephemeralContainers"),
    ("volumes", "configMap"),
    ("volumes", "secret"),
    ("volumes", "projected"),
    ("volumes", "downwardAPI"),
    ("volumes", "emptyDir"),
    ("metadata", "managedFields"),
    ("", "status"),
];

/// A member's document.
pub(super) struct Document(pub(super) Value);

impl Raw for Document {
    fn object(&self) -> Option<&Value> {
        Some(&self.0)
    }

    fn old(&self) -> Option<&Value> {
        None
    }
}

/// No document: nothing is to be patched.
struct NoDocument;

impl Raw for NoDocument {
    fn object(&self) -> Option<&Value> {
        None
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
    raw: &dyn Raw,
    aim: Aim,
) -> Verdict {
    let member = &gathered.members[number];
    let review = Review {
        object: &member.object,
        old: None,
        reference: &member.reference,
        scaled: None,
        raw,
        aim,
    };
    let beside = Beside {
        batch: Some((&gathered.order, number)),
        ..Beside::NOTHING
    };
    evaluate(&review, View::new(&gathered.cluster, &beside), settings)
}

/// The members in which something is found, those of one file together: most
/// files are clean and need not be read again.
pub(super) fn suspects(gathered: &Gathered, settings: &Settings) -> Vec<Vec<usize>> {
    let found = in_order(gathered.members.len(), |number| {
        let verdict = verdict(gathered, number, settings, &NoDocument, Aim::Judge);
        !verdict.findings.is_empty() || !verdict.notices.is_empty()
    });
    let mut files: Vec<Vec<usize>> = Vec::new();
    for (number, _) in found.iter().enumerate().filter(|(_, found)| **found) {
        let source = |number: usize| gathered.members[number].place.source;
        match files.last_mut() {
            Some(file) if source(file[0]) == source(number) => file.push(number),
            _ => files.push(vec![number]),
        }
    }
    files
}

/// Judges everything and says where it stands.
pub(super) fn report(
    gathered: &Gathered,
    settings: &Settings,
    repository: &Repository,
    format: Format,
) -> Report {
    let files = suspects(gathered, settings);
    let told = in_order(files.len(), |at| {
        of_file(gathered, settings, repository, &files[at])
    });
    let mut report = Report {
        unread: gathered.unread.clone(),
        summary: gathered.summary.clone(),
        ..Report::default()
    };
    for (findings, notices) in told {
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

/// The findings and notices of the members `numbers`, all of one file.
fn of_file(
    gathered: &Gathered,
    settings: &Settings,
    repository: &Repository,
    numbers: &[usize],
) -> (Vec<Located>, Vec<Notice>) {
    let source = &gathered.sources[gathered.members[numbers[0]].place.source];
    let path = source.real_path().map(|path| repository.path_of(path));
    let text = source.text().unwrap_or_default();
    let parts = parts(&text);
    let (mut findings, mut notices) = (Vec::new(), Vec::new());
    let part_of = |number: usize| gathered.members[number].place.part;
    for together in numbers.chunk_by(|a, b| part_of(*a) == part_of(*b)) {
        let part = parts.get(part_of(together[0]));
        let cut = match together {
            [alone] => gathered.members[*alone].cut,
            _ => None,
        };
        let short = part.and_then(|part| cut?.apply(part.text));
        let document = part.and_then(|part| match &short {
            Some(short) => Written::read(part, short, cut),
            None => Written::read(part, part.text, None),
        });
        for number in together.iter().copied() {
            let member = &gathered.members[number];
            let written = document.as_ref().and_then(|written| {
                Some((written, object_at(&written.tree, &member.place.items)?))
            });
            let verdict = match written {
                Some((written, id)) => {
                    let document = Document(written.tree.value_without(id, UNREAD));
                    verdict(gathered, number, settings, &document, Aim::Propose)
                }
                // Somebody changed the file in the meantime.
                None => verdict(gathered, number, settings, &NoDocument, Aim::Judge),
            };
            let place = |field: &str| {
                let (written, id) = written?;
                Some(written.place(id, source.name.clone(), path.clone(), field))
            };
            findings.extend(verdict.findings.into_iter().map(|finding| {
                let place = place(&finding.field_path);
                Located::new(finding, place)
            }));
            notices.extend(verdict.notices.into_iter().map(|text| Notice {
                object: member.reference.clone(),
                place: place("metadata.annotations"),
                text,
            }));
        }
    }
    (findings, notices)
}

/// A document as it stands in its file.
struct Written<'t> {
    part: &'t Part<'t>,
    lines: Lines<'t>,
    /// What the tree lacks of the part.
    cut: Option<Cut>,
    tree: Tree<'t>,
}

impl<'t> Written<'t> {
    fn read(part: &'t Part<'t>, text: &'t str, cut: Option<Cut>) -> Option<Self> {
        let tree = Tree::parse(text).ok()??;
        let lines = Lines::of(part.text);
        Some(Self {
            part,
            lines,
            cut,
            tree,
        })
    }

    fn place(&self, id: Id, file: String, path: Option<String>, field: &str) -> Place {
        let part = self.part;
        let spot = locate(&self.tree, id, field);
        let original = |at| self.cut.map_or(at, |cut| cut.original(at));
        let (start, end) = (original(spot.start), original(spot.end));
        let (line, column) = self.lines.line_and_column(start);
        let (_, end_column) = self.lines.line_and_column(end);
        Place {
            file,
            path,
            line: line + part.line - 1,
            column,
            end_column: end_column.max(column + 1),
            text: part.text[line_around(part.text, start)].to_owned(),
            template: part.template().map(str::to_owned),
        }
    }
}

/// The line that the byte `at` is on, without its end.
fn line_around(text: &str, at: usize) -> Range<usize> {
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let end = text[at..]
        .find('\n')
        .map_or(text.len(), |newline| at + newline);
    start..start + text[start..end].trim_end_matches('\r').len()
}
