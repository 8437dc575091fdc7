use super::{Object, labels, policy};
use crate::analysis::Certainty;
use crate::policy::{
    Action, Directive, Existing, PassedOver, Policy, RemedyChoice, SuppressedBy, Suppression, keys,
};
use crate::rules::Outcome;
use crate::rules::codes::{
    ACCESS_MODE_CHANGE, LEFTOVER_ROLLING_UPDATE, REPLICAS_SHARE_VOLUME, ROLLING_UPDATE_OVERLAP,
    UNRESOLVED_CLAIM,
};

fn action(policy: &Policy, object: &Object, rule: &str, outcome: Outcome) -> Action {
    policy
        .resolve(&object.target())
        .decide(rule, outcome, Certainty::Verified)
        .action
}

#[test]
fn the_built_in_policy_denies_what_cannot_work() {
    let cases = [
        (ROLLING_UPDATE_OVERLAP, Outcome::Deadlock, Action::Deny),
        (ROLLING_UPDATE_OVERLAP, Outcome::Delay, Action::Warn),
        (REPLICAS_SHARE_VOLUME, Outcome::Stuck, Action::Deny),
        (ACCESS_MODE_CHANGE, Outcome::Refused, Action::Deny),
        (LEFTOVER_ROLLING_UPDATE, Outcome::Refused, Action::Fix),
        (UNRESOLVED_CLAIM, Outcome::Unknown, Action::Warn),
        (REPLICAS_SHARE_VOLUME, Outcome::DataLoss, Action::Deny),
    ];
    let policy = Policy::default();
    for (rule, outcome, expected) in cases {
        let object = Object::default();
        let decision = policy
            .resolve(&object.target())
            .decide(rule, outcome, Certainty::Verified);
        let wanted = Directive {
            action: expected,
            without_remedy: expected.without_remedy(outcome),
            remedy: RemedyChoice::Auto,
            suppressed: None,
            lowered: None,
        };
        assert_eq!(decision, wanted, "{rule} {outcome}");
    }
}

#[test]
fn the_narrower_scope_wins_and_within_one_the_rule() {
    let cases = [
        (
            "an outcome of the file over the built-in one",
            "defaults: {outcomes: {refused: warn}}",
            (ACCESS_MODE_CHANGE, Outcome::Refused),
            Action::Warn,
        ),
        (
            "the built-in rule entry over an outcome of the same scope",
            "defaults: {outcomes: {refused: warn}}",
            (LEFTOVER_ROLLING_UPDATE, Outcome::Refused),
            Action::Fix,
        ),
        (
            "a rule over an outcome under defaults",
            "defaults: {outcomes: {stuck: deny}, rules: {replicas-share-volume: warn}}",
            (REPLICAS_SHARE_VOLUME, Outcome::Stuck),
            Action::Warn,
        ),
        (
            "a namespace's outcome over the rule under defaults",
            "{defaults: {rules: {leftover-rolling-update: fix}}, namespaces: [{match: {names: [shop]}, outcomes: {refused: ignore}}]}",
            (LEFTOVER_ROLLING_UPDATE, Outcome::Refused),
            Action::Ignore,
        ),
        (
            "a namespace's rule over its outcome",
            "namespaces: [{match: {names: [shop]}, outcomes: {stuck: deny}, rules: {replicas-share-volume: fix}}]",
            (REPLICAS_SHARE_VOLUME, Outcome::Stuck),
            Action::Fix,
        ),
        (
            "what a namespace leaves out comes from defaults",
            "{defaults: {outcomes: {deadlock: fix}}, namespaces: [{match: {names: [shop]}, outcomes: {stuck: warn}}]}",
            (ROLLING_UPDATE_OVERLAP, Outcome::Deadlock),
            Action::Fix,
        ),
        (
            "the first entry that matches, not the last",
            "namespaces: [{match: {names: [other]}, outcomes: {stuck: ignore}}, {match: {names: ['sh?p']}, outcomes: {stuck: warn}}, {match: {names: ['*']}, outcomes: {stuck: fix}}]",
            (REPLICAS_SHARE_VOLUME, Outcome::Stuck),
            Action::Warn,
        ),
        (
            "no second entry fills in what the first leaves out",
            "namespaces: [{match: {names: [shop]}, remedy: recreate}, {match: {names: ['*']}, outcomes: {stuck: ignore}}]",
            (REPLICAS_SHARE_VOLUME, Outcome::Stuck),
            Action::Deny,
        ),
    ];
    for (name, text, (rule, outcome), expected) in cases {
        let said = action(&policy(text), &Object::default(), rule, outcome);
        assert_eq!(said, expected, "{name}");
    }
}

#[test]
fn namespaces_are_chosen_by_name_and_by_label() {
    let known = Some(labels(&[("stage", "test"), ("team", "shop")]));
    let cases = [
        ("{names: ['shop-*']}", "shop", &known, Action::Deny),
        ("{names: ['shop-*']}", "shop-eu", &known, Action::Warn),
        ("{names: ['*']}", "", &known, Action::Deny),
        (
            "{selector: {matchLabels: {stage: test}}}",
            "shop",
            &known,
            Action::Warn,
        ),
        (
            "{selector: {matchLabels: {stage: live}}}",
            "shop",
            &known,
            Action::Deny,
        ),
        (
            "{selector: {matchLabels: {stage: test}}}",
            "shop",
            &None,
            Action::Deny,
        ),
        (
            "{names: [other], selector: {matchLabels: {stage: test}}}",
            "shop",
            &known,
            Action::Deny,
        ),
        (
            "{selector: {matchExpressions: [{key: team, operator: NotIn, values: [storage]}, {key: stage, operator: Exists}]}}",
            "shop",
            &known,
            Action::Warn,
        ),
        (
            "{selector: {matchExpressions: [{key: team, operator: In, values: [storage]}]}}",
            "shop",
            &known,
            Action::Deny,
        ),
        (
            "{selector: {matchExpressions: [{key: team, operator: DoesNotExist}]}}",
            "shop",
            &known,
            Action::Deny,
        ),
        (
            "{selector: {matchLabels: {kubernetes.io/metadata.name: shop}}}",
            "shop",
            &None,
            Action::Warn,
        ),
    ];
    for (matching, namespace, namespace_labels, expected) in cases {
        let policy = policy(&format!(
            "namespaces: [{{match: {matching}, outcomes: {{stuck: warn}}}}]"
        ));
        let object = Object {
            namespace,
            namespace_labels: namespace_labels.clone(),
            ..Object::default()
        };
        let said = action(&policy, &object, REPLICAS_SHARE_VOLUME, Outcome::Stuck);
        assert_eq!(
            said, expected,
            "{matching} {namespace} {namespace_labels:?}"
        );
    }
}

#[test]
fn what_is_strict_by_label_stays_strict_while_labels_are_not_known() {
    let policy = policy(
        "{defaults: {outcomes: {stuck: warn, delay: warn}, certainty: {assumed: warn}},
          namespaces: [
            {match: {selector: {matchLabels: {stage: live}}}, overrides: forbid, existing: deny,
             controlled: judge, outcomes: {stuck: deny}, certainty: {assumed: deny}},
            {match: {selector: {matchLabels: {stage: test}}}, outcomes: {stuck: ignore}},
            {match: {names: [shop]}, existing: warn, outcomes: {stuck: fix}}]}",
    );
    let asks_for_silence = labels(&[
        ("multi-attach-guard.dev/ignore", REPLICAS_SHARE_VOLUME),
        ("multi-attach-guard.dev/reason", "in a hurry"),
    ]);
    let stages = [
        (None, Action::Deny, Existing::Deny),
        (Some("live"), Action::Deny, Existing::Deny),
        (Some("none"), Action::Ignore, Existing::Warn),
    ];
    for (stage, expected, existing) in stages {
        let object = Object {
            namespace_labels: stage.map(|stage| labels(&[("stage", stage)])),
            controlled: stage.is_none(),
            annotations: asks_for_silence.clone(),
            ..Object::default()
        };
        let target = object.target();
        let resolved = policy.resolve(&target);
        for certainty in [Certainty::Verified, Certainty::Assumed] {
            let said = resolved.decide(REPLICAS_SHARE_VOLUME, Outcome::Stuck, certainty);
            assert_eq!(said.action, expected, "{stage:?} {certainty:?}");
        }
        assert_eq!(resolved.existing(), existing, "{stage:?}");
    }
}

#[test]
fn labels_that_are_not_known_are_spoken_of_only_where_they_decide() {
    let unknown = Object {
        namespace_labels: None,
        namespace_annotations: None,
        ..Object::default()
    };
    let asks = "{match: {selector: {matchLabels: {stage: test}}}, remedy: recreate}";
    let cases = [
        ("two entries ask, one notice", format!("[{asks}, {asks}]"), 1),
        (
            "an entry before it matches by name",
            format!("[{{match: {{names: [shop]}}}}, {asks}]"),
            0,
        ),
        (
            "its name does not match anyway",
            "[{match: {names: [other], selector: {matchLabels: {stage: test}}}}]".to_owned(),
            0,
        ),
        (
            "its own name does not match anyway",
            "[{match: {selector: {matchLabels: {stage: test, kubernetes.io/metadata.name: other}}}}]"
                .to_owned(),
            0,
        ),
    ];
    for (name, entries, count) in cases {
        let policy = policy(&format!("namespaces: {entries}"));
        let target = unknown.target();
        let resolved = policy.resolve(&target);
        let expected = vec![PassedOver::LabelsUnknown { namespace: "shop" }; count];
        assert_eq!(resolved.passed_over(), expected, "{name}");
    }
}

#[test]
fn remedies_come_from_the_narrowest_scope_that_names_one() {
    let text = "{defaults: {remedy: zero-surge}, namespaces: [{match: {names: [shop]}, remedy: colocate}, {match: {names: [plain]}}]}";
    let policy = policy(text);
    for (namespace, expected) in [
        ("shop", RemedyChoice::Colocate),
        ("plain", RemedyChoice::ZeroSurge),
        ("other", RemedyChoice::ZeroSurge),
    ] {
        let object = Object {
            namespace,
            ..Object::default()
        };
        let decision = policy.resolve(&object.target()).decide(
            ROLLING_UPDATE_OVERLAP,
            Outcome::Deadlock,
            Certainty::Verified,
        );
        assert_eq!(decision.remedy, expected, "{namespace}");
    }
}

#[test]
fn what_a_controller_owns_is_warned_about_unless_the_policy_judges_it() {
    let warn = "defaults: {outcomes: {stuck: fix, delay: ignore}}";
    let judge = "{defaults: {controlled: judge}, namespaces: [{match: {names: [operators]}, controlled: warn}]}";
    let stuck = (REPLICAS_SHARE_VOLUME, Outcome::Stuck);
    let deadlock = (ROLLING_UPDATE_OVERLAP, Outcome::Deadlock);
    let delay = (ROLLING_UPDATE_OVERLAP, Outcome::Delay);
    let cases = [
        ("deny", warn, "shop", deadlock, Action::Warn),
        ("fix", warn, "shop", stuck, Action::Warn),
        ("ignore", warn, "shop", delay, Action::Ignore),
        ("judged", judge, "shop", deadlock, Action::Deny),
        (
            "not in this namespace",
            judge,
            "operators",
            deadlock,
            Action::Warn,
        ),
    ];
    for (name, text, namespace, (rule, outcome), expected) in cases {
        let object = Object {
            namespace,
            controlled: true,
            ..Object::default()
        };
        let decision = policy(text);
        let target = object.target();
        let decision = decision
            .resolve(&target)
            .decide(rule, outcome, Certainty::Verified);
        assert_eq!(decision.action, expected, "{name}");
        assert_eq!(decision.without_remedy, expected, "{name}");
    }
}

#[test]
fn exemptions_hold_where_every_list_holds() {
    let cases = [
        ("{rules: [replicas-share-volume]}", true),
        ("{rules: [rolling-update-overlap]}", false),
        ("{namespaces: ['sh*']}", true),
        ("{namespaces: [other]}", false),
        ("{kinds: [StatefulSet, Deployment]}", true),
        ("{kinds: [StatefulSet]}", false),
        ("{names: ['w?b']}", true),
        ("{names: [web-1]}", false),
        (
            "{namespaces: [shop], kinds: [Deployment], names: [web], rules: [replicas-share-volume]}",
            true,
        ),
        (
            "{namespaces: [shop], kinds: [Deployment], names: [db], rules: [replicas-share-volume]}",
            false,
        ),
    ];
    for (lists, exempt) in cases {
        let text = format!(
            "exemptions:\n- {{names: [nobody], reason: other}}\n- {}, reason: moves in spring}}\n",
            lists.trim_end_matches('}')
        );
        let policy = policy(&text);
        let object = Object::default();
        let target = object.target();
        let decision = policy.resolve(&target).decide(
            REPLICAS_SHARE_VOLUME,
            Outcome::Stuck,
            Certainty::Verified,
        );
        let suppressed = exempt.then_some(Suppression {
            by: SuppressedBy::Exemption { line: 3 },
            reason: "moves in spring",
        });
        let expected = if exempt { Action::Ignore } else { Action::Deny };
        assert_eq!(decision.suppressed, suppressed, "{lists}");
        assert_eq!(decision.action, expected, "{lists}");
    }
}

#[test]
fn certainty_caps_whatever_else_is_said() {
    const DEADLOCK: Outcome = Outcome::Deadlock;
    let fix = "defaults: {outcomes: {deadlock: fix}}";
    let own = "namespaces: [{match: {names: [shop]}, certainty: {assumed: deny}}]";
    let cases = [
        ("", Certainty::Verified, DEADLOCK, Action::Deny),
        ("", Certainty::Likely, DEADLOCK, Action::Deny),
        ("", Certainty::Assumed, DEADLOCK, Action::Warn),
        ("", Certainty::Assumed, Outcome::Delay, Action::Warn),
        (fix, Certainty::Likely, DEADLOCK, Action::Fix),
        (fix, Certainty::Assumed, DEADLOCK, Action::Warn),
        (
            "defaults: {certainty: {assumed: ignore}}",
            Certainty::Assumed,
            DEADLOCK,
            Action::Ignore,
        ),
        (
            "defaults: {certainty: {assumed: deny}}",
            Certainty::Assumed,
            DEADLOCK,
            Action::Deny,
        ),
        (
            "defaults: {certainty: {likely: warn}}",
            Certainty::Likely,
            DEADLOCK,
            Action::Warn,
        ),
        // The cap is no floor.
        (
            "defaults: {outcomes: {deadlock: ignore}, certainty: {assumed: deny}}",
            Certainty::Assumed,
            DEADLOCK,
            Action::Ignore,
        ),
        (own, Certainty::Assumed, DEADLOCK, Action::Deny),
    ];
    for (text, certainty, outcome, expected) in cases {
        let policy = policy(text);
        let object = Object::default();
        let decision =
            policy
                .resolve(&object.target())
                .decide(ROLLING_UPDATE_OVERLAP, outcome, certainty);
        assert_eq!(decision.action, expected, "{text:?} {certainty} {outcome}");
        assert!(decision.without_remedy >= decision.action.without_remedy(outcome));
    }
}

#[test]
fn a_fix_that_is_the_most_allowed_never_becomes_a_denial() {
    let policy = policy("defaults: {outcomes: {deadlock: fix}, certainty: {assumed: fix}}");
    let object = Object::default();
    let decision = policy.resolve(&object.target()).decide(
        ROLLING_UPDATE_OVERLAP,
        Outcome::Deadlock,
        Certainty::Assumed,
    );
    assert_eq!(decision.action, Action::Fix);
    assert_eq!(decision.without_remedy, Action::Fix);
}

#[test]
fn what_is_larger_than_any_honest_object_is_denied_unless_somebody_says_otherwise() {
    let in_shop = "namespaces: [{match: {names: [shop]}, too-complex: warn}]";
    let lenient = [(keys::ACTION, "warn"), (keys::REASON, "r")];
    for (text, annotations, expected) in [
        ("", &[][..], Action::Deny),
        (
            "defaults: {rules: {unresolved-claim: ignore}}",
            &[],
            Action::Deny,
        ),
        ("defaults: {too-complex: warn}", &[], Action::Warn),
        (in_shop, &[], Action::Warn),
        (
            "exemptions: [{namespaces: [shop], reason: r}]",
            &[],
            Action::Ignore,
        ),
        ("", &lenient, Action::Warn),
        ("defaults: {overrides: forbid}", &lenient, Action::Deny),
    ] {
        let policy = policy(text);
        let object = Object {
            annotations: labels(annotations),
            ..Object::default()
        };
        let resolved = policy.resolve(&object.target());
        let decision =
            resolved.decide_oversized(UNRESOLVED_CLAIM, Outcome::Unknown, Certainty::Verified);
        assert_eq!(decision.action, expected, "{text} {annotations:?}");
        let lowers = !annotations.is_empty() && expected == Action::Warn;
        assert_eq!(decision.lowered.is_some(), lowers, "{text} {annotations:?}");
    }
}

#[test]
fn the_narrower_scope_says_how_existing_faults_are_treated() {
    let cases = [
        ("", Existing::Deny),
        ("defaults: {existing: warn}", Existing::Warn),
        (
            "defaults: {existing: warn}\nnamespaces: [{match: {names: [shop]}, existing: deny}]",
            Existing::Deny,
        ),
    ];
    for (text, expected) in cases {
        let policy = policy(text);
        let object = Object::default();
        assert_eq!(
            policy.resolve(&object.target()).existing(),
            expected,
            "{text}"
        );
    }
}
