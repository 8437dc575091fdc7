//! `check`: judges manifests before any cluster sees them.
//!
//! ```text
//! paths ─▶ render ─▶ check::Reading ─▶ check::Parsed ─▶ report
//! ```
//!
//! `--fix` writes the files, then runs the same steps again.

mod chart_values;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use jiff::Timestamp;

use super::cluster::ClusterArgs;
use super::completion;
use super::error::CommandError;
use super::output::{ReportArgs, complain, write_report};
use ::check::{Edits, Hints, Parsed, parse, unused_exemptions};
use chart_values::Charts;
use doctor::diagnosis::command;
use engine::policy::RemedyChoice;
use engine::snapshot::Snapshot;
use engine::verdict::EffectivePolicy;
use files::{ReadError, replace};
use manifest::find::Exclude;
use manifest::source::STDIN;
use render::{
    FetchOptions, Input, Kustomizations, Paths, RenderOptions, Repository, is_interrupted,
};
use report::{Format, Report, safe};
use source::facts;
use source::policy_file::{self, PolicyFileError};

/// The exit code after an interrupt, as a shell reports it.
const INTERRUPTED: u8 = 130;

/// The options of `check`.
#[derive(Args, Clone, Debug)]
pub(crate) struct CheckOptions {
    /// Files and directories to check; "-" reads standard input [default: .]
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,

    /// The same as PATH, as in kubectl (repeatable)
    #[arg(long, short = 'f', value_name = "PATH")]
    pub filename: Vec<PathBuf>,

    /// Skip matching paths, as a .gitignore does (repeatable)
    #[arg(long, value_name = "GLOB")]
    pub exclude: Vec<String>,

    /// How charts and kustomizations are rendered.
    #[command(flatten)]
    pub render: RenderOptions,

    /// Whether charts that are elsewhere are fetched.
    #[command(flatten)]
    pub fetch: FetchOptions,

    /// Policy file [default: the nearest .multi-attach-guard.yaml up to the repository's root]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Take facts from the output of `snapshot` (repeatable)
    #[arg(long, value_name = "PATH", conflicts_with_all = ["cluster", "ClusterArgs"])]
    pub facts: Vec<PathBuf>,

    /// Take facts from the cluster
    #[arg(long)]
    pub cluster: bool,

    /// Which cluster, and as whom.
    #[command(flatten)]
    pub access: ClusterArgs,

    /// Namespace of objects that name none [default: the only one around them, else "default"]
    #[arg(long, short, value_name = "NAMESPACE", add = completion::namespaces())]
    pub namespace: Option<String>,

    /// How to report, and what to fail on.
    #[command(flatten)]
    pub report: ReportArgs,

    /// Exit with 2 if there is nothing to judge
    #[arg(long)]
    pub fail_if_no_objects: bool,

    /// Edit the files in place; print the repaired standard input, or a patch for rendered manifests
    #[arg(long)]
    pub fix: bool,

    /// Print what --fix would change
    #[arg(long, conflicts_with = "fix")]
    pub diff: bool,

    /// Remedy for --fix and --diff: auto, drop-leftover, colocate, or recreate or zero-surge, which also repair guesses
    #[arg(long, value_name = "REMEDY", add = completion::words(RemedyChoice::ALL.map(RemedyChoice::name)), value_parser = remedy)]
    pub remedy: Option<RemedyChoice>,
}

impl CheckOptions {
    /// The options with all paths in one place, and whether one was named.
    fn with_all_paths(&self) -> (Self, bool) {
        let mut options = self.clone();
        options.paths.append(&mut options.filename);
        let is_named = !options.paths.is_empty();
        if !is_named {
            options.paths.push(PathBuf::from("."));
        }
        (options, is_named)
    }

    /// Whether facts come from a cluster, because of `--cluster` or a flag that names one.
    pub(super) const fn reads_cluster(&self) -> bool {
        self.cluster || self.access.is_given()
    }

    /// Whether files are edited, or the changes to them are printed.
    const fn edits(&self) -> bool {
        self.fix || self.diff
    }

    /// Whether the repaired text of standard input is the output.
    fn is_filter(&self) -> bool {
        self.fix && self.paths.iter().any(|path| path.as_os_str() == STDIN)
    }
}

fn remedy(name: &str) -> Result<RemedyChoice, String> {
    RemedyChoice::from_name(name).ok_or_else(|| {
        let names = RemedyChoice::ALL.map(RemedyChoice::name);
        format!("there is no such remedy; there are {}", names.join(", "))
    })
}

/// Runs the command, and returns the exit code of the program.
pub(super) fn run(options: &CheckOptions) -> Result<u8, CommandError> {
    let (options, is_named) = &options.with_all_paths();
    let repository = Repository::around_here();
    let policy = policy(options, &repository)?;
    let effective = policy_file::effective(policy.as_deref())?;
    let earlier = options.report.earlier()?;
    let exclude = Exclude::new(options.exclude.iter().map(String::as_str))?;
    let render = RenderOptions { verbose: options.report.verbose, ..options.render.clone() };
    let facts = facts(options)?;
    let input = Input {
        paths: &options.paths,
        exclude: &exclude,
        namespace: options.namespace.as_deref(),
        render: &render,
        fetch: &options.fetch,
        repository: &repository,
        say: |sentence| complain(&sentence),
    };
    let mut paths = Paths::find(input);
    let read = |from: &Paths<'_>, kustomizations, known| {
        from.read(kustomizations)
            .map_err(CommandError::Render)
            .map(|reading| parse(reading, known, Timestamp::now()))
    };
    if let Some(policy) = policy.as_ref().filter(|_| options.config.is_none()) {
        complain(&format!("The policy is {}.", policy.display()));
    }
    let parsed = if options.edits() {
        // Files that a kustomization uses unchanged can be edited where they stand.
        let in_place = read(&paths, Kustomizations::InPlace, facts)?;
        let edits = edit(options, &in_place, &effective, &repository)?;
        if let Some(stdin) = edits.stdin {
            paths.replace_stdin(stdin);
        }
        let mut parsed = read(&paths, Kustomizations::Rendered, in_place.facts)?;
        parsed.refuse(edits.failed);
        parsed
    } else {
        read(&paths, Kustomizations::Rendered, facts)?
    };
    let mut report = parsed.report(|_, _| true, &effective, &repository, options.report.format);
    report.must_be_complete = options.report.must_be_complete();
    if let Some(file) = policy.filter(|file| covers(&options.paths, file)) {
        let text = fs::read_to_string(&file).unwrap_or_default();
        let unused = unused_exemptions(effective.policy(), &file, &text, &report, &repository);
        report.summary.notices += unused.len();
        report.notices.extend(unused);
    }
    if let Some(earlier) = earlier {
        earlier.compare(&mut report);
    }
    let hints = Hints {
        fix: options.fix,
        diff: options.diff,
        remedy: options.remedy,
        knows_cluster: options.reads_cluster() || !options.facts.is_empty(),
    };
    hints.add_to(&mut report);
    chart_values::add(&mut report, Charts::of(input, &paths, parsed, &effective));
    let code = finish(options, &report);
    if !is_named && report.summary.judged == 0 && is_piped() {
        complain(&"Standard input was not read: `multi-attach-guard check -` reads it.");
    }
    code
}

/// Whether another program's output is piped into this one.
#[cfg(unix)]
fn is_piped() -> bool {
    use std::os::fd::AsFd as _;
    use std::os::unix::fs::FileTypeExt as _;
    let input = io::stdin().as_fd().try_clone_to_owned().map(fs::File::from);
    input.and_then(|input| input.metadata()).is_ok_and(|input| input.file_type().is_fifo())
}

#[cfg(not(unix))]
const fn is_piped() -> bool {
    false
}

/// The policy file that the options name, or the nearest one.
fn policy(
    options: &CheckOptions,
    repository: &Repository,
) -> Result<Option<PathBuf>, PolicyFileError> {
    let policy = options.config.clone().or_else(|| repository.policy_for(&options.paths));
    if let Some(path) = &policy {
        let refused = |source| ReadError { path: path.clone(), source };
        repository.refuse_to_leave(path).map_err(refused)?;
    }
    Ok(policy)
}

/// Edits the files or prints the changes.
fn edit(
    options: &CheckOptions,
    parsed: &Parsed,
    effective: &EffectivePolicy,
    repository: &Repository,
) -> Result<Edits, CommandError> {
    let mut edits = parsed.edits(effective, options.remedy, options.is_filter(), repository);
    if options.diff {
        edits.diff(repository);
    } else {
        write_edits(&mut edits);
    }
    print_edits(options, &edits)?;
    Ok(edits)
}

/// Writes the edited files.
fn write_edits(edits: &mut Edits) {
    for (path, mut edited) in std::mem::take(&mut edits.files) {
        let name = &edited.name;
        if path.components().any(|part| part.as_os_str() == ".git") {
            edits.fail(name, "Git's own files are not edited.".to_owned());
            continue;
        }
        match replace(&path, &edited.after) {
            Ok(lost) => {
                edits.done.append(&mut edited.done);
                edits
                    .done
                    .extend(lost.iter().map(|what| format!("{name}: {what} could not be kept.")));
            }
            Err(error) => edits.fail(name, error.to_string()),
        }
    }
}

/// Whether everything beside the policy and below it is checked.
fn covers(paths: &[PathBuf], policy: &Path) -> bool {
    policy.canonicalize().is_ok_and(|policy| {
        paths
            .iter()
            .filter_map(|path| path.canonicalize().ok())
            .any(|path| path.is_dir() && policy.starts_with(path))
    })
}

/// Facts about the cluster that are not in the manifests.
fn facts(options: &CheckOptions) -> Result<Snapshot, CommandError> {
    if options.reads_cluster() {
        return options.access.connect()?.read(|_| true);
    }
    facts_in_files(&options.facts)
}

/// Facts about the cluster that the files stand for; without any, one about which all is known.
pub(super) fn facts_in_files(paths: &[PathBuf]) -> Result<Snapshot, CommandError> {
    match paths {
        [] => Ok(Snapshot::complete()),
        _ => Ok(facts::load(paths, &mut io::empty())?),
    }
}

/// Prints the repaired text of standard input, or else the edits if the report is for people, to
/// standard output, so that it can be piped on. The report then goes to standard error. A report for
/// programs has standard output for itself.
fn print_edits(options: &CheckOptions, edits: &Edits) -> Result<(), CommandError> {
    for done in &edits.done {
        complain(done);
    }
    if options.is_filter() {
        let text = edits.stdin.as_deref().unwrap_or_default();
        io::stdout().lock().write_all(text.as_bytes())?;
        io::stderr().lock().write_all(edits.output.as_bytes())?;
    } else if is_for_people(options.report.format) {
        io::stdout().lock().write_all(edits.output.as_bytes())?;
    } else {
        io::stderr().lock().write_all(edits.output.as_bytes())?;
    }
    Ok(())
}

/// Whether a report in this format may stand beside other text.
const fn is_for_people(format: Format) -> bool {
    matches!(format, Format::Text | Format::Wide | Format::Concise)
}

fn finish(options: &CheckOptions, report: &Report) -> Result<u8, CommandError> {
    for unread in &report.unread {
        let place = unread.place();
        complain(&format!("{}: {}", safe::line(&place), unread.message));
    }
    options.paths.iter().filter_map(|path| instead(path)).for_each(|advice| complain(&advice));
    if options.is_filter() || (is_for_people(options.report.format) && options.edits()) {
        write_report(report, &options.report, io::stderr().lock())?;
    } else {
        write_report(report, &options.report, io::stdout().lock())?;
    }
    let is_empty = report.summary.judged == 0;
    if is_empty {
        complain(&why_nothing_was_judged(options, report));
    }
    if is_interrupted() {
        complain(&"The run was interrupted: the report covers what was rendered before.");
        return Ok(INTERRUPTED);
    }
    let is_blind = !report.unread.is_empty() || (is_empty && options.fail_if_no_objects);
    Ok(options.report.exit_code(report, is_blind))
}

/// What to do instead with a path that holds no manifest: a URL or a packaged chart.
fn instead(path: &Path) -> Option<String> {
    let text = path.to_string_lossy();
    let is_packaged = [".tgz", ".tar.gz"].iter().any(|ending| text.ends_with(ending));
    let (what, program) = if text.contains("://") && !path.exists() {
        ("Nothing is read from a URL", "curl -fsSL")
    } else if is_packaged {
        ("helm renders a packaged chart", "helm template")
    } else {
        return None;
    };
    let program = command::line(program, &[text]);
    Some(format!("{what}: `{program} | multi-attach-guard check -`."))
}

/// Explains why nothing was judged.
fn why_nothing_was_judged(options: &CheckOptions, report: &Report) -> String {
    let paths: Vec<_> = options.paths.iter().map(|path| path.to_string_lossy()).collect();
    let not_judged = report::not_judged_in_short(report);
    let seen = match report.summary.files + report.summary.rendered {
        _ if !not_judged.is_empty() => not_judged.as_str(),
        0 => "there is no YAML or JSON file",
        _ => "no file holds a workload, a claim or an autoscaler",
    };
    format!("Nothing was judged in {}: {seen}.", paths.join(", "))
}
