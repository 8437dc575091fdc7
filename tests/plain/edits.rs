//! Remedies change only the fields that they name, in every style of manifest.

use crate::corpus;
use crate::written::written;
use json_patch::Patch;
use manifest::edit::apply;
use manifest::read::{Position, read};
use manifest::source::Source;
use manifest::split::parts;
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

/// The document as another YAML reader reads it.
fn value(text: &str) -> Value {
    let [value] = corpus::values(text).try_into().unwrap();
    value
}

fn item<'v>(value: &'v mut Value, place: &Position) -> &'v mut Value {
    place.items.iter().fold(value, |value, number| &mut value["items"][number])
}

fn deployments(text: &str) -> Vec<Position> {
    let source = Source::in_memory("corpus", text.to_owned());
    let reading =
        read(&[source], |place, manifest| (manifest.kind == "Deployment").then_some(place));
    assert!(reading.errors.is_empty(), "{:?}\n{text}", reading.errors);
    reading.objects.into_iter().flatten().collect()
}

/// Scalars that a program may write differently after reading them.
const WORDS: &str =
    "0755 0o755 yes NO 2024-02-29 123456789012345678901234567890 1.10 12345678901234567890";

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

            // Unchanged lines stay as they are, and a second edit writes no line again.
            let again = apply(&edited, &place.items, &patch).unwrap();
            assert_eq!(again, edited, "{name}, {remedy}: a second pass changes nothing");

            let kept = text_outside(part.text, &edited);
            for word in WORDS.split(' ') {
                let [found, before] = [&edited, part.text].map(|all| all.matches(word).count());
                assert_eq!(found, before, "{name}, {remedy}: {word}");
            }
            assert!(kept, "{name}, {remedy}: a line outside the remedy changed\n{edited}");
        }
    }
}

/// Whether the removed old lines are in one stretch around the place of the edit.
fn text_outside(old: &str, new: &str) -> bool {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let front = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let back = old[front..]
        .iter()
        .rev()
        .zip(new[front.min(new.len())..].iter().rev())
        .take_while(|(a, b)| a == b)
        .count();
    // Strategy blocks and flow lines are never longer than this.
    old.len() - front - back <= 8
}

#[test]
fn the_corpus_keeps_all_but_the_remedy() {
    for (name, text) in corpus::files() {
        check(&name, &text);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_way_of_writing_keeps_all_but_the_remedy(written in written()) {
        check("generated", &written.text());
    }
}
