use json_patch::Patch;
use serde_json::json;

use super::{EditError, apply, apply_each};

fn recreate() -> Patch {
    patch(json!([{"op": "replace", "path": "/spec/strategy", "value": {"type": "Recreate"}}]))
}

fn added() -> Patch {
    patch(json!([{"op": "add", "path": "/spec/strategy", "value": {"type": "Recreate"}}]))
}

fn zero_surge() -> Patch {
    patch(json!([{"op": "add", "path": "/spec/strategy", "value":
        {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}}]))
}

fn colocate() -> Patch {
    patch(
        json!([{"op": "add", "path": "/spec/template/spec/affinity", "value": {"podAffinity":
        {"requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": {"app": "web", "on": "yes"}}, "topologyKey": "kubernetes.io/hostname"}]}}}]),
    )
}

fn patch(value: serde_json::Value) -> Patch {
    serde_json::from_value(value).unwrap()
}

#[test]
fn the_smallest_edit_is_made() {
    let table: &[(&str, Patch, &str, &str)] = &[
        (
            "a strategy's type, its comment and what follows stay",
            recreate(),
            "spec:\n  strategy:  # how\n    type: RollingUpdate   # why\n    rollingUpdate:\n      maxSurge: 25%\n\n  # the template\n  template: {}\n",
            "spec:\n  strategy:  # how\n    type: Recreate   # why\n\n  # the template\n  template: {}\n",
        ),
        (
            "the type stands last",
            recreate(),
            "spec:\n  strategy:\n    rollingUpdate:\n      maxSurge: 25%\n    # why\n    type: \"RollingUpdate\"\n",
            "spec:\n  strategy:\n    # why\n    type: \"Recreate\"\n",
        ),
        (
            "single quotes stay",
            recreate(),
            "spec:\n  strategy: {type: 'RollingUpdate'}  # why\n",
            "spec:\n  strategy: {type: 'Recreate'}  # why\n",
        ),
        (
            "flow style, several keys",
            recreate(),
            "spec: {replicas: 1, strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1}}, template: {}}\n",
            "spec: {replicas: 1, strategy: {type: Recreate}, template: {}}\n",
        ),
        (
            "only a rollingUpdate block",
            recreate(),
            "spec:\n  strategy:\n    rollingUpdate:\n      maxSurge: 1\n  paused: no\n",
            "spec:\n  strategy:\n    type: Recreate\n  paused: no\n",
        ),
        (
            "an empty strategy",
            recreate(),
            "spec:\n  strategy: {}  # default\n  paused: no\n",
            "spec:\n  strategy:  # default\n    type: Recreate\n  paused: no\n",
        ),
        (
            "a strategy of nothing",
            recreate(),
            "spec:\n    strategy:  # default\n    paused: no\n",
            "spec:\n    strategy:  # default\n        type: Recreate\n    paused: no\n",
        ),
        (
            "a strategy of null",
            recreate(),
            "spec:\n  strategy: null  # default\n  paused: no\n",
            "spec:\n  strategy:  # default\n    type: Recreate\n  paused: no\n",
        ),
        (
            "a strategy by alias",
            recreate(),
            "x: &s\n  type: RollingUpdate\nspec:\n  strategy: *s  # shared\n",
            "x: &s\n  type: RollingUpdate\nspec:\n  strategy:  # shared\n    type: Recreate\n",
        ),
        (
            "a strategy from a merge",
            recreate(),
            "x: &s\n  strategy: {type: RollingUpdate}\nspec:\n  <<: *s\n  replicas: 1\n",
            "x: &s\n  strategy: {type: RollingUpdate}\nspec:\n  <<: *s\n  replicas: 1\n  strategy:\n    type: Recreate\n",
        ),
        (
            "no strategy: in front of the template, behind the selector's comment",
            added(),
            "spec:\n  replicas: 1\n  selector:\n    matchLabels: {a: b}  # ours\n\n  # the pods\n  template: {}\n",
            "spec:\n  replicas: 1\n  selector:\n    matchLabels: {a: b}  # ours\n  strategy:\n    type: Recreate\n\n  # the pods\n  template: {}\n",
        ),
        (
            "no strategy, a template alone",
            added(),
            "spec:\n  template: {}\n",
            "spec:\n  strategy:\n    type: Recreate\n  template: {}\n",
        ),
        (
            "sorted keys stay sorted",
            zero_surge(),
            "spec:\n   progressDeadlineSeconds: 1\n   replicas: 1\n   selector: {}\n   template: {}",
            "spec:\n   progressDeadlineSeconds: 1\n   replicas: 1\n   selector: {}\n   strategy:\n      type: RollingUpdate\n      rollingUpdate:\n         maxSurge: 0\n         maxUnavailable: 1\n   template: {}",
        ),
        (
            "percentages become numbers",
            zero_surge(),
            "spec:\n  strategy:\n    type: RollingUpdate\n    rollingUpdate:\n      maxSurge: 25%  # fast\n      maxUnavailable: '0'\n",
            "spec:\n  strategy:\n    type: RollingUpdate\n    rollingUpdate:\n      maxSurge: 0  # fast\n      maxUnavailable: 1\n",
        ),
        (
            "affinity with compact lists, at the end of a file without newline",
            colocate(),
            "spec:\n  template:\n    spec:\n      volumes:\n      - name: a\n      containers: []",
            "spec:\n  template:\n    spec:\n      volumes:\n      - name: a\n      affinity:\n        podAffinity:\n          requiredDuringSchedulingIgnoredDuringExecution:\n          - labelSelector:\n              matchLabels:\n                app: web\n                \"on\": \"yes\"\n            topologyKey: kubernetes.io/hostname\n      containers: []",
        ),
        (
            "affinity with indented lists",
            colocate(),
            "spec:\n  template:\n    spec:\n      volumes:\n        - name: a\n",
            "spec:\n  template:\n    spec:\n      volumes:\n        - name: a\n      affinity:\n        podAffinity:\n          requiredDuringSchedulingIgnoredDuringExecution:\n            - labelSelector:\n                matchLabels:\n                  app: web\n                  \"on\": \"yes\"\n              topologyKey: kubernetes.io/hostname\n",
        ),
        (
            "JSON on many lines",
            zero_surge(),
            "{\n  \"spec\": {\n    \"replicas\": 1,\n    \"template\": {}\n  }\n}\n",
            "{\n  \"spec\": {\n    \"replicas\": 1,\n    \"strategy\": {\n      \"type\": \"RollingUpdate\",\n      \"rollingUpdate\": {\n        \"maxSurge\": 0,\n        \"maxUnavailable\": 1\n      }\n    },\n    \"template\": {}\n  }\n}\n",
        ),
        (
            "JSON on many lines, replaced",
            recreate(),
            "{\n  \"spec\": {\n    \"strategy\": {\n      \"type\": \"RollingUpdate\",\n      \"rollingUpdate\": null\n    }\n  }\n}\n",
            "{\n  \"spec\": {\n    \"strategy\": {\n      \"type\": \"Recreate\"\n    }\n  }\n}\n",
        ),
        (
            "JSON on one line",
            zero_surge(),
            r#"{"spec":{"replicas":1,"template":{}}}"#,
            r#"{"spec":{"replicas":1,"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":0,"maxUnavailable":1}},"template":{}}}"#,
        ),
        (
            "Windows line ends",
            added(),
            "spec:\r\n  replicas: 1\r\n  template: {}\r\n",
            "spec:\r\n  replicas: 1\r\n  strategy:\r\n    type: Recreate\r\n  template: {}\r\n",
        ),
        (
            "an anchor on the value stays",
            recreate(),
            "spec:\n  strategy: &s\n    type: RollingUpdate\n  x: 1\n",
            "spec:\n  strategy: &s\n    type: Recreate\n  x: 1\n",
        ),
        (
            "a list's items",
            patch(json!([
                {"op": "remove", "path": "/l/0"},
                {"op": "add", "path": "/l/-", "value": {"name": "d", "v": [1]}},
                {"op": "add", "path": "/l/0", "value": "e"}])),
            "l:\n  - name: a\n    v: 1\n  # the second\n  - name: b\n    v: 2  # two\n  - c\nm: 1\n",
            "l:\n  - e\n  # the second\n  - name: b\n    v: 2  # two\n  - c\n  - name: d\n    v:\n      - 1\nm: 1\n",
        ),
        (
            "the first key behind a dash",
            patch(json!([{"op": "remove", "path": "/l/0/name"}])),
            "l:\n- name: a\n  v: 1\n",
            "l:\n- v: 1\n",
        ),
        (
            "the last key of a mapping",
            patch(json!([{"op": "remove", "path": "/a/b"}])),
            "a:  # why\n  b: 1\nc: 2\n",
            "a: {}  # why\nc: 2\n",
        ),
        (
            "flow lists",
            patch(
                json!([{"op": "replace", "path": "/m", "value": ["v", "w"]}, {"op": "remove", "path": "/k/1"}]),
            ),
            "m: [ReadWriteOnce]\nk: [1, 2,  3]\n",
            "m: [v, w]\nk: [1, 3]\n",
        ),
        (
            "a block list becomes another one",
            patch(
                json!([{"op": "replace", "path": "/spec/accessModes", "value": ["ReadWriteMany"]}]),
            ),
            "spec:\n  accessModes:\n  - ReadWriteOnce # one\n",
            "spec:\n  accessModes:\n  - ReadWriteMany # one\n",
        ),
    ];
    for (name, patch, before, after) in table {
        match apply(before, &[], patch) {
            Ok(edited) => assert_eq!(edited, *after, "{name}"),
            Err(refusal) => panic!("{name}: {refusal}"),
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
    let changes: Vec<(&[usize], &Patch)> = [&[0][..], &[1], &[2], &[3]]
        .into_iter()
        .map(|items| (items, &patch))
        .collect();
    let (edited, came_of) = apply_each(&text, &changes);
    let refused: Vec<bool> = came_of.iter().map(Result::is_err).collect();
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
        (
            "an object that is gone",
            "items:\n- {spec: {}}\n",
            &[1][..],
            None,
        ),
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
        Err(EditError::Shared { field }) if field == "paused"
    ));
    assert!(matches!(
        apply("spec: {}\n", &[], &removed),
        Err(EditError::Patch(_))
    ));
}
