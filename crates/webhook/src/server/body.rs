//! The body of a review, as an extractor: read within the limits on size, time and memory.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{BodyDataStream, Bytes, HttpBody as _};
use axum::extract::{FromRequest, Request};
use axum::http::header::{CONTENT_TYPE, EXPECT};
use axum::http::{HeaderMap, Uri};
use futures_util::StreamExt as _;
use jiff::SignedDuration;
use tokio::time::{Instant, timeout, timeout_at};

use super::connection::Connection;
use super::error::RequestError;
use super::limits::{Limits, MAX_BODY};
use super::memory::{Charge, MemoryLimit, SMALL_BODY};
use super::review::Reviewer;
use super::routes::Reviews;

/// The time that an API server waits for an answer if it does not say otherwise.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// The longest time that an API server waits (`timeoutSeconds` of a webhook).
pub(super) const MAX_TIMEOUT: Duration = Duration::from_secs(30);

/// A review waits for memory, and for a slot to be judged in, for at most its caller's timeout
/// divided by this number.
const QUEUE_SHARE: u32 = 4;

/// The time after which a body without new data has stalled. An API server sends all of it in
/// microseconds.
const STALLED: Duration = Duration::from_millis(250);

/// The time that the client waits, or `longest` if that is shorter. An API server gives it in the
/// query of the path, such as `/mutate?timeout=10s`.
fn client_timeout(uri: &Uri, longest: Duration) -> Duration {
    uri.query()
        .into_iter()
        .flat_map(|query| query.split('&'))
        .find_map(|pair| pair.strip_prefix("timeout="))
        .and_then(|value| value.parse::<SignedDuration>().ok())
        .and_then(|given| given.try_into().ok())
        .map_or(DEFAULT_TIMEOUT, |given: Duration| given.min(MAX_TIMEOUT))
        .min(longest)
}

/// Whether the content is `application/json`, in any case and with any parameters.
fn is_json(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).is_some_and(|value| {
        let essence = value.split(';').next().unwrap_or_default();
        essence.trim().eq_ignore_ascii_case("application/json")
    })
}

/// The whole body of a review, with the memory that it holds.
pub(super) struct ReviewBody {
    pub(super) bytes: Vec<u8>,
    pub(super) charge: Charge,
    /// The time at which the client stops waiting for its answer.
    pub(super) deadline: Instant,
    /// The longest time for which the review may wait for others.
    pub(super) max_queue_wait: Duration,
    /// The address of the client.
    pub(super) client: Option<IpAddr>,
}

impl<R: Reviewer> FromRequest<Arc<Reviews<R>>> for ReviewBody {
    type Rejection = RequestError;

    async fn from_request(
        request: Request,
        reviews: &Arc<Reviews<R>>,
    ) -> Result<Self, RequestError> {
        let limits = &reviews.limits;
        let started = Instant::now();
        let wait = client_timeout(request.uri(), limits.timeout);
        let max_queue_wait = wait / QUEUE_SHARE;
        let client =
            request.extensions().get::<Arc<Connection>>().map(|connection| connection.client);
        let (head, body) = request.into_parts();
        let mut data = body.into_data_stream();
        let read = async {
            if !is_json(&head.headers) {
                return Err(RequestError::ContentType);
            }
            let until = started + wait.min(limits.body_read);
            let whole = read_body(&mut data, &reviews.memory, max_queue_wait);
            timeout_at(until, whole).await.unwrap_or(Err(RequestError::TooSlow))
        };
        let (bytes, charge) = read.await.inspect_err(|_| discard(&head.headers, data, limits))?;
        Ok(Self { bytes, charge, deadline: started + wait, max_queue_wait, client })
    }
}

/// Reads and discards the data that a client still sends after its request was refused: up to twice
/// the largest body, and within the time that a body may take.
///
/// An HTTP/2 stream whose body is not read is reset, and some clients then forget the response that
/// came before. An HTTP/1.1 connection is closed, which resets it while the client sends, and the
/// response is lost.
pub(super) fn discard(headers: &HeaderMap, mut data: BodyDataStream, limits: &Limits) {
    // With "Expect: 100-continue" the client sends nothing before the body is polled.
    if data.is_end_stream() || headers.contains_key(EXPECT) {
        return;
    }
    let mut left = 2 * MAX_BODY;
    let read = async move {
        while let Some(Ok(piece)) = data.next().await {
            let Some(rest) = left.checked_sub(piece.len()) else {
                return;
            };
            left = rest;
        }
    };
    // A client that still sends at the deadline has received its response.
    tokio::spawn(timeout(limits.body_read, read));
}

/// Reads a body of at most [`MAX_BODY`] bytes, which waits for its memory.
async fn read_body(
    data: &mut BodyDataStream,
    memory: &MemoryLimit,
    max_queue_wait: Duration,
) -> Result<(Vec<u8>, Charge), RequestError> {
    let declared =
        data.size_hint().exact().map(|length| usize::try_from(length).unwrap_or(usize::MAX));
    if declared.is_some_and(|length| length > MAX_BODY) {
        return Err(RequestError::TooLarge);
    }
    let mut charge = memory.admit(declared, max_queue_wait).await.ok_or(RequestError::NoMemory)?;
    let mut bytes = Vec::with_capacity(declared.unwrap_or(0).min(SMALL_BODY));
    let mut admitted = SMALL_BODY;
    while let Some(piece) = next_piece(data, memory).await? {
        let length = bytes.len() + piece.len();
        if length > MAX_BODY {
            return Err(RequestError::TooLarge);
        }
        if length > admitted {
            admitted = declared.unwrap_or((2 * length).min(MAX_BODY));
            memory
                .admit_large(&mut charge, admitted, max_queue_wait)
                .await
                .ok_or(RequestError::NoMemory)?;
            // No more is reserved than the memory that was admitted.
            bytes.reserve_exact(admitted - bytes.len());
        }
        bytes.extend_from_slice(&piece);
    }
    Ok((bytes, charge))
}

/// The next non-empty piece of data. A body that stalls while memory is short is shed.
async fn next_piece(
    data: &mut BodyDataStream,
    memory: &MemoryLimit,
) -> Result<Option<Bytes>, RequestError> {
    loop {
        match timeout(STALLED, data.next()).await {
            Err(_) if memory.is_short() => return Err(RequestError::NoMemory),
            Err(_) => {}
            Ok(None) => return Ok(None),
            Ok(Some(Err(_))) => return Err(RequestError::Interrupted),
            Ok(Some(Ok(piece))) if piece.is_empty() => {}
            Ok(Some(Ok(piece))) => return Ok(Some(piece)),
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
            let given = client_timeout(&uri.parse().unwrap(), MAX_TIMEOUT);
            assert_eq!(given, expected, "{uri}");
        }
        // The operator's limit holds whatever the client says.
        let longest = Duration::from_secs(5);
        let uri = "/mutate?timeout=30s".parse().unwrap();
        assert_eq!(client_timeout(&uri, longest), longest);
    }
}
