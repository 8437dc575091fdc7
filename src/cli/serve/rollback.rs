//! Rollbacks. An update back to a template whose pods exist starts no pods, so it passes, whatever
//! is wrong with the workload. It is the way out of a rollout that hangs.
//!
//! The workload's revisions are looked up only if an update of a pod template would be denied, or
//! the template patched. If the look-up does not end in time, the denial counts as not confirmed.
//!
//! A user who may create ReplicaSets can forge one of a Deployment, with its owner, number, template
//! and pods. So it is worth as much as an annotation of that user: nothing if the policy lets no
//! object override it. Only controllers write ControllerRevisions and the status of a workload, as
//! far as the roles `edit` and `admin` go. A DaemonSet with more than two revisions does not say to
//! which of them its pods belong, so there only an annotation helps.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::view::FactSource;
use engine::model::workload::WorkloadKind;
use engine::policy::Action;
use engine::rules::Outcome;
use engine::verdict::{Finding, Verdict};
use source::Asker;
use source::revisions::{Owner, Revision, is_same_template};
use webhook::admission::{Endpoint, Received, Update};

/// The verdict on the review, unless it would block a rollback.
pub(super) async fn allow_rollback(
    view: &FactSource,
    endpoint: Endpoint,
    received: &Received<'_>,
    verdict: Verdict,
    asker: Asker<'_>,
    deadline: Instant,
) -> Verdict {
    if !is_in_the_way(endpoint, &verdict) {
        return verdict;
    }
    let Some(rollback) = TemplateUpdate::read(received) else {
        return verdict;
    };
    if rollback.update.kind == WorkloadKind::Deployment && !verdict.may_be_overridden {
        return verdict;
    }
    let owner = rollback.owner();
    let found = view
        .revisions(&owner, rollback.template, asker, deadline)
        .await
        .map(|all| rollback.rests_on(&all).cloned());
    match found {
        Ok(Some(target)) => {
            let revision = format!("{} {}", target.kind, target.name);
            tracing::info!(
                object = %received.reference(), endpoint = endpoint.name(), user = received.user(),
                %revision, number = target.number, created = %target.created, pods = target.pods, ready = target.ready,
                "An update passed as a rollback."
            );
            verdict.of_rollback(&format!(
                "This is a rollback to {revision}, whose pods are there, so it passes."
            ))
        }
        Ok(None) => verdict,
        Err(error) => {
            let why = format!("it may be a rollback, and {error}");
            view.unconfirmed(verdict, received, &why)
        }
    }
}

/// Whether the verdict refuses an update, or changes its template.
fn is_in_the_way(endpoint: Endpoint, verdict: &Verdict) -> bool {
    match endpoint {
        Endpoint::Validate => {
            verdict.with(Action::Deny).any(|finding| finding.outcome != Outcome::Refused)
        }
        Endpoint::Mutate => verdict.with(Action::Fix).any(Finding::patches_template),
    }
}

/// An update that changes only the pod template of a workload that has revisions. It keeps the
/// claims and disks, and does not ask for more pods.
struct TemplateUpdate<'a> {
    update: Update<'a>,
    template: &'a RawValue,
    old: Object<'a>,
}

#[derive(Deserialize)]
struct Object<'a> {
    metadata: Metadata,
    #[serde(borrow)]
    spec: Spec<'a>,
    #[serde(default)]
    status: Status,
}

#[derive(Deserialize)]
struct Metadata {
    #[serde(default)]
    uid: String,
    #[serde(default)]
    annotations: Annotations,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Annotations {
    #[serde(rename = "deployment.kubernetes.io/revision")]
    revision: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec<'a> {
    replicas: Option<i64>,
    #[serde(borrow)]
    template: &'a RawValue,
    #[serde(flatten)]
    kept: Kept,
}

/// The fields that a rollback leaves unchanged.
#[derive(Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Kept {
    selector: Value,
    strategy: Value,
    update_strategy: Value,
    volume_claim_templates: Value,
    /// The first number of a StatefulSet's pods.
    ordinals: Value,
}

/// The fields in which controllers describe the pods.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status {
    conditions: Vec<Condition>,
    current_revision: String,
    current_replicas: i64,
    current_number_scheduled: i64,
    updated_number_scheduled: i64,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Condition {
    #[serde(rename = "type")]
    kind: String,
    last_update_time: String,
}

impl<'a> TemplateUpdate<'a> {
    /// The update under review; `None` if the review is about something else.
    fn read(received: &'a Received<'_>) -> Option<Self> {
        let update = received.update()?;
        const KINDS: [WorkloadKind; 3] =
            [WorkloadKind::Deployment, WorkloadKind::StatefulSet, WorkloadKind::DaemonSet];
        KINDS.contains(&update.kind).then_some(())?;
        let new: Object<'a> = serde_json::from_str(update.object.get()).ok()?;
        let old: Object<'a> = serde_json::from_str(update.old_object.get()).ok()?;
        let template = new.spec.template;
        let changes_the_template_alone = new.spec.replicas.unwrap_or(1)
            <= old.spec.replicas.unwrap_or(1)
            && new.spec.kept == old.spec.kept
            && disks(template)? == disks(old.spec.template)?
            && !is_same_template(template, old.spec.template);
        changes_the_template_alone.then_some(Self { update, template, old })
    }

    fn owner(&self) -> Owner<'_> {
        let labels = self.old.spec.kept.selector["matchLabels"].as_object();
        Owner {
            kind: self.update.kind,
            namespace: self.update.namespace,
            name: self.update.name,
            uid: &self.old.metadata.uid,
            labels: (labels.into_iter().flatten())
                .filter_map(|(key, value)| Some((&**key, value.as_str()?)))
                .collect(),
        }
    }

    /// The revision with the requested template whose pods have the volume, if there is one.
    fn rests_on<'r>(&self, revisions: &'r [Revision]) -> Option<&'r Revision> {
        let status = &self.old.status;
        let mut with_template = revisions.iter().filter(|revision| revision.has_template);
        match self.update.kind {
            WorkloadKind::StatefulSet => with_template.find(|revision| {
                revision.name == status.current_revision && status.current_replicas >= 1
            }),
            // If there are two revisions, pods that are not of the newest one are of the other. A
            // DaemonSet does not report more.
            WorkloadKind::DaemonSet => with_template.next().filter(|_| {
                revisions.len() <= 2
                    && status.updated_number_scheduled < status.current_number_scheduled
            }),
            _ => with_template.find(|revision| {
                self.is_earlier(revision, revisions) && has_volume(revision, revisions)
            }),
        }
    }

    /// Whether the workload had that revision before its last change. A workload without a revision
    /// number counts as having the newest of its revisions.
    fn is_earlier(&self, revision: &Revision, all: &[Revision]) -> bool {
        let current = &self.old.metadata.annotations.revision;
        let newest = || all.iter().map(|other| other.number).max().unwrap_or_default();
        let current = if current.is_empty() { Ok(newest()) } else { current.parse() };
        // The controller records here that it made a revision, or that it waits for one.
        let progressed =
            self.old.status.conditions.iter().find(|condition| condition.kind == "Progressing");
        revision.number >= 1
            && current.is_ok_and(|current| revision.number <= current)
            && progressed.is_none_or(|condition| {
                revision.created.as_str() <= condition.last_update_time.as_str()
            })
    }
}

/// Whether a pod of the revision has the volume: either a pod is ready or, while no pod of any
/// revision is, this revision is the earliest that has pods, and the others wait for it.
fn has_volume(revision: &Revision, all: &[Revision]) -> bool {
    let mut others = all.iter().filter(|other| other.name != revision.name && other.pods >= 1);
    let mut is_first = || others.all(|other| other.ready == 0 && other.number > revision.number);
    revision.pods >= 1 && (revision.ready >= 1 || is_first())
}

/// Volumes that are created for each pod, or read from the API server.
const NO_DISKS: [&str; 6] =
    ["configMap", "downwardAPI", "emptyDir", "image", "projected", "secret"];

/// The claims and disks that a pod template uses, whatever names it gives them; `None` if it is
/// malformed.
fn disks(template: &RawValue) -> Option<BTreeSet<String>> {
    #[derive(Deserialize)]
    struct Template {
        spec: Pod,
    }
    #[derive(Deserialize)]
    struct Pod {
        volumes: Option<Vec<serde_json::Map<String, Value>>>,
    }
    let Template { spec } = serde_json::from_str(template.get()).ok()?;
    let sources = spec
        .volumes
        .into_iter()
        .flatten()
        .flatten()
        .filter(|(key, _)| key != "name" && !NO_DISKS.contains(&key.as_str()));
    Some(sources.map(|(key, value)| format!("{key} {value}")).collect())
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;

    fn review(kind: &str, operation: &str, new: &Value, old: &Value) -> Vec<u8> {
        let kind = json!({"group": "apps", "version": "v1", "kind": kind});
        let request = json!({"uid": "u", "kind": kind,
            "operation": operation, "namespace": "shop", "name": "web",
            "object": new, "oldObject": old});
        let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "request": request});
        review.to_string().into_bytes()
    }

    fn received(body: &[u8]) -> Received<'_> {
        Received::read(body, Timestamp::UNIX_EPOCH).unwrap()
    }

    fn object(replicas: i64, image: &str, status: &Value) -> Value {
        json!({"metadata": {"uid": "o", "annotations": {"deployment.kubernetes.io/revision": "4"}},
            "status": status, "spec": {"replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}}, "strategy": {"type": "RollingUpdate"},
            "template": {"spec": {"containers": [{"image": image}], "volumes": [
                {"name": "a", "persistentVolumeClaim": {"claimName": "data"}},
                {"name": "b", "configMap": {"name": "web"}}]}}}})
    }

    #[test]
    fn only_updates_of_the_template_alone_may_be_rollbacks() {
        let none = json!({});
        let one = object(1, "img:1", &none);
        let two = object(2, "img:1", &none);
        let changed = object(1, "img:2", &none);
        let with = |path: &str, value: Value| {
            let mut object = changed.clone();
            *object.pointer_mut(path).unwrap() = value;
            object
        };
        let mut emptied = one.clone();
        emptied["spec"]["template"]["spec"]["tolerations"] = json!([]);
        let volumes = "/spec/template/spec/volumes";
        let renamed = with(&format!("{volumes}/0/name"), json!("c"));
        let configured = with(&format!("{volumes}/1/configMap/name"), json!("other"));
        let claimed = with(&format!("{volumes}/0/persistentVolumeClaim/claimName"), json!("other"));
        let surging = with("/spec/strategy", json!({"type": "Recreate"}));
        let selecting = with("/spec/selector/matchLabels/app", json!("api"));
        let mut claiming = changed.clone();
        claiming["spec"]["volumeClaimTemplates"] = json!([{}]);
        let mut numbered = changed.clone();
        numbered["spec"]["ordinals"] = json!({"start": 1});
        let mut updating = changed.clone();
        updating["spec"]["updateStrategy"] = json!({"type": "OnDelete"});
        let cases = [
            ("Deployment", "UPDATE", &changed, &one, true),
            ("StatefulSet", "UPDATE", &changed, &two, true),
            ("DaemonSet", "UPDATE", &changed, &one, true),
            ("Deployment", "UPDATE", &renamed, &one, true),
            ("Deployment", "UPDATE", &configured, &one, true),
            ("Deployment", "UPDATE", &claimed, &one, false),
            ("Deployment", "UPDATE", &surging, &one, false),
            ("Deployment", "UPDATE", &selecting, &one, false),
            ("StatefulSet", "UPDATE", &claiming, &one, false),
            ("StatefulSet", "UPDATE", &numbered, &one, false),
            ("DaemonSet", "UPDATE", &updating, &one, false),
            ("Deployment", "UPDATE", &emptied, &one, false),
            ("Deployment", "UPDATE", &two, &changed, false),
            ("Deployment", "CREATE", &changed, &one, false),
            ("ReplicaSet", "UPDATE", &changed, &one, false),
            ("Rollout", "UPDATE", &changed, &one, false),
            ("Deployment", "UPDATE", &none, &one, false),
        ];
        for (kind, operation, new, old, expected) in cases {
            let body = review(kind, operation, new, old);
            let read = TemplateUpdate::read(&received(&body)).is_some();
            assert_eq!(read, expected, "{kind} {operation} {new} {old}");
        }
    }

    fn revision(name: &str, number: i64, pods: i64, ready: i64) -> Revision {
        Revision {
            kind: "ReplicaSet",
            name: name.into(),
            number,
            created: "2026-01-02T00:00:00Z".into(),
            pods,
            ready,
            has_template: name == "wanted",
        }
    }

    /// Whether an update of this kind rests on a revision, according to the object's status.
    fn rests_on(kind: &str, status: &Value, revisions: &[Revision]) -> bool {
        let [new, old] = [2, 1].map(|image| object(1, &format!("img:{image}"), status));
        let body = review(kind, "UPDATE", &new, &old);
        let received = received(&body);
        let update = TemplateUpdate::read(&received).unwrap();
        let found = update.rests_on(revisions);
        assert!(found.is_none_or(|revision| revision.has_template));
        found.is_some()
    }

    #[test]
    fn a_deployment_goes_back_to_an_earlier_revision_whose_pod_has_the_volume() {
        let wanted = |number, pods, ready| revision("wanted", number, pods, ready);
        let other = |number, pods, ready| revision("other", number, pods, ready);
        let cases = [
            ("it is ready", vec![wanted(3, 1, 1), other(4, 1, 0)], true),
            ("it has no pods", vec![wanted(3, 0, 0), other(4, 1, 0)], false),
            ("it is not ready", vec![wanted(3, 1, 0), other(4, 1, 0)], true),
            ("the other is ready", vec![wanted(3, 1, 0), other(4, 1, 1)], false),
            ("it waits for an earlier", vec![wanted(3, 1, 0), other(2, 1, 0)], false),
            ("the earlier is gone", vec![wanted(3, 1, 0), other(2, 0, 0)], true),
            ("it is the current one", vec![wanted(4, 1, 1)], true),
            ("it came later", vec![wanted(5, 1, 1)], false),
            ("it has no number", vec![wanted(0, 1, 1)], false),
            ("it is another template's", vec![other(3, 1, 1)], false),
        ];
        for (name, revisions, expected) in cases {
            let found = rests_on("Deployment", &json!({}), &revisions);
            assert_eq!(found, expected, "{name}");
        }
        for (updated, expected) in [("2026-01-02T00:00:00Z", true), ("2026-01-01T00:00:00Z", false)]
        {
            let progressing = json!([{"type": "Progressing", "lastUpdateTime": updated}]);
            let status = json!({"conditions": progressing});
            let found = rests_on("Deployment", &status, &[wanted(3, 1, 1)]);
            assert_eq!(found, expected, "progress at {updated}");
        }
    }

    #[test]
    fn a_set_goes_back_to_what_its_status_says_its_pods_are_of() {
        let wanted = revision("wanted", 1, 0, 0);
        let current = revision("current", 2, 0, 0);
        let other = revision("other", 3, 0, 0);
        let two = [wanted.clone(), current.clone()];
        let hangs = json!({"currentRevision": "wanted", "currentReplicas": 1,
            "updateRevision": "current", "updatedReplicas": 1});
        let waits = json!({"currentRevision": "other", "currentReplicas": 1,
            "updateRevision": "wanted", "updatedReplicas": 1});
        let gone = json!({"currentRevision": "wanted", "currentReplicas": 0, "readyReplicas": 1});
        for (status, expected) in [(hangs, true), (waits, false), (gone, false)] {
            let found = rests_on("StatefulSet", &status, &two);
            assert_eq!(found, expected, "{status}");
        }
        let status =
            |updated| json!({"currentNumberScheduled": 2, "updatedNumberScheduled": updated});
        assert!(rests_on("DaemonSet", &status(1), &two));
        assert!(!rests_on("DaemonSet", &status(2), &two));
        assert!(!rests_on("DaemonSet", &status(1), std::slice::from_ref(&current)));
        // Nothing says to which of three revisions the pods belong.
        assert!(!rests_on("DaemonSet", &status(1), &[wanted, current, other]));
    }
}
