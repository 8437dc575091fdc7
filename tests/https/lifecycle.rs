//! Stopping in order, with the same handle that the signals use.

use std::time::Duration;

use hyper::StatusCode;
use tokio::net::TcpStream;
use tokio::time::timeout;
use webhook::server::{Metrics, Server, ServerError, Stopped};
use webhook_certs::{Certificates, SelfSigned};

use crate::harness::{DEADLINE, Echo, Running, options, read_to_end, send, start, until};
use crate::machine::patient;

/// Headers and one of two bytes of a review.
const HALF: &[u8] = b"POST /mutate HTTP/1.1\r\nhost: guard\r\n\
    content-type: application/json\r\ncontent-length: 2\r\n\r\n{";

async fn stopped(server: Running) -> Stopped {
    timeout(patient(DEADLINE), server.stopped)
        .await
        .expect("the server stops")
        .unwrap()
        .unwrap()
}

async fn until_not_ready(server: &Running) {
    until("readiness is off", async || {
        let (status, text) = server.admin_get("/readyz").await;
        status == StatusCode::SERVICE_UNAVAILABLE && text.starts_with("not-ready server: ")
    })
    .await;
}

#[tokio::test]
async fn readiness_goes_first_and_a_second_request_ends_all() {
    let mut options = options();
    options.shutdown_delay = Duration::from_secs(3600);
    let server = start(options).await;
    server.shutdown.request();
    until_not_ready(&server).await;
    let response = server.post(&server.client(), "/mutate", "{}").await;
    assert_eq!(response.status(), StatusCode::OK, "still serving");
    server.shutdown.request();
    assert_eq!(stopped(server).await, Stopped::Aborted);
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

#[tokio::test]
async fn a_port_in_use_is_named_with_its_flag() {
    let server = start(options()).await;
    for (flag, taken) in [("--listen", server.webhook), ("--admin", server.admin)] {
        let mut second = options();
        match flag {
            "--listen" => second.listen = taken,
            _ => second.admin = taken,
        }
        let made = SelfSigned::generate(&[], jiff::Timestamp::now()).unwrap();
        let certificates = std::sync::Arc::new(Certificates::new(made.pair));
        let metrics = Metrics::new(&[]);
        let error = Server::start(&second, certificates, Echo, Vec::new(), metrics)
            .await
            .unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains(flag) && text.contains(&taken.to_string()),
            "{text}"
        );
        assert!(matches!(error, ServerError::Listen { .. }));
    }
}
