//! The two review paths.
//!
//! A plain service rather than a router with middleware: two paths need no
//! routing table, and nothing but the review itself should cost anything.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Bytes, HttpBody};
use axum::http::header::{ALLOW, CONTENT_TYPE, EXPECT};
use axum::http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri, Version};
use futures_util::FutureExt as _;
use http_body_util::Full;
use jiff::SignedDuration;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout};
use tower_service::Service;

use super::body::{BodyError, Budget, Received, discard, receive};
use super::limits::Limits;
use super::metrics::Metrics;
use super::refusal::Refusal;
use super::review::Reviewer;
use crate::admission::{Answer, Endpoint};

/// Larger bodies are judged on a thread of their own: reading 37 MiB of JSON
/// takes tens of milliseconds, in which the connection's thread would answer
/// nobody else.
const INLINE: usize = 256 * 1024;

/// How long an API server waits for an answer when it does not say.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// The longest an API server waits (`timeoutSeconds` of a webhook).
const MAX_TIMEOUT: Duration = Duration::from_secs(30);

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

/// The service behind the webhook port. Clones share everything.
pub(super) struct Webhook<R>(Arc<Shared<R>>);

struct Shared<R> {
    reviewer: R,
    limits: Limits,
    metrics: Metrics,
    budget: Budget,
    slots: Semaphore,
}

impl<R> Clone for Webhook<R> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<R: Reviewer> Webhook<R> {
    pub(super) fn new(reviewer: R, limits: Limits, metrics: Metrics) -> Self {
        Self(Arc::new(Shared {
            reviewer,
            limits,
            metrics,
            budget: Budget::new(&limits),
            slots: Semaphore::new(limits.in_flight.clamp(1, Semaphore::MAX_PERMITS)),
        }))
    }
}

impl<R, B> Service<Request<B>> for Webhook<R>
where
    R: Reviewer,
    B: HttpBody<Data = Bytes> + Send + Unpin + 'static,
{
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let shared = Arc::clone(&self.0);
        Box::pin(async move { Ok(answer(shared, request).await) })
    }
}

/// Hands every connection the one service.
pub(super) struct MakeWebhook<R>(pub(super) Webhook<R>);

impl<R: Reviewer> Service<SocketAddr> for MakeWebhook<R> {
    type Response = Webhook<R>;
    type Error = Infallible;
    type Future = Ready<Result<Webhook<R>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: SocketAddr) -> Self::Future {
        ready(Ok(self.0.clone()))
    }
}

async fn answer<R, B>(shared: Arc<Shared<R>>, request: Request<B>) -> Response<Full<Bytes>>
where
    R: Reviewer,
    B: HttpBody<Data = Bytes> + Unpin,
{
    let started = Instant::now();
    let _in_flight = shared.metrics.request_started();
    let (head, mut body) = request.into_parts();
    let Some(endpoint) = endpoint_at(head.uri.path()) else {
        let refusal = Refusal::NotFound;
        return refuse(&shared, &refusal, head.version, &head.headers, &mut body).await;
    };
    let answered = match read(&shared, &head.method, &head.headers, &mut body).await {
        Ok((received, _slot)) => {
            let deadline = started + client_timeout(&head.uri);
            judge(&shared, endpoint, received, deadline).await
        }
        Err(refusal) => Err(refusal),
    };
    let response = match answered {
        Ok(answer) => {
            shared.metrics.answered(endpoint, &answer);
            response(StatusCode::OK, JSON, answer.body.into())
        }
        Err(refusal) => refuse(&shared, &refusal, head.version, &head.headers, &mut body).await,
    };
    shared.metrics.request_ended(endpoint, started.elapsed());
    response
}

/// The webhook at a path, which has no query.
fn endpoint_at(path: &str) -> Option<Endpoint> {
    let name = path.strip_prefix('/')?;
    Endpoint::ALL.into_iter().find(|it| it.name() == name)
}

/// Reads the body of what looks like a review, and takes the slot it is
/// answered in.
async fn read<'a, R, B>(
    shared: &'a Shared<R>,
    method: &Method,
    headers: &HeaderMap,
    body: &mut B,
) -> Result<(Received, SemaphorePermit<'a>), Refusal>
where
    B: HttpBody<Data = Bytes> + Unpin,
{
    if method != Method::POST {
        return Err(Refusal::Method);
    }
    if !headers.get(CONTENT_TYPE).is_some_and(is_json) {
        return Err(Refusal::ContentType);
    }
    let slot = match timeout(shared.limits.wait, shared.slots.acquire()).await {
        Ok(Ok(slot)) => slot,
        Ok(Err(_)) | Err(_) => return Err(Refusal::Busy),
    };
    let received = receive(body, &shared.limits, &shared.budget).await?;
    Ok((received, slot))
}

/// `application/json`, in any case and with any parameters.
fn is_json(value: &HeaderValue) -> bool {
    value.to_str().is_ok_and(|value| {
        let essence = value.split(';').next().unwrap_or_default();
        essence.trim().eq_ignore_ascii_case("application/json")
    })
}

/// How long the client waits. An API server says so in the query of the path,
/// as in `/mutate?timeout=10s`.
fn client_timeout(uri: &Uri) -> Duration {
    uri.query()
        .into_iter()
        .flat_map(|query| query.split('&'))
        .find_map(|pair| pair.strip_prefix("timeout="))
        .and_then(|value| value.parse::<SignedDuration>().ok())
        .and_then(|given| given.try_into().ok())
        .map_or(DEFAULT_TIMEOUT, |given: Duration| given.min(MAX_TIMEOUT))
}

async fn judge<R: Reviewer>(
    shared: &Arc<Shared<R>>,
    endpoint: Endpoint,
    received: Received,
    deadline: Instant,
) -> Result<Answer, Refusal> {
    if received.bytes.len() <= INLINE {
        return guarded(shared, endpoint, &received.bytes, deadline).await;
    }
    let owned = Arc::clone(shared);
    let runtime = Handle::current();
    let judged = tokio::task::spawn_blocking(move || {
        runtime.block_on(guarded(&owned, endpoint, &received.bytes, deadline))
    })
    .await;
    // Only a runtime that is shutting down refuses the task.
    judged.unwrap_or(Err(Refusal::Stopping))
}

/// The review, with a panic turned into an answer.
///
/// The reviewer is shared, so a panic could leave it half-changed; it is
/// asked again all the same, because its state is replaced whole and never
/// edited in place.
async fn guarded<R: Reviewer>(
    shared: &Shared<R>,
    endpoint: Endpoint,
    body: &[u8],
    deadline: Instant,
) -> Result<Answer, Refusal> {
    // Called inside the future, so that a panic before its first await counts.
    let review = async { shared.reviewer.review(endpoint, body, deadline).await };
    match AssertUnwindSafe(review).catch_unwind().await {
        Ok(reviewed) => reviewed.map_err(Refusal::Malformed),
        Err(_) => {
            shared.metrics.panicked();
            tracing::error!(
                endpoint = endpoint.name(),
                bytes = body.len(),
                "A review ended in a panic, which is a bug; the request was answered with 500."
            );
            Err(Refusal::Panic)
        }
    }
}

async fn refuse<R, B>(
    shared: &Shared<R>,
    refusal: &Refusal,
    version: Version,
    headers: &HeaderMap,
    body: &mut B,
) -> Response<Full<Bytes>>
where
    B: HttpBody<Data = Bytes> + Unpin,
{
    shared.metrics.refused(refusal);
    let unread = !matches!(
        refusal,
        Refusal::Body(BodyError::TooSlow | BodyError::Interrupted)
    );
    // A client that expects "100 Continue" sends no body before it is asked to.
    if unread && version < Version::HTTP_2 && !headers.contains_key(EXPECT) {
        discard(body, &shared.limits).await;
    }
    let mut response = response(
        refusal.status(),
        TEXT,
        refusal.sentence(&shared.limits).into(),
    );
    if matches!(refusal, Refusal::Method) {
        response
            .headers_mut()
            .insert(ALLOW, HeaderValue::from_static("POST"));
    }
    response
}

fn response(status: StatusCode, content_type: HeaderValue, body: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_type_is_json() {
        let cases = [
            ("application/json", true),
            ("Application/JSON; charset=utf-8", true),
            ("application/json ;q=1", true),
            ("application/jsonp", false),
            ("text/plain", false),
            ("application/yaml; application/json", false),
            ("", false),
        ];
        for (value, expected) in cases {
            let header = HeaderValue::from_static(value);
            assert_eq!(is_json(&header), expected, "{value}");
        }
    }
    #[test]
    fn the_client_says_how_long_it_waits() {
        let cases = [
            ("/mutate", DEFAULT_TIMEOUT),
            ("/mutate?timeout=5s", Duration::from_secs(5)),
            ("/mutate?a=b&timeout=1m30s", MAX_TIMEOUT),
            ("/mutate?timeout=500ms", Duration::from_millis(500)),
            ("/mutate?timeout=-5s", DEFAULT_TIMEOUT),
            ("/mutate?timeout=", DEFAULT_TIMEOUT),
            ("/mutate?timeout=soon", DEFAULT_TIMEOUT),
        ];
        for (uri, expected) in cases {
            assert_eq!(client_timeout(&uri.parse().unwrap()), expected, "{uri}");
        }
    }
}
