mod hostile;

use serde_json::{Value, json};

use super::live::{Origin, Override, Owner, Stuck};
use super::{
    Cause, Fix, Format, JudgedObject, Line, Located, NotJudged, Notice, Place, Report, Style,
    Summary, Unread, Width, write,
};
use doctor::diagnosis::{CaseEntry, Purpose, SuggestedAction, VolumeEntry, WaitingEntry};
use engine::model::object::ObjectRef;
use engine::policy::{Action, Suppressed, SuppressedBy};
use engine::remedy;
use engine::rules::{Certainty, Outcome, codes};
use engine::verdict::{Finding, Proposal};

fn object(kind: &str, name: &str) -> ObjectRef {
    ObjectRef {
        api_version: "apps/v1".into(),
        kind: kind.into(),
        namespace: Some("shop".into()),
        name: name.into(),
    }
}

fn finding(rule: &'static str, outcome: Outcome, action: Action, name: &str) -> Finding {
    Finding {
        rule,
        outcome,
        certainty: Certainty::Verified,
        action,
        object: object("Deployment", name),
        field_path: "spec.strategy".to_owned(),
        volumes: vec!["data".into()],
        message: format!("Deployment shop/{name}: 100 % of it, once:\nit is wrong. Fix it."),
        brief: "wrong & <odd>".to_owned(),
        step: "Fix it.".to_owned(),
        denial: String::new(),
        remedies: Vec::new(),
        suppressed: None,
        lowered: None,
    }
}

fn place(file: &str, path: Option<&str>, template: Option<&str>) -> Place {
    Place {
        file: file.to_owned(),
        path: path.map(str::to_owned),
        line: Line {
            number: 14,
            column: 3,
            end_column: 11,
            text: "  strategy: {type: RollingUpdate}  # é".to_owned(),
        },
        template: template.map(str::to_owned),
    }
}

fn report() -> Report {
    let mut denied = finding(codes::ROLLING_UPDATE_OVERLAP, Outcome::Deadlock, Action::Deny, "web");
    denied.remedies.push(Proposal {
        remedy: remedy::named("recreate").unwrap(),
        patch: serde_json::from_value(json!([
            {"op": "replace", "path": "/spec/strategy", "value": {"type": "Recreate"}}]))
        .unwrap(),
    });
    let mut warned = finding(codes::REPLICAS_SHARE_VOLUME, Outcome::Unknown, Action::Warn, "api");
    warned.object.kind = "StatefulSet".into();
    let mut suppressed =
        finding(codes::ROLLING_UPDATE_OVERLAP, Outcome::Delay, Action::Ignore, "old");
    suppressed.suppressed =
        Some(Suppressed { by: SuppressedBy::Object, reason: "gone next week".to_owned() });
    let ignored = finding(codes::UNRESOLVED_CLAIM, Outcome::Unknown, Action::Ignore, "old");
    let web = place("./deploy/a b.yaml", Some("deploy/a b.yaml"), None);
    let rendered = place("-", None, Some("shop/templates/api.yaml"));
    let summary = Summary {
        files: 3,
        judged: 4,
        facts: 1,
        skipped: [("Service".to_owned(), 2), ("Secret".to_owned(), 1)].into(),
        others: 1,
        unreadable: 1,
        rendered: 2,
        notices: 1,
        ..Summary::default()
    };
    let mut first = Located::new(denied, Some(web.clone()));
    first.fix = Some(Fix {
        remedy: "recreate",
        line: 14,
        removed: vec!["  strategy: {type: RollingUpdate}  # é\n".to_owned()],
        added: vec!["  strategy: {type: Recreate}  # é\n".to_owned()],
    });
    let located = Located::new;
    let mut report = Report {
        findings: vec![
            first,
            located(warned, Some(rendered)),
            located(suppressed, Some(web.clone())),
            located(ignored, None),
        ],
        notices: vec![Notice {
            object: Some(object("Deployment", "old")),
            place: Some(web),
            text: "there is no rule \"x\".".to_owned(),
        }],
        unread: vec![Unread {
            file: "bad.yaml".to_owned(),
            path: Some("bad.yaml".to_owned()),
            at: Some((2, 4)),
            message: "This is not valid YAML: unclosed bracket '['.".to_owned(),
        }],
        not_judged: vec![NotJudged::new(
            "chart",
            "charts/db".to_owned(),
            "there is no helm on the PATH",
            Cause::NoProgram("helm"),
        )],
        hints: vec!["`check --fix` repairs 1 object.".to_owned()],
        judged: vec![JudgedObject {
            object: object("Deployment", "fine"),
            file: Some("fine.yaml".to_owned()),
        }],
        summary,
        ..Report::default()
    };
    report.count();
    report
}

/// The same report for a live cluster, with two findings on one object and every part that only a
/// cluster has.
fn of_cluster() -> Report {
    let mut report = report();
    report.summary.cluster = true;
    let owner = Owner {
        name: "Helm release web in shop".to_owned(),
        change: "Change its values.".to_owned(),
        command: Some("helm get values web".to_owned()),
    };
    for located in &mut report.findings {
        located.place = None;
        located.fix = None;
        located.owner = Some(owner.clone());
        located.command = Some("kubectl -n shop patch deployment/web -p '[]'".to_owned());
    }
    let mut second = report.findings[0].clone();
    second.finding.rule = codes::REPLICAS_SHARE_VOLUME;
    report.findings.insert(1, second);
    report.origin = Some(Origin {
        cluster: "production".to_owned(),
        namespace: None,
        at: "2026-11-25T12:00:00.5Z".parse().unwrap(),
    });
    report.stuck = vec![Stuck {
        case: CaseEntry {
            cause: "rollout-overlap",
            title: "the rollout waits for itself",
            passes: false,
            explanation: "The old pod stays.".to_owned(),
            volume: VolumeEntry {
                namespace: "blog".into(),
                claim: "data".into(),
                name: None,
                class: None,
                driver: "d".into(),
                access_modes: Vec::new(),
            },
            waiting: vec![WaitingEntry {
                pod: "web-2".into(),
                workload: "Deployment web".to_owned(),
                node: Some("n2".into()),
                since: None,
                seconds: Some(3600),
                message: None,
            }],
            holders: Vec::new(),
            attachments: Vec::new(),
            nodes: Vec::new(),
            steps: vec![SuggestedAction {
                purpose: Purpose::WayOut,
                command: Some("kubectl -n blog rollout undo deployment/web".to_owned()),
                text: "Nothing stops.".to_owned(),
            }],
        },
        owner: Some(owner),
        is_new: None,
    }];
    report.overrides = vec![Override {
        object: object("Deployment", "web"),
        sets: [("action", "warn".to_owned())].into(),
        reason: "moves".to_owned(),
        by: Some("kubectl-annotate".to_owned()),
        since: "2026-11-20T12:00:00Z".parse().ok(),
        until: Some("2026-12-01".to_owned()),
        ignored: None,
    }];
    report.open = vec!["It is not known which nodes there are.".to_owned()];
    report.count();
    report.sort_by_namespace();
    report
}

fn written(report: &Report, format: Format) -> String {
    let style = Style { colour: false, width: Width::OfWindow(80), summary: false, verbose: false };
    let mut out = Vec::new();
    write(report, format, style, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn text_shows_the_line_at_fault() {
    insta::assert_snapshot!(written(&report(), Format::Text));
}

/// A mark on a line of a long manifest.
fn mark(number: usize, text: &str, label: &str, is_fault: bool) -> super::Mark {
    let column = text.len() - text.trim_start().len() + 1;
    super::Mark {
        line: Line { number, column, end_column: text.chars().count() + 1, text: text.to_owned() },
        before: "  # between".to_owned(),
        label: label.to_owned(),
        is_fault,
    }
}

/// A report with `number` objects that have the same fault, each with a claim in another file.
fn pictures(number: usize) -> Report {
    let mut report = Report::default();
    let excerpt =
        |file: &str, marks: Vec<super::Mark>| super::Excerpt { file: file.to_owned(), marks };
    for at in 0..number {
        let mut located = report_of(at);
        located.by_fix = Some("`check --fix` does it".to_owned());
        located.excerpts = vec![
            excerpt(
                "web.yaml",
                vec![
                    mark(9, "  strategy: {type: RollingUpdate}", "one by one", true),
                    mark(11, "  replicas: 1", "a single line is between", false),
                    mark(40, "            claimName: data", "defined in pvc.yaml:7", false),
                ],
            ),
            excerpt(
                "pvc.yaml",
                vec![mark(7, "  accessModes: [ReadWriteOnce]", "ReadWriteOnce", false)],
            ),
        ];
        report.findings.push(located);
    }
    report.count();
    report
}

fn report_of(number: usize) -> Located {
    let mut located = report().findings.swap_remove(0);
    located.finding.object.name = format!("web-{number}").into();
    located
}

#[test]
fn a_picture_has_the_lines_at_fault_and_those_they_speak_of() {
    insta::assert_snapshot!("picture", written(&pictures(1), Format::Text));
}

/// Details that are already printed are not repeated.
#[test]
fn ten_findings_fit_on_two_screens_and_hundreds_take_a_line_each() {
    let ten = written(&pictures(10), Format::Text);
    assert!(ten.lines().count() <= 80, "{ten}");
    assert_eq!(ten.matches("= more: ").count(), 1, "{ten}");
    assert_eq!(ten.matches("web.yaml:9:3").count(), 10, "{ten}");
    let hundreds = written(&pictures(300), Format::Text);
    assert!(hundreds.lines().count() <= 360, "{hundreds}");
    assert!(hundreds.contains("web-299"), "{hundreds}");
}

/// Long lines are cut around the fault; tabs and wide characters keep their columns.
#[test]
fn narrow_terminals_and_long_lines_show_what_is_at_fault() {
    let mut report = pictures(1);
    let long = format!("{}claimName: data{}", " ".repeat(2500), "x".repeat(2500));
    report.findings[0].excerpts[0].marks[2] = super::Mark {
        line: Line { number: 40, column: 2501, end_column: 2516, text: long },
        ..mark(40, "", "here", false)
    };
    report.findings[0].excerpts[0].marks[0].line.text = "\tstrategy: {type: \"数é\"}".to_owned();
    report.findings[0].finding.object.name = "n".repeat(253).into();
    let mut out = Vec::new();
    let style = Style { colour: false, width: Width::OfWindow(60), summary: false, verbose: false };
    write(&report, Format::Text, style, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert!(text.contains("claimName: data"), "{text}");
    let name = &*report.findings[0].finding.object.name;
    let others = text.lines().filter(|line| !line.contains(name));
    let longest = others.map(|line| line.chars().count()).max();
    assert!(longest.unwrap() <= 120, "{text}");
}

#[test]
fn a_report_of_a_cluster_begins_with_what_is_stuck() {
    insta::assert_snapshot!("cluster_text", written(&of_cluster(), Format::Text));
    insta::assert_snapshot!("cluster_wide", written(&of_cluster(), Format::Wide));
    insta::assert_snapshot!("cluster_concise", written(&of_cluster(), Format::Concise));
    let json: Value = serde_json::from_str(&written(&of_cluster(), Format::Json)).unwrap();
    assert_eq!(json["cluster"], json!({"name": "production", "time": "2026-11-25T12:00:00Z"}));
    assert_eq!(json["stuck"][0]["cause"], "rollout-overlap");
    assert_eq!(json["stuck"][0]["owner"]["name"], "Helm release web in shop");
    assert_eq!(json["overrides"][0]["sets"], json!({"action": "warn"}));
    assert_eq!(json["overrides"][0]["since"], "2026-11-20T12:00:00Z");
    assert_eq!(json["summary"]["stuck"], 1);
}

#[test]
fn text_of_nothing_says_so() {
    let mut report = Report::default();
    report.summary.files = 1;
    report.summary.judged = 2;
    assert_eq!(written(&report, Format::Text), "No findings. 2 objects checked in 1 file.\n");
}

/// A report in which something was not judged for each cause.
fn incomplete() -> Report {
    let mut report = Report::default();
    report.summary.judged = 2;
    report.summary.files = 1;
    let release = |name: &str, host: &str| {
        let cause = Cause::Elsewhere(host.to_owned());
        let one = NotJudged::new("HelmRelease", name.to_owned(), "its chart is elsewhere", cause);
        NotJudged { command: Some("multi-attach-guard check --fetch".to_owned()), ..one }
    };
    let chart = |folder: &str| {
        NotJudged::new("chart", folder.to_owned(), "it depends on db", Cause::Dependencies)
            .with_command("helm dependency build")
    };
    let hidden = NotJudged::new(
        "hidden folder",
        ".old".to_owned(),
        "hidden files are skipped",
        Cause::Hidden,
    );
    report.not_judged = vec![
        NotJudged::template("web.yaml.j2".to_owned()),
        release("a", "x.example"),
        release("b", "y.example"),
        chart("charts/web"),
        release("c", "x.example"),
        chart("my charts"),
        hidden.with_command("multi-attach-guard check"),
    ];
    report
}

#[test]
fn the_last_line_begins_with_what_was_not_judged() {
    let style = Style { colour: false, width: Width::OfPipe, summary: false, verbose: false };
    let mut out = Vec::new();
    write(&incomplete(), Format::Text, style, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert_eq!(
        text.lines().last(),
        Some(
            "Not judged: 2 charts (missing dependencies: `helm dependency build 'my charts'`, \
             `helm dependency build charts/web`); 3 HelmReleases (charts or bases from 2 hosts: \
             `multi-attach-guard check --fetch`); 1 template (not filled in); 1 hidden folder \
             (skipped: `multi-attach-guard check .old`). Nothing found in the rest. 2 objects \
             checked in 1 file."
        )
    );
    for sentence in [
        "2 charts (charts/web, my charts) were not rendered: each depends on db. Run `helm ",
        "3 HelmReleases (a, b, c) were not rendered: they need files that are not in this",
        "The hidden folder .old was not judged: hidden files are skipped. Run `multi-attach-guard check .old`.",
    ] {
        assert!(text.contains(sentence), "{sentence}\n{text}");
    }
}

/// A pipeline shows it in every format: as a warning, or as an error if it must be complete.
#[test]
fn every_format_says_what_was_not_judged() {
    let mut report = incomplete();
    for (format, open, closed) in [
        (Format::Concise, "Not judged: 2 charts", "Not judged: 2 charts"),
        (Format::Json, "\"complete\": false", "\"complete\": false"),
        (Format::Sarif, "\"executionSuccessful\": true", "\"executionSuccessful\": false"),
        (Format::Sarif, "\"level\": \"error\"", "\"level\": \"error\""),
        (Format::Junit, "<skipped message=", "<error message="),
        (Format::Github, "::warning title=", "::error title="),
        (Format::Markdown, "**not judged** The hidden", "**not judged** The hidden"),
        (Format::Html, "<h2>Not judged</h2>", "<h2>Not judged</h2>"),
        (Format::Openreports, "\"skip\": 4", "\"error\": 4"),
    ] {
        for (must_be_complete, expected) in [(false, open), (true, closed)] {
            report.must_be_complete = must_be_complete;
            let out = written(&report, format);
            assert!(out.contains(expected), "{format:?} {must_be_complete}: {out}");
            assert!(!out.to_lowercase().contains("no findings"), "{format:?}: {out}");
        }
    }
}

#[test]
fn colours_come_only_when_asked_for() {
    let mut out = Vec::new();
    let style = Style { colour: true, width: Width::OfWindow(80), summary: false, verbose: false };
    write(&report(), Format::Text, style, &mut out).unwrap();
    assert!(out.contains(&0x1b));
    assert!(!written(&report(), Format::Text).contains('\x1b'));
}

#[test]
fn json_has_the_documented_shape() {
    let json: Value = serde_json::from_str(&written(&report(), Format::Json)).unwrap();
    assert_eq!(
        json["findings"][0],
        json!({
            "rule": "rolling-update-overlap",
            "outcome": "deadlock",
            "action": "deny",
            "certainty": "verified",
            "object": {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": "web"},
            "fieldPath": "spec.strategy",
            "file": "./deploy/a b.yaml",
            "line": 14,
            "column": 3,
            "message": "Deployment shop/web: 100 % of it, once:\nit is wrong. Fix it.",
            "volumes": ["data"],
            "remedies": [{
                "name": "recreate",
                "cost": remedy::named("recreate").unwrap().cost,
                "patch": [{"op": "replace", "path": "/spec/strategy", "value": {"type": "Recreate"}}],
            }],
        })
    );
    assert_eq!(json["findings"][1]["template"], "shop/templates/api.yaml");
    assert_eq!(json["findings"].as_array().unwrap().len(), 2);
    assert_eq!(json["suppressed"][0]["reason"], "gone next week");
    assert_eq!(json["errors"][0]["line"], 2);
    assert_eq!(
        json["notJudged"],
        json!([{"what": "chart", "where": "charts/db", "why": "there is no helm on the PATH"}])
    );
    assert_eq!(
        json["unopened"],
        json!([{"kind": "chart", "path": "charts/db", "reason": "there is no helm on the PATH"}])
    );
    assert_eq!(
        json["summary"],
        json!({
            "files": 3, "judged": 4, "incomplete": 0, "facts": 1, "skipped": {"Secret": 1, "Service": 2}, "others": 1, "templates": 0, "fragments": 0, "links": 0,
            "rendered": 2, "unopened": {"chart": 1}, "notices": 1, "complete": false,
            "deny": 1, "fix": 0, "warn": 1, "suppressed": 1, "unreadable": 1,
        })
    );
}

#[test]
fn sarif_follows_its_schema() {
    let mut schema: Value =
        serde_json::from_str(include_str!("../../../../tests/data/sarif-schema-2.1.0.json"))
            .unwrap();
    // The schema's pattern for a field that is never written is not a regular expression: it closes
    // a bracket that is not open.
    for definition in ["run", "toolComponent"] {
        let properties = &mut schema["definitions"][definition]["properties"];
        properties["language"].as_object_mut().unwrap().remove("pattern").unwrap();
    }
    let validator = jsonschema::validator_for(&schema).unwrap();
    for report in [report(), Report::default()] {
        let sarif: Value = serde_json::from_str(&written(&report, Format::Sarif)).unwrap();
        let errors: Vec<String> = validator
            .iter_errors(&sarif)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert_eq!(errors, [] as [String; 0]);
    }
    let broken = json!({"version": "2.1.0", "runs": [{"results": [{}]}]});
    assert!(!validator.is_valid(&broken));
}

/// A viewer makes a link of `[words](target)`.
#[test]
fn no_text_becomes_a_link_in_sarif() {
    let mut report = report();
    report.findings[0].finding.message = "[here](http://e) and [0]".to_owned();
    let sarif: Value = serde_json::from_str(&written(&report, Format::Sarif)).unwrap();
    let message = &sarif["runs"][0]["results"][0]["message"]["text"];
    assert_eq!(message, r"\[here\](http://e) and \[0\]");
}

/// The page loads nothing, whatever a text brings into it.
#[test]
fn html_has_a_policy_against_scripts() {
    let page = written(&report(), Format::Html);
    let policy = page.find("Content-Security-Policy\" content=\"default-src 'none';").unwrap();
    assert!(policy < page.find("<title>").unwrap(), "{page}");
}

#[test]
fn sarif_points_to_the_place_and_names_the_suppression() {
    let sarif: Value = serde_json::from_str(&written(&report(), Format::Sarif)).unwrap();
    let run = &sarif["runs"][0];
    let results = run["results"].as_array().unwrap();
    assert_eq!(results.len(), 3, "what the policy ignores is not reported");
    let physical = &results[0]["locations"][0]["physicalLocation"];
    assert_eq!(
        physical["artifactLocation"],
        json!({"uri": "deploy/a%20b.yaml", "uriBaseId": "%SRCROOT%"})
    );
    assert_eq!(physical["region"]["startLine"], 14);
    assert_eq!(results[0]["level"], "error");
    let index = usize::try_from(results[0]["ruleIndex"].as_u64().unwrap()).unwrap();
    assert_eq!(run["tool"]["driver"]["rules"][index]["id"], results[0]["ruleId"]);
    let rendered = &results[1]["locations"][0]["physicalLocation"];
    assert_eq!(
        *rendered,
        json!({"artifactLocation": {"uri": "shop/templates/api.yaml", "uriBaseId": "%SRCROOT%"}})
    );
    assert_eq!(
        results[2]["suppressions"],
        json!([{"kind": "external", "justification": "gone next week"}])
    );
    assert_eq!(
        results[0]["fixes"][0]["artifactChanges"][0]["replacements"],
        json!([{
            "deletedRegion": {"startLine": 14, "startColumn": 1, "endLine": 15, "endColumn": 1},
            "insertedContent": {"text": "  strategy: {type: Recreate}  # é\n"},
        }])
    );
    assert_eq!(results[1].get("fixes"), None);
    let invocation = &run["invocations"][0];
    assert_eq!(invocation["executionSuccessful"], false);
    let message = |list: &str, number: usize| invocation[list][number]["message"]["text"].clone();
    assert_eq!(
        message("toolConfigurationNotifications", 0),
        "Deployment shop/old: there is no rule \"x\"."
    );
    assert_eq!(
        message("toolExecutionNotifications", 1),
        "The chart charts/db was not rendered: there is no helm on the PATH."
    );
}

#[test]
fn github_commands_are_escaped() {
    assert_eq!(
        written(&report(), Format::Github),
        "::error file=bad.yaml,line=2,col=4,title=multi-attach-guard::This is not valid YAML: unclosed bracket '['.\n\
         ::error file=deploy/a b.yaml,line=14,col=3,endColumn=11,title=rolling-update-overlap::Deployment shop/web: 100 %25 of it, once: it is wrong. Fix it.\n\
         ::warning file=shop/templates/api.yaml,title=replicas-share-volume::Deployment shop/api: 100 %25 of it, once: it is wrong. Fix it.\n\
         ::notice file=deploy/a b.yaml,line=14,col=3,endColumn=11,title=rolling-update-overlap::Deployment shop/old: suppressed: gone next week\n\
         ::notice file=deploy/a b.yaml,line=14,col=3,endColumn=11,title=multi-attach-guard::Deployment shop/old: there is no rule \"x\".\n\
         ::warning title=multi-attach-guard::The chart charts/db was not rendered: there is no helm on the PATH.\n"
    );
    let mut comma = report();
    comma.unread[0].path = Some("a,b:c.yaml".to_owned());
    assert!(written(&comma, Format::Github).starts_with("::error file=a%2Cb%3Ac.yaml,"));
}

#[test]
fn junit_makes_a_suite_of_each_file_and_a_test_of_each_finding() {
    let mut report = report();
    let denied = &mut report.findings[0].finding;
    denied.message = "a \u{1} <b> & c".to_owned();
    // The webhook's warning has no room for both the cause and the change.
    denied.brief = format!("wrong & <odd>; {}", "change it ".repeat(12).trim_end());
    insta::assert_snapshot!(written(&report, Format::Junit));
}

#[test]
fn concise_is_a_line_each() {
    insta::assert_snapshot!(written(&report(), Format::Concise));
}

#[test]
fn incomplete_objects_are_named_before_the_findings() {
    let mut report = report();
    let text = "spec.selector is missing.";
    report.incomplete = vec![Notice { text: text.to_owned(), ..report.notices[0].clone() }];
    for (format, finding) in [
        (Format::Text, "error[rolling-update-overlap]"),
        (Format::Wide, "error[rolling-update-overlap]"),
        (Format::Concise, "error[rolling-update-overlap]"),
        (Format::Github, "title=rolling-update-overlap"),
        (Format::Markdown, "`rolling-update-overlap`"),
        (Format::Html, "<article"),
        (Format::Junit, "shop/web: rolling-update-overlap"),
    ] {
        let written = written(&report, format);
        let at = |part: &str| written.find(part).unwrap_or_else(|| panic!("{part}\n{written}"));
        assert!(at(text) < at(finding), "{written}");
    }
    let junit = written(&report, Format::Junit);
    let skipped = format!("<skipped message=\"{text}\" type=\"not-judged\"></skipped>");
    assert!(junit.contains(&skipped), "{junit}");
    let json: Value = serde_json::from_str(&written(&report, Format::Json)).unwrap();
    let flags = [&json["notices"][0]["incomplete"], &json["notices"][1]["incomplete"]];
    assert_eq!(flags, [&json!(true), &Value::Null]);
    let sarif: Value = serde_json::from_str(&written(&report, Format::Sarif)).unwrap();
    let notification = &sarif["runs"][0]["invocations"][0]["toolConfigurationNotifications"][0];
    assert_eq!(notification["message"]["text"], format!("Deployment shop/old: {text}"));
}

#[test]
fn a_summary_counts_and_names_nothing() {
    let style = Style { colour: false, width: Width::OfPipe, summary: true, verbose: false };
    for format in [Format::Text, Format::Concise] {
        let mut out = Vec::new();
        write(&report(), format, style, &mut out).unwrap();
        let out = String::from_utf8(out).unwrap();
        assert!(!out.contains("shop/web"), "{out}");
        assert!(out.contains("1 error, 1 warning"), "{out}");
    }
}

#[test]
fn findings_on_one_object_are_reported_together() {
    let mut report = report();
    let mut other = report.findings[0].clone();
    other.finding.rule = codes::REPLICAS_SHARE_VOLUME;
    report.findings.insert(1, other);
    let text = written(&report, Format::Text);
    assert_eq!(text.matches("error[").count(), 2, "{text}");
    assert!(text.contains("error[replicas-share-volume] too: "), "{text}");
    assert_eq!(text.matches("= help: set the strategy").count(), 1, "{text}");
    assert_eq!(text.matches(report.findings[0].finding.remedies[0].remedy.cost).count(), 0);
    let wide = written(&report, Format::Wide);
    assert_eq!(wide.matches("remedies: recreate").count(), 1, "{wide}");
}

/// Two overlays of one base have the same fault.
#[test]
fn what_was_reported_of_an_object_is_not_reported_again() {
    let mut report = report();
    let mut other = report.findings[0].clone();
    other.place.as_mut().unwrap().template = Some("overlays/b".to_owned());
    report.findings.insert(1, other);
    let text = written(&report, Format::Text);
    assert!(!text.contains("too: "), "{text}");
    assert!(text.contains("= note: the same finding in the output of overlays/b"), "{text}");
    report.findings[0].finding.action = Action::Warn;
    let graver = written(&report, Format::Text);
    assert!(
        graver.contains("= note: error[rolling-update-overlap] too: "),
        "what is graver is reported: {graver}"
    );
}

#[test]
fn the_page_needs_nothing_beside_itself() {
    let mut report = report();
    report.findings[0].finding.object.name = "<script>alert(1)</script>".into();
    let page = written(&report, Format::Html);
    for word in ["<script", "http:", "https:", "src=", "<link", "@import", "url("] {
        assert!(!page.contains(word), "{word}");
    }
    // Screen readers need more than names: every picture describes its content.
    assert_eq!(
        page.matches("<svg ").count(),
        page.matches("role=\"img\" aria-label=\"data is attached to ").count()
    );
    assert!(page.matches("<svg ").count() >= 5);
    assert!(page.contains("<del>-   strategy: {type: RollingUpdate}"), "{page}");
    assert!(page.contains("<ins>+   strategy: {type: Recreate}"), "{page}");
}

/// A reader pastes the command that they see.
#[test]
fn a_way_out_stands_behind_its_condition() {
    let mut report = of_cluster();
    let steps = &mut report.stuck[0].case.steps;
    steps[0].command = Some("kubectl taint".to_owned());
    let condition = SuggestedAction {
        purpose: Purpose::Before,
        command: None,
        text: "It must be off.".to_owned(),
    };
    steps.insert(0, condition);
    for format in [Format::Wide, Format::Html, Format::Markdown, Format::Json] {
        let text = written(&report, format);
        let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part}\n{text}"));
        assert!(at("It must be off.") < at("kubectl taint"), "{text}");
    }
    let table = written(&report, Format::Text);
    assert!(table.contains("multi-attach-guard diagnose -n blog"), "{table}");
    assert!(!table.contains("kubectl taint"), "{table}");
}

#[test]
fn the_page_of_a_cluster_leads_to_each_namespace() {
    let page = written(&of_cluster(), Format::Html);
    assert!(page.contains("Cluster production, 2026-11-25T12:00:00Z"), "{page}");
    assert_eq!(page.matches("<article").count(), 3, "one card an object");
    let at = |part: &str| page.find(part).unwrap_or_else(|| panic!("{part}\n{page}"));
    let order = [
        at("id=\"namespace-blog\""),
        at(">stuck now<"),
        at("rollout undo deployment/web"),
        at("id=\"namespace-shop\""),
        at("patch deployment/web"),
        at("kubectl-annotate"),
        at("which nodes there are"),
    ];
    assert!(order.is_sorted(), "{order:?}");
    for name in ["shop", "blog"] {
        for place in [format!("href=\"#namespace-{name}\""), format!("id=\"namespace-{name}\"")] {
            assert_eq!(page.matches(&place).count(), 1, "{place}");
        }
    }
}
