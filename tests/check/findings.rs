//! What is found, where, and how it is reported.

use super::*;
use report::Format;

#[test]
fn facts_are_found_in_any_order_and_the_line_is_named() {
    let output = run(&shop(), &["check", "deploy", "--format", "json"]);
    let findings = findings(&output);
    assert_eq!(code(&output), 1, "{}", err(&output));
    assert_eq!(findings.len(), 1, "{findings:?}");
    let finding = &findings[0];
    assert_eq!(finding["rule"], "rolling-update-overlap");
    assert_eq!(finding["outcome"], "deadlock");
    assert_eq!(finding["action"], "deny");
    assert_eq!(
        (&finding["file"], &finding["line"], &finding["column"]),
        (&json!("deploy/web.yaml"), &json!(7), &json!(3))
    );
    assert_eq!(
        finding["object"],
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"})
    );
    assert_eq!(finding["remedies"][0]["name"], "recreate");
}

/// Labels may be called as fields are that no remedy reads.
#[test]
fn a_proposed_patch_keeps_every_label() {
    let labels = json!({"app": "web", "status": "live", "containers": "two", "secret": "no"});
    let deployment = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "containers": [{"name": "app", "image": "app", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}],
                    "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
                },
            },
        },
    });
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

/// Containers are the bulk of most documents, which is not kept for remedies.
#[test]
fn what_containers_take_of_their_node_counts_for_remedies() {
    for taken in [
        "ports: [{hostPort: 80}]",
        "resources: {limits: {x.io/gpu: 1}}",
    ] {
        let containers = format!(
            "      containers: [{{name: app, image: app, volumeMounts: [{{name: data, mountPath: /data}}], {taken}}}]\n"
        );
        let deployment = DEPLOYMENT.to_owned() + &containers;
        let input = [CLASS, CLAIM, &deployment].join("---\n");
        let folder = repository(&[("all.yaml", &input)]);
        let findings = findings(&run(&folder, &["check", ".", "--format", "json"]));
        let remedies = findings[0]["remedies"].as_array().unwrap();
        let names: Vec<&Value> = remedies.iter().map(|it| &it["name"]).collect();
        assert_eq!(names, ["recreate", "zero-surge"], "{taken}");
        let message = findings[0]["message"].as_str().unwrap();
        assert!(!message.contains("affinity"), "{message}");
    }
}

#[test]
fn text_underlines_the_field() {
    let output = run(&shop(), &["check", "deploy"]);
    let text = out(&output);
    for part in [
        "error[rolling-update-overlap]: Deployment web: ",
        "--> deploy/web.yaml:7:3",
        "7 |   strategy:   # we like it rolling",
        "|   ^^^^^^^^ the new pod starts before the old one is gone",
        "claimName: data",
        "defined in deploy/z/claim.yaml:5",
        "::: deploy/z/claim.yaml:5:3",
        "ReadWriteOnce, class \"gp3\"",
        "= help: set spec.strategy to {type: Recreate}; `check --fix` does it",
        "= more: multi-attach-guard rules rolling-update-overlap",
        "1 error. 2 objects checked in 3 files.",
    ] {
        has(text, part);
    }
    assert!(!text.contains('\x1b'), "no colours outside of a terminal");
    let picture = text.split("\n\n").next().unwrap();
    let words = picture.split_whitespace().count();
    assert!(picture.lines().count() <= 12 && words <= 90, "{picture}");
    let wide = run(&shop(), &["check", "deploy", "--verbose"]);
    for part in [
        "RollingUpdate starts the new pod before the old one stops",
        "= help: remedies: recreate, zero-surge",
        "Remedies:\n  recreate: Each rollout has a short downtime",
    ] {
        assert!(out(&wide).contains(part), "{part:?}: {}", out(&wide));
    }
    assert_eq!(
        out(&wide),
        out(&run(&shop(), &["check", "deploy", "-o", "wide"]))
    );
}

/// Why `--fix` leaves a finding alone stands in its help line, before and after.
#[test]
fn fix_says_what_it_leaves_alone_and_why() {
    let several = DEPLOYMENT.replace("replicas: 1", "replicas: 2");
    let unknown = DEPLOYMENT.replace("claimName: data", "claimName: elsewhere");
    let unnamed = CLAIM.replace("storageClassName: gp3", "storageClassName: mine");
    for (claim, web, why) in [
        (CLAIM, several.as_str(), "`--fix --remedy colocate` does it"),
        (CLAIM, unknown.as_str(), "`--fix` has no remedy for it"),
        (
            unnamed.as_str(),
            DEPLOYMENT,
            "`--fix` changes only what is an error",
        ),
    ] {
        let folder = repository(&[("a.yaml", CLASS), ("b.yaml", claim), ("c.yaml", web)]);
        let before = run(&folder, &["check", "."]);
        assert!(out(&before).contains(why), "{why}: {}", out(&before));
        let after = run(&folder, &["check", ".", "--fix"]);
        assert!(err(&after).contains(why), "{why}: {}", err(&after));
    }
    let piped = format!("{CLASS}---\n{CLAIM}---\n{DEPLOYMENT}");
    let output = run_with(shop().path(), &["check", "-"], &piped);
    let why = "`--fix` prints a patch, as it was piped";
    assert!(out(&output).contains(why), "{}", out(&output));
}

/// Files as other systems write them, and as generators do.
#[test]
fn the_lines_at_fault_are_shown_whatever_the_file_is_like() {
    let all = format!("{CLASS}---\n{CLAIM}---\n{DEPLOYMENT}");
    let utf16: Vec<u8> = "\u{feff}"
        .encode_utf16()
        .chain(all.encode_utf16())
        .flat_map(u16::to_le_bytes)
        .collect();
    let documents: Vec<Value> = [CLASS, CLAIM, DEPLOYMENT]
        .iter()
        .map(|it| serde_norway::from_str(it).unwrap())
        .collect();
    let mut list = json!({"apiVersion": "v1", "kind": "List", "items": documents});
    list["items"][2]["metadata"]["annotations"] = json!({"long": "x".repeat(5000)});
    for (name, bytes) in [
        ("crlf.yaml", all.replace('\n', "\r\n").into_bytes()),
        ("utf16.yaml", utf16),
        ("line.json", list.to_string().into_bytes()),
    ] {
        let folder = repository(&[]);
        fs::write(folder.path().join(name), bytes).unwrap();
        let output = run(&folder, &["check", "."]);
        let text = out(&output);
        assert!(text.contains("the new pod starts before"), "{name}: {text}");
        let longest = text.lines().map(|line| line.chars().count()).max();
        assert!(longest.unwrap() < 400, "{name}: {text}");
        assert!(!text.contains('\r'), "{name}: {text:?}");
    }
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
fn junit_names_every_object_and_every_finding() {
    let output = run(&shop(), &["check", "deploy", "--format", "junit"]);
    let xml = out(&output);
    for part in [
        "tests=\"2\" skipped=\"0\" failures=\"1\" errors=\"0\"",
        "<testcase name=\"Deployment web: rolling-update-overlap\"",
        "type=\"rolling-update-overlap\"",
        "<testcase name=\"PersistentVolumeClaim data\"",
    ] {
        assert!(xml.contains(part), "{part:?} is missing in\n{xml}");
    }
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
