//! The interface to what judges reviews.

use std::net::IpAddr;

use tokio::time::Instant;

use crate::admission::{Answer, Endpoint, MalformedReview};

/// Judges admission reviews.
pub trait Reviewer: Send + Sync + 'static {
    /// Answers the review in `body`, the raw bytes of one HTTP request of `client`.
    ///
    /// After `deadline` the client no longer waits for an answer.
    ///
    /// Polled on the thread that serves the connection, so it must not block;
    /// only bodies above 256 KiB are judged on a thread of their own. It need
    /// not catch its own panics: the server turns one into a 500. A reviewer
    /// that wants to answer with the uid all the same can.
    ///
    /// # Errors
    ///
    /// When the bytes are no review that an answer could refer to.
    fn review(
        &self,
        endpoint: Endpoint,
        body: &[u8],
        client: Option<IpAddr>,
        deadline: Instant,
    ) -> impl Future<Output = Result<Answer, MalformedReview>> + Send;
}
