//! From the bytes of an AdmissionReview to the bytes of its answer.
//!
//! The review is read once, front to back: the API server writes the object's
//! kind before the object, so the object is read straight into its facts. Only
//! where something was found is the document looked at again.

mod request;
mod response;

use std::sync::Arc;

use arc_swap::ArcSwap;

pub use request::{Malformed, Operation, Request};

use crate::model::cluster::ClusterView;
use crate::model::object::Object;
use crate::policy::Action;
use crate::rules::Outcome;
use crate::verdict::{self, Aim, Finding, Review, Settings, Verdict};
use request::Documents;
use response::Response;

/// What [`Answer::kind`] says of kinds that are not judged.
pub const OTHER_KIND: &str = "other";

/// Which question is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// Whether the object is to be changed.
    Mutate,
    /// Whether the object may pass.
    Validate,
}

/// What was decided, for counting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Passed without a word.
    Allowed,
    /// Passed with a warning.
    Warned,
    /// Passed with a patch.
    Patched,
    /// Refused.
    Denied,
    /// Not judged, as it could not be read.
    Unreadable,
}

/// The answer to one review.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// An AdmissionReview with a response, as JSON.
    pub body: Vec<u8>,
    /// The kind of object that was reviewed, or [`OTHER_KIND`].
    pub kind: &'static str,
    /// What was decided.
    pub decision: Decision,
}

/// Answers reviews with the settings and the view it is given.
pub struct Admission<V> {
    settings: Arc<ArcSwap<Settings>>,
    view: V,
}

impl<V: ClusterView> Admission<V> {
    /// Answers from `view`. The settings may be swapped at any time; a review
    /// uses those it started with.
    pub const fn new(settings: Arc<ArcSwap<Settings>>, view: V) -> Self {
        Self { settings, view }
    }

    /// Answers one review.
    ///
    /// # Errors
    /// When the bytes are no AdmissionReview to which an answer with a uid is
    /// possible.
    pub fn review(&self, endpoint: Endpoint, body: &[u8]) -> Result<Answer, Malformed> {
        let request = Request::read(body)?;
        if let Some(problem) = &request.problem {
            tracing::warn!(uid = %request.uid, %problem, "a review could not be read");
            return Ok(response::unreadable(&request, problem));
        }
        let kind = request.kind.map_or(OTHER_KIND, |kind| kind.name());
        let Some(object) = request.to_judge() else {
            return Ok(Answer {
                body: Response::allowed(&request.uid).to_bytes(),
                kind,
                decision: Decision::Allowed,
            });
        };
        let documents = Documents::new(body);
        let reference = request.reference();
        let review = Review {
            object,
            old: request.old_object.as_ref(),
            reference: &reference,
            scaled: request.scaled,
            raw: &documents,
            aim: match endpoint {
                Endpoint::Mutate => Aim::Admit,
                Endpoint::Validate => Aim::Judge,
            },
        };
        let settings = self.settings.load();
        let verdict = verdict::evaluate(&review, &self.view, &settings);
        let (decision, body) = answer(endpoint, &request, &verdict);
        if decision != Decision::Allowed {
            log(&request, endpoint, decision, &verdict);
        }
        Ok(Answer {
            body,
            kind,
            decision,
        })
    }
}

impl Request<'_> {
    /// The object to judge, where there is one. What is deleted or connected to
    /// is not judged.
    fn to_judge(&self) -> Option<&Object> {
        match self.operation {
            Operation::Create | Operation::Update => self.object.as_ref(),
            Operation::Delete | Operation::Connect | Operation::Unknown => None,
        }
    }
}

fn answer(endpoint: Endpoint, request: &Request<'_>, verdict: &Verdict) -> (Decision, Vec<u8>) {
    if verdict.findings.is_empty() && verdict.notices.is_empty() {
        return (
            Decision::Allowed,
            Response::allowed(&request.uid).to_bytes(),
        );
    }
    let denied: Vec<&Finding> = verdict
        .with(Action::Deny)
        .filter(|finding| decides_here(endpoint, finding))
        .collect();
    let mut response = Response::allowed(&request.uid);
    if !denied.is_empty() {
        response.deny(&denied);
        response.warn_of(verdict.with(Action::Warn), endpoint);
        return (Decision::Denied, response.to_bytes());
    }
    response.warn_of(verdict.with(Action::Fix), endpoint);
    response.warn_of(verdict.with(Action::Warn), endpoint);
    if endpoint == Endpoint::Validate {
        response.notify(&verdict.notices);
    }
    let decision = match &verdict.patch {
        Some(patch) => {
            response.patch(patch);
            Decision::Patched
        }
        None if response.has_warnings() => Decision::Warned,
        None => Decision::Allowed,
    };
    (decision, response.to_bytes())
}

/// Whether a denial is spoken at this endpoint. Other webhooks may still change
/// the object after the mutating one, so it is the validating one that refuses;
/// but what the API server itself would refuse in between never gets there.
fn decides_here(endpoint: Endpoint, finding: &Finding) -> bool {
    endpoint == Endpoint::Validate || finding.outcome == Outcome::Refused
}

fn log(request: &Request<'_>, endpoint: Endpoint, decision: Decision, verdict: &Verdict) {
    let rules: Vec<&str> = verdict
        .findings
        .iter()
        .map(|finding| finding.rule)
        .collect();
    tracing::info!(
        uid = %request.uid,
        object = %request.reference(),
        operation = ?request.operation,
        ?endpoint,
        ?decision,
        dry_run = request.dry_run,
        rules = %rules.join(","),
        "reviewed"
    );
}
