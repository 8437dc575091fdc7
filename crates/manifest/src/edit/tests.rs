use std::collections::HashMap;

use json_patch::Patch;
use serde::Deserialize;
use serde_json::json;

use super::{EditError, apply, apply_each};

#[derive(Deserialize)]
struct Cases {
    patches: HashMap<String, Patch>,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    is: String,
    patch: String,
    before: String,
    after: String,
}

fn cases() -> Cases {
    serde_saphyr::from_str(include_str!("cases.yaml")).unwrap()
}

fn recreate() -> Patch {
    cases().patches.remove("recreate").unwrap()
}

fn patch(value: serde_json::Value) -> Patch {
    serde_json::from_value(value).unwrap()
}

#[test]
fn the_smallest_edit_is_made() {
    let Cases { patches, cases } = cases();
    for case in cases {
        match apply(&case.before, &[], &patches[&case.patch]) {
            Ok(edited) => assert_eq!(edited, case.after, "{}", case.is),
            Err(refusal) => panic!("{}: {refusal}", case.is),
        }
    }
}

#[test]
fn an_item_of_a_list_is_edited_alone() {
    let text = "kind: List\nitems:\n- spec: {strategy: {type: RollingUpdate}}\n- spec:\n    strategy:\n      type: RollingUpdate\n";
    let edited = apply(text, &[1], &recreate()).unwrap();
    assert_eq!(
        edited,
        "kind: List\nitems:\n- spec: {strategy: {type: RollingUpdate}}\n- spec:\n    strategy:\n      type: Recreate\n"
    );
}

#[test]
fn one_refusal_leaves_the_other_items_repaired() {
    let item = |name: &str| format!("- {{name: {name}, spec: {{strategy: {{type: A}}}}}}\n");
    let text = format!(
        "kind: List\nitems:\n{}- &o {{name: b, spec: {{strategy: {{type: A}}}}}}\n{}{}also: *o\n",
        item("a"),
        item("c"),
        item("d")
    );
    let patch = recreate();
    let changes: Vec<(&[usize], &Patch)> =
        [&[0][..], &[1], &[2], &[3]].into_iter().map(|items| (items, &patch)).collect();
    let (edited, results) = apply_each(&text, &changes);
    let refused: Vec<bool> = results.iter().map(Result::is_err).collect();
    assert_eq!(refused, [false, true, false, false]);
    let [a, b, c, d] =
        ["a", "b", "c", "d"].map(|name| format!("name: {name}, spec: {{strategy: {{type: "));
    for (start, word) in [(a, "Recreate"), (b, "A"), (c, "Recreate"), (d, "Recreate")] {
        assert!(edited.contains(&format!("{start}{word}}}")), "{edited}");
    }
}

#[test]
fn what_others_share_is_refused() {
    let table = [
        (
            "an anchor used elsewhere",
            "a: &s {type: RollingUpdate}\nspec: {strategy: *s}\n",
            &[][..],
            Some("/a"),
        ),
        (
            "an item that is an alias",
            "items:\n- &o {spec: {strategy: {type: A}}}\n- *o\n",
            &[1][..],
            None,
        ),
        ("an object that is gone", "items:\n- {spec: {}}\n", &[1][..], None),
    ];
    for (name, text, items, path) in table {
        let path = path.unwrap_or("/spec/strategy");
        let patch = patch(json!([{"op": "replace", "path": path, "value": {"type": "Recreate"}}]));
        assert!(apply(text, items, &patch).is_err(), "{name}");
    }
    let removed = patch(json!([{"op": "remove", "path": "/spec/paused"}]));
    let merged = "x: &x {paused: true}\nspec: {<<: *x, replicas: 1}\n";
    assert!(matches!(
        apply(merged, &[], &removed),
        Err(EditError::Shared(field)) if field == "paused"
    ));
    assert!(matches!(apply("spec: {}\n", &[], &removed), Err(EditError::Patch(_))));
}
