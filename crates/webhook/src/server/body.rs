//! The body of a review, as an extractor: read within the limits on size, time and memory.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::RequestExt as _;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Uri};
use futures_util::FutureExt as _;
use jiff::SignedDuration;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at, timeout_at};

use super::error::RequestError;
use super::memory::{Charge, MemoryLimit, SMALL_BODY};
use super::review::Reviewer;
use super::routes::Reviews;

/// How long an API server waits for an answer when it does not say.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// The longest an API server waits (`timeoutSeconds` of a webhook).
pub(super) const MAX_TIMEOUT: Duration = Duration::from_secs(30);

/// A review waits for memory, and for a slot to be judged in, for at most one part in this many of
/// its caller's timeout.
const PATIENCE_SHARE: u32 = 4;

/// A body has stalled if less than this has arrived in [`STALLED`] times [`LOOK_EVERY`]: one HTTP/2
/// frame in a quarter of a second. An API server sends as much in microseconds.
///
/// Checks are counted instead of time: data that arrived while this process did not run is read
/// between two checks.
const PROGRESS: usize = 16 * 1024;
const LOOK_EVERY: Duration = Duration::from_millis(50);
const STALLED: u32 = 5;

/// When the client stops waiting for its answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadline {
    started: Instant,
    timeout: Duration,
}

impl Deadline {
    pub(super) fn at(self) -> Instant {
        self.started + self.timeout
    }

    /// How long it may wait for others.
    pub(super) fn patience(self) -> Duration {
        self.timeout / PATIENCE_SHARE
    }
}

impl<S: Sync> FromRequestParts<S> for Deadline {
    type Rejection = RequestError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, RequestError> {
        Ok(Self {
            started: Instant::now(),
            timeout: client_timeout(&parts.uri),
        })
    }
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

/// Whether the content is `application/json`, in any case and with any parameters.
fn is_json(headers: &HeaderMap) -> bool {
    let value = headers.get(CONTENT_TYPE).and_then(|it| it.to_str().ok());
    value.is_some_and(|value| {
        let essence = value.split(';').next().unwrap_or_default();
        essence.trim().eq_ignore_ascii_case("application/json")
    })
}

/// The whole body of a review, with the memory that it holds.
#[derive(Debug)]
pub(super) struct ReviewBody {
    pub(super) bytes: Bytes,
    pub(super) charge: Charge,
    pub(super) deadline: Deadline,
}

impl<R: Reviewer> FromRequest<Arc<Reviews<R>>> for ReviewBody {
    type Rejection = RequestError;

    async fn from_request(
        mut request: Request,
        reviews: &Arc<Reviews<R>>,
    ) -> Result<Self, RequestError> {
        if !is_json(request.headers()) {
            return Err(RequestError::ContentType);
        }
        let deadline: Deadline = request.extract_parts().await?;
        let limits = &reviews.limits;
        let until = deadline.started + deadline.timeout.min(limits.body_read);
        let reading = Reading {
            memory: &reviews.memory,
            limit: limits.body,
            patience: deadline.patience(),
        };
        let read = timeout_at(until, reading.read(request.into_body())).await;
        let (bytes, charge) = read.unwrap_or(Err(RequestError::TooSlow))?;
        Ok(Self {
            bytes,
            charge,
            deadline,
        })
    }
}

/// How a body is read.
struct Reading<'a> {
    memory: &'a MemoryLimit,
    limit: usize,
    patience: Duration,
}

impl Reading<'_> {
    async fn read(&self, mut body: Body) -> Result<(Bytes, Charge), RequestError> {
        let declared = body.size_hint().exact();
        let declared = declared.map(|length| usize::try_from(length).unwrap_or(usize::MAX));
        if declared.is_some_and(|length| length > self.limit) {
            return Err(RequestError::TooLarge(self.limit));
        }
        let mut charge = self.memory.admit(declared, self.patience).await?;
        let mut pieces = Pieces {
            expected: declared.unwrap_or(0).min(SMALL_BODY),
            ..Pieces::default()
        };
        let mut stall = StallGuard::new(self.memory);
        while let Some(data) = stall.next_data(&mut body).await? {
            let length = pieces.length() + data.len();
            if length > self.limit {
                return Err(RequestError::TooLarge(self.limit));
            }
            if length > SMALL_BODY && !charge.is_larger() {
                let rest = declared.unwrap_or(self.limit);
                self.memory
                    .admit_larger(&mut charge, rest, self.patience)
                    .await?;
                pieces.expected = declared.unwrap_or(0);
            }
            pieces.push(data);
        }
        Ok((pieces.joined(), charge))
    }
}

/// The pieces of a body put together. A body in one piece is not copied.
#[derive(Default)]
struct Pieces {
    first: Bytes,
    all: Vec<u8>,
    /// The length for which room is made, no more than memory was taken for.
    expected: usize,
}

impl Pieces {
    fn length(&self) -> usize {
        self.first.len() + self.all.len()
    }

    fn push(&mut self, data: Bytes) {
        if self.length() == 0 {
            self.first = data;
            return;
        }
        let first = std::mem::take(&mut self.first);
        let length = first.len() + self.all.len() + data.len();
        let room = self.expected.max(length) - self.all.len();
        self.all.reserve(room);
        self.all.extend_from_slice(&first);
        self.all.extend_from_slice(&data);
    }

    fn joined(self) -> Bytes {
        match self.all.is_empty() {
            true => self.first,
            false => self.all.into(),
        }
    }
}

/// Sheds a body that stalls while memory is short. One that has arrived with its headers
/// costs no timer.
struct StallGuard<'a> {
    memory: &'a MemoryLimit,
    looks: Option<Interval>,
    /// Bytes since the last progress.
    arrived: usize,
    /// Looks since the last progress.
    quiet: u32,
}

impl<'a> StallGuard<'a> {
    fn new(memory: &'a MemoryLimit) -> Self {
        Self {
            memory,
            looks: None,
            arrived: 0,
            quiet: 0,
        }
    }

    /// The next piece of the body.
    async fn next_data(&mut self, body: &mut Body) -> Result<Option<Bytes>, RequestError> {
        let next = match next_data(body).now_or_never() {
            Some(next) => next,
            None => tokio::select! {
                biased;
                next = next_data(body) => next,
                () = self.stalled() => Err(RequestError::NoMemory),
            },
        };
        self.arrived += next
            .as_ref()
            .map_or(0, |it| it.as_ref().map_or(0, Bytes::len));
        if self.arrived >= PROGRESS {
            (self.arrived, self.quiet) = (0, 0);
        }
        next
    }

    /// Waits until the body has stalled while memory is short.
    async fn stalled(&mut self) {
        let looks = self.looks.get_or_insert_with(|| {
            let mut looks = interval_at(Instant::now() + LOOK_EVERY, LOOK_EVERY);
            looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            looks
        });
        loop {
            looks.tick().await;
            self.quiet = self.quiet.saturating_add(1);
            if self.quiet >= STALLED && self.memory.is_short() {
                return;
            }
        }
    }
}

/// The next non-empty piece of data; trailers are skipped.
async fn next_data(body: &mut Body) -> Result<Option<Bytes>, RequestError> {
    loop {
        match poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await {
            None => return Ok(None),
            Some(Err(_)) => return Err(RequestError::Interrupted),
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) if !data.is_empty() => return Ok(Some(data)),
                Ok(_) | Err(_) => {}
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

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
