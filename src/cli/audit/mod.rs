//! `audit`: what is already in a cluster.
//!
//! ```text
//! cluster ─▶ objects ─▶ judge ─▶ those at fault in full ─▶ their remedies ─▶ report
//! ```

mod earlier;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use rayon::prelude::*;
use serde_json::Value;

use super::cluster::{ClusterError, Connection};
use super::hunk;
use super::output::{FailOn, exit_code, print_report};
use super::policies::Installed;
use super::policy_file::{self, PolicyFileError};
use crate::report::{self, Format, JudgedObject, Located, Notice, Report};
use earlier::{Earlier, EarlierError};
use engine::model::Text;
use engine::model::object::{Object, ObjectKind, ObjectRef};
use engine::policy::Action;
use engine::snapshot::{BatchOrder, Overlay, Snapshot, StoredObject, View};
use engine::verdict::{Document, EffectivePolicy, Mode, Review, Verdict, evaluate};
use manifest::split::parts;

/// The options of `audit`.
#[derive(Args, Clone, Debug)]
pub struct AuditOptions {
    /// Context of the kubeconfig
    #[arg(long, value_name = "CONTEXT")]
    pub context: Option<String>,

    /// Judge only this namespace (facts come from all of them)
    #[arg(long, short, value_name = "NAMESPACE")]
    pub namespace: Option<String>,

    /// Policy file [default: the built-in policy]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,

    /// Print only the numbers, in the formats for people
    #[arg(long)]
    pub summary: bool,

    /// Report only what is not in this earlier `audit --format json`
    #[arg(long, value_name = "EARLIER.json")]
    pub compare: Option<PathBuf>,

    /// Mildest finding that fails the audit
    #[arg(long, value_enum, default_value_t = FailOn::Deny)]
    pub fail_on: FailOn,

    /// Exit with 0 whatever is found
    #[arg(long, conflicts_with = "fail_on")]
    pub exit_zero: bool,
}

/// Why an audit failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
enum AuditError {
    /// The policy cannot be used.
    #[error(transparent)]
    Policy(#[from] PolicyFileError),
    /// The cluster cannot be read.
    #[error(transparent)]
    Snapshot(#[from] ClusterError),
    /// There is no such namespace.
    #[error(
        "The cluster has no namespace \"{0}\". `kubectl get namespaces` lists the ones there are."
    )]
    Namespace(String),
    /// The earlier report cannot be used.
    #[error(transparent)]
    Earlier(#[from] EarlierError),
    /// Standard output cannot be written.
    #[error("The report could not be written: {0}.")]
    Write(#[from] io::Error),
}

pub(super) fn run(options: &AuditOptions) -> ExitCode {
    exit_code(audit(options), |error| match error {
        AuditError::Write(error) => Some(error),
        _ => None,
    })
}

fn audit(options: &AuditOptions) -> Result<u8, AuditError> {
    let effective = policy_file::effective(options.config.as_deref())?;
    // Read first: a mistake in it should not cost the reading of a large cluster.
    let earlier = options.compare.as_deref().map(Earlier::read).transpose()?;
    let connection = Connection::open(options.context.as_deref())?;
    let cluster = connection.read(|_| true)?;
    if let Some(name) = &options.namespace
        && cluster.view().namespace(name).found().is_none()
    {
        return Err(AuditError::Namespace(name.clone()));
    }
    let audited = Audited::new(&cluster, options.namespace.as_deref());
    let mut entries = audited.judge(&effective);
    audited.complete(&mut entries, &connection, &effective)?;
    let mut report = audited.report(entries, options.format);
    if let Some(Installed::Otherwise(text)) = connection.installed_policies() {
        report.notices.push(Notice {
            object: None,
            place: None,
            text,
        });
        report.summary.notices += 1;
    }
    report.hints = hints(&report);
    if let Some(earlier) = earlier {
        earlier.compare(&mut report);
    }
    for located in report.findings.iter().filter(|it| it.is_new != Some(false)) {
        report.summary.count(&located.finding);
    }
    print_report(&report, options.format, options.summary)?;
    Ok(u8::from(
        options.fail_on.fails(&report.summary) && !options.exit_zero,
    ))
}

/// An object that is judged.
struct Member {
    kind: ObjectKind,
    object: Object,
    reference: ObjectRef,
}

/// The objects of a cluster that are judged, in the order of their turns.
struct Audited<'c> {
    cluster: &'c Snapshot,
    members: Vec<Member>,
    order: BatchOrder,
}

/// An object at fault, by its number.
struct AuditEntry {
    number: usize,
    verdict: Verdict,
    document: Option<Value>,
}

impl<'c> Audited<'c> {
    fn new(cluster: &'c Snapshot, namespace: Option<&str>) -> Self {
        let mut members: Vec<Member> = cluster
            .objects()
            .filter_map(Member::of)
            .filter(|member| {
                namespace.is_none() || member.reference.namespace.as_deref() == namespace
            })
            .collect();
        members.sort_by_cached_key(|member| {
            let reference = &member.reference;
            (
                reference.namespace.clone(),
                reference.kind.clone(),
                reference.name.clone(),
            )
        });
        let order = BatchOrder::of(members.iter().map(|member| &member.object).enumerate());
        Self {
            cluster,
            members,
            order,
        }
    }

    fn verdict(
        &self,
        number: usize,
        document: Option<&Value>,
        effective: &EffectivePolicy,
    ) -> Verdict {
        let member = &self.members[number];
        let review = Review {
            object: &member.object,
            old: None,
            reference: &member.reference,
            scaled: None,
            document: &Live(document),
            mode: Mode::Propose,
        };
        let overlay = Overlay {
            batch: Some((&self.order, number)),
            ..Overlay::NOTHING
        };
        evaluate(&review, View::new(self.cluster, &overlay), effective)
    }

    /// The findings without remedies: patches need whole objects.
    fn judge(&self, effective: &EffectivePolicy) -> Vec<AuditEntry> {
        (0..self.members.len())
            .into_par_iter()
            .map(|number| AuditEntry {
                number,
                verdict: self.verdict(number, None, effective),
                document: None,
            })
            .filter(|entry| !entry.verdict.findings.is_empty() || !entry.verdict.notices.is_empty())
            .collect()
    }

    /// Judges once more those workloads that are at fault, with their documents. One
    /// that is gone by now keeps what was found.
    fn complete(
        &self,
        entries: &mut [AuditEntry],
        connection: &Connection,
        effective: &EffectivePolicy,
    ) -> Result<(), AuditError> {
        let mut at_fault: Vec<&mut AuditEntry> = entries
            .iter_mut()
            .filter(|entry| {
                entry.verdict.action() != Action::Ignore
                    && matches!(self.members[entry.number].object, Object::Workload(_))
            })
            .collect();
        let wanted: Vec<(ObjectKind, ObjectRef)> = at_fault
            .iter()
            .map(|entry| &self.members[entry.number])
            .map(|member| (member.kind, member.reference.clone()))
            .collect();
        let documents = connection.documents(&wanted)?;
        for (entry, document) in at_fault.iter_mut().zip(documents) {
            if let Some(document) = document {
                entry.verdict = self.verdict(entry.number, Some(&document), effective);
                entry.document = Some(document);
            }
        }
        Ok(())
    }

    /// By namespace, those with the most and gravest findings first.
    fn report(&self, entries: Vec<AuditEntry>, format: Format) -> Report {
        let mut report = Report::default();
        report.summary.cluster = true;
        report.summary.judged = self.members.len();
        report.summary.facts = self.cluster.objects().count() - self.members.len();
        for entry in entries {
            let member = &self.members[entry.number];
            for finding in entry.verdict.findings {
                let mut located = Located::new(finding, None);
                if format == Format::Html {
                    let namespace = member.reference.namespace.as_deref().unwrap_or_default();
                    let volumes = &located.finding.volumes;
                    located.users = report::users(self.cluster.view(), namespace, volumes);
                    located.fix = entry.document.as_ref().and_then(|document| {
                        let text = serde_saphyr::to_string(&own_part(document)).ok()?;
                        hunk::of(
                            parts(&text).first()?,
                            &[],
                            located.finding.remedies.first()?,
                        )
                    });
                }
                report.findings.push(located);
            }
            report
                .notices
                .extend(entry.verdict.notices.into_iter().map(|text| Notice {
                    object: Some(member.reference.clone()),
                    place: None,
                    text,
                }));
        }
        report.summary.notices = report.notices.len();
        if format == Format::Junit {
            report.judged = self.members.iter().map(Member::judged).collect();
        }
        let worst = by_namespace(&report);
        report.findings.sort_by_cached_key(|located| {
            let finding = &located.finding;
            let namespace = finding.object.namespace.clone().unwrap_or_default();
            (
                worst.get(&namespace).copied(),
                namespace,
                finding.action,
                finding.object.to_string(),
            )
        });
        report
    }
}

impl Member {
    fn of(stored: &StoredObject) -> Option<Self> {
        let object = match stored {
            StoredObject::Workload(it) => Object::Workload((**it).clone()),
            StoredObject::Claim(it) => Object::Claim((**it).clone()),
            StoredObject::Autoscaler(it) => Object::Autoscaler((**it).clone()),
            _ => return None,
        };
        let metadata = object.metadata()?;
        let kind = stored.kind();
        let reference = kind.reference(&metadata.namespace, &metadata.name);
        Some(Self {
            kind,
            object,
            reference,
        })
    }

    fn judged(&self) -> JudgedObject {
        JudgedObject {
            object: self.reference.clone(),
            file: None,
        }
    }
}

/// An object as it is in the cluster, if it was fetched.
struct Live<'d>(Option<&'d Value>);

impl Document for Live<'_> {
    fn object(&self) -> Option<&Value> {
        self.0
    }

    fn changes_template(&self) -> bool {
        true
    }
}

/// The part of a document that somebody wrote: nothing that the cluster added.
fn own_part(document: &Value) -> Value {
    let mut own = document.clone();
    if let Some(fields) = own.as_object_mut() {
        fields.remove("status");
    }
    if let Some(metadata) = own["metadata"].as_object_mut() {
        for added in [
            "creationTimestamp",
            "generation",
            "managedFields",
            "resourceVersion",
            "uid",
        ] {
            metadata.remove(added);
        }
        if let Some(annotations) = metadata
            .get_mut("annotations")
            .and_then(Value::as_object_mut)
        {
            annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
        }
    }
    own
}

/// For each namespace, how many errors and warnings there are, such that the worst is
/// the least.
fn by_namespace(report: &Report) -> BTreeMap<Text, (Reverse<usize>, Reverse<usize>)> {
    let mut namespaces: BTreeMap<Text, (Reverse<usize>, Reverse<usize>)> = BTreeMap::new();
    for located in &report.findings {
        let namespace = located.finding.object.namespace.clone().unwrap_or_default();
        match located.finding.action {
            Action::Deny | Action::Fix => namespaces.entry(namespace).or_default().0.0 += 1,
            Action::Warn => namespaces.entry(namespace).or_default().1.0 += 1,
            Action::Ignore => {}
        }
    }
    namespaces
}

/// What a reader may want to know next.
fn hints(report: &Report) -> Vec<String> {
    let mut worst: Vec<_> = by_namespace(report).into_iter().collect();
    let Some(rule) = report.findings.first().map(|located| located.finding.rule) else {
        return Vec::new();
    };
    worst.sort_by_key(|(_, worst)| *worst);
    let counted: Vec<String> = worst
        .iter()
        .map(|(namespace, (errors, warnings))| {
            format!("{namespace}: {}", report::severities(errors.0, warnings.0))
        })
        .collect();
    let mut hints = Vec::new();
    if !counted.is_empty() {
        hints.push(format!(
            "By namespace, worst first: {}.",
            counted.join("; ")
        ));
    }
    hints.push(format!(
        "`multi-attach-guard rules {rule}` explains a rule."
    ));
    hints
}

#[cfg(test)]
mod tests;
