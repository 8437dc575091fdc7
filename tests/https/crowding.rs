//! Clients that take all resources: other clients are answered nevertheless.

use std::time::Duration;

use futures_util::future::{join_all, try_join_all};
use hyper::StatusCode;
use hyper::body::Bytes;
use tokio::io::AsyncReadExt as _;

use crate::harness::{
    Http2, Running, STRANGER, body, options, part_of, read_to_end, send, start, start_limited,
    whole,
};
use crate::serving::{in_time, until};

const SHORT: Duration = Duration::from_millis(100);

/// The path of an API server's request with its longest timeout. A quarter of the timeout is for
/// waiting, and on a busy machine it takes seconds until a request gets its turn.
const API_SERVER: &str = "/validate?timeout=30s";

/// The number of streams that one HTTP/2 connection may have open.
const STREAMS: usize = 100;

async fn review(server: &Running, client: &reqwest::Client, length: usize) -> StatusCode {
    server.post(client, API_SERVER, body(length)).await.status()
}

/// Posts a body that begins with `part` and never ends, again and again after each refusal.
async fn send_halves(connection: &Http2, part: Bytes) {
    loop {
        let sent = part_of(part.clone());
        // The next request follows any answer.
        let _ = connection.post(API_SERVER, "application/json", sent).await;
    }
}

#[tokio::test]
async fn half_sent_bodies_take_no_slot() {
    let server = start_limited(|limits| limits.in_flight = 1).await;
    let stranger = server.http2().await;
    let halves = (0..STREAMS).map(|_| send_halves(&stranger, Bytes::from_static(b"{")));
    let reviews = async {
        server.until_metric("multi_attach_guard_requests_in_flight", 100.0).await;
        for client in [server.client(), server.http1_client()] {
            assert_eq!(review(&server, &client, 9_300).await, StatusCode::OK);
        }
    };
    tokio::select! {
        () = reviews => {}
        _ = join_all(halves) => {}
    }
}

#[tokio::test]
async fn what_would_wait_too_long_is_shed() {
    for limit in ["requests", "slots"] {
        let server = start_limited(|limits| match limit {
            "requests" => limits.requests = 1,
            _ => limits.in_flight = 1,
        })
        .await;
        let connection = server.http2().await;
        let post = async |text: &'static str| {
            let sent = whole(Bytes::from_static(text.as_bytes()));
            let path = "/validate?timeout=200ms";
            connection.post(path, "application/json", sent).await
        };
        let shed = until("there is no room", async || {
            let (status, text) = post("{}").await.unwrap();
            status == StatusCode::SERVICE_UNAVAILABLE && text.contains("Too many reviews")
        });
        tokio::select! {
            () = shed => {}
            answer = post("\"never\"") => panic!("{limit}: {answer:?}"),
        }
        // The client of the never-ending review has disconnected.
        until("there is room again", async || post("{}").await.unwrap().0 == StatusCode::OK).await;
    }
}

/// Every refused request is sent again at once, so their number stays constant: more than the
/// memory can hold, most of them small, and some for which the server assumes the largest body.
#[tokio::test]
async fn half_sent_bodies_on_30_connections_stop_nobody() {
    let server = start(options()).await;
    let connections =
        try_join_all((0..30).map(|_| server.try_http2_from(Some(STRANGER)))).await.unwrap();
    let halves = connections.iter().flat_map(|connection| {
        (0..STREAMS).map(move |stream| {
            let part = match stream {
                0 => body(100_000),
                _ => Bytes::from_static(b"{"),
            };
            send_halves(connection, part)
        })
    });
    let reviews = async {
        let shed = r#"multi_attach_guard_requests_refused_total{reason="memory"}"#;
        until("some are shed", async || server.metric(shed).await >= 1.0).await;
        for round in 0..3 {
            let several = [9_300, 300_000, 3_000_000].map(|length| {
                let server = &server;
                async move { (length, review(server, &server.client(), length).await) }
            });
            for (length, status) in join_all(several).await {
                assert_eq!(status, StatusCode::OK, "{length} bytes, round {round}");
            }
        }
    };
    tokio::select! {
        () = reviews => {}
        _ = join_all(halves) => {}
    }
}

#[tokio::test]
async fn bodies_that_wait_for_each_others_memory_all_come_to_an_end() {
    let server = start_limited(|limits| limits.large_memory = 4 * 1024 * 1024).await;
    let client = server.client();
    let reviews = (0..8).map(|_| review(&server, &client, 3_000_000));
    assert_eq!(join_all(reviews).await, [StatusCode::OK; 8]);
}

/// Idle connections from another address, and from the client's own, as behind a proxy.
#[tokio::test]
async fn idle_connections_make_room() {
    const OPEN: &str = "multi_attach_guard_connections";
    for from in [Some(STRANGER), None] {
        let server = start_limited(|limits| limits.connections = 16).await;
        let client = server.client();
        let mut idle = Vec::new();
        for _ in 0..24 {
            idle.push(server.try_http2_from(from).await.unwrap());
            assert_eq!(review(&server, &client, 100).await, StatusCode::OK);
        }
        let newcomer = server.http1_client();
        assert_eq!(review(&server, &newcomer, 100).await, StatusCode::OK);
        until("the others have closed", async || server.metric(OPEN).await <= 16.0).await;
        let (status, text) = server.admin_get("/readyz").await;
        assert_eq!(status, StatusCode::OK, "{text}");
    }
}

#[tokio::test]
async fn an_idle_connection_is_closed() {
    let server = start_limited(|limits| limits.idle = SHORT).await;
    let connection = server.http2().await;
    let sent = whole(body(100));
    let answer = connection.post("/mutate", "application/json", sent).await;
    assert_eq!(answer.unwrap(), (StatusCode::OK, "mutate 100".to_owned()));
    // Without a GOAWAY, because no request is under way.
    let _ = connection.ended().await;
    server.until_metric("multi_attach_guard_connections", 0.0).await;
}

/// Each response tells the client whether another request may follow.
#[tokio::test]
async fn an_old_connection_says_which_response_is_its_last() {
    const REQUEST: &[u8] = b"POST /mutate HTTP/1.1\r\nhost: guard\r\n\
        content-type: application/json\r\ncontent-length: 2\r\n\r\n{}";
    let server = start_limited(|limits| limits.age = SHORT).await;
    let mut stream = server.connect().await;
    let mut answered = Vec::new();
    loop {
        send(&mut stream, REQUEST).await;
        let mut answer = Vec::new();
        while !answer.ends_with(b"mutate 2") {
            let read = in_time("an answer comes", stream.read_buf(&mut answer)).await;
            assert_ne!(read.unwrap(), 0, "cut");
        }
        let text = String::from_utf8(answer).unwrap();
        assert!(text.starts_with("HTTP/1.1 200 "), "{text}");
        answered.push(text.contains("connection: close"));
        if answered.last() == Some(&true) {
            break;
        }
    }
    assert!(answered.len() > 1, "too early");
    assert_eq!(read_to_end(&mut stream).await, "");
}

#[tokio::test]
async fn an_early_refusal_arrives_while_the_body_is_still_coming() {
    let server = start(options()).await;
    let cases = [
        ("text/plain", 415, "Content-Type: application/json"),
        ("application/json", 413, "larger than 38797312 bytes"),
    ];
    for (content_type, status, sentence) in cases {
        let connection = server.http2().await;
        let large = whole(body(40_000_000));
        let (refusal, text) = connection.post("/mutate", content_type, large).await.unwrap();
        assert_eq!(refusal.as_u16(), status, "{text}");
        assert!(text.contains(sentence), "{text}");
        // The connection still works.
        let small = whole(body(100));
        let (success, _) = connection.post("/mutate", "application/json", small).await.unwrap();
        assert_eq!(success, StatusCode::OK);
        // The refusal does not wait for the rest of the body.
        let part = part_of(body(100_000));
        let (absence, _) = server.http2().await.post("/", content_type, part).await.unwrap();
        assert_eq!(absence, StatusCode::NOT_FOUND);
    }
}
