//! Values of releases, and where they are written.

use manifest::delivery::value_of;
use serde_json::{Map, Value};

/// Values from one place.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Layer {
    pub(crate) value: Value,
    pub(crate) at: At,
}

/// Where values are written.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum At {
    /// In a field of the object, as a mapping.
    Field(String),
    /// In a field of the object, as a text that is a YAML document.
    Text(String),
    /// In another object, or in a file.
    Elsewhere,
}

impl Layer {
    /// The mapping in `text`.
    ///
    /// # Errors
    /// It holds none: the end of a sentence.
    pub(super) fn of_text(what: &str, text: &str, at: At) -> Result<Self, String> {
        match value_of(text) {
            Some(Value::Null) => Ok(Value::Object(Map::new())),
            Some(value @ Value::Object(_)) => Ok(value),
            _ => Err(format!("{what} is not a YAML mapping")),
        }
        .map(|value| Self { value, at })
    }
}

/// Sets the value at a path with dots between its keys, as `helm --set` does; a key may have
/// dots after a backslash.
pub(crate) fn set(into: &mut Value, path: &[String], value: Value) {
    let Some((key, rest)) = path.split_first() else {
        *into = value;
        return;
    };
    if !into.is_object() {
        *into = Value::Object(Map::new());
    }
    let Some(entries) = into.as_object_mut() else {
        return;
    };
    set(
        entries.entry(key.clone()).or_insert(Value::Null),
        rest,
        value,
    );
}

/// The keys of a path with dots between them.
pub(super) fn keys(path: &str) -> Vec<String> {
    let mut keys = vec![String::new()];
    let mut letters = path.chars();
    while let Some(letter) = letters.next() {
        let last = keys.len() - 1;
        match letter {
            '\\' => keys[last].extend(letters.next()),
            '.' => keys.push(String::new()),
            letter => keys[last].push(letter),
        }
    }
    keys
}

/// Merges as Helm does: mappings key by key, all else is replaced.
pub(crate) fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{keys, merge, set};

    #[test]
    fn single_values_are_set_as_helm_sets_them() {
        let mut values = json!({"a": {"b": 1}, "c": "text"});
        set(&mut values, &keys("a.x"), json!(2));
        set(&mut values, &keys(r"c.d\.e"), json!(true));
        assert_eq!(values, json!({"a": {"b": 1, "x": 2}, "c": {"d.e": true}}));
        let mut nothing = Value::Null;
        set(&mut nothing, &keys("a"), json!([]));
        assert_eq!(nothing, json!({"a": []}));
    }

    #[test]
    fn mappings_are_merged_and_lists_replaced() {
        let mut values = json!({"a": {"b": [1], "c": 2}});
        merge(&mut values, &json!({"a": {"b": [3]}, "d": null}));
        assert_eq!(values, json!({"a": {"b": [3], "c": 2}, "d": null}));
    }
}
