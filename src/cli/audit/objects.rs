//! The objects of a cluster that are judged, and their findings.

use std::collections::HashMap;

use jiff::Timestamp;
use rayon::prelude::*;
use serde_json::Value;

use super::super::cluster::ClusterArgs;
use super::super::error::CommandError;
use super::members::{Live, Member};
use super::one_pod;
use super::owner;
use super::shared_claim::{self, Step};
use check::hunk;
use doctor::diagnosis::command;
use engine::model::ListRoom;
use engine::model::object::{Object, ObjectRef};
use engine::model::volume_attachment::VolumeAttachment;
use engine::policy::Action;
use engine::snapshot::{BatchOrder, Lookup, Overlay, Snapshot, View};
use engine::verdict::{EffectivePolicy, Finding, Mode, Proposal, Review, Verdict, evaluate};
use manifest::split::parts;
use report::{Format, JudgedObject, Located, Notice, Report};

/// The objects of a cluster that are judged.
pub(super) struct Audited<'c> {
    cluster: &'c Snapshot,
    attachments: &'c [VolumeAttachment],
    effective: &'c EffectivePolicy,
    now: Timestamp,
    /// All objects, in the order of their names.
    members: Vec<Member>,
    order: BatchOrder,
    /// Whether the classes could not be read, so that their names must be enough.
    partial: bool,
    /// The numbers of the objects that are reported.
    meant: Vec<usize>,
}

/// An object at fault, by its number.
type AuditEntry = (usize, Verdict);

/// The number of objects whose documents are in memory at once: one may have 1.5 MB, and takes ten
/// times as much when it is read.
const DOCUMENTS_AT_ONCE: usize = 50;

impl<'c> Audited<'c> {
    /// Takes all objects, but reports only the selected ones: whether one is to blame also depends
    /// on its turn among the others.
    pub(super) fn new(
        cluster: &'c Snapshot,
        attachments: &'c [VolumeAttachment],
        effective: &'c EffectivePolicy,
        now: Timestamp,
        is_meant: impl Fn(&ObjectRef) -> bool,
    ) -> Self {
        let mut members: Vec<Member> = cluster.objects().filter_map(Member::from_stored).collect();
        members.sort_by_cached_key(|Member { reference, .. }| {
            (reference.namespace.clone(), reference.to_string())
        });
        let meant = members
            .iter()
            .map(|member| &member.reference)
            .enumerate()
            .filter(|(_, reference)| is_meant(reference));
        Self {
            cluster,
            attachments,
            effective,
            now,
            order: BatchOrder::of(members.iter().map(|member| &member.object).enumerate()),
            partial: cluster.view().default_storage_class() == Lookup::NotSynced,
            meant: meant.map(|(number, _)| number).collect(),
            members,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.meant.is_empty()
    }

    /// Judges the object with this number. Patches need its document.
    fn verdict(&self, number: usize, document: Option<&Value>) -> Verdict {
        let member = &self.members[number];
        let review = Review {
            object: &member.object,
            old: None,
            reference: &member.reference,
            scaled: None,
            document: &Live { document, now: self.now },
            mode: Mode::Propose,
        };
        let overlay = Overlay {
            partial: self.partial,
            batch: Some((&self.order, number)),
            ..Overlay::NOTHING
        };
        evaluate(&review, View::new(self.cluster, &overlay), self.effective)
    }

    /// The findings without remedies: patches need whole objects.
    fn judge(&self) -> Vec<AuditEntry> {
        self.meant
            .par_iter()
            .map(|&number| (number, self.verdict(number, None)))
            .filter(|(_, verdict)| !verdict.findings.is_empty() || !verdict.notices.is_empty())
            .collect()
    }

    /// The first remedy that the guard would let pass as an update of the live object.
    fn repair<'f>(
        &self,
        number: usize,
        finding: &'f Finding,
        document: &Value,
    ) -> Option<&'f Proposal> {
        finding.remedies.iter().find(|proposal| {
            proposal
                .applied_to(document)
                .is_some_and(|repaired| self.may_become(number, [document, &repaired]))
        })
    }

    /// The merge patch to one pod, if the guard would let it pass and it ends the finding.
    fn one_pod(&self, number: usize, finding: &Finding, document: &Value) -> Option<String> {
        let patch = one_pod::patch(finding.rule, &self.members[number].object)?;
        let mut changed = document.clone();
        json_patch::merge(&mut changed, &patch);
        let verdict = self.verdict_on_update(number, [document, &changed])?;
        let ends = verdict.findings.iter().all(|left| left.rule != finding.rule);
        (ends && verdict.action() != Action::Deny).then(|| patch.to_string())
    }

    /// The commands that bring two workloads on one claim to one node, if the guard would let each
    /// pass and they end the finding.
    fn on_one_node(&self, number: usize, finding: &Finding, kubectl: &str) -> Option<String> {
        let Object::Workload(workload) = &self.members[number].object else {
            return None;
        };
        let steps = shared_claim::steps(finding, workload, self.cluster.view(), self.attachments);
        if steps.is_empty() {
            return None;
        }
        let mut cluster = self.cluster.clone();
        let mut commands = Vec::new();
        let mut last = Verdict::default();
        for Step { patch, after } in steps {
            let metadata = after.metadata.clone();
            let view = cluster.view();
            let old = view.workload(after.kind, &metadata.namespace, &metadata.name).found()?;
            let old = Object::Workload(old.clone());
            let object = Object::Workload(after);
            let reference = object.kind().reference(&metadata.namespace, &metadata.name);
            last = self.verdict_of_change([&old, &object], &reference, None, view);
            if last.action() == Action::Deny {
                return None;
            }
            commands.push(patch_command(&reference, "merge", &patch.to_string(), kubectl)?);
            cluster.apply(object);
        }
        let ends = last.findings.iter().all(|left| left.rule != finding.rule);
        ends.then(|| commands.join(" && "))
    }

    /// Whether the guard lets an update of the object with this number pass that turns the first
    /// document into the second.
    fn may_become(&self, number: usize, documents: [&Value; 2]) -> bool {
        let verdict = self.verdict_on_update(number, documents);
        verdict.is_some_and(|verdict| verdict.action() != Action::Deny)
    }

    /// The guard's verdict on that update; `None` if the documents cannot be read.
    fn verdict_on_update(&self, number: usize, [old, new]: [&Value; 2]) -> Option<Verdict> {
        let member = &self.members[number];
        let kind = member.object.kind();
        let read = |document: &Value| kind.read(&document.to_string(), &ListRoom::endless());
        let [Ok(before), Ok(after)] = [old, new].map(read) else {
            return None;
        };
        let view = self.cluster.view();
        Some(self.verdict_of_change([&before, &after], &member.reference, Some(new), view))
    }

    /// The guard's verdict on an update from the first object to the second.
    fn verdict_of_change(
        &self,
        [old, new]: [&Object; 2],
        reference: &ObjectRef,
        document: Option<&Value>,
        view: View<'_>,
    ) -> Verdict {
        let review = Review {
            object: new,
            old: Some(old),
            reference,
            scaled: None,
            document: &Live { document, now: self.now },
            mode: Mode::Judge,
        };
        evaluate(&review, view, self.effective)
    }

    /// The report on the objects. `documents` reads objects in full: those at fault are judged
    /// once more with them, and one that is gone by now keeps its findings.
    pub(super) fn report(
        &self,
        format: Format,
        cluster: &ClusterArgs,
        documents: impl Fn(&[ObjectRef]) -> Result<HashMap<ObjectRef, Value>, CommandError>,
    ) -> Result<Report, CommandError> {
        let mut report = Report::default();
        report.summary.cluster = true;
        report.summary.judged = self.meant.len();
        report.summary.facts = self.cluster.objects().count() - self.members.len();
        let mut entries = self.judge();
        while !entries.is_empty() {
            let batch = ..entries.len().min(DOCUMENTS_AT_ONCE);
            let wanted: Vec<ObjectRef> = entries[batch]
                .iter()
                .filter(|(_, verdict)| verdict.action() != Action::Ignore)
                .map(|(number, _)| self.members[*number].reference.clone())
                .collect();
            let documents = documents(&wanted)?;
            for (number, verdict) in entries.drain(batch) {
                let document = documents.get(&self.members[number].reference);
                let verdict = match document {
                    Some(_) => self.verdict(number, document),
                    None => verdict,
                };
                self.add(&mut report, (number, verdict), document, format, cluster);
            }
        }
        report.summary.notices = report.notices.len();
        if format == Format::Junit {
            let judged = self.meant.iter().map(|&number| JudgedObject {
                object: self.members[number].reference.clone(),
                file: None,
            });
            report.judged = judged.collect();
        }
        Ok(report)
    }

    /// Adds the verdict on the object with this number to the report.
    fn add(
        &self,
        report: &mut Report,
        (number, verdict): AuditEntry,
        document: Option<&Value>,
        format: Format,
        cluster: &ClusterArgs,
    ) {
        let (kubectl, helm) = (cluster.kubectl(), cluster.helm());
        let member = &self.members[number];
        let mut notices = verdict.notices;
        for finding in verdict.findings {
            if let Object::Workload(workload) = &member.object
                && let Some(notice) = finding.advised_delay(workload)
            {
                notices.push(notice);
                continue;
            }
            let mut located = Located::new(finding, None);
            let repair =
                document.and_then(|document| self.repair(number, &located.finding, document));
            located.owner =
                document.and_then(|document| owner::writer(document, &member.reference, &helm));
            let found = &located.finding;
            located.command = match repair {
                Some(proposal) => serde_json::to_string(&proposal.patch)
                    .ok()
                    .and_then(|patch| patch_command(&found.object, "json", &patch, &kubectl)),
                None => document
                    .and_then(|document| self.one_pod(number, found, document))
                    .and_then(|patch| patch_command(&found.object, "merge", &patch, &kubectl))
                    .or_else(|| self.on_one_node(number, found, &kubectl)),
            };
            if format == Format::Html {
                let namespace = member.reference.namespace.as_deref().unwrap_or_default();
                let volumes = &located.finding.volumes;
                located.users = report::users(self.cluster.view(), namespace, volumes);
                located.fix = document.and_then(|document| {
                    let text = serde_saphyr::to_string(&own_part(document)).ok()?;
                    hunk::of(parts(&text).first()?, &[], repair?)
                });
            }
            report.findings.push(located);
        }
        report.notices.extend(notices.into_iter().map(|text| Notice {
            object: Some(member.reference.clone()),
            place: None,
            text,
        }));
    }
}

/// The command that applies a patch of that type to the object.
fn patch_command(object: &ObjectRef, r#type: &str, patch: &str, kubectl: &str) -> Option<String> {
    let namespace = object.namespace.as_deref()?;
    let object = format!("{}/{}", object.kind.to_lowercase(), object.name);
    let r#type = format!("--type={type}");
    let arguments = ["-n", namespace, "patch", &object, &r#type, "-p", patch];
    Some(command::line(kubectl, &arguments))
}

/// The fields that the cluster or kubectl adds, each with the path of its parent.
const ADDED: [(&str, &str); 7] = [
    ("", "status"),
    ("/metadata", "creationTimestamp"),
    ("/metadata", "generation"),
    ("/metadata", "managedFields"),
    ("/metadata", "resourceVersion"),
    ("/metadata", "uid"),
    ("/metadata/annotations", "kubectl.kubernetes.io/last-applied-configuration"),
];

/// The part of a document that somebody wrote, without the fields that were added.
pub(super) fn own_part(document: &Value) -> Value {
    let mut own = document.clone();
    for (parent, field) in ADDED {
        if let Some(fields) = own.pointer_mut(parent).and_then(Value::as_object_mut) {
            fields.remove(field);
        }
    }
    own
}
