//! What an API server can decide by itself, without asking the guard.
//!
//! ValidatingAdmissionPolicies see an object and a parameter object, and no other. So the
//! guard writes one object a namespace, with those facts of which a denial is certain:
//!
//! ```text
//! Snapshot ─▶ VolumeFacts of each namespace ─▶ the parameters of policies in the API server
//! ```
//!
//! What is left out is never refused by a policy: the webhook alone judges it. Each fact is
//! what the engine says of a probe, a workload that does nothing but use the claim, so the
//! policies follow from the rules and are no second set of them.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use serde::Serialize;
use serde::de::DeserializeSeed;
use serde_json::{Value, json};

use crate::analysis::{Analysis, AttachConstraint, Certainty, Facts, UsedVolume};
use crate::model::Text;
use crate::model::autoscaler::{Scale, ScaleSpec};
use crate::model::labels::Labels;
use crate::model::metadata::Metadata;
use crate::model::object::{Object, ObjectKind, ObjectRef};
use crate::model::workload::{Workload, WorkloadKind};
use crate::policy::{Action, Target};
use crate::rules::{Outcome, codes};
use crate::snapshot::View;
use crate::verdict::{Document, EffectivePolicy, Mode, Review, evaluate};

/// What a policy in the API server may refuse in one namespace.
///
/// It serialises as the `spec` of the custom resource `VolumeFacts`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VolumeFacts {
    /// Claims, by name, with [`ONE_NODE`], [`ONE_POD`] or [`ANY`]. A claim of which less is
    /// known is not among them.
    pub claims: BTreeMap<Text, String>,
    /// How many pods a workload may have, by `Kind/name`: those that a Scale or an
    /// autoscaler must not exceed.
    pub limits: BTreeMap<String, i64>,
    /// The rules whose findings the guard's policy denies in this namespace, where no object
    /// says otherwise.
    pub denied: Vec<&'static str>,
}

/// A claim that attaches to one node. Behind a colon may stand a mark of the nodes that
/// reach it: claims with different marks are not judged together.
pub const ONE_NODE: &str = "OneNode";

/// A claim that one pod may use.
pub const ONE_POD: &str = "OnePod";

/// A claim that keeps no pod anywhere.
pub const ANY: &str = "Any";

/// The rules that policies in the API server can apply, with the outcome that they refuse.
const COMPILED: [(&str, Outcome); 4] = [
    (codes::ROLLING_UPDATE_OVERLAP, Outcome::Deadlock),
    (codes::REPLICAS_SHARE_VOLUME, Outcome::Stuck),
    (codes::SINGLE_POD_VOLUME, Outcome::Deadlock),
    (codes::AUTOSCALER_EXCEEDS_VOLUME, Outcome::Stuck),
];

/// The kinds that policies in the API server judge.
const KINDS: [&str; 4] = [
    "Deployment",
    "StatefulSet",
    "ReplicaSet",
    "HorizontalPodAutoscaler",
];

/// The name of the probe. An exemption by name that covers it covers everything.
const PROBE: &str = "multi-attach-guard-volume-facts-probe";

impl VolumeFacts {
    /// Whether there is nothing that a policy could refuse.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.denied.is_empty()
            || (self.limits.is_empty() && self.claims.values().all(|constraint| constraint == ANY))
    }

    /// The facts of `namespace` in which the cluster has these `claims` and `workloads`.
    ///
    /// Empty where the guard's policy denies none of the rules there, or may exempt objects
    /// by a name that the facts cannot express.
    #[must_use]
    pub fn of(
        namespace: &str,
        claims: &[Text],
        workloads: &[(WorkloadKind, Text)],
        view: View<'_>,
        effective: &EffectivePolicy,
    ) -> Self {
        let denied = denied(namespace, view, effective);
        if denied.is_empty() {
            return Self::default();
        }
        let facts = Facts {
            view,
            catalog: effective.catalog(),
            nodes: effective.policy().nodes(),
        };
        let constraints = claims.iter().filter_map(|claim| {
            let constraint = constraint(namespace, claim, facts)?;
            Some((claim.clone(), constraint))
        });
        let limited = workloads.iter().filter(|(kind, name)| {
            kind.scales() && is_limited(namespace, *kind, name, view, effective)
        });
        Self {
            claims: constraints.collect(),
            limits: limited
                .map(|(kind, name)| (format!("{kind}/{name}"), 1))
                .collect(),
            denied,
        }
    }
}

/// The rules that the guard's policy denies for an object in that namespace that says
/// nothing about it.
fn denied(namespace: &str, view: View<'_>, effective: &EffectivePolicy) -> Vec<&'static str> {
    let policy = effective.policy();
    // A name is matched by wildcards there, which the parameters do not have.
    if policy.exempts_by_name(namespace) {
        return Vec::new();
    }
    let object = view.namespace(namespace).found();
    // What is not known of the Namespace may be milder than what is.
    let Some(object) = object else {
        return Vec::new();
    };
    let annotations = Labels::default();
    let of_kind = |kind| {
        policy.resolve(&Target {
            namespace,
            namespace_labels: Some(&object.metadata.labels),
            namespace_annotations: Some(&object.metadata.annotations),
            kind,
            name: PROBE,
            annotations: &annotations,
            controlled: false,
            now: None,
        })
    };
    let kinds = KINDS.map(of_kind);
    let is_denied = |(rule, outcome): &&(&str, Outcome)| {
        kinds.iter().all(|resolved| {
            let directive = resolved.decide(rule, *outcome, Certainty::Verified);
            directive.action == Action::Deny
        })
    };
    COMPILED
        .iter()
        .filter(is_denied)
        .map(|(rule, _)| *rule)
        .collect()
}

/// How the claim restricts pods that have no other constraint; `None` where that is not
/// certain, or where it holds them on one node.
fn constraint(namespace: &str, claim: &Text, facts: Facts<'_>) -> Option<String> {
    let probe = probe(namespace, claim)?;
    let analysis = Analysis::of(&probe, None, facts);
    let [volume] = &*analysis.volumes else {
        return None;
    };
    match &volume.attach_constraint {
        AttachConstraint::Exclusive { grounds, .. } => (grounds.certainty() == Certainty::Verified
            && !analysis.pins_rollouts()
            && !volume.one_pod_a_node)
            .then(|| one_node(volume)),
        AttachConstraint::SinglePod => Some(ONE_POD.to_owned()),
        AttachConstraint::Free => (volume.reach.is_none()
            && !volume.keeps_its_node()
            && !volume.stays_in_its_zone
            && !volume.one_pod_a_node)
            .then(|| ANY.to_owned()),
        AttachConstraint::Driver(_) | AttachConstraint::Unknown(_) => None,
    }
}

/// The entry of a claim that attaches to one node, with a mark of the nodes that reach it.
fn one_node(volume: &UsedVolume) -> String {
    match &volume.reach {
        Some(reach) => {
            let hasher = BuildHasherDefault::<DefaultHasher>::default();
            format!("{ONE_NODE}:{:016x}", hasher.hash_one(format!("{reach:?}")))
        }
        // The scheduler chooses one zone for all such volumes of a pod.
        None if volume.stays_in_its_zone => format!("{ONE_NODE}:zone"),
        None => ONE_NODE.to_owned(),
    }
}

/// A Deployment that does nothing but use the claim.
fn probe(namespace: &str, claim: &Text) -> Option<Workload> {
    let labels = json!({ "multi-attach-guard.dev/probe": "volume-facts" });
    let document = json!({
        "metadata": { "name": PROBE, "namespace": namespace },
        "spec": {
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": {
                    "containers": [{
                        "name": "probe",
                        "image": "probe",
                        "volumeMounts": [{ "name": "volume", "mountPath": "/volume" }],
                    }],
                    "volumes": [{
                        "name": "volume",
                        "persistentVolumeClaim": { "claimName": claim },
                    }],
                },
            },
        },
    });
    let kind = ObjectKind::Workload(WorkloadKind::Deployment);
    match DeserializeSeed::deserialize(kind, document) {
        Ok(Object::Workload(workload)) => Some(workload),
        _ => None,
    }
}

/// Nothing was submitted: the guard asks itself.
struct Nothing;

impl Document for Nothing {
    fn object(&self) -> Option<&Value> {
        None
    }

    fn changes_template(&self) -> bool {
        false
    }
}

/// Whether a second pod of the workload would be denied.
fn is_limited(
    namespace: &str,
    kind: WorkloadKind,
    name: &Text,
    view: View<'_>,
    effective: &EffectivePolicy,
) -> bool {
    let scale = |replicas| {
        Object::Scale(Scale {
            metadata: Metadata {
                name: name.clone(),
                namespace: namespace.into(),
                ..Metadata::default()
            },
            spec: ScaleSpec { replicas },
        })
    };
    let reference = ObjectRef {
        api_version: "autoscaling/v1".into(),
        kind: "Scale".into(),
        namespace: Some(namespace.into()),
        name: name.clone(),
    };
    let review = Review {
        object: &scale(2),
        old: Some(&scale(1)),
        reference: &reference,
        scaled: Some(kind),
        document: &Nothing,
        mode: Mode::Judge,
    };
    let verdict = evaluate(&review, view, effective);
    verdict
        .findings
        .iter()
        .any(|finding| finding.action == Action::Deny && finding.certainty == Certainty::Verified)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Policy;
    use crate::snapshot::Snapshot;
    use crate::storage::Catalog;

    /// A cluster with so many nodes and the claims `data` (attached), `lock` (of one pod),
    /// `share` (not attached) and `local` (on one node).
    fn cluster(nodes: usize) -> Snapshot {
        let mut snapshot = Snapshot::complete();
        let mut add = |kind: ObjectKind, document: Value| {
            let object = DeserializeSeed::deserialize(kind, document).unwrap();
            assert!(snapshot.apply(object));
        };
        for at in 0..nodes {
            let name = format!("n{at}");
            add(
                ObjectKind::Node,
                json!({"metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}}}),
            );
        }
        add(ObjectKind::Namespace, json!({"metadata": {"name": "shop"}}));
        let classes = [
            ("disk", "ebs.csi.aws.com"),
            ("share", "efs.csi.aws.com"),
            ("local", "rancher.io/local-path"),
        ];
        for (class, provisioner) in classes {
            add(
                ObjectKind::StorageClass,
                json!({"metadata": {"name": class}, "provisioner": provisioner}),
            );
        }
        let claims = [
            ("data", "ReadWriteOnce", "disk"),
            ("lock", "ReadWriteOncePod", "disk"),
            ("share", "ReadWriteMany", "share"),
            ("local", "ReadWriteOnce", "local"),
        ];
        for (claim, mode, class) in claims {
            add(
                ObjectKind::Claim,
                json!({
                    "metadata": {"name": claim, "namespace": "shop"},
                    "spec": {"accessModes": [mode], "storageClassName": class},
                }),
            );
        }
        snapshot
    }

    fn facts(nodes: usize, policy: &str) -> VolumeFacts {
        let policy = Policy::parse(policy, "policy.yaml").unwrap();
        let effective = EffectivePolicy::new(policy, Catalog::embedded().unwrap()).unwrap();
        let claims = ["data", "lock", "share", "local", "absent"].map(Text::from);
        VolumeFacts::of("shop", &claims, &[], cluster(nodes).view(), &effective)
    }

    #[test]
    fn only_what_is_certain_is_listed() {
        let facts = facts(3, "");
        let listed: Vec<(&str, &str)> = (facts.claims.iter())
            .map(|(claim, sort)| (claim.as_str(), sort.as_str()))
            .collect();
        assert_eq!(
            listed,
            [("data", "OneNode:zone"), ("lock", ONE_POD), ("share", ANY)]
        );
        assert_eq!(facts.denied, COMPILED.map(|(rule, _)| rule));
    }

    #[test]
    fn on_one_node_no_claim_is_listed_that_attaches_to_one() {
        assert!(!facts(1, "").claims.contains_key("data"));
    }

    #[test]
    fn what_the_policy_does_not_deny_is_left_to_the_webhook() {
        let cases = [
            ("defaults: {outcomes: {deadlock: warn, stuck: warn}}", 0),
            (
                "namespaces: [{match: {names: [shop]}, outcomes: {deadlock: fix}}]",
                2,
            ),
            ("defaults: {rules: {single-pod-volume: warn}}", 3),
            ("exemptions: [{namespaces: [shop], reason: tested}]", 0),
            (
                "exemptions: [{namespaces: [shop], names: [web-*], reason: tested}]",
                0,
            ),
            (
                "exemptions: [{namespaces: [other], names: [web-*], reason: tested}]",
                4,
            ),
        ];
        for (policy, denied) in cases {
            let facts = facts(3, policy);
            assert_eq!(facts.denied.len(), denied, "{policy}");
            assert_eq!(facts.is_empty(), denied == 0, "{policy}");
        }
    }
}
