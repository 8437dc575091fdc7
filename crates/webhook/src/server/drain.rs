//! Reading what a client still sends after its request was refused.
//!
//! An HTTP/2 stream whose body nobody reads is reset, and some clients then forget the
//! response that came before; an HTTP/1.1 connection is closed, which resets it while the
//! client sends, and the response is lost.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Bytes, HttpBody};
use axum::http::Request;
use axum::http::header::EXPECT;
use http_body_util::BodyExt as _;
use hyper::body::{Frame, Incoming, SizeHint};
use tokio::runtime::Handle;
use tokio::time::timeout;

use super::limits::Limits;

/// A request body whose rest is read and discarded when it is dropped: up to twice the
/// largest body, and within the time that a body may take.
#[derive(Debug)]
pub(super) struct DrainedBody {
    /// `None` once it was dropped or failed.
    body: Option<Incoming>,
    /// Whether the client sends nothing before the body is polled ("100 Continue").
    waits: bool,
    limits: Limits,
}

impl DrainedBody {
    pub(super) fn wrap(request: Request<Incoming>, limits: Limits) -> Request<Self> {
        let waits = request.headers().contains_key(EXPECT);
        request.map(|body| Self {
            body: Some(body),
            waits,
            limits,
        })
    }
}

impl HttpBody for DrainedBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        self.waits = false;
        let Some(body) = &mut self.body else {
            return Poll::Ready(None);
        };
        let polled = Pin::new(body).poll_frame(cx);
        if matches!(polled, Poll::Ready(Some(Err(_)))) {
            self.body = None;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let hint = self.body.as_ref().map(HttpBody::size_hint);
        hint.unwrap_or_default()
    }
}

impl Drop for DrainedBody {
    fn drop(&mut self) {
        let Some(body) = self.body.take().filter(|body| !body.is_end_stream()) else {
            return;
        };
        // Outside of a runtime the connection is gone as well.
        if let Ok(runtime) = Handle::try_current()
            && !self.waits
        {
            runtime.spawn(drain(body, self.limits));
        }
    }
}

async fn drain(mut body: Incoming, limits: Limits) {
    let read = async {
        let mut left = limits.body.saturating_mul(2);
        while let Some(Ok(frame)) = body.frame().await {
            let length = frame.data_ref().map_or(0, Bytes::len);
            match left.checked_sub(length) {
                Some(rest) => left = rest,
                None => return,
            }
        }
    };
    // A client that still sends at the deadline has received its response.
    let _ = timeout(limits.body_read, read).await;
}
