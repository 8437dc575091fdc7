//! The findings of an earlier audit, and which ones are new.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::report::Report;
use engine::policy::Action;

/// Why an earlier report cannot be compared with.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(super) enum EarlierError {
    /// The earlier report cannot be read.
    #[error("The earlier report {} given with --compare cannot be read: {source}.", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: io::Error,
    },
    /// The earlier report is something else.
    #[error("The file {} given with --compare is not a report: {source}. Write one with `multi-attach-guard audit --format json`.", path.display())]
    NoReport {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: serde_json::Error,
    },
}

/// What an earlier audit found.
#[derive(Deserialize)]
pub(super) struct Earlier {
    findings: Vec<EarlierFinding>,
}

#[derive(Deserialize)]
struct EarlierFinding {
    rule: String,
    object: EarlierObject,
}

#[derive(Deserialize)]
struct EarlierObject {
    kind: String,
    #[serde(default)]
    namespace: String,
    name: String,
}

/// What makes two findings of two audits the same one.
type Same<'f> = (&'f str, &'f str, &'f str, &'f str);

impl Earlier {
    pub(super) fn read(path: &Path) -> Result<Self, EarlierError> {
        let text = fs::read(path).map_err(|source| EarlierError::Read {
            path: path.to_owned(),
            source,
        })?;
        serde_json::from_slice(&text).map_err(|source| EarlierError::NoReport {
            path: path.to_owned(),
            source,
        })
    }

    fn known(&self) -> HashSet<Same<'_>> {
        self.findings
            .iter()
            .map(|finding| {
                let object = &finding.object;
                (
                    &*finding.rule,
                    &*object.kind,
                    &*object.namespace,
                    &*object.name,
                )
            })
            .collect()
    }

    /// Marks what is new, and says how many findings stayed and how many are gone.
    pub(super) fn compare(&self, report: &mut Report) {
        let mut known = self.known();
        let before = known.len();
        let mut stayed = HashSet::new();
        for located in &mut report.findings {
            if located.finding.action == Action::Ignore {
                continue;
            }
            let object = &located.finding.object;
            let namespace = object.namespace.as_deref().unwrap_or_default();
            let same = known.get(&(
                located.finding.rule,
                &*object.kind,
                namespace,
                &*object.name,
            ));
            located.is_new = Some(same.is_none());
            stayed.extend(same.copied());
        }
        known.retain(|same| !stayed.contains(same));
        let count = |number: usize| match number {
            1 => "1 is".to_owned(),
            number => format!("{number} are"),
        };
        report.hints.push(format!(
            "Of {before} earlier {}, {} still there and {} gone.",
            if before == 1 { "finding" } else { "findings" },
            count(stayed.len()),
            count(known.len())
        ));
    }
}
