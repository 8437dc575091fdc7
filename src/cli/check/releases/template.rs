//! The templates of ApplicationSets.

use serde_json::Value;

use super::Reason;
use super::world::World;

/// How a template names its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Syntax {
    /// `{{path.basename}}`: what is not known stays as it is written.
    Names,
    /// `{{ .path.basename }}`, of Go's templates.
    Go,
}

/// The templates, each with its parameters filled in, in keys and texts.
///
/// # Errors
/// One of them names a parameter that is not there, or calls functions that fail: the end of a
/// sentence.
pub(super) fn render(
    templates: &[(&Value, &Value)],
    syntax: Syntax,
    world: &World<'_>,
) -> Result<Vec<Value>, Reason> {
    let is_call = |text: &str| syntax == Syntax::Go && computes(text);
    let mut calls = Vec::new();
    for (number, (template, _)) in templates.iter().enumerate() {
        each_text(template, &mut |text| {
            if is_call(text) {
                calls.push((text.to_owned(), number));
            }
            Ok(String::new())
        })?;
    }
    let mut results = match calls.is_empty() {
        true => Vec::new(),
        false => {
            let parameters: Vec<&Value> = templates.iter().map(|(_, it)| *it).collect();
            world.rendering.go_templates(&calls, &parameters)?
        }
    }
    .into_iter();
    let filled = templates.iter().map(|(template, parameters)| {
        each_text(template, &mut |text| match is_call(text) {
            true => Ok(results.next().unwrap_or_default()),
            false => fill(text, parameters, syntax),
        })
    });
    Ok(filled.collect::<Result<_, _>>()?)
}

/// The value with `change` made to all its keys and texts, one after the other.
fn each_text(
    value: &Value,
    change: &mut impl FnMut(&str) -> Result<String, String>,
) -> Result<Value, String> {
    Ok(match value {
        Value::String(text) => Value::String(change(text)?),
        Value::Array(items) => {
            let items = items.iter().map(|item| each_text(item, change));
            Value::Array(items.collect::<Result<_, _>>()?)
        }
        Value::Object(entries) => {
            let entries = entries
                .iter()
                .map(|(key, value)| Ok((change(key)?, each_text(value, change)?)));
            Value::Object(entries.collect::<Result<_, String>>()?)
        }
        other => other.clone(),
    })
}

/// Whether the text has an action that does more than naming a parameter.
fn computes(text: &str) -> bool {
    let names_one = |action: &str| {
        let is_part = |c: char| c == '_' || c == '.' || c.is_ascii_alphanumeric();
        let name = action.trim().strip_prefix('.');
        name.is_some_and(|it| !it.is_empty() && it.chars().all(is_part))
    };
    let mut actions = text.split("{{").skip(1);
    actions.any(|it| it.split_once("}}").is_some_and(|(it, _)| !names_one(it)))
}

fn fill(text: &str, parameters: &Value, syntax: Syntax) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        let Some((inner, after)) = after.split_once("}}") else {
            break;
        };
        out += before;
        match syntax {
            Syntax::Names => match named(inner.trim(), parameters) {
                Some(value) => out += &value,
                None => out += &format!("{{{{{inner}}}}}"),
            },
            Syntax::Go => {
                let value = field(inner.trim(), parameters).and_then(plain);
                out += &value.ok_or_else(|| {
                    format!("its template uses {{{{{inner}}}}}, which no generator provides")
                })?;
            }
        }
        rest = after;
    }
    Ok(out + rest)
}

/// The parameter called `a.b` or `a[0]`, of mappings that are flattened.
fn named(name: &str, parameters: &Value) -> Option<String> {
    if let Some(value) = parameters.get(name).and_then(plain) {
        return Some(value);
    }
    let mut here = parameters;
    for key in name.split('.') {
        let (key, index) = match key.split_once('[') {
            Some((key, index)) => (key, index.trim_end_matches(']').parse::<usize>().ok()),
            None => (key, None),
        };
        here = here.get(key)?;
        if let Some(index) = index {
            here = here.get("segments").unwrap_or(here).get(index)?;
        }
    }
    // Of a folder, `path` is its path, and has parts.
    plain(here).or_else(|| plain(here.get("path")?))
}

fn field<'p>(path: &str, parameters: &'p Value) -> Option<&'p Value> {
    let keys = path.strip_prefix('.')?;
    keys.split('.')
        .try_fold(parameters, |here, key| here.get(key))
}

fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Syntax, computes, each_text, fill};

    #[test]
    fn parameters_are_filled_in() {
        let parameters = json!({
            "path": {"path": "apps/web", "basename": "web", "segments": ["apps", "web"]},
            "cluster": {"name": "prod", "replicas": 3}, "a.b": "flat",
        });
        let table = [
            (
                Syntax::Names,
                "{{path}}/{{ path.basename }}",
                Ok("apps/web/web"),
            ),
            (
                Syntax::Names,
                "{{path[0]}} {{cluster.replicas}} {{a.b}}",
                Ok("apps 3 flat"),
            ),
            (Syntax::Names, "{{server}} {{", Ok("{{server}} {{")),
            (
                Syntax::Go,
                "{{.path.path}}-{{ .cluster.name }}",
                Ok("apps/web-prod"),
            ),
            (
                Syntax::Go,
                "{{ .server }}",
                Err("its template uses {{ .server }}, which no generator provides"),
            ),
        ];
        for (syntax, template, expected) in table {
            let filled = each_text(&json!({ template: [template] }), &mut |text| {
                fill(text, &parameters, syntax)
            });
            let expected = expected.map(|text: &str| json!({ text: [text] }));
            assert_eq!(filled, expected.map_err(str::to_owned), "{template}");
        }
        let same = json!({"a": [1, true, null]});
        let unchanged: Result<Value, String> = each_text(&same, &mut |text| Ok(text.to_owned()));
        assert_eq!(unchanged, Ok(same));
    }

    #[test]
    fn what_does_more_than_naming_computes() {
        for (text, expected) in [
            ("{{ .a.b }}-{{.c}} {{", false),
            ("plain", false),
            ("{{ .a }}{{ .b | lower }}", true),
            ("{{- .a }}", true),
            ("{{ . }}", true),
            ("{{ if .a }}x{{ end }}", true),
        ] {
            assert_eq!(computes(text), expected, "{text}");
        }
    }
}
