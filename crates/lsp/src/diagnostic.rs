//! Findings and notices as an editor shows them.

use std::fs;

use lsp_types::{
    CodeDescription, Diagnostic, DiagnosticRelatedInformation, DiagnosticSeverity, Location,
    NumberOrString, Url,
};

use super::position::range_of;
use engine::rules::{Certainty, Outcome};
use report::{Excerpt, Located, Notice, Place, Severity, safe};

/// The advice for a finding that more facts would settle.
const TO_BE_CERTAIN: &str = "This is a guess. To be certain, start `multi-attach-guard lsp` with --facts and the output of `multi-attach-guard snapshot`.";

/// The finding at `place`. Guesses and unknown outcomes are hints.
pub(super) fn of_finding(severity: Severity, located: &Located, place: &Place) -> Diagnostic {
    let finding = &located.finding;
    let is_guess = finding.certainty == Certainty::Assumed || finding.outcome == Outcome::Unknown;
    let shown = match severity {
        _ if is_guess => DiagnosticSeverity::HINT,
        Severity::Error => DiagnosticSeverity::ERROR,
        Severity::Warning => DiagnosticSeverity::WARNING,
    };
    let mut message = safe::line(&finding.message).into_owned();
    // What was not rendered is named in the message itself.
    if is_guess && !located.is_unrendered {
        message = format!("{message}\n{TO_BE_CERTAIN}");
    }
    let page = Url::parse(&report::rule_page(finding.rule)).ok();
    let related: Vec<_> = located.excerpts.iter().flat_map(related).collect();
    Diagnostic {
        severity: Some(shown),
        code: Some(NumberOrString::String(finding.rule.to_owned())),
        code_description: page.map(|href| CodeDescription { href }),
        related_information: Some(related).filter(|related| !related.is_empty()),
        ..of(place, message)
    }
}

/// The notice at `place`.
pub(super) fn of_notice(notice: &Notice, place: &Place) -> Diagnostic {
    let severity = Some(DiagnosticSeverity::INFORMATION);
    Diagnostic { severity, ..of(place, safe::line(&notice.text).into_owned()) }
}

fn of(place: &Place, message: String) -> Diagnostic {
    let source = Some("multi-attach-guard".to_owned());
    Diagnostic { range: range_of(&place.line), source, message, ..Diagnostic::default() }
}

/// The marks beside the one at fault.
fn related(excerpt: &Excerpt) -> Vec<DiagnosticRelatedInformation> {
    let file = fs::canonicalize(&excerpt.file).ok();
    let Some(uri) = file.and_then(|file| Url::from_file_path(file).ok()) else {
        return Vec::new();
    };
    let marks = excerpt.marks.iter().filter(|mark| !mark.is_fault);
    marks
        .map(|mark| DiagnosticRelatedInformation {
            location: Location { uri: uri.clone(), range: range_of(&mark.line) },
            message: safe::line(&mark.label).into_owned(),
        })
        .collect()
}
