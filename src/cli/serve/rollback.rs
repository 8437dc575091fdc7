//! Rollbacks: an update back to a template whose pods run starts none, so whatever is
//! wrong with the workload, it passes. It is the way out of a rollout that hangs.
//!
//! Only where an update of a pod template would be denied, or the template patched, are
//! the workload's revisions looked up. Where that fails, nothing is denied either: what
//! may be a rollback is never in the way.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::options::ServeOptions;
use super::view::FactSource;
use engine::model::workload::WorkloadKind;
use engine::policy::Action;
use engine::rules::Outcome;
use engine::verdict::{Finding, Verdict};
use source::revisions::{
    FileRevisions, LiveRevisions, Owner, Revision, RevisionsError, normalised,
};
use webhook::admission::{Endpoint, Received};

/// A template with more bytes is nobody's revision: etcd takes no object of that size
/// (`--max-request-bytes`).
const LARGEST_TEMPLATE: usize = 2 * 1024 * 1024;

/// Where revisions are looked up.
pub(super) enum Rollbacks {
    /// In the files that stand for a cluster.
    Files(FileRevisions),
    /// In the cluster.
    Live(LiveRevisions),
}

impl Rollbacks {
    pub(super) fn open(options: &ServeOptions) -> Self {
        match options.facts.is_empty() {
            true => Self::Live(LiveRevisions::default()),
            false => Self::Files(FileRevisions::read(&options.facts)),
        }
    }

    /// The verdict on the review, unless it would block a rollback.
    pub(super) async fn spared(
        &self,
        view: &FactSource,
        endpoint: Endpoint,
        received: &Received<'_>,
        verdict: Verdict,
        deadline: Instant,
    ) -> Verdict {
        if !is_in_the_way(endpoint, &verdict) {
            return verdict;
        }
        let Some(update) = TemplateUpdate::read(received) else {
            return verdict;
        };
        let found = match self {
            Self::Files(files) => Ok(files.find(&update.owner(), &update.template)),
            Self::Live(live) => match view.live().and_then(source::informer::Informer::client) {
                Some(client) => {
                    live.find(&client, &update.owner(), &update.template, deadline)
                        .await
                }
                None => Err(RevisionsError::Late {
                    resource: "revisions",
                }),
            },
        };
        match found {
            Ok(revisions) => match revisions.iter().find_map(|it| update.runs(it)) {
                Some(why) => verdict.of_rollback(why),
                None => verdict,
            },
            Err(error) => {
                tracing::warn!(
                    namespace = update.namespace, name = update.name, %error,
                    "Whether an update is a rollback could not be looked up, so it was not \
                     denied. Give the guard's ServiceAccount the rights in manifests/base/rbac.yaml."
                );
                verdict.without_denials(format!("Not denied, as it may be a rollback: {error}."))
            }
        }
    }
}

/// Whether the verdict refuses an update, or changes its template.
fn is_in_the_way(endpoint: Endpoint, verdict: &Verdict) -> bool {
    match endpoint {
        Endpoint::Validate => verdict
            .with(Action::Deny)
            .any(|it| it.outcome != Outcome::Refused),
        Endpoint::Mutate => verdict.with(Action::Fix).any(Finding::patches_template),
    }
}

/// An update that changes the pod template of a workload that has revisions, and does not
/// ask for more pods.
struct TemplateUpdate<'a> {
    kind: WorkloadKind,
    namespace: &'a str,
    name: &'a str,
    uid: String,
    labels: BTreeMap<String, String>,
    template: Value,
    status: Status,
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
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec<'a> {
    replicas: Option<i64>,
    #[serde(borrow)]
    template: &'a RawValue,
    #[serde(default)]
    selector: Selector,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Selector {
    match_labels: BTreeMap<String, String>,
}

/// Which revisions the pods of a StatefulSet or DaemonSet are of.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status {
    ready_replicas: i64,
    current_revision: String,
    current_replicas: i64,
    update_revision: String,
    updated_replicas: i64,
    number_ready: i64,
    current_number_scheduled: i64,
    updated_number_scheduled: i64,
}

impl<'a> TemplateUpdate<'a> {
    /// The update under review; `None` where it is something else.
    fn read(received: &'a Received<'_>) -> Option<Self> {
        let update = received.update()?;
        update.kind.revision_label()?;
        let new: Object<'_> = serde_json::from_str(update.object.get()).ok()?;
        let old: Object<'_> = serde_json::from_str(update.old_object.get()).ok()?;
        if new.spec.replicas.unwrap_or(1) > old.spec.replicas.unwrap_or(1) {
            return None;
        }
        let [template, before] = [new.spec.template, old.spec.template].map(|raw| {
            let text = raw.get();
            let is_stored = text.len() <= LARGEST_TEMPLATE;
            is_stored.then(|| serde_json::from_str(text).map(normalised).ok())?
        });
        let template = template.filter(|template| Some(template) != before.as_ref())?;
        Some(Self {
            kind: update.kind,
            namespace: update.namespace,
            name: update.name,
            uid: old.metadata.uid,
            labels: old.spec.selector.match_labels,
            template,
            status: old.status,
        })
    }

    fn owner(&self) -> Owner<'_> {
        let labels = self.labels.iter();
        Owner {
            kind: self.kind,
            namespace: self.namespace,
            uid: &self.uid,
            labels: labels.map(|(key, value)| (&**key, &**value)).collect(),
        }
    }

    /// Whether pods of that revision run: then the sentence that says so.
    fn runs(&self, revision: &Revision) -> Option<String> {
        let status = &self.status;
        let runs = match (revision.ready, self.kind) {
            (Some(ready), _) => ready >= 1,
            (None, WorkloadKind::StatefulSet) => {
                let is = |name: &str, pods: i64| revision.name == name && pods >= 1;
                status.ready_replicas >= 1
                    && (is(&status.current_revision, status.current_replicas)
                        || is(&status.update_revision, status.updated_replicas))
            }
            // A DaemonSet does not report the revision of the pods that are not updated.
            (None, _) => {
                status.number_ready >= 1
                    && status.updated_number_scheduled < status.current_number_scheduled
            }
        };
        runs.then(|| {
            format!(
                "This is a rollback to {} {}, whose pods run, so it passes.",
                revision.kind, revision.name
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;

    fn review(kind: &str, operation: &str, new: &Value, old: &Value) -> Vec<u8> {
        let request = json!({"uid": "u", "kind": {"group": "apps", "version": "v1", "kind": kind},
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
        json!({"metadata": {"uid": "o"}, "status": status, "spec": {"replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"spec": {"containers": [{"image": image}]}}}})
    }

    #[test]
    fn only_updates_of_templates_that_ask_for_no_more_pods_may_be_rollbacks() {
        let none = json!({});
        let one = object(1, "img:1", &none);
        let two = object(2, "img:1", &none);
        let changed = object(1, "img:2", &none);
        let mut emptied = one.clone();
        emptied["spec"]["template"]["spec"]["tolerations"] = json!([]);
        let cases = [
            ("Deployment", "UPDATE", &changed, &one, true),
            ("StatefulSet", "UPDATE", &changed, &two, true),
            ("DaemonSet", "UPDATE", &changed, &one, true),
            ("Deployment", "UPDATE", &emptied, &one, false),
            ("Deployment", "UPDATE", &two, &changed, false),
            ("Deployment", "CREATE", &changed, &one, false),
            ("ReplicaSet", "UPDATE", &changed, &one, false),
            ("Deployment", "UPDATE", &none, &one, false),
        ];
        for (kind, operation, new, old, expected) in cases {
            let body = review(kind, operation, new, old);
            let read = TemplateUpdate::read(&received(&body)).is_some();
            assert_eq!(read, expected, "{kind} {operation} {new} {old}");
        }
    }

    #[test]
    fn a_revision_is_gone_back_to_where_its_pods_run() {
        let hangs = json!({"readyReplicas": 1, "currentRevision": "a", "currentReplicas": 1,
            "updateRevision": "b", "updatedReplicas": 1});
        let not_ready = json!({"readyReplicas": 0, "currentRevision": "a", "currentReplicas": 1});
        let mixed =
            json!({"numberReady": 1, "currentNumberScheduled": 2, "updatedNumberScheduled": 1});
        let updated =
            json!({"numberReady": 1, "currentNumberScheduled": 2, "updatedNumberScheduled": 2});
        let cases = [
            ("Deployment", json!({}), Some(1), true),
            ("Deployment", json!({}), Some(0), false),
            ("StatefulSet", hangs, None, true),
            ("StatefulSet", not_ready, None, false),
            (
                "StatefulSet",
                json!({"readyReplicas": 1, "currentRevision": "c", "currentReplicas": 1}),
                None,
                false,
            ),
            ("DaemonSet", mixed, None, true),
            ("DaemonSet", updated, None, false),
        ];
        for (kind, status, ready, expected) in cases {
            let body = review(
                kind,
                "UPDATE",
                &object(1, "img:2", &status),
                &object(1, "img:1", &status),
            );
            let received = received(&body);
            let update = TemplateUpdate::read(&received).unwrap();
            let revision = Revision {
                kind: "ReplicaSet",
                name: "a".into(),
                ready,
            };
            assert_eq!(
                update.runs(&revision).is_some(),
                expected,
                "{kind} {status}"
            );
        }
    }
}
