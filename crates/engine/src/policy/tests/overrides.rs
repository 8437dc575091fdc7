use super::{Object, labels, policy};
use crate::analysis::Certainty;
use crate::policy::keys::{ACTION, HOW_KNOWN, IGNORE, REASON, REMEDY, UNTIL, WHY_NOW};
use crate::policy::{Action, RemedyChoice, SuppressedBy, Suppression};
use crate::rules::Outcome;
use crate::rules::codes::{ROLLING_UPDATE_OVERLAP, UNRESOLVED_CLAIM};

type Pairs = &'static [(&'static str, &'static str)];

struct Case {
    name: &'static str,
    policy: &'static str,
    object: Pairs,
    namespace_annotations: Pairs,
    namespace_labels: Pairs,
    outcome: Outcome,
    controlled: bool,
    action: Action,
    remedy: RemedyChoice,
    suppressed: Option<(SuppressedBy, &'static str)>,
    lowered: Option<(SuppressedBy, &'static str)>,
    passed_over: &'static [&'static str],
}

/// Nothing said anywhere: a deadlock is denied.
const PLAIN: Case = Case {
    name: "nothing said",
    policy: "",
    object: &[],
    namespace_annotations: &[],
    namespace_labels: &[],
    outcome: Outcome::Deadlock,
    controlled: false,
    action: Action::Deny,
    remedy: RemedyChoice::Auto,
    suppressed: None,
    lowered: None,
    passed_over: &[],
};

const CASES: &[Case] = &[
    PLAIN,
    Case {
        name: "action on the object, with its reason",
        object: &[(ACTION, " fix "), (REMEDY, "colocate"), (REASON, "agreed")],
        action: Action::Fix,
        remedy: RemedyChoice::Colocate,
        lowered: Some((SuppressedBy::Object, "agreed")),
        ..PLAIN
    },
    Case {
        name: "without a reason neither action nor remedy counts",
        object: &[(ACTION, "warn"), (REMEDY, "recreate"), (REASON, "  ")],
        passed_over: &[
            "multi-attach-guard.dev/action is ignored: add multi-attach-guard.dev/reason to say why.",
            "multi-attach-guard.dev/remedy is ignored: add multi-attach-guard.dev/reason to say why.",
        ],
        ..PLAIN
    },
    Case {
        name: "a reason that nobody can see is none",
        object: &[(ACTION, "warn"), (REASON, "\u{200b} \u{2060}…\u{3164}")],
        passed_over: &[
            "multi-attach-guard.dev/action is ignored: add multi-attach-guard.dev/reason to say why.",
        ],
        ..PLAIN
    },
    Case {
        name: "words that are not known",
        object: &[
            (ACTION, "allow"),
            (REMEDY, "rewrite-the-whole-thing-from-scratch"),
            (REASON, "r"),
        ],
        passed_over: &[
            "multi-attach-guard.dev/action: \"allow\" is not deny, fix, warn or ignore.",
            "multi-attach-guard.dev/remedy: \"rewrite-the-whole-thing-…\" is not \
             auto, recreate, zero-surge, colocate or drop-leftover.",
        ],
        ..PLAIN
    },
    Case {
        name: "words that are nearly known",
        object: &[(ACTION, "wran"), (REMEDY, "co-locate"), (REASON, "r")],
        passed_over: &[
            "multi-attach-guard.dev/action: \"wran\" is not known; did you mean \"warn\"?",
            "multi-attach-guard.dev/remedy: \"co-locate\" is not known; did you mean \"colocate\"?",
        ],
        ..PLAIN
    },
    Case {
        name: "the reason of a printed command is none",
        object: &[(ACTION, "warn"), (REASON, WHY_NOW)],
        passed_over: &[
            "multi-attach-guard.dev/action is ignored: multi-attach-guard.dev/reason is still the example.",
        ],
        ..PLAIN
    },
    Case {
        name: "nor is that of the command that fences a node",
        object: &[(IGNORE, "fencing-live-node"), (REASON, HOW_KNOWN)],
        passed_over: &[
            "multi-attach-guard.dev/ignore is ignored: multi-attach-guard.dev/reason is still the example.",
        ],
        ..PLAIN
    },
    Case {
        name: "an end that is to come",
        object: &[(ACTION, "warn"), (REASON, "r"), (UNTIL, "2000-01-01")],
        action: Action::Warn,
        lowered: Some((SuppressedBy::Object, "r")),
        ..PLAIN
    },
    Case {
        // Thirty years of 365 days from 1970 on lead to 1999-12-25.
        name: "the last day counts to its end",
        object: &[(ACTION, "warn"), (REASON, "r"), (UNTIL, "1999-12-25")],
        action: Action::Warn,
        lowered: Some((SuppressedBy::Object, "r")),
        ..PLAIN
    },
    Case {
        name: "a day that is over",
        object: &[
            (IGNORE, "rolling-update-overlap"),
            (REASON, "r"),
            (UNTIL, "1999-12-24"),
        ],
        passed_over: &[
            "multi-attach-guard.dev keys are ignored: multi-attach-guard.dev/until was 1999-12-24.",
        ],
        ..PLAIN
    },
    Case {
        name: "a time that is over",
        object: &[
            (ACTION, "warn"),
            (REASON, "r"),
            (UNTIL, "1999-12-24T23:59:59Z"),
        ],
        passed_over: &[
            "multi-attach-guard.dev keys are ignored: multi-attach-guard.dev/until was 1999-12-24T23:59:59Z.",
        ],
        ..PLAIN
    },
    Case {
        name: "ends that nobody can read, on the object and its Namespace",
        object: &[(ACTION, "warn"), (REASON, "r"), (UNTIL, "2000-01-01T00:00")],
        namespace_labels: &[(ACTION, "warn"), (UNTIL, "soon")],
        passed_over: &[
            "multi-attach-guard.dev/until: \"2000-01-01T00:00\" is no date or RFC 3339 time, so the keys are ignored.",
            "Namespace shop: multi-attach-guard.dev/until: \"soon\" is no date or RFC 3339 time, so the keys are ignored.",
        ],
        ..PLAIN
    },
    Case {
        name: "a reason alone says nothing",
        object: &[(REASON, "because")],
        ..PLAIN
    },
    Case {
        name: "the rule is on the object's ignore list",
        object: &[
            (IGNORE, "single-pod-volume, rolling-update-overlap"),
            (REASON, " drained until Friday "),
        ],
        action: Action::Ignore,
        suppressed: Some((SuppressedBy::Object, "drained until Friday")),
        ..PLAIN
    },
    Case {
        name: "another rule is on the list",
        object: &[(IGNORE, "single-pod-volume,"), (REASON, "r")],
        ..PLAIN
    },
    Case {
        name: "ignore list without a reason",
        object: &[(IGNORE, "rolling-update-overlap")],
        passed_over: &[
            "multi-attach-guard.dev/ignore is ignored: add multi-attach-guard.dev/reason to say why.",
        ],
        ..PLAIN
    },
    Case {
        name: "ignore list with a word that is no rule",
        object: &[
            (IGNORE, "rolling-update,rolling-update-overlap"),
            (REASON, "r"),
        ],
        action: Action::Ignore,
        suppressed: Some((SuppressedBy::Object, "r")),
        passed_over: &[
            "multi-attach-guard.dev/ignore: there is no rule \"rolling-update\"; did you mean \"rolling-update-overlap\"?",
        ],
        ..PLAIN
    },
    Case {
        name: "the object asks for silence altogether",
        object: &[(ACTION, "ignore"), (REASON, "a demo")],
        action: Action::Ignore,
        suppressed: Some((SuppressedBy::Object, "a demo")),
        ..PLAIN
    },
    Case {
        name: "the file forbids overrides",
        policy: "defaults: {overrides: forbid}",
        object: &[(ACTION, "ignore"), (REASON, "a demo")],
        namespace_labels: &[(ACTION, "warn")],
        passed_over: &[
            "multi-attach-guard.dev keys are ignored: the policy forbids overrides here.",
            "Namespace shop: multi-attach-guard.dev keys are ignored: the policy forbids overrides here.",
        ],
        ..PLAIN
    },
    Case {
        name: "the file allows overrides to Namespaces only",
        policy: "defaults: {overrides: namespaces}",
        object: &[(ACTION, "ignore"), (REASON, "a demo")],
        namespace_labels: &[(ACTION, "warn")],
        action: Action::Warn,
        lowered: Some((SuppressedBy::Namespace, "")),
        passed_over: &[
            "multi-attach-guard.dev keys are ignored: the policy forbids overrides here.",
        ],
        ..PLAIN
    },
    Case {
        name: "the namespace's entry allows what defaults forbid",
        policy: "{defaults: {overrides: forbid}, namespaces: [{match: {names: [shop]}, overrides: allow}]}",
        object: &[(ACTION, "warn"), (REASON, "r")],
        action: Action::Warn,
        lowered: Some((SuppressedBy::Object, "r")),
        ..PLAIN
    },
    Case {
        name: "a label of the Namespace beats the file and needs no reason",
        policy: "namespaces: [{match: {names: [shop]}, outcomes: {deadlock: deny}, remedy: colocate}]",
        namespace_labels: &[(ACTION, "fix"), (REMEDY, "recreate")],
        action: Action::Fix,
        remedy: RemedyChoice::Recreate,
        lowered: Some((SuppressedBy::Namespace, "")),
        ..PLAIN
    },
    Case {
        name: "an annotation of the Namespace beats its label",
        namespace_annotations: &[(ACTION, "warn")],
        namespace_labels: &[(ACTION, "fix")],
        action: Action::Warn,
        lowered: Some((SuppressedBy::Namespace, "")),
        ..PLAIN
    },
    Case {
        name: "the object beats its Namespace",
        object: &[(ACTION, "fix"), (REMEDY, "zero-surge"), (REASON, "r")],
        namespace_labels: &[(ACTION, "warn"), (REMEDY, "recreate")],
        action: Action::Fix,
        remedy: RemedyChoice::ZeroSurge,
        lowered: Some((SuppressedBy::Object, "r")),
        ..PLAIN
    },
    Case {
        name: "the object wants to hear what its Namespace silences",
        object: &[(ACTION, "warn"), (REASON, "r")],
        namespace_annotations: &[(ACTION, "ignore"), (REASON, "sandbox")],
        action: Action::Warn,
        lowered: Some((SuppressedBy::Object, "r")),
        ..PLAIN
    },
    Case {
        name: "silence for a Namespace needs a reason",
        namespace_labels: &[(ACTION, "ignore")],
        passed_over: &[
            "Namespace shop: multi-attach-guard.dev/action is ignored: add multi-attach-guard.dev/reason to say why.",
        ],
        ..PLAIN
    },
    Case {
        name: "silence for a Namespace with its reason",
        namespace_annotations: &[(REASON, "sandbox")],
        namespace_labels: &[(ACTION, "ignore")],
        action: Action::Ignore,
        suppressed: Some((SuppressedBy::Namespace, "sandbox")),
        ..PLAIN
    },
    Case {
        name: "a rule on the Namespace's ignore list",
        namespace_annotations: &[(IGNORE, "rolling-update-overlap"), (REASON, "one node")],
        action: Action::Ignore,
        suppressed: Some((SuppressedBy::Namespace, "one node")),
        ..PLAIN
    },
    Case {
        name: "an override does not deny what could not be looked up",
        object: &[(ACTION, "deny"), (REASON, "strict")],
        outcome: Outcome::Unknown,
        action: Action::Warn,
        ..PLAIN
    },
    Case {
        name: "the file may deny what could not be looked up",
        policy: "defaults: {outcomes: {unknown: deny}}",
        namespace_labels: &[(ACTION, "fix")],
        outcome: Outcome::Unknown,
        ..PLAIN
    },
    Case {
        name: "an override may soften it",
        policy: "defaults: {outcomes: {unknown: deny}}",
        object: &[(ACTION, "warn"), (REASON, "r")],
        outcome: Outcome::Unknown,
        action: Action::Warn,
        lowered: Some((SuppressedBy::Object, "r")),
        ..PLAIN
    },
    Case {
        name: "what the file has anyway is lowered by nobody",
        policy: "defaults: {outcomes: {deadlock: warn}}",
        object: &[(ACTION, "warn"), (REASON, "r")],
        action: Action::Warn,
        ..PLAIN
    },
    Case {
        name: "an override may be stricter than the file",
        policy: "defaults: {outcomes: {deadlock: warn}}",
        object: &[(ACTION, "deny"), (REASON, "r")],
        ..PLAIN
    },
    Case {
        name: "no annotation makes a controller's object be fixed",
        object: &[(ACTION, "fix"), (REASON, "r")],
        controlled: true,
        action: Action::Warn,
        ..PLAIN
    },
    Case {
        name: "an exemption comes before any annotation",
        policy: "exemptions: [{names: [web], reason: legacy}]",
        object: &[(ACTION, "deny"), (REASON, "r")],
        action: Action::Ignore,
        suppressed: Some((SuppressedBy::Exemption { line: 1 }, "legacy")),
        ..PLAIN
    },
];

#[test]
fn overrides_count_where_they_may_and_are_spoken_of_where_they_do_not() {
    for case in CASES {
        let policy = policy(case.policy);
        let object = Object {
            namespace_labels: Some(labels(case.namespace_labels)),
            namespace_annotations: Some(labels(case.namespace_annotations)),
            annotations: labels(case.object),
            controlled: case.controlled,
            ..Object::default()
        };
        let target = object.target();
        let resolved = policy.resolve(&target);
        let rule = if case.outcome == Outcome::Unknown {
            UNRESOLVED_CLAIM
        } else {
            ROLLING_UPDATE_OVERLAP
        };
        let decision = resolved.decide(rule, case.outcome, Certainty::Verified);
        let suppression = |(by, reason)| Suppression { by, reason };
        let passed_over: Vec<String> = resolved
            .passed_over()
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(passed_over, case.passed_over, "{}", case.name);
        assert_eq!(decision.action, case.action, "{}", case.name);
        assert_eq!(decision.remedy, case.remedy, "{}", case.name);
        let [suppressed, lowered] = [case.suppressed, case.lowered].map(|it| it.map(suppression));
        assert_eq!(decision.suppressed, suppressed, "{}", case.name);
        assert_eq!(decision.lowered, lowered, "{}", case.name);
    }
}

#[test]
fn a_notice_fits_into_a_warning_of_120_characters() {
    for notice in CASES.iter().flat_map(|case| case.passed_over) {
        let length = notice.chars().count();
        assert!(length <= 120, "{length}: {notice}");
    }
}
