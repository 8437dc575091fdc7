//! Repairing manifests where they stand.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use json_patch::Patch;
use similar::TextDiff;

use super::gather::Gathered;
use super::judge::{Document, suspects, verdict};
use super::merge_patch;
use crate::manifest::edit;
use crate::manifest::objects::object_at;
use crate::manifest::source::Source;
use crate::manifest::split::parts;
use crate::manifest::tree::Tree;
use crate::report::{Report, Unread};
use crate::verdict::{Aim, Settings};

/// What came of repairing.
#[derive(Default)]
pub(super) struct Edits {
    /// Diffs and patches to print.
    pub(super) output: String,
    /// What was changed, a sentence each.
    pub(super) done: Vec<String>,
    /// How many files were written.
    pub(super) written: usize,
    /// What could not be changed.
    failed: Vec<Unread>,
}

/// Says in the report what could not be changed.
pub(super) fn refused(edits: Edits, report: &mut Report) {
    report.summary.unreadable += edits.failed.len();
    report.unread.extend(edits.failed);
}

/// Repairs every member for which there is a remedy. With `dry`, the files stay
/// as they are and the output holds diffs.
pub(super) fn repair(gathered: &Gathered, settings: &Settings, dry: bool) -> Edits {
    let mut edits = Edits::default();
    for numbers in suspects(gathered, settings) {
        edits.file(gathered, settings, &numbers, dry);
    }
    edits
}

impl Edits {
    fn file(&mut self, gathered: &Gathered, settings: &Settings, numbers: &[usize], dry: bool) {
        let source = &gathered.sources[gathered.members[numbers[0]].place.source];
        let Ok(before) = source.text() else { return };
        let mut after = before.clone().into_owned();
        let mut done = Vec::new();
        for number in numbers.iter().copied() {
            if let Some(edited) = self.member(gathered, settings, number, source, &after, &mut done)
            {
                after = edited;
            }
        }
        if *before == *after {
            return;
        }
        if dry {
            let diff = TextDiff::from_lines(&*before, &after);
            let name = source.name.trim_start_matches('/');
            self.output += &diff
                .unified_diff()
                .header(&format!("a/{name}"), &format!("b/{name}"))
                .to_string();
            return;
        }
        let Some(path) = source.path() else { return };
        match replace(path, &after) {
            Ok(()) => {
                self.written += 1;
                self.done.append(&mut done);
            }
            Err(error) => self.fail(source, format!("This file cannot be written: {error}.")),
        }
    }

    /// The file's text with the member repaired; `None` where it stays as it is.
    fn member(
        &mut self,
        gathered: &Gathered,
        settings: &Settings,
        number: usize,
        source: &Source,
        text: &str,
        done: &mut Vec<String>,
    ) -> Option<String> {
        let member = &gathered.members[number];
        let part = parts(text).into_iter().nth(member.place.part)?;
        let tree = Tree::parse(part.text).ok()??;
        let id = object_at(&tree, &member.place.items)?;
        let document = Document(tree.value(id));
        let verdict = verdict(gathered, number, settings, &document, Aim::Repair);
        let patch = verdict.patch?;
        let remedies: Vec<&str> = verdict
            .findings
            .iter()
            .flat_map(|finding| &finding.remedies)
            .map(|proposal| proposal.remedy.name)
            .collect();
        let remedies = remedies.join(", ");
        let object = &member.reference;

        if source.path().is_none() || part.template().is_some() {
            self.patch(&document, &patch, number, gathered, part.template());
            return None;
        }
        match edit::apply(part.text, &member.place.items, &patch) {
            Ok(edited) => {
                done.push(format!(
                    "{}: repaired {object} with {remedies}.",
                    source.name
                ));
                let end = part.start + part.text.len();
                Some([&text[..part.start], &edited, &text[end..]].concat())
            }
            Err(refusal) => {
                self.patch(&document, &patch, number, gathered, None);
                self.fail(
                    source,
                    format!("{object} is not edited: {refusal} Apply the patch by hand."),
                );
                None
            }
        }
    }

    fn patch(
        &mut self,
        document: &Document,
        patch: &Patch,
        number: usize,
        gathered: &Gathered,
        template: Option<&str>,
    ) {
        let mut after = document.0.clone();
        if json_patch::patch(&mut after, patch).is_err() {
            return;
        }
        let object = &gathered.members[number].reference;
        let patch = merge_patch::strategic(object, &document.0, &after);
        let origin = template.map_or_else(String::new, |template| {
            format!(", rendered from {template}")
        });
        self.output += &format!("---\n# A patch for {object}{origin}.\n");
        self.output += &edit::to_yaml(&patch);
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

/// Writes the file as a whole or not at all, under the permissions it has. The
/// file written beside it first must be a new one: what a repository puts there,
/// a link for example, is not written to.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let path = path.canonicalize()?;
    let directory = path.parent().unwrap_or(Path::new("."));
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".multi-attach-guard");
    let beside = directory.join(name);
    let mut file = fs::File::create_new(&beside)?;
    let written = fs::metadata(&path)
        .and_then(|metadata| file.set_permissions(metadata.permissions()))
        .and_then(|()| file.write_all(text.as_bytes()))
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&beside, &path));
    if written.is_err() {
        // The first error says more than one about the leftovers.
        let _ = fs::remove_file(&beside);
    }
    written
}
