//! The words of the causes: `judgements.yaml`, whose head explains it.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde::Deserialize;

use super::action::{Purpose, SuggestedAction};
use super::cause::{Judgement, is_made_again, may_move};
use super::command;
use super::waiting_pod::WaitingPod;
use engine::model::workload::WorkloadKind;

/// The words of a judgement, with placeholders.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Told {
    #[serde(default)]
    because: String,
    #[serde(default)]
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
    text: String,
}

const YAML: &str = include_str!("judgements.yaml");

/// A test proves that the embedded file can be read.
static JUDGEMENTS: LazyLock<HashMap<String, Told>> =
    LazyLock::new(|| serde_saphyr::from_str(YAML).unwrap_or_default());

/// A value by its name; empty if there is none.
type Values<'a> = HashMap<&'a str, &'a str>;

/// The value of a condition.
pub(super) const fn when(holds: bool) -> &'static str {
    if holds { "yes" } else { "" }
}

impl WaitingPod<'_> {
    /// The judgement with this name. A step is left out if it needs a value that is empty.
    pub(super) fn told(&self, name: &str, more: &[(&str, &str)]) -> Judgement {
        let Some(told) = JUDGEMENTS.get(name) else {
            return Judgement::default();
        };
        let kind = self.workload().map(|workload| workload.kind);
        let is_of_set = self.pod.workload().0 == WorkloadKind::StatefulSet.name();
        let mut values = Values::from([
            ("namespace", self.pod.meta.namespace.as_str()),
            ("pod", &self.pod.meta.name),
            ("claim", self.claim),
            ("volume", self.volume.as_deref().unwrap_or_default()),
            ("node", self.pod.node.as_deref().unwrap_or_default()),
            ("driver", self.driver()),
            ("until", if self.pod.is_ending() { "delete" } else { "condition=Ready" }),
            ("made-again", when(is_made_again(self.pod))),
            ("may-move", when(may_move(self, kind))),
            ("of-set", when(is_of_set)),
        ]);
        values.extend(more.iter().copied());
        let explanation = filled(&told.because, &values).unwrap_or_default();
        values.retain(|_, value| !value.is_empty());
        let kubectl = self.index.facts.kubectl;
        let steps = told.steps.iter().filter_map(|step| step.in_full(kubectl, &values)).collect();
        Judgement { explanation, steps }
    }
}

impl Step {
    /// The step with these values; `None` if it is left out.
    fn in_full(&self, kubectl: &str, values: &Values<'_>) -> Option<SuggestedAction> {
        let has = |name: &String| values.contains_key(name.as_str());
        if self.unless.as_ref().is_some_and(has) || !self.condition.as_ref().is_none_or(has) {
            return None;
        }
        let words = self.command.iter().flat_map(|command| command.split(' '));
        let words: Vec<String> = words.map(|word| filled(word, values)).collect::<Option<_>>()?;
        let command = words.split_first().map(|(first, rest)| match first.as_str() {
            command::OWN => command::own(kubectl, rest),
            _ => command::line(kubectl, &words),
        });
        Some(SuggestedAction { purpose: self.purpose, command, text: filled(&self.text, values)? })
    }
}

/// The text with a value for each placeholder such as `{pod}`; `None` if one has none.
fn filled(text: &str, values: &Values<'_>) -> Option<String> {
    let mut parts = text.split('{');
    let mut filled = parts.next()?.to_owned();
    for part in parts {
        match part.split_once('}').filter(|(name, _)| is_placeholder(name)) {
            Some((name, rest)) => filled.extend([values.get(name).copied()?, rest]),
            None => filled.extend(["{", part]),
        }
    }
    Some(filled)
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
        let values = HashMap::from([("pod", "web {node}")]);
        for (text, expected) in [
            ("{pod} is", Some("web {node} is")),
            ("on {node}", None),
            (r#"{"spec":{}} {a b} {"#, Some(r#"{"spec":{}} {a b} {"#)),
        ] {
            assert_eq!(filled(text, &values).as_deref(), expected);
        }
    }
}
