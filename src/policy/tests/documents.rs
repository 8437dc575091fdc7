//! The shipped example and the reference agree with the code.

use super::{Object, labels, policy};
use crate::policy::{Action, Policy, RemedyChoice, keys};
use crate::rules::{Outcome, codes};
use crate::situation::Certainty;
use crate::storage::Catalog;

const EXAMPLE: &str = include_str!("../../../examples/policy.yaml");
const REFERENCE: &str = include_str!("../../../docs/policy.md");

fn blocks<'a>(text: &'a str, language: &str) -> Vec<&'a str> {
    text.split(&format!("```{language}\n"))
        .skip(1)
        .filter_map(|rest| rest.split_once("```").map(|(block, _)| block))
        .collect()
}

#[test]
fn the_example_is_the_built_in_policy_and_leaves_nothing_out() {
    assert_eq!(policy(EXAMPLE), Policy::default());
    let said: Vec<&str> = EXAMPLE
        .lines()
        .filter_map(|line| line.trim().split_once(':').map(|(key, _)| key))
        .collect();
    let outcomes = Outcome::ALL.map(Outcome::name);
    let keys = [
        "leftover-rolling-update",
        "remedy",
        "overrides",
        "controlled",
        "existing",
        "certainty",
        "nodes",
        "namespaces",
        "exemptions",
        "provisioners",
    ];
    let certainties = Certainty::ALL.map(Certainty::name);
    for key in outcomes.into_iter().chain(certainties).chain(keys) {
        assert!(said.contains(&key), "{key} is not in the example");
    }
}

#[test]
fn an_empty_file_is_the_built_in_policy() {
    for text in [
        "",
        "# nothing yet\n",
        "---\n",
        "defaults:\nnamespaces:\nexemptions:\n",
    ] {
        assert_eq!(policy(text), Policy::default(), "{text:?}");
    }
}

#[test]
fn every_yaml_block_of_the_reference_is_good() {
    let (metadata, policies): (Vec<_>, Vec<_>) = blocks(REFERENCE, "yaml")
        .into_iter()
        .partition(|block| block.starts_with("metadata:"));
    assert_eq!(policies.len(), 5);
    for block in policies {
        let provisioners = policy(block).provisioners().to_vec();
        let catalog = Catalog::embedded().unwrap();
        assert!(catalog.with_overrides(provisioners).is_ok(), "{block}");
    }
    assert_eq!(metadata.len(), 1);
    assert!(metadata[0].contains(keys::IGNORE) && metadata[0].contains(keys::REASON));
}

#[test]
fn the_error_in_the_reference_is_the_real_one() {
    let shown = blocks(REFERENCE, "text");
    let error = Policy::parse("defaults:\n  outcomes:\n    deadlok: deny\n", "policy.yaml");
    assert_eq!(shown, [format!("{}\n", error.unwrap_err())]);
}

#[test]
fn the_reference_names_every_word() {
    let words = Action::ALL.map(Action::name).into_iter();
    let words = words
        .chain(RemedyChoice::ALL.map(RemedyChoice::name))
        .chain(Outcome::ALL.map(Outcome::name))
        .chain(Certainty::ALL.map(Certainty::name))
        .chain([keys::ACTION, keys::REMEDY, keys::IGNORE, keys::REASON]);
    for word in words {
        assert!(REFERENCE.contains(&format!("`{word}`")), "{word}");
    }
}

#[test]
fn the_reference_names_every_rule_and_no_other() {
    let (_, rest) = REFERENCE.split_once("The rule codes are ").unwrap();
    let (sentence, _) = rest.split_once(".\n").unwrap();
    let named: Vec<&str> = sentence.split('`').skip(1).step_by(2).collect();
    assert_eq!(named, codes::ALL);
}

#[test]
fn the_first_example_of_the_reference_does_what_it_says() {
    let policy = policy(blocks(REFERENCE, "yaml")[0]);
    let shop = Object {
        namespace: "shop-eu",
        ..Object::default()
    };
    let other = Object {
        namespace_labels: Some(labels(&[])),
        ..Object::default()
    };
    let action = |object: &Object| {
        let resolved = policy.resolve(&object.target());
        resolved
            .decide(
                codes::ROLLING_UPDATE_OVERLAP,
                Outcome::Deadlock,
                Certainty::Verified,
            )
            .action
    };
    assert_eq!(action(&shop), Action::Fix);
    assert_eq!(action(&other), Action::Warn);
}
