//! Requests that no API server should send: each gets an answer with its uid if the uid can be
//! read, and otherwise a status and a sentence. None ends the server.

use serde_json::{Value, json};

use crate::running::{example, serve};

const DEEP: usize = 10_000;

#[tokio::test]
async fn without_a_uid_there_is_a_status_and_a_sentence() {
    let brackets = "[".repeat(DEEP);
    let no_uid = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {"operation": "CREATE"}});
    let cut = example().to_string()[..80].to_owned();
    let server = serve(&[]).await;
    for (body, sentence) in [
        ("", "not an AdmissionReview"),
        ("kind: Pod", "not an AdmissionReview"),
        (&cut, "not an AdmissionReview"),
        ("[1]", "not an AdmissionReview"),
        (&brackets, "not an AdmissionReview"),
        ("{}", "no request"),
        (r#"{"request":null}"#, "no request"),
        (&no_uid.to_string(), "no uid"),
    ] {
        let response = server.post("/validate", body.to_owned()).await;
        assert_eq!(response.status(), 400, "{body:.100}");
        let text = response.text().await.unwrap();
        assert!(text.contains(sentence), "{body:.100}: {text}");
    }
    assert_still_at_work(&server).await;
}

#[tokio::test]
async fn with_a_uid_the_answer_has_it_and_a_warning() {
    let deep: Value = (0..100).fold(json!(1), |inner, _| json!([inner]));
    let only = Some("only an AdmissionReview of admission.k8s.io/v1 is understood");
    let shape = Some("does not have the shape");
    let surge = "/request/object/spec/strategy/rollingUpdate/maxSurge";
    let replicas = "/request/object/spec/replicas";
    let cases = [
        ("/kind", json!("ConversionReview"), only),
        ("/apiVersion", json!("admission.k8s.io/v1beta1"), only),
        ("/request/object/spec", json!("a sentence"), shape),
        ("/request/object", json!([1, 2]), shape),
        (replicas, json!("many"), shape),
        ("/request/object/metadata/name", deep, shape),
        // Numbers that Kubernetes itself would refuse a little later get an ordinary answer.
        (surge, json!("many%"), None),
        (surge, json!("99999999999999999999%"), None),
        (surge, json!(-3), None),
        (replicas, json!(-1), None),
        (replicas, json!(u64::MAX), None),
    ];
    let server = serve(&[]).await;
    for (at, value, expected) in cases {
        let case = format!("{at} {value}");
        let mut review = example();
        *review.pointer_mut(at).unwrap() = value;
        for path in ["/mutate", "/validate"] {
            let answer = server.review(path, &review).await;
            assert_eq!(answer["uid"], review["request"]["uid"], "{case} {path}");
            if let Some(sentence) = expected {
                assert_eq!(answer["allowed"], true, "{case} {path}");
                let warning = answer["warnings"][0].as_str().unwrap_or_default();
                assert!(warning.contains(sentence), "{case} {path}: {answer:#}");
            }
        }
    }
    assert_still_at_work(&server).await;
}

#[tokio::test]
async fn a_long_list_of_what_is_no_rule_gets_few_warnings() {
    let server = serve(&[]).await;
    let mut review = example();
    let names: Vec<String> = (0..1000).map(|number| format!("r{number}")).collect();
    review["request"]["object"]["metadata"]["annotations"] = json!({
        "multi-attach-guard.dev/ignore": names.join(","),
        "multi-attach-guard.dev/action": "warn",
        "multi-attach-guard.dev/reason": "moved by hand",
    });
    let answer = server.review("/validate", &review).await;
    let warnings = answer["warnings"].as_array().unwrap();
    assert!(warnings.len() <= 10, "{answer:#}");
    let last = warnings.last().unwrap().as_str().unwrap();
    assert!(last.starts_with("Other parts of the"), "{answer:#}");
}

/// Deep nesting in a field that decides nothing is accepted.
#[tokio::test]
async fn what_nobody_reads_may_be_as_deep_as_it_likes() {
    let server = serve(&[]).await;
    let nested = example().to_string().replace(
        r#""image":"#,
        &format!(r#""odd":{}{},"image":"#, "[".repeat(DEEP), "]".repeat(DEEP)),
    );
    let response = server.post("/validate", nested).await;
    assert_eq!(response.status(), 200);
    let answer: Value = serde_json::from_slice(&response.bytes().await.unwrap()).unwrap();
    assert_eq!(answer["response"]["allowed"], false, "{answer:#}");
    assert_still_at_work(&server).await;
}

async fn assert_still_at_work(server: &crate::running::Running) {
    let answer = server.review("/validate", &example()).await;
    assert_eq!(answer["allowed"], false);
    let (_, metrics) = server.admin("/metrics").await;
    assert!(metrics.contains("\nmulti_attach_guard_review_panics_total 0\n"), "{metrics}");
}
