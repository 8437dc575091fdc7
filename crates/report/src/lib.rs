//! Formats for the results of commands, for people and for programs.
//!
//! A [`Report`] is plain data: the command that creates it knows the places of its findings, and
//! the formats know how to write them. Every format has the same findings in the same words.

/// Declares the formats of something: the name under which each is chosen, and its purpose.
macro_rules! formats {
    ($of:literal: $($format:ident $name:literal $purpose:literal,)+) => {
        #[doc = $of]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Format {
            $(#[doc = $purpose] $format,)+
        }

        impl Format {
            /// All formats, in the order in which they are documented.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$format),+];

            /// The name under which the format is chosen, and its purpose.
            pub const fn documented(self) -> (&'static str, &'static str) {
                match self {
                    $(Self::$format => ($name, $purpose),)+
                }
            }
        }
    };
}

mod concise;
pub mod diagnosis;
mod earlier;
mod github;
mod html;
mod json;
mod junit;
pub mod live;
mod markdown;
mod not_judged;
mod openreports;
pub mod products;
pub mod safe;
mod sarif;
mod text;
mod words;

pub use earlier::Earlier;
pub use not_judged::{Cause, NotJudged, command_with};
pub use words::{by_namespace, not_judged_in_short, summary};

use std::collections::BTreeMap;
use std::io::{self, Write};

use maud::Markup;
use serde::Serialize;

use engine::model::Text;
use engine::model::object::{ObjectKind, ObjectRef};
use engine::policy::{Action, Suppressed};
use engine::snapshot::View;
use engine::verdict::Finding;
use live::{Origin, Override, Owner, Stuck};

formats! {
    "A format of a report.":
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

/// The results of one `check` or `audit`.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The findings in the order in which they are reported, including those that the policy
    /// ignores, with [`Action::Ignore`].
    pub findings: Vec<Located>,
    /// The notices about objects that lack required fields, and whose findings are therefore
    /// assumptions. They come before the findings.
    pub incomplete: Vec<Notice>,
    /// Further notices, for example about annotations or about the way a manifest is written.
    pub notices: Vec<Notice>,
    /// The files or documents that could not be read.
    pub unread: Vec<Unread>,
    /// Everything that could have had findings and was not judged, except unreadable files.
    pub not_judged: Vec<NotJudged>,
    /// Whether the command fails because something was not judged.
    pub must_be_complete: bool,
    /// Suggestions for the reader's next steps: sentences, in the formats for people.
    pub hints: Vec<String>,
    /// The objects that were judged. Only JUnit needs them.
    pub judged: Vec<JudgedObject>,
    /// The cluster that the report is about; `None` for files.
    pub origin: Option<Origin>,
    /// Pods that wait for a volume now.
    pub stuck: Vec<Stuck>,
    /// The annotations on objects and namespaces that override the policy.
    pub overrides: Vec<Override>,
    /// Facts of the cluster that could not be read, and the consequences: sentences.
    pub open: Vec<String>,
    /// The counts.
    pub summary: Summary,
}

/// A finding and its place.
#[derive(Clone, Debug)]
pub struct Located {
    /// The finding.
    pub finding: Finding,
    /// Its place; `None` for an object that came from no file.
    pub place: Option<Place>,
    /// Further objects and places with the same finding, which other charts or kustomizations
    /// render from the same line.
    pub also: Vec<(ObjectRef, Place)>,
    /// The change by the first remedy in the file; `None` if it cannot be written there.
    pub fix: Option<Fix>,
    /// The lines at fault, and the lines they refer to. Only text needs them.
    pub excerpts: Vec<Excerpt>,
    /// The effect of `--fix` on the finding, or the reason why it has none: the end of a sentence.
    pub by_fix: Option<String>,
    /// The workloads that use the volumes at risk. Only HTML needs them.
    pub users: Vec<ObjectRef>,
    /// The command that applies the first remedy to a live object.
    pub command: Option<String>,
    /// The owner that writes the live object.
    pub owner: Option<Owner>,
    /// Whether an earlier report lacks it; `None` if there is no earlier report. Only the formats
    /// for programs contain findings that are not new.
    pub is_new: Option<bool>,
    /// Whether it depends on something that was not rendered, so that more facts would not settle
    /// it.
    pub is_unrendered: bool,
}

impl Located {
    /// A finding and its place, with every other field empty.
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

    /// The file of its place, as the user named it.
    pub fn file(&self) -> Option<&str> {
        Some(&self.place.as_ref()?.file)
    }

    /// The namespace of its object; empty for objects that have none.
    fn namespace(&self) -> &str {
        self.finding.object.namespace.as_deref().unwrap_or_default()
    }

    /// The source from which its object was rendered, as shown in messages.
    pub fn template(&self) -> Option<&str> {
        self.place.as_ref()?.template.as_deref()
    }
}

/// Lines of a file, and the lines with which a remedy replaces them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fix {
    /// The name of the remedy.
    pub remedy: &'static str,
    /// The first removed line, counted from 1; if no line is removed, the line before which lines
    /// are added.
    pub line: usize,
    /// The removed lines, each with its line break.
    pub removed: Vec<String>,
    /// The added lines, each with its line break.
    pub added: Vec<String>,
}

/// Lines of a file, with labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    /// The file as the user named it.
    pub file: String,
    /// The marks in the order of their lines; at least one.
    pub marks: Vec<Mark>,
}

/// A range of a line, with a label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The range.
    pub line: Line,
    /// The text of the line before it.
    pub before: String,
    /// A label of a few words.
    pub label: String,
    /// Whether it is the line at fault.
    pub is_fault: bool,
}

/// The workloads of a namespace that use any of these claims, each once.
pub fn users(view: View<'_>, namespace: &str, claims: &[Text]) -> Vec<ObjectRef> {
    let mut users = Vec::new();
    for claim in claims {
        for workload in view.workloads_using(namespace, claim) {
            let kind = ObjectKind::Workload(workload.kind);
            let user = kind.reference(namespace, &workload.metadata.shown_name());
            if !users.contains(&user) {
                users.push(user);
            }
        }
    }
    users
}

/// The address of the rule's documentation.
pub fn rule_page(rule: &str) -> String {
    format!("{}/blob/main/docs/rules.md#{rule}", env!("CARGO_PKG_REPOSITORY"))
}

/// A place in a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file as the user named it, `-` for standard input.
    pub file: String,
    /// The file's path from the root of the repository, separated with `/`; `None` for standard
    /// input.
    pub path: Option<String>,
    /// The range at fault.
    pub line: Line,
    /// The source from which the document was rendered, as shown in messages: a folder, a release,
    /// a template, or standard input.
    pub template: Option<String>,
}

impl Place {
    /// Whether the object is from standard input.
    pub fn is_of_stdin(&self) -> bool {
        self.file == "-" || self.template.as_deref() == Some("standard input")
    }
}

/// A line of a file, and a range of columns on it. Lines and columns are counted from 1, and
/// columns count characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The line.
    pub number: usize,
    /// The first column.
    pub column: usize,
    /// The column after the last one.
    pub end_column: usize,
    /// The text of the line.
    pub text: String,
}

/// A remark that is not a finding: about an object's annotations, the way it is written, the
/// policy, or a fault for which no pod waits.
#[derive(Clone, Debug)]
pub struct Notice {
    /// The object; `None` if the text names what it is about.
    pub object: Option<ObjectRef>,
    /// The place of the notice.
    pub place: Option<Place>,
    /// A sentence.
    pub text: String,
}

impl Notice {
    /// The object and the text as one sentence.
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
    /// The problem: a sentence.
    pub message: String,
}

impl Unread {
    /// The file, with the line and the column if they are known: `file:line:column`.
    pub fn place(&self) -> String {
        match self.at {
            Some((line, column)) => format!("{}:{line}:{column}", self.file),
            None => self.file.clone(),
        }
    }
}

/// An object that was judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JudgedObject {
    /// The object.
    pub object: ObjectRef,
    /// The file as the user named it; `None` for an object that came from no file.
    pub file: Option<String>,
}

/// The counts of a report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// Whether the objects come from a live cluster.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cluster: bool,
    /// The number of files that were read or that could not be read.
    pub files: usize,
    /// The number of judged objects.
    pub judged: usize,
    /// The number of judged objects that lack fields that the API server requires.
    pub incomplete: usize,
    /// The number of objects that were only facts: classes, volumes, nodes and others.
    pub facts: usize,
    /// The number of objects of each kind that has no pods and no volumes.
    pub skipped: BTreeMap<String, usize>,
    /// The number of documents that are not Kubernetes objects.
    pub others: usize,
    /// The number of rendered charts and kustomizations.
    pub rendered: usize,
    /// The number of parts of objects, such as patches.
    pub fragments: usize,
    /// The number of volumes for which pods wait now, and that only a command can free.
    #[serde(skip_serializing_if = "is_zero")]
    pub stuck: usize,
    /// The number of findings that are denied.
    pub deny: usize,
    /// The number of findings that the webhook would repair.
    pub fix: usize,
    /// The number of findings that are warnings.
    pub warn: usize,
    /// The number of findings that are suppressed with a reason.
    pub suppressed: usize,
    /// The number of notices.
    pub notices: usize,
    /// The number of files or documents that could not be read.
    pub unreadable: usize,
    /// The comparison with an earlier report; the other counts then cover only new findings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compared: Option<Compared>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
const fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// The comparison with the findings of an earlier report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Compared {
    /// The number of findings in the earlier report.
    pub earlier: usize,
    /// The number of them that remain.
    pub still: usize,
    /// The number of them that are gone.
    pub gone: usize,
}

impl Summary {
    /// The number of findings that are reported.
    pub const fn reported(&self) -> usize {
        self.deny + self.fix + self.warn
    }
}

engine::words! {
    /// The severity of a finding.
    Severity {
        /// A finding that the webhook would refuse or repair.
        Error = "error",
        /// A finding that the webhook would allow with a warning.
        Warning = "warning",
    }
}

impl Severity {
    /// The severity of an action; `None` for findings that are not reported. A finding that the
    /// webhook would repair is still an error in the file.
    pub(crate) const fn of(action: Action) -> Option<Self> {
        match action {
            Action::Deny | Action::Fix => Some(Self::Error),
            Action::Warn => Some(Self::Warning),
            Action::Ignore => None,
        }
    }
}

/// The width of text for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// The width of a pipe: sentences are folded, titles and rows are not, because programs read
    /// them.
    OfPipe,
    /// The width of a window, in characters.
    OfWindow(usize),
}

impl Width {
    /// The most characters of a line of a sentence: longer lines are hard to read.
    pub const WIDEST: usize = 110;

    /// The most characters of a line of a sentence.
    pub(crate) const fn characters(self) -> usize {
        match self {
            Self::OfPipe => Self::WIDEST,
            Self::OfWindow(width) => width,
        }
    }

    /// The text after `start`. In a window, its further lines begin below the text.
    pub fn line(self, start: &str, text: &str) -> String {
        match self {
            Self::OfPipe => format!("{start}{text}"),
            Self::OfWindow(width) => words::hanging(start, text, width),
        }
    }
}

/// Options for the formats for people.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// Whether the reader's terminal supports colours.
    pub colour: bool,
    /// The width of the reader's window or pipe.
    pub width: Width,
    /// Whether findings are counted instead of listed.
    pub summary: bool,
    /// Whether all details are printed.
    pub verbose: bool,
}

/// Writes `report` in `format`; `style` applies to the formats for people.
///
/// # Errors
/// Writing to `out` fails.
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

/// The parts of [`Format::Html`], for a page that shows a finding when the user opens it.
impl Report {
    /// The errors and warnings, grouped by object.
    pub fn by_object(&self) -> Vec<Vec<(Severity, &Located)>> {
        words::sections(self).into_iter().flat_map(|section| section.objects).collect()
    }

    /// The pictures, the remedy and the full text of each finding.
    pub fn details(&self) -> String {
        self.printed(html::details)
    }

    /// The notices about incomplete objects, which come before the findings.
    pub fn incomplete(&self) -> String {
        self.printed(html::incomplete)
    }

    /// The contents of the report other than findings.
    pub fn asides(&self) -> String {
        self.printed(html::asides)
    }

    fn printed(&self, part: impl Fn(&Self) -> Markup) -> String {
        safe::lines(&part(&self.made_safe()).into_string()).into_owned()
    }
}

impl Report {
    /// Counts the findings and the stuck volumes, except those that an earlier report has too.
    /// Suppressed findings are always counted.
    pub fn count(&mut self) {
        let count = |action| {
            self.reported().filter(|(_, located)| located.finding.action == action).count()
        };
        let reported = [Action::Deny, Action::Fix, Action::Warn].map(count);
        let suppressed = self.suppressed().count();
        let summary = &mut self.summary;
        [summary.deny, summary.fix, summary.warn] = reported;
        summary.suppressed = suppressed;
        summary.stuck = self.stuck.iter().filter(|stuck| stuck.fails()).count();
    }

    /// Sorts findings by namespace, the worst first, and within a namespace by object, the most
    /// severe first.
    pub fn sort_by_namespace(&mut self) {
        let order: Vec<String> =
            by_namespace(self).into_iter().map(|counts| counts.name.to_owned()).collect();
        let rank = |namespace: &str| order.iter().position(|name| name == namespace);
        let mut gravest: BTreeMap<String, Action> = BTreeMap::new();
        for located in &self.findings {
            let action = located.finding.action;
            let known = gravest.entry(located.finding.object.to_string()).or_insert(action);
            *known = action.min(*known);
        }
        self.findings.sort_by_cached_key(|located| {
            let finding = &located.finding;
            let object = finding.object.to_string();
            let grave = gravest.get(&object).copied();
            (rank(located.namespace()), grave, object, finding.action)
        });
        self.stuck.sort_by_cached_key(|stuck| rank(&stuck.case.volume.namespace));
    }

    /// Whether everything that could have had findings was judged, with all facts.
    pub const fn is_complete(&self) -> bool {
        self.not_judged.is_empty()
            && self.unread.is_empty()
            && self.open.is_empty()
            && self.incomplete.is_empty()
    }

    /// The errors and warnings.
    fn found(&self) -> impl Iterator<Item = (Severity, &Located)> {
        self.findings
            .iter()
            .filter_map(|located| Some((Severity::of(located.finding.action)?, located)))
    }

    /// The errors and warnings that people see: those that are not in an earlier report.
    pub fn reported(&self) -> impl Iterator<Item = (Severity, &Located)> {
        self.found().filter(|(_, located)| located.is_new != Some(false))
    }

    /// The stuck volumes that are not in an earlier report.
    fn stuck_now(&self) -> impl Iterator<Item = &Stuck> {
        self.stuck.iter().filter(|stuck| stuck.is_new != Some(false))
    }

    /// The suppressed findings, with their reasons.
    fn suppressed(&self) -> impl Iterator<Item = (&Suppressed, &Located)> {
        self.findings
            .iter()
            .filter_map(|located| Some((located.finding.suppressed.as_ref()?, located)))
    }
}

#[cfg(test)]
#[path = "../../../tests/printed/mod.rs"]
mod printed;
#[cfg(test)]
mod tests;
