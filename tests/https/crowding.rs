//! Clients that take all there is: others are answered all the same.

use std::time::Duration;

use hyper::body::{Body as _, Bytes, Incoming};
use hyper::header::CONTENT_TYPE;
use hyper::{Response, StatusCode};

use crate::harness::{Http2, Running, STRANGER, Sent, body, options, start, until};

const SHORT: Duration = Duration::from_millis(100);

/// What an API server asks, with the longest timeout that it gives: a quarter of it is for
/// waiting, and on a machine that is busy seconds pass before anybody gets a turn.
const API_SERVER: &str = "/validate?timeout=30s";

async fn review(server: &Running, client: &reqwest::Client, length: usize) -> StatusCode {
    let response = client
        .post(server.url(API_SERVER))
        .header(CONTENT_TYPE, "application/json")
        .body(body(length))
        .send()
        .await;
    response.unwrap().status()
}

/// Leaves as many bodies half-sent on one connection, each of which began with
/// `part`.
async fn leave_half_sent(connection: &Http2, count: usize, part: &Bytes) {
    for _ in 0..count {
        let sent = Sent::part_of(part.clone());
        tokio::spawn(connection.post("/validate?timeout=30s", "application/json", sent));
    }
}

#[tokio::test]
async fn half_sent_bodies_take_no_slot() {
    let mut options = options();
    options.limits.in_flight = 1;
    let server = start(options).await;
    let stranger = server.http2().await;
    leave_half_sent(&stranger, 150, &Bytes::from_static(b"{")).await;
    server
        .until_metric("multi_attach_guard_requests_in_flight", 150.0)
        .await;
    for client in [server.client(), server.http1_client()] {
        assert_eq!(review(&server, &client, 9_300).await, StatusCode::OK);
    }
}

#[tokio::test]
async fn half_sent_bodies_give_their_memory_to_whole_ones() {
    let mut options = options();
    options.limits.body_memory = 1024 * 1024;
    let server = start(options).await;
    let client = server.client();
    let stranger = server.http2().await;
    // More than there is room for: in parts of one each, more than may wait for the rest.
    leave_half_sent(&stranger, 25, &body(50_000)).await;
    until("the memory is used up", async || {
        server.metric("multi_attach_guard_requests_in_flight").await >= 15.0
    })
    .await;
    for length in [9_300, 900_000, 5_000_000] {
        let status = review(&server, &client, length).await;
        assert_eq!(status, StatusCode::OK, "{length} bytes");
    }
    let shed = r#"multi_attach_guard_requests_refused_total{reason="memory"}"#;
    until("some gave way", async || server.metric(shed).await >= 1.0).await;
}

/// What is refused on the one connection is sent again at once, so that there are always as
/// many. Who has another connection waits with them, but not for them.
#[tokio::test]
async fn a_connection_full_of_half_sent_bodies_is_not_before_the_others() {
    let mut options = options();
    options.limits.body_memory = 1024 * 1024;
    let server = start(options).await;
    let stranger = server.http2().await;
    let part = body(50_000);
    let crowding = futures_util::future::join_all((0..80).map(|_| async {
        loop {
            let sent = Sent::part_of(part.clone());
            let _ = stranger
                .post("/validate?timeout=30s", "application/json", sent)
                .await;
        }
    }));
    let reviews = async {
        until("the memory is used up", async || {
            server.metric("multi_attach_guard_requests_in_flight").await >= 15.0
        })
        .await;
        for round in 0..3 {
            let reviews = [9_300, 300_000, 900_000, 3_000_000].map(|length| {
                let server = &server;
                async move { (length, review(server, &server.client(), length).await) }
            });
            for (length, status) in futures_util::future::join_all(reviews).await {
                assert_eq!(status, StatusCode::OK, "{length} bytes, round {round}");
            }
        }
    };
    tokio::select! {
        () = reviews => {}
        _ = crowding => {}
    }
}

#[tokio::test]
async fn answers_that_nobody_takes_make_room_for_others() {
    let mut options = options();
    options.limits.body_memory = 2_000_000;
    let server = start(options).await;
    let client = server.client();
    let stranger = server.http2_that_takes(1).await;
    let much = || Sent::whole(Bytes::from_static(b"\"much\""));
    // As much as one connection may hold.
    let mut untaken = Vec::new();
    for _ in 0..14 {
        let answer = stranger
            .head_of(API_SERVER, "application/json", much())
            .await
            .unwrap();
        assert_eq!(answer.status(), StatusCode::OK);
        untaken.push(answer);
    }
    for length in [100, 9_300] {
        assert_eq!(review(&server, &client, length).await, StatusCode::OK);
    }
    // A large one needs more than is left.
    until("who takes nothing has to go", async || {
        assert_eq!(review(&server, &client, 1_900_000).await, StatusCode::OK);
        server.metric("multi_attach_guard_connections").await == 1.0
    })
    .await;
}

#[tokio::test]
async fn answers_that_are_small_and_not_taken_hold_no_more_than_there_is() {
    let mut options = options();
    options.limits.body_memory = 1024 * 1024;
    // A review, and what is refused at once.
    for (path, ok) in [
        (API_SERVER, StatusCode::OK),
        ("/elsewhere", StatusCode::NOT_FOUND),
    ] {
        let server = start(options.clone()).await;
        let client = server.client();
        let stranger = server.http2_that_takes(0).await;
        let ask = || stranger.head_of(path, "application/json", Sent::whole(body(9)));
        // Where it asks for more than it may hold, its own connection has to make room.
        let answers = futures_util::future::join_all((0..100).map(|_| ask())).await;
        let waits =
            |answer: &&Response<Incoming>| answer.status() == ok && !answer.body().is_end_stream();
        let waiting = answers.iter().flatten().filter(waits).count();
        assert!(
            (30..=40).contains(&waiting),
            "{path}: {waiting} wait to be taken"
        );
        assert_eq!(review(&server, &client, 9_300).await, StatusCode::OK);
    }
}

#[tokio::test]
async fn bodies_that_wait_for_each_others_memory_all_come_to_an_end() {
    let mut options = options();
    options.limits.body_memory = 1024 * 1024;
    let server = start(options).await;
    let client = server.client();
    let reviews = (0..8).map(|_| async {
        let response = client
            .post(server.url("/validate?timeout=30s"))
            .header(CONTENT_TYPE, "application/json")
            .body(body(3_000_000))
            .send()
            .await;
        response.unwrap().status()
    });
    let statuses = futures_util::future::join_all(reviews).await;
    assert_eq!(statuses, [StatusCode::OK; 8]);
}

#[tokio::test]
async fn idle_connections_of_strangers_make_room() {
    const OPEN: &str = "multi_attach_guard_connections";
    const DISPLACED: &str = "multi_attach_guard_connections_displaced_total";
    let mut options = options();
    options.limits.connections = 4;
    let server = start(options).await;
    let client = server.client();
    assert_eq!(review(&server, &client, 100).await, StatusCode::OK);
    let mut strangers = Vec::new();
    for round in 0..20_u8 {
        // The stranger takes all that is left.
        for open in [2.0, 3.0, 4.0] {
            if server.metric(OPEN).await < open {
                strangers.push(server.try_http2_from(Some(STRANGER)).await.unwrap());
            }
        }
        assert_eq!(server.metric(OPEN).await, 4.0, "round {round}");
        let newcomer = server.http1_client();
        for client in [&client, &newcomer] {
            assert_eq!(review(&server, client, 100).await, StatusCode::OK);
        }
        assert_eq!(server.metric(DISPLACED).await, f64::from(round + 1));
        drop(newcomer);
        server.until_metric(OPEN, 3.0).await;
    }
    let (status, text) = server.admin_get("/readyz").await;
    assert_eq!(status, StatusCode::OK, "{text}");
}

/// The stranger waits for nobody: it is always there first.
#[tokio::test]
async fn a_stranger_in_a_hurry_stops_nobody() {
    let mut options = options();
    options.limits.connections = 4;
    let server = start(options).await;
    let client = server.client();
    assert_eq!(review(&server, &client, 100).await, StatusCode::OK);
    let reviews = async {
        for _ in 0..100 {
            assert_eq!(review(&server, &client, 100).await, StatusCode::OK);
        }
    };
    let crowding = async {
        let mut held = Vec::new();
        loop {
            held.extend(server.try_http2_from(Some(STRANGER)).await.ok());
        }
    };
    tokio::select! {
        () = reviews => {}
        () = crowding => {}
    }
    let (status, text) = server.admin_get("/readyz").await;
    assert_eq!(status, StatusCode::OK, "{text}");
}

/// All come from one address, as behind a proxy: then what is quiet goes.
#[tokio::test]
async fn idle_connections_of_the_same_address_make_room() {
    let mut options = options();
    options.limits.connections = 4;
    let server = start(options).await;
    let mut idle = Vec::new();
    for _ in 0..4 {
        idle.push(server.http2().await);
    }
    until("a newcomer finds room", async || {
        server.try_http2_from(None).await.is_ok()
    })
    .await;
    let (status, text) = server.admin_get("/readyz").await;
    assert_eq!(status, StatusCode::OK, "{text}");
}

#[tokio::test]
async fn connections_end_with_a_goodbye_when_idle_or_old() {
    let (mut idle, mut old) = (options(), options());
    idle.limits.idle = SHORT;
    old.limits.age = SHORT;
    for (case, options, keeps_asking) in [("idle", idle, false), ("old", old, true)] {
        let server = start(options).await;
        let connection = server.http2().await;
        let ask = || connection.post("/mutate", "application/json", Sent::whole(body(100)));
        let answer = ask().await.unwrap();
        assert_eq!(answer, (StatusCode::OK, "mutate 100".to_owned()), "{case}");
        if keeps_asking {
            let refused = loop {
                match ask().await {
                    Ok(answer) => assert_eq!(answer.0, StatusCode::OK, "{case}"),
                    Err(error) => break error,
                }
            };
            // Told to be sent again elsewhere.
            let may_be_sent_again = refused.is_canceled() || refused.is_closed();
            assert!(may_be_sent_again, "{case}: {refused:?}");
        }
        connection.ended().await.unwrap();
        server
            .until_metric("multi_attach_guard_connections", 0.0)
            .await;
    }
}

#[tokio::test]
async fn an_early_refusal_arrives_while_the_body_is_still_coming() {
    let server = start(options()).await;
    let cases = [
        ("text/plain", 415, "Content-Type: application/json"),
        ("application/json", 413, "larger than 38797312 bytes"),
    ];
    for (content_type, status, sentence) in cases {
        for _ in 0..5 {
            let connection = server.http2().await;
            let sent = Sent::whole(body(40_000_000));
            let answer = connection.post("/mutate", content_type, sent).await;
            let (found, text) = answer.unwrap();
            assert_eq!(found.as_u16(), status, "{text}");
            assert!(text.contains(sentence), "{text}");
            // The connection is as good as before.
            let sent = Sent::whole(body(100));
            let answer = connection.post("/mutate", "application/json", sent).await;
            assert_eq!(answer.unwrap().0, StatusCode::OK);
        }
        // Even if nothing more comes.
        let connection = server.http2().await;
        let sent = Sent::part_of(body(100_000));
        let (found, _) = connection.post("/", content_type, sent).await.unwrap();
        assert_eq!(found, StatusCode::NOT_FOUND);
    }
}
