//! `check --compare`: only new findings are reported, and only they cause failure.

use std::fs;

use serde_json::Value;

use super::*;

/// Runs `check` in the folder, and returns its output and its exit code.
fn checked(folder: &TempDir, arguments: &[&str]) -> (String, i32) {
    let output = run(folder, &[&["check"], arguments].concat());
    (out(&output).to_owned(), code(&output))
}

#[test]
fn only_what_an_earlier_report_lacks_fails() {
    let folder = repository(&[]);
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    let manifests = |name: &str| {
        let deployment = DEPLOYMENT.replace("name: web", &format!("name: {name}"));
        format!("{CLASS}---\n{CLAIM}---\n{deployment}")
            .replace("name: data", &format!("name: data-{name}"))
            .replace("claimName: data", &format!("claimName: data-{name}"))
    };
    write("web.yaml", &manifests("web"));
    let (earlier, earlier_status) = checked(&folder, &["--format=json", "."]);
    assert_eq!(earlier_status, 1, "{earlier}");
    write("earlier.json", &earlier);
    let compare = ["--compare", "earlier.json", "--exclude", "earlier.json"];
    let with =
        |format: &'static str| checked(&folder, &[&compare[..], &["-o", format, "."]].concat());

    let (text, text_status) = with("text");
    assert_eq!(text_status, 0, "{text}");
    assert!(text.contains("No new findings. "), "{text}");
    has(&text, "Of 1 earlier finding, 1 is still there and 0 are gone.");

    // The file is renamed, and another object is at fault.
    fs::rename(folder.path().join("web.yaml"), folder.path().join("moved.yaml")).unwrap();
    write("api.yaml", &manifests("api"));
    let (markdown, markdown_status) = with("markdown");
    assert_eq!(markdown_status, 1, "{markdown}");
    begins(&markdown, "<!-- multi-attach-guard -->\n");
    assert!(markdown.contains("New\\: 1 error"), "{markdown}");
    assert!(
        markdown.contains("Deployment api") && !markdown.contains("Deployment web"),
        "{markdown}"
    );
    let (sarif, _) = with("sarif");
    let sarif: Value = serde_json::from_str(&sarif).unwrap();
    let results = sarif["runs"][0]["results"].as_array().unwrap().iter();
    let mut states: Vec<&str> =
        results.map(|result| result["baselineState"].as_str().unwrap()).collect();
    states.sort_unstable();
    assert_eq!(states, ["new", "unchanged"]);
    let (junit, _) = with("junit");
    assert_eq!(junit.matches("<failure").count(), 1, "{junit}");
    let (json, _) = with("json");
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        json["summary"]["compared"],
        serde_json::json!({"earlier": 1, "still": 1, "gone": 0})
    );

    for (arguments, sentence) in [
        (["--compare", "absent.json"], "given with --compare cannot be read"),
        (["--compare", "moved.yaml"], "given with --compare is not a report"),
    ] {
        let output = run(&folder, &[&["check"], &arguments[..]].concat());
        assert_eq!(code(&output), 2);
        assert!(err(&output).contains(sentence), "{}", err(&output));
    }
}
