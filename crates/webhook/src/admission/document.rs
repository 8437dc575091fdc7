//! The documents of a review, parsed only as far as needed.
//!
//! A review may have 37 MiB, and a tree of its values takes many times that. So the documents stay
//! bytes, and only the parts of the object that a repair needs become a tree.

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;

use jiff::Timestamp;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::fields::{Fields, exactly};
use super::{Operation, Received};
use engine::verdict::Document;

/// The largest number of values in an object that is repaired, without the parts that are left out.
/// At about a hundred bytes a value, a tree takes at most 10 MiB; a typical pod template has some
/// hundred values.
const MOST_VALUES: usize = 100_000;

impl Document for Received<'_> {
    fn object(&self) -> Option<&Value> {
        let [object, _] = self.request.documents;
        self.tree.get_or_init(|| pruned(object?, &LEFT_OUT).ok()).as_ref()
    }

    fn changes_template(&self) -> bool {
        match self.request.documents.map(template) {
            [Ok(new), Ok(old)] => !same(new, old),
            _ => true,
        }
    }

    fn requester(&self) -> Option<Cow<'_, str>> {
        let user = &self.request.user;
        (!user.is_empty()).then_some(Cow::Borrowed(&**user))
    }

    fn deletes(&self) -> bool {
        self.request.operation == Operation::Delete
    }

    fn is_cut(&self) -> bool {
        self.request.is_cut
    }

    fn moment(&self) -> Option<Timestamp> {
        Some(self.received)
    }
}

/// The `spec.template` of an object.
fn template(object: Option<&RawValue>) -> serde_json::Result<Option<&RawValue>> {
    let [spec] = Fields(&["spec"], exactly).find_in(object)?;
    let [template] = Fields(&["template"], exactly).find_in(spec)?;
    Ok(template)
}

/// Whether two documents are equal apart from order and layout. The API server writes both in the
/// same way, so most equal ones have the same bytes.
fn same(one: Option<&RawValue>, other: Option<&RawValue>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) if one.get() != other.get() => {
            matches!((tree(one), tree(other)), (Ok(one), Ok(other)) if one == other)
        }
        (one, other) => one.is_some() == other.is_some(),
    }
}

/// The whole tree of a document.
pub(super) fn tree(json: &RawValue) -> serde_json::Result<Value> {
    pruned(json, &[])
}

/// The parts of a workload that no repair reads, as paths of field names. Where a path meets a
/// list, it goes on in every entry.
const LEFT_OUT: [&str; 8] = [
    "metadata/managedFields/fieldsV1",
    "spec/template/spec/containers",
    "spec/template/spec/initContainers",
    "spec/template/spec/ephemeralContainers",
    "spec/jobTemplate/spec/template/spec/containers",
    "spec/jobTemplate/spec/template/spec/initContainers",
    "spec/jobTemplate/spec/template/spec/ephemeralContainers",
    "status",
];

/// The tree of a document without some of its parts.
fn pruned(json: &RawValue, left_out: &[&'static str]) -> serde_json::Result<Value> {
    let left = Cell::new(MOST_VALUES);
    Pruned { left_out, left: &left }
        .deserialize(&mut serde_json::Deserializer::from_str(json.get()))
}

#[derive(Clone, Copy)]
struct Pruned<'c> {
    /// The paths from this value to the parts that are left out.
    left_out: &'c [&'static str],
    /// The number of values that may still follow.
    left: &'c Cell<usize>,
}

impl<'de> DeserializeSeed<'de> for Pruned<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        let left =
            self.left.get().checked_sub(1).ok_or_else(|| D::Error::custom("too many values"))?;
        self.left.set(left);
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Pruned<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(value) = seq.next_element_seed(self)? {
            list.push(value);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            let left_out: Vec<&'static str> = self
                .left_out
                .iter()
                .filter_map(|&path| {
                    let (name, below) = path.split_once('/').unwrap_or((path, ""));
                    (name == key).then_some(below)
                })
                .collect();
            if left_out.contains(&"") {
                map.next_value::<IgnoredAny>()?;
            } else {
                let value = map.next_value_seed(Pruned { left_out: &left_out, ..self })?;
                object.insert(key, value);
            }
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn review(object: &str, old: &str) -> String {
        format!(
            r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{"uid":"u",
            "kind":{{"group":"apps","kind":"Deployment"}},"object":{object},"oldObject":{old}}}}}"#
        )
    }

    fn received(body: &str) -> Received<'_> {
        Received::read(body.as_bytes(), Timestamp::UNIX_EPOCH).unwrap()
    }

    #[test]
    fn what_no_repair_reads_is_left_out() {
        let pod = json!({
            "metadata": {"labels": {"status": "kept", "containers": "kept"}},
            "spec": {"volumes": [{"name": "data", "emptyDir": {}}], "affinity": null},
        });
        let mut with_containers = pod.clone();
        with_containers["spec"]["containers"] = json!([{"name": "c", "args": ["", ""]}]);
        let whole = json!({
            "metadata": {"name": "web", "managedFields": [{"operation": "Apply", "fieldsV1": {"f:spec": {}}}], "annotations": {"status": "x"}},
            "spec": {
                "replicas": 1, "strategy": {"type": "Recreate"},
                "template": with_containers,
            },
            "status": {"replicas": 1},
        });
        let pruned = json!({
            "metadata": {"name": "web", "managedFields": [{"operation": "Apply"}], "annotations": {"status": "x"}},
            "spec": {
                "replicas": 1, "strategy": {"type": "Recreate"},
                "template": pod,
            },
        });
        let body = review(&whole.to_string(), "null");
        assert_eq!(received(&body).object(), Some(&pruned));
    }

    #[test]
    fn a_tree_without_end_is_not_built() {
        let containers = vec![json!({"name": "c"}); MOST_VALUES];
        for (dense, pruned) in [
            (
                json!({"spec": {"template": {"spec": {"containers": containers}}}}),
                Some(json!({"spec": {"template": {"spec": {}}}})),
            ),
            (json!({"spec": {"volumes": vec![0; MOST_VALUES]}}), None),
        ] {
            let body = review(&dense.to_string(), "null");
            assert_eq!(received(&body).object(), pruned.as_ref());
        }
    }

    #[test]
    fn templates_are_compared_by_what_they_say() {
        let with = |template: &str| format!(r#"{{"spec":{{"replicas":1,"template":{template}}}}}"#);
        let one = with(r#"{"a":{"x":1,"y":[1,"2",null,true]},"b":-1.5}"#);
        let cases = [
            (one.clone(), false),
            (
                with(r#"{"b":-1.5, "a":{"y":[1,"2",null,true],"x":1}}"#),
                false,
            ),
            (
                with(r#"{"a":{"x":1,"y":["2",1,null,true]},"b":-1.5}"#),
                true,
            ),
            (with(r#"{"a":{"x":1,"y":[1,"2",null,true]},"b":1.5}"#), true),
            (with(r#"{"a":{"x":1,"y":[1,2,null,true]},"b":-1.5}"#), true),
            (with("{}"), true),
            (r#"{"spec":{}}"#.to_owned(), true),
            ("null".to_owned(), true),
            (
                r#"{"spec":{"template":{}},"spec":{"template":{"b":-1.5,"a":{"x":2,"y":[1,"2",null,true],"x":1}}}}"#
                    .to_owned(),
                false,
            ),
        ];
        for (other, expected) in cases {
            let body = review(&one, &other);
            assert_eq!(received(&body).changes_template(), expected, "{other}");
        }
    }
}
