//! The facts with which an API server can decide by itself, without asking the guard.
//!
//! ValidatingAdmissionPolicies see only an object and a parameter object. So the guard writes one
//! object for each namespace, with the facts that make a denial certain:
//!
//! ```text
//! Snapshot ─▶ VolumeFacts of each namespace ─▶ the parameters of policies in the API server
//! ```
//!
//! A policy never refuses an object for a claim that is left out: only the webhook judges that. The
//! same holds for findings that depend on other workloads, because the facts are those of a moment
//! before, or of hours before while the guard is away. Each fact is the engine's answer about a
//! probe, a workload that does nothing but use the claim, so the policies follow from the rules and
//! are no second set of them.

mod decided;
mod probe;
mod scaling;
mod volumes;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::model::Text;
use crate::model::autoscaler::Autoscaler;
use crate::model::metadata::is_name;
use crate::model::workload::WorkloadKind;
use crate::policy::Strictness;
use crate::snapshot::{StoredObject, View};
use crate::verdict::EffectivePolicy;
pub(crate) use scaling::Limit;
pub use volumes::Constraint;

/// The facts by which a policy in the API server may refuse objects in one namespace.
///
/// It serialises as the `spec` of the custom resource `VolumeFacts`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VolumeFacts {
    /// Claims by name, with the name of their constraint or `ANY`. Claims about which less is known
    /// are left out.
    pub claims: BTreeMap<Text, String>,
    /// Disks that pods define themselves, by their field, with the name of their constraint.
    pub inline: BTreeMap<&'static str, String>,
    /// The constraints of claims and disks, by name.
    pub constraints: BTreeMap<String, Constraint>,
    /// The workloads that may have one pod, whatever a Scale or an autoscaler asks for, by
    /// `Kind/name`.
    pub limits: BTreeMap<String, Limit>,
    /// The most pods that autoscalers allow each workload that they scale, by its `Kind/name`.
    pub caps: BTreeMap<String, i64>,
    /// The rules whose findings the guard's policy denies in this namespace, by the kind of the
    /// object, unless the object says otherwise.
    pub denied: BTreeMap<&'static str, Vec<&'static str>>,
    /// The treatment of a rollout of a workload that was at fault before.
    pub existing: Strictness,
    /// Whether annotations of an object may override the policy.
    pub overrides: bool,
    /// Whether objects that a custom controller owns are judged like others.
    pub controlled: bool,
    /// Regular expressions: policies refuse no objects with a matching name. They are exempt, or a
    /// Rollout takes their pod template, so that they may have no pods of their own.
    pub exempt: Vec<String>,
}

/// The prefix of the names of constraints of a claim that attaches to one node.
pub(crate) const ONE_NODE: &str = "OneNode";

/// The prefix of the names of constraints of a claim that one pod may use.
pub(crate) const ONE_POD: &str = "OnePod";

/// The name for a claim that keeps no pod anywhere.
pub(crate) const ANY: &str = "Any";

/// The objects in one namespace about which there are facts.
#[derive(Clone, Debug, Default)]
pub struct Members {
    claims: Vec<Text>,
    workloads: Vec<(WorkloadKind, Text)>,
    /// The workloads that autoscalers scale, whether they exist or not.
    scaled: BTreeSet<(WorkloadKind, Text)>,
}

impl Members {
    /// The members of each namespace of the cluster.
    pub fn of(view: View<'_>) -> BTreeMap<Text, Self> {
        let mut all = BTreeMap::<Text, Self>::new();
        for object in view.cluster().objects() {
            let key = object.key();
            let name = Text::from(key.name);
            let namespace = match object {
                StoredObject::Namespace(_) => name.clone(),
                _ if key.namespace.is_empty() => continue,
                _ => key.namespace.into(),
            };
            let members = all.entry(namespace).or_default();
            match object {
                StoredObject::Claim(_) => members.claims.push(name),
                StoredObject::Autoscaler(autoscaler) => members.scaled.extend(target(autoscaler)),
                StoredObject::Workload(workload) => members.workloads.push((workload.kind, name)),
                _ => {}
            }
        }
        all
    }
}

/// The workload that an autoscaler scales.
fn target(autoscaler: &Autoscaler) -> Option<(WorkloadKind, Text)> {
    let target = &autoscaler.spec.scale_target_ref;
    Some((target.workload_kind()?, target.name.clone()))
}

impl VolumeFacts {
    /// Whether there is nothing that a policy could refuse.
    pub fn is_empty(&self) -> bool {
        let restricts = |constraint: &String| constraint != ANY;
        !self.claims.values().any(restricts) && self.inline.is_empty() && self.limits.is_empty()
    }

    /// The facts of `namespace`.
    ///
    /// Empty if the guard's policy denies none of the rules there, or if the Namespace is not
    /// known.
    pub fn of(
        namespace: &str,
        members: &Members,
        view: View<'_>,
        effective: &EffectivePolicy,
    ) -> Self {
        let Some(mut found) =
            decided::of(namespace, view, effective).filter(|found| !found.denied.is_empty())
        else {
            return Self::default();
        };
        let sources = members.workloads.iter().filter_map(|(kind, name)| {
            let rollout = view.workload(*kind, namespace, name).found()?;
            let source = &rollout.template_source.as_ref()?.name;
            // Another text than a name could be an expression that matches more.
            is_name(source).then(|| format!("^{}$", source.replace('.', "\\.")))
        });
        found.exempt.extend(sources);
        let facts = effective.facts(view);
        found.add_volumes(namespace, members, facts);
        found.add_scaling(namespace, members, facts, effective);
        found
    }
}

#[cfg(test)]
mod tests {
    use serde::de::DeserializeSeed;
    use serde_json::{Value, json};

    use super::*;
    use crate::model::object::ObjectKind;
    use crate::policy::Policy;
    use crate::rules::codes;
    use crate::snapshot::Snapshot;
    use crate::storage::Catalog;

    /// A cluster with this many nodes and the claims `data` (attached), `lock` (of one pod),
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
        let effective = EffectivePolicy::new(policy, Catalog::embedded().unwrap());
        let cluster = cluster(nodes);
        let members = Members::of(cluster.view());
        VolumeFacts::of("shop", &members["shop"], cluster.view(), &effective)
    }

    #[test]
    fn only_what_is_certain_is_listed() {
        let facts = facts(3, "");
        let listed: Vec<(&str, &str)> = facts
            .claims
            .iter()
            .map(|(claim, sort)| (claim.as_str(), sort.split('-').next().unwrap()))
            .collect();
        assert_eq!(listed, [("data", ONE_NODE), ("lock", ONE_POD), ("share", ANY)]);
        let of = |claim: &str| &facts.constraints[&facts.claims[claim]];
        assert_eq!(of("data").is, "is not bound yet and will be ReadWriteOnce (ebs.csi.aws.com)");
        assert_eq!(of("data").nodes, "3 nodes are eligible");
        assert_eq!(of("lock").is, "is ReadWriteOncePod");
        assert_eq!(facts.denied.len(), 5);
    }

    #[test]
    fn on_one_node_no_claim_is_listed_that_attaches_to_one() {
        assert!(!facts(1, "").claims.contains_key("data"));
    }

    #[test]
    fn what_the_policy_does_not_deny_is_left_to_the_webhook() {
        let all =
            [codes::ROLLING_UPDATE_OVERLAP, codes::REPLICAS_SHARE_VOLUME, codes::SINGLE_POD_VOLUME];
        let [overlap, replicas, _] = all;
        let cases = [
            ("", &all[..]),
            ("defaults: {outcomes: {deadlock: warn, stuck: warn}}", &[]),
            // A single-pod-volume is refused for either outcome.
            ("namespaces: [{match: {names: [shop]}, outcomes: {deadlock: fix}}]", &[replicas]),
            // Recreate is no remedy for several pods.
            ("defaults: {outcomes: {deadlock: fix, stuck: fix}, remedy: recreate}", &[replicas]),
            ("defaults: {rules: {single-pod-volume: warn}}", &[overlap, replicas]),
            ("exemptions: [{namespaces: [shop], reason: tested}]", &[]),
            ("exemptions: [{namespaces: [shop], names: [web-*], reason: tested}]", &all),
        ];
        for (policy, denied) in cases {
            let facts = facts(3, policy);
            let found = facts.denied.get("Deployment").cloned().unwrap_or_default();
            assert_eq!(found, denied, "{policy}");
            assert_eq!(facts.is_empty(), denied.is_empty(), "{policy}");
        }
    }

    #[test]
    fn names_that_are_exempt_are_regular_expressions() {
        let policy = "exemptions: [{namespaces: [shop], names: ['web-*', 'a.b?'], reason: tested},
            {namespaces: [other], names: [api], reason: tested}]";
        assert_eq!(facts(3, policy).exempt, [r"^a\.b.$", "^web-.*$"]);
    }
}
