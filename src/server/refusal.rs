//! Why a request is not read as a review, and what its sender is told.

use axum::http::StatusCode;

use super::body::BodyError;
use super::limits::Limits;

/// Why a request was not read as a review.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    NotFound,
    Method,
    ContentType,
    BodyTooLarge,
    BodyTimeout,
    BodyInterrupted,
    Busy,
}

impl Refusal {
    pub(super) const ALL: [Self; 7] = [
        Self::NotFound,
        Self::Method,
        Self::ContentType,
        Self::BodyTooLarge,
        Self::BodyTimeout,
        Self::BodyInterrupted,
        Self::Busy,
    ];

    /// The label in the metrics.
    pub(super) const fn reason(self) -> &'static str {
        match self {
            Self::NotFound => "not_found",
            Self::Method => "method",
            Self::ContentType => "content_type",
            Self::BodyTooLarge => "body_too_large",
            Self::BodyTimeout => "body_timeout",
            Self::BodyInterrupted => "body_interrupted",
            Self::Busy => "busy",
        }
    }

    pub(super) const fn status(self) -> StatusCode {
        match self {
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
            Self::ContentType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::BodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::BodyTimeout => StatusCode::REQUEST_TIMEOUT,
            Self::BodyInterrupted => StatusCode::BAD_REQUEST,
            Self::Busy => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    pub(super) fn sentence(self, limits: &Limits) -> String {
        match self {
            Self::NotFound => {
                "There is nothing at this path; reviews go to /mutate and /validate.\n".to_owned()
            }
            Self::Method => "A review is sent with POST.\n".to_owned(),
            Self::ContentType => {
                "A review is sent as JSON; set the header \"Content-Type: application/json\".\n"
                    .to_owned()
            }
            Self::BodyTooLarge => format!(
                "The body is larger than {} bytes, more than an API server can send.\n",
                limits.body
            ),
            Self::BodyTimeout => format!(
                "The body was not complete after {} s; send it again.\n",
                limits.body_read.as_secs_f32()
            ),
            Self::BodyInterrupted => "The body ended before its announced length.\n".to_owned(),
            Self::Busy => {
                "Too many reviews are being answered at this moment; send it again.\n".to_owned()
            }
        }
    }
}

impl From<BodyError> for Refusal {
    fn from(error: BodyError) -> Self {
        match error {
            BodyError::TooLarge => Self::BodyTooLarge,
            BodyError::TooSlow => Self::BodyTimeout,
            BodyError::NoMemory => Self::Busy,
            BodyError::Interrupted => Self::BodyInterrupted,
        }
    }
}
