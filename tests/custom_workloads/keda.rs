//! KEDA's operator with ScaledObjects and ScaledJobs whose pods have a ReadWriteOnce volume. The
//! scalers count the pods with the label `queue`. KEDA's metrics server does not run, so only the
//! limits scale a workload that has pods.

use serde_json::{Value, json};

use crate::harness::fake_nodes::ENDS_AFTER;
use crate::harness::pki::Pki;
use crate::harness::process::free_port;
use crate::harness::seen;
use crate::harness::shorthand::{merge, object};
use crate::{OperatorCluster, OperatorTest, is_ready, multi_attach, play_all};

fn cluster() -> Option<OperatorCluster> {
    // The operator needs a certificate, because it listens for its metrics server.
    let folder = tempfile::tempdir().unwrap().keep();
    Pki::create(&folder).serving("tls");
    let flags = [
        "--metrics-bind-address=0".to_owned(),
        "--health-probe-bind-address=0".to_owned(),
        format!("--metrics-service-bind-address=127.0.0.1:{}", free_port()),
        format!("--cert-dir={}", folder.display()),
    ];
    let environment = [
        // All namespaces.
        ("WATCH_NAMESPACE", ""),
        ("KEDA_CLUSTER_OBJECT_NAMESPACE", "default"),
        ("POD_NAMESPACE", "default"),
    ];
    OperatorCluster::new("keda", &flags, &environment)
}

/// A workload with pods so large that only one fits on a node.
fn workload(test: &OperatorTest<'_>, mut shorthand: Value) -> Value {
    shorthand["container"] = json!({"resources": {"requests": {"cpu": "5"}}});
    test.workload(shorthand)
}

fn deployment(test: &OperatorTest<'_>) -> Value {
    let one = json!({"kind": "Deployment", "replicas": 1, "strategy": "Recreate"});
    workload(test, one)
}

/// A scaler with these fields that adds a pod for each pod in the queue.
fn scaler(kind: &str, further: &Value) -> Value {
    let mut spec = json!({
        "pollingInterval": 1,
        "triggers": [{"type": "kubernetes-workload",
            "metadata": {"podSelector": "queue=yes", "value": "1"}}],
    });
    merge(&mut spec, further);
    object(json!({"kind": kind, "with": {"spec": spec}}))
}

/// Makes pods that are in the queue but on no node.
fn queue(test: &OperatorTest<'_>, names: &[&str]) -> Result<(), String> {
    for name in names {
        test.namespace
            .apply(&object(json!({"kind": "Pod", "name": name, "labels": {"queue": "yes"},
            "pod": {"nodeSelector": {"node": "none"}}})))?;
    }
    Ok(())
}

/// Waits until the autoscaler that the operator makes has these limits, or is gone.
fn until_limits(test: &OperatorTest<'_>, expected: Option<[i64; 2]>) -> Result<(), String> {
    let what = format!("the autoscaler's limits {expected:?}");
    test.until(&what, || {
        let found = test.namespace.list("hpa")?.pop().map(|autoscaler| {
            ["minReplicas", "maxReplicas"]
                .map(|field| autoscaler["spec"][field].as_i64().unwrap_or_default())
        });
        seen(found == expected, found).map(drop)
    })
}

/// Asserts the findings of `audit` about the scaler and its workload.
fn expect(test: &OperatorTest<'_>, starts: &[&str], names: &str) -> Result<(), String> {
    let findings = test.audit(&["ScaledObject", "ScaledJob", "Deployment"])?;
    let messages: Vec<String> = findings
        .iter()
        .map(|finding| {
            ["/rule", "/object/kind", "/outcome", "/message"]
                .map(|field| finding.pointer(field).and_then(Value::as_str).unwrap_or_default())
                .join(" ")
        })
        .collect();
    let is_expected = messages.len() == starts.len()
        && (messages.iter().zip(starts))
            .all(|(message, start)| message.starts_with(start) && message.contains(names));
    seen(is_expected, messages).map(drop)
}

fn no_maximum() -> Value {
    json!({"spec": {"maxReplicaCount": null}})
}

/// Without a maximum, the autoscaler's is 100, as `audit` says.
fn until_100_are_found(test: &OperatorTest<'_>) -> Result<(), String> {
    until_limits(test, Some([1, 100]))?;
    let stuck = "autoscaler-exceeds-volume ScaledObject stuck";
    expect(test, &[stuck], "100 pods")
}

/// The minimum adds a second pod, which never starts; the way out that `diagnose` prints removes
/// it.
fn more_than_one(test: &OperatorTest<'_>) -> Result<(), String> {
    test.namespace.apply(&deployment(test))?;
    let own = json!({"scaleTargetRef": {"name": "web"}, "minReplicaCount": 1});
    test.namespace.apply(&scaler("ScaledObject", &own))?;
    test.until_pods(1, 1)?;
    until_100_are_found(test)?;

    // The operator reverts changes of its autoscaler.
    let one = json!({"spec": {"maxReplicas": 1}});
    test.patch("hpa/keda-hpa-web", "merge", &one)?;
    until_limits(test, Some([1, 100]))?;

    let two = json!({"spec": {"minReplicaCount": 2}});
    test.patch("scaledobject/web", "merge", &two)?;
    until_limits(test, Some([2, 100]))?;
    test.until_pods(2, 1)?;
    until_multi_attach(test)?;

    let report = test.report(&["diagnose"])?;
    let steps = report["cases"][0]["steps"].as_array().into_iter().flatten();
    let way_out = steps
        .filter(|step| step["purpose"] == "way-out")
        .find_map(|step| step["command"].as_str())
        .ok_or_else(|| format!("there is no way out: {report:#}"))?;
    seen(way_out.contains("scaledobjects.keda.sh/web"), way_out)?;
    let printed =
        test.cluster.plane.printed(way_out).output().map_err(|error| error.to_string())?;
    seen(printed.status.success(), (way_out, printed))?;
    until_limits(test, Some([1, 1]))?;
    test.until_pods(1, 1)?;
    expect(test, &[], "")
}

/// Without a minimum the workload goes to 0 while the queue is empty, and back. While paused, it
/// has the number of pods in the annotation.
fn none_and_back(test: &OperatorTest<'_>) -> Result<(), String> {
    test.namespace.apply(&deployment(test))?;
    test.until_pods(1, 1)?;
    let own = json!({
        "scaleTargetRef": {"name": "web"}, "maxReplicaCount": 1, "cooldownPeriod": 1,
    });
    test.namespace.apply(&scaler("ScaledObject", &own))?;
    test.until_pods(0, 0)?;
    queue(test, &["first"])?;
    test.until_pods(1, 1)?;
    expect(test, &[], "")?;

    test.patch("scaledobject/web", "merge", &no_maximum())?;
    until_100_are_found(test)?;
    let web = "scaledobjects.keda.sh/web";
    let annotate = |pair: &str| test.kubectl(&["annotate", web, pair, "--overwrite"]);
    annotate("autoscaling.keda.sh/paused-replicas=0")?;
    until_limits(test, None)?;
    test.until_pods(0, 0)?;
    expect(test, &[], "")?;
    annotate("autoscaling.keda.sh/paused-replicas-")?;
    test.until_pods(1, 1)?;
    annotate("autoscaling.keda.sh/paused=true")?;
    until_limits(test, None)?;
    test.until_pods(1, 1)?;
    expect(test, &[], "")
}

/// A ScaledJob without a maximum starts a Job for each pod in the queue, and the second Job's pod
/// waits until the first one's has ended; with the maximum 1 there is one Job at a time.
fn jobs(test: &OperatorTest<'_>) -> Result<(), String> {
    queue(test, &["first", "second"])?;
    let mut own = workload(test, json!({"kind": "ScaledJob"}))["spec"].take();
    own["maxReplicaCount"] = json!(1);
    test.namespace.apply(&scaler("ScaledJob", &own))?;
    test.until_pods(1, 1)?;
    expect(test, &[], "")?;
    test.patch("scaledjob/web", "merge", &no_maximum())?;
    let delay = "replicas-share-volume ScaledJob delay";
    expect(test, &[delay], "100 pods")?;
    test.until_pods(2, 1)?;
    until_multi_attach(test)?;
    test.kubectl(&["delete", "pod", "first", "second"])?;
    let pods = test.namespace.list("pods")?;
    let first = pods
        .iter()
        .find(|pod| is_ready(pod))
        .and_then(|pod| pod["metadata"]["name"].as_str())
        .ok_or("no pod is ready")?;
    let now = format!("{ENDS_AFTER}=0");
    test.kubectl(&["annotate", "pod", first, &now])?;
    test.until_pods(1, 1)
}

fn until_multi_attach(test: &OperatorTest<'_>) -> Result<(), String> {
    test.until("a pod to wait for the volume", || {
        let events = test.namespace.list("events")?;
        seen(multi_attach(&events), events).map(drop)
    })
}

#[test]
fn scalers_bring_as_many_pods_as_the_engine_says() {
    type Case = fn(&OperatorTest<'_>) -> Result<(), String>;
    let Some(cluster) = cluster() else { return };
    let cases: [(&str, Case); 3] =
        [("more-than-one", more_than_one), ("none-and-back", none_and_back), ("jobs", jobs)];
    play_all(&cases, |(name, play)| {
        let played = OperatorTest::build(&cluster, name).and_then(|test| play(&test));
        played.map_err(|error| format!("{name}: {error}"))
    });
}
