//! Tests rules × scenarios: the engine's findings about one object in one cluster.
//!
//! The cases are data, in the YAML files of this folder, and are named after the scenarios of the
//! project's ground truth if there is one. Each case describes a small
//! cluster in shorthand (see [`cluster`]) and the object to judge.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a case that cannot be set up stops the test"
)]

mod believed;
#[allow(dead_code, reason = "a suite with an API server reads more of a case")]
mod case;
mod cluster;
mod existing_violations;
mod fencing;
mod followers;
mod knots;
#[path = "../printed/mod.rs"]
mod printed;
#[path = "../harness/shorthand.rs"]
#[allow(dead_code, reason = "cases are data, which is read")]
mod shorthand;
#[path = "../harness/uncertain.rs"]
#[allow(dead_code, reason = "the reasons matter where an API server runs")]
mod uncertain;

use std::collections::{BTreeMap, BTreeSet};

use engine::model::object::Object;
use engine::policy::Action;
use engine::remedy::{REMEDIES, Remedy};
use engine::rules::{Certainty, RULES, Rule};
use engine::verdict::{DENIAL_LENGTH, Finding, Mode, Verdict};
use report::{Format, Located, Report, Style, Width};
use serde_json::Value;

use case::{Case, Documents, cases, in_effect, judge, judge_submitted};

#[test]
fn every_case_gets_its_verdict() {
    let mut wrong = Vec::new();
    let cases = cases();
    for case in &cases {
        let verdict = case.verdict(Mode::Propose);
        let mut must = |is_so: bool, what: String| {
            if !is_so {
                wrong.push(format!("{}: {what}", case.name));
            }
        };
        must(!verdict.too_complex, "it is too much to judge".to_owned());
        let found: BTreeMap<String, String> = verdict
            .findings
            .iter()
            .map(|finding| (finding.rule.to_owned(), finding.outcome.name().to_owned()))
            .collect();
        let expected = &case.expect;
        must(found == *expected, format!("expected {expected:?}, found {found:?}"));
        for finding in &verdict.findings {
            let certainty = case.certainty.get(finding.rule).copied();
            let usual = match finding.outcome.name() {
                "unknown" => Certainty::Assumed,
                _ => Certainty::Verified,
            };
            must(
                finding.certainty == certainty.unwrap_or(usual),
                format!("{} is {}", finding.rule, finding.certainty),
            );
            let action = match (case.actions.get(finding.rule), finding.outcome.name()) {
                (Some(name), _) => Action::from_name(name).expect("the case names an action"),
                (None, "delay" | "unknown") => Action::Warn,
                _ if finding.certainty == Certainty::Assumed => Action::Warn,
                (None, "refused") if finding.rule == "leftover-rolling-update" => Action::Fix,
                _ => Action::Deny,
            };
            must(
                finding.action == action,
                format!("{} is to be {action:?} and is {:?}", finding.rule, finding.action),
            );
        }
        expect_words(case, &verdict, &mut must);
    }
    println!("{} cases", cases.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Compares the messages and the proposals with the case.
fn expect_words(case: &Case, verdict: &Verdict, must: &mut dyn FnMut(bool, String)) {
    let messages: Vec<&str> =
        verdict.findings.iter().map(|finding| finding.message.as_str()).collect();
    let first = messages.first().copied().unwrap_or_default();
    if let Some(says) = &case.says {
        must(first.contains(says), format!("expected {says:?} in {first:?}"));
    }
    if let Some(brief) = &case.brief {
        let found = verdict.findings.first().map(|finding| finding.brief.as_str());
        must(
            found.is_some_and(|found| found.ends_with(brief)),
            format!("expected {brief:?} at the end of {found:?}"),
        );
    }
    if let Some(notices) = &case.notices {
        let found = &verdict.notices;
        must(found == notices, format!("expected the notices {notices:?}, found {found:?}"));
    }
    if let Some(field) = &case.field {
        let found = verdict.findings.first().map(|finding| &finding.field_path);
        must(found == Some(field), format!("expected the field {field:?}, found {found:?}"));
    }
    if let Some(remedies) = &case.remedies {
        let offered: Vec<&str> = verdict
            .findings
            .iter()
            .take(1)
            .flat_map(|finding| &finding.remedies)
            .map(|proposal| proposal.remedy.name)
            .collect();
        must(
            offered == *remedies,
            format!("expected the remedies {remedies:?}, found {offered:?}"),
        );
    }
    // Objects that are missing from the files are mentioned once, even if several objects name
    // them.
    must(
        case.explains.is_empty() || messages.len() == 1 || !case.cluster.files,
        format!("{messages:#?}"),
    );
    let messages = messages.join("\n");
    let mut rest = messages.as_str();
    for part in &case.explains {
        let found = rest.split_once(part.as_str());
        must(found.is_some(), format!("{part:?} is not said in {messages}"));
        rest = found.map_or(rest, |(_, after)| after);
    }
    for part in &case.hides {
        must(!messages.contains(part), format!("{part:?} is said in {messages}"));
    }
}

#[test]
fn pod_affinity_is_advised_where_it_is_a_remedy() {
    let mut count = [0, 0];
    for case in cases() {
        let raw = cluster::manifest(&case.judge);
        // An additional term does not help against a term that leads the pods elsewhere.
        let is_led = raw.pointer("/spec/template/spec/affinity/podAffinity");
        if raw["kind"] != "Deployment" || is_led.is_some() {
            continue;
        }
        let verdict = judge(&raw, None, &case.cluster, &case.policy, Mode::Propose);
        let rules = ["rolling-update-overlap", "replicas-share-volume"];
        for finding in verdict.findings {
            if !rules.contains(&finding.rule) {
                continue;
            }
            let mut remedies = finding.remedies.iter();
            let helps = remedies.any(|proposal| proposal.remedy.name == "colocate");
            let message = &finding.message;
            let is_advised = message.contains("required pod affinity");
            assert_eq!(is_advised, helps, "{}: {message}", case.name);
            assert!(
                helps || !finding.brief.contains("on one node"),
                "{}: {}",
                case.name,
                finding.brief
            );
            count[usize::from(helps)] += 1;
        }
    }
    assert!(count.iter().all(|cases| *cases > 5), "{count:?}");
}

#[test]
fn every_message_is_whole_and_every_warning_short() {
    for case in cases() {
        let raw = cluster::manifest(&case.judge);
        let documents =
            Documents { object: &raw, old: None, requester: None, deleted_at: case.deleted_at };
        let verdict = judge_submitted(&documents, &case.cluster, &case.policy, Mode::Judge);
        for finding in &verdict.findings {
            let message = &finding.message;
            let begins = message.starts_with(&finding.object.to_string());
            assert!(begins, "{message}");
            assert!(message.ends_with('.'), "{message}");
            assert!(!message.contains("  "), "{message}");
            let warning = finding.warning();
            assert!(warning.chars().count() <= 120, "{warning}");
            assert!(warning.starts_with(finding.rule), "{warning}");
            let object = format!("{} {}", finding.object.kind, finding.object.name);
            let is_named = warning.to_lowercase().contains(&object.to_lowercase());
            assert!(is_named, "{warning}");
            assert_names_the_change(finding);
            let denial = &finding.denial;
            assert!(denial.chars().count() <= DENIAL_LENGTH, "{denial}");
            let more = format!(" More: multi-attach-guard rules {}", finding.rule);
            let is_whole = denial.ends_with(&more) || finding.action != Action::Deny;
            assert!(is_whole, "{denial}");
        }
    }
}

/// A command that is folded is two wrong ones in a shell.
#[test]
fn printed_commands_can_be_pasted_from_any_window() {
    let mut report = Report::default();
    let mut said = BTreeSet::new();
    for case in cases() {
        let raw = cluster::manifest(&case.judge);
        let verdict = judge(&raw, None, &case.cluster, &case.policy, Mode::Propose);
        let commanding = verdict
            .findings
            .into_iter()
            .filter(|finding| finding.action != Action::Ignore && finding.message.contains('`'));
        let new = commanding.filter(|finding| said.insert(finding.message.clone()));
        report.findings.extend(new.map(|finding| Located::new(finding, None)));
    }
    let mut printed: Vec<String> = RULES.iter().map(Rule::documentation).collect();
    for width in (40..=Width::WIDEST).map(Width::OfWindow).chain([Width::OfPipe]) {
        let style = Style { colour: false, width, summary: false, verbose: true };
        let mut text = Vec::new();
        report::write(&report, Format::Text, style, &mut text).unwrap();
        printed.push(String::from_utf8(text).unwrap());
    }
    printed::assert_pasted(printed.iter().flat_map(|text| printed::copied(text)));
}

/// A warning names the change; the details of a step are in the message.
#[track_caller]
fn assert_names_the_change(finding: &Finding) {
    let warning = finding.warning();
    let step = finding.step.trim_end_matches('.');
    // A step begins with a capital letter.
    let words: Vec<&str> = step.split_whitespace().skip(1).collect();
    let beginning = words[..words.len().min(3)].join(" ");
    let (_, brief) = finding.brief.split_once("; ").unwrap_or_default();
    let in_short = ["pod affinity", "podAffinity", "nodeSelector"].map(|way| step.contains(way));
    let is_named = (!brief.is_empty() && warning.contains(brief))
        || warning.contains(&beginning)
        || (in_short.contains(&true) && warning.contains("; keep both on one node ("))
        // Without room for both, the other workload is named and not the change.
        || [" is also used by ", " uses it"].iter().any(|named| warning.contains(named));
    assert!(is_named, "{warning} lacks: {step}");
}

#[test]
fn repairs_leave_nothing_grave_and_a_second_pass_changes_nothing() {
    let fix = "defaults: {outcomes: {deadlock: fix, stuck: fix, delay: fix}}";
    let mut repaired = 0;
    for case in cases() {
        let mut raw = cluster::manifest(&case.judge);
        let verdict = judge(&raw, None, &case.cluster, fix, Mode::Admit);
        let Some(patch) = &verdict.patch else {
            continue;
        };
        repaired += 1;
        let before = raw.clone();
        json_patch::patch(&mut raw, patch).expect("the patch fits the object");
        assert_ne!(raw, before, "{}", case.name);
        for finding in verdict.with(Action::Fix) {
            let warning = finding.warning();
            let ends = warning.ends_with(&finding.brief) || warning.ends_with('…');
            assert!(ends && warning.contains(": fixed with "), "{warning}");
        }
        let again = judge(&raw, None, &case.cluster, fix, Mode::Admit);
        assert!(again.patch.is_none(), "{}: {:?}", case.name, again.patch);
        for finding in &again.findings {
            let was_there = verdict
                .findings
                .iter()
                .any(|earlier| (earlier.rule, earlier.action) == (finding.rule, finding.action));
            assert!(was_there, "{}: the repair brought {} about", case.name, finding.rule);
        }
    }
    assert!(repaired > 20, "only {repaired} cases are repaired");
}

#[test]
fn every_rule_has_a_case_that_fires_and_a_case_that_is_silent() {
    let cases = cases();
    for rule in &RULES {
        assert!(
            cases.iter().any(|case| case.expect.contains_key(rule.code)),
            "no case fires {}",
            rule.code
        );
    }
    assert!(cases.iter().filter(|case| case.expect.is_empty()).count() > 20);
}

/// A rule fires on the claims that its documentation says it reads.
#[test]
fn rules_read_both_kinds_of_claims_or_say_that_they_do_not() {
    let cases = cases();
    let fires = |code: &str, is_own: bool| {
        cases.iter().filter(|case| case.expect.contains_key(code)).any(|case| {
            let raw = cluster::manifest(&case.judge);
            let Object::Workload(workload) = cluster::read(&raw) else {
                return false;
            };
            let names_claims = workload.template.claims().next().is_some();
            names_claims != is_own && workload.claim_templates.is_empty() != is_own
        })
    };
    for rule in &RULES {
        let documentation = rule.documentation();
        let reads = |claims: &str| documentation.contains(&format!("\n* {claims}: read"));
        let (code, own) = (rule.code, reads("A StatefulSet's own"));
        assert_eq!(fires(code, true), own, "{code} on a StatefulSet's own claims");
        assert!(fires(code, false) || !reads("Named by the pod template"), "{code}");
    }
}

/// A remedy that makes another rule fire would silently not be offered.
#[test]
fn no_rule_fires_after_a_remedy_that_did_not_before() {
    let mut tried = BTreeMap::new();
    let mut wrong = Vec::new();
    for case in cases() {
        let raw = cluster::manifest(&case.judge);
        let Object::Workload(workload) = cluster::read(&raw) else {
            continue;
        };
        let of = workload.kind;
        let found = |object: &Value| -> BTreeSet<&'static str> {
            let verdict = judge(object, None, &case.cluster, &case.policy, Mode::Judge);
            verdict.findings.iter().map(|finding| finding.rule).collect()
        };
        let before = found(&raw);
        let suited = |remedy: &&Remedy| before.iter().any(|rule| remedy.suits(rule, of));
        for remedy in REMEDIES.iter().filter(suited) {
            let Some(patch) = remedy.patch(&workload, &raw, None) else {
                continue;
            };
            let mut after = raw.clone();
            if json_patch::patch(&mut after, &patch).is_err() {
                continue;
            }
            *tried.entry(remedy.name).or_insert(0) += 1;
            for rule in found(&after).difference(&before) {
                wrong.push(format!("{}: after {} {rule}", case.name, remedy.name));
            }
        }
    }
    // Here the change is no remedy: anti-affinity or a host port keeps the pods apart.
    let no_remedy = [
        "two replicas with self anti-affinity, Recreate: after zero-surge rolling-update-overlap",
        "Y10 a host port and no reason to share a node: colocate is no remedy: after colocate co-location-impossible",
    ];
    wrong.retain(|failure| !no_remedy.contains(&failure.as_str()));
    println!("{tried:?}");
    assert_eq!(tried.len(), REMEDIES.len(), "{tried:?}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
