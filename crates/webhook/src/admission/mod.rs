//! Turns the bytes of an AdmissionReview into the bytes of its answer.
//!
//! The fields of a review are found as they are written. Then its objects are read as their kind,
//! straight into the facts that decide. An object becomes a tree only if serde refuses it, or for a
//! repair.

mod document;
mod fields;
mod request;
mod response;

pub use request::{MalformedReview, Operation};

use std::sync::OnceLock;

use jiff::Timestamp;
use serde_json::Value;
use serde_json::value::RawValue;

use engine::model::Text;
use engine::model::object::{Object, ObjectKind, ObjectRef};
use engine::model::uid::Uid;
use engine::model::workload::WorkloadKind;
use engine::policy::Action;
use engine::rules::Outcome;
use engine::snapshot::View;
use engine::verdict::{self, EffectivePolicy, Finding, Mode, Review, Verdict};
use request::Request;
use response::{AuditAnnotations, Response};

/// [`Answer::kind`] for kinds that are not judged.
pub const OTHER_KIND: &str = "other";

engine::words! {
    /// The path of a review. An API server calls the mutating webhook before the validating one.
    Endpoint {
        /// The mutating webhook.
        Mutate = "mutate",
        /// The validating webhook.
        Validate = "validate",
    }
}

engine::words! {
    /// The decision on a review, for metrics and logs.
    Decision {
        /// The object passed without a warning.
        Allowed = "allowed",
        /// The object passed with a warning.
        Warned = "warned",
        /// The object passed with a patch.
        Patched = "patched",
        /// The object was refused.
        Denied = "denied",
        /// The object was not judged because it could not be read.
        Unreadable = "unreadable",
    }
}

/// The answer to one review.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// An AdmissionReview with a response, as JSON.
    pub body: Vec<u8>,
    /// The kind of object that was reviewed, or [`OTHER_KIND`].
    pub kind: &'static str,
    /// The operation on the object.
    pub operation: Operation,
    /// Whether nothing will be stored.
    pub dry_run: bool,
    /// The decision on the object.
    pub decision: Decision,
    /// The rule and the action of each finding.
    pub findings: Vec<(&'static str, Action)>,
    /// Whether the object was too complex to judge.
    pub too_complex: bool,
}

/// An object that is about to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submitted {
    /// Its kind; for a Scale, the kind of the workload that it scales.
    pub kind: ObjectKind,
    /// Its namespace.
    pub namespace: Text,
    /// Its name.
    pub name: Text,
    /// Its uid, which distinguishes objects of one name; a new object has none at the mutating
    /// webhook.
    pub uid: Uid,
}

/// An update of a workload.
pub struct Update<'a> {
    /// The kind of workload.
    pub kind: WorkloadKind,
    /// Its namespace.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
    /// The workload, as JSON.
    pub object: &'a RawValue,
    /// The workload before the update.
    pub old_object: &'a RawValue,
}

/// A review that has been read and can be judged.
///
/// Judging and answering are two steps, because a view may turn out to lack a fact that is worth a
/// second judgement.
pub struct Received<'a> {
    request: Request<'a>,
    reference: ObjectRef,
    received: Timestamp,
    /// The fields of the object that a remedy reads.
    tree: OnceLock<Option<Value>>,
}

impl<'a> Received<'a> {
    /// Reads the bytes of an AdmissionReview that was received at this time.
    ///
    /// # Errors
    /// Fails if the bytes are not an AdmissionReview that can be answered with a uid.
    pub fn read(body: &'a [u8], received: Timestamp) -> Result<Self, MalformedReview> {
        let request = Request::read(body)?;
        Ok(Self { reference: request.reference(), request, received, tree: OnceLock::new() })
    }

    /// Judges the object. If there is none to judge, nothing is found.
    pub fn judge(
        &self,
        endpoint: Endpoint,
        view: View<'_>,
        effective: &EffectivePolicy,
    ) -> Verdict {
        self.judge_by(None, endpoint, view, effective)
    }

    /// Judges the object only by the rule with this code; `None` for all rules.
    pub fn judge_by(
        &self,
        rule: Option<&'static str>,
        endpoint: Endpoint,
        view: View<'_>,
        effective: &EffectivePolicy,
    ) -> Verdict {
        let Some(object) = self.request.to_judge() else {
            return Verdict::default();
        };
        let review = Review {
            object,
            old: self.request.old_object.as_deref(),
            reference: &self.reference,
            scaled: self.request.target.scaled,
            document: self,
            mode: match endpoint {
                Endpoint::Mutate => Mode::Admit,
                Endpoint::Validate => Mode::Judge,
            },
        };
        verdict::evaluate_by(rule, &review, view, effective)
    }

    /// The answer to the review, given the verdict of [`Self::judge`]. It is logged unless the
    /// object is allowed without suppressions or overrides.
    pub fn answer(&self, endpoint: Endpoint, verdict: &Verdict) -> Answer {
        let request = &self.request;
        let (decision, response) = match &request.problem {
            Some(problem) => {
                tracing::warn!(uid = %request.uid, %problem, "A review could not be read.");
                (Decision::Unreadable, Response::unreadable(&request.uid, problem))
            }
            None => answer(endpoint, request, verdict),
        };
        let answer = Answer {
            body: response.to_bytes(),
            kind: request.target.kind.map_or(OTHER_KIND, ObjectKind::name),
            operation: request.operation,
            dry_run: request.dry_run,
            decision,
            findings: verdict
                .findings
                .iter()
                .map(|finding| (finding.rule, finding.action))
                .collect(),
            too_complex: verdict.too_complex,
        };
        let is_quiet = matches!(decision, Decision::Allowed | Decision::Unreadable);
        let annotations = &response.audit_annotations;
        if !is_quiet || !annotations.is_empty() {
            self.log(endpoint, &answer, annotations);
        }
        answer
    }

    /// The object that will be stored if it passes. `None` in a dry run, and for an object whose
    /// name the API server has yet to generate.
    pub fn submitted(&self) -> Option<Submitted> {
        let request = &self.request;
        let judged = request.to_judge().filter(|_| !request.dry_run)?;
        let metadata = judged.metadata();
        if metadata.name.is_empty() {
            return None;
        }
        let scaled = request.target.scaled.map(ObjectKind::Workload);
        Some(Submitted {
            kind: scaled.or(request.target.kind)?,
            namespace: metadata.namespace.clone(),
            name: metadata.name.clone(),
            uid: metadata.uid,
        })
    }

    /// The object's name, for messages.
    pub const fn reference(&self) -> &ObjectRef {
        &self.reference
    }

    /// The namespace of the object.
    pub fn namespace(&self) -> &str {
        &self.request.namespace
    }

    /// The user who sent the request.
    pub fn user(&self) -> &str {
        &self.request.user
    }

    /// The update of a workload, as it was received.
    pub fn update(&self) -> Option<Update<'_>> {
        let request = &self.request;
        let is_update = request.operation == Operation::Update;
        let kind = request.target.workload().filter(|_| is_update)?;
        let [object, old_object] = request.documents;
        Some(Update {
            kind,
            namespace: &request.namespace,
            name: &request.name,
            object: object?,
            old_object: old_object?,
        })
    }

    fn log(&self, endpoint: Endpoint, answer: &Answer, annotations: &AuditAnnotations) {
        let rules: Vec<&str> = answer.findings.iter().map(|(rule, _)| *rule).collect();
        tracing::info!(
            uid = %self.request.uid,
            object = %self.reference,
            operation = answer.operation.name(),
            endpoint = endpoint.name(),
            decision = answer.decision.name(),
            dry_run = answer.dry_run,
            rules = %rules.join(","),
            user = %self.request.user,
            suppressed = annotations.suppressed,
            lowered = annotations.lowered,
            "reviewed"
        );
    }
}

impl Request<'_> {
    /// The object to judge, if there is one. Deletions are judged for Nodes and VolumeAttachments
    /// only; connections are not judged.
    fn to_judge(&self) -> Option<&Object> {
        match self.operation {
            Operation::Create | Operation::Update => self.object.as_deref(),
            Operation::Delete => self
                .old_object
                .as_deref()
                .filter(|object| matches!(object, Object::Node(_) | Object::VolumeAttachment(_))),
            Operation::Connect | Operation::Unknown => None,
        }
    }
}

fn answer<'a>(
    endpoint: Endpoint,
    request: &'a Request<'_>,
    verdict: &Verdict,
) -> (Decision, Response<'a>) {
    let reported = |action| verdict.with(action).filter(move |finding| reports(endpoint, finding));
    let denied: Vec<&Finding> = reported(Action::Deny).collect();
    let mut response = Response::allowed(&request.uid, &verdict.findings);
    if denied.is_empty() {
        response.warnings.extend(reported(Action::Fix).map(Finding::warning));
    } else {
        response.deny(&denied);
    }
    response.warnings.extend(reported(Action::Warn).map(Finding::warning));
    // Both endpoints send the notices: policies in the API server may refuse the object before the
    // validating webhook is called, and the API server passes on equal sentences only once.
    response.warnings.extend_from_slice(&verdict.notices);
    let decision = match &verdict.patch {
        _ if !denied.is_empty() => Decision::Denied,
        Some(patch) => {
            response.patch(patch);
            Decision::Patched
        }
        None if response.warnings.is_empty() => Decision::Allowed,
        None => Decision::Warned,
    };
    (decision, response)
}

/// Whether the answer at this endpoint reports any finding of the verdict.
pub fn is_reported(endpoint: Endpoint, verdict: &Verdict) -> bool {
    verdict.findings.iter().any(|finding| reports(endpoint, finding))
}

/// Whether the answer at this endpoint reports the finding. Other webhooks may still change the
/// object after the mutating one, so the validating one denies and warns. But an object that the API
/// server itself would refuse in between never gets there, so the mutating one denies that.
fn reports(endpoint: Endpoint, finding: &Finding) -> bool {
    match finding.action {
        Action::Deny => endpoint == Endpoint::Validate || finding.outcome == Outcome::Refused,
        Action::Fix => true,
        Action::Warn => endpoint == Endpoint::Validate,
        Action::Ignore => false,
    }
}
