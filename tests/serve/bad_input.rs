//! Requests that no API server should send: each gets an answer with the uid
//! where one could be read, else a status and a sentence, and never takes the
//! server down.

use serde_json::{Value, json};

use crate::running::{example, serve};

const DEEP: usize = 10_000;

#[tokio::test]
async fn without_a_uid_there_is_a_status_and_a_sentence() {
    let brackets = "[".repeat(DEEP);
    let no_uid = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {"operation": "CREATE"}});
    let cases: [(&str, &str, String, u16, &str); 10] = [
        (
            "empty",
            "application/json",
            String::new(),
            400,
            "not an AdmissionReview",
        ),
        (
            "not JSON",
            "application/json",
            "kind: Pod".to_owned(),
            400,
            "not an AdmissionReview",
        ),
        (
            "cut off",
            "application/json",
            example().to_string()[..80].to_owned(),
            400,
            "not an AdmissionReview",
        ),
        (
            "not an object",
            "application/json",
            "[1]".to_owned(),
            400,
            "not an AdmissionReview",
        ),
        (
            "no request",
            "application/json",
            "{}".to_owned(),
            400,
            "no request",
        ),
        (
            "a null request",
            "application/json",
            r#"{"request":null}"#.to_owned(),
            400,
            "no request",
        ),
        (
            "no uid",
            "application/json",
            no_uid.to_string(),
            400,
            "no uid",
        ),
        (
            "nesting",
            "application/json",
            brackets,
            400,
            "not an AdmissionReview",
        ),
        (
            "another content type",
            "application/yaml",
            "{}".to_owned(),
            415,
            "application/json",
        ),
        (
            "too large",
            "application/json",
            " ".repeat(40_000_000),
            413,
            "larger than",
        ),
    ];
    let server = serve(&[]).await;
    for (case, content_type, body, status, sentence) in cases {
        let response = server.post_as(content_type, "/validate", body).await;
        assert_eq!(response.status().as_u16(), status, "{case}");
        let text = response.text().await.unwrap();
        assert!(text.contains(sentence), "{case}: {text}");
    }
    assert_still_at_work(&server).await;
}

#[tokio::test]
async fn with_a_uid_the_answer_has_it_and_a_warning() {
    let spec = "/request/object/spec";
    let deep: Value = (0..100).fold(json!(1), |inner, _| json!([inner]));
    let cases = [
        (
            "another kind",
            "/kind",
            json!("ConversionReview"),
            "only an AdmissionReview",
        ),
        (
            "another version",
            "/apiVersion",
            json!("admission.k8s.io/v1beta1"),
            "only an AdmissionReview",
        ),
        (
            "not what its kind says",
            spec,
            json!("a sentence"),
            "does not have the shape",
        ),
        (
            "an object that is a list",
            "/request/object",
            json!([1, 2]),
            "does not have the shape",
        ),
        (
            "replicas that are text",
            "/request/object/spec/replicas",
            json!("many"),
            "does not have the shape",
        ),
        (
            "nesting where a name is due",
            "/request/object/metadata/name",
            deep,
            "does not have the shape",
        ),
    ];
    let server = serve(&[]).await;
    for (case, at, value, sentence) in cases {
        let mut review = example();
        *review.pointer_mut(at).unwrap() = value;
        for path in ["/mutate", "/validate"] {
            let answer = server.review(path, &review).await;
            assert_eq!(answer["uid"], review["request"]["uid"], "{case} {path}");
            assert_eq!(answer["allowed"], true, "{case} {path}");
            let warning = answer["warnings"][0].as_str().unwrap_or_default();
            assert!(warning.contains(sentence), "{case} {path}: {answer:#}");
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

/// Numbers that Kubernetes itself would refuse, a little later, and nesting in
/// fields that decide nothing: an answer with the uid, whatever it says.
#[tokio::test]
async fn odd_values_get_an_ordinary_answer() {
    let strategy = "/request/object/spec/strategy/rollingUpdate";
    let cases = [
        (
            "an unknown percentage",
            format!("{strategy}/maxSurge"),
            json!("many%"),
        ),
        (
            "a percentage beyond all bounds",
            format!("{strategy}/maxSurge"),
            json!("99999999999999999999%"),
        ),
        (
            "a negative surge",
            format!("{strategy}/maxSurge"),
            json!(-3),
        ),
        (
            "negative replicas",
            "/request/object/spec/replicas".to_owned(),
            json!(-1),
        ),
        (
            "replicas beyond all bounds",
            "/request/object/spec/replicas".to_owned(),
            json!(u64::MAX),
        ),
    ];
    let server = serve(&[]).await;
    for (case, at, value) in cases {
        let mut review = example();
        *review.pointer_mut(&at).unwrap() = value;
        for path in ["/mutate", "/validate"] {
            let answer = server.review(path, &review).await;
            assert_eq!(answer["uid"], review["request"]["uid"], "{case} {path}");
        }
    }
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
    assert!(
        metrics.contains("\nmulti_attach_guard_review_panics_total 0\n"),
        "{metrics}"
    );
}
