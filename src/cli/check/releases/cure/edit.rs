//! The edit that writes a cure into a release or a values file.

use json_patch::Patch;
use serde_json::{Value, json};

use super::super::Release;
use super::super::values::{At, set};
use super::Cure;
use manifest::delivery::{document_at, value_of};
use manifest::edit::{self, EditError};
use manifest::read::Position;
use manifest::split::parts;

impl Cure {
    /// The text of a file with the value set in the document at `place`; `None` where it is not
    /// written in one that can be edited.
    pub(in crate::cli::check) fn edit(
        &self,
        release: &Release,
        text: &str,
        place: &Position,
    ) -> Option<Result<String, EditError>> {
        let Self::Value { layer, path, value } = self else {
            return None;
        };
        let document = document_at(text, place)?;
        let mut into = match &release.values.get((*layer)?)?.at {
            At::Field(field) => steps(field),
            At::File(_) => Vec::new(),
            At::Text(field) => return in_text(text, place, &document, field, path, value),
            At::Elsewhere => return None,
        };
        into.extend(path.iter().cloned());
        let parts = parts(text);
        let part = parts.get(place.part)?;
        let patch = patch(&document, &into, value)?;
        let edited = edit::apply(part.text, &place.items, &patch);
        let end = part.start + part.text.len();
        Some(edited.map(|edited| [&text[..part.start], &edited, &text[end..]].concat()))
    }
}

/// Sets the value in a document that is a text in a field of another one.
fn in_text(
    text: &str,
    place: &Position,
    document: &Value,
    field: &str,
    path: &[String],
    value: &Value,
) -> Option<Result<String, EditError>> {
    let pointer = format!("/{}", steps(field).join("/"));
    let inner = document.pointer(&pointer)?.as_str()?;
    let patch = patch(&value_of(inner)?, path, value)?;
    let edited = match edit::apply(inner, &[], &patch) {
        Ok(edited) => edited,
        Err(refusal) => return Some(Err(refusal)),
    };
    let mut wanted = document.clone();
    *wanted.pointer_mut(&pointer)? = Value::String(edited.clone());
    // As a block scalar has it; another way of writing is not edited.
    let found = (1..=MAX_INDENT).find_map(|indent| {
        let block = indented(inner, indent);
        (text.matches(&block).count() == 1)
            .then(|| text.replacen(&block, &indented(&edited, indent), 1))
            .filter(|text| document_at(text, place).as_ref() == Some(&wanted))
    });
    let field = field.to_owned();
    Some(found.ok_or(EditError::Unusual { field }))
}

/// The most blanks before the lines of a block scalar.
const MAX_INDENT: usize = 40;

fn indented(text: &str, indent: usize) -> String {
    let line = |line: &str| match line.trim().is_empty() {
        true => line.to_owned(),
        false => format!("{}{line}", " ".repeat(indent)),
    };
    text.split_inclusive('\n').map(line).collect()
}

/// What sets the value at the path in the document.
fn patch(document: &Value, path: &[String], value: &Value) -> Option<Patch> {
    let mut operations = Vec::new();
    additions(document, path, value, &mut String::new(), &mut operations);
    serde_json::from_value(Value::Array(operations)).ok()
}

/// The steps of a field's path: `spec.sources[1].helm` has four.
fn steps(field: &str) -> Vec<String> {
    let parts = field.split(['.', '[']);
    parts
        .map(|part| part.trim_end_matches(']').to_owned())
        .collect()
}

/// The operations that set `value` at the path below `here`, which is at `pointer`.
fn additions(
    here: &Value,
    path: &[String],
    value: &Value,
    pointer: &mut String,
    into: &mut Vec<Value>,
) {
    let there = |key: &String| match here {
        Value::Array(items) => items.get(key.parse::<usize>().ok()?),
        _ => here.get(key),
    };
    if let Some((key, rest)) = path.split_first() {
        *pointer += &format!("/{}", key.replace('~', "~0").replace('/', "~1"));
        match there(key) {
            Some(inner) if inner.is_object() || inner.is_array() => {
                additions(inner, rest, value, pointer, into);
            }
            _ => {
                let mut nested = Value::Null;
                set(&mut nested, rest, value.clone());
                into.push(json!({"op": "add", "path": pointer, "value": nested}));
            }
        }
        return;
    }
    match (here, value) {
        (Value::Object(_), Value::Object(entries)) => {
            for (key, value) in entries {
                let path = format!("{pointer}/{key}");
                into.push(json!({"op": "add", "path": path, "value": value}));
            }
        }
        _ => into.push(json!({"op": "replace", "path": pointer, "value": value})),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{additions, steps};

    #[test]
    fn a_value_is_added_where_its_path_ends() {
        let document = json!({"spec": {"sources": [{}, {"helm": {"valuesObject": null}}],
            "values": {"a/b": {"type": "x"}, "c": 1}}});
        for (field, value, expected) in [
            (
                "spec.values.a/b",
                json!({"type": "y"}),
                json!([["/spec/values/a~1b/type", "y"]]),
            ),
            ("spec.values.c", json!(2), json!([["/spec/values/c", 2]])),
            (
                "spec.values.d.e",
                json!(2),
                json!([["/spec/values/d", {"e": 2}]]),
            ),
            (
                "spec.sources[1].helm.valuesObject.a",
                json!(1),
                json!([["/spec/sources/1/helm/valuesObject", {"a": 1}]]),
            ),
            (
                "spec.sources[0].helm.a",
                json!(1),
                json!([["/spec/sources/0/helm", {"a": 1}]]),
            ),
        ] {
            let mut operations = Vec::new();
            additions(
                &document,
                &steps(field),
                &value,
                &mut String::new(),
                &mut operations,
            );
            let short: Vec<Value> = operations
                .iter()
                .map(|it| json!([it["path"], it["value"]]))
                .collect();
            assert_eq!(json!(short), expected, "{field}");
        }
    }
}
