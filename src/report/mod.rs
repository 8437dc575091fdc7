//! What was found, for people and for programs.
//!
//! A [`Report`] is plain data: the command that made it knows where its findings
//! stand, the formats know how to say it. Every format names the same findings
//! in the same words.

mod concise;
pub mod diagnosis;
mod github;
mod html;
mod json;
mod junit;
mod markdown;
pub mod migration;
mod page;
pub mod safe;
mod sarif;
mod text;
mod words;

pub use words::severities;

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;

use engine::model::Text;
use engine::model::object::ObjectRef;
use engine::policy::Action;
use engine::snapshot::View;
use engine::verdict::{Finding, Suppressed};

/// A format of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A block for each object, with the lines at fault.
    Text,
    /// A line for each finding, as editors and compilers write them.
    Concise,
    /// One JSON object with `findings` and `summary`.
    Json,
    /// SARIF 2.1.0.
    Sarif,
    /// JUnit XML.
    Junit,
    /// Workflow commands of GitHub Actions.
    Github,
    /// Markdown with a marker, by which a comment is found again.
    Markdown,
    /// A page that needs nothing else.
    Html,
}

impl Format {
    /// All of them, in the order in which they are documented.
    pub const ALL: [Self; 8] = [
        Self::Text,
        Self::Concise,
        Self::Json,
        Self::Sarif,
        Self::Junit,
        Self::Github,
        Self::Markdown,
        Self::Html,
    ];

    /// The name under which a format is chosen, and what it is for.
    #[must_use]
    pub const fn documented(self) -> (&'static str, &'static str) {
        match self {
            Self::Text => ("text", "For people, with the lines at fault"),
            Self::Concise => ("concise", "For people and editors, a line for each finding"),
            Self::Json => ("json", "One JSON object with `findings` and `summary`"),
            Self::Sarif => ("sarif", "SARIF 2.1.0, for code scanning"),
            Self::Junit => ("junit", "JUnit XML, for the test pages of build servers"),
            Self::Github => (
                "github",
                "Workflow commands, for annotations in GitHub Actions",
            ),
            Self::Markdown => (
                "markdown",
                "A comment for a pull request, to be updated in place",
            ),
            Self::Html => ("html", "A page with a picture of each volume at risk"),
        }
    }
}

/// Everything that was found.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The findings, in the order in which they are told; those that nobody is
    /// bothered with are among them, with [`Action::Ignore`].
    pub findings: Vec<Located>,
    /// What there is to tell beside the findings, of annotations and of the writing.
    pub notices: Vec<Notice>,
    /// What could not be read.
    pub unread: Vec<Unread>,
    /// What was not looked into, each with its reason.
    pub unopened: Vec<Unopened>,
    /// What a reader may do next: sentences, for people only.
    pub hints: Vec<String>,
    /// The objects that were judged. Only JUnit names them all; may be empty
    /// for the other formats.
    pub judged: Vec<JudgedObject>,
    /// The numbers.
    pub summary: Summary,
}

/// A finding and where it stands.
#[derive(Clone, Debug)]
pub struct Located {
    /// The finding.
    pub finding: Finding,
    /// Where it stands; `None` for an object that came from no file.
    pub place: Option<Place>,
    /// What the first remedy changes in the file; `None` where it cannot be
    /// written there.
    pub fix: Option<Fix>,
    /// The workloads that use the volumes at risk; only the page shows them, and
    /// it may be empty for the other formats.
    pub users: Vec<User>,
    /// Whether an earlier report lacks it; `None` where there is none. What is not new
    /// is told to programs only.
    pub is_new: Option<bool>,
    /// Whether it hangs on what was not rendered, so that facts cannot settle it.
    pub is_unrendered: bool,
}

impl Located {
    /// A finding, where it stands, and nothing more.
    #[must_use]
    pub const fn new(finding: Finding, place: Option<Place>) -> Self {
        Self {
            finding,
            place,
            fix: None,
            users: Vec::new(),
            is_new: None,
            is_unrendered: false,
        }
    }
}

/// Lines of a file and what a remedy puts in their stead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fix {
    /// The remedy's name.
    pub remedy: &'static str,
    /// The first line that goes, counted from 1; where none goes, the line above
    /// which lines are added.
    pub line: usize,
    /// The lines that go, each with its end.
    pub removed: Vec<String>,
    /// The lines that come, each with its end.
    pub added: Vec<String>,
}

/// A workload that uses a volume at risk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// `Deployment` for example.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// How many pods it asks for.
    pub pods: i64,
}

/// The workloads of a namespace that use any of these claims, each once.
#[must_use]
pub fn users(view: View<'_>, namespace: &str, claims: &[Text]) -> Vec<User> {
    let mut users: Vec<User> = Vec::new();
    for claim in claims {
        for workload in view.workloads_using(namespace, claim) {
            let user = User {
                kind: workload.kind.to_string(),
                name: workload.metadata.shown_name().to_string(),
                pods: workload.replicas,
            };
            if !users.contains(&user) {
                users.push(user);
            }
        }
    }
    users
}

/// Something that stands for objects that were not looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unopened {
    /// `chart` or `kustomization`.
    pub what: &'static str,
    /// Its folder as the user named it.
    pub path: String,
    /// Why: the end of a sentence.
    pub reason: String,
}

/// A place in a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file as the user named it, `-` for standard input.
    pub file: String,
    /// The file's path from the root of the repository, with `/` between its
    /// parts; `None` for standard input.
    pub path: Option<String>,
    /// The line, counted from 1.
    pub line: usize,
    /// The first column at fault, in characters, counted from 1.
    pub column: usize,
    /// The column after the last one at fault.
    pub end_column: usize,
    /// The line's text.
    pub text: String,
    /// The Helm template the document was rendered from.
    pub template: Option<String>,
}

/// Something to tell beside the findings: of an object's annotations, its writing, or the
/// policy.
#[derive(Clone, Debug)]
pub struct Notice {
    /// The object; `None` where it is about the policy.
    pub object: Option<ObjectRef>,
    /// Where it stands.
    pub place: Option<Place>,
    /// A sentence.
    pub text: String,
}

impl Notice {
    /// The object and the sentence.
    fn told(&self) -> String {
        match &self.object {
            Some(object) => format!("{object}: {}", self.text),
            None => self.text.clone(),
        }
    }
}

/// A file, or a part of one, that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unread {
    /// The file as the user named it.
    pub file: String,
    /// The file's path from the root of the repository.
    pub path: Option<String>,
    /// The line and the column, counted from 1; `None` for the whole file.
    pub at: Option<(usize, usize)>,
    /// What is wrong: a sentence.
    pub message: String,
}

/// An object that was judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JudgedObject {
    /// The object.
    pub object: ObjectRef,
    /// The file as the user named it; `None` for an object that came from no file.
    pub file: Option<String>,
}

/// The numbers of a report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// Whether the objects are those of a live cluster.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cluster: bool,
    /// Files read, or tried.
    pub files: usize,
    /// Objects judged.
    pub judged: usize,
    /// Objects that served as facts only: classes, volumes, nodes and the like.
    pub facts: usize,
    /// Objects of kinds that hold no pods and no volumes, by kind.
    pub skipped: BTreeMap<String, usize>,
    /// Documents that are no Kubernetes objects.
    pub others: usize,
    /// Charts and kustomizations that were rendered.
    pub rendered: usize,
    /// What stands for objects that were not looked at, by kind: `chart`,
    /// `kustomization`, `HelmRelease` and the like.
    pub unopened: BTreeMap<String, usize>,
    /// Documents that are to be filled in before they can be judged.
    pub templates: usize,
    /// Parts of objects: patches, and what the API server would refuse as incomplete.
    pub fragments: usize,
    /// Links in directories that lead out of them, or nowhere, and were not followed.
    pub links: usize,
    /// Findings that are refused.
    pub deny: usize,
    /// Findings that the webhook would repair.
    pub fix: usize,
    /// Findings that are warned of.
    pub warn: usize,
    /// Findings that somebody asked, with a reason, not to hear of.
    pub suppressed: usize,
    /// What there is to tell beside the findings.
    pub notices: usize,
    /// Files or documents that could not be read.
    pub unreadable: usize,
}

impl Summary {
    /// Counts a finding.
    pub fn count(&mut self, finding: &Finding) {
        match finding.action {
            Action::Deny => self.deny += 1,
            Action::Fix => self.fix += 1,
            Action::Warn => self.warn += 1,
            Action::Ignore if finding.suppressed.is_some() => self.suppressed += 1,
            Action::Ignore => {}
        }
    }

    /// Findings that are told.
    #[must_use]
    pub const fn told(&self) -> usize {
        self.deny + self.fix + self.warn
    }
}

/// How loud a finding is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Severity {
    Error,
    Warning,
}

impl Severity {
    /// `None` for findings that are not told. What the webhook would repair is
    /// wrong in the file all the same.
    const fn of(action: Action) -> Option<Self> {
        match action {
            Action::Deny | Action::Fix => Some(Self::Error),
            Action::Warn => Some(Self::Warning),
            Action::Ignore => None,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

/// How a report is written.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// Whether the reader understands terminal colours.
    pub colour: bool,
    /// The width of the reader's window, in characters.
    pub width: usize,
    /// Whether the findings are counted and not told one by one.
    pub summary: bool,
}

/// Writes `report` in `format`; `style` counts for those made for people.
///
/// # Errors
/// Whatever writing to `out` says.
pub fn write(report: &Report, format: Format, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let safe = || report.made_safe();
    match format {
        Format::Text => text::write(&safe(), style, out),
        Format::Concise => concise::write(&safe(), style, out),
        Format::Json => json::write(report, out),
        Format::Sarif => sarif::write(report, out),
        Format::Junit => junit::write(&safe(), out),
        Format::Github => github::write(&safe(), out),
        Format::Markdown => markdown::write(&safe(), out),
        Format::Html => html::write(&safe(), out),
    }
}

impl Report {
    /// The findings that count, with how loud.
    fn found(&self) -> impl Iterator<Item = (Severity, &Located)> {
        self.findings
            .iter()
            .filter_map(|located| Some((Severity::of(located.finding.action)?, located)))
    }

    /// Those of them that people are told: what is not in an earlier report.
    fn told(&self) -> impl Iterator<Item = (Severity, &Located)> {
        self.found()
            .filter(|(_, located)| located.is_new != Some(false))
    }

    /// The findings that somebody asked not to hear of, with the reason.
    fn suppressed(&self) -> impl Iterator<Item = (&Suppressed, &Located)> {
        self.findings
            .iter()
            .filter_map(|located| Some((located.finding.suppressed.as_ref()?, located)))
    }
}

#[cfg(test)]
mod tests;
