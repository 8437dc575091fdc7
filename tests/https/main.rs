//! The HTTPS server from its clients' point of view.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a failed step of a helper fails its test"
)]

mod clients;
mod crowding;
mod harness;
mod lifecycle;
#[path = "../harness/machine.rs"]
mod machine;
mod reload;
#[path = "../harness/serving.rs"]
mod serving;
mod stalling;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hyper::header::{ALLOW, CONTENT_TYPE};
use hyper::{Method, StatusCode, Version};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use webhook::server::{HealthSource, Readiness};

use harness::{body, connect, options, read_to_end, send, start, start_with, whole};

#[tokio::test]
async fn both_protocols_reach_both_webhooks() {
    let server = start(options()).await;
    let clients = [(server.client(), Version::HTTP_2), (server.http1_client(), Version::HTTP_11)];
    for (client, version) in clients {
        for (path, expected) in
            [("/mutate?timeout=10s", "mutate 100"), ("/validate", "validate 100")]
        {
            let response = server.post(&client, path, body(100)).await;
            assert_eq!(response.status(), StatusCode::OK, "{version:?} {path}");
            assert_eq!(response.version(), version, "{path}");
            assert_eq!(response.headers()[CONTENT_TYPE], "application/json");
            assert_eq!(response.text().await.unwrap(), expected, "{version:?}");
        }
    }
}

#[tokio::test]
async fn what_is_not_a_review_is_refused_with_a_sentence() {
    let server = start(options()).await;
    let [json, yaml] = ["application/json", "application/yaml"].map(Some);
    let cases = [
        (Method::POST, "/", json, 404, "/mutate and /validate"),
        (Method::POST, "/mutate/", json, 404, "/mutate and /validate"),
        (Method::GET, "/healthz", None, 404, "/mutate and /validate"),
        (Method::GET, "/mutate", json, 405, "POST"),
        (Method::PUT, "/validate", json, 405, "POST"),
        (Method::POST, "/mutate", None, 415, "application/json"),
        (Method::POST, "/validate", yaml, 415, "application/json"),
    ];
    for client in [server.client(), server.http1_client()] {
        for (method, path, content_type, status, sentence) in &cases {
            let case = format!("{method} {path} {content_type:?}");
            let mut request = client.request(method.clone(), server.url(path)).body("{}");
            if let Some(content_type) = content_type {
                request = request.header(CONTENT_TYPE, *content_type);
            }
            let response = request.send().await.unwrap();
            assert_eq!(response.status().as_u16(), *status, "{case}");
            let allow = response.headers().get(ALLOW).map(|v| v.to_str().unwrap());
            assert_eq!(allow, (*status == 405).then_some("POST"), "{case}");
            let text = response.text().await.unwrap();
            assert!(text.contains(sentence) && text.ends_with(".\n"), "{case}: {text}");
        }
        let head = client.head(server.url("/mutate")).send().await.unwrap();
        assert_eq!(head.status(), StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(head.text().await.unwrap(), "");
    }
}

#[tokio::test]
async fn headers_beyond_8_kib_are_refused_and_the_connection_goes_on() {
    let server = start(options()).await;
    let connection = server.http2().await;
    for (length, status) in [(7_000, 200), (9_000, 431), (7_000, 200)] {
        let path = format!("/mutate?{}", "a".repeat(length));
        let body = whole(body(100));
        let answer = connection.post(&path, "application/json", body).await;
        assert_eq!(answer.unwrap().0.as_u16(), status, "{length}");
    }
}

#[tokio::test]
async fn bodies_up_to_what_an_api_server_can_send_are_read() {
    let server = start(options()).await;
    let cases = [
        ("empty", 0, 200),
        ("one frame", 9_300, 200),
        ("above what needs no share of the memory", 100_000, 200),
        ("judged on a thread of its own", 300_000, 200),
        ("the largest ever seen", 17_045_426, 200),
        ("the largest possible", 37 * 1024 * 1024, 200),
        ("one byte more", 37 * 1024 * 1024 + 1, 413),
        ("40 MB", 40_000_000, 413),
    ];
    for client in [server.client(), server.http1_client()] {
        for (case, length, status) in cases {
            let body = match length {
                0 => Vec::new().into(),
                length => body(length),
            };
            let response = server.post(&client, "/mutate", body).await;
            assert_eq!(response.status().as_u16(), status, "{case}");
            let text = response.text().await.unwrap();
            let expected = match status {
                200 => format!("mutate {length}"),
                _ => "larger than 38797312 bytes".to_owned(),
            };
            assert!(text.contains(&expected), "{case}: {text}");
        }
    }
    let refused = r#"multi_attach_guard_requests_refused_total{reason="body_too_large"}"#;
    assert_eq!(server.metric(refused).await, 4.0);
}

#[tokio::test]
async fn a_body_announced_as_too_large_is_refused_before_it_is_sent() {
    let server = start(options()).await;
    let mut stream = server.connect().await;
    send(
        &mut stream,
        b"POST /mutate HTTP/1.1\r\nhost: guard\r\ncontent-type: application/json\r\n\
          expect: 100-continue\r\ncontent-length: 40000000\r\n\r\n",
    )
    .await;
    let answer = read_to_end(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
}

#[tokio::test]
async fn a_panic_is_answered_and_the_next_review_works() {
    let server = start(options()).await;
    for client in [server.client(), server.http1_client()] {
        for (body, status) in [("\"panic\"", 500), ("\"no review\"", 400), ("{}", 200)] {
            let response = server.post(&client, "/validate", body).await;
            assert_eq!(response.status().as_u16(), status, "{body}");
            if status == 500 {
                assert!(response.text().await.unwrap().contains("bug"));
            }
        }
    }
    assert_eq!(server.metric("multi_attach_guard_review_panics_total").await, 2.0);
}

#[tokio::test]
async fn garbage_in_place_of_a_handshake_disturbs_nobody() {
    let server = start(options()).await;
    let client = server.client();
    let review = async || server.post(&client, "/mutate", "{}").await.status();
    assert_eq!(review().await, StatusCode::OK);
    let mut garbage = TcpStream::connect(server.webhook).await.unwrap();
    garbage.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    let failures = "multi_attach_guard_tls_handshake_failures_total";
    server.until_metric(failures, 1.0).await;
    assert_eq!(review().await, StatusCode::OK);
    // A client that does not trust the certificate differs from garbage only in the log, and counts
    // too.
    let stranger = webhook_certs::SelfSigned::generate(&[], jiff::Timestamp::now());
    let refused = connect(server.webhook, &stranger.unwrap().ca_pem).await;
    assert!(refused.is_err());
    server.until_metric(failures, 2.0).await;
    assert_eq!(review().await, StatusCode::OK);
}

#[tokio::test]
async fn ready_when_every_condition_is() {
    let synced = Arc::new(AtomicBool::new(false));
    let view = {
        let synced = Arc::clone(&synced);
        move || {
            if synced.load(Ordering::Relaxed) {
                Readiness::degraded("view", "The connection is lost.")
            } else {
                Readiness::not_ready("view", "The cache is not full yet.")
            }
        }
    };
    let policy = || Readiness::ready("policy", "The policy is in force.");
    let sources: Vec<Arc<HealthSource>> = vec![Arc::new(view), Arc::new(policy)];
    let server = start_with(options(), sources).await;

    let (before, conditions) = server.admin_get("/readyz").await;
    assert_eq!(before, StatusCode::SERVICE_UNAVAILABLE);
    let expected = "ready server: The server takes requests.\n\
         not-ready view: The cache is not full yet.\n\
         ready policy: The policy is in force.\n";
    assert_eq!(conditions, expected);
    let ready = r#"multi_attach_guard_condition_ready{condition="view"}"#;
    assert_eq!(server.metric(ready).await, 0.0);

    synced.store(true, Ordering::Relaxed);
    let (status, text) = server.admin_get("/readyz").await;
    assert_eq!(status, StatusCode::OK, "{text}");
    assert!(text.contains("\ndegraded view: The connection is lost.\n"), "{text}");
    assert_eq!(server.metric(ready).await, 1.0);
    let degraded = r#"multi_attach_guard_condition_degraded{condition="view"}"#;
    assert_eq!(server.metric(degraded).await, 1.0);
    assert_eq!(server.admin_get("/healthz").await.0, StatusCode::OK);
}

/// Series before the first review, and after it.
const BEFORE: &str = r#"
reviews_total{endpoint="mutate",kind="Deployment",operation="update",dry_run="false",decision="patched"} 0
reviews_total{endpoint="validate",kind="Deployment",operation="create",dry_run="false",decision="unreadable"} 0
requests_refused_total{reason="busy"} 0
request_duration_seconds_count{endpoint="validate"} 0
requests_refused_total{reason="content_type"} 0
policy_reloads_total{result="failure"} 0
certificate_reloads_total{result="success"} 0
view_synced{resource="persistentvolumeclaims"} 0
requests_in_flight 0
review_panics_total 0
log_lines_lost_total 0
"#;
const AFTER: &str = r#"
reviews_total{endpoint="mutate",kind="Deployment",operation="create",dry_run="false",decision="allowed"} 1
findings_total{endpoint="mutate",kind="Deployment",operation="create",dry_run="false",rule="rolling-update-overlap",action="warn"} 1
request_duration_seconds_count{endpoint="mutate"} 1
view_synced{resource="persistentvolumeclaims"} 1
view_objects{resource="persistentvolumeclaims"} 7
"#;

#[tokio::test]
async fn series_exist_before_the_first_event() {
    let server = start(options()).await;
    let labels = [("resource", "persistentvolumeclaims")];
    drop(server.metrics.view_synced.get_or_create(&labels));
    drop(server.metrics.view_last_event.get_or_create(&labels));
    let has_all = async |expected: &str| {
        for line in expected.trim().lines() {
            let (series, value) = line.split_once(' ').unwrap();
            let found = server.metric(&format!("multi_attach_guard_{series}")).await;
            assert_eq!(found, value.parse::<f64>().unwrap(), "{series}");
        }
    };
    has_all(BEFORE).await;
    server.metrics.view_synced.get_or_create(&labels).set(1);
    server.metrics.view_objects.get_or_create(&labels).set(7);
    let response = server.post(&server.client(), "/mutate", "{}").await;
    assert_eq!(response.status(), StatusCode::OK);
    has_all(AFTER).await;
}
