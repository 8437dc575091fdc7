use std::collections::BTreeMap;

use serde::de::DeserializeSeed;
use serde_json::{Value, json};

use super::*;
use crate::model::Text;
use crate::model::labels::Labels;
use crate::model::object::{Object, ObjectKind};
use crate::model::workload::{Workload, WorkloadKind};

fn object(group: &str, kind: &str, value: Value) -> Object {
    ObjectKind::of(group, kind).unwrap().deserialize(value).unwrap()
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
    object("", "Node", json!({"metadata": {"name": name, "labels": {"zone": zone, "os": "linux"}}}))
}

fn autoscaler(name: &str, api_version: &str, kind: &str, target: &str) -> Object {
    object(
        "autoscaling",
        "HorizontalPodAutoscaler",
        json!({"metadata": {"namespace": "shop", "name": name}, "spec": {"maxReplicas": 3,
            "scaleTargetRef": {"apiVersion": api_version, "kind": kind, "name": target}}}),
    )
}

fn filled(objects: impl IntoIterator<Item = Object>) -> Snapshot {
    let mut cluster = Snapshot::complete();
    for object in objects {
        cluster.apply(object);
    }
    cluster
}

fn names<'a>(workloads: &[&'a Workload]) -> Vec<&'a str> {
    let mut names: Vec<_> = workloads.iter().map(|w| w.metadata.name.as_str()).collect();
    names.sort_unstable();
    names
}

fn nodes(view: View<'_>, hint: Option<NodeHint<'_>>) -> (bool, Vec<String>) {
    let mut names: Vec<_> = view.nodes(hint).map(|node| node.metadata.name.to_string()).collect();
    names.sort_unstable();
    (view.knows_nodes(), names)
}

fn visited(view: View<'_>, namespace: Option<&str>, labels: &[(&str, &str)]) -> Vec<String> {
    let mut names: Vec<_> = view
        .workloads_with(namespace, labels.iter().copied().collect())
        .map(|workload| format!("{}/{}", workload.metadata.namespace, workload.metadata.name))
        .collect();
    names.sort_unstable();
    names
}

#[test]
fn nothing_is_absent_before_its_kind_has_synced() {
    let mut cluster = Snapshot::new();
    assert_eq!(cluster.view().claim("shop", "data"), Lookup::NotSynced);
    assert_eq!(cluster.view().default_storage_class(), Lookup::NotSynced);
    assert_eq!(cluster.view().node("n1"), Lookup::NotSynced);
    cluster.apply(claim("shop", "data"));
    cluster.apply(class("fast", "", true));
    cluster.apply(node("n1", "a"));
    assert!(cluster.view().claim("shop", "data").found().is_some());
    assert_eq!(cluster.view().default_storage_class(), Lookup::NotSynced, "a newer one may come");
    assert_eq!(nodes(cluster.view(), None), (false, vec![]), "half the nodes would mislead");
    assert_eq!(cluster.view().node("n2"), Lookup::NotSynced);
    assert_eq!(cluster.view().claim("shop", "other"), Lookup::NotSynced);

    cluster.synced(ObjectKind::Claim);
    assert_eq!(cluster.view().claim("shop", "other"), Lookup::Absent);
    assert_eq!(cluster.view().claim("data", "shop"), Lookup::Absent);
    assert_eq!(cluster.view().volume("pv"), Lookup::NotSynced, "another kind");

    cluster.synced(ObjectKind::Workload(WorkloadKind::Job));
    assert_eq!(cluster.view().workload(WorkloadKind::Job, "shop", "x"), Lookup::Absent);
    assert_eq!(cluster.view().workload(WorkloadKind::Deployment, "shop", "x"), Lookup::NotSynced);
}

#[test]
fn a_complete_cluster_without_nodes_says_so() {
    assert!(!Snapshot::complete().view().knows_nodes());
    assert_eq!(Snapshot::complete().view().node("n1"), Lookup::Absent);
    assert_eq!(Snapshot::complete().view().default_storage_class(), Lookup::Absent);
}

#[test]
fn a_claim_leads_to_the_workloads_that_use_or_make_it() {
    let cluster = filled([
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
            names(&cluster.view().workloads_using(namespace, claim)),
            expected,
            "{namespace}/{claim}"
        );
    }
}

#[test]
fn workloads_whose_owner_is_judged_are_not_kept_but_for_pods_with_claims() {
    fn users(cluster: &Snapshot) -> Vec<&str> {
        names(&cluster.view().workloads_using("shop", "data"))
    }
    let pod = |owner: Value, volumes: Value| {
        object(
            "",
            "Pod",
            json!({"metadata": {"namespace": "shop", "name": "p", "ownerReferences": owner},
                "spec": {"volumes": volumes}}),
        )
    };
    let owner = || json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "controller": true}]);
    let claim = || json!([{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]);
    let mut cluster = Snapshot::complete();
    assert!(!cluster.apply(pod(owner(), json!([{"name": "v", "emptyDir": {}}]))));
    assert_eq!(cluster.count(ObjectKind::Workload(WorkloadKind::Pod)), 0);
    assert!(cluster.apply(pod(json!([]), claim())));
    assert_eq!(users(&cluster), ["p"]);
    assert!(cluster.apply(pod(owner(), claim())), "adopted");
    assert_eq!(users(&cluster), [""; 0]);
    assert_eq!(cluster.objects().count(), 0);
}

/// An owned object is a user of its claim if its owner neither uses the claim nor releases the
/// object.
#[test]
fn a_user_of_a_claim_does_not_hide_behind_an_owner() {
    const UID: &str = "0b6d9a4e-3a5c-4b8e-9a43-6f1f0e6c2d11";
    const OTHER: &str = "1b6d9a4e-3a5c-4b8e-9a43-6f1f0e6c2d11";
    let kind = |name: &str| WorkloadKind::from_name(name).unwrap();
    let using = |name: &str, claim: &str, metadata: Value, more: Value| {
        let pod =
            json!({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]});
        let mut spec = match name {
            "Pod" => pod,
            "CronJob" => json!({"jobTemplate": {"spec": {"template": {"spec": pod}}}}),
            _ => json!({"template": {"spec": pod}}),
        };
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let group = ObjectKind::Workload(kind(name)).group();
        object(group, name, json!({"metadata": metadata, "spec": spec}))
    };
    // The kinds of the owned object and its owner, the owner's `apiVersion` in the reference, its
    // claim and uid, its other fields, and whether the owned object is seen.
    let none = || json!({});
    let cases = [
        ("ReplicaSet", "Deployment", "apps/v1", Some(("data", UID)), none(), false),
        ("ReplicaSet", "Deployment", "apps/v1", Some(("other", UID)), none(), false),
        (
            "ReplicaSet",
            "Deployment",
            "apps/v1",
            Some(("other", UID)),
            json!({"paused": true}),
            true,
        ),
        (
            "ReplicaSet",
            "Deployment",
            "apps/v1",
            Some(("data", UID)),
            json!({"paused": true}),
            false,
        ),
        (
            "ReplicaSet",
            "Deployment",
            "apps/v1",
            Some(("other", OTHER)),
            json!({"paused": true}),
            false,
        ),
        ("ReplicaSet", "Deployment", "apps/v1", None, none(), false),
        ("ReplicaSet", "Deployment", "apps/v9", None, none(), true),
        ("Job", "CronJob", "batch/v1", Some(("data", UID)), none(), false),
        ("Job", "CronJob", "batch/v1", Some(("other", UID)), none(), true),
        ("Pod", "ReplicaSet", "apps/v1", Some(("data", UID)), none(), false),
        ("Pod", "ReplicaSet", "apps/v1", Some(("other", UID)), none(), true),
        ("Pod", "DaemonSet", "apps/v1", Some(("other", UID)), none(), false),
        (
            "Pod",
            "DaemonSet",
            "apps/v1",
            Some(("other", UID)),
            json!({"updateStrategy": {"type": "OnDelete"}}),
            true,
        ),
    ];
    for (owned, owner, version, there, more, expected) in cases {
        let reference = json!([{"apiVersion": version, "kind": owner, "name": "o", "uid": UID, "controller": true}]);
        let metadata = json!({"namespace": "shop", "name": "owned", "ownerReferences": reference,
            "labels": {"pod-template-hash": "6d4", "controller-revision-hash": "6d4", "job-name": "x"}});
        let mut cluster = filled([using(owned, "data", metadata, json!({}))]);
        if let Some((claim, uid)) = there {
            let owner_metadata = json!({"namespace": "shop", "name": "o", "uid": uid});
            cluster.apply(using(owner, claim, owner_metadata, more.clone()));
        }
        let users = names(&cluster.view().workloads_using("shop", "data"));
        let is_seen = users.contains(&"owned");
        assert_eq!(is_seen, expected, "{owned} of {owner} {version}, {there:?} {more}");
    }
}

#[test]
fn workloads_are_visited_by_their_pods_labels() {
    let cluster = filled([
        deployment("shop", "a", &[("app", "a"), ("part-of", "shop")], &[]),
        deployment("shop", "b", &[("app", "b"), ("part-of", "shop")], &[]),
        deployment("blog", "a", &[("app", "a"), ("part-of", "blog")], &[]),
        deployment("blog", "bare", &[], &[]),
    ]);
    type Case =
        (Option<&'static str>, &'static [(&'static str, &'static str)], &'static [&'static str]);
    let cases: [Case; 8] = [
        (Some("shop"), &[("part-of", "shop")], &["shop/a", "shop/b"]),
        (Some("shop"), &[("part-of", "shop"), ("app", "b")], &["shop/b"]),
        (Some("shop"), &[("part-of", "blog")], &[]),
        (Some("blog"), &[], &["blog/a", "blog/bare"]),
        (Some("none"), &[], &[]),
        (None, &[("app", "a")], &["blog/a", "shop/a"]),
        (None, &[("app", "a"), ("part-of", "x")], &[]),
        (None, &[], &["blog/a", "blog/bare", "shop/a", "shop/b"]),
    ];
    for (namespace, labels, expected) in cases {
        assert_eq!(
            visited(cluster.view(), namespace, labels),
            expected,
            "{namespace:?} {labels:?}"
        );
    }
}

#[test]
fn a_search_spends_steps_only_for_what_it_looks_at() {
    let cluster = filled(
        (0..300)
            .map(|number| deployment("shop", &format!("w{number}"), &[("app", "w")], &["data"])),
    );
    let app: Labels = [("app", "w")].into_iter().collect();
    let budget = WorkBudget::new(250);
    let view = cluster.view().within(&budget);
    let found = view.workloads_with(Some("shop"), app.clone());
    assert_eq!(found.take(200).count(), 200);
    assert!(!budget.is_exhausted());
    assert!(view.workloads_with(Some("shop"), app).count() < 50);
    assert!(budget.is_exhausted());
}

#[test]
fn lists_are_requested_only_in_namespaces_that_can_exist() {
    let cluster = Snapshot::complete();
    for (namespace, is_requested) in [(None, true), (Some("shop"), true), (Some("../x?"), false)] {
        let mut lookups = LiveLookups::confirming_everything();
        let overlay = Overlay { lookups: Some(&lookups), ..Overlay::NOTHING };
        let view = View::new(&cluster, &overlay);
        assert_eq!(view.workloads_with(namespace, Labels::default()).count(), 0);
        assert_ne!(lookups.take_pending().is_empty(), is_requested, "{namespace:?}");
    }
}

#[test]
fn overlays_take_precedence_over_the_cluster() {
    let cluster =
        filled([volume("pv1", "fast", None), claim("shop", "far"), class("fast", "", false)]);
    let near = volume("pv1", "slow", None);
    let overlay = Overlay { nearer: Some(&near), ..Overlay::NOTHING };
    let view = View::new(&cluster, &overlay);
    assert_eq!(view.volume("pv1").found().unwrap().spec.storage_class_name, "slow");
    assert!(view.claim("shop", "far").found().is_some());
    assert_eq!(view.claim("shop", "none"), Lookup::Absent);
    assert_eq!(view.claim("blog", "far"), Lookup::Absent);
    assert!(view.storage_class("fast").found().is_some());
}

#[test]
fn a_hint_narrows_the_nodes() {
    let cluster = filled([node("n1", "a"), node("n2", "a"), node("n3", "b")]);
    let cases: [(&str, &[&str], &[&str]); 6] = [
        ("zone", &["a"], &["n1", "n2"]),
        ("zone", &["a", "b"], &["n1", "n2", "n3"]),
        ("zone", &["c"], &[]),
        ("os", &["linux"], &["n1", "n2", "n3"]),
        ("metadata.name", &["n3", "n9"], &["n3"]),
        ("none", &["x"], &[]),
    ];
    for (key, values, expected) in cases {
        let values: Vec<Text> = values.iter().map(|value| (*value).into()).collect();
        let hint = NodeHint { key, values: values.clone().into() };
        let (known, found) = nodes(cluster.view(), Some(hint));
        assert!(known, "{key} {values:?}");
        assert_eq!(found, expected, "{key} {values:?}");
    }
}

#[test]
fn the_default_class_is_the_newest_default_class() {
    let mut cluster = filled([
        class("old", "2024-01-01T00:00:00Z", true),
        class("new", "2025-06-01T00:00:00Z", true),
        class("newest", "2026-01-01T00:00:00Z", false),
        class("alike", "2025-06-01T00:00:00Z", true),
    ]);
    let default = |snapshot: &Snapshot| {
        snapshot.view().default_storage_class().found().unwrap().metadata.name.clone()
    };
    assert_eq!(default(&cluster), "alike", "of two as new, the first by name");
    cluster.remove(ObjectKind::StorageClass, "", "alike");
    assert_eq!(default(&cluster), "new");
    cluster.apply(class("new", "2025-06-01T00:00:00Z", false));
    assert_eq!(default(&cluster), "old");
    let all: Vec<_> =
        cluster.view().storage_classes().iter().map(|class| class.metadata.name.clone()).collect();
    assert_eq!(all, ["new", "newest", "old"]);
}

#[test]
fn volumes_are_free_until_they_name_a_claim() {
    let mut cluster = filled([
        volume("pv1", "fast", None),
        volume("pv2", "fast", Some("data")),
        volume("pv3", "", None),
    ]);
    let free = |snapshot: &Snapshot, class: &str| -> Vec<String> {
        snapshot
            .view()
            .free_volumes(class)
            .iter()
            .map(|volume| volume.metadata.name.to_string())
            .collect()
    };
    assert_eq!(free(&cluster, "fast"), ["pv1"]);
    assert_eq!(free(&cluster, ""), ["pv3"]);
    cluster.apply(volume("pv1", "fast", Some("data")));
    assert!(free(&cluster, "fast").is_empty());
    cluster.apply(volume("pv2", "fast", None));
    assert_eq!(free(&cluster, "fast"), ["pv2"]);
}

#[test]
fn autoscalers_are_found_by_their_target() {
    let cluster = filled([
        autoscaler("one", "apps/v1", "Deployment", "web"),
        autoscaler("two", "apps/v1", "Deployment", "web"),
        autoscaler("three", "apps/v1", "StatefulSet", "web"),
        autoscaler("four", "example.com/v1", "Deployment", "web"),
    ]);
    let found = |kind, namespace| {
        let mut names: Vec<_> = cluster
            .view()
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
    let mut cluster = Snapshot::new();
    let first = StoredObject::of(node("n1", "a")).unwrap();
    assert!(!cluster.contains(&first));
    assert!(cluster.put(&first));
    assert!(cluster.contains(&first));
    assert!(!cluster.put(&first));
    let other = StoredObject::of(node("n1", "b")).unwrap();
    assert!(!cluster.contains(&other));
    assert!(cluster.put(&other));
}

#[test]
fn a_complete_list_removes_the_objects_it_does_not_contain() {
    let mut cluster = filled([
        claim("shop", "kept"),
        claim("shop", "gone"),
        deployment("shop", "gone", &[], &["kept"]),
        stateful_set("shop", "other-kind", 1, "data"),
    ]);
    let kind = ObjectKind::Workload(WorkloadKind::Deployment);
    cluster.begin_list(ObjectKind::Claim);
    cluster.begin_list(kind);
    cluster.apply(claim("shop", "kept"));
    assert!(cluster.view().claim("shop", "gone").found().is_some(), "not yet");
    cluster.synced(ObjectKind::Claim);
    cluster.synced(kind);
    assert!(cluster.view().claim("shop", "kept").found().is_some());
    assert_eq!(cluster.view().claim("shop", "gone"), Lookup::Absent);
    assert!(cluster.view().workloads_using("shop", "kept").is_empty());
    assert_eq!(names(&cluster.view().workloads_using("shop", "data-other-kind-0")), ["other-kind"]);
}

fn missing(cluster: &Snapshot, namespace: &str) -> Lookup<()> {
    cluster.view().claim(namespace, "missing").map(|_| ())
}

/// A limit at which a Deployment with two claims is stored and one with 100 is not.
const LIMIT: usize = 12 << 20;

#[test]
fn an_object_that_is_too_large_is_left_out_for_its_namespace_alone() {
    let many: Vec<String> = (0..100).map(|number| format!("data-{number}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let labels: Vec<(&str, &str)> = many.iter().map(|name| (*name, "")).collect();
    let large = [
        deployment("wide", "wide", &[], &many),
        deployment("wide", "wide", &labels, &[]),
        object(
            "autoscaling",
            "HorizontalPodAutoscaler",
            json!({"metadata": {"namespace": "wide", "name": "wide"},
                "spec": {"scaleTargetRef": {"kind": "x".repeat(3000)}}}),
        ),
        object(
            "",
            "PersistentVolumeClaim",
            json!({"metadata": {"namespace": "wide", "name": "wide"},
                "spec": {"selector": {"matchExpressions": [{"key": "x", "operator": "In", "values": many}]}}}),
        ),
        object(
            "",
            "Namespace",
            json!({"metadata": {"name": "wide", "labels": labels.iter().copied().collect::<BTreeMap<_, _>>()}}),
        ),
    ];
    for object in large {
        let mut cluster = Snapshot::complete().limited(LIMIT);
        cluster.apply(claim("shop", "data"));
        cluster.apply(deployment("wide", "small", &[], &["data", "logs"]));
        let (kind, before) = (object.kind(), cluster.usage());
        let stored = StoredObject::of(object.clone()).unwrap();
        assert!(cluster.apply(object.clone()));
        assert!(!cluster.apply(object.clone()) && cluster.contains(&stored), "the same again");
        assert_eq!(cluster.usage(), Usage { left_out: 1, ..before }, "{kind:?}");
        assert_eq!(missing(&cluster, "wide"), Lookup::NotSynced);
        assert_eq!(missing(&cluster, "shop"), Lookup::Absent);
        assert_eq!(cluster.view().node("missing"), Lookup::Absent);
        assert!(
            cluster.view().workload(WorkloadKind::Deployment, "wide", "small").found().is_some()
        );

        let mut again = cluster.clone();
        again.begin_list(kind);
        again.apply(claim("shop", "data"));
        again.apply(deployment("wide", "small", &[], &["data", "logs"]));
        again.synced(kind);
        assert_eq!(again.usage(), before, "a list without it");

        let key = stored.key();
        assert!(cluster.remove(kind, key.namespace, key.name));
        assert_eq!(cluster.usage(), before);
        assert_eq!(missing(&cluster, "wide"), Lookup::Absent);
    }
}

#[test]
fn namespaces_that_take_most_lose_their_largest_objects() {
    const NAMESPACES: [&str; 4] = ["a", "b", "c", "d"];
    const MANY: usize = 50_000;
    let mut cluster = Snapshot::complete().limited(LIMIT);
    cluster.apply(claim("shop", "data"));
    cluster.apply(deployment("shop", "web", &[], &["data"]));
    let shop = cluster.usage();
    for namespace in NAMESPACES {
        let before = cluster.usage().bytes;
        cluster.apply(deployment(namespace, "web", &[], &["data"]));
        for number in 0..MANY {
            if cluster.leaves_out(namespace) {
                break;
            }
            cluster.apply(claim(namespace, &format!("data-{number}")));
        }
        assert!(cluster.leaves_out(namespace), "{namespace}");
        assert!(cluster.usage().bytes <= LIMIT.min(before + LIMIT / 3), "{namespace}");
    }
    assert!(cluster.usage().bytes > LIMIT / 2);
    for namespace in NAMESPACES {
        assert!(cluster.view().claim(namespace, "data-0").found().is_some(), "a small object");
        let web = cluster.view().workload(WorkloadKind::Deployment, namespace, "web").map(|_| ());
        assert_eq!(web, Lookup::NotSynced, "the largest object");
    }
    assert_eq!(missing(&cluster, "shop"), Lookup::Absent);
    assert_eq!(names(&cluster.view().workloads_using("shop", "data")), ["web"]);
    for namespace in NAMESPACES {
        cluster.remove(deployment("", "", &[], &[]).kind(), namespace, "web");
        for number in 0..MANY {
            cluster.remove(ObjectKind::Claim, namespace, &format!("data-{number}"));
        }
    }
    assert_eq!(cluster.usage(), shop, "nothing is left behind");
}
