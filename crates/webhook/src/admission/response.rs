//! Writes the answer to an AdmissionReview.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use json_patch::Patch;
use serde::Serialize;

use super::request::API_VERSION;
use engine::policy::Suppressed;
use engine::verdict::{Finding, shortened};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Review<'a> {
    api_version: &'static str,
    kind: &'static str,
    response: &'a Response<'a>,
}

/// The `response` of an AdmissionReview.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Response<'a> {
    uid: &'a str,
    allowed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Status>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) warnings: Vec<String>,
    #[serde(skip_serializing_if = "AuditAnnotations::is_empty")]
    pub(super) audit_annotations: AuditAnnotations,
}

/// Audit annotations, which the API server logs under the webhook's name.
#[derive(Default, Serialize)]
pub(super) struct AuditAnnotations {
    /// The full reasons for the denial; the message to the user is short.
    #[serde(skip_serializing_if = "String::is_empty")]
    denied: String,
    /// The suppressed findings: `RULE (REASON)`, several joined by `; `.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) suppressed: String,
    /// The findings that an annotation or an owner lowers to a warning, in the same form.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) lowered: String,
}

impl AuditAnnotations {
    pub(super) const fn is_empty(&self) -> bool {
        self.denied.is_empty() && self.suppressed.is_empty() && self.lowered.is_empty()
    }
}

fn reasons(findings: &[Finding], of: impl Fn(&Finding) -> Option<&Suppressed>) -> String {
    findings
        .iter()
        .filter_map(|finding| Some(format!("{} ({})", finding.rule, of(finding)?)))
        .collect::<Vec<_>>()
        .join("; ")
}

#[derive(Serialize)]
struct Status {
    code: u16,
    reason: &'static str,
    message: String,
}

impl<'a> Response<'a> {
    /// An answer that lets the object pass.
    pub(super) fn allowed(uid: &'a str, findings: &[Finding]) -> Self {
        Self {
            uid,
            allowed: true,
            audit_annotations: AuditAnnotations {
                denied: String::new(),
                suppressed: reasons(findings, |finding| finding.suppressed.as_ref()),
                lowered: reasons(findings, |finding| finding.lowered.as_ref()),
            },
            ..Self::default()
        }
    }

    /// The answer to a review that could not be read: the object passes with a warning. A guard
    /// that denied everything that it does not understand would stop a whole cluster.
    pub(super) fn unreadable(uid: &'a str, problem: &str) -> Self {
        let mut response = Self::allowed(uid, &[]);
        response.warnings.push(shortened(&format!("multi-attach-guard: {problem}")));
        response
    }

    /// Refuses the object, with every reason at once: the first in full, each further one on a
    /// line. The audit log gets all of them in full.
    pub(super) fn deny(&mut self, findings: &[&Finding]) {
        let first = findings.iter().take(1).map(|finding| finding.denial.clone());
        let further =
            findings.iter().skip(1).map(|finding| format!("\nAlso {}", finding.warning()));
        let messages: Vec<&str> = findings.iter().map(|finding| finding.message.as_str()).collect();
        self.audit_annotations.denied = messages.join("\n");
        self.allowed = false;
        self.status = Some(Status {
            code: 403,
            reason: "Forbidden",
            message: first.chain(further).collect(),
        });
    }

    /// Adds a patch, which changes the object.
    pub(super) fn patch(&mut self, patch: &Patch) {
        // A patch is plain data; it can always be written.
        if let Ok(json) = serde_json::to_vec(patch) {
            self.patch_type = Some("JSONPatch");
            self.patch = Some(STANDARD.encode(json));
        }
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let message = self.status.as_ref().map_or(0, |status| status.message.len());
        let patch = self.patch.as_ref().map_or(0, String::len);
        let mut bytes = Vec::with_capacity(512 + message + patch);
        let review = Review { api_version: API_VERSION, kind: "AdmissionReview", response: self };
        // Writing plain data to memory cannot fail.
        let written = serde_json::to_writer(&mut bytes, &review);
        debug_assert!(written.is_ok());
        bytes
    }
}
