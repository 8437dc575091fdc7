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

/// Whatever comes later in the input counts as much as what comes before.
#[test]
fn every_kind_of_object_in_the_input_counts() {
    let bound = format!("{CLAIM}  volumeName: pv\n");
    let recreate = DEPLOYMENT.replace("RollingUpdate", "Recreate");
    let table = [
        (
            "nothing else",
            DEPLOYMENT,
            CLAIM,
            "",
            "deny rolling-update-overlap",
        ),
        (
            "a disk that nothing attaches, of which a second use is not known",
            DEPLOYMENT,
            CLAIM,
            "{apiVersion: storage.k8s.io/v1, kind: CSIDriver, metadata: {name: ebs.csi.aws.com}, spec: {attachRequired: false}}",
            "warn unresolved-claim",
        ),
        (
            "a ReadWriteMany volume",
            DEPLOYMENT,
            bound.as_str(),
            "{apiVersion: v1, kind: PersistentVolume, metadata: {name: pv}, spec: {accessModes: [ReadWriteMany], csi: {driver: efs.csi.aws.com}, claimRef: {namespace: default, name: data}}}",
            "",
        ),
        (
            "a node, which does not speak for the size of a cluster",
            DEPLOYMENT,
            CLAIM,
            "{apiVersion: v1, kind: Node, metadata: {name: a}}",
            "deny rolling-update-overlap",
        ),
        ("no autoscaler", &recreate, CLAIM, "", ""),
        (
            "an autoscaler",
            &recreate,
            CLAIM,
            "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: h}, spec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}}",
            "deny autoscaler-exceeds-volume",
        ),
        (
            "a namespace that asks for warnings",
            DEPLOYMENT,
            CLAIM,
            "{apiVersion: v1, kind: Namespace, metadata: {name: default, annotations: {multi-attach-guard.dev/action: warn, multi-attach-guard.dev/reason: on trial}}}",
            "warn rolling-update-overlap",
        ),
    ];
    for (name, deployment, claim, other, expected) in table {
        let folder = repository(&[
            ("a.yaml", deployment),
            ("b.yaml", CLASS),
            ("c.yaml", claim),
            ("d.yaml", other),
        ]);
        let found: Vec<String> = findings(&run(&folder, &["check", ".", "--format", "json"]))
            .iter()
            .map(|it| format!("{} {}", it["action"], it["rule"]).replace('"', ""))
            .collect();
        assert_eq!(found.join(" + "), expected, "{name}");
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
        assert!(text.contains(part), "{part:?} is missing in\n{text}");
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
fn exit_codes_say_what_happened() {
    let fine = DEPLOYMENT.replace("RollingUpdate", "Recreate");
    let warned = DEPLOYMENT.replace("claimName: data", "claimName: elsewhere");
    let broken = DEPLOYMENT.replace("replicas: 1", "replicas: [1]");
    let both = format!("{DEPLOYMENT}---\n{broken}");
    let table: [(&str, &str, &[&str], i32); 9] = [
        ("clean", &fine, &[], 0),
        ("an error", DEPLOYMENT, &[], 1),
        ("a warning", &warned, &[], 0),
        ("a warning that counts", &warned, &["--fail-on", "warn"], 1),
        ("not YAML", "apiVersion: v1\nkind: Pod\na: [1", &[], 2),
        ("a wrong field", &broken, &[], 2),
        ("an error beside a wrong field", &both, &[], 1),
        ("an unknown option", &fine, &["--what"], 2),
        ("fix and diff at once", &fine, &["--fix", "--diff"], 2),
    ];
    for (name, text, options, expected) in table {
        let folder = repository(&[("a.yaml", CLASS), ("b.yaml", CLAIM), ("c.yaml", text)]);
        let mut arguments = vec!["check", "."];
        arguments.extend(options);
        let output = run(&folder, &arguments);
        assert_eq!(
            code(&output),
            expected,
            "{name}: {}{}",
            out(&output),
            err(&output)
        );
    }
    let at_fault = shop();
    for (arguments, expected) in [
        (&["check"][..], 1),
        (&["check", "--exit-zero"], 0),
        (&["check", "--fail-if-no-objects"], 1),
        (&["check", "--exclude", "web.yaml"], 0),
        (&["check", "--exclude", "*.yaml"], 0),
        (&["check", "--exclude", "*.yaml", "--fail-if-no-objects"], 2),
        (&["check", "-"], 2),
        (&["check", "--exclude", "a{b"], 2),
    ] {
        let output = run(&at_fault, arguments);
        assert_eq!(code(&output), expected, "{arguments:?}: {}", err(&output));
    }
    let nothing = run(&at_fault, &["check", "-"]);
    assert!(
        err(&nothing).starts_with("-: There is nothing to read here. Did the program"),
        "{}",
        err(&nothing)
    );
    let nowhere = run(&shop(), &["check", "nowhere"]);
    assert_eq!(code(&nowhere), 2);
    assert!(err(&nowhere).starts_with("nowhere: This cannot be read: "));
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
    assert!(
        out(&output)
            .starts_with("::error file=shop/templates/web.yaml,title=rolling-update-overlap::"),
        "{}",
        out(&output)
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
fn other_kinds_are_counted_and_skipped() {
    let folder = repository(&[
        (
            "crd.yaml",
            "apiVersion: example.com/v1\nkind: Deployment\nmetadata: {name: odd}\nspec: [1]\n",
        ),
        (
            "service.yaml",
            "apiVersion: v1\nkind: Service\nmetadata: {name: s}\n",
        ),
        ("values.yaml", "replicaCount: 1\n"),
    ]);
    let output = run(&folder, &["check", ".", "--format", "json"]);
    assert_eq!(code(&output), 0);
    let report: Value = serde_json::from_str(out(&output)).unwrap();
    assert_eq!(
        report["summary"]["skipped"],
        json!({"Deployment": 1, "Service": 1})
    );
    assert_eq!(report["summary"]["others"], 1);
}

/// Their code stands in comments, so that they are YAML and say something else.
#[test]
fn templates_of_ytt_are_passed_over() {
    let web = DEPLOYMENT
        .replace("replicas: 1", "replicas: #@ data.values.replicas")
        .replace(
            "  strategy:   # we like it rolling\n    type: RollingUpdate\n",
            "  strategy: #@ data.values.strategy\n",
        );
    let text = format!("#@ load(\"@ytt:data\", \"data\")\n---\n{CLASS}---\n{CLAIM}---\n{web}");
    let folder = repository(&[("web.yaml", &text)]);
    let output = run(&folder, &["check", ".", "--format", "json"]);
    assert_eq!(code(&output), 0, "{}", err(&output));
    let report: Value = serde_json::from_str(out(&output)).unwrap();
    assert_eq!(report["summary"]["templates"], 3, "{report:#}");
    assert_eq!(out(&run(&folder, &["check", ".", "--diff"])), "");
}

#[test]
fn a_suppression_needs_a_reason_and_is_counted() {
    let annotated = |annotations: &str| {
        DEPLOYMENT.replace(
            "metadata:\n  name: web\n",
            &format!("metadata:\n  name: web\n  annotations:\n{annotations}"),
        )
    };
    let ignore = "    multi-attach-guard.dev/ignore: rolling-update-overlap\n";
    let reason = "    multi-attach-guard.dev/reason: one node for now\n";
    let check = |annotations: &str| {
        let text = annotated(annotations);
        let folder = repository(&[("a.yaml", CLASS), ("b.yaml", CLAIM), ("c.yaml", &text)]);
        run(&folder, &["check", "."])
    };
    let silent = check(&format!("{ignore}{reason}"));
    assert_eq!(code(&silent), 0);
    for part in [
        "suppressed: Deployment web: rolling-update-overlap: one node for now",
        "No findings; 1 suppressed.",
    ] {
        assert!(out(&silent).contains(part), "{part}: {}", out(&silent));
    }

    let unexplained = check(ignore);
    assert_eq!(code(&unexplained), 1);
    assert!(
        out(&unexplained).contains("add multi-attach-guard.dev/reason to say why"),
        "{}",
        out(&unexplained)
    );
}

#[test]
fn silence_that_silences_nothing_is_reported_in_every_format() {
    let annotated = |annotations: &str, rest: (&str, &str)| {
        let metadata = format!(
            "metadata:\n  name: web\n  annotations: {{multi-attach-guard.dev/reason: old, multi-attach-guard.dev/{annotations}}}\n"
        );
        let text = DEPLOYMENT.replace("metadata:\n  name: web\n", &metadata);
        text.replace(rest.0, rest.1)
    };
    let recreate = ("RollingUpdate", "Recreate");
    let both = "ignore: 'rolling-update-overlap, replicas-share-volume'";
    let listed = |rule: &str| {
        format!(
            "The annotation multi-attach-guard.dev/ignore lists {rule}, but that rule finds nothing here; take it off the list."
        )
    };
    let table = [
        (both, recreate, vec![listed("rolling-update-overlap"), listed("replicas-share-volume")]),
        (both, ("", ""), vec![listed("replicas-share-volume")]),
        (
            "ignore: overlap",
            recreate,
            vec!["The annotation multi-attach-guard.dev/ignore lists \"overlap\", and there is no such rule.".to_owned()],
        ),
        (
            "action: ignore",
            recreate,
            vec!["The annotation multi-attach-guard.dev/action has nothing to silence here; remove it.".to_owned()],
        ),
        ("action: ignore", ("", ""), vec![]),
        // They may be needed once there are pods, or once the claim is known.
        (both, ("replicas: 1", "replicas: 0"), vec![]),
        (both, ("claimName: data", "claimName: other"), vec![]),
    ];
    for (annotations, rest, expected) in table {
        let web = annotated(annotations, rest);
        let folder = repository(&[("a.yaml", CLASS), ("b.yaml", CLAIM), ("c.yaml", &web)]);
        let output = run(&folder, &["check", ".", "--format", "json"]);
        let report: Value = serde_json::from_str(out(&output)).unwrap();
        let notices = report["notices"].as_array().cloned().unwrap_or_default();
        let messages: Vec<&str> = notices
            .iter()
            .filter_map(|notice| notice["message"].as_str())
            .collect();
        assert_eq!(messages, expected, "{annotations} {rest:?}");
    }

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
    assert!(
        err(&output).contains("strict.yaml:2:3: "),
        "{}",
        err(&output)
    );
}

#[test]
fn facts_come_from_a_snapshot_too() {
    let folder = repository(&[
        ("web.yaml", DEPLOYMENT),
        ("facts/all.yaml", &format!("{CLASS}---\n{CLAIM}")),
    ]);
    let without = run(&folder, &["check", "web.yaml", "--format", "json"]);
    assert_eq!(findings(&without)[0]["rule"], "unresolved-claim");
    let with = run(
        &folder,
        &["check", "web.yaml", "--facts", "facts", "--format", "json"],
    );
    assert_eq!(findings(&with)[0]["rule"], "rolling-update-overlap");
    let report: Value = serde_json::from_str(out(&with)).unwrap();
    assert_eq!(report["summary"]["judged"], 1, "facts are not judged");
    let wrong = run(&folder, &["check", "web.yaml", "--facts", "nowhere"]);
    assert_eq!(code(&wrong), 2);
}

/// The example that most repositories have: the class is the cluster's own.
#[test]
fn a_class_that_is_not_among_the_files_is_assumed_to_attach() {
    let claim = CLAIM.replace("gp3", "fast");
    let folder = repository(&[
        ("web.yaml", DEPLOYMENT),
        ("claim.yaml", &claim),
        ("deny.yaml", "defaults: {certainty: {assumed: deny}}\n"),
        ("ignore.yaml", "defaults: {certainty: {assumed: ignore}}\n"),
        ("facts/class.yaml", CLASS),
    ]);
    let check = |more: &[&str]| {
        let arguments = [&["check", "web.yaml", "claim.yaml"], more].concat();
        run(&folder, &arguments)
    };
    let output = check(&[]);
    assert_eq!(code(&output), 0, "{}", out(&output));
    assert!(
        out(&output).contains("warning[rolling-update-overlap]"),
        "{}",
        out(&output)
    );
    let found = findings(&check(&["--format", "json"]));
    assert_eq!(found[0]["certainty"], "assumed");
    assert_eq!(found[0]["outcome"], "deadlock");
    assert_eq!(found[0]["remedies"][0]["name"], "recreate");

    let denied = check(&["--config", "deny.yaml"]);
    assert_eq!(code(&denied), 1);
    assert!(out(&denied).contains("error[rolling-update-overlap]"));
    let silent = check(&["--config", "ignore.yaml", "--format", "json"]);
    assert!(findings(&silent).is_empty());

    // Facts that hold classes hold all of them.
    let known = check(&["--facts", "facts", "--format", "json"]);
    assert_eq!(findings(&known)[0]["rule"], "unresolved-claim");
    let message = findings(&known)[0]["message"].to_string();
    assert!(message.contains("does not exist"), "{message}");
    assert!(!message.contains("--facts"), "{message}");
}

#[test]
fn the_name_of_a_class_tells_what_it_most_likely_is() {
    let sarif = |class: &str| {
        let claim = CLAIM.replace("gp3", class);
        let folder = repository(&[("web.yaml", DEPLOYMENT), ("claim.yaml", &claim)]);
        let output = run(&folder, &["check", ".", "--format", "sarif"]);
        let report: Value = serde_json::from_str(out(&output)).unwrap();
        (code(&output), report["runs"][0]["results"].clone())
    };
    let (code, results) = sarif("do-block-storage");
    assert_eq!(code, 1);
    assert_eq!(results[0]["properties"]["certainty"], "likely");
    for silent in ["local-path", "nfs-client", "efs-sc"] {
        assert_eq!(sarif(silent), (0, json!([])), "{silent}");
    }
}
