//! Clients that stall: each stage has its own deadline, and one client never
//! stops the others.

use std::time::Duration;

use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::harness::{DEADLINE, body, connect, options, read_to_end, send, start, until};

const SHORT: Duration = Duration::from_millis(100);

#[tokio::test]
async fn a_stalled_client_is_let_go() {
    let cases: [(&str, &[u8], &str); 5] = [
        ("silence after the handshake", b"", ""),
        ("half the HTTP/2 preface", b"PRI * HTTP/2", ""),
        ("half a request line", b"POST /mut", ""),
        (
            "headers without an end",
            b"POST /mutate HTTP/1.1\r\nhost: guard\r\n",
            "",
        ),
        (
            "half a body",
            b"POST /mutate HTTP/1.1\r\nhost: guard\r\ncontent-type: application/json\r\n\
              content-length: 100\r\nconnection: close\r\n\r\n{",
            "HTTP/1.1 408 ",
        ),
    ];
    let mut options = options();
    options.limits.headers = SHORT;
    options.limits.body_read = SHORT;
    let server = start(options).await;
    for (case, bytes, answer) in cases {
        let mut stream = server.connect().await;
        send(&mut stream, bytes).await;
        let text = read_to_end(&mut stream).await;
        assert!(text.starts_with(answer), "{case}: {text}");
        assert_eq!(text.is_empty(), answer.is_empty(), "{case}: {text}");
    }
    server
        .until_metric("multi_attach_guard_connections", 0.0)
        .await;
}

#[tokio::test]
async fn a_client_that_never_shakes_hands_is_let_go() {
    let mut options = options();
    options.limits.handshake = SHORT;
    let server = start(options).await;
    let mut silent = TcpStream::connect(server.webhook).await.unwrap();
    let read = timeout(DEADLINE, silent.read(&mut [0])).await;
    assert_eq!(read.expect("the server ends the connection").unwrap(), 0);
}

#[tokio::test]
async fn a_client_that_reads_no_answers_is_let_go() {
    let mut options = options();
    options.limits.write_stall = SHORT;
    let server = start(options).await;
    let mut deaf = server.connect().await;
    let requests = b"GET / HTTP/1.1\r\nhost: guard\r\n\r\n".repeat(100);
    // The answers fill every buffer on the way back; then the server reads no
    // more requests, and these fill the buffers on the way there.
    let sending = async { while deaf.write_all(&requests).await.is_ok() {} };
    timeout(DEADLINE, sending)
        .await
        .expect("the server ends the connection");
}

#[tokio::test]
async fn too_many_connections_are_closed_and_room_is_found_again() {
    let mut options = options();
    options.limits.connections = 1;
    let server = start(options).await;
    let first = server.connect().await;
    let second = connect(server.webhook, &server.ca_pem).await;
    assert!(second.is_err(), "there is room for one");
    let refused = "multi_attach_guard_connections_refused_total";
    assert!(server.metric(refused).await >= 1.0);
    drop(first);
    until("there is room again", async || {
        connect(server.webhook, &server.ca_pem).await.is_ok()
    })
    .await;
}

#[tokio::test]
async fn large_bodies_share_the_memory_and_leave_small_ones_alone() {
    let mut options = options();
    options.limits.body_memory = 0;
    options.limits.wait = SHORT;
    let server = start(options).await;
    // The memory always fits one body of the largest size, so this one, of
    // which only a part arrives, takes more than half of it.
    let mut holder = server.connect().await;
    send(
        &mut holder,
        b"POST /mutate HTTP/1.1\r\nhost: guard\r\ncontent-type: application/json\r\n\
          content-length: 20000000\r\n\r\n",
    )
    .await;
    send(&mut holder, &body(100_000)).await;

    let client = server.client();
    let review = async |length| {
        let response = client
            .post(server.url("/mutate"))
            .header(CONTENT_TYPE, "application/json")
            .body(body(length))
            .send()
            .await;
        response.unwrap().status()
    };
    until("a second large body finds no memory", async || {
        review(20_000_000).await == StatusCode::SERVICE_UNAVAILABLE
    })
    .await;
    assert_eq!(review(9_300).await, StatusCode::OK);
    drop(holder);
    until("the memory is free again", async || {
        review(20_000_000).await == StatusCode::OK
    })
    .await;
}
