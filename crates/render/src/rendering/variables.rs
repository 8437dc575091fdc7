//! Variables that Flux substitutes in the objects that it applies.

use std::collections::BTreeMap;

use manifest::delivery::value_of;

use crate::reason::Reason;

/// The most bytes of a text after substitution, and of one expression.
const MAX_TEXT: usize = 64 << 20;
const MAX_EXPRESSION: usize = 256;

/// The most levels of variables within the defaults of missing variables.
const MAX_DEPTH: usize = 8;

/// Flux substitutes nothing in an object if this label or annotation of it is `disabled`.
const SUBSTITUTE: &str = "kustomize.toolkit.fluxcd.io/substitute";

/// Variables by their names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Variables(pub(crate) BTreeMap<String, String>);

impl Variables {
    /// Substitutes the variables in the rendered objects.
    ///
    /// # Errors
    /// The result is too large.
    pub(crate) fn substituted(&self, text: String) -> Result<String, Reason> {
        if self.0.is_empty() || !text.contains("${") {
            return Ok(text);
        }
        let mut out = String::with_capacity(text.len());
        for document in text.split_inclusive("\n---\n") {
            if is_left_alone(document) {
                out += document;
            } else {
                self.fill(document, 0, &mut out);
            }
            if out.len() > MAX_TEXT {
                let limit = MAX_TEXT >> 20;
                return Err(
                    format!("filling in its variables makes it larger than {limit} MiB").into()
                );
            }
        }
        Ok(out)
    }

    /// Appends the text with `${name}`, `${name:-value}` and `${name:=value}` filled in. A variable
    /// that is unknown and has no default is kept as written.
    fn fill(&self, text: &str, depth: usize, out: &mut String) {
        let mut rest = text;
        while let Some(start) = rest.find("${").filter(|_| out.len() <= MAX_TEXT) {
            let Some(length) = end_of(&rest[start..]) else {
                let (before, after) = rest.split_at(start + "${".len());
                *out += before;
                rest = after;
                continue;
            };
            let (before, after) = rest.split_at(start);
            let (expression, after) = after.split_at(length);
            if let Some(before) = before.strip_suffix('$') {
                // `$${name}` is the text `${name}`.
                *out += before;
                *out += expression;
            } else {
                *out += before;
                self.evaluate(expression, depth, out);
            }
            rest = after;
        }
        *out += rest;
    }

    /// Appends the value of `${…}`.
    fn evaluate(&self, expression: &str, depth: usize, out: &mut String) {
        let inner = &expression["${".len()..expression.len() - "}".len()];
        let is_part = |c: char| c == '_' || c.is_ascii_alphanumeric();
        let end = inner.find(|c| !is_part(c)).unwrap_or(inner.len());
        let (name, rest) = inner.split_at(end);
        let known = self.0.get(name);
        let default = rest.strip_prefix(":-").or_else(|| rest.strip_prefix(":="));
        match (known, default) {
            (Some(value), None) if rest.is_empty() => *out += value,
            (Some(value), Some(_)) if !value.is_empty() => *out += value,
            (_, Some(default)) if depth < MAX_DEPTH => self.fill(default, depth + 1, out),
            _ => *out += expression,
        }
    }
}

/// Whether Flux substitutes nothing in this object.
fn is_left_alone(document: &str) -> bool {
    let mut fields = ["labels", "annotations"].into_iter();
    document.contains(SUBSTITUTE)
        && value_of(document).is_some_and(|object| {
            fields.any(|field| object["metadata"][field][SUBSTITUTE] == "disabled")
        })
}

/// The length of the expression at the start of the text, including its closing brace.
fn end_of(text: &str) -> Option<usize> {
    let mut open = 0;
    for (at, letter) in text.char_indices().take(MAX_EXPRESSION) {
        match letter {
            '{' => open += 1,
            '}' if open == 1 => return Some(at + 1),
            '}' => open -= 1,
            '\n' => return None,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::Variables;

    #[test]
    fn variables_are_filled_in_as_flux_does() {
        let pairs = [("APP", "web"), ("EMPTY", "")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()));
        let mut variables = Variables(pairs.into());
        for (text, expected) in [
            ("${APP}-data", "web-data"),
            ("a: ${APP}\nb: ${APP:-x}\n", "a: web\nb: web\n"),
            ("${CLAIM:-${APP}-data}", "web-data"),
            ("${CLAIM:=data}", "data"),
            ("${EMPTY:-data}", "data"),
            ("${EMPTY}", ""),
            ("${OTHER}", "${OTHER}"),
            ("${OTHER:-${MORE}}", "${MORE}"),
            ("$${APP}", "${APP}"),
            ("${APP ${APP}", "${APP web"),
            ("${APP\n${APP}", "${APP\nweb"),
            ("${APP/e/o}", "${APP/e/o}"),
            ("${}", "${}"),
            ("$APP", "$APP"),
        ] {
            let substituted = variables.substituted(text.to_owned()).unwrap();
            assert_eq!(substituted, expected, "{text}");
        }
        let deep = format!("{}x{}", "${A:-".repeat(10_000), "}".repeat(10_000));
        let filled = variables.substituted(deep.clone()).unwrap();
        assert!(filled.starts_with("${A:-${A:-") && filled.len() <= deep.len());
        let long = "x".repeat(1 << 20);
        variables.0.insert("LONG".to_owned(), long);
        let many = "${LONG}".repeat(1_000);
        assert!(variables.substituted(many).is_err());
        // The label counts only if it is the object's own, and not in a string of the object.
        for (metadata, expected) in [
            ("{annotations: {kustomize.toolkit.fluxcd.io/substitute: disabled}}", "${APP}"),
            ("{labels: {'kustomize.toolkit.fluxcd.io/substitute': \"disabled\"}}", "${APP}"),
            ("{labels: {kustomize.toolkit.fluxcd.io/substitute: enabled}}", "web"),
            ("{}\ndata: 'kustomize.toolkit.fluxcd.io/substitute: disabled'", "web"),
        ] {
            let text = |first: &str, next: &str| {
                format!("metadata: {metadata}\na: {first}\n---\na: {next}\n")
            };
            let substituted = variables.substituted(text("${APP}", "${APP}")).unwrap();
            assert_eq!(substituted, text(expected, "web"));
        }
    }
}
