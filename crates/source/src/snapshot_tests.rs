use proptest::prelude::*;
use serde::de::DeserializeSeed;

use super::*;
use crate::facts;
use engine::model::object::{Object, ObjectKind};
use engine::model::server_version::ServerVersion;

const WORDS: &str = "yes off y null ~ true 0755 0x1F 1_000 1e3 .5 - 2020-01-01 12:30:45 << = ' \" \\ \
    *a &a !x {a} [ --- é @ ` %a ?";

/// Words that YAML may take for something else, and ordinary words.
fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        proptest::sample::select(WORDS.split(' ').collect::<Vec<_>>()).prop_map(str::to_owned),
        proptest::sample::select(vec!["", "a: b", "a #b", "a\nb", " a", "a ", "\t", "\u{1}"])
            .prop_map(str::to_owned),
        "[a-z]{1,8}",
        // Text that looks like a placeholder is not read as a fact.
        "[\\PC&&[^$<{%@_\\[]]{0,16}",
    ]
}

fn pairs() -> impl Strategy<Value = Value> {
    proptest::collection::hash_map(word(), word(), 0..3).prop_map(|pairs| json!(pairs))
}

fn modes() -> impl Strategy<Value = Value> {
    proptest::sample::subsequence(
        vec!["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"],
        0..4,
    )
    .prop_map(|modes| json!(modes))
}

fn expressions() -> impl Strategy<Value = Value> {
    let operators =
        proptest::sample::select(vec!["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]);
    let one = (word(), operators, proptest::collection::vec(word(), 0..3)).prop_map(
        |(key, operator, values)| json!({"key": key, "operator": operator, "values": values}),
    );
    proptest::collection::vec(one, 0..3).prop_map(|all| json!(all))
}

fn nodes() -> impl Strategy<Value = Value> {
    proptest::option::of(proptest::collection::vec((expressions(), expressions()), 0..3)).prop_map(
        |terms| {
            terms.map_or(Value::Null, |terms| {
                let terms: Vec<_> = terms
                .into_iter()
                .map(|(labels, fields)| json!({"matchExpressions": labels, "matchFields": fields}))
                .collect();
                json!({"required": {"nodeSelectorTerms": terms}})
            })
        },
    )
}

/// Facts of several kinds, with values from `word` wherever text is free.
fn cluster() -> impl Strategy<Value = Vec<(ObjectKind, Value)>> {
    let class = (word(), pairs(), any::<bool>(), word()).prop_map(
        |(provisioner, parameters, default, value)| {
            json!({"metadata": {"name": "class", "creationTimestamp": "2025-01-01T00:00:00Z",
            "annotations": {"storageclass.kubernetes.io/is-default-class": default.to_string(),
                "multi-attach-guard.dev/access-modes": value}},
            "provisioner": provisioner, "parameters": parameters,
            "allowedTopologies": [{"matchLabelExpressions": [{"key": value, "values": [value]}]}]})
        },
    );
    let driver = any::<Option<bool>>().prop_map(
        |attach| json!({"metadata": {"name": "driver"}, "spec": {"attachRequired": attach}}),
    );
    let node = (pairs(), word()).prop_map(|(labels, word)| {
        json!({"metadata": {"name": "node", "labels": labels},
            "spec": {"taints": [{"key": word, "value": word, "effect": "NoSchedule"}]},
            "status": {"allocatable": {"cpu": "4", "example.com/gpu": "2"}}})
    });
    let source = proptest::sample::select(vec!["csi", "nfs", "local", "other"]);
    let volume = (pairs(), modes(), word(), nodes(), source, any::<bool>()).prop_map(
        |(labels, modes, word, nodes, source, free)| {
            let claim = if free { Value::Null } else { json!({"namespace": word, "name": word}) };
            json!({"metadata": {"name": "volume", "labels": labels}, "spec": {"accessModes": modes,
                "storageClassName": word, "volumeMode": "Block", "capacity": {"storage": "1.5Gi"},
                "nodeAffinity": nodes, "claimRef": claim, source: {"driver": word}}})
        },
    );
    let claim = (modes(), proptest::option::of(word()), expressions(), any::<bool>(), word()).prop_map(
        |(modes, class_name, expressions, yes, word)| {
            let there = |value: Value| if yes { value } else { Value::Null };
            json!({"metadata": {"name": "claim", "namespace": "shop", "deletionTimestamp": there(json!("2026-01-01T00:00:00Z")),
                "annotations": {"multi-attach-guard.dev/reason": word},
                "ownerReferences": there(json!([{"kind": "Shop", "name": word, "controller": true}]))},
                "spec": {"accessModes": modes, "storageClassName": class_name, "volumeName": word,
                    "resources": {"requests": {"storage": "10Gi"}}, "dataSource": there(json!({"name": "d"})),
                    "volumeAttributesClassName": there(json!(word)),
                    "selector": there(json!({"matchExpressions": expressions, "matchLabels": {"a": word}}))},
                "status": {"accessModes": modes}})
        },
    );
    let namespace =
        pairs().prop_map(|labels| json!({"metadata": {"name": "shop", "labels": labels}}));
    (class, driver, node, volume, claim, namespace).prop_map(
        |(class, driver, node, volume, claim, namespace)| {
            vec![
                (ObjectKind::StorageClass, class),
                (ObjectKind::CsiDriver, driver),
                (ObjectKind::Node, node),
                (ObjectKind::Volume, volume),
                (ObjectKind::Claim, claim),
                (ObjectKind::Namespace, namespace),
            ]
        },
    )
}

fn filled(objects: &[(ObjectKind, Value)]) -> Snapshot {
    let mut cluster = Snapshot::complete();
    for (kind, value) in objects {
        let object: Object = kind.deserialize(value.clone()).unwrap();
        cluster.apply(object);
    }
    cluster
}

fn snapshot(cluster: &Snapshot) -> String {
    let mut text = Vec::new();
    write(cluster, |yaml, _| yaml, &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

proptest! {
    #[test]
    fn a_snapshot_reads_back_as_the_same_facts(cluster in cluster()) {
        let cluster = filled(&cluster);
        let text = snapshot(&cluster);
        let read = facts::load(&["-".into()], &mut text.as_bytes()).unwrap();
        prop_assert_eq!(cluster.objects().count(), read.objects().count());
        for object in cluster.objects() {
            prop_assert!(read.contains(object), "{:?} in {}", object, text);
        }
    }
}

#[test]
fn a_snapshot_says_the_version_of_the_api_server() {
    let mut cluster = Snapshot::complete();
    (cluster.server, _) = ServerVersion::read("v1.38.2");
    let text = snapshot(&cluster);
    let read = facts::load(&["-".into()], &mut text.as_bytes()).unwrap();
    assert_eq!(read.server, cluster.server, "{text}");
    assert!(read.server.recreates_stateful_sets(), "{text}");
}

#[test]
fn a_snapshot_is_sorted_and_holds_no_secret() {
    let class = |name: &str| {
        (
            ObjectKind::StorageClass,
            json!({"metadata": {"name": name}, "provisioner": "kubernetes.io/glusterfs", "parameters":
                {"restuserkey": "open sesame", "csi.storage.k8s.io/node-stage-secret-name": "keys"}}),
        )
    };
    let volume = json!({"metadata": {"name": "v", "annotations": {"note": "open sesame"}}, "spec": {
        "csi": {"driver": "d", "volumeAttributes": {"share": "open sesame"}, "volumeHandle": "open sesame"}}});
    let text = snapshot(&filled(&[class("b"), class("a"), (ObjectKind::Volume, volume)]));
    assert!(!text.contains("sesame"), "{text}");
    assert!(text.contains("restuserkey: REDACTED"), "{text}");
    assert!(text.contains("node-stage-secret-name: keys"), "{text}");
    assert!(text.find("name: a") < text.find("name: b"), "{text}");
}
