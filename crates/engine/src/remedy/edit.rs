//! Writing patches that fit the object as it is.

use json_patch::{AddOperation, Patch, PatchOperation, ReplaceOperation, jsonptr::PointerBuf};
use serde_json::{Map, Value};

/// The patch that makes the field at `path` equal `value`. Missing or null parents are added first;
/// an existing field is replaced, a missing one is added. There is no operation if the field has
/// that value already.
pub(crate) fn set(object: &Value, path: &[&str], value: Value) -> Patch {
    let Some((last, parents)) = path.split_last() else {
        return Patch(Vec::new());
    };
    let mut operations = Vec::new();
    let mut here = Some(object);
    let mut pointer = PointerBuf::root();
    for key in parents {
        pointer.push_back(*key);
        here = here.and_then(|parent| parent.get(key)).filter(|child| child.is_object());
        if here.is_none() {
            operations.push(add(pointer.clone(), Value::Object(Map::new())));
        }
    }
    pointer.push_back(*last);
    operations.push(match here.and_then(|parent| parent.get(last)) {
        Some(there) if *there == value => return Patch(Vec::new()),
        Some(_) => PatchOperation::Replace(ReplaceOperation { path: pointer, value }),
        None => add(pointer, value),
    });
    Patch(operations)
}

/// The patch that puts `item` at the end of the list at `path`, which is added if it is missing or
/// null. There is no operation if the list has the item already.
pub(crate) fn append(object: &Value, path: &[&str], item: Value) -> Patch {
    let Some(list) =
        path.iter().try_fold(object, |parent, key| parent.get(key)).and_then(Value::as_array)
    else {
        return set(object, path, Value::Array(vec![item]));
    };
    if list.contains(&item) {
        return Patch(Vec::new());
    }
    let mut pointer = PointerBuf::from_tokens(path.iter().copied());
    pointer.push_back("-");
    Patch(vec![add(pointer, item)])
}

fn add(path: PointerBuf, value: Value) -> PatchOperation {
    PatchOperation::Add(AddOperation { path, value })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn parents_are_made_and_what_is_there_is_replaced() {
        let cases = [
            (
                json!({}),
                json!([{"op":"add","path":"/spec","value":{}},{"op":"add","path":"/spec/strategy","value":1}]),
            ),
            (
                json!({"spec":null}),
                json!([{"op":"add","path":"/spec","value":{}},{"op":"add","path":"/spec/strategy","value":1}]),
            ),
            (
                json!({"spec":{"strategy":null}}),
                json!([{"op":"replace","path":"/spec/strategy","value":1}]),
            ),
            (json!({"spec":{"strategy":1}}), json!([])),
        ];
        for (mut object, expected) in cases {
            let patch = set(&object, &["spec", "strategy"], json!(1));
            assert_eq!(serde_json::to_value(&patch).unwrap(), expected, "{object}");
            json_patch::patch(&mut object, &patch).unwrap();
            assert_eq!(object, json!({"spec":{"strategy":1}}));
        }
    }

    #[test]
    fn lists_are_made_or_extended_once() {
        let mut object = json!({"a":{"b":[1]}});
        for expected in [json!([1, 2]), json!([1, 2])] {
            let patch = append(&object, &["a", "b"], json!(2));
            json_patch::patch(&mut object, &patch).unwrap();
            assert_eq!(object["a"]["b"], expected);
        }
        let mut unset = json!({"a":{"b":null}});
        let patch = append(&unset, &["a", "b"], json!(2));
        json_patch::patch(&mut unset, &patch).unwrap();
        assert_eq!(unset, json!({"a":{"b":[2]}}));
    }
}
