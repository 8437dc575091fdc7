//! Why a request gets no answer to a review, and what its sender is told.

use axum::http::StatusCode;

use super::body::BodyError;
use super::limits::Limits;
use crate::admission::MalformedReview;

/// Why a request got no answer to a review.
#[derive(Debug)]
pub(super) enum Refusal {
    NotFound,
    Method,
    ContentType,
    Body(BodyError),
    Malformed(MalformedReview),
    /// There is no slot to judge it in that would come free in time.
    Busy,
    /// Judging it panicked.
    Panic,
    /// The server is going.
    Stopping,
}

impl Refusal {
    /// The labels in the metrics.
    pub(super) const REASONS: [&'static str; 11] = [
        "not_found",
        "method",
        "content_type",
        "body_too_large",
        "body_timeout",
        "body_interrupted",
        "memory",
        "malformed",
        "busy",
        "panic",
        "stopping",
    ];

    /// The label in the metrics.
    pub(super) const fn reason(&self) -> &'static str {
        match self {
            Self::NotFound => "not_found",
            Self::Method => "method",
            Self::ContentType => "content_type",
            Self::Body(BodyError::TooLarge) => "body_too_large",
            Self::Body(BodyError::TooSlow) => "body_timeout",
            Self::Body(BodyError::Interrupted) => "body_interrupted",
            Self::Body(BodyError::NoMemory) => "memory",
            Self::Malformed(_) => "malformed",
            Self::Busy => "busy",
            Self::Panic => "panic",
            Self::Stopping => "stopping",
        }
    }

    pub(super) const fn status(&self) -> StatusCode {
        match self {
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
            Self::ContentType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Body(BodyError::TooLarge) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Body(BodyError::TooSlow) => StatusCode::REQUEST_TIMEOUT,
            Self::Body(BodyError::Interrupted) | Self::Malformed(_) => StatusCode::BAD_REQUEST,
            Self::Panic => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Body(BodyError::NoMemory) | Self::Busy | Self::Stopping => {
                StatusCode::SERVICE_UNAVAILABLE
            }
        }
    }

    pub(super) fn sentence(&self, limits: &Limits) -> String {
        match self {
            Self::NotFound => {
                "There is nothing at this path; reviews go to /mutate and /validate.\n".to_owned()
            }
            Self::Method => "A review is sent with POST.\n".to_owned(),
            Self::ContentType => {
                "A review is sent as JSON; set the header \"Content-Type: application/json\".\n"
                    .to_owned()
            }
            Self::Body(BodyError::TooLarge) => format!(
                "The body is larger than {} bytes, more than an API server can send.\n",
                limits.body
            ),
            Self::Body(BodyError::TooSlow) => {
                "The body was not complete in time; send it again.\n".to_owned()
            }
            Self::Body(BodyError::Interrupted) => {
                "The body ended before its announced length.\n".to_owned()
            }
            Self::Malformed(malformed) => format!("{malformed}\n"),
            // What gives way keeps nothing.
            Self::Body(BodyError::NoMemory) => String::new(),
            Self::Busy => {
                "Too many reviews are being answered right now; send it again.\n".to_owned()
            }
            Self::Panic => {
                "The review failed because of a bug in multi-attach-guard; its log has the details.\n"
                    .to_owned()
            }
            Self::Stopping => {
                "The server is shutting down; send the review again.\n".to_owned()
            }
        }
    }
}

impl From<BodyError> for Refusal {
    fn from(error: BodyError) -> Self {
        Self::Body(error)
    }
}
