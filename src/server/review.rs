//! What the server asks of whoever judges a review.

use axum::body::Bytes;
use axum::http::StatusCode;
use tokio::time::Instant;

/// Which of the two webhooks was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// `POST /mutate`: the answer may carry a patch.
    Mutate,
    /// `POST /validate`: the answer may only allow, warn or deny.
    Validate,
}

impl Endpoint {
    /// Both endpoints, in the order the API server calls them.
    pub const ALL: [Self; 2] = [Self::Mutate, Self::Validate];

    /// The endpoint behind a request path, which has no query.
    pub fn from_path(path: &str) -> Option<Self> {
        match path {
            "/mutate" => Some(Self::Mutate),
            "/validate" => Some(Self::Validate),
            _ => None,
        }
    }

    /// The name used in metrics and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Mutate => "mutate",
            Self::Validate => "validate",
        }
    }
}

/// How a review ended, for the metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Decision {
    /// Allowed in silence.
    Allowed,
    /// Denied with a message.
    Denied,
    /// Allowed with a patch.
    Patched,
    /// Allowed with warnings.
    Warned,
    /// The request could not be judged.
    Error,
}

impl Decision {
    /// Every decision.
    pub const ALL: [Self; 5] = [
        Self::Allowed,
        Self::Denied,
        Self::Patched,
        Self::Warned,
        Self::Error,
    ];

    /// The name used in metrics and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Denied => "denied",
            Self::Patched => "patched",
            Self::Warned => "warned",
            Self::Error => "error",
        }
    }
}

/// The answer to one review.
#[derive(Clone, Debug)]
pub struct Reviewed {
    /// The HTTP status. The API server reads the body as a review only on 200.
    pub status: StatusCode,
    /// On 200 a complete `AdmissionReview` in JSON, otherwise a plain sentence.
    pub body: Bytes,
    /// The kind that was judged, such as `Deployment`: a label, so one of a
    /// small fixed set and never the name of an object.
    pub kind: &'static str,
    /// How it ended: a label.
    pub decision: Decision,
}

/// Judges admission reviews.
pub trait Reviewer: Send + Sync + 'static {
    /// Answers the review in `body`, the raw bytes of one HTTP request.
    ///
    /// After `deadline` the client reads no answer.
    ///
    /// Polled on the thread that serves the connection, so it must not block;
    /// only bodies above 256 KiB are judged on a thread of their own. It need
    /// not catch its own panics: the server turns one into a 500. A reviewer
    /// that wants to answer with the uid all the same can.
    fn review(
        &self,
        endpoint: Endpoint,
        body: &[u8],
        deadline: Instant,
    ) -> impl Future<Output = Reviewed> + Send;
}
