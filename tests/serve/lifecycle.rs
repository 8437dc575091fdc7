//! The life of the process: readiness, changes of the policy, signals.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::running::{Running, example, serve, serve_with_policy, serve_without_facts};
use crate::serving::until;

#[tokio::test]
async fn readiness_names_what_it_depends_on() {
    let server = serve(&[]).await;
    let (status, text) = server.admin("/readyz").await;
    assert_eq!(status, 200, "{text}");
    for condition in ["view", "certificate", "server"] {
        assert!(text.contains(&format!("ready {condition}: ")), "{text}");
    }
    assert!(!text.contains("policy"), "there is no policy file: {text}");
    assert_eq!(server.admin("/healthz").await.0, 200);
}

/// Without files and without a cluster the server reports the missing view, and answers that it
/// does not know.
#[tokio::test]
async fn without_a_cluster_it_is_not_ready_but_answers() {
    let server = serve_without_facts(&[]).await;
    until("readiness says what is missing", async || {
        let (status, text) = server.admin("/readyz").await;
        status == 503 && text.contains("not-ready view: Set KUBECONFIG to your kubeconfig")
    })
    .await;
    let answer = server.review("/validate", &example()).await;
    assert_eq!(answer["allowed"], true, "{answer:#}");
    assert!(answer["warnings"].is_array(), "{answer:#}");
}

/// Without any facts there is no denial that `--stale=deny` could keep: the policy must deny
/// unknown outcomes too.
#[tokio::test]
async fn what_nobody_can_be_asked_about_is_denied_where_policy_and_stale_both_say_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("policy.yaml");
    let cases = [
        ("{}", "deny", true),
        ("defaults: {outcomes: {unknown: deny}}", "warn", true),
        ("defaults: {outcomes: {unknown: deny}}", "deny", false),
    ];
    for (policy, stale, expected) in cases {
        write(&path, policy);
        let config = ["--config", path.to_str().unwrap(), "--stale", stale];
        let server = serve_without_facts(&config).await;
        assert_eq!(allowed(&server).await, expected, "{policy} {stale}");
    }
}

/// Whether the example is allowed.
async fn allowed(server: &Running) -> bool {
    let answer = server.review("/validate", &example()).await;
    answer["allowed"].as_bool().unwrap()
}

/// Without this, a time that is not known yet would be exported as 1970.
#[tokio::test]
async fn times_that_have_not_come_are_absent() {
    let has = |text: &str, name: &str| {
        let name = format!("multi_attach_guard_{name}_timestamp_seconds ");
        text.lines().any(|line| line.starts_with(&name))
    };
    let (_, text) = serve(&[]).await.admin("/metrics").await;
    assert!(has(&text, "certificate_expiry"), "{text}");
    assert!(!has(&text, "policy_last_success"), "{text}");

    let server = serve_with_policy("{}\n").await;
    until("the policy's time is known", async || {
        has(&server.admin("/metrics").await.1, "policy_last_success")
    })
    .await;
}

#[tokio::test]
async fn a_policy_that_changes_is_seen_from_outside() {
    let mut server = serve_with_policy("defaults: {outcomes: {deadlock: ignore}}\n").await;
    let path = server.policy();
    assert!(allowed(&server).await, "ignored");

    write(&path, "{}\n");
    until("the new policy denies", async || !allowed(&server).await).await;
    let reloads = "multi_attach_guard_policy_reloads_total";
    server.until_admin("/metrics", &format!("{reloads}{{result=\"success\"}} 1")).await;

    // Readiness and the metrics of two alerts report a faulty file, and also a directory in its
    // place.
    let degraded = "multi_attach_guard_condition_degraded{condition=\"policy\"}";
    type Fault = (&'static str, fn(&Path));
    let faults: [Fault; 2] = [
        ("policy.yaml:1:33: ", |policy| {
            write(policy, "defaults: {outcomes: {deadlock: perhaps}}\n");
        }),
        ("policy.yaml cannot be read: it is not a regular", |policy| {
            fs::remove_file(policy).unwrap();
            fs::create_dir(policy).unwrap();
        }),
    ];
    for (number, (fault, place)) in (1..).zip(faults) {
        place(&path);
        let logged = server.logged("The policy in use stays.").await;
        let error = logged["error"].as_str().unwrap();
        assert!(error.contains(fault), "{error}");
        let unusable = "degraded policy: The policy file as it is now cannot be used";
        server.until_admin("/readyz", unusable).await;
        let failures = format!("{reloads}{{result=\"failure\"}} {number}");
        for line in [format!("{degraded} 1"), failures] {
            server.until_admin("/metrics", &line).await;
        }
        assert_eq!(server.admin("/readyz").await.0, 200, "{fault}");
        assert!(!allowed(&server).await, "{fault}: the last good one holds");
    }

    fs::remove_dir(&path).unwrap();
    write(&path, "provisioners: [{name: ebs.csi.aws.com, nodeLocal: true}]\n");
    until("the policy's facts count", async || allowed(&server).await).await;
    server.until_admin("/readyz", "ready policy: ").await;
    let healed = format!("{degraded} 0");
    server.until_admin("/metrics", &healed).await;
}

/// Otherwise a Pod that moves would take the guard away if the policy had been wrong for a while.
#[tokio::test]
async fn a_policy_that_is_wrong_at_the_start_leaves_warnings() {
    let wrong = "defaults: {outcomes: {deadlock: perhaps}}\n";
    for content in [Some(wrong), None] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("policy.yaml");
        if let Some(content) = content {
            write(&path, content);
        }
        let config = ["--config", path.to_str().unwrap()];
        let server = serve(&config).await;
        assert!(allowed(&server).await, "nothing is refused");
        let warns = "degraded policy: The policy file cannot be used; the log says why. Until it can, there are warnings only.";
        server.until_admin("/readyz", warns).await;
        assert_eq!(server.admin("/readyz").await.0, 200, "it answers");
        for line in [
            "multi_attach_guard_policy_reloads_total{result=\"failure\"} 1",
            "multi_attach_guard_condition_degraded{condition=\"policy\"} 1",
        ] {
            server.until_admin("/metrics", line).await;
        }

        write(&path, "defaults: {outcomes: {deadlock: deny}}\n");
        until("the file counts once it is good", async || !allowed(&server).await).await;
        server.until_admin("/readyz", "ready policy: ").await;
    }
}

fn write(path: &Path, policy: &str) {
    fs::write(path, policy).unwrap();
}

#[tokio::test]
async fn a_signal_ends_it_in_order() {
    let mut server = serve(&["--shutdown-delay=3600s"]).await;
    assert!(!allowed(&server).await);
    server.signal("TERM").await;
    server.logged("Shutting down").await;
    let (status, text) = server.admin("/readyz").await;
    assert_eq!(status, 503, "{text}");
    assert_eq!(server.admin("/healthz").await.0, 200);
    assert!(!allowed(&server).await, "still answering");
    server.signal("INT").await;
    server.logged("Stopped at once").await;
    assert!(server.ended().await.success());
}

#[tokio::test]
async fn a_signal_under_load_loses_no_request() {
    for signal in ["TERM", "INT"] {
        let mut server = serve(&["--shutdown-delay=500ms", "--drain-timeout=60s"]).await;
        let asking = server.ask_until_gone(&example());
        let reviews = "multi_attach_guard_reviews_total{";
        until("reviews are answered", async || {
            let (_, text) = server.admin("/metrics").await;
            let mut counts = text.lines().filter(|line| line.starts_with(reviews));
            counts.any(|line| !line.ends_with(" 0"))
        })
        .await;
        server.signal(signal).await;
        server.logged("Stopped: every request was answered.").await;
        assert!(asking.await.unwrap() > 0, "{signal}");
        assert!(server.ended().await.success(), "{signal}");
    }
}

#[tokio::test]
async fn reviews_are_answered_though_nobody_reads_the_log() {
    let mut server = serve(&[]).await;
    server.close_log();
    for _ in 0..10 {
        assert!(!allowed(&server).await, "a denial, which is logged");
    }
    let panics = "multi_attach_guard_review_panics_total 0";
    server.until_admin("/metrics", panics).await;
}

/// A denial whose log line has more than 1 KiB. A pipe holds 64 of these.
fn long_denial() -> Value {
    let mut review = example();
    review["request"]["userInfo"]["username"] = "a".repeat(1024).into();
    review
}

async fn is_denied(server: &Running, review: &Value, times: usize) {
    for _ in 0..times {
        let answer = server.review("/validate", review).await;
        assert_eq!(answer["allowed"], false, "{answer:#}");
    }
}

#[tokio::test]
async fn a_log_that_nobody_takes_holds_up_nothing() {
    let server = serve(&["--shutdown-delay=0s"]).await;
    is_denied(&server, &long_denial(), 3500).await;
    let lost = "multi_attach_guard_log_lines_lost_total ";
    until("lost lines are counted", async || {
        let (_, text) = server.admin("/metrics").await;
        let count = text.lines().find_map(|line| line.strip_prefix(lost));
        count.is_some_and(|count| count != "0")
    })
    .await;
    server.signal("TERM").await;
    assert!(server.ended().await.success());
}

#[tokio::test]
async fn a_log_that_is_taken_late_is_whole() {
    let mut server = serve(&["--shutdown-delay=0s"]).await;
    let review = long_denial();
    is_denied(&server, &review, 100).await;
    server.signal("TERM").await;
    for _ in 0..100 {
        let logged = server.logged("reviewed").await;
        assert_eq!(logged["user"], review["request"]["userInfo"]["username"]);
    }
    server.logged("Stopped: every request was answered.").await;
    assert!(server.ended().await.success());
}
