//! The changes that an editor offers at a finding.

use std::collections::HashMap;

use lsp_types::{CodeAction, CodeActionKind, CodeActionParams, Range, TextEdit, WorkspaceEdit};

use super::workspace::{Document, Workspace};
use super::{diagnostic, position};
use engine::policy::RemedyChoice;
use report::{Located, Place, Severity, safe};

/// The kind of the action that does what `check --fix` does in a whole file.
pub(super) const FIX_ALL: CodeActionKind = CodeActionKind::SOURCE_FIX_ALL;

/// The changes that are offered in the range of a document.
pub(super) fn offered(workspace: &Workspace<'_>, params: &CodeActionParams) -> Vec<CodeAction> {
    let Some(document) = workspace.document(&params.text_document.uri) else { return Vec::new() };
    let Some(judged) = workspace.judged() else { return Vec::new() };
    let is_wanted = |kind: &CodeActionKind| match &params.context.only {
        None => *kind != FIX_ALL,
        Some(only) => only.iter().any(|wanted| kind.as_str().starts_with(wanted.as_str())),
    };
    let mut actions = Vec::new();
    let (parsed, effective) = (&judged.parsed, &judged.effective);
    let edit = |after: &str| edit(params, document, after);
    let here = workspace.findings(judged, document).filter(|(_, _, place)| {
        is_wanted(&CodeActionKind::QUICKFIX) && touches(params.range, place)
    });
    for (severity, located, place) in here {
        let object = &located.finding.object;
        let file = &document.file;
        let by_fix = parsed.repaired(effective, None, file, Some(object));
        for proposal in &located.finding.remedies {
            let remedy = RemedyChoice::from_name(proposal.remedy.name);
            let Some(after) = parsed.repaired(effective, remedy, file, Some(object)) else {
                continue;
            };
            actions.push(CodeAction {
                is_preferred: Some(by_fix.as_ref() == Some(&after)),
                ..quick_fix(
                    format!("{}: {}", proposal.remedy.name, proposal.remedy.change),
                    (severity, located, place),
                    edit(&after),
                )
            });
        }
        let rule = located.finding.rule;
        if let Some(after) = parsed.with_ignored(rule, file, object) {
            let title = format!("Ignore {rule} here, with a reason");
            actions.push(quick_fix(title, (severity, located, place), edit(&after)));
        }
    }
    let all = parsed.repaired(effective, None, &document.file, None);
    if let Some(after) = all.filter(|_| is_wanted(&FIX_ALL)) {
        actions.push(CodeAction {
            title: "Repair what `check --fix` repairs in this file".to_owned(),
            kind: Some(FIX_ALL),
            edit: Some(edit(&after)),
            ..CodeAction::default()
        });
    }
    actions
}

fn quick_fix(
    title: String,
    (severity, located, place): (Severity, &Located, &Place),
    edit: WorkspaceEdit,
) -> CodeAction {
    CodeAction {
        title: safe::line(&title).into_owned(),
        kind: Some(CodeActionKind::QUICKFIX),
        diagnostics: Some(vec![diagnostic::of_finding(severity, located, place)]),
        edit: Some(edit),
        ..CodeAction::default()
    }
}

/// Whether the selection touches the lines of the place.
fn touches(selection: Range, place: &Place) -> bool {
    let range = position::range_of(&place.line);
    selection.start.line <= range.end.line && range.start.line <= selection.end.line
}

/// The edit that makes `after` of the document.
#[allow(clippy::mutable_key_type, reason = "the protocol's type has addresses as keys")]
fn edit(params: &CodeActionParams, document: &Document, after: &str) -> WorkspaceEdit {
    let edits: Vec<TextEdit> = vec![position::edit(&document.text, after)];
    let changes = HashMap::from([(params.text_document.uri.clone(), edits)]);
    WorkspaceEdit { changes: Some(changes), ..WorkspaceEdit::default() }
}
