//! The reasons why pods wait for volumes, for people and for programs.

pub mod explanation;
mod text;

use std::collections::BTreeSet;
use std::io::{self, Write};

use serde::Serialize;

use super::{Width, safe};
use doctor::diagnosis::{CaseEntry, NodeEntry};
use text::Page;

/// A report on the pods of a cluster that wait for volumes.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Diagnosis {
    /// The cases; those that do not end without intervention come first.
    pub cases: Vec<CaseEntry>,
    /// The volumes of the node that was asked about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeEntry>,
    /// Questions that remain open because something could not be read: sentences.
    pub open: Vec<String>,
    /// The resources that could not be read, for people: `open` says what each leaves open.
    #[serde(skip)]
    pub unread: Vec<String>,
    /// Further notes: sentences.
    pub notes: Vec<String>,
}

formats! {
    "A format of a diagnosis.":
    Text "text" "For people",
    Json "json" "One JSON object with `cases`, `open` and `notes`",
}

/// The most cases that are all shown in full to people; beyond that, only one of each cause is.
const MOST: usize = 20;

impl Diagnosis {
    /// The cases that people see in full: all of them, or the first of each cause.
    fn in_full(&self) -> Vec<&CaseEntry> {
        if self.cases.len() <= MOST {
            return self.cases.iter().collect();
        }
        self.first_of_each_cause().collect()
    }

    fn first_of_each_cause(&self) -> impl Iterator<Item = &CaseEntry> {
        let mut causes = BTreeSet::new();
        self.cases.iter().filter(move |case| causes.insert(case.cause))
    }

    /// For each cause, its first case, the number of waiting pods and the number of cases, with the
    /// most pods first.
    fn by_cause(&self) -> Vec<(&CaseEntry, usize, usize)> {
        let mut causes: Vec<(&CaseEntry, usize, usize)> = self
            .first_of_each_cause()
            .map(|first| {
                let cases = self.cases.iter().filter(|case| case.cause == first.cause);
                let pods: usize = cases.clone().map(|case| case.waiting.len()).sum();
                (first, pods, cases.count())
            })
            .collect();
        causes.sort_by_key(|(_, pods, _)| std::cmp::Reverse(*pods));
        causes
    }

    /// The first sentence.
    fn summary(&self) -> String {
        let claims: BTreeSet<_> =
            self.cases.iter().map(|case| (&case.volume.namespace, &case.volume.claim)).collect();
        let pods: usize = self.cases.iter().map(|case| case.waiting.len()).sum();
        match (pods, claims.len()) {
            (0, _) if self.open.is_empty() => "No pod waits for a volume.".to_owned(),
            (0, _) => "No pod waits for a volume, as far as could be read.".to_owned(),
            (1, _) => "1 pod waits for a volume.".to_owned(),
            (pods, 1) => format!("{pods} pods wait for a volume."),
            (pods, claims) => format!("{pods} pods wait for {claims} volumes."),
        }
    }
}

/// The amount of detail that people see of each case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ways {
    /// The cause, the holder of the volume, and the safest way out with the steps before it.
    Safest,
    /// All details, and all ways out.
    All,
}

/// Writes `diagnosis` in `format`; `ways` and `width` apply to the format for people.
///
/// # Errors
/// Writing to `out` fails.
pub fn write(
    diagnosis: &Diagnosis,
    format: Format,
    ways: Ways,
    width: Width,
    out: &mut dyn Write,
) -> io::Result<()> {
    match format {
        Format::Text => text::write(diagnosis, ways, &mut Page { width, out }),
        Format::Json => out.write_all(safe::json(diagnosis)?.as_bytes()),
    }
}

#[cfg(test)]
mod tests;
