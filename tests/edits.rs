//! Remedies change nothing but what they name, whatever way a manifest is written.

// Helpers of tests stand outside the functions clippy knows as tests.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::fs;

use json_patch::Patch;
use multi_attach_guard::manifest::edit::apply;
use multi_attach_guard::manifest::read::{Place, read};
use multi_attach_guard::manifest::source::Source;
use multi_attach_guard::manifest::split::parts;
use proptest::prelude::*;
use serde_json::{Value, json};

fn patches() -> Vec<(&'static str, Patch)> {
    let recreate = json!({"type": "Recreate"});
    let zero_surge =
        json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}});
    let affinity = json!({"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"labelSelector": {"matchLabels": {"app": "web", "version": "1.0"}}, "topologyKey": "kubernetes.io/hostname"}]}});
    [
        ("recreate", "/spec/strategy", recreate),
        ("zero-surge", "/spec/strategy", zero_surge),
        ("colocate", "/spec/template/spec/affinity", affinity),
    ]
    .map(|(name, path, value)| {
        let patch = json!([{"op": "add", "path": path, "value": value}]);
        (name, serde_json::from_value(patch).unwrap())
    })
    .to_vec()
}

/// The document as another reader sees it, told to follow the same rules.
fn value(text: &str) -> Value {
    let options = serde_saphyr::options! {
        legacy_octal_numbers: true,
        merge_keys: serde_saphyr::MergeKeyPolicy::Merge,
        budget: None,
    };
    serde_saphyr::from_str_with_options(text, options).unwrap()
}

fn item<'v>(value: &'v mut Value, place: &Place) -> &'v mut Value {
    place
        .items
        .iter()
        .fold(value, |value, number| &mut value["items"][number])
}

fn deployments(text: &str) -> Vec<Place> {
    let source = Source::in_memory("corpus", text.to_owned());
    let reading = read(&[source], |manifest| manifest.kind == "Deployment", || {});
    assert!(reading.errors.is_empty(), "{:?}\n{text}", reading.errors);
    reading
        .objects
        .into_iter()
        .filter_map(|(place, deployment)| deployment.then_some(place))
        .collect()
}

/// Applies every patch to every Deployment of `text`, and each patch twice.
fn check(name: &str, text: &str) {
    for place in deployments(text) {
        let part = parts(text)[place.part];
        for (remedy, patch) in patches() {
            let edited = apply(part.text, &place.items, &patch)
                .unwrap_or_else(|refusal| panic!("{name}, {remedy}: {refusal}\n{text}"));

            let mut wanted = value(part.text);
            json_patch::patch(item(&mut wanted, &place), &patch).unwrap();
            assert_eq!(value(&edited), wanted, "{name}, {remedy}\n{edited}");

            // What stays is a run of the old lines and no line is written anew twice.
            let again = apply(&edited, &place.items, &patch).unwrap();
            assert_eq!(
                again, edited,
                "{name}, {remedy}: a second pass changes nothing"
            );

            let kept = text_outside(part.text, &edited);
            for word in [
                "0755",
                "0o755",
                "yes",
                "NO",
                "2024-02-29",
                "123456789012345678901234567890",
                "1.10",
                "12345678901234567890",
            ] {
                let count = |text: &str| text.matches(word).count();
                assert_eq!(count(&edited), count(part.text), "{name}, {remedy}: {word}");
            }
            assert!(
                kept,
                "{name}, {remedy}: a line outside the remedy changed\n{edited}"
            );
        }
    }
}

/// Whether the old lines that are gone from the new text lie in one stretch
/// around the place of the edit.
fn text_outside(old: &str, new: &str) -> bool {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let front = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let back = old[front..]
        .iter()
        .rev()
        .zip(new[front.min(new.len())..].iter().rev())
        .take_while(|(a, b)| a == b)
        .count();
    // A strategy block and a flow line are never longer than this.
    old.len() - front - back <= 8
}

#[test]
fn the_corpus_keeps_all_but_the_remedy() {
    let mut seen = 0;
    for entry in fs::read_dir("tests/corpus").unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "md") {
            continue;
        }
        check(
            &path.display().to_string(),
            &fs::read_to_string(&path).unwrap(),
        );
        seen += 1;
    }
    assert_eq!(seen, 7, "a corpus file has gone or come");
}

/// A Deployment in some way of writing.
#[derive(Debug, Clone)]
struct Written {
    indent: usize,
    compact: bool,
    comments: bool,
    crlf: bool,
    final_newline: bool,
    strategy: usize,
    order: Vec<usize>,
    scalar: usize,
    affinity: usize,
}

const STRATEGIES: [&str; 9] = [
    "",
    "strategy: {}",
    "strategy:",
    "strategy: ~",
    "strategy: {type: RollingUpdate}",
    "strategy: {\"rollingUpdate\": {maxSurge: 1, maxUnavailable: 0}, type: 'RollingUpdate'}",
    "strategy:\n>type: RollingUpdate",
    "strategy:\n>rollingUpdate:\n>>maxSurge: 25%\n>>maxUnavailable: 25%\n>type: \"RollingUpdate\"",
    "strategy:\n>type: RollingUpdate\n>rollingUpdate: {maxSurge: 0o1}",
];

const SCALARS: [&str; 8] = [
    "0755",
    "yes",
    "123456789012345678901234567890",
    "2024-02-29",
    "|\n>>x: y\n\n>># no comment",
    "'it''s'",
    "\"a\\tb # c\"",
    "!!str 0755",
];

const AFFINITIES: [&str; 3] = ["", "affinity: {}", "affinity:\n>nodeAffinity: {}"];

impl Written {
    fn text(&self) -> String {
        let step = " ".repeat(self.indent);
        let dash = if self.compact { "" } else { &step };
        let comment = |text: &str| {
            if self.comments {
                format!("  # {text}")
            } else {
                String::new()
            }
        };
        let block = |text: &str, level: usize| -> String {
            text.lines()
                .map(|line| {
                    let deeper = line.chars().take_while(|c| *c == '>').count();
                    let line = &line[deeper..];
                    if line.is_empty() {
                        return "\n".to_owned();
                    }
                    format!("{}{line}\n", step.repeat(level + deeper))
                })
                .collect()
        };
        let template = format!(
            "{step}template:{}\n{}{step}{step}spec:\n{step}{step}{step}containers:\n{step}{step}{step}{dash}- name: app\n{step}{step}{step}{dash}  image: app{}\n",
            comment("the pods"),
            if self.comments { "\n# far left\n" } else { "" },
            comment("latest"),
        );
        let affinity = block(AFFINITIES[self.affinity], 3);
        let parts = [
            format!("{step}replicas: 1{}\n", comment("one")),
            block(STRATEGIES[self.strategy], 1),
            format!("{template}{affinity}"),
            format!("{step}selector: {{matchLabels: {{app: web}}}}\n"),
        ];
        let spec: String = self.order.iter().map(|at| parts[*at].as_str()).collect();
        let odd = block(&format!("odd: {}", SCALARS[self.scalar]), 2);
        let mut text = format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n{step}name: web\n{step}annotations:\n{odd}spec:{}\n{spec}",
            comment("what is wanted"),
        );
        if !self.final_newline {
            text.truncate(text.trim_end().len());
        }
        if self.crlf {
            text = text.replace('\n', "\r\n");
        }
        text
    }
}

fn written() -> impl Strategy<Value = Written> {
    (
        (
            1..=5usize,
            any::<bool>(),
            any::<bool>(),
            any::<bool>(),
            any::<bool>(),
        ),
        (0..STRATEGIES.len(), 0..SCALARS.len(), 0..AFFINITIES.len()),
        Just(vec![0, 1, 2, 3]).prop_shuffle(),
    )
        .prop_map(
            |(
                (indent, compact, comments, crlf, final_newline),
                (strategy, scalar, affinity),
                order,
            )| Written {
                indent,
                compact,
                comments,
                crlf,
                final_newline,
                strategy,
                order,
                scalar,
                affinity,
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_way_of_writing_keeps_all_but_the_remedy(written in written()) {
        check("generated", &written.text());
    }
}
