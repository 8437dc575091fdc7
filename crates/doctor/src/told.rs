//! The words of causes, nodes and remarks: `judgements.yaml`, whose head explains it.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::{Value, json};

use super::action::{Purpose, SuggestedAction};
use super::cause::{Judgement, is_made_again, kind_of, may_move};
use super::command;
use super::diagnosis::DiagnosisInput;
use super::waiting_pod::WaitingPod;
use engine::model::workload::WorkloadKind;

/// The words of a judgement, with placeholders.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Told {
    because: String,
    steps: Vec<Step>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    #[serde(rename = "if")]
    condition: Option<String>,
    unless: Option<String>,
    purpose: Purpose,
    command: Option<String>,
    then: Option<String>,
    asks: Option<String>,
    text: String,
}

const YAML: &str = include_str!("judgements.yaml");

/// A test proves that the embedded file can be read.
static JUDGEMENTS: LazyLock<HashMap<String, Told>> =
    LazyLock::new(|| serde_saphyr::from_str(YAML).unwrap_or_default());

impl WaitingPod<'_> {
    /// The judgement with this name, for this pod.
    pub(super) fn told(&self, name: &str, more: Value) -> Judgement {
        let mut values = json!({
            "namespace": self.pod.meta.namespace,
            "pod": self.pod.meta.name,
            "claim": self.claim,
            "volume": self.volume,
            "node": self.pod.node,
            "driver": self.driver(),
            "until": if self.pod.is_ending() { "delete" } else { "condition=Ready" },
            "made-again": is_made_again(self.pod),
            "may-move": may_move(self, self.workload().map(|workload| workload.kind)),
            "of-set": kind_of(self.pod) == Some(WorkloadKind::StatefulSet),
        });
        if let (Value::Object(values), Value::Object(more)) = (&mut values, more) {
            values.extend(more);
        }
        self.index.facts.told(name, values)
    }
}

impl DiagnosisInput<'_> {
    /// The judgement with this name. A step is left out if it needs a value that is empty.
    pub(super) fn told(&self, name: &str, mut values: Value) -> Judgement {
        let Some(told) = JUDGEMENTS.get(name) else {
            return Judgement::default();
        };
        let explanation = text(self.kubectl, &told.because, &values).unwrap_or_default();
        if let Some(values) = values.as_object_mut() {
            values.retain(|_, value| !word(value).is_empty());
        }
        let steps = told.steps.iter().filter_map(|step| step.in_full(self.kubectl, &values));
        Judgement { explanation, steps: steps.collect() }
    }
}

impl Step {
    /// The step with these values; `None` if it is left out.
    fn in_full(&self, kubectl: &str, values: &Value) -> Option<SuggestedAction> {
        let has = |name: &String| values.get(name).is_some();
        if self.unless.as_ref().is_some_and(has) || !self.condition.as_ref().is_none_or(has) {
            return None;
        }
        let command = |command: &String| line(kubectl, command, values);
        let then = self.then.as_ref().and_then(command).map(|then| format!(" && {then}"));
        let asks = self.asks.as_ref().and_then(command).map(|asks| format!("=\"$({asks})\""));
        Some(SuggestedAction {
            purpose: self.purpose,
            command: match &self.command {
                Some(own) => Some(command(own)? + &then.or(asks).unwrap_or_default()),
                None => None,
            },
            text: text(kubectl, &self.text, values)?,
        })
    }
}

/// A command with these values, for a shell; `None` if a value is missing.
fn line(kubectl: &str, command: &str, values: &Value) -> Option<String> {
    let mut words = Vec::new();
    for part in command.split(' ') {
        match values.get(part.trim_matches(['{', '}'])) {
            Some(Value::Array(items)) => words.extend(items.iter().map(word)),
            _ => words.push(filled(part, values)?),
        }
    }
    Some(match words.split_first() {
        Some((first, rest)) if first == command::OWN => command::own(kubectl, rest),
        _ => command::line(kubectl, &words),
    })
}

/// A text with these values and with the commands in it; `None` if a value is missing.
fn text(kubectl: &str, text: &str, values: &Value) -> Option<String> {
    let parts = text.split('`').map(|part| match part.strip_prefix("$ ") {
        Some(command) => line(kubectl, command, values),
        None => filled(part, values),
    });
    Some(parts.collect::<Option<Vec<_>>>()?.join("`"))
}

/// The text with a value for each placeholder such as `{pod}`; `None` if one has none.
fn filled(text: &str, values: &Value) -> Option<String> {
    let mut parts = text.split('{');
    let mut filled = parts.next()?.to_owned();
    for part in parts {
        match part.split_once('}').filter(|(name, _)| is_placeholder(name)) {
            Some((name, rest)) => filled = filled + &word(values.get(name)?) + rest,
            None => filled = filled + "{" + part,
        }
    }
    Some(filled)
}

/// A value in words; empty if it stands for nothing.
fn word(value: &Value) -> String {
    match value {
        Value::Null | Value::Bool(false) => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(word).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

/// JSON and YAML in a text have braces too.
fn is_placeholder(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c == '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_are_read() {
        let told: HashMap<String, Told> = serde_saphyr::from_str(YAML).unwrap();
        assert!(!told.is_empty());
    }

    #[test]
    fn a_text_with_an_unknown_value_is_left_out() {
        let values = json!({"pod": "web {node}"});
        for (text, expected) in [
            ("{pod} is", Some("web {node} is")),
            ("on {node}", None),
            (r#"{"spec":{}} {a b} {"#, Some(r#"{"spec":{}} {a b} {"#)),
        ] {
            assert_eq!(filled(text, &values).as_deref(), expected);
        }
    }
}
