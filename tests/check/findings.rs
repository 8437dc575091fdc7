//! The findings, their places and their reports.

use super::shorthand::object;
use super::*;
use report::Format;

/// Labels may have the names of fields that remedies do not read.
#[test]
fn a_proposed_patch_keeps_every_label() {
    let labels = json!({"app": "web", "status": "live", "containers": "two", "secret": "no"});
    let deployment = object(json!({"kind": "Deployment", "uses": ["data"], "labels": labels}));
    let folder =
        repository(&[("a.yaml", CLASS), ("b.yaml", CLAIM), ("c.json", &deployment.to_string())]);
    let findings = findings(&run(&folder, &["check", ".", "--format", "json"]));
    let remedies = findings[0]["remedies"].as_array().unwrap();
    let colocate = remedies.iter().find(|remedy| remedy["name"] == "colocate").unwrap();
    let patch = colocate["patch"].as_array().unwrap().last().unwrap();
    assert_eq!(patch["value"][0]["labelSelector"]["matchLabels"], labels);
}

#[test]
fn a_picture_is_small_and_wide_is_verbose() {
    let folder = shop();
    let output = run(&folder, &["check", "deploy"]);
    let text = out(&output);
    assert!(!text.contains('\x1b'), "no colours outside of a terminal");
    let picture = text.split("\n\n").next().unwrap();
    let words = picture.split_whitespace().count();
    assert!(picture.lines().count() <= 12 && words <= 90, "{picture}");
    let verbose = run(&folder, &["check", "deploy", "--verbose"]);
    let wide = run(&folder, &["check", "deploy", "-o", "wide"]);
    assert_eq!(out(&verbose), out(&wide));
}

/// Lines as a program writes them; `tests/plain/terminal.rs` tests the line ends of other systems.
#[test]
fn the_lines_at_fault_are_shown_of_one_long_line() {
    let documents = [CLASS, CLAIM, DEPLOYMENT]
        .map(|document| serde_norway::from_str::<Value>(document).unwrap());
    let mut list = json!({"apiVersion": "v1", "kind": "List", "items": documents});
    list["items"][2]["metadata"]["annotations"] = json!({"long": "x".repeat(5000)});
    let folder = repository(&[("line.json", &list.to_string())]);
    let output = run(&folder, &["check", "."]);
    let text = out(&output);
    has(text, "the new pod starts before");
    let longest = text.lines().map(|line| line.chars().count()).max();
    assert!(longest.unwrap() < 400, "{text}");
}

#[test]
fn an_exemption_of_nothing_is_reported_in_every_format() {
    // An exemption without effect is reported if all objects that it could apply to were checked.
    let policy = "exemptions:\n- {names: [web], reason: moves}\n- {names: [gone*], reason: left}\n";
    let files = [
        (".multi-attach-guard.yaml", policy),
        ("a.yaml", CLASS),
        ("b.yaml", CLAIM),
        ("deploy/web.yaml", DEPLOYMENT),
    ];
    let folder = repository(&files);
    // The formats for administrators and for the cluster contain findings only.
    let formats = Format::ALL.into_iter().filter(|format| *format != Format::Openreports);
    for (format, _) in formats.map(Format::documented) {
        let output = run(&folder, &["check", ".", "--format", format]);
        let text = out(&output);
        for (reason, is_reported) in [("left", true), ("moves", false)] {
            let known = [
                format!("The exemption \"{reason}\""),
                format!("The exemption \\\"{reason}\\\""),
                format!("The exemption &quot;{reason}&quot;"),
            ];
            let found = known.iter().any(|sentence| text.contains(sentence));
            assert_eq!(found, is_reported, "{format}: {reason}: {text}");
        }
    }
    let output = run(&folder, &["check", "a.yaml", "deploy", "--format", "json"]);
    assert!(!out(&output).contains("The exemption"));
}
