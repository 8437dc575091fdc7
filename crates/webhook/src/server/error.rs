//! The reasons why a request is not answered as a review, and the texts for its sender.

use axum::extract::Extension;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use super::limits::MAX_BODY;
use crate::admission::MalformedReview;

/// A reason why a request is not answered as a review, and the text for its sender.
#[derive(Debug, thiserror::Error)]
pub(super) enum RequestError {
    #[error("There is nothing at this path; reviews go to /mutate and /validate.")]
    NotFound,
    #[error("A review is sent with POST.")]
    Method,
    #[error("A review is sent as JSON; set the header \"Content-Type: application/json\".")]
    ContentType,
    /// The body is larger than [`MAX_BODY`], as declared or as found.
    #[error("The body is larger than {MAX_BODY} bytes, more than an API server can send.")]
    TooLarge,
    /// The body was not complete in time.
    #[error("The body was not complete in time; send it again.")]
    TooSlow,
    /// The client went away in the middle of the body, or broke the protocol.
    #[error("The body ended before its announced length.")]
    Interrupted,
    /// No memory became free in time. A response without a body takes no memory.
    #[error("")]
    NoMemory,
    #[error("{0}")]
    Malformed(MalformedReview),
    /// Too many requests, or too many reviews being judged.
    #[error("Too many reviews are being answered right now; send it again.")]
    Busy,
    /// The judgement panicked.
    #[error("The review failed because of a bug in multi-attach-guard; its log has the details.")]
    Panic,
    /// The server is shutting down.
    #[error("The server is shutting down; send the review again.")]
    Stopping,
}

/// The label in the metrics, which a response carries as an extension.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reason(pub(super) &'static str);

impl RequestError {
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

    /// The label in the metrics, and the status.
    const fn kind(&self) -> (&'static str, StatusCode) {
        match self {
            Self::NotFound => ("not_found", StatusCode::NOT_FOUND),
            Self::Method => ("method", StatusCode::METHOD_NOT_ALLOWED),
            Self::ContentType => ("content_type", StatusCode::UNSUPPORTED_MEDIA_TYPE),
            Self::TooLarge => ("body_too_large", StatusCode::PAYLOAD_TOO_LARGE),
            Self::TooSlow => ("body_timeout", StatusCode::REQUEST_TIMEOUT),
            Self::Interrupted => ("body_interrupted", StatusCode::BAD_REQUEST),
            Self::NoMemory => ("memory", StatusCode::SERVICE_UNAVAILABLE),
            Self::Malformed(_) => ("malformed", StatusCode::BAD_REQUEST),
            Self::Busy => ("busy", StatusCode::SERVICE_UNAVAILABLE),
            Self::Panic => ("panic", StatusCode::INTERNAL_SERVER_ERROR),
            Self::Stopping => ("stopping", StatusCode::SERVICE_UNAVAILABLE),
        }
    }
}

impl IntoResponse for RequestError {
    fn into_response(self) -> Response {
        let (reason, status) = self.kind();
        let text = match self {
            Self::NoMemory => String::new(),
            error => format!("{error}\n"),
        };
        (status, Extension(Reason(reason)), text).into_response()
    }
}
