use serde::de::DeserializeSeed;
use serde_json::json;

use super::*;
use engine::policy::Policy;
use engine::storage::Catalog;

fn cluster(objects: &[Value]) -> Snapshot {
    let mut cluster = Snapshot::complete();
    let disk = json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
        "metadata": {"name": "disk"}, "provisioner": "ebs.csi.aws.com"});
    let nodes = ["n1", "n2"].map(|name| {
        json!({"apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}}})
    });
    for object in [disk].iter().chain(&nodes).chain(objects) {
        let word = |field: &str| object[field].as_str().unwrap();
        let kind = ObjectKind::of_manifest(word("apiVersion"), word("kind")).unwrap();
        cluster.apply(kind.deserialize(object).unwrap());
    }
    cluster
}

fn claim(namespace: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"namespace": namespace, "name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "disk"}})
}

fn template(name: &str) -> Value {
    json!({"metadata": {"labels": {"app": name}}, "spec": {
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}})
}

fn deployment(namespace: &str, name: &str, strategy: &str) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"namespace": namespace, "name": name},
        "spec": {"strategy": {"type": strategy}, "selector": {"matchLabels": {"app": name}},
            "template": template(name)}})
}

fn report(objects: &[Value], namespace: Option<&str>) -> Report {
    let effective = EffectivePolicy::new(Policy::default(), Catalog::embedded().unwrap()).unwrap();
    let cluster = cluster(objects);
    let audited = Audited::new(&cluster, namespace);
    let told = audited.judge(&effective);
    audited.report(told, Format::Text)
}

fn found(report: &Report) -> Vec<String> {
    let findings = report.findings.iter();
    findings
        .map(|it| format!("{} {}", it.finding.object, it.finding.rule))
        .collect()
}

#[test]
fn the_worst_namespace_comes_first() {
    let report = report(
        &[
            claim("a"),
            claim("b"),
            claim("c"),
            deployment("a", "web", "Recreate"),
            deployment("b", "web", "RollingUpdate"),
            deployment("c", "api", "RollingUpdate"),
            deployment("c", "web", "RollingUpdate"),
        ],
        None,
    );
    assert_eq!(
        found(&report),
        [
            "Deployment c/api rolling-update-overlap",
            "Deployment c/web rolling-update-overlap",
            "Deployment c/web workloads-share-volume",
            "Deployment b/web rolling-update-overlap",
        ]
    );
    assert_eq!(
        hints(&report)[0],
        "By namespace, worst first: c: 3 errors; b: 1 error."
    );
    assert_eq!((report.summary.judged, report.summary.facts), (7, 3));
}

#[test]
fn a_shared_claim_is_told_of_the_one_that_comes_and_goes() {
    let job = json!({"apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"namespace": "shop", "name": "backup"}, "spec": {"template": template("backup")}});
    let report = report(
        &[claim("shop"), deployment("shop", "web", "Recreate"), job],
        None,
    );
    assert_eq!(found(&report), ["Job shop/backup workloads-share-volume"]);
}

#[test]
fn one_namespace_is_judged_by_what_the_whole_cluster_knows() {
    let objects = [
        claim("a"),
        claim("b"),
        deployment("a", "web", "RollingUpdate"),
        deployment("b", "web", "RollingUpdate"),
    ];
    let report = report(&objects, Some("b"));
    assert_eq!(found(&report), ["Deployment b/web rolling-update-overlap"]);
}

#[test]
fn what_an_earlier_report_holds_is_not_new() {
    let objects = [
        claim("shop"),
        deployment("shop", "api", "RollingUpdate"),
        deployment("shop", "web", "RollingUpdate"),
    ];
    let mut report = report(&objects, None);
    let earlier: Earlier = serde_json::from_value(json!({"findings": [
        {"rule": "rolling-update-overlap", "object": {"kind": "Deployment", "namespace": "shop", "name": "api"}},
        {"rule": "rolling-update-overlap", "object": {"kind": "Deployment", "namespace": "shop", "name": "gone"}},
    ], "summary": {}}))
    .unwrap();
    earlier.compare(&mut report);
    let new: Vec<Option<bool>> = report.findings.iter().map(|it| it.is_new).collect();
    assert_eq!(new, [Some(false), Some(true), Some(true)]);
    assert_eq!(
        report.hints,
        ["Of 2 earlier findings, 1 is still there and 1 is gone."]
    );
}

#[test]
fn what_the_cluster_added_is_no_part_of_what_somebody_wrote() {
    let own = own_part(&json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "uid": "u", "resourceVersion": "1", "generation": 2,
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "a": "b"}},
        "spec": {"replicas": 1}, "status": {"replicas": 1},
    }));
    assert_eq!(
        own,
        json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "web", "annotations": {"a": "b"}}, "spec": {"replicas": 1}})
    );
}
