//! The interface to the judge of reviews.

use std::net::IpAddr;

use tokio::time::Instant;

use crate::admission::{Answer, Endpoint, MalformedReview};

/// Judges admission reviews.
pub trait Reviewer: Send + Sync + 'static {
    /// Answers the review in `body`, the raw bytes of one HTTP request from `client`.
    ///
    /// After `deadline` the client no longer waits for an answer.
    ///
    /// The future is polled on the thread that serves the connection, so it must not block; only
    /// bodies above 256 KiB are judged on a thread of their own. A reviewer need not catch its own
    /// panics: the server turns them into a 500. It may do so to answer with the uid all the same.
    ///
    /// # Errors
    ///
    /// Fails if the bytes are not a review to which an answer could refer.
    fn review(
        &self,
        endpoint: Endpoint,
        body: &[u8],
        client: Option<IpAddr>,
        deadline: Instant,
    ) -> impl Future<Output = Result<Answer, MalformedReview>> + Send;
}
