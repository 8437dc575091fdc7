//! The words of causes, nodes and remarks: `judgements.yaml` and `phrases.yaml`, whose heads explain
//! them.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::{Value, json};

use super::action::{Purpose, SuggestedAction};
use super::cause::{Judgement, maker, owner};
use super::command;
use super::diagnosis::DiagnosisInput;
use super::waiting_pod::WaitingPod;
use engine::analysis::AttachConstraint;
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
    #[serde(default, rename = "if")]
    condition: String,
    #[serde(default)]
    unless: String,
    purpose: Purpose,
    command: Option<String>,
    then: Option<String>,
    asks: Option<String>,
    text: String,
}

/// A part of sentences, which stands for a placeholder.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Phrase {
    #[serde(rename = "as")]
    name: String,
    #[serde(rename = "if")]
    condition: String,
    unless: String,
    text: String,
}

const YAML: &str = include_str!("judgements.yaml");
const PHRASES_YAML: &str = include_str!("phrases.yaml");

/// A test proves that the embedded files can be read.
static JUDGEMENTS: LazyLock<HashMap<String, Told>> =
    LazyLock::new(|| serde_saphyr::from_str(YAML).unwrap_or_default());
static PHRASES: LazyLock<Vec<Phrase>> =
    LazyLock::new(|| serde_saphyr::from_str(PHRASES_YAML).unwrap_or_default());

impl WaitingPod<'_> {
    /// The judgement with this name, for this pod.
    pub(super) fn told(&self, name: &str, more: Value) -> Judgement {
        let class = self.class();
        let values = json!({
            "namespace": self.pod.meta.namespace,
            "pod": self.pod.meta.name,
            "claim": self.claim,
            "class": class,
            "classless": class == Some(""),
            "volume": self.volume,
            "node": self.pod.node,
            "driver": self.used.driver,
            "owned": owner(self.pod),
            "workload": Self::target_of(self.pod),
            "maker": maker(self.pod).map(WorkloadKind::name),
            "ending": self.pod.is_ending(),
            "may-move": self.may_move(self.workload().map(|workload| workload.kind)),
            "for-one-pod": self.used.attach_constraint == AttachConstraint::SinglePod,
            "for-one-mount": self.refuses_second_mount(),
        });
        self.index.facts.told(name, merged(values, more))
    }
}

/// The values of both objects.
pub(super) fn merged(mut values: Value, more: Value) -> Value {
    if let (Value::Object(values), Value::Object(more)) = (&mut values, more) {
        values.extend(more);
    }
    values
}

impl DiagnosisInput<'_> {
    /// The judgement with this name. A step is left out if it needs a value that is empty.
    pub(super) fn told(&self, name: &str, mut values: Value) -> Judgement {
        let Some(told) = JUDGEMENTS.get(name) else {
            return Judgement::default();
        };
        let waits = self.objects.view.server().waits_after_a_node_is_deleted();
        values["detached-at-once"] = json!(!waits);
        if let Some(values) = values.as_object_mut() {
            values.retain(|_, value| !word(value).is_empty());
        }
        for Phrase { name: phrase, condition, unless, text: words } in PHRASES.iter() {
            let is_meant = applies(condition, unless, &values) && is_complete(words, &values);
            if values.get(phrase).is_none() && is_meant {
                values[phrase] = text(self.kubectl, words, &values).into();
            }
        }
        let steps = told.steps.iter().filter_map(|step| step.in_full(self.kubectl, &values));
        Judgement {
            explanation: text(self.kubectl, &told.because, &values),
            steps: steps.collect(),
        }
    }
}

impl Step {
    /// The step with these values; `None` if it is left out.
    fn in_full(&self, kubectl: &str, values: &Value) -> Option<SuggestedAction> {
        let is_whole = |text: &&String| is_complete(text, values);
        let has_all = self.command.iter().chain([&self.text]).all(|text| is_whole(&text));
        if !has_all || !applies(&self.condition, &self.unless, values) {
            return None;
        }
        let written = |command: &Option<String>, before: &str, after: &str| {
            let command = command.as_ref().filter(is_whole)?;
            Some(format!("{before}{}{after}", line(kubectl, command, values)))
        };
        let end = written(&self.then, " && ", "").or_else(|| written(&self.asks, "=\"$(", ")\""));
        Some(SuggestedAction {
            purpose: self.purpose,
            command: written(&self.command, "", &end.unwrap_or_default()),
            text: text(kubectl, &self.text, values),
        })
    }
}

/// Whether all that is in `condition` holds, and nothing that is in `unless`. `health=lost` holds if
/// that value is this one.
fn applies(condition: &str, unless: &str, values: &Value) -> bool {
    let holds = |part: &str| match part.split_once('=') {
        Some((name, value)) => values[name] == value,
        None => values.get(part).is_some(),
    };
    condition.split_whitespace().all(holds) && !unless.split_whitespace().any(holds)
}

/// A command with these values, for a shell.
fn line(kubectl: &str, command: &str, values: &Value) -> String {
    let mut words = Vec::new();
    for part in command.split(' ') {
        match values.get(part.trim_matches(['{', '}'])) {
            Some(Value::Array(items)) => words.extend(items.iter().map(word)),
            _ => words.push(filled(part, values)),
        }
    }
    match words.split_first() {
        Some((first, rest)) if first == command::OWN => command::own(kubectl, rest),
        _ => command::line(kubectl, &words),
    }
}

/// A text with these values and with the commands in it.
fn text(kubectl: &str, text: &str, values: &Value) -> String {
    let parts = text.split('`').map(|part| match part.strip_prefix("$ ") {
        Some(command) => line(kubectl, command, values),
        None => filled(part, values),
    });
    parts.collect::<Vec<_>>().join("`")
}

/// The text with a value for each placeholder such as `{pod}`, and nothing for those without one.
fn filled(text: &str, values: &Value) -> String {
    let mut parts = text.split('{');
    let mut filled = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once('}').filter(|(name, _)| is_placeholder(name)) {
            Some((name, rest)) => filled = filled + &word(&values[name]) + rest,
            None => filled = filled + "{" + part,
        }
    }
    filled
}

/// Whether each placeholder of the text has a value.
fn is_complete(text: &str, values: &Value) -> bool {
    let mut names = text.split('{').filter_map(|part| Some(part.split_once('}')?.0));
    names.all(|name| !is_placeholder(name) || values.get(name).is_some())
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
        let phrases: Vec<Phrase> = serde_saphyr::from_str(PHRASES_YAML).unwrap();
        assert!(!phrases.is_empty());
    }

    #[test]
    fn a_text_with_an_unknown_value_is_left_out() {
        let values = json!({"pod": "web {node}"});
        for (text, expected) in [
            ("{pod} is", Some("web {node} is")),
            ("on {node}", None),
            (r#"{"spec":{}} {a b} {"#, Some(r#"{"spec":{}} {a b} {"#)),
        ] {
            let whole = is_complete(text, &values).then(|| filled(text, &values));
            assert_eq!(whole.as_deref(), expected);
        }
    }
}
