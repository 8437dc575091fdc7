//! What was found, for people and for programs.
//!
//! A [`Report`] is plain data: the command that made it knows where its findings are,
//! the formats know how to write them. Every format has the same findings in the same
//! words.

mod concise;
pub mod diagnosis;
mod earlier;
mod github;
mod html;
mod json;
mod junit;
pub mod live;
mod markdown;
mod openreports;
mod page;
pub mod products;
pub mod safe;
mod sarif;
mod text;
mod words;

pub use earlier::Earlier;
pub use words::{by_namespace, listed};

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;

use engine::model::Text;
use engine::model::object::ObjectRef;
use engine::policy::Action;
use engine::snapshot::View;
use engine::verdict::{Finding, Suppressed};
use live::{Origin, Override, Owner, Stuck};

/// Declares the formats: the name under which each is chosen, and what it is for.
macro_rules! formats {
    ($($format:ident $name:literal $purpose:literal,)+) => {
        /// A format of a report.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Format {
            $(#[doc = $purpose] $format,)+
        }

        impl Format {
            /// All of them, in the order in which they are documented.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$format),+];

            /// The name under which a format is chosen, and what it is for.
            pub const fn documented(self) -> (&'static str, &'static str) {
                match self {
                    $(Self::$format => ($name, $purpose),)+
                }
            }
        }
    };
}

formats! {
    Text "text" "For people: the lines at fault; of a cluster, a table",
    Wide "wide" "For people, with all that is known of each finding",
    Concise "concise" "For people and editors, a line for each finding",
    Json "json" "One JSON object with `findings` and `summary`",
    Sarif "sarif" "SARIF 2.1.0, for code scanning",
    Junit "junit" "JUnit XML, for the test pages of build servers",
    Github "github" "Workflow commands, for annotations in GitHub Actions",
    Markdown "markdown" "A comment for a pull request, to be updated in place",
    Html "html" "A page with a picture of each volume at risk",
    Openreports "openreports" "Report objects of openreports.io, one a namespace, to apply",
}

/// Everything that was found.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The findings in the order in which they are reported. Those that the policy
    /// ignores are among them, with [`Action::Ignore`].
    pub findings: Vec<Located>,
    /// What else to say: about annotations, or about how a manifest is written.
    pub notices: Vec<Notice>,
    /// What could not be read.
    pub unread: Vec<Unread>,
    /// What was not rendered or looked into, each with its reason.
    pub unopened: Vec<Unopened>,
    /// What a reader may do next: sentences, in the formats for people.
    pub hints: Vec<String>,
    /// The objects that were judged. Only JUnit needs them.
    pub judged: Vec<JudgedObject>,
    /// Which cluster it is about; `None` for files.
    pub origin: Option<Origin>,
    /// Pods that wait for a volume now.
    pub stuck: Vec<Stuck>,
    /// Objects that the policy treats otherwise because they, or their namespaces, ask for it.
    pub overrides: Vec<Override>,
    /// Facts of the cluster that could not be read, and what that costs: sentences.
    pub open: Vec<String>,
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
    /// Where else the same was found: what other charts or kustomizations make of the line.
    pub also: Vec<(ObjectRef, Place)>,
    /// What the first remedy changes in the file; `None` where it cannot be
    /// written there.
    pub fix: Option<Fix>,
    /// The lines at fault, and those they speak of. Only text needs them.
    pub excerpts: Vec<Excerpt>,
    /// What `--fix` does about it, or why it leaves it alone: the end of a sentence.
    pub by_fix: Option<String>,
    /// The workloads that use the volumes at risk. Only the page needs them.
    pub users: Vec<User>,
    /// The command that applies the first remedy to a live object.
    pub command: Option<String>,
    /// Who writes the live object.
    pub owner: Option<Owner>,
    /// Whether an earlier report lacks it; `None` without one. Findings that are not new
    /// are only in the formats for programs.
    pub is_new: Option<bool>,
    /// Whether it depends on something that was not rendered, so that more facts would
    /// not settle it.
    pub is_unrendered: bool,
}

impl Located {
    /// A finding, where it stands, and nothing more.
    pub const fn new(finding: Finding, place: Option<Place>) -> Self {
        Self {
            finding,
            place,
            also: Vec::new(),
            fix: None,
            excerpts: Vec::new(),
            by_fix: None,
            users: Vec::new(),
            command: None,
            owner: None,
            is_new: None,
            is_unrendered: false,
        }
    }
}

/// Lines of a file, and the lines by which a remedy replaces them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fix {
    /// The remedy's name.
    pub remedy: &'static str,
    /// The first removed line, counted from 1; if none is removed, the line before
    /// which lines are added.
    pub line: usize,
    /// The removed lines, each with its line break.
    pub removed: Vec<String>,
    /// The added lines, each with its line break.
    pub added: Vec<String>,
}

/// Lines of a file, and what there is to say about them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    /// The file as the user named it.
    pub file: String,
    /// In the order of their lines; at least one.
    pub marks: Vec<Mark>,
}

/// A stretch of a line, and what there is to say about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The line, counted from 1.
    pub line: usize,
    /// The first column, in characters, counted from 1.
    pub column: usize,
    /// The column after the last one.
    pub end_column: usize,
    /// The line's text.
    pub text: String,
    /// The text of the line before it.
    pub before: String,
    /// A few words.
    pub label: String,
    /// Whether it is the line at fault.
    pub is_fault: bool,
}

/// A workload that uses a volume at risk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// `Deployment` for example.
    pub kind: String,
    /// Its name.
    pub name: String,
}

/// The workloads of a namespace that use any of these claims, each once.
pub fn users(view: View<'_>, namespace: &str, claims: &[Text]) -> Vec<User> {
    let mut users: Vec<User> = Vec::new();
    for claim in claims {
        for workload in view.workloads_using(namespace, claim) {
            let user = User {
                kind: workload.kind.to_string(),
                name: workload.metadata.shown_name().to_string(),
            };
            if !users.contains(&user) {
                users.push(user);
            }
        }
    }
    users
}

/// A chart, kustomization or opaque object that was not looked into.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unopened {
    /// `chart`, `kustomization`, `HelmRelease` and the like.
    #[serde(rename = "kind")]
    pub what: String,
    /// Its folder or file as the user named it, or its name.
    pub path: String,
    /// Why: the end of a sentence.
    pub reason: String,
    /// What is missing that is elsewhere.
    #[serde(skip)]
    pub missing: Option<Missing>,
}

/// What is missing where something was not looked into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Missing {
    /// Charts, which `--fetch` gets.
    Charts,
    /// Files of a URL, which nothing here gets.
    Files,
    /// The program whose format it is. Nothing is wrong with it, so it is never an error.
    Tool,
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

/// Something to say that is not a finding: about an object's annotations, how it is
/// written, or the policy.
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
    fn sentence(&self) -> String {
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
    /// What was not looked into, by kind: `chart`,
    /// `kustomization`, `HelmRelease` and the like.
    pub unopened: BTreeMap<String, usize>,
    /// Templates: documents that have to be filled in before they can be judged.
    pub templates: usize,
    /// Parts of objects: patches, and what the API server would refuse as incomplete.
    pub fragments: usize,
    /// Links in directories that lead out of them, or nowhere, and were not followed.
    pub links: usize,
    /// Volumes for which pods wait now, and which nothing but a command sets free.
    #[serde(skip_serializing_if = "is_zero")]
    pub stuck: usize,
    /// Findings that are denied.
    pub deny: usize,
    /// Findings that the webhook would repair.
    pub fix: usize,
    /// Findings that are warnings.
    pub warn: usize,
    /// Findings that are suppressed, with a reason.
    pub suppressed: usize,
    /// Notices.
    pub notices: usize,
    /// Files or documents that could not be read.
    pub unreadable: usize,
    /// What became of an earlier report; the counts are then of what is new.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compared: Option<Compared>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
const fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// What became of the findings of an earlier report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Compared {
    /// How many there were.
    pub earlier: usize,
    /// How many are still there.
    pub still: usize,
    /// How many are gone.
    pub gone: usize,
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

    /// Findings that are reported.
    pub const fn reported(&self) -> usize {
        self.deny + self.fix + self.warn
    }
}

/// How severe a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// What the webhook would refuse or repair.
    Error,
    /// What it would allow with a warning.
    Warning,
}

impl Severity {
    /// `None` for findings that are not reported. What the webhook would repair is
    /// an error in the file all the same.
    pub(crate) const fn of(action: Action) -> Option<Self> {
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

/// The width of text for a pipe and for wide windows: longer lines are hard to read.
pub const WIDEST: usize = 110;

/// How a report is written.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// Whether the reader understands terminal colours.
    pub colour: bool,
    /// The width of the reader's window, in characters.
    pub width: usize,
    /// Whether findings are counted instead of listed.
    pub summary: bool,
    /// Whether all that is known is printed.
    pub verbose: bool,
}

/// Writes `report` in `format`; `style` counts for those made for people.
///
/// # Errors
/// Whatever writing to `out` says.
pub fn write(report: &Report, format: Format, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let safe = || report.made_safe();
    match format {
        Format::Text => text::write(&safe(), style, out),
        Format::Wide => {
            let verbose = true;
            text::write(&safe(), Style { verbose, ..style }, out)
        }
        Format::Concise => concise::write(&safe(), style.summary, out),
        Format::Json => json::write(report, out),
        Format::Sarif => sarif::write(report, out),
        Format::Junit => junit::write(&safe(), out),
        Format::Github => github::write(&safe(), out),
        Format::Markdown => markdown::write(&safe(), out),
        Format::Html => html::write(&safe(), out),
        Format::Openreports => openreports::write(report, out),
    }
}

/// The parts of [`Format::Html`], for a page that draws a finding when somebody opens it.
impl Report {
    /// The summary, a sentence.
    pub fn summarised(&self) -> String {
        words::summary(&self.summary)
    }

    /// The errors and warnings, those of one object together.
    pub fn by_object(&self) -> Vec<Vec<(Severity, &Located)>> {
        let sections = words::sections(self).into_iter();
        sections.flat_map(|section| section.objects).collect()
    }

    /// The pictures, the remedy and the long text of each finding.
    pub fn details(&self) -> String {
        let html = html::details(&self.made_safe()).into_string();
        safe::lines(&html).into_owned()
    }

    /// What there is to say besides findings.
    pub fn asides(&self) -> String {
        let html = html::asides(&self.made_safe()).into_string();
        safe::lines(&html).into_owned()
    }
}

impl Report {
    /// Counts the findings and what is stuck, but for what an earlier report has too.
    pub fn count(&mut self) {
        let summary = &mut self.summary;
        [summary.deny, summary.fix, summary.warn, summary.suppressed] = [0; 4];
        let found = self.findings.iter();
        for located in
            found.filter(|it| it.is_new != Some(false) || it.finding.suppressed.is_some())
        {
            summary.count(&located.finding);
        }
        summary.stuck = self.stuck.iter().filter(|it| it.fails()).count();
    }

    /// Brings findings into the order of their namespaces, the worst first, and within them
    /// those of one object together, the gravest first.
    pub fn sort_by_namespace(&mut self) {
        let order = by_namespace(self).into_iter();
        let order: Vec<String> = order.map(|it| it.name.to_owned()).collect();
        let rank = |namespace: &str| order.iter().position(|it| it == namespace);
        let gravest = gravest(&self.findings);
        self.findings.sort_by_cached_key(|located| {
            let finding = &located.finding;
            let object = finding.object.to_string();
            let namespace = finding.object.namespace.as_deref().unwrap_or_default();
            let grave = gravest.get(&object).copied();
            (rank(namespace), grave, object, finding.action)
        });
        self.stuck
            .sort_by_cached_key(|it| rank(&it.case.volume.namespace));
    }

    /// The errors and warnings.
    fn found(&self) -> impl Iterator<Item = (Severity, &Located)> {
        self.findings
            .iter()
            .filter_map(|located| Some((Severity::of(located.finding.action)?, located)))
    }

    /// Those that people see: the ones that are not in an earlier report.
    fn reported(&self) -> impl Iterator<Item = (Severity, &Located)> {
        self.found()
            .filter(|(_, located)| located.is_new != Some(false))
    }

    /// What is stuck and not in an earlier report.
    fn stuck_now(&self) -> impl Iterator<Item = &Stuck> {
        self.stuck.iter().filter(|it| it.is_new != Some(false))
    }

    /// The suppressed findings, with the reason.
    fn suppressed(&self) -> impl Iterator<Item = (&Suppressed, &Located)> {
        self.findings
            .iter()
            .filter_map(|located| Some((located.finding.suppressed.as_ref()?, located)))
    }
}

/// The gravest action for each object.
fn gravest(findings: &[Located]) -> BTreeMap<String, Action> {
    let mut gravest = BTreeMap::new();
    for located in findings {
        let action = located.finding.action;
        gravest
            .entry(located.finding.object.to_string())
            .and_modify(|known: &mut Action| *known = action.min(*known))
            .or_insert(action);
    }
    gravest
}

#[cfg(test)]
#[path = "../../../tests/printed/mod.rs"]
mod printed;
#[cfg(test)]
mod tests;
