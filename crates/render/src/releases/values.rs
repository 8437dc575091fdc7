//! Values of releases.

use manifest::delivery::value_of;
use serde_json::{Map, Value, json};

/// The mapping in the text, which messages call `what`.
///
/// # Errors
/// The text is not a mapping: the end of a sentence.
pub(super) fn mapping(what: &str, text: &str) -> Result<Value, String> {
    match value_of(text) {
        Some(Value::Null) => Ok(Value::Object(Map::new())),
        Some(value @ Value::Object(_)) => Ok(value),
        _ => Err(format!("{what} is not a YAML mapping")),
    }
}

/// Sets the value at a path of keys, as `helm --set` does.
pub(super) fn set(into: &mut Value, path: &[String], value: Value) {
    let mut place = into;
    for key in path {
        if !place.is_object() {
            *place = json!({});
        }
        place = &mut place[key];
    }
    *place = value;
}

/// The keys of a path that are separated with dots. A dot after a backslash is part of a key.
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

/// Merges as Helm does: mappings key by key; all other values are replaced.
pub(super) fn merge(into: &mut Value, from: &Value) {
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
        set(&mut values, &keys("a"), json!({"y": 3}));
        assert_eq!(values["a"], json!({"y": 3}));
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
