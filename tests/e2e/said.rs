//! The messages that kubectl prints.

use std::collections::BTreeSet;

use engine::rules::codes;
use engine::verdict::{DENIAL_LENGTH, WARNING_LENGTH};
use serde::Deserialize;

use crate::harness::Output;
use crate::printed;

/// The beginnings of warnings that kubectl itself prints.
const KUBECTLS_OWN: [&str; 3] =
    ["resource ", "deleting cluster-scoped resources", "Immediate deletion does not wait"];

/// The sorted messages of kubectl about a request.
///
/// Cases write them as words: `pass`, `deny RULE`, `warn RULE`, `fix RULE with REMEDY`, several of
/// them joined by ` + `, or `error` and a part of the API server's own refusal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Said {
    /// The rules for which the guard refuses the request.
    pub(crate) denied: BTreeSet<String>,
    /// The rules that the guard warns about.
    pub(crate) warned: BTreeSet<String>,
    /// The repaired rules with their remedies, as `RULE with REMEDY`.
    pub(crate) fixed: BTreeSet<String>,
    /// All other warnings.
    pub(crate) noted: BTreeSet<String>,
    /// An error that is not a refusal by the guard.
    pub(crate) error: Option<String>,
}

impl TryFrom<String> for Said {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let mut said = Self::default();
        if let Some(error) = text.strip_prefix("error ") {
            said.error = Some(error.to_owned());
            return Ok(said);
        }
        for part in text.split(" + ") {
            let (word, rule) = part.split_once(' ').unwrap_or((part, ""));
            let code = rule.split(' ').next().unwrap_or_default();
            if word != "pass" && codes::find(code).is_none() {
                return Err(format!("there is no rule \"{code}\""));
            }
            let rule = rule.to_owned();
            match word {
                "pass" => {}
                "deny" => drop(said.denied.insert(rule)),
                "warn" => drop(said.warned.insert(rule)),
                "fix" => drop(said.fixed.insert(rule)),
                _ => {
                    return Err(format!("\"{word}\" is none of pass, deny, warn, fix, error"));
                }
            }
        }
        Ok(said)
    }
}

/// The rules that a denial names: the first at its end, each further one on its own line.
pub(crate) fn denied(text: &str) -> impl Iterator<Item = &str> {
    let first = text.split("More: multi-attach-guard rules ").skip(1);
    let further = text.split("\nAlso ").skip(1);
    let word = |rest: &str| rest.find([':', '\n', ' ', '\'']).unwrap_or(rest.len());
    first.chain(further).map(move |rest| &rest[..word(rest)])
}

/// Checks that the cause, one suggestion and a reference fit into a controller's condition.
fn assert_short(stderr: &str) {
    let denials = stderr.split("denied the request: ").skip(1);
    let guards = denials.filter(|denial| denial.contains("More: multi-attach-guard rules "));
    for denial in guards.filter_map(|denial| denial.lines().next()) {
        let length = denial.chars().count();
        assert!(length <= DENIAL_LENGTH, "{length} characters: {denial}");
    }
}

impl Said {
    /// Reads kubectl's output.
    pub(crate) fn of(output: &Output) -> Self {
        let commands = printed::between_backticks(&output.stderr);
        printed::assert_listed(commands.iter().map(String::as_str), "the guard");
        let mut said = Self::default();
        assert_short(&output.stderr);
        for line in output.stderr.lines() {
            let Some(warning) = line.strip_prefix("Warning: ") else {
                continue;
            };
            match warning.split_once(": ") {
                Some((rule, rest)) if codes::find(rule).is_some() => {
                    let length = warning.chars().count();
                    assert!(length <= WARNING_LENGTH, "{length} characters: {warning}");
                    // If there is room, the object comes first.
                    let fixed = rest
                        .strip_prefix("fixed with ")
                        .or_else(|| Some(rest.split_once(": fixed with ")?.1));
                    match fixed.and_then(|text| text.split_once(':')) {
                        Some((remedy, _)) => said.fixed.insert(format!("{rule} with {remedy}")),
                        None => said.warned.insert(rule.to_owned()),
                    };
                }
                _ if KUBECTLS_OWN.iter().any(|own| warning.starts_with(own)) => {}
                _ => drop(said.noted.insert(warning.to_owned())),
            }
        }
        if output.status == 0 {
            return said;
        }
        said.denied = denied(&output.stderr).map(ToOwned::to_owned).collect();
        if said.denied.is_empty() || !output.stderr.contains("denied the request: ") {
            said.error = Some(output.stderr.clone());
        }
        said
    }

    /// Whether the messages are the expected ones. Other warnings are checked by
    /// [`Step::says`](crate::case::Step::says), unless nothing at all is expected.
    pub(crate) fn is(&self, expected: &Self) -> bool {
        match (&self.error, &expected.error) {
            (Some(error), Some(part)) => error.contains(part),
            (None, None) => {
                self.denied == expected.denied
                    && self.warned == expected.warned
                    && self.fixed == expected.fixed
                    && (*expected != Self::default() || self.noted.is_empty())
            }
            _ => false,
        }
    }

    /// Whether the guard mentions this rule.
    pub(crate) fn mentions(&self, rule: &str) -> bool {
        let fixed = self.fixed.iter().filter_map(|remedy| remedy.split(' ').next());
        let all = self.denied.iter().chain(&self.warned).map(String::as_str);
        all.chain(fixed).any(|code| code == rule)
    }

    /// Whether the request is refused, so that nothing is stored.
    pub(crate) fn is_refusal(&self) -> bool {
        self.error.is_some() || !self.denied.is_empty()
    }

    /// The verdict in words, for a table.
    pub(crate) fn in_a_word(&self) -> String {
        let rules = |word: &str, rules: &BTreeSet<String>| {
            let all: Vec<&str> = rules.iter().map(String::as_str).collect();
            (!all.is_empty()).then(|| format!("{word} ({})", all.join(", ")))
        };
        let error = self.error.as_ref().map(|_| "refused by Kubernetes".to_owned());
        [rules("deny", &self.denied), rules("fix", &self.fixed), rules("warn", &self.warned), error]
            .into_iter()
            .flatten()
            .reduce(|all, next| format!("{all} and {next}"))
            .unwrap_or_else(|| "silent".to_owned())
    }
}
