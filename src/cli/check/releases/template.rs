//! The templates of ApplicationSets, as far as they name parameters.

use serde_json::Value;

use super::generators::normalized;

/// How a template names its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Syntax {
    /// `{{path.basename}}`: what is not known stays as it is written.
    Names,
    /// `{{ .path.basename }}`, of Go's templates.
    Go,
}

/// The template with its parameters filled in, in keys and texts.
///
/// # Errors
/// It does more than naming parameters, or names one that is not there: the end of a sentence.
pub(super) fn render(
    template: &Value,
    parameters: &Value,
    syntax: Syntax,
) -> Result<Value, String> {
    Ok(match template {
        Value::String(text) => Value::String(fill(text, parameters, syntax)?),
        Value::Array(items) => {
            let items = items.iter().map(|item| render(item, parameters, syntax));
            Value::Array(items.collect::<Result<_, _>>()?)
        }
        Value::Object(entries) => {
            let entries = entries.iter().map(|(key, value)| {
                let value = render(value, parameters, syntax)?;
                Ok((fill(key, parameters, syntax)?, value))
            });
            Value::Object(entries.collect::<Result<_, String>>()?)
        }
        other => other.clone(),
    })
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
                let plain = inner.trim_start_matches('-').trim_end_matches('-').trim();
                let value = evaluate(plain, parameters);
                out += &value.ok_or_else(|| {
                    format!("its template holds {{{{{inner}}}}}, which cannot be evaluated here")
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

/// What an expression of Go's templates stands for: a name, or functions in a row.
fn evaluate(expression: &str, parameters: &Value) -> Option<String> {
    let mut value = None;
    for stage in expression.split('|') {
        let words = words(stage)?;
        let (name, arguments) = words.split_first()?;
        let arguments = arguments.iter().map(|it| argument(it, parameters));
        let all: Vec<Value> = arguments.chain(value.take()).collect();
        value = Some(match all.is_empty() {
            true => argument(name, parameters),
            false => call(name, &all)?,
        });
    }
    plain(&value?)
}

/// The words of one function, those in quotation marks with these.
fn words(stage: &str) -> Option<Vec<&str>> {
    let mut words = Vec::new();
    let mut rest = stage.trim();
    while !rest.is_empty() {
        let end = match rest.strip_prefix('"') {
            Some(inner) => inner.find('"')? + 2,
            None => rest.find(char::is_whitespace).unwrap_or(rest.len()),
        };
        words.push(&rest[..end]);
        rest = rest[end..].trim_start();
    }
    Some(words)
}

/// What a word stands for; null where that is not known.
fn argument(word: &str, parameters: &Value) -> Value {
    let text = word.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
    match (text, word.parse::<u64>()) {
        (Some(text), _) => text.into(),
        (None, Ok(number)) => number.into(),
        (None, Err(_)) if word == "." => parameters.clone(),
        (None, Err(_)) => field(word, parameters).cloned().unwrap_or_default(),
    }
}

/// What a function makes of its arguments; `None` where it is not one that is known here.
fn call(name: &str, arguments: &[Value]) -> Option<Value> {
    let (last, first) = arguments.split_last()?;
    let text = || plain(last);
    let given = |at: usize| first.get(at).and_then(Value::as_str);
    Some(match name {
        "index" => index(arguments)?.clone(),
        "default" => match plain(last).filter(|it| !it.is_empty()) {
            Some(_) => last.clone(),
            None => first.first()?.clone(),
        },
        "dig" => {
            let (default, keys) = first.split_last()?;
            let mut keys = keys.iter();
            let found = keys.try_fold(last, |here, key| here.get(key.as_str()?));
            found.unwrap_or(default).clone()
        }
        "quote" => format!("{:?}", text()?).into(),
        "toString" => text()?.into(),
        "lower" => text()?.to_lowercase().into(),
        "upper" => text()?.to_uppercase().into(),
        "normalize" => normalized(&text()?).into(),
        "replace" => text()?.replace(given(0)?, given(1)?).into(),
        "trimPrefix" => {
            let text = text()?;
            text.strip_prefix(given(0)?).unwrap_or(&text).into()
        }
        "trimSuffix" => {
            let text = text()?;
            text.strip_suffix(given(0)?).unwrap_or(&text).into()
        }
        _ => return None,
    })
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

/// What the first of them holds under the others, one in the other.
fn index(arguments: &[Value]) -> Option<&Value> {
    let (start, keys) = arguments.split_first()?;
    keys.iter().try_fold(start, |here, key| match key {
        Value::Number(number) => here.get(usize::try_from(number.as_u64()?).ok()?),
        key => here.get(key.as_str()?),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Syntax, render};

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
                "{{.path.path}}-{{- .cluster.name -}}",
                Ok("apps/web-prod"),
            ),
            (Syntax::Go, "{{ index .path.segments 1 }}", Ok("web")),
            (Syntax::Go, "{{ .cluster.zone | default \"a\" }}", Ok("a")),
            (
                Syntax::Go,
                "{{ index .path.segments 1 | upper | replace \"W\" \"x\" }}",
                Ok("xEB"),
            ),
            (
                Syntax::Go,
                "{{ dig \"cluster\" \"none\" \"a b\" . }} {{ trimSuffix \"od\" .cluster.name }}",
                Ok("a b pr"),
            ),
            (
                Syntax::Go,
                "{{ range .path.segments }}x{{ end }}",
                Err(
                    "its template holds {{ range .path.segments }}, which cannot be evaluated here",
                ),
            ),
            (
                Syntax::Go,
                "{{ .server }}",
                Err("its template holds {{ .server }}, which cannot be evaluated here"),
            ),
        ];
        for (syntax, template, expected) in table {
            let rendered = render(
                &json!({ "{{cluster.name}}": [template] }),
                &parameters,
                Syntax::Names,
            );
            if syntax == Syntax::Names {
                let expected = expected.map(|text: &str| json!({"prod": [text]}));
                assert_eq!(rendered, expected.map_err(str::to_owned), "{template}");
            } else {
                let rendered = render(&json!(template), &parameters, syntax);
                let expected = expected.map(|text: &str| json!(text));
                assert_eq!(rendered, expected.map_err(str::to_owned), "{template}");
            }
        }
    }
}
