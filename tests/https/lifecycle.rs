//! Orderly shutdown, with the same handle that the signals use (`tests/serve/lifecycle.rs`).

use std::time::Duration;

use hyper::StatusCode;
use tokio::net::TcpStream;
use webhook::server::Stopped;

use crate::harness::{Running, options, read_to_end, send, start};
use crate::serving::{in_time, until};

/// Headers and one of two bytes of a review.
const HALF: &[u8] = b"POST /mutate HTTP/1.1\r\nhost: guard\r\n\
    content-type: application/json\r\ncontent-length: 2\r\n\r\n{";

async fn stopped(server: Running) -> Stopped {
    let stopped = in_time("the server stops", server.stopped).await;
    stopped.unwrap().unwrap()
}

async fn until_not_ready(server: &Running) {
    until("readiness is off", async || {
        let (status, text) = server.admin_get("/readyz").await;
        status == StatusCode::SERVICE_UNAVAILABLE && text.starts_with("not-ready server: ")
    })
    .await;
}

#[tokio::test]
async fn requests_in_flight_are_answered_and_new_ones_refused() {
    let server = start(options()).await;
    let mut busy = server.connect().await;
    send(&mut busy, HALF).await;
    let in_flight = "multi_attach_guard_requests_in_flight";
    server.until_metric(in_flight, 1.0).await;
    server.shutdown.request();
    until("new connections are refused", async || {
        TcpStream::connect(server.webhook).await.is_err()
    })
    .await;
    until_not_ready(&server).await;
    send(&mut busy, b"}").await;
    let answer = read_to_end(&mut busy).await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert!(answer.ends_with("mutate 2"), "{answer}");
    assert_eq!(stopped(server).await, Stopped::Drained);
}

#[tokio::test]
async fn idle_connections_do_not_hold_the_drain_up() {
    let server = start(options()).await;
    for client in [server.client(), server.http1_client()] {
        let request = client.post(server.url("/mutate")).body("{}");
        request.send().await.unwrap();
    }
    let _silent = server.connect().await;
    server.shutdown.request();
    assert_eq!(stopped(server).await, Stopped::Drained);
}

#[tokio::test]
async fn the_drain_has_a_deadline() {
    let mut options = options();
    options.drain_timeout = Duration::from_millis(50);
    let server = start(options).await;
    let mut busy = server.connect().await;
    send(&mut busy, HALF).await;
    let in_flight = "multi_attach_guard_requests_in_flight";
    server.until_metric(in_flight, 1.0).await;
    server.shutdown.request();
    assert_eq!(stopped(server).await, Stopped::Cut(1));
}
