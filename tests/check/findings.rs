//! What is found, where, and how it is reported.

use super::shorthand::object;
use super::*;
use report::Format;

/// Labels may be called as fields are that no remedy reads.
#[test]
fn a_proposed_patch_keeps_every_label() {
    let labels = json!({"app": "web", "status": "live", "containers": "two", "secret": "no"});
    let deployment = object(json!({"kind": "Deployment", "uses": ["data"], "labels": labels}));
    let folder = repository(&[
        ("a.yaml", CLASS),
        ("b.yaml", CLAIM),
        ("c.json", &deployment.to_string()),
    ]);
    let findings = findings(&run(&folder, &["check", ".", "--format", "json"]));
    let remedies = findings[0]["remedies"].as_array().unwrap();
    let colocate = remedies.iter().find(|it| it["name"] == "colocate").unwrap();
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

#[test]
fn fix_says_that_what_was_piped_gets_a_patch() {
    let piped = format!("{CLASS}---\n{CLAIM}---\n{DEPLOYMENT}");
    let output = run_with(shop().path(), &["check", "-"], &piped);
    has(out(&output), "`--fix` prints a patch, as it was piped");
}

/// As a program writes it; what other systems write is in `tests/plain/terminal.rs`.
#[test]
fn the_lines_at_fault_are_shown_of_one_long_line() {
    let read = |it: &str| serde_norway::from_str::<Value>(it).unwrap();
    let documents = [CLASS, CLAIM, DEPLOYMENT].map(read);
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
fn standard_input_is_read_and_names_the_template() {
    let rendered =
        format!("---\n# Source: shop/templates/web.yaml\n{DEPLOYMENT}---\n{CLAIM}---\n{CLASS}");
    let folder = shop();
    let output = run_with(
        folder.path(),
        &["check", "-", "--format", "json"],
        &rendered,
    );
    let findings = findings(&output);
    assert_eq!(findings[0]["template"], "shop/templates/web.yaml");
    assert_eq!(
        (&findings[0]["file"], &findings[0]["line"]),
        (&json!("-"), &json!(9))
    );

    let output = run_with(
        folder.path(),
        &["check", "-", "--format", "github"],
        &rendered,
    );
    begins(
        out(&output),
        "::error file=shop/templates/web.yaml,title=rolling-update-overlap::",
    );

    // Where the repository has that file, the finding stands in it.
    let template = DEPLOYMENT.replace("name: web\nspec", "name: {{ .Values.name }}\nspec");
    let files = [
        ("shop/templates/web.yaml", &*template),
        ("token", "secret\nkind: Deployment\n"),
    ];
    let folder = repository(&files);
    let placed = |text: &str| {
        let arguments = ["check", "-", "--format", "json"];
        let found = super::findings(&run_with(folder.path(), &arguments, text));
        (found[0]["file"].clone(), found[0]["line"].clone())
    };
    assert_eq!(
        placed(&rendered),
        (json!("shop/templates/web.yaml"), json!(7))
    );
    let outside = rendered.replace("shop/templates/web.yaml", "shop/../token");
    assert_eq!(placed(&outside), (json!("-"), json!(9)));
}

#[test]
fn paths_in_sarif_start_at_the_root_of_the_repository() {
    let folder = shop();
    let deploy = folder.path().join("deploy");
    let output = run_with(&deploy, &["check", ".", "--format", "sarif"], "");
    let sarif: Value = serde_json::from_str(out(&output)).unwrap();
    let location = &sarif["runs"][0]["results"][0]["locations"][0];
    assert_eq!(
        location["physicalLocation"]["artifactLocation"]["uri"],
        "deploy/web.yaml"
    );
}

#[test]
fn an_exemption_of_nothing_is_reported_in_every_format() {
    // An exemption is reported where all that it could be for was checked.
    let policy = "exemptions:\n- {names: [web], reason: moves}\n- {names: [gone*], reason: left}\n";
    let files = [
        (".multi-attach-guard.yaml", policy),
        ("a.yaml", CLASS),
        ("b.yaml", CLAIM),
        ("deploy/web.yaml", DEPLOYMENT),
    ];
    let folder = repository(&files);
    // Those for people in charge and for the cluster have findings only.
    let formats = Format::ALL.into_iter();
    for format in formats.filter(|it| *it != Format::Openreports) {
        let (format, _) = format.documented();
        let output = run(&folder, &["check", ".", "--format", format]);
        let text = out(&output);
        for (reason, is_reported) in [("left", true), ("moves", false)] {
            let known = [
                format!("The exemption \"{reason}\""),
                format!("The exemption \\\"{reason}\\\""),
                format!("The exemption &quot;{reason}&quot;"),
            ];
            let found = known.iter().any(|it| text.contains(it));
            assert_eq!(found, is_reported, "{format}: {reason}: {text}");
        }
    }
    let output = run(&folder, &["check", "a.yaml", "deploy", "--format", "json"]);
    assert!(!out(&output).contains("The exemption"));
}

#[test]
fn the_policy_of_the_repository_holds_everywhere_in_it() {
    let folder = shop();
    let policy = "defaults:\n  outcomes:\n    deadlock: warn\n";
    fs::write(folder.path().join(".multi-attach-guard.yaml"), policy).unwrap();
    let deploy = folder.path().join("deploy");
    let output = run_with(&deploy, &["check", ".", "--format", "json"], "");
    assert_eq!(findings(&output)[0]["action"], "warn");
    assert_eq!(code(&output), 0);
    assert_eq!(
        err(&output)
            .lines()
            .next()
            .unwrap_or_default()
            .rsplit('/')
            .next(),
        Some(".multi-attach-guard.yaml."),
        "the policy is named: {}",
        err(&output)
    );
    let nearer = deploy.join(".multi-attach-guard.yml");
    fs::write(&nearer, "defaults: {}\n").unwrap();
    let from_above = run(&folder, &["check", "deploy"]);
    assert_eq!(code(&from_above), 1, "the nearest policy counts");
    assert!(err(&from_above).contains("The policy is deploy/.multi-attach-guard.yml."));
    fs::remove_file(nearer).unwrap();

    let strict = folder.path().join("strict.yaml");
    fs::write(&strict, "defaults: {}\n").unwrap();
    let output = run_with(&deploy, &["check", ".", "--config", "../strict.yaml"], "");
    assert_eq!(
        code(&output),
        1,
        "--config comes before the repository's policy"
    );

    fs::write(&strict, "defaults:\n  outcome: {}\n").unwrap();
    let output = run_with(&deploy, &["check", ".", "--config", "../strict.yaml"], "");
    assert_eq!(code(&output), 2);
    has(err(&output), "strict.yaml:2:3: ");
}
