//! The changes by a remedy in a file, line by line.

use std::path::Path;

use super::files::Files;
use engine::model::object::ObjectRef;
use engine::verdict::Proposal;
use manifest::edit;
use manifest::error::MAX_BYTES;
use manifest::objects::read_objects;
use manifest::source::Source;
use manifest::split::{Part, parts};
use report::Fix;

/// The lines of `part` that the proposal changes; `None` if the object at `items` cannot be edited
/// in its place.
pub fn of(part: &Part<'_>, items: &[usize], proposal: &Proposal) -> Option<Fix> {
    let edited = edit::apply(part.text, items, &proposal.patch).ok()?;
    if edited == part.text {
        return None;
    }
    let before: Vec<&str> = part.text.split_inclusive('\n').collect();
    let after: Vec<&str> = edited.split_inclusive('\n').collect();
    let same = |(a, b): &(&&str, &&str)| a == b;
    let start = before.iter().zip(&after).take_while(same).count();
    let rest = before.len().min(after.len()) - start;
    let reversed = before.iter().rev().zip(after.iter().rev());
    let end = reversed.take(rest).take_while(same).count();
    let owned = |lines: &[&str]| lines.iter().map(|&line| line.to_owned()).collect();
    Some(Fix {
        remedy: proposal.remedy.name,
        line: part.line + start,
        removed: owned(&before[start..before.len() - end]),
        added: owned(&after[start..after.len() - end]),
    })
}

/// The same as [`of`], for a `rendered` object that a kustomization takes from `file`, perhaps with
/// a prefix or suffix on its name.
pub(super) fn at_origin(
    files: &dyn Files,
    file: &Path,
    rendered: &ObjectRef,
    proposal: &Proposal,
) -> Option<Fix> {
    let text = files.text(file.parent()?, file, MAX_BYTES)?;
    let source = Source::in_memory("", text.clone());
    let items = read_objects(&[source], false).items;
    let named = |is_name: &dyn Fn(&str) -> bool| {
        let mut found = items.iter().filter(|item| {
            let ObjectRef { kind, name, .. } = &item.reference;
            !item.is_part() && *kind == rendered.kind && is_name(name)
        });
        // If two objects match, either choice would be a guess.
        found.next().filter(|_| found.next().is_none())
    };
    let item = named(&|name| name == rendered.name)
        .or_else(|| named(&|name| rendered.name.contains(name)))?;
    let parts = parts(&text);
    of(parts.get(item.place.part)?, &item.place.items, proposal)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use engine::remedy;
    use engine::verdict::Proposal;
    use manifest::split::parts;

    #[test]
    fn only_lines_that_change_are_named() {
        let proposal = Proposal {
            remedy: remedy::named("recreate").unwrap(),
            patch: serde_json::from_value(
                json!([{"op": "replace", "path": "/spec/strategy", "value": {"type": "Recreate"}}]),
            )
            .unwrap(),
        };
        let text = "a: 1\n---\nspec:\n  replicas: 1\n  strategy:\n    type: RollingUpdate\n    rollingUpdate: {maxSurge: 1}\n  template: {}\n";
        let fix = super::of(&parts(text)[1], &[], &proposal).unwrap();
        assert_eq!(fix.line, 6);
        assert_eq!(
            fix.removed.concat(),
            "    type: RollingUpdate\n    rollingUpdate: {maxSurge: 1}\n"
        );
        assert_eq!(fix.added.concat(), "    type: Recreate\n");
        // The document is a template, which cannot be edited.
        let part = &parts("spec: {{ .Values.spec }}\n")[0];
        assert_eq!(super::of(part, &[], &proposal), None);
    }
}
