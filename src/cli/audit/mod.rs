//! `audit`: judges the objects that are already in a cluster.
//!
//! ```text
//! cluster ─▶ objects ─▶ judge ─▶ those at fault in full ─▶ their remedies ─▶ report
//!    └─────▶ pods that wait ─▶ causes, and the way out ────────────────────────▲
//! ```

mod facts;
mod members;
mod objects;
mod one_pod;
mod overrides;
mod owner;
mod shared_claim;

use std::io;
use std::path::PathBuf;

use clap::Args;
use jiff::Timestamp;

use super::cluster::{ClusterArgs, Connection, ScopeArgs, Subject};
use super::error::CommandError;
use super::output::{ReportArgs, write_report};
use super::policies::Installed;
use super::target::TargetError;
use doctor::diagnosis::{CaseEntry, DiagnosisInput, cases};
use engine::model::object::{ObjectKind, ObjectRef};
use engine::model::workload::WorkloadKind;
use engine::verdict::EffectivePolicy;
use objects::Audited;
use report::live::{Origin, Override, Stuck};
use report::{Format, Notice, Report, by_namespace};
use source::one_shot::OneShot;
use source::policy_file;

/// The options of `audit`.
#[derive(Args, Clone, Debug)]
pub(crate) struct AuditOptions {
    /// Name, as web, deploy/web, pvc/data or shop/web [default: everything]
    #[arg(value_name = "WORKLOAD|CLAIM")]
    pub name: Option<String>,

    /// Which cluster, and as whom.
    #[command(flatten)]
    pub cluster: ClusterArgs,

    /// Which part of it.
    #[command(flatten)]
    pub scope: ScopeArgs,

    /// Policy file [default: the built-in policy]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// How to report, and what to fail on.
    #[command(flatten)]
    pub report: ReportArgs,
}

/// Runs the command, and returns the exit code of the program.
pub(super) fn run(options: &AuditOptions) -> Result<u8, CommandError> {
    let effective = policy_file::effective(options.config.as_deref())?;
    let earlier = options.report.earlier()?;
    let subject = options.scope.subject(options.name.as_deref())?;
    let connection = options.cluster.connect()?;
    let one_shot = connection.one_shot(&subject)?;
    let look = Look {
        options,
        connection: &connection,
        effective: &effective,
        now: one_shot.now.unwrap_or_else(Timestamp::now),
        subject: &subject,
    };
    let mut report = look.report(&one_shot)?;
    if let Some(Installed::Otherwise(text)) = connection.installed_policies() {
        report.notices.push(Notice { object: None, place: None, text });
        report.summary.notices += 1;
    }
    report.count();
    if let Some(earlier) = earlier {
        earlier.compare(&mut report);
    }
    report.sort_by_namespace();
    let mut printed = options.report.clone();
    // A user who names an object wants to know all of it.
    printed.verbose |= subject.target.is_some();
    report.must_be_complete = options.report.must_be_complete();
    report.hints = hints(&report, printed.format == Format::Text && !printed.verbose);
    write_report(&report, &printed, io::stdout().lock())?;
    let is_blind = facts::is_blind(&one_shot.observed);
    Ok(options.report.exit_code(&report, is_blind))
}

/// The subject of one audit, and the means for it.
struct Look<'a> {
    options: &'a AuditOptions,
    connection: &'a Connection,
    effective: &'a EffectivePolicy,
    now: Timestamp,
    subject: &'a Subject,
}

impl Look<'_> {
    fn report(&self, one_shot: &OneShot) -> Result<Report, CommandError> {
        let target = self.subject.target.as_ref();
        let (cluster, attachments) = (&one_shot.cluster, &one_shot.observed.attachments);
        let audited = Audited::new(cluster, attachments, self.effective, self.now, |reference| {
            target.is_none_or(|target| target.is_object(reference))
        });
        if let Some(target) = target.filter(|_| audited.is_empty()) {
            return Err(TargetError::Nothing(target.name.clone()).into());
        }
        let documents = |wanted: &[ObjectRef]| self.connection.documents(wanted);
        let format = self.options.report.format;
        let mut report = audited.report(format, &self.options.cluster, documents)?;
        let kubectl = self.options.cluster.kubectl();
        let facts = DiagnosisInput {
            objects: self.effective.facts(one_shot.cluster.view()),
            observed: &one_shot.observed,
            now: self.now,
            kubectl: &kubectl,
        };
        report.stuck = self.stuck(facts)?;
        let remarks = self.subject.remarks(facts);
        report.notices.extend(remarks.map(|text| Notice { object: None, place: None, text }));
        report.summary.notices = report.notices.len();
        report.overrides = self.overrides(one_shot)?;
        report.open = facts::open(&one_shot.observed);
        let name = self.options.cluster.access().cluster_name();
        report.origin = Some(Origin {
            cluster: name.unwrap_or_else(|| self.connection.url()),
            namespace: self.subject.namespace.clone(),
            at: self.now,
        });
        Ok(report)
    }

    /// Pods that wait, with the cause and the way out.
    fn stuck(&self, facts: DiagnosisInput<'_>) -> Result<Vec<Stuck>, CommandError> {
        let mut found = cases(facts, |wanted| {
            // Without the documents, the commands that need them are left out.
            self.connection.documents(wanted).unwrap_or_default()
        });
        if let Some(target) = &self.subject.target {
            found.retain(|case| target.is_about(case));
        }
        let waiting: Vec<_> = found.iter().filter_map(waits).collect();
        let documents = self.connection.documents(&waiting)?;
        let helm = self.options.cluster.helm();
        let stuck = found.into_iter().map(|case| Stuck {
            owner: waits(&case)
                .and_then(|object| owner::writer(documents.get(&object)?, &object, &helm)),
            case,
            is_new: None,
        });
        Ok(stuck.collect())
    }

    /// Objects with an override, and the writer of each override.
    fn overrides(&self, one_shot: &OneShot) -> Result<Vec<Override>, CommandError> {
        let policy = self.effective.policy();
        let mut all = overrides::all(&one_shot.cluster, policy, self.now);
        if let Some(target) = &self.subject.target {
            all.retain(|exception| target.is_object(&exception.object));
        }
        let wanted: Vec<_> = all.iter().map(|exception| exception.object.clone()).collect();
        let documents = self.connection.documents(&wanted)?;
        for exception in &mut all {
            let written = documents.get(&exception.object).and_then(overrides::written);
            if let Some((by, since)) = written {
                (exception.by, exception.since) = (Some(by), since);
            }
        }
        Ok(all)
    }
}

/// The workload of the first pod that waits.
fn waits(case: &CaseEntry) -> Option<ObjectRef> {
    let (kind, name) = case.waiting.first()?.workload.split_once(' ')?;
    let kind = ObjectKind::Workload(WorkloadKind::from_name(kind)?);
    Some(kind.reference(&case.volume.namespace, name))
}

/// Hints at what a reader may want to know next.
fn hints(report: &Report, is_table: bool) -> Vec<String> {
    if !report.findings.iter().any(|located| located.is_new != Some(false)) {
        return Vec::new();
    }
    let mut hints = Vec::new();
    let counted: Vec<String> = by_namespace(report).iter().map(ToString::to_string).collect();
    if !counted.is_empty() {
        hints.push(format!("By namespace, worst first: {}.", counted.join("; ")));
    }
    if is_table {
        hints.push(
            "`audit -o wide` says why and what it costs; `audit NAME` of one object.".to_owned(),
        );
    }
    hints
}

#[cfg(test)]
mod tests;
