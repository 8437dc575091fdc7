//! `audit` of a live cluster: findings, overrides in use, stuck pods, and the view of users who may
//! read one namespace only.

use serde_json::{Value, json};

use crate::command_test::CommandTest;
use crate::harness::output::{self, begins, code, err, has, out};
use crate::harness::shorthand::{Claim, object};
use crate::{deployment, harness};

/// A namespace with a claim, and the Deployment `web` that uses it.
fn audited(test: &CommandTest, name: &str, spec: &str) -> String {
    let namespace = test.plane.namespace(name);
    let claim = object(json!({"kind": "PersistentVolumeClaim"}));
    test.plane.apply(&namespace, &claim.to_string());
    let manifest = deployment("data", spec).replace("NAMESPACE", &namespace);
    test.plane.apply(&namespace, &manifest);
    namespace
}

/// The report as JSON, and the exit code.
fn report(test: &CommandTest, arguments: &[&str]) -> (Value, i32) {
    let output = test.run(&[&["audit", "-o", "json"], arguments].concat());
    (output::report(&output), code(&output))
}

/// The objects with their rules in the findings.
fn found(report: &Value) -> Vec<String> {
    let word = |value: &Value| value.as_str().unwrap().to_owned();
    let findings = report["findings"].as_array().unwrap();
    findings
        .iter()
        .map(|finding| format!("{} {}", word(&finding["object"]["name"]), word(&finding["rule"])))
        .collect()
}

#[test]
fn an_audit_says_what_the_webhook_would() {
    let test = harness::or_skip!(CommandTest::new());
    let namespace = audited(&test, "audited", "replicas: 1");
    let manifest = deployment("data", "replicas: 1").replace("NAMESPACE", &namespace);

    let audit = |more: &[&str]| test.run(&[&["audit", "-n", &namespace], more].concat());
    let json = audit(&["--format", "json"]);
    assert_eq!(json.status.code(), Some(1), "{}", err(&json));
    let report: Value = serde_json::from_slice(&json.stdout).unwrap();
    std::fs::write(test.folder.path().join("manifest.yaml"), &manifest).unwrap();
    let checked = test.check(&["manifest.yaml", "--cluster"]);
    let (live, file) = (&report["findings"][0], &checked["findings"][0]);
    assert_eq!(report["findings"].as_array().unwrap().len(), 1);
    for field in ["rule", "outcome", "action", "certainty", "object"] {
        assert_eq!(live[field], file[field], "{field}");
    }
    // A file does not show how it is applied, so the sentence about server-side apply comes last.
    let [live_message, of_file] = [live, file].map(|finding| finding["message"].as_str().unwrap());
    let (of_file, _) = of_file.split_once(" If it is live and ").unwrap();
    assert_eq!(live_message, of_file);
    let remedies = live["remedies"].as_array().unwrap();
    let remedies: Vec<&Value> = remedies.iter().map(|remedy| &remedy["name"]).collect();
    assert_eq!(remedies, ["recreate", "zero-surge", "colocate"]);

    let text = audit(&[]);
    has(out(&text), "1 error. 2 objects checked in the cluster");
    let page = audit(&["--format", "html", "--exit-zero"]);
    assert_eq!(page.status.code(), Some(0));
    assert!(out(&page).contains("type: Recreate"), "{}", out(&page));

    // Who takes the second advice waits at every rollout, which nobody needs to be told each time.
    let strategy = "{type: RollingUpdate, rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}";
    let without_surge = deployment("data", &format!("{{replicas: 1, strategy: {strategy}}}"));
    test.plane.apply(&namespace, &without_surge.replace("NAMESPACE", &namespace));
    let advised = audit(&[]);
    assert_eq!(code(&advised), 0);
    has(out(&advised), "With maxSurge: 0, as chosen here: ");
}

#[test]
fn an_audit_that_cannot_be_made_says_why() {
    let test = harness::or_skip!(CommandTest::new());
    for (argument, sentence) in [
        ("absent", "no claim and no node \"absent\""),
        ("secret/data", "\"secret\" is neither a kind with volumes"),
        ("--namespace=absent", "The cluster has no namespace \"absent\"."),
        ("--namespace=", "a value is required for '--namespace <NAMESPACE>'"),
    ] {
        let audit = test.run(&["audit", argument]);
        assert_eq!(audit.status.code(), Some(2));
        has(err(&audit), sentence);
    }
}

#[test]
fn names_mean_what_they_mean_to_kubectl() {
    let test = harness::or_skip!(CommandTest::new());
    let namespace = audited(&test, "named", "replicas: 1");
    let with_namespace = format!("{namespace}/web");
    for arguments in [
        &[with_namespace.as_str()][..],
        &["web", "-n", &namespace],
        &["deployment/web", "-n", &namespace],
    ] {
        assert_eq!(found(&report(&test, arguments).0), ["web rolling-update-overlap"]);
    }
    let kubeconfig = format!("--kubeconfig={}", test.plane.kubeconfig().display());
    let (named, _) = report(&test, &[&kubeconfig, "deploy/web", "-n", &namespace]);
    let command = named["findings"][0]["command"].as_str().unwrap();
    let patch = format!("kubectl {kubeconfig} -n {namespace} patch ");
    begins(command, &patch);
    let (all, _) = report(&test, &["-A"]);
    let mut findings = all["findings"].as_array().unwrap().iter();
    assert!(findings.any(|finding| finding["object"]["namespace"] == *namespace));
    let (claim, code) = report(&test, &["pvc/data", "-n", &namespace]);
    assert_eq!((found(&claim), code), (Vec::new(), 0));
}

#[test]
fn who_rides_on_an_override_is_listed() {
    let test = harness::or_skip!(CommandTest::new());
    let namespace = audited(&test, "overrides", "replicas: 1");
    for (until, is_over) in [("2999-01-01", false), ("2000-01-01", true)] {
        let keys = ["action=ignore", "reason=drained", &format!("until={until}")]
            .map(|key| format!("multi-attach-guard.dev/{key}"))
            .join(" ");
        let annotate = format!("annotate -n {namespace} --overwrite deployment/web {keys}");
        test.plane.run(&annotate);
        let (report, code) = report(&test, &["-n", &namespace]);
        assert_eq!(code, i32::from(is_over), "{report:#}");
        let listed = &report["overrides"][0];
        assert_eq!(listed["object"]["name"], "web");
        assert_eq!(listed["sets"], json!({"action": "ignore"}));
        assert_eq!(listed["reason"], "drained");
        assert_eq!(listed["by"], "kubectl-annotate");
        assert!(listed["since"].is_string(), "{listed}");
        assert_eq!(listed["until"], until);
        assert_eq!(listed["ignored"].is_string(), is_over, "{listed}");
        // `check` of a file uses the clock of the machine, with the same result.
        let web = test.plane.get(&["deployment/web", "-n", &namespace]);
        std::fs::write(test.folder.path().join("web.json"), web.to_string()).unwrap();
        let checked = test.check(&["web.json", "--cluster"]);
        let findings = checked["findings"].as_array().unwrap();
        assert_eq!(findings.len(), usize::from(is_over), "{checked:#}");
    }
}

/// The rights of a team in one namespace: no volume, class or node is visible.
#[test]
fn one_namespace_is_audited_with_its_own_rights() {
    let test = harness::or_skip!(CommandTest::new());
    let namespace = audited(&test, "team", "replicas: 1");
    let resources = "pods,persistentvolumeclaims,events,namespaces,replicationcontrollers,\
        deployments.apps,statefulsets.apps,daemonsets.apps,replicasets.apps,jobs.batch,cronjobs.batch,\
        horizontalpodautoscalers.autoscaling";
    for rights in [
        format!("role team --verb=get,list --resource={resources}"),
        "rolebinding team --role=team --user=developer".to_owned(),
    ] {
        let create = format!("-n {namespace} create {rights}");
        test.plane.run(&create);
    }
    let as_developer = ["-n", &namespace, "--as=developer"];
    let (seen, code) = report(&test, &as_developer);
    assert_eq!(code, 0, "{seen:#}");
    assert_eq!(found(&seen), ["web rolling-update-overlap"]);
    let finding = &seen["findings"][0];
    assert_eq!(
        (&finding["action"], &finding["certainty"]),
        (&json!("warn"), &json!("assumed")),
        "{finding:#}"
    );
    let questions = seen["open"].as_array().unwrap();
    let open: Vec<&str> = questions.iter().map(|question| question.as_str().unwrap()).collect();
    for resource in [
        "persistentvolumes",
        "storageclasses",
        "csidrivers",
        "csinodes",
        "nodes",
        "runtimeclasses",
        "volumeattachments",
    ] {
        let because = format!("because the {resource} could not be read: ");
        assert!(open.iter().any(|question| question.contains(&because)), "{resource}: {open:#?}");
    }
    let namespaced = open.iter().any(|question| {
        question.contains("the deployments") || question.contains("the namespaces")
    });
    assert!(!namespaced, "{open:#?}");
    // If no object to judge can be read, an empty report must not look like success.
    let (blind, failure) = report(&test, &["-n", &namespace, "--as=nobody"]);
    assert_eq!((found(&blind), failure), (Vec::new(), 2));
}

/// Two pods with one volume on two nodes, with the explanation of `diagnose`.
#[test]
fn what_is_stuck_now_comes_first_with_the_way_out() {
    let test = harness::or_skip!(CommandTest::new());
    let namespace = audited(&test, "stuck", "strategy: {type: Recreate}");
    let pod = |name: &str, node: &str| {
        let on = json!({"nodeName": node});
        object(json!({"kind": "Pod", "name": name, "uses": ["data"], "pod": on})).to_string()
    };
    let disk = ["disk", "disk.csi.example.com"];
    let [volume, _] = Claim::exclusive().bound_in(&namespace, "data", disk);
    let name = volume["metadata"]["name"].as_str().unwrap();
    let place = json!({"spec": {"attacher": disk[1], "nodeName": "node-a",
        "source": {"persistentVolumeName": name}}});
    let attachment = object(json!({"kind": "VolumeAttachment", "name": name, "with": place}));
    let objects = [
        pod("first", "node-a"),
        pod("second", "node-b"),
        volume.to_string(),
        attachment.to_string(),
    ];
    test.plane.apply(&namespace, &objects.join("\n---\n"));
    let attachment_status = format!("volumeattachment/{name} --subresource=status");
    let bound = json!({"spec": {"volumeName": name}});
    let container = json!({"name": "main", "image": "i", "imageID": "", "restartCount": 0,
        "ready": true, "state": {"running": {"startedAt": null}}});
    let runs = json!({"status": {"phase": "Running", "containerStatuses": [container]}});
    let attached = json!({"status": {"attached": true}});
    for (object, patch) in [
        ("pvc/data", bound),
        (&*attachment_status, attached),
        ("pod/first --subresource=status", runs),
    ] {
        let patch = format!("patch -n {namespace} {object} --type=merge -p {patch}");
        test.plane.run(&patch);
    }

    let (audited, code) = report(&test, &["-n", &namespace]);
    assert_eq!((code, &audited["summary"]["stuck"]), (1, &json!(1)));
    let diagnosed = output::report(&test.run(&["diagnose", "-n", &namespace, "-o", "json"]));
    let (stuck, case) = (&audited["stuck"][0], &diagnosed["cases"][0]);
    for field in ["cause", "because", "volume", "steps"] {
        assert_eq!(stuck[field], case[field], "{field}");
        assert!(!stuck[field].is_null(), "{field}");
    }
    let table = test.run(&["audit", "-n", &namespace]);
    let row = out(&table).lines().nth(1).unwrap_or_default();
    assert!(row.contains("PersistentVolumeClaim data  stuck: "), "{}", out(&table));
    let wide = test.audit(&namespace, "wide");
    begins(out(&wide), &format!("Namespace {namespace}: 1 stuck"));
    // This file outlives the test: docs/site/build shows it.
    let page = test.audit(&namespace, "html --exit-zero");
    assert!(out(&page).contains("stuck now"), "{}", out(&page));
    let file = concat!(env!("CARGO_TARGET_TMPDIR"), "/audit.html");
    std::fs::write(file, &page.stdout).unwrap();
    // The stuck pod is in the earlier report, so it is neither new nor a failure.
    std::fs::write(test.folder.path().join("before.json"), audited.to_string()).unwrap();
    let (again, success) = report(&test, &["-n", &namespace, "--compare", "before.json"]);
    assert_eq!(success, 0, "{again:#}");
    assert_eq!(again["stuck"][0]["isNew"], false);
}

/// Uses the definition of openreports.io itself, with which a real API server validates objects.
#[test]
fn reports_are_objects_that_an_api_server_takes() {
    let test = harness::or_skip!(CommandTest::new());
    let module = harness::or_skip!(harness::require_module(
        harness::programs::minors()[0],
        "github.com/openreports/reports-api@v0.2.1",
    ));
    let definition = module.join("config/crd/openreports.io_reports.yaml").display().to_string();
    let kubectl =
        |arguments: &[&str], input: Option<&str>| test.plane.kubectl(arguments, input).success();
    kubectl(&["apply", "--server-side", "-f", &definition], None);
    let established = "wait --for=condition=Established crd/reports.openreports.io";
    test.plane.run(established);
    let namespace = audited(&test, "objects", "replicas: 2");
    let audit = test.audit(&namespace, "openreports --exit-zero");
    // Strict: a field that the definition lacks is an error.
    let apply = ["apply", "--server-side", "--validate=strict", "-f", "-"];
    kubectl(&apply, Some(out(&audit)));
    let report = ["reports.openreports.io/multi-attach-guard", "-n", &namespace];
    let stored = test.plane.get(&report);
    let sent: Value = serde_json::from_slice(&audit.stdout).unwrap();
    for field in ["source", "summary", "results", "configuration"] {
        assert_eq!(stored[field], sent["items"][0][field], "{field}");
    }
    assert_eq!(stored["summary"], json!({"pass": 0, "fail": 2, "warn": 0, "error": 0, "skip": 0}));
    // The CronJob of the examples replaces earlier reports; a namespace without violations has
    // none.
    let example = include_str!("../../examples/reports.yaml");
    let job: Value = serde_saphyr::from_str(example.split("\n---\n").last().unwrap()).unwrap();
    let pod = &job["spec"]["jobTemplate"]["spec"]["template"]["spec"];
    let script = pod["containers"][0]["command"][2]
        .as_str()
        .unwrap()
        .replace("/guard/multi-attach-guard", "multi-attach-guard");
    let folder = tempfile::tempdir().unwrap();
    let run = || {
        let mut shell = test.plane.printed(&format!("set -eu\n{script}"));
        let output = shell.current_dir(&folder).output().unwrap();
        assert!(output.status.success(), "{output:#?}");
    };
    run();
    let again = test.plane.get(&report);
    assert_eq!(again["summary"], stored["summary"]);
    let delete = format!("-n {namespace} delete deployments --all");
    test.plane.run(&delete);
    run();
    let left = test.plane.kubectl(&[&["get"], &report[..]].concat(), None);
    assert!(left.stderr.contains("NotFound"), "{left:#?}");
    let wrong = out(&audit).replace("\"result\": \"fail\"", "\"result\": \"failed\"");
    let refused = test.plane.kubectl(&apply, Some(&wrong));
    assert!(refused.stderr.contains("Unsupported value"), "{refused:#?}");
}
