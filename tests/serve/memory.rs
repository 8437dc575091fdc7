//! The memory that reviews use, measured on the process.

use serde_json::{Value, json};
use tokio::time::timeout;

use crate::machine::patient;
use crate::running::{Running, example, serve, serve_with_policy};
use crate::serving::DEADLINE;

const MIB: usize = 1024 * 1024;

/// The memory that the manifests reserve for requests.
const LIMIT: usize = 363 * MIB;

/// The example with `more` as the arguments of its container, as an update that starts a rollout.
/// The policy repairs, so the object is patched too.
fn update(more: &str) -> String {
    let mut review = example();
    let mut old = review["request"]["object"].clone();
    old["spec"]["template"]["metadata"]["labels"]["was"] = "old".into();
    review["request"]["oldObject"] = old;
    review["request"]["operation"] = "UPDATE".into();
    for object in ["object", "oldObject"] {
        let spec = &mut review["request"][object]["spec"]["template"]["spec"];
        spec["containers"] = json!([{"name": "c", "image": "i", "args": "HERE", "volumeMounts": [{"name": "data"}]}]);
    }
    review.to_string().replace("\"HERE\"", more)
}

async fn repairing() -> Running {
    serve_with_policy("defaults: {outcomes: {deadlock: fix, delay: fix}}\n").await
}

/// The answer to a review, or `None` if the server sheds it: a debug build may be too slow for one
/// caller's timeout, which does not change the memory it uses.
async fn answer(server: &Running, path: &str, review: &str) -> Option<Value> {
    let response = server.post(&format!("{path}?timeout=30s"), review.to_owned()).await;
    match response.status().as_u16() {
        200 => {
            let mut answer: Value = response.json().await.unwrap();
            Some(answer["response"].take())
        }
        408 | 503 => None,
        status => panic!("neither answered nor shed: {status}"),
    }
}

/// Sends the same review `count` times at once, and repeats those that are shed.
async fn answers(server: &Running, path: &str, review: &str, count: usize) -> Vec<Value> {
    let all = futures_util::future::join_all((0..count).map(|_| async {
        loop {
            if let Some(answer) = answer(server, path, review).await {
                return answer;
            }
        }
    }));
    timeout(4 * patient(DEADLINE), all).await.expect("all are answered")
}

/// Ordinary reviews, none of which is shed.
async fn ordinary(server: &Running) {
    for _ in 0..50 {
        let answer = server.review("/validate", &example()).await;
        assert_eq!(answer["allowed"], false, "{answer}");
    }
}

async fn all_are_patched(server: &Running, review: &str, count: usize) {
    for answer in answers(server, "/mutate", review, count).await {
        assert!(answer["patch"].is_string(), "{answer}");
    }
}

#[track_caller]
fn stays_below(server: &Running, limit: usize) {
    let peak = server.peak_memory();
    assert!(peak < limit, "{} of {} MiB", peak / MIB, limit / MIB);
}

/// Two lists with a million empty strings in total: as trees of values they have thirty times the
/// bytes.
fn dense() -> String {
    update(&format!("[{}\"\"]", "\"\",".repeat(500_000)))
}

/// The four reviews take 116 to 137 MiB, depending on their overlap, and would take 360 MiB as
/// trees of values.
#[tokio::test]
async fn four_dense_reviews_of_3_mb_take_less_than_160_mib() {
    let server = repairing().await;
    all_are_patched(&server, &dense(), 4).await;
    stays_below(&server, 160 * MIB);
}

#[tokio::test]
async fn ordinary_reviews_are_answered_beside_32_dense_ones() {
    let server = repairing().await;
    let review = dense();
    let dense = (0..32).map(|_| answer(&server, "/mutate", &review));
    tokio::join!(futures_util::future::join_all(dense), ordinary(&server));
    stays_below(&server, LIMIT);
}

/// The JSON of 1.4 MB of `<` as the API server sends it.
#[tokio::test]
async fn sixteen_reviews_of_17_mb_stay_within_the_limit() {
    let server = repairing().await;
    let large = update(&format!("[\"{}\"]", "\\u003c".repeat(1_400_000)));
    tokio::join!(all_are_patched(&server, &large, 16), ordinary(&server));
    stays_below(&server, LIMIT);
}

/// Reviews of objects that no API server would store: a reader without bounds needs up to a hundred
/// bytes of memory for each of their bytes.
#[tokio::test]
async fn four_reviews_that_are_all_facts_take_less_than_64_mib_more() {
    const BYTES: usize = 1_500_000;

    let list = |entry: &str| {
        let count = BYTES / (entry.len() + 1);
        format!("[{}{entry}]", format!("{entry},").repeat(count))
    };
    let long = format!("\"{}\"", "x".repeat(BYTES));
    let claim = format!(r#"[{{"name":"data","persistentVolumeClaim":{{"claimName":{long}}}}}]"#);
    let rules = list("a").replace(['[', ']'], "\"");
    let cases = [
        // Entries that decide nothing take no memory, however many there are.
        (
            "/spec/template/spec/containers",
            list(r#"{"volumeMounts":[{"name":"data"}]}"#),
            "rolling-update-overlap: ",
        ),
        // Equal tolerations count once.
        ("/spec/template/spec/tolerations", list("{}"), "rolling-update-overlap: "),
        ("/spec/template/spec/volumes", claim, "unresolved-claim: "),
        ("/metadata/name", long.clone(), ""),
        ("/metadata/annotations/multi-attach-guard.dev~1reason", long, ""),
        ("/metadata/annotations/multi-attach-guard.dev~1ignore", rules, "no rule"),
    ];
    let server = serve(&[]).await;
    let before = server.peak_memory();
    for (field, value, expected) in cases {
        let mut review = example();
        let object = &mut review["request"]["object"];
        object["metadata"]["annotations"] = json!({
            "multi-attach-guard.dev/action": "warn",
            "multi-attach-guard.dev/reason": "r",
            "multi-attach-guard.dev/ignore": "",
        });
        object["spec"]["template"]["spec"]["tolerations"] = json!([]);
        *object.pointer_mut(field).expect(field) = "HERE".into();
        let review = review.to_string().replace("\"HERE\"", &value);
        for answer in answers(&server, "/validate", &review, 4).await {
            assert_eq!(answer["allowed"], true, "{field}: {answer:.1000}");
            let said = answer.to_string();
            assert!(said.len() < 20_000, "{field}: {} bytes", said.len());
            assert!(said.contains(expected), "{field}: {said}");
        }
        println!("{field}");
        stays_below(&server, before + 64 * MIB);
    }
}

/// A review with the most text that is kept, and a hazard for each of its entries.
#[tokio::test]
async fn the_answer_about_many_hazards_stays_small() {
    let server = serve(&[]).await;
    let mut review = example();
    let object = &mut review["request"]["object"];
    object["metadata"]["annotations"] = json!({
        "multi-attach-guard.dev/action": "warn",
        "multi-attach-guard.dev/reason": "r".repeat(200_000),
    });
    let volume = |number: usize| {
        json!({"name": format!("v{number}"), "ephemeral": {"volumeClaimTemplate":
            {"spec": {"accessModes": ["ReadWriteMany"]}}}})
    };
    let volumes: Vec<Value> = (0..3000).map(volume).collect();
    object["spec"]["template"]["spec"]["volumes"] = volumes.into();
    let before = server.peak_memory();
    for answer in answers(&server, "/validate", &review.to_string(), 4).await {
        assert_eq!(answer["allowed"], true, "{answer:.1000}");
        let said = answer.to_string();
        assert!(said.len() < 200_000, "{} bytes", said.len());
    }
    stays_below(&server, before + 64 * MIB);
}
