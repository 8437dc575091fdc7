//! The changes that an editor offers at a finding.

use std::collections::HashMap;

use lsp_types::{CodeAction, CodeActionKind, CodeActionParams, Range, WorkspaceEdit};

use super::position;
use super::workspace::Workspace;
use engine::policy::RemedyChoice;
use report::safe;

/// The kind of the action that does what `check --fix` does in a whole file.
pub(super) const FIX_ALL: CodeActionKind = CodeActionKind::SOURCE_FIX_ALL;

/// The changes that are offered in the range of a document.
pub(super) fn offered(
    workspace: &Workspace<'_>,
    params: &CodeActionParams,
) -> Option<Vec<CodeAction>> {
    let uri = &params.text_document.uri;
    let (document, judged) = (workspace.documents.get(uri)?, workspace.judged.as_ref()?);
    let is_wanted = |kind: &CodeActionKind| match &params.context.only {
        None => *kind != FIX_ALL,
        Some(only) => only.iter().any(|wanted| kind.as_str().starts_with(wanted.as_str())),
    };
    let action = |title: String, kind, after: &str| {
        let edits = vec![position::edit(&document.text, after)];
        let edit = WorkspaceEdit::new(HashMap::from([(uri.clone(), edits)]));
        let title = safe::line(&title).into_owned();
        CodeAction { title, kind: Some(kind), edit: Some(edit), ..CodeAction::default() }
    };
    let (parsed, file) = (&judged.parsed, &document.file);
    let repaired = |remedy, object| parsed.repaired(&judged.effective, remedy, file, object);
    let mut actions = Vec::new();
    let here = workspace.findings(judged, document).filter(|(_, _, place)| {
        let Range { start, end } = position::range_of(&place.line);
        params.range.start.line <= end.line && start.line <= params.range.end.line
    });
    for (_, located, _) in here.filter(|_| is_wanted(&CodeActionKind::QUICKFIX)) {
        let (rule, object) = (located.finding.rule, &located.finding.object);
        let by_fix = repaired(None, Some(object));
        for remedy in located.finding.remedies.iter().map(|proposal| proposal.remedy) {
            let choice = RemedyChoice::from_name(remedy.name);
            let Some(after) = repaired(choice, Some(object)) else { continue };
            let title = format!("{}: {}", remedy.name, remedy.change);
            let is_preferred = Some(by_fix.as_ref() == Some(&after));
            let repair = action(title, CodeActionKind::QUICKFIX, &after);
            actions.push(CodeAction { is_preferred, ..repair });
        }
        let title = format!("Ignore {rule} here, with a reason");
        let ignored = parsed.with_ignored(rule, file, object);
        actions.extend(ignored.map(|after| action(title, CodeActionKind::QUICKFIX, &after)));
    }
    if is_wanted(&FIX_ALL) {
        let title = "Repair what `check --fix` repairs in this file".to_owned();
        actions.extend(repaired(None, None).map(|after| action(title, FIX_ALL, &after)));
    }
    Some(actions)
}
