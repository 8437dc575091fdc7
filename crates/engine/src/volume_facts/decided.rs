//! The decisions of the guard's policy in a namespace about objects without annotations of their
//! own.

use std::collections::BTreeMap;

use super::VolumeFacts;
use super::probe::NOBODY;
use crate::model::labels::Labels;
use crate::model::workload::WorkloadKind;
use crate::policy::{Action, RemedyChoice, Resolved, Target};
use crate::remedy::REMEDIES;
use crate::rules::{Hazard, Outcome, codes};
use crate::snapshot::View;
use crate::verdict::EffectivePolicy;

type Rules = &'static [(&'static str, &'static [Outcome])];

const OVERLAP: (&str, &[Outcome]) = (codes::ROLLING_UPDATE_OVERLAP, &[Outcome::Deadlock]);
const REPLICAS: (&str, &[Outcome]) = (codes::REPLICAS_SHARE_VOLUME, &[Outcome::Stuck]);
const ONE_POD: (&str, &[Outcome]) =
    (codes::SINGLE_POD_VOLUME, &[Outcome::Deadlock, Outcome::Stuck]);
const SCALED: (&str, &[Outcome]) = (codes::AUTOSCALER_EXCEEDS_VOLUME, &[Outcome::Stuck]);

/// The rules that policies in the API server can apply, with the outcomes that they refuse, by
/// the kind of the object.
const COMPILED: [(&str, Rules); 5] = [
    ("Deployment", &[OVERLAP, REPLICAS, ONE_POD]),
    ("StatefulSet", &[REPLICAS, ONE_POD]),
    ("ReplicaSet", &[REPLICAS, ONE_POD]),
    ("DaemonSet", &[REPLICAS]),
    ("HorizontalPodAutoscaler", &[SCALED]),
];

/// The facts about the policy; `None` if the Namespace is not known, because its labels and
/// annotations may lead to a milder policy.
pub(super) fn of(
    namespace: &str,
    view: View<'_>,
    effective: &EffectivePolicy,
) -> Option<VolumeFacts> {
    let policy = effective.policy();
    let object = view.namespace(namespace).found()?;
    let annotations = Labels::default();
    let resolve = |kind, controlled| {
        policy.resolve(&Target {
            namespace,
            namespace_metadata: Some(&object.metadata),
            kind,
            name: NOBODY,
            annotations: &annotations,
            controlled,
            now: None,
        })
    };
    let denied: BTreeMap<_, Vec<_>> = COMPILED
        .iter()
        .map(|(kind, rules)| {
            let resolved = resolve(kind, false);
            let denied_rules: Vec<_> = rules
                .iter()
                .filter(|(rule, outcomes)| {
                    outcomes.iter().all(|outcome| denies(&resolved, kind, rule, *outcome))
                })
                .map(|(rule, _)| *rule)
                .collect();
            (*kind, denied_rules)
        })
        .filter(|(_, rules)| !rules.is_empty())
        .collect();
    let [plain, owned] = [false, true].map(|controlled| resolve("Deployment", controlled));
    let overlap = Hazard::new(codes::ROLLING_UPDATE_OVERLAP, Outcome::Deadlock);
    let [free, own] = [&plain, &owned].map(|resolved| resolved.decide(&overlap));
    Some(VolumeFacts {
        denied,
        existing: plain.existing(),
        overrides: plain.object_may_override,
        controlled: own.action == free.action,
        exempt: policy.names_exempt_in(namespace),
        ..VolumeFacts::default()
    })
}

/// Whether a finding of that rule is denied, whatever else is true of the object. If the policy
/// says to fix, it is denied only if no remedy suits such a finding.
fn denies(resolved: &Resolved<'_>, kind: &str, rule: &'static str, outcome: Outcome) -> bool {
    let directive = resolved.decide(&Hazard::new(rule, outcome));
    match directive.action {
        Action::Deny => true,
        Action::Fix => {
            directive.without_remedy == Action::Deny
                && WorkloadKind::from_name(kind)
                    .is_none_or(|kind| !has_remedy(kind, rule, directive.remedy))
        }
        Action::Warn | Action::Ignore => false,
    }
}

/// Whether one of the remedies that may be chosen suits findings of that rule.
fn has_remedy(kind: WorkloadKind, rule: &str, choice: RemedyChoice) -> bool {
    REMEDIES
        .iter()
        .filter(|remedy| choice == RemedyChoice::Auto || remedy.name == choice.name())
        .any(|remedy| remedy.suits(rule, kind))
}
