//! What an editor sends, well-formed or not.

use std::fs;
use std::io::Write;
use std::path::Path;

use super::client::{place_in_editor, program, uri};
use super::*;

#[test]
fn findings_follow_the_text() {
    let (_kept, root) = folder(&[("claim.yaml", CLAIM), ("web.yaml", WEB)]);
    let [web, claim] = ["web.yaml", "claim.yaml"].map(|name| root.join(name));
    let mut editor = Editor::start(&root, &[]);
    editor.open(&web, WEB);
    let found = editor.shown(&web);
    let expected: Vec<Value> =
        check(&root, &[]).iter().map(|finding| place_of(finding, WEB)).collect();
    assert_eq!(found.iter().map(place_in_editor).collect::<Vec<_>>(), expected);
    assert_eq!(found[0]["severity"], 1);
    let page = found[0]["codeDescription"]["href"].as_str().unwrap();
    assert!(page.ends_with("docs/rules.md#rolling-update-overlap"), "{page}");
    let marks = found[0]["relatedInformation"].as_array().unwrap();
    let files: Vec<&Value> = marks.iter().map(|mark| &mark["location"]["uri"]).collect();
    assert_eq!(files, [&json!(uri(&web)), &json!(uri(&claim))]);

    // The word is replaced where UTF-16 counts it, in two changes.
    let start = at(WEB, "RollingUpdate");
    let mut after = start.clone();
    after["character"] = (start["character"].as_u64().unwrap() + 13).into();
    let removed = json!({"range": {"start": start, "end": after}, "text": ""});
    let added = json!({"range": {"start": start, "end": start}, "text": "Recreate"});
    editor.change(&web, &json!([removed, added]));
    assert_eq!(editor.shown(&web), Vec::<Value>::new());
    let finished = editor.hover(&web, &at(WEB, "strategy"));
    assert!(finished[0].contains("Recreate stops all old pods first"), "{finished:?}");

    // Texts that are not finished, or are no manifests.
    for text in ["spec: {strategy: [", "{{ if }}\na: 1\n", "a:\n\tb", "", "kind: Pod", &WEB[..200]]
    {
        editor.change(&web, &json!([{"text": text}]));
        assert!(editor.shown(&web).iter().all(|one| one["severity"] != 1), "{text}");
    }
    editor.change(&web, &json!([{"text": WEB}]));
    assert_eq!(editor.shown(&web), found);
    // A neighbour in the editor is a fact instead of the one on disk, until it is closed.
    editor.open(&claim, &CLAIM.replace("name: data", "name: other"));
    let [guess] = &editor.shown(&web)[..] else { panic!("one finding") };
    assert_eq!((&guess["code"], &guess["severity"]), (&json!("unresolved-claim"), &json!(4)));
    assert!(guess["message"].as_str().unwrap().contains("--facts"), "{guess}");
    editor.close(&claim);
    assert_eq!(editor.shown(&web), found);
    editor.close(&web);
    assert_eq!(editor.shown(&web), Vec::<Value>::new());
    editor.end();
}

#[test]
fn facts_suppressions_and_the_policy_count() {
    const FACTS: &str = "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: gp3}\nprovisioner: efs.csi.aws.com\n";
    const NODE: &str = "---\napiVersion: v1\nkind: Node\nmetadata: {name: one}\n";
    let (_facts, elsewhere) = folder(&[("facts.yaml", &[FACTS, NODE].concat())]);
    let facts = elsewhere.join("facts.yaml");
    let named = ["--facts", facts.to_str().unwrap()];
    let (_kept, root) = folder(&[("claim.yaml", CLAIM), ("web.yaml", WEB)]);
    let web = root.join("web.yaml");
    let mut editor = Editor::start(&root, &named);
    editor.open(&web, WEB);
    assert!(editor.shown(&web).is_empty());
    assert!(editor.published.is_empty(), "nothing is published where nothing is found");
    editor.end();

    editor = Editor::start(&root, &[]);
    editor.open(&web, WEB);
    let place = editor.shown(&web)[0]["range"]["start"].clone();
    let offered = editor.actions(&web, &place, &Value::Null);
    let ignore = offered.last().unwrap();
    let edit = &ignore["edit"]["changes"][uri(&web)][0];
    let annotated = edit["newText"].as_str().unwrap();
    assert!(
        annotated.contains("multi-attach-guard.dev/ignore: rolling-update-overlap"),
        "{annotated}"
    );
    // The placeholder is no reason: the finding stays, and a notice says why.
    editor.change(&web, &json!([{"range": edit["range"], "text": annotated}]));
    let shown = editor.shown(&web);
    let severities: Vec<&Value> = shown.iter().map(|found| &found["severity"]).collect();
    assert_eq!(severities, [1, 3], "{shown:#?}");
    assert!(shown[1]["message"].as_str().unwrap().contains("is still the example"));
    editor.change(&web, &json!([{"text": WEB}, {"text": WEB.replace("{name: web}\n", "{name: web, annotations: {multi-attach-guard.dev/ignore: rolling-update-overlap, multi-attach-guard.dev/reason: one node}}\n")}]));
    assert!(editor.shown(&web).is_empty());
    editor.change(&web, &json!([{"text": WEB}]));
    assert_eq!(editor.shown(&web).len(), 1);
    fs::write(root.join(".multi-attach-guard.yaml"), "nodes: never\n").unwrap();
    editor.tell("textDocument/didSave", &json!({"textDocument": {"uri": uri(&web)}}));
    assert!(editor.shown(&web).is_empty());
    fs::write(root.join(".multi-attach-guard.yaml"), "nodes: seldom\n").unwrap();
    assert_eq!(editor.told[0][0], "client/registerCapability");
    let watched = &editor.told[0][1]["registrations"][0];
    assert_eq!(watched["registerOptions"]["watchers"][0]["globPattern"], "**/*.{yaml,yml,json}");
    editor.tell(watched["method"].clone().as_str().unwrap(), &json!({"changes": []}));
    assert!(editor.shown(&web).is_empty());
    let told = editor.told.last().unwrap().to_string();
    assert!(
        told.contains("window/showMessage") && told.contains(".multi-attach-guard.yaml"),
        "{told}"
    );
    editor.end();
}

#[test]
fn a_field_is_explained_in_three_lines() {
    const CLASS: &str = "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: gp3}\nprovisioner: ebs.csi.aws.com\n";
    const SCALER: &str = "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: web}\nspec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, maxReplicas: 4}\n";
    let (_kept, root) = folder(&[("claim.yaml", CLAIM), ("class.yaml", CLASS), ("web.yaml", WEB)]);
    let [web, claim, class, scaler] =
        ["web.yaml", "claim.yaml", "class.yaml", "scaler.yaml"].map(|name| root.join(name));
    let mut editor = Editor::start(&root, &[]);
    for (file, text) in [(&web, WEB), (&claim, CLAIM), (&class, CLASS)] {
        editor.open(file, text);
    }
    let of_claim = [
        "claim \"data\": ReadWriteOnce, class \"gp3\"",
        "gp3 (ebs.csi.aws.com, AWS Elastic Block Store (CSI)): Filesystem ReadWriteOnce, ReadWriteOncePod; Block ReadWriteOnce, ReadWriteOncePod; attached (catalog)",
        "Used by Deployment web.",
    ];
    for (file, text, part) in [
        (&claim, CLAIM, "ReadWriteOnce"),
        (&claim, CLAIM, "gp3"),
        (&claim, CLAIM, "data}"),
        (&web, WEB, "data}}]"),
    ] {
        assert_eq!(editor.hover(file, &at(text, part)), of_claim, "{part}");
    }
    let of_class = editor.hover(&class, &at(CLASS, "ebs"));
    assert_eq!(of_class, [of_claim[1], "Named by PersistentVolumeClaim data."]);
    let pods = editor.hover(&web, &at(WEB, "strategy"));
    assert_eq!(
        pods,
        [
            "At most 2 at once: 1 by spec.replicas, and 1 more in a rollout. RollingUpdate starts the new pod before the old one stops (surge 1, unavailable 0).",
            of_claim[0],
        ]
    );
    editor.open(&scaler, SCALER);
    let scaled = editor.hover(&web, &at(WEB, "strategy"));
    assert!(
        scaled[0].starts_with("At most 5 at once: 4 by its autoscaler, and 1 more"),
        "{scaled:?}"
    );
    assert!(editor.hover(&web, &at(WEB, "image")).is_empty());
    editor.close(&scaler);
    editor.change(&web, &json!([{"text": WEB.replace("RollingUpdate", "Recreate")}]));
    let recreated = editor.hover(&web, &at(WEB, "strategy"));
    assert_eq!(
        recreated[0],
        "At most 1 at once, by spec.replicas. Recreate stops all old pods first."
    );
    editor.end();
}

#[test]
fn messages_that_are_wrong_are_answered_and_what_is_no_message_ends_it() {
    let (_kept, root) = folder(&[("web.yaml", WEB), ("claim.yaml", CLAIM)]);
    let web = root.join("web.yaml");
    let mut editor = Editor::start(&root, &[]);
    editor.tell("textDocument/didChange", &json!({"textDocument": {"uri": "file:///none"}}));
    editor.tell("textDocument/didOpen", &json!(7));
    let no_position = editor.request("textDocument/hover", &json!({"position": -1}));
    assert_eq!(editor.response(no_position)["error"]["code"], -32602);
    let unknown = editor.request("textDocument/unknown", &json!({}));
    assert_eq!(editor.response(unknown)["error"]["code"], -32601);
    // A range that is backwards or behind the text.
    editor.open(&web, WEB);
    let behind = json!({"line": 4_294_967_295_u32, "character": 4_294_967_295_u32});
    let range = json!({"start": behind, "end": {"line": 0, "character": 0}});
    editor.change(&web, &json!([{"range": range, "text": "# end\n"}]));
    assert_eq!(editor.shown(&web).len(), 1);
    // A request that is cancelled before its turn.
    let document = json!({"uri": uri(&web)});
    let large = ["a: 1\n"; 200_000].concat();
    editor.open(&root.join("large.yaml"), &large);
    let position = json!({"line": 0, "character": 0});
    let params = json!({"textDocument": document, "position": position});
    let id = editor.request("textDocument/hover", &params);
    editor.tell("$/cancelRequest", &json!({"id": id}));
    let answer = editor.response(id);
    assert!(answer["error"]["code"] == -32800 || answer.get("result").is_some(), "{answer}");
    editor.ask("shutdown", &Value::Null);
    let late = editor.request("textDocument/hover", &params);
    assert_eq!(editor.response(late)["error"]["code"], -32600);
    editor.tell("exit", &Value::Null);
    assert!(editor.child.wait().unwrap().success());

    for (text, code, said) in [
        ("GET / HTTP/1.1\r\n\r\n", 2, "has no messages of the Language Server Protocol"),
        ("Content-Length: 99999999999999\r\n\r\n{}", 2, "no possible Content-Length"),
        ("Content-Length: 9\n\n", 2, "has no colon"),
        (
            "Content-Length: 9\r\n\r\n{\"id\": [1",
            2,
            "has no messages of the Language Server Protocol",
        ),
        ("Content-Length: 2\r\n\r\n[]", 2, "has no messages of the Language Server Protocol"),
        ("", 0, ""),
    ] {
        let mut child = program(&root, &["lsp"]).spawn().unwrap();
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{text}: {error}");
        assert!(error.contains(said), "{error}");
    }
}

#[test]
fn an_editor_that_goes_away_ends_the_program() {
    let (_kept, root) = folder(&[]);
    let mut editor = Editor::start(&root, &[]);
    drop(editor.child.stdin.take());
    assert!(editor.child.wait().unwrap().success());
    // An exit without a shutdown is a failure by the protocol.
    editor = Editor::start(&root, &[]);
    editor.tell("exit", &Value::Null);
    assert_eq!(editor.child.wait().unwrap().code(), Some(1));
    let lost = program(Path::new("/"), &["lsp", "--facts", "/nowhere.yaml"]).output().unwrap();
    assert_eq!(lost.status.code(), Some(2));
}
