//! The two review paths, as an axum Router.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::thread::available_parallelism;

use axum::Router;
use axum::body::{Body, Bytes, HttpBody as _};
use axum::extract::{Extension, Request, State};
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use futures_util::FutureExt as _;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};

use super::body::{MAX_TIMEOUT, ReviewBody, discard};
use super::error::{Reason, RequestError};
use super::limits::Limits;
use super::memory::{Charge, MemoryLimit, acquire};
use super::metrics::{Held, Metrics};
use super::review::Reviewer;
use crate::admission::{Answer, Endpoint};

/// The size above which a body is judged on a thread of its own: reading 37 MiB of JSON takes tens
/// of milliseconds, in which the connection's thread would answer nobody else.
const INLINE: usize = 256 * 1024;

/// The largest number of large reviews that are judged at once, on a machine with many processors.
/// Large reviews are rare, and each takes memory besides its body.
const MOST_LARGE: usize = 4;

/// The state that the handlers share.
pub(super) struct Reviews<R> {
    pub(super) limits: Limits,
    pub(super) memory: MemoryLimit,
    reviewer: R,
    metrics: Metrics,
    /// The permits for requests to be under way.
    requests: Semaphore,
    /// The slots in which reviews are judged.
    slots: Arc<Semaphore>,
    /// The slots for reviews above [`INLINE`].
    large_slots: Arc<Semaphore>,
}

impl<R: Reviewer> Reviews<R> {
    pub(super) fn new(reviewer: R, limits: Limits, metrics: Metrics) -> Self {
        let semaphore = |count: usize| Semaphore::new(count.clamp(1, Semaphore::MAX_PERMITS));
        let large =
            available_parallelism().map_or(1, |processors| processors.get().min(MOST_LARGE));
        Self {
            limits,
            memory: MemoryLimit::new(&limits),
            reviewer,
            metrics,
            requests: semaphore(limits.requests),
            slots: Arc::new(semaphore(limits.in_flight)),
            large_slots: Arc::new(semaphore(large)),
        }
    }
}

/// Routes `POST /mutate` and `POST /validate`.
///
/// From the outside in, a request passes the counters and the limits on all requests, then the
/// handlers, which take the other limited resources (bytes, slots) once they need them.
pub(super) fn router<R: Reviewer>(shared: Arc<Reviews<R>>) -> Router {
    let layer = from_fn_with_state(Arc::clone(&shared), count_and_limit::<R>);
    let refuse = |error: fn() -> RequestError| {
        async move |State(reviews): State<Arc<Reviews<R>>>, request: Request| {
            let (head, body) = request.into_parts();
            discard(&head.headers, body.into_data_stream(), &reviews.limits);
            error()
        }
    };
    let review = |endpoint: Endpoint| {
        let answer = move |State(reviews): State<Arc<Reviews<R>>>, body: ReviewBody| {
            reviews.answer(endpoint, body)
        };
        post(answer).fallback(refuse(|| RequestError::Method))
    };
    Router::new()
        .route("/mutate", review(Endpoint::Mutate))
        .route("/validate", review(Endpoint::Validate))
        .fallback(refuse(|| RequestError::NotFound))
        .layer(layer)
        .with_state(shared)
}

/// Counts a request and its result. A request is refused if too many are under way, or if it takes longer
/// than any API server waits. The response to a refused request takes memory until it has been
/// sent, like an answer.
async fn count_and_limit<R: Reviewer>(
    State(reviews): State<Arc<Reviews<R>>>,
    request: Request,
    next: Next,
) -> Response {
    let started = Instant::now();
    let metrics = &reviews.metrics;
    let endpoint = request.uri().path().strip_prefix('/').and_then(Endpoint::from_name);
    let _counted = endpoint.map(|_| Held::new(&metrics.in_flight));
    let answer = async {
        let _permit = reviews.requests.try_acquire().ok()?;
        timeout(MAX_TIMEOUT, next.run(request)).await.ok()
    };
    let mut response = answer.await.unwrap_or_else(|| RequestError::Busy.into_response());
    if let Some(Reason(reason)) = response.extensions_mut().remove() {
        metrics.refusals.get_or_create(&[("reason", reason)]).inc();
        let length = usize::try_from(response.body().size_hint().lower()).unwrap_or(usize::MAX);
        match reviews.memory.try_admit(length) {
            Some(held) => drop(response.extensions_mut().insert(Arc::new(held))),
            None => *response.body_mut() = Body::empty(),
        }
    }
    if let Some(endpoint) = endpoint {
        metrics
            .durations
            .get_or_create(&[("endpoint", endpoint.name())])
            .observe(started.elapsed().as_secs_f64());
    }
    response
}

impl<R: Reviewer> Reviews<R> {
    async fn answer(
        self: Arc<Self>,
        endpoint: Endpoint,
        body: ReviewBody,
    ) -> Result<Response, RequestError> {
        let is_large = body.bytes.len() > INLINE;
        let slots = if is_large { &self.large_slots } else { &self.slots };
        // The slot is taken once the body has arrived, so that a client that only begins to send
        // one takes none.
        let slot = acquire(slots, 1, body.max_queue_wait).await.ok_or(RequestError::Busy)?;
        let (answer, charge) = if is_large {
            let shared = Arc::clone(&self);
            let runtime = Handle::current();
            let judged = tokio::task::spawn_blocking(move || {
                // The slot and the memory go with the thread: a client that hangs up frees neither.
                let _slot = slot;
                runtime.block_on(shared.judge(endpoint, body))
            });
            // Only a runtime that is shutting down refuses the task.
            judged.await.map_err(|_| RequestError::Stopping)??
        } else {
            let _slot = slot;
            self.judge(endpoint, body).await?
        };
        let held =
            self.memory.hold_response(charge, answer.body.len()).ok_or(RequestError::NoMemory)?;
        self.metrics.answered(endpoint, &answer);
        let json = [(CONTENT_TYPE, HeaderValue::from_static("application/json"))];
        Ok((json, Extension(Arc::new(held)), Bytes::from(answer.body)).into_response())
    }

    /// The answer of the reviewer, with a panic turned into an error.
    ///
    /// The reviewer is shared, so a panic could leave it half-changed. It is used again all the
    /// same, because its state is replaced as a whole and never edited in place.
    async fn judge(
        &self,
        endpoint: Endpoint,
        body: ReviewBody,
    ) -> Result<(Answer, Charge), RequestError> {
        // The reviewer is called inside the future, so that a panic before its first await counts.
        let review = async {
            (self.reviewer).review(endpoint, &body.bytes, body.client, body.deadline).await
        };
        let Ok(reviewed) = AssertUnwindSafe(review).catch_unwind().await else {
            self.metrics.panics.inc();
            tracing::error!(
                endpoint = endpoint.name(),
                bytes = body.bytes.len(),
                "A review ended in a panic, which is a bug; the request was answered with 500."
            );
            return Err(RequestError::Panic);
        };
        Ok((reviewed.map_err(RequestError::Malformed)?, body.charge))
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::net::IpAddr;

    use axum::http::StatusCode;
    use tower::Service as _;

    use super::*;
    use crate::admission::MalformedReview;

    /// A reviewer that never answers.
    struct Silent;

    impl Reviewer for Silent {
        async fn review(
            &self,
            _: Endpoint,
            _: &[u8],
            _: Option<IpAddr>,
            _: Instant,
        ) -> Result<Answer, MalformedReview> {
            pending().await
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_without_end_is_refused_and_makes_room_for_another() {
        let limits = Limits { requests: 1, ..Limits::default() };
        let reviews = Reviews::new(Silent, limits, Metrics::new(&[]));
        let router = router(Arc::new(reviews));
        let send = || {
            let request = Request::post("/validate")
                .header(CONTENT_TYPE, "application/json")
                .body(Body::from("{}"))
                .unwrap();
            let mut router = router.clone();
            async move {
                let started = Instant::now();
                let response = router.call(request).await.unwrap();
                assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
                started.elapsed()
            }
        };
        let (first, second) = tokio::join!(send(), send());
        assert!(second.is_zero());
        assert_eq!([first, send().await], [MAX_TIMEOUT; 2]);
    }
}
