//! Objects in protobuf, as Kubernetes' own tests write them, read like the same objects
//! in JSON.

#![allow(
    clippy::unwrap_used,
    reason = "in a test, the panic and its message are the report"
)]

mod harness;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use engine::model::in_tree::InTreeType;
use engine::model::object::{Object, ObjectKind};
use kube_protobuf as protobuf;
use serde::de::DeserializeSeed;
use serde_json::{Value, json};

/// The objects that are followed, by their files. In each, every field has a value.
const OBJECTS: [&str; 15] = [
    "apps.v1.DaemonSet",
    "apps.v1.Deployment",
    "apps.v1.ReplicaSet",
    "apps.v1.StatefulSet",
    "autoscaling.v2.HorizontalPodAutoscaler",
    "batch.v1.CronJob",
    "batch.v1.Job",
    "core.v1.Namespace",
    "core.v1.Node",
    "core.v1.PersistentVolume",
    "core.v1.PersistentVolumeClaim",
    "core.v1.Pod",
    "core.v1.ReplicationController",
    "storage.k8s.io.v1.CSIDriver",
    "storage.k8s.io.v1.StorageClass",
];

/// Where nothing and something empty are two things: pointers in Go, what Kubernetes does
/// not let be empty, and a map, which is not written when empty.
const NOT_THE_SAME_EMPTY: [&str; 24] = [
    "allocatable",
    "attachRequired",
    "claimRef",
    "completionTime",
    "completions",
    "csi",
    "dataSource",
    "dataSourceRef",
    "effect",
    "key",
    "labelSelector",
    "maxSkew",
    "minDomains",
    "minReplicas",
    "namespaceSelector",
    "operator",
    "parallelism",
    "persistentVolumeClaim",
    "replicas",
    "required",
    "requiredDuringSchedulingIgnoredDuringExecution",
    "selector",
    "storageClassName",
    "volumeClaimTemplate",
];

/// The maps of strings.
const MAPS: [&str; 9] = [
    "allocatable",
    "annotations",
    "capacity",
    "labels",
    "limits",
    "matchLabels",
    "nodeSelector",
    "parameters",
    "requests",
];

struct Sample {
    name: &'static str,
    kind: ObjectKind,
    protobuf: Vec<u8>,
    json: Value,
}

impl Sample {
    fn read(folder: &Path, name: &'static str) -> Self {
        let file = |extension| fs::read(folder.join(format!("{name}.{extension}"))).unwrap();
        let json: Value = serde_json::from_slice(&file("json")).unwrap();
        let text = |field: &str| json[field].as_str().unwrap();
        Self {
            name,
            kind: ObjectKind::of_manifest(text("apiVersion"), text("kind")).unwrap(),
            protobuf: file("pb"),
            json,
        }
    }

    fn translated(&self) -> Value {
        serde_json::from_slice(&protobuf::object(&self.protobuf).unwrap()).unwrap()
    }

    fn facts(&self, json: &Value) -> Result<Object, String> {
        self.kind
            .deserialize(json)
            .map_err(|error| error.to_string())
    }
}

fn samples() -> Option<Vec<Sample>> {
    let folder = harness::require_module(harness::programs::minors()[0], "k8s.io/api")?
        .join("testdata/HEAD");
    Some(OBJECTS.map(|name| Sample::read(&folder, name)).into())
}

/// The places of all values in `value`, as JSON pointers.
fn places(value: &Value, place: &str, into: &mut Vec<String>) {
    let mut inner = |key: &str, value| {
        let place = format!("{place}/{}", key.replace('~', "~0").replace('/', "~1"));
        places(value, &place, into);
        into.push(place);
    };
    match value {
        Value::Object(fields) => fields.iter().for_each(|(key, value)| inner(key, value)),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .for_each(|(index, value)| inner(&index.to_string(), value)),
        _ => {}
    }
}

#[test]
fn what_is_translated_is_what_json_says() {
    let Some(samples) = samples() else { return };
    for sample in samples {
        let (name, translated) = (sample.name, sample.translated());
        assert_eq!(
            sample.facts(&translated),
            sample.facts(&sample.json),
            "{name}"
        );
        let mut translated_places = Vec::new();
        places(&translated, "", &mut translated_places);
        assert!(translated_places.len() > 10, "{name}");
        for place in translated_places {
            let (value, said) = (translated.pointer(&place), sample.json.pointer(&place));
            let same = match (value, said) {
                (Some(Value::Object(_)), Some(Value::Object(_)))
                | (Some(Value::Array(_)), Some(Value::Array(_))) => true,
                (value, said) => value == said,
            };
            assert!(same, "{name} {place}: {value:?}, in JSON {said:?}");
        }
    }
}

/// Whether the value at `place` is read: another one, of another type, changes the facts.
fn is_read(sample: &Sample, facts: &Result<Object, String>, place: &str) -> bool {
    [Value::Null, json!(1.5)].into_iter().any(|other| {
        let mut changed = sample.json.clone();
        *changed.pointer_mut(place).unwrap() = other;
        sample.facts(&changed) != *facts
    })
}

/// What is not translated is not read. Of what is not, only the outermost is looked at.
#[test]
fn what_is_read_is_translated() {
    let Some(samples) = samples() else { return };
    let mut looked_at = 0;
    for sample in samples {
        let (name, translated) = (sample.name, sample.translated());
        let facts = sample.facts(&sample.json);
        let is_translated = |place: &str| translated.pointer(place).is_some();
        let mut left_out = Vec::new();
        places(&sample.json, "", &mut left_out);
        left_out.retain(|place| {
            let (around, _) = place.rsplit_once('/').unwrap();
            !is_translated(place) && is_translated(around)
        });
        looked_at += left_out.len();
        for place in left_out {
            assert!(!is_read(&sample, &facts, &place), "{name} {place}");
        }
        assert!(is_read(&sample, &facts, "/metadata/name"), "{name}");
    }
    assert!(looked_at > 500, "{looked_at}");
}

/// Of the sources of one volume only the last is read, and so the test above sees only it.
#[test]
fn every_source_of_a_volume_is_translated() {
    let Some(samples) = samples() else { return };
    let has = |name: &str, place: &str, source: &InTreeType| {
        let sample = samples.iter().find(|sample| sample.name == name).unwrap();
        let place = format!("{place}/{}", source.field);
        assert!(
            sample.translated().pointer(&place).is_some(),
            "{name} {place}"
        );
    };
    for source in InTreeType::all() {
        has("core.v1.PersistentVolume", "/spec", source);
        if source.counts_in_pods() {
            has("core.v1.Pod", "/spec/volumes/0", source);
        }
    }
}

/// In protobuf Go writes what is not a pointer even where it is empty; JSON leaves it out.
#[test]
fn what_is_empty_is_not_there() {
    let Some(samples) = samples() else { return };
    let mut differ = BTreeSet::new();
    for sample in samples {
        let translated = sample.translated();
        let mut all_places = Vec::new();
        places(&translated, "", &mut all_places);
        for place in all_places {
            let (around, key) = place.rsplit_once('/').unwrap();
            let (mut empty, mut without) = (translated.clone(), translated.clone());
            let Value::Object(fields) = without.pointer_mut(around).unwrap() else {
                continue;
            };
            fields.remove(key);
            let value = empty.pointer_mut(&place).unwrap();
            *value = match value {
                Value::String(_) => json!(""),
                Value::Number(_) => json!(0),
                Value::Bool(_) => json!(false),
                Value::Array(_) => json!([]),
                _ => json!({}),
            };
            let is_entry = MAPS.iter().any(|map| around.ends_with(map));
            if !is_entry && sample.facts(&empty) != sample.facts(&without) {
                differ.insert(key.to_owned());
            }
        }
    }
    assert_eq!(differ, NOT_THE_SAME_EMPTY.map(String::from).into());
}

/// Each sample cut off, and with a byte changed, at places all over it.
#[test]
fn broken_bytes_are_an_error_or_json() {
    let Some(samples) = samples() else { return };
    let mut refused = 0;
    let mut translate = |bytes: &[u8]| match protobuf::object(bytes) {
        Ok(json) => drop(serde_json::from_slice::<Value>(&json).unwrap()),
        Err(error) => {
            refused += 1;
            assert!(error.to_string().ends_with('.'), "{error}");
        }
    };
    for sample in samples {
        for at in (0..sample.protobuf.len()).step_by(101) {
            translate(&sample.protobuf[..at]);
            let mut changed = sample.protobuf.clone();
            for bits in [0x01, 0x80, 0xff] {
                changed[at] = sample.protobuf[at] ^ bits;
                translate(&changed);
            }
        }
    }
    assert!(refused > 300, "{refused}");
}
