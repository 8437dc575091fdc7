//! Watches in protobuf for a client that reads JSON.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use futures_util::{StreamExt, TryStreamExt};
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderValue, Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Body, Bytes, Frame};
use tokio_util::codec::{FramedRead, LengthDelimitedCodec};
use tokio_util::io::StreamReader;
use tower_service::Service;

use super::{MalformedMessage, event, object};

/// Protobuf, or JSON if the API server or a proxy does not support it.
const ACCEPTED: HeaderValue =
    HeaderValue::from_static("application/vnd.kubernetes.protobuf;stream=watch, application/json");

/// The prefix of the content type of protobuf.
const PROTOBUF: &[u8] = b"application/vnd.kubernetes.protobuf";

/// The most bytes in one event. An object may have 3 MiB (`MaxRequestBodyBytes` in
/// `k8s.io/apiserver`, `pkg/server/config.go`), and an update twice that.
const LONGEST_EVENT: usize = 16 << 20;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Requests watches in protobuf and translates them into JSON. If a response is malformed, that
/// watch ends with an error, and later watches are requested in JSON.
pub struct InProtobuf<S> {
    inner: S,
    is_unreadable: Arc<AtomicBool>,
}

impl<S> InProtobuf<S> {
    /// A layer around `inner`, which sends the requests.
    pub fn new(inner: S) -> Self {
        Self {
            inner,
            is_unreadable: Arc::default(),
        }
    }
}

impl<S, R, B> Service<Request<R>> for InProtobuf<S>
where
    S: Service<Request<R>, Response = Response<B>>,
    S::Future: Send + 'static,
    B: Body<Data = Bytes, Error: Into<Failure>> + Send + 'static,
{
    type Response = Response<UnsyncBoxBody<Bytes, Failure>>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<R>) -> Self::Future {
        let query = request.uri().query().unwrap_or_default();
        let is_watch = query.split('&').any(|parameter| parameter == "watch=true");
        if is_watch && !self.is_unreadable.load(Ordering::Relaxed) {
            request.headers_mut().insert(ACCEPT, ACCEPTED);
        }
        let reader = FrameReader {
            path: request.uri().path().to_owned(),
            is_unreadable: Arc::clone(&self.is_unreadable),
        };
        let response = self.inner.call(request);
        Box::pin(async move {
            let response = response.await?;
            let content_type = response.headers().get(CONTENT_TYPE);
            let is_protobuf =
                content_type.is_some_and(|value| value.as_bytes().starts_with(PROTOBUF));
            let is_success = response.status().is_success();
            Ok(response.map(|body| match (is_protobuf, is_success) {
                (false, _) => body.map_err(Into::into).boxed_unsync(),
                (true, true) => reader.events(body),
                (true, false) => reader.refusal(body),
            }))
        })
    }
}

/// Translates one response.
struct FrameReader {
    /// The path of the request.
    path: String,
    is_unreadable: Arc<AtomicBool>,
}

impl FrameReader {
    /// Translates events, each with its length before it, into lines of JSON.
    fn events<B>(self, body: B) -> UnsyncBoxBody<Bytes, Failure>
    where
        B: Body<Data = Bytes, Error: Into<Failure>> + Send + 'static,
    {
        let bytes = body.into_data_stream().map_err(io::Error::other);
        let frames = LengthDelimitedCodec::builder()
            .length_field_length(4)
            .max_frame_length(LONGEST_EVENT)
            .new_codec();
        let lines = FramedRead::new(StreamReader::new(bytes), frames).map(move |frame| {
            let json = match frame {
                Ok(frame) => event(&frame),
                Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                    Err(MalformedMessage("an event larger than 16 MiB"))
                }
                Err(error) => return Err(error.into()),
            };
            let mut line = self.check(json)?;
            line.push(b'\n');
            Ok(Frame::data(line.into()))
        });
        StreamBody::new(lines).boxed_unsync()
    }

    /// Translates the `Status` of a refusal.
    fn refusal<B>(self, body: B) -> UnsyncBoxBody<Bytes, Failure>
    where
        B: Body<Data = Bytes, Error: Into<Failure>> + Send + 'static,
    {
        let status = async move {
            let bytes = body.collect().await.map_err(Into::into)?.to_bytes();
            Ok::<_, Failure>(Frame::data(self.check(object(&bytes))?.into()))
        };
        StreamBody::new(futures_util::stream::once(status)).boxed_unsync()
    }

    /// Switches to JSON after a malformed message.
    fn check(&self, json: Result<Vec<u8>, MalformedMessage>) -> Result<Vec<u8>, Failure> {
        json.map_err(|error| {
            self.is_unreadable.store(true, Ordering::Relaxed);
            tracing::warn!(path = self.path, %error, "A protobuf watch is malformed; requesting JSON from now on.");
            error.into()
        })
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::future::{Ready, ready};

    use http_body_util::Full;

    use super::*;

    /// Always responds the same, and records which content type was requested.
    struct Server {
        status: u16,
        content_type: &'static str,
        body: Vec<u8>,
        accepted: Vec<Option<HeaderValue>>,
    }

    impl Service<Request<()>> for Server {
        type Response = Response<Full<Bytes>>;
        type Error = Infallible;
        type Future = Ready<Result<Self::Response, Infallible>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, request: Request<()>) -> Self::Future {
            self.accepted.push(request.headers().get(ACCEPT).cloned());
            let answer = Response::builder()
                .status(self.status)
                .header(CONTENT_TYPE, self.content_type)
                .body(Full::new(self.body.clone().into()));
            ready(Ok(answer.unwrap()))
        }
    }

    const STREAM: &str = "application/vnd.kubernetes.protobuf;stream=watch";

    fn server(status: u16, content_type: &'static str, body: Vec<u8>) -> InProtobuf<Server> {
        InProtobuf::new(Server {
            status,
            content_type,
            body,
            accepted: Vec::new(),
        })
    }

    async fn ask(server: &mut InProtobuf<Server>, query: &str) -> Result<String, String> {
        let request = Request::get(format!("/api/v1/nodes?{query}")).body(());
        let answer = server.call(request.unwrap()).await.unwrap();
        let body = answer.into_body().collect().await;
        let bytes = body.map_err(|error| error.to_string())?.to_bytes();
        Ok(String::from_utf8(bytes.to_vec()).unwrap())
    }

    /// A field with bytes, all of them short.
    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        let head = [number << 3 | 2, u8::try_from(bytes.len()).unwrap()];
        [&head[..], bytes].concat()
    }

    fn object_of(kind: &str, raw: &[u8]) -> Vec<u8> {
        let kinds = [field(1, b"v1"), field(2, kind.as_bytes())].concat();
        [b"k8s\0".to_vec(), field(1, &kinds), field(2, raw)].concat()
    }

    fn frame(kind: &str, object: &[u8]) -> Vec<u8> {
        let event = [field(1, kind.as_bytes()), field(2, &field(1, object))].concat();
        let length = u32::try_from(event.len()).unwrap().to_be_bytes();
        [&length[..], &event].concat()
    }

    #[tokio::test]
    async fn watches_are_requested_in_protobuf_and_translated() {
        let node = |name: &str| object_of("Node", &field(1, &field(1, name.as_bytes())));
        let gone = object_of("Status", &field(3, b"too old"));
        let frames = [
            frame("ADDED", &node("a")),
            frame("DELETED", &node("b")),
            frame("ERROR", &gone),
        ];
        let mut server = server(200, STREAM, frames.concat());
        let said = ask(&mut server, "limit=1&watch=true&timeoutSeconds=9").await;
        let lines = [
            r#"{"type":"ADDED","object":{"apiVersion":"v1","kind":"Node","metadata":{"name":"a"}}}"#,
            r#"{"type":"DELETED","object":{"apiVersion":"v1","kind":"Node","metadata":{"name":"b"}}}"#,
            r#"{"type":"ERROR","object":{"apiVersion":"v1","kind":"Status","message":"too old"}}"#,
            "",
        ];
        assert_eq!(said.unwrap(), lines.join("\n"));
        assert_eq!(server.inner.accepted, [Some(ACCEPTED)]);
    }

    #[tokio::test]
    async fn a_refusal_is_translated() {
        let status = object_of("Status", &field(3, b"nodes are forbidden"));
        let mut server = server(403, "application/vnd.kubernetes.protobuf", status);
        let said = ask(&mut server, "watch=true").await.unwrap();
        assert!(
            said.contains(r#""message":"nodes are forbidden""#),
            "{said}"
        );
    }

    #[tokio::test]
    async fn json_is_not_changed() {
        let mut server = server(200, "application/json", b"{}".to_vec());
        for query in ["watch=true", "limit=500"] {
            assert_eq!(ask(&mut server, query).await.unwrap(), "{}");
        }
        assert_eq!(server.inner.accepted, [Some(ACCEPTED), None]);
    }

    #[tokio::test]
    async fn json_is_requested_after_a_malformed_response() {
        let no_object = "The API server sent an object that is not encoded as protobuf.";
        let too_long = "The API server sent an event larger than 16 MiB.";
        let cases = [
            (200, frame("ADDED", b"{}"), no_object),
            (200, b"<html>".to_vec(), too_long),
            (403, b"<html>".to_vec(), no_object),
        ];
        for (status, body, expected) in cases {
            let mut server = server(status, STREAM, body);
            for _ in 0..2 {
                let error = ask(&mut server, "watch=true").await.unwrap_err();
                assert_eq!(error, expected);
            }
            assert_eq!(server.inner.accepted, [Some(ACCEPTED), None], "{expected}");
        }
    }

    #[tokio::test]
    async fn protobuf_is_requested_again_after_a_broken_connection() {
        let whole = frame("ADDED", &object_of("Node", b""));
        let mut server = server(200, STREAM, whole[..9].to_vec());
        for _ in 0..2 {
            let error = ask(&mut server, "watch=true").await.unwrap_err();
            assert_eq!(error, "bytes remaining on stream");
        }
        assert_eq!(server.inner.accepted, [Some(ACCEPTED), Some(ACCEPTED)]);
    }
}
