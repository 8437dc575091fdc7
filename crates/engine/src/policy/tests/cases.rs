//! The decisions of policies in `cases.yaml`, and the errors in bad ones in `bad_files.yaml`.

use std::collections::BTreeMap;

use jiff::{Timestamp, ToSpan};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::policy;
use crate::analysis::Certainty;
use crate::model::labels::Labels;
use crate::model::metadata::Metadata;
use crate::policy::keys::PLACEHOLDERS;
use crate::policy::{
    Action, PassedOver, Policy, RemedyChoice, Strictness, Suppressed, SuppressedBy, Target,
};
use crate::rules::{Hazard, Outcome, codes};

/// Labels or annotations, whose known keys are written without their prefix.
type Pairs = BTreeMap<String, String>;

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Case {
    is: String,
    policy: String,
    namespace: String,
    /// The labels of the Namespace; if they are not known, its annotations are not either.
    labels: Option<Pairs>,
    annotations: Pairs,
    object: Pairs,
    controlled: bool,
    rule: String,
    outcome: Outcome,
    certainty: Certainty,
    oversized: bool,
    action: Action,
    /// Checked only if it is given.
    without_remedy: Option<Action>,
    remedy: RemedyChoice,
    /// The source that silences it or lowers its action, and the reason.
    suppressed: Option<(String, String)>,
    lowered: Option<(String, String)>,
    passed_over: Vec<String>,
    /// Checked only if it is given.
    existing: Option<Strictness>,
}

impl Default for Case {
    fn default() -> Self {
        Self {
            is: String::new(),
            policy: String::new(),
            namespace: "shop".to_owned(),
            labels: Some(Pairs::new()),
            annotations: Pairs::new(),
            object: Pairs::new(),
            controlled: false,
            rule: codes::ROLLING_UPDATE_OVERLAP.to_owned(),
            outcome: Outcome::Deadlock,
            certainty: Certainty::Verified,
            oversized: false,
            action: Action::Deny,
            without_remedy: None,
            remedy: RemedyChoice::Auto,
            suppressed: None,
            lowered: None,
            passed_over: Vec::new(),
            existing: None,
        }
    }
}

fn read<T: DeserializeOwned>(text: &str) -> T {
    serde_saphyr::from_str(text).unwrap()
}

fn cases() -> Vec<Case> {
    read(include_str!("cases.yaml"))
}

fn labels(pairs: &Pairs) -> Labels {
    let whole = |key: &str| match key {
        "action" | "remedy" | "ignore" | "reason" | "until" => {
            format!("multi-attach-guard.dev/{key}")
        }
        _ => key.to_owned(),
    };
    let pairs: Vec<_> = pairs.iter().map(|(key, value)| (whole(key), value)).collect();
    pairs.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect()
}

#[test]
fn each_case_is_decided_as_it_says() {
    let mut wrong = Vec::new();
    for case in cases() {
        let policy = policy(&case.policy);
        let namespace_metadata = case.labels.as_ref().map(|pairs| Metadata {
            labels: labels(pairs),
            annotations: labels(&case.annotations),
            ..Metadata::default()
        });
        let annotations = labels(&case.object);
        let resolved = policy.resolve(&Target {
            namespace: &case.namespace,
            namespace_metadata: namespace_metadata.as_ref(),
            kind: "Deployment",
            name: "web",
            annotations: &annotations,
            controlled: case.controlled,
            now: Some(Timestamp::UNIX_EPOCH + (365 * 30 * 24).hours()),
        });
        let hazard = Hazard {
            certainty: case.certainty,
            ..Hazard::new(codes::find(&case.rule).unwrap(), case.outcome)
        };
        let decision = if case.oversized {
            resolved.decide_oversized(&hazard)
        } else {
            resolved.decide(&hazard)
        };
        let by = |suppression: Suppressed| {
            let by = match suppression.by {
                SuppressedBy::Object => "object".to_owned(),
                SuppressedBy::Namespace => "namespace".to_owned(),
                SuppressedBy::Owner => "owner".to_owned(),
                SuppressedBy::Exemption { line } => format!("exemption {line}"),
            };
            (by, suppression.reason)
        };
        let passed_over = resolved.passed_over().iter().map(PassedOver::to_string);
        let found = Case {
            action: decision.action,
            without_remedy: case.without_remedy.and(Some(decision.without_remedy)),
            remedy: decision.remedy,
            suppressed: decision.suppressed.map(by),
            lowered: decision.lowered.map(by),
            passed_over: passed_over.collect(),
            existing: case.existing.and(Some(resolved.existing())),
            ..case.clone()
        };
        if found != case {
            wrong.push(format!("{case:#?}\nis {found:#?}"));
        }
        let least = decision.action.without_remedy(case.outcome);
        assert!(decision.without_remedy >= least, "{case:?}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_notice_fits_into_a_warning_of_120_characters() {
    for notice in cases().iter().flat_map(|case| &case.passed_over) {
        let length = notice.chars().count();
        assert!(length <= 120, "{length}: {notice}");
    }
}

/// The cases contain the reasons of printed commands as they are printed.
#[test]
fn the_examples_of_reasons_are_in_the_cases() {
    for example in PLACEHOLDERS {
        let mut reasons = cases().into_iter().filter_map(|case| case.object.get("reason").cloned());
        assert!(reasons.any(|reason| reason == example), "{example}");
    }
}

#[test]
fn every_bad_file_is_named_with_its_place_and_the_way_out() {
    #[derive(Deserialize)]
    struct Bad {
        is: String,
        policy: String,
        error: String,
    }
    let mut wrong = String::new();
    for Bad { is, policy, error } in read::<Vec<Bad>>(include_str!("bad_files.yaml")) {
        let said = match Policy::parse(&policy, "policy.yaml") {
            Ok(_) => "no error".to_owned(),
            Err(found) => found.to_string(),
        };
        let expected = format!("policy.yaml:{error}");
        let agrees =
            if expected.ends_with(' ') { said.starts_with(&expected) } else { said == expected };
        if !agrees {
            wrong += &format!("{is}\n  wanted {expected}\n  got    {said}\n");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn a_reason_is_shown_with_where_it_stands() {
    let cases = [
        (SuppressedBy::Object, "agreed", "agreed"),
        (SuppressedBy::Namespace, "agreed", "agreed (namespace)"),
        (SuppressedBy::Namespace, "", "namespace"),
        (SuppressedBy::Owner, "", "its owner"),
        (SuppressedBy::Exemption { line: 3 }, "agreed", "agreed (policy, line 3)"),
    ];
    for (by, reason, expected) in cases {
        let reason = reason.to_owned();
        assert_eq!(Suppressed { by, reason }.to_string(), expected);
    }
}
