//! The measured reviews, and the minimum work to answer them without any facts.

use std::borrow::Cow;

use serde::Deserialize;

const DEPLOYMENT_CREATE: &str = include_str!("../data/deployment-create.json");
const DEPLOYMENT_UPDATE: &str = include_str!("../data/deployment-update.json");
const CLAIM_CREATE: &str = include_str!("../data/claim-create.json");

/// A review and its name in the output.
#[derive(Clone)]
pub(crate) struct Sample {
    pub(crate) name: &'static str,
    pub(crate) body: String,
    /// Whether the guard lets the object pass.
    pub(crate) allowed: bool,
}

/// The first sample is the one for which the goals are set.
pub(crate) fn samples() -> [Sample; 4] {
    let rolling = r#""strategy":{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":"25%","maxSurge":"25%"}}"#;
    let recreate = r#""strategy":{"type":"Recreate"}"#;
    let sample = |name, body: &str, allowed| Sample { name, body: body.to_owned(), allowed };
    [
        sample("create, allowed", DEPLOYMENT_CREATE, true),
        sample("create, denied", &DEPLOYMENT_CREATE.replace(recreate, rolling), false),
        sample("update, allowed", DEPLOYMENT_UPDATE, true),
        sample("claim, allowed", CLAIM_CREATE, true),
    ]
}

#[derive(Deserialize)]
struct Review<'a> {
    #[serde(borrow)]
    request: Request<'a>,
}

#[derive(Deserialize)]
struct Request<'a> {
    #[serde(borrow)]
    uid: Cow<'a, str>,
}

/// The minimum work for an answer: finds the uid and lets the object pass.
pub(crate) fn skim(body: &[u8]) -> Vec<u8> {
    let review: Review<'_> = serde_json::from_slice(body).unwrap();
    format!(
        r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{{"uid":"{}","allowed":true}}}}"#,
        review.request.uid
    )
    .into_bytes()
}
