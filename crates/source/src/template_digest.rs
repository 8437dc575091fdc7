//! A pod template as one number: two templates are the same to Kubernetes if their numbers are
//! equal. Nothing of the template is kept, neither environment nor commands.

use std::borrow::Cow;
use std::fmt;
use std::hash::{BuildHasher, Hash, RandomState};

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// The labels that the controllers of Deployments and of Argo Rollouts add to the template of a
/// ReplicaSet.
const HASHES: [&str; 2] = ["pod-template-hash", "rollouts-pod-template-hash"];

/// Computes the numbers. Numbers of different digesters are not comparable, so nobody can construct
/// two templates with one number.
#[derive(Debug, Default)]
pub(super) struct Digester(RandomState);

impl Digester {
    /// The number of a template without the fields that controllers add and without those that are
    /// null or an empty list, which Kubernetes treats as missing (`equality.Semantic`). `None` if
    /// the template is not JSON.
    pub(super) fn number(&self, template: &RawValue) -> Option<u64> {
        let part = Part { hasher: &self.0, place: Place::Template };
        let mut json = serde_json::Deserializer::from_str(template.get());
        part.deserialize(&mut json).ok().flatten()
    }
}

/// The place of a value in a template.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Template,
    Metadata,
    Labels,
    Elsewhere,
}

/// A value of the template. Its number is `None` if it is null or an empty list.
#[derive(Clone, Copy)]
struct Part<'h> {
    hasher: &'h RandomState,
    place: Place,
}

impl Part<'_> {
    /// The value of the field `key`; `None` if controllers add that field.
    fn field(self, key: &str) -> Option<Self> {
        let place = match (self.place, key) {
            (Place::Template, "metadata") => Place::Metadata,
            (Place::Metadata, "labels") => Place::Labels,
            (Place::Template, "$patch") => return None,
            (Place::Labels, _) if HASHES.contains(&key) => return None,
            _ => Place::Elsewhere,
        };
        Some(Self { place, ..self })
    }

    fn number(self, value: impl Hash) -> Option<u64> {
        Some(self.hasher.hash_one(value))
    }
}

impl<'de> DeserializeSeed<'de> for Part<'_> {
    type Value = Option<u64>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Part<'_> {
    type Value = Option<u64>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a part of a pod template")
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Self::Value, E> {
        Ok(self.number(("bool", value)))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Self::Value, E> {
        Ok(self.number(("integer", i128::from(value))))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Self::Value, E> {
        Ok(self.number(("integer", i128::from(value))))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Self::Value, E> {
        Ok(self.number(("fraction", value.to_bits())))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Self::Value, E> {
        Ok(self.number(("text", value)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let item = Self { place: Place::Elsewhere, ..self };
        let mut list = None;
        while let Some(value) = items.next_element_seed(item)? {
            list = self.number(("list", list, value));
        }
        Ok(list)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self::Value, A::Error> {
        // The order of fields has no meaning, and a sum does not depend on it.
        let mut sum: u64 = 0;
        while let Some(key) = fields.next_key::<Cow<'_, str>>()? {
            let field = self.field(&key);
            let is_said = field.is_some();
            let value = fields.next_value_seed(field.unwrap_or(self))?;
            if let (true, Some(value)) = (is_said, value) {
                sum = sum.wrapping_add(self.hasher.hash_one((&*key, value)));
            }
        }
        Ok(self.number(("object", sum)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn are_same(a: &Value, b: &Value) -> bool {
        let digester = Digester::default();
        let [a, b] = [a, b].map(|template| {
            let raw = RawValue::from_string(template.to_string()).unwrap();
            digester.number(&raw).unwrap()
        });
        a == b
    }

    #[test]
    fn what_controllers_add_and_what_says_nothing_makes_no_difference() {
        let template = json!({"metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "ports": [1, 2], "resources": {}}]}});
        let mut made = json!({"$patch": "replace", "spec": {}, "metadata": {
            "creationTimestamp": null, "labels": {HASHES[0]: "6d4", HASHES[1]: "6d4", "app": "web"}}});
        made["spec"] = json!({"tolerations": [], "hostNetwork": null,
            "containers": [{"resources": {}, "ports": [1, 2], "name": "c"}]});
        assert!(are_same(&template, &made));
        for (path, value) in [
            ("/spec/containers/0/ports", json!([2, 1])),
            ("/spec/containers/0/ports/0", json!("1")),
            ("/spec/containers/0/resources", Value::Null),
            ("/spec/containers/0/name", json!("d")),
            ("/metadata/labels/app", json!("api")),
            ("/spec", json!({HASHES[0]: "6d4", "containers": template["spec"]["containers"]})),
        ] {
            let mut other = template.clone();
            *other.pointer_mut(path).unwrap() = value;
            assert!(!are_same(&template, &other), "{path}");
        }
    }

    #[test]
    fn an_empty_object_says_something_and_an_empty_list_does_not() {
        let with = |volume: Value| json!({"spec": {"volumes": [volume], "x": []}});
        assert!(!are_same(&with(json!({"emptyDir": {}})), &with(json!({}))));
        assert!(are_same(&with(json!({"a": null})), &with(json!({}))));
    }
}
