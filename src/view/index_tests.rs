use std::collections::BTreeMap;

use serde::de::DeserializeSeed;
use serde_json::{Value, json};

use super::super::shared::SharedIndex;
use super::*;

fn object(group: &str, kind: &str, value: Value) -> Object {
    ObjectKind::of(group, kind)
        .unwrap()
        .deserialize(value)
        .unwrap()
}

fn claim(namespace: &str, name: &str) -> Object {
    object(
        "",
        "PersistentVolumeClaim",
        json!({"metadata": {"namespace": namespace, "name": name}, "spec": {"accessModes": ["ReadWriteOnce"]}}),
    )
}

fn deployment(namespace: &str, name: &str, labels: &[(&str, &str)], claims: &[&str]) -> Object {
    let labels: BTreeMap<_, _> = labels.iter().copied().collect();
    let volumes: Vec<_> = claims
        .iter()
        .map(|claim| json!({"name": "v", "persistentVolumeClaim": {"claimName": claim}}))
        .collect();
    object(
        "apps",
        "Deployment",
        json!({"metadata": {"namespace": namespace, "name": name}, "spec": {
            "template": {"metadata": {"labels": labels}, "spec": {"volumes": volumes}}}}),
    )
}

fn stateful_set(namespace: &str, name: &str, replicas: i64, template: &str) -> Object {
    object(
        "apps",
        "StatefulSet",
        json!({"metadata": {"namespace": namespace, "name": name}, "spec": {
            "replicas": replicas, "volumeClaimTemplates": [{"metadata": {"name": template}}]}}),
    )
}

fn class(name: &str, created: &str, default: bool) -> Object {
    object(
        "storage.k8s.io",
        "StorageClass",
        json!({"metadata": {"name": name, "creationTimestamp": created, "annotations":
            {"storageclass.kubernetes.io/is-default-class": default.to_string()}}, "provisioner": "p"}),
    )
}

fn volume(name: &str, class: &str, claim: Option<&str>) -> Object {
    let claim = claim.map(|claim| json!({"namespace": "shop", "name": claim}));
    object(
        "",
        "PersistentVolume",
        json!({"metadata": {"name": name}, "spec": {"storageClassName": class, "claimRef": claim}}),
    )
}

fn node(name: &str, zone: &str) -> Object {
    object(
        "",
        "Node",
        json!({"metadata": {"name": name, "labels": {"zone": zone, "os": "linux"}}}),
    )
}

fn autoscaler(name: &str, api_version: &str, kind: &str, target: &str) -> Object {
    object(
        "autoscaling",
        "HorizontalPodAutoscaler",
        json!({"metadata": {"namespace": "shop", "name": name}, "spec": {"maxReplicas": 3,
            "scaleTargetRef": {"apiVersion": api_version, "kind": kind, "name": target}}}),
    )
}

fn filled(objects: impl IntoIterator<Item = Object>) -> Index {
    let mut index = Index::complete();
    for object in objects {
        index.apply(object);
    }
    index
}

fn names(workloads: &[Arc<Workload>]) -> Vec<&str> {
    let mut names: Vec<_> = workloads.iter().map(|w| w.metadata.name.as_str()).collect();
    names.sort_unstable();
    names
}

fn nodes(view: &dyn ClusterView, hint: Option<&NodeHint<'_>>) -> (Lookup<()>, Vec<String>) {
    let mut names = Vec::new();
    let known = view.visit_nodes(hint, &mut |node| {
        names.push(node.name.to_string());
        true
    });
    names.sort_unstable();
    (known, names)
}

fn visited(
    view: &dyn ClusterView,
    namespace: Option<&str>,
    labels: &[(&str, &str)],
) -> Vec<String> {
    let labels: Labels = labels.iter().copied().collect();
    let mut names = Vec::new();
    view.visit_workloads(namespace, &labels, &mut |workload| {
        names.push(format!(
            "{}/{}",
            workload.metadata.namespace, workload.metadata.name
        ));
        true
    });
    names.sort_unstable();
    names
}

#[test]
fn nothing_is_absent_before_its_kind_has_synced() {
    let mut index = Index::new();
    assert_eq!(index.claim("shop", "data"), Lookup::NotSynced);
    assert_eq!(index.default_storage_class(), Lookup::NotSynced);
    assert_eq!(index.visit_nodes(None, &mut |_| true), Lookup::NotSynced);
    index.apply(claim("shop", "data"));
    index.apply(class("fast", "", true));
    index.apply(node("n1", "a"));
    assert!(index.claim("shop", "data").found().is_some());
    assert_eq!(
        index.default_storage_class(),
        Lookup::NotSynced,
        "a newer one may come"
    );
    assert_eq!(
        nodes(&index, None),
        (Lookup::NotSynced, vec![]),
        "half the nodes would mislead"
    );
    assert_eq!(index.claim("shop", "other"), Lookup::NotSynced);

    index.synced(ObjectKind::Claim);
    assert_eq!(index.claim("shop", "other"), Lookup::Absent);
    assert_eq!(index.claim("data", "shop"), Lookup::Absent);
    assert_eq!(index.volume("pv"), Lookup::NotSynced, "another kind");

    index.synced(ObjectKind::Workload(WorkloadKind::Job));
    assert_eq!(
        index.workload(WorkloadKind::Job, "shop", "x"),
        Lookup::Absent
    );
    assert_eq!(
        index.workload(WorkloadKind::Deployment, "shop", "x"),
        Lookup::NotSynced
    );
}

#[test]
fn a_complete_index_without_nodes_says_so() {
    assert_eq!(nodes(&Index::complete(), None).0, Lookup::Absent);
    assert_eq!(Index::complete().default_storage_class(), Lookup::Absent);
}

#[test]
fn a_claim_leads_to_the_workloads_that_use_or_make_it() {
    let index = filled([
        deployment("shop", "web", &[], &["data", "data"]),
        deployment("shop", "backup", &[], &["data", "logs", "data-db-0"]),
        deployment("blog", "web", &[], &["data"]),
        stateful_set("shop", "db", 2, "data"),
        stateful_set("shop", "data-db", 1, "x"),
    ]);
    let cases: [(&str, &str, &[&str]); 7] = [
        ("shop", "data", &["backup", "web"]),
        ("shop", "logs", &["backup"]),
        ("blog", "data", &["web"]),
        ("blog", "logs", &[]),
        ("shop", "data-db-0", &["backup", "db"]),
        ("shop", "data-db-1", &["db"]),
        ("shop", "data-db-2", &[]),
    ];
    for (namespace, claim, expected) in cases {
        assert_eq!(
            names(&index.workloads_using(namespace, claim)),
            expected,
            "{namespace}/{claim}"
        );
    }
}

#[test]
fn workloads_whose_owner_is_judged_are_not_kept() {
    let pod = |owner: Value| {
        object(
            "",
            "Pod",
            json!({"metadata": {"namespace": "shop", "name": "p", "ownerReferences": owner},
                "spec": {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}}),
        )
    };
    let owned = || pod(json!([{"kind": "ReplicaSet", "name": "r", "controller": true}]));
    let mut index = Index::complete();
    assert!(!index.apply(owned()));
    assert!(index.workloads_using("shop", "data").is_empty());
    assert!(index.apply(pod(json!([]))));
    assert_eq!(names(&index.workloads_using("shop", "data")), ["p"]);
    assert!(index.apply(owned()), "adopted");
    assert!(index.workloads_using("shop", "data").is_empty());
}

#[test]
fn workloads_are_visited_by_their_pods_labels() {
    let index = SharedIndex::new(filled([
        deployment("shop", "a", &[("app", "a"), ("part-of", "shop")], &[]),
        deployment("shop", "b", &[("app", "b"), ("part-of", "shop")], &[]),
        deployment("blog", "a", &[("app", "a"), ("part-of", "blog")], &[]),
        deployment("blog", "bare", &[], &[]),
    ]));
    type Case = (
        Option<&'static str>,
        &'static [(&'static str, &'static str)],
        &'static [&'static str],
    );
    let cases: [Case; 8] = [
        (Some("shop"), &[("part-of", "shop")], &["shop/a", "shop/b"]),
        (
            Some("shop"),
            &[("part-of", "shop"), ("app", "b")],
            &["shop/b"],
        ),
        (Some("shop"), &[("part-of", "blog")], &[]),
        (Some("blog"), &[], &["blog/a", "blog/bare"]),
        (Some("none"), &[], &[]),
        (None, &[("app", "a")], &["blog/a", "shop/a"]),
        (None, &[("app", "a"), ("part-of", "x")], &[]),
        (None, &[], &["blog/a", "blog/bare", "shop/a", "shop/b"]),
    ];
    for (namespace, labels, expected) in cases {
        assert_eq!(
            visited(&index, namespace, labels),
            expected,
            "{namespace:?} {labels:?}"
        );
    }
}

#[test]
fn a_visit_ends_when_told_and_may_ask_and_change_the_view_meanwhile() {
    let index =
        SharedIndex::new(filled((0..300).map(|number| {
            deployment("shop", &format!("w{number}"), &[("app", "w")], &["data"])
        })));
    let app: Labels = [("app", "w")].into_iter().collect();
    let mut visits = 0;
    index.visit_workloads(Some("shop"), &app, &mut |workload| {
        visits += 1;
        let name = &workload.metadata.name;
        assert!(!index.workloads_using("shop", "data").is_empty());
        index.remove(ObjectKind::Workload(WorkloadKind::Deployment), "shop", name);
        visits < 200
    });
    assert_eq!(visits, 200);
    assert_eq!(
        index.count(ObjectKind::Workload(WorkloadKind::Deployment)),
        100
    );

    index.apply(node("n1", "a"));
    index.apply(node("n2", "a"));
    let mut seen = Vec::new();
    index.visit_nodes(None, &mut |node| {
        seen.push(node.name.to_string());
        index.remove(ObjectKind::Node, "", "n1");
        index.remove(ObjectKind::Node, "", "n2");
        true
    });
    assert_eq!(seen, ["n1", "n2"], "the nodes of when the visit began");
    assert_eq!(nodes(&index, None).0, Lookup::Absent);
}

#[test]
fn a_hint_narrows_the_nodes() {
    let index = filled([node("n1", "a"), node("n2", "a"), node("n3", "b")]);
    let cases: [(&str, &[&str], &[&str]); 6] = [
        ("zone", &["a"], &["n1", "n2"]),
        ("zone", &["a", "b"], &["n1", "n2", "n3"]),
        ("zone", &["c"], &[]),
        ("os", &["linux"], &["n1", "n2", "n3"]),
        ("metadata.name", &["n3", "n9"], &["n3"]),
        ("none", &["x"], &[]),
    ];
    for (key, values, expected) in cases {
        let values: Vec<_> = values.iter().map(|value| (*value).into()).collect();
        let hint = NodeHint {
            key,
            values: &values,
        };
        let (known, found) = nodes(&index, Some(&hint));
        assert_eq!(known, Lookup::Found(()), "{key} {values:?}");
        assert_eq!(found, expected, "{key} {values:?}");
    }
}

#[test]
fn the_default_class_is_the_newest_that_says_so() {
    let mut index = filled([
        class("old", "2024-01-01T00:00:00Z", true),
        class("new", "2025-06-01T00:00:00Z", true),
        class("newest", "2026-01-01T00:00:00Z", false),
        class("alike", "2025-06-01T00:00:00Z", true),
    ]);
    let default = |index: &Index| index.default_storage_class().found().unwrap().name.clone();
    assert_eq!(default(&index), "alike", "of two as new, the first by name");
    index.remove(ObjectKind::StorageClass, "", "alike");
    assert_eq!(default(&index), "new");
    index.apply(class("new", "2025-06-01T00:00:00Z", false));
    assert_eq!(default(&index), "old");
    let all: Vec<_> = index
        .storage_classes()
        .iter()
        .map(|class| class.name.clone())
        .collect();
    assert_eq!(all, ["new", "newest", "old"]);
}

#[test]
fn volumes_are_free_until_a_claim_takes_them() {
    let mut index = filled([
        volume("pv1", "fast", None),
        volume("pv2", "fast", Some("data")),
        volume("pv3", "", None),
    ]);
    let free = |index: &Index, class: &str| -> Vec<String> {
        index
            .free_volumes(class)
            .iter()
            .map(|volume| volume.name.to_string())
            .collect()
    };
    assert_eq!(free(&index, "fast"), ["pv1"]);
    assert_eq!(free(&index, ""), ["pv3"]);
    index.apply(volume("pv1", "fast", Some("data")));
    assert!(free(&index, "fast").is_empty());
    index.apply(volume("pv2", "fast", None));
    assert_eq!(free(&index, "fast"), ["pv2"]);
}

#[test]
fn autoscalers_are_found_by_their_target() {
    let index = filled([
        autoscaler("one", "apps/v1", "Deployment", "web"),
        autoscaler("two", "apps/v1", "Deployment", "web"),
        autoscaler("three", "apps/v1", "StatefulSet", "web"),
        autoscaler("four", "example.com/v1", "Deployment", "web"),
    ]);
    let found = |kind, namespace| {
        let mut names: Vec<_> = index
            .autoscalers_of(kind, namespace, "web")
            .iter()
            .map(|autoscaler| autoscaler.metadata.name.to_string())
            .collect();
        names.sort_unstable();
        names
    };
    assert_eq!(found(WorkloadKind::Deployment, "shop"), ["one", "two"]);
    assert_eq!(found(WorkloadKind::StatefulSet, "shop"), ["three"]);
    assert!(found(WorkloadKind::Deployment, "blog").is_empty());
}

#[test]
fn a_heartbeat_changes_nothing() {
    let index = SharedIndex::default();
    assert!(index.apply(node("n1", "a")));
    let mut before = None;
    index.synced(ObjectKind::Node);
    index.visit_nodes(None, &mut |node| {
        before = Some(std::ptr::from_ref(node));
        true
    });
    assert!(!index.apply(node("n1", "a")));
    index.visit_nodes(None, &mut |node| {
        assert_eq!(Some(std::ptr::from_ref(node)), before, "not even replaced");
        true
    });
    assert!(index.apply(node("n1", "b")));
}

#[test]
fn a_new_list_drops_what_it_does_not_name_when_it_is_complete() {
    let mut index = filled([
        claim("shop", "kept"),
        claim("shop", "gone"),
        deployment("shop", "gone", &[], &["kept"]),
        stateful_set("shop", "other-kind", 1, "data"),
    ]);
    let kind = ObjectKind::Workload(WorkloadKind::Deployment);
    index.list_begins(ObjectKind::Claim);
    index.list_begins(kind);
    index.apply(claim("shop", "kept"));
    assert!(index.claim("shop", "gone").found().is_some(), "not yet");
    index.synced(ObjectKind::Claim);
    index.synced(kind);
    assert!(index.claim("shop", "kept").found().is_some());
    assert_eq!(index.claim("shop", "gone"), Lookup::Absent);
    assert!(index.workloads_using("shop", "kept").is_empty());
    assert_eq!(
        names(&index.workloads_using("shop", "data-other-kind-0")),
        ["other-kind"]
    );
}
