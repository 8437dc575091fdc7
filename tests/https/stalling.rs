//! Clients that stall: each stage has its own deadline. `crowding` tests that others are answered
//! meanwhile.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::harness::{
    ENDS, Running, body, connect_with, options, read_to_end, send, speaks_http2, start,
    start_limited, whole,
};
use crate::serving::in_time;

const SHORT: Duration = Duration::from_millis(100);

async fn start_impatient() -> Running {
    start_limited(|limits| {
        limits.headers = SHORT;
        limits.body_read = SHORT;
    })
    .await
}

#[tokio::test]
async fn a_stalled_client_is_let_go() {
    let cases: [(&str, &[u8], &str); 3] = [
        ("silence after the handshake", b"", ""),
        ("half the headers", b"POST /mutate HTTP/1.1\r\nhost: guard\r\n", ""),
        (
            "half a body",
            b"POST /mutate HTTP/1.1\r\nhost: guard\r\ncontent-type: application/json\r\n\
              content-length: 100\r\nconnection: close\r\n\r\n{",
            "HTTP/1.1 408 ",
        ),
    ];
    let server = start_impatient().await;
    for (case, bytes, answer) in cases {
        let mut stream = server.connect().await;
        send(&mut stream, bytes).await;
        let text = read_to_end(&mut stream).await;
        assert!(text.starts_with(answer), "{case}: {text}");
        assert_eq!(text.is_empty(), answer.is_empty(), "{case}: {text}");
    }
    server.until_metric("multi_attach_guard_connections", 0.0).await;
}

#[tokio::test]
async fn a_client_that_stalls_before_the_handshake_is_let_go() {
    let server = start_limited(|limits| limits.handshake = SHORT).await;
    let mut stream = TcpStream::connect(server.webhook).await.unwrap();
    let mut said = Vec::new();
    in_time(ENDS, stream.read_to_end(&mut said)).await.unwrap();
    assert!(said.is_empty());
}

/// The protocol is chosen in the handshake, so this client speaks HTTP/2.
#[tokio::test]
async fn a_client_that_stalls_in_the_http2_preface_is_let_go() {
    let server = start_impatient().await;
    let connected = connect_with(server.webhook, speaks_http2(&server.ca_pem), None).await;
    let mut stream = connected.unwrap();
    send(&mut stream, b"PRI * HTTP/2").await;
    let mut said = Vec::new();
    // The connection may end in any way.
    let _ = in_time(ENDS, stream.read_to_end(&mut said)).await;
    server.until_metric("multi_attach_guard_connections", 0.0).await;
}

#[tokio::test]
async fn a_client_that_reads_no_answers_is_let_go() {
    let server = start_impatient().await;
    let mut deaf = server.connect().await;
    let requests = b"GET / HTTP/1.1\r\nhost: guard\r\n\r\n".repeat(100);
    // The answers fill every buffer to the client; then the server reads no more requests, and
    // these fill the buffers to the server.
    let sending = async { while deaf.write_all(&requests).await.is_ok() {} };
    in_time(ENDS, sending).await;
}

/// Over HTTP/2 a client says how much of an answer it takes.
#[tokio::test]
async fn a_client_that_takes_nothing_of_its_answer_is_let_go() {
    let server = start(options()).await;
    let connection = server.http2_that_takes(0).await;
    let review = connection.head_of("/validate", "application/json", whole(body(9)));
    let _unread = review.await.unwrap();
    // The connection is cut, without a GOAWAY.
    let _ = connection.ended().await;
}
