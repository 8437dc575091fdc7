//! The shipped example and the reference agree with the code.

use super::policy;
use crate::analysis::Certainty;
use crate::model::labels::Labels;
use crate::model::metadata::Metadata;
use crate::policy::{Action, Policy, RemedyChoice, Target, at_most, built_in, keys};
use crate::rules::{Hazard, Outcome, codes};

const EXAMPLE: &str = include_str!("../../../../../examples/policy.yaml");
const REFERENCE: &str = include_str!("../../../../../docs/policy.md");

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
        "unsupported-strategy",
        "remedy",
        "overrides",
        "controlled",
        "existing",
        "too-complex",
        "certainty",
        "nodes",
        "namespaces",
        "exemptions",
        "provisioners",
        "fencing",
    ];
    let certainties = Certainty::ALL.map(Certainty::name);
    for key in outcomes.into_iter().chain(certainties).chain(keys) {
        assert!(said.contains(&key), "{key} is not in the example");
    }
}

#[test]
fn an_empty_file_is_the_built_in_policy() {
    for text in ["", "# nothing yet\n", "---\n", "defaults:\nnamespaces:\nexemptions:\n"] {
        assert_eq!(policy(text), Policy::default(), "{text:?}");
    }
}

#[test]
fn every_yaml_block_of_the_reference_is_good() {
    let (metadata, policies): (Vec<_>, Vec<_>) =
        blocks(REFERENCE, "yaml").into_iter().partition(|block| block.starts_with("metadata:"));
    assert_eq!(policies.len(), 7);
    for block in policies {
        policy(block);
    }
    assert_eq!(metadata.len(), 1);
    assert!(metadata[0].contains(keys::IGNORE) && metadata[0].contains(keys::REASON));
}

#[test]
fn the_error_in_the_reference_is_the_real_one() {
    let written = blocks(REFERENCE, "text");
    let error = Policy::parse("defaults:\n  outcomes:\n    deadlok: deny\n", "policy.yaml");
    assert_eq!(written, [format!("{}\n", error.unwrap_err())]);
}

#[test]
fn the_reference_names_every_word() {
    let words = Action::ALL
        .map(Action::name)
        .into_iter()
        .chain(RemedyChoice::ALL.map(RemedyChoice::name))
        .chain(Outcome::ALL.map(Outcome::name))
        .chain(Certainty::ALL.map(Certainty::name))
        .chain([keys::ACTION, keys::REMEDY, keys::IGNORE, keys::REASON]);
    for word in words {
        assert!(REFERENCE.contains(&format!("`{word}`")), "{word}");
    }
}

/// The section of the reference below that heading, up to the next one.
fn section(heading: &str) -> &'static str {
    let (_, rest) = REFERENCE
        .split_once(&format!("\n{heading}\n"))
        .unwrap_or_else(|| panic!("there is no {heading}"));
    rest.split("\n#").next().unwrap()
}

/// The words in code quotes.
fn quoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// The rows of the table below that heading: the key of each, and the quoted words of its other
/// columns.
fn rows(heading: &str) -> Vec<(&'static str, Vec<Vec<&'static str>>)> {
    section(heading)
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| {
            let mut columns = line.trim_matches('|').split('|').map(quoted);
            (columns.next().unwrap()[0], columns.collect())
        })
        .collect()
}

fn keys_of(heading: &str) -> Vec<&'static str> {
    rows(heading).into_iter().map(|(key, _)| key).collect()
}

/// The words that the types know in the place where the text has `zzz`.
fn known(text: &str) -> Vec<String> {
    let error = Policy::parse(text, "policy.yaml").unwrap_err().to_string();
    let (_, list) = error.split_once("known are ").expect(&error);
    list.split(", ").flat_map(|words| words.split(" and ")).map(str::to_owned).collect()
}

fn sorted<T: Ord>(words: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut words: Vec<T> = words.into_iter().collect();
    words.sort_unstable();
    words
}

#[test]
fn the_tables_of_the_reference_hold_the_keys_of_the_types() {
    let top = REFERENCE
        .lines()
        .filter_map(|line| line.strip_prefix("### `"))
        .map(|heading| heading.trim_end_matches('`'));
    assert_eq!(sorted(top), sorted(known("zzz: 1")));
    let defaults = keys_of("### `defaults`");
    let entry = ["match"].iter().chain(&defaults).copied();
    let cases = [
        ("defaults: {zzz: 1}", defaults.clone()),
        ("namespaces: [{match: {names: [a]}, zzz: 1}]", entry.collect()),
        ("provisioners: [{zzz: 1}]", keys_of("### `provisioners`")),
        ("nodes: zzz", keys_of("### `nodes`")),
        ("defaults: {outcomes: {zzz: warn}}", keys_of("## Outcomes")),
        ("defaults: {certainty: {zzz: warn}}", keys_of("## Certainty")),
        ("defaults: {outcomes: {delay: zzz}}", keys_of("## Actions")),
    ];
    for (text, written) in cases {
        assert_eq!(sorted(written), sorted(known(text)), "{text}");
    }
    // If there is no table, the text contains every word.
    for (text, heading) in [
        ("exemptions: [{zzz: 1}]", "### `exemptions`"),
        ("exemptions: [{kinds: [zzz], reason: r}]", "### `exemptions`"),
        ("namespaces: [{match: {zzz: 1}}]", "### `namespaces`"),
    ] {
        let written = quoted(section(heading));
        for word in known(text) {
            assert!(written.contains(&word.as_str()), "{heading}: {word}");
        }
    }
}

#[test]
fn the_tables_of_the_reference_hold_the_words_and_what_is_built_in() {
    for (key, columns) in rows("### `defaults`") {
        if let "remedy" | "overrides" | "controlled" | "existing" | "too-complex" = key {
            let text = format!("defaults: {{{key}: zzz}}");
            assert_eq!(sorted(columns[0].clone()), sorted(known(&text)), "{key}");
            let built_in = format!("defaults: {{{key}: {}}}", columns[1][0]);
            assert_eq!(policy(&built_in), Policy::default(), "{key}");
        }
    }
    for (outcome, columns) in rows("## Outcomes") {
        let outcome = Outcome::ALL.into_iter().find(|known| known.name() == outcome);
        assert_eq!(columns[1], [built_in(outcome.unwrap()).name()]);
    }
    for (certainty, columns) in rows("## Certainty") {
        let certainty = Certainty::ALL.into_iter().find(|known| known.name() == certainty);
        assert_eq!(columns[1], [at_most(certainty.unwrap()).name()]);
    }
    let annotations = [keys::ACTION, keys::REMEDY, keys::IGNORE, keys::REASON, keys::UNTIL];
    assert_eq!(keys_of("## Annotations"), annotations);
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
    let (none, metadata) = (Labels::default(), Metadata::default());
    let action = |namespace, rule, outcome| {
        let resolved = policy.resolve(&Target {
            namespace,
            namespace_metadata: Some(&metadata),
            kind: "Deployment",
            name: "web",
            annotations: &none,
            controlled: false,
            now: None,
        });
        resolved.decide(&Hazard::new(rule, outcome)).action
    };
    let cases = [
        (codes::ROLLING_UPDATE_OVERLAP, Outcome::Deadlock, Action::Fix),
        (codes::SINGLE_POD_VOLUME, Outcome::Stuck, Action::Fix),
        (codes::LEFTOVER_ROLLING_UPDATE, Outcome::Refused, Action::Fix),
        (codes::UNSUPPORTED_ACCESS_MODE, Outcome::Refused, Action::Deny),
        (codes::FENCING_LIVE_NODE, Outcome::DataLoss, Action::Deny),
    ];
    for (rule, outcome, in_shop) in cases {
        for (namespace, expected) in [
            ("shop", in_shop),
            ("shop-eu", in_shop),
            // The API server would refuse that object.
            ("bank", if rule == codes::LEFTOVER_ROLLING_UPDATE { in_shop } else { Action::Warn }),
        ] {
            let action = action(namespace, rule, outcome);
            assert_eq!(action, expected, "{rule} in {namespace}");
        }
    }
}

/// The keys that an error lists: "Known are a, b and c".
fn known_keys(text: &str) -> Vec<String> {
    let error = Policy::parse(text, "policy.yaml").unwrap_err().to_string();
    let (_, list) = error.rsplit_once("nown are ").unwrap();
    let mut keys: Vec<String> =
        list.replace(" and ", ", ").split(", ").map(str::to_owned).collect();
    keys.sort();
    keys
}

/// Editors complete by this schema, and the chart refuses keys that its own schema does not know.
#[test]
fn the_schemas_know_the_keys_that_the_policy_has() {
    let parse = |text: &str| -> serde_json::Value { serde_json::from_str(text).unwrap() };
    let schema = parse(include_str!("../../../../../docs/policy.schema.json"));
    let chart = parse(include_str!("../../../../../manifests/chart/values.schema.json"));
    assert!(
        schema["definitions"] == chart["definitions"]
            && schema["properties"] == chart["properties"]["policy"]["properties"],
        "docs/policy.schema.json and manifests/chart/values.schema.json differ in what they say of the policy"
    );
    let section = "/definitions/section";
    let matched = "/definitions/section/properties/match";
    let selector = "/definitions/section/properties/match/properties/selector";
    for (at, text, but) in [
        ("", "zzz: 1", ""),
        (section, "defaults: {zzz: 1}", "match"),
        (section, "namespaces: [{match: {names: [a]}, zzz: 1}]", ""),
        (matched, "namespaces: [{match: {zzz: 1}}]", ""),
        (selector, "namespaces: [{match: {selector: {zzz: 1}}}]", ""),
        ("/properties/exemptions/items", "exemptions: [{zzz: 1}]", ""),
        ("/properties/provisioners/items", "provisioners: [{zzz: 1}]", ""),
        ("/properties/fencing", "fencing: {zzz: 1}", ""),
    ] {
        let properties = schema.pointer(&format!("{at}/properties")).unwrap();
        let mut keys: Vec<String> = properties.as_object().unwrap().keys().cloned().collect();
        keys.retain(|key| key != but);
        keys.sort();
        assert_eq!(keys, known_keys(text), "{text}");
    }
    for (key, known) in [
        ("outcomes", "defaults: {outcomes: {zzz: deny}}"),
        ("certainty", "defaults: {certainty: {zzz: deny}}"),
    ] {
        let properties = &schema["definitions"]["section"]["properties"][key]["properties"];
        let mut keys: Vec<String> = properties.as_object().unwrap().keys().cloned().collect();
        keys.sort();
        assert_eq!(keys, known_keys(known), "{key}");
    }
    // The first line of whole files, in the example and on the pages, is for editors.
    let first_line = EXAMPLE.lines().next().unwrap_or_default();
    assert!(first_line.starts_with("# yaml-language-server: $schema=https://"));
    assert!(first_line.ends_with("/docs/policy.schema.json"), "{first_line}");
    assert!(blocks(REFERENCE, "yaml")[0].starts_with(first_line));
    let repository = include_str!("../../../../../docs/gitops.md");
    let policy = blocks(repository, "yaml")
        .into_iter()
        .find_map(|block| block.strip_prefix("# .multi-attach-guard.yaml\n"));
    assert!(policy.is_some_and(|policy| policy.starts_with(first_line)));
}
