//! The reasons why a request is not answered as a review, and the texts for its sender.

use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

use super::limits::MAX_BODY;
use crate::admission::MalformedReview;

/// A reason why a request is not answered as a review.
#[derive(Debug)]
pub(super) enum RequestError {
    NotFound,
    Method,
    ContentType,
    /// The body is larger than [`MAX_BODY`], as declared or as found.
    TooLarge,
    /// The body was not complete in time.
    TooSlow,
    /// The client went away in the middle of the body, or broke the protocol.
    Interrupted,
    /// No memory became free in time.
    NoMemory,
    Malformed(MalformedReview),
    /// Too many requests, or too many reviews being judged.
    Busy,
    /// The judgement panicked.
    Panic,
    /// The server is shutting down.
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

    const fn reason(&self) -> Reason {
        Reason(match self {
            Self::NotFound => "not_found",
            Self::Method => "method",
            Self::ContentType => "content_type",
            Self::TooLarge => "body_too_large",
            Self::TooSlow => "body_timeout",
            Self::Interrupted => "body_interrupted",
            Self::NoMemory => "memory",
            Self::Malformed(_) => "malformed",
            Self::Busy => "busy",
            Self::Panic => "panic",
            Self::Stopping => "stopping",
        })
    }

    const fn status(&self) -> StatusCode {
        match self {
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
            Self::ContentType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::Interrupted | Self::Malformed(_) => StatusCode::BAD_REQUEST,
            Self::Panic => StatusCode::INTERNAL_SERVER_ERROR,
            Self::NoMemory | Self::Busy | Self::Stopping => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    fn sentence(&self) -> String {
        let sentence = match self {
            Self::NotFound => "There is nothing at this path; reviews go to /mutate and /validate.",
            Self::Method => "A review is sent with POST.",
            Self::ContentType => {
                "A review is sent as JSON; set the header \"Content-Type: application/json\"."
            }
            Self::TooLarge => {
                return format!(
                    "The body is larger than {MAX_BODY} bytes, more than an API server can send.\n"
                );
            }
            Self::TooSlow => "The body was not complete in time; send it again.",
            Self::Interrupted => "The body ended before its announced length.",
            Self::Malformed(malformed) => return format!("{malformed}\n"),
            // A response without a body takes no memory.
            Self::NoMemory => return String::new(),
            Self::Busy => "Too many reviews are being answered right now; send it again.",
            Self::Panic => {
                "The review failed because of a bug in multi-attach-guard; its log has the details."
            }
            Self::Stopping => "The server is shutting down; send the review again.",
        };
        format!("{sentence}\n")
    }
}

impl IntoResponse for RequestError {
    fn into_response(self) -> Response {
        let text = HeaderValue::from_static("text/plain; charset=utf-8");
        let mut response = (self.status(), [(CONTENT_TYPE, text)], self.sentence()).into_response();
        response.extensions_mut().insert(self.reason());
        response
    }
}
