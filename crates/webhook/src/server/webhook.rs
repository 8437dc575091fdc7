//! The two review paths.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use http_body_util::Full;
use hyper::body::{Body as _, Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE, EXPECT, HeaderValue};
use hyper::http::request::Parts;
use hyper::{HeaderMap, Method, Request, StatusCode, Uri, Version};
use jiff::SignedDuration;
use tokio::runtime::Handle;
use tokio::time::Instant;

use super::body::{BodyError, Patience, Received, discard, receive};
use super::budget::{Budget, Relieve, Share};
use super::connections::{Asking, Connection};
use super::gate::{Gate, Slot};
use super::limits::Limits;
use super::metrics::Metrics;
use super::refusal::Refusal;
use super::review::Reviewer;
use super::untaken::until_taken;
use crate::admission::{Answer, Endpoint};

/// Larger bodies are judged on a thread of their own: reading 37 MiB of JSON
/// takes tens of milliseconds, in which the connection's thread would answer
/// nobody else.
const INLINE: usize = 256 * 1024;

/// How long an API server waits for an answer when it does not say.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// The longest an API server waits (`timeoutSeconds` of a webhook).
const MAX_TIMEOUT: Duration = Duration::from_secs(30);

/// The part of the caller's timeout that a review may wait for memory, and for
/// a slot to be judged in: one in so many.
const WAIT_SHARE: u32 = 4;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

type Response = hyper::Response<Full<Bytes>>;

/// What answers the requests of all connections.
pub(super) struct Webhook<R> {
    reviewer: R,
    limits: Limits,
    metrics: Metrics,
    budget: Budget,
    small: Gate,
    large: Gate,
}

impl<R: Reviewer> Webhook<R> {
    /// Where memory is short, `relieve` is called.
    pub(super) fn new(reviewer: R, limits: Limits, metrics: Metrics, relieve: Relieve) -> Self {
        Self {
            reviewer,
            limits,
            metrics,
            budget: Budget::new(&limits, relieve),
            small: Gate::new(limits.in_flight),
            large: Gate::new(limits.large_in_flight),
        }
    }

    /// Answers a request, which is `asking` until its answer has been taken.
    pub(super) async fn answer(
        self: Arc<Self>,
        asking: Asking,
        request: Request<Incoming>,
    ) -> Response {
        let started = Instant::now();
        let (head, mut body) = request.into_parts();
        let endpoint = match head.uri.path() {
            "/mutate" => Endpoint::Mutate,
            "/validate" => Endpoint::Validate,
            _ => {
                let refusal = Refusal::NotFound;
                return self.refuse(&refusal, &head, body, asking).await;
            }
        };
        let _in_flight = self.metrics.request_started();
        let connection = asking.connection();
        let reviewed = self.review(endpoint, &head, &mut body, connection, started);
        let (response, ended) = match reviewed.await {
            Ok((answer, share)) => {
                self.metrics.answered(endpoint, &answer);
                connection.prove();
                let ended = Instant::now();
                let body = until_taken(answer.body, share, asking, ended);
                (response(StatusCode::OK, JSON, body), ended)
            }
            Err(refusal) => {
                let refused = self.refuse(&refusal, &head, body, asking).await;
                (refused, Instant::now())
            }
        };
        self.metrics.request_ended(endpoint, ended - started);
        response
    }

    async fn review(
        self: &Arc<Self>,
        endpoint: Endpoint,
        head: &Parts,
        body: &mut Incoming,
        connection: &Connection,
        started: Instant,
    ) -> Result<(Answer, Share), Refusal> {
        if head.method != Method::POST {
            return Err(Refusal::Method);
        }
        if !is_json(&head.headers) {
            return Err(Refusal::ContentType);
        }
        let timeout = client_timeout(&head.uri);
        let deadline = started + timeout;
        let patience = Patience {
            until: started + timeout.min(self.limits.body_read),
            for_others: timeout / WAIT_SHARE,
        };
        let account = connection.account();
        let share = self.budget.share(account);
        let received = receive(body, &self.limits, share, patience).await?;
        // The slot is taken once the body is there: a client that only begins
        // to send one takes nobody's.
        let gate = match received.bytes.len() <= INLINE {
            true => &self.small,
            false => &self.large,
        };
        let left = deadline.saturating_duration_since(Instant::now());
        let patience = received.patience.min(left);
        let slot = gate.enter(account, patience).await.ok_or(Refusal::Busy)?;
        let (answer, mut share) = self.judge(endpoint, received, slot, deadline).await?;
        share
            .hold_answer(answer.body.len())
            .map_err(BodyError::from)?;
        Ok((answer, share))
    }

    async fn judge(
        self: &Arc<Self>,
        endpoint: Endpoint,
        received: Received,
        slot: Slot,
        deadline: Instant,
    ) -> Result<(Answer, Share), Refusal> {
        let Received { bytes, share, .. } = received;
        if bytes.len() <= INLINE {
            let answer = self.guarded(endpoint, &bytes, deadline).await?;
            return Ok((answer, share));
        }
        let shared = Arc::clone(self);
        let runtime = Handle::current();
        let judged = tokio::task::spawn_blocking(move || {
            // Goes with the thread: a client that hangs up frees neither.
            let _slot = slot;
            let answer = runtime.block_on(shared.guarded(endpoint, &bytes, deadline))?;
            drop(bytes);
            Ok((answer, share))
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
    async fn guarded(
        &self,
        endpoint: Endpoint,
        body: &[u8],
        deadline: Instant,
    ) -> Result<Answer, Refusal> {
        // Called inside the future, so that a panic before its first await counts.
        let review = async { self.reviewer.review(endpoint, body, deadline).await };
        match AssertUnwindSafe(review).catch_unwind().await {
            Ok(reviewed) => reviewed.map_err(Refusal::Malformed),
            Err(_) => {
                self.metrics.panicked();
                tracing::error!(
                    endpoint = endpoint.name(),
                    bytes = body.len(),
                    "A review ended in a panic, which is a bug; the request was answered with 500."
                );
                Err(Refusal::Panic)
            }
        }
    }

    /// Tells the client why not, in such a way that it hears it while it is
    /// still sending.
    async fn refuse(
        &self,
        refusal: &Refusal,
        head: &Parts,
        mut body: Incoming,
        asking: Asking,
    ) -> Response {
        self.metrics.refused(refusal);
        let limits = self.limits;
        let is_unread = !body.is_end_stream()
            && !matches!(
                refusal,
                Refusal::Body(BodyError::TooSlow | BodyError::Interrupted)
            );
        if is_unread && head.version == Version::HTTP_2 {
            // A stream whose request nobody reads is reset, and some clients
            // then forget the answer that came before.
            tokio::spawn(async move { discard(&mut body, &limits).await });
        } else if is_unread && !head.headers.contains_key(EXPECT) {
            // A connection closed while the client sends is reset, and the
            // answer lost. A client that expects "100 Continue" sends no body
            // before it is asked to.
            discard(&mut body, &limits).await;
        }
        let mut share = self.budget.share(asking.connection().account());
        let mut sentence = match head.method {
            // Over HTTP/2 it would be sent.
            Method::HEAD => String::new(),
            _ => refusal.sentence(&limits),
        };
        if share.hold_answer(sentence.len()).is_err() {
            // Without a body nothing is left to be taken.
            sentence.clear();
        }
        let body = until_taken(sentence.into_bytes(), share, asking, Instant::now());
        let mut response = response(refusal.status(), TEXT, body);
        if matches!(refusal, Refusal::Method) {
            response
                .headers_mut()
                .insert(ALLOW, HeaderValue::from_static("POST"));
        }
        response
    }
}

/// Whether the content is `application/json`, in any case and with any parameters.
fn is_json(headers: &HeaderMap) -> bool {
    let value = headers.get(CONTENT_TYPE).and_then(|it| it.to_str().ok());
    value.is_some_and(|value| {
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

fn response(status: StatusCode, content_type: HeaderValue, body: Bytes) -> Response {
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
            let value_of = HeaderValue::from_static(value);
            let headers = HeaderMap::from_iter([(CONTENT_TYPE, value_of)]);
            assert_eq!(is_json(&headers), expected, "{value}");
        }
        assert!(!is_json(&HeaderMap::new()));
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
