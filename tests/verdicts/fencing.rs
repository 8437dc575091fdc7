//! Tests requests that may take a node's volumes away.

use engine::model::object::ObjectKind;
use engine::snapshot::{Lookup, Snapshot};
use jiff::Timestamp;
use serde::Deserialize;
use serde::de::DeserializeSeed;
use serde_json::{Value, json};
use webhook::admission::{Answer, Endpoint, Received};

use super::in_effect;

const NOW: &str = "2026-01-01T00:10:00Z";
const TAINT: &str = "node.kubernetes.io/out-of-service";

/// The request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Request {
    /// Puts the taint on the node.
    Taint,
    /// Puts another taint on the node.
    Cordon,
    /// Adds a label to a node that has the taint.
    LabelTainted,
    DeleteNode,
    /// Deletes a VolumeAttachment by its name.
    DeleteAttachment,
    /// Deletes all VolumeAttachments: the request names none.
    DeleteAttachments,
}
use Request::{Cordon, DeleteAttachment, DeleteAttachments, DeleteNode, LabelTainted, Taint};

/// The node, its volume and the user.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Case {
    name: String,
    requests: Vec<Request>,
    user: String,
    /// The status of the condition Ready.
    ready: String,
    /// The number of seconds since the Lease was renewed; `None` if there is none.
    lease_age: Option<i64>,
    /// Whether the guard knows other facts than the request.
    facts: bool,
    /// The number of attached volumes.
    attached: usize,
    /// The access modes of the volume.
    modes: Vec<String>,
    annotations: Value,
    finalizer: String,
    deleting: bool,
    dry_run: bool,
    policy: String,
    expect: String,
    /// All warnings, if they matter.
    warnings: Option<Vec<String>>,
    /// The text for the audit log about suppressed findings, if it matters.
    suppressed: Option<String>,
    /// The live lookups, if they matter.
    reads: Option<Vec<String>>,
}

/// A live node with two volumes; a user puts the taint on it.
impl Default for Case {
    fn default() -> Self {
        Self {
            name: String::new(),
            requests: vec![Taint],
            user: "alice@example.com".to_owned(),
            ready: "True".to_owned(),
            lease_age: Some(4),
            facts: true,
            attached: 2,
            modes: vec!["ReadWriteOnce".to_owned()],
            annotations: Value::Null,
            finalizer: "example.com/inventory".to_owned(),
            deleting: false,
            dry_run: false,
            policy: String::new(),
            expect: String::new(),
            warnings: None,
            suppressed: None,
            reads: None,
        }
    }
}

fn cases() -> Vec<Case> {
    let options = serde_saphyr::options! { budget: None };
    serde_saphyr::from_str_with_options(include_str!("fencing.yaml"), options).unwrap()
}

impl Case {
    fn cluster(&self) -> Snapshot {
        let now: Timestamp = NOW.parse().unwrap();
        let mut cluster = if self.facts {
            Snapshot::complete()
        } else {
            return Snapshot::new();
        };
        let mut put =
            |kind: ObjectKind, json: Value| cluster.apply(kind.deserialize(json).unwrap());
        put(ObjectKind::Node, self.node(&[]));
        if let Some(age) = self.lease_age {
            let renewed = now - jiff::SignedDuration::from_secs(age);
            put(
                ObjectKind::Lease,
                json!({"metadata": {"name": "n1", "namespace": "kube-node-lease"},
                       "spec": {"leaseDurationSeconds": 40, "renewTime": renewed.to_string()}}),
            );
        }
        put(
            ObjectKind::Volume,
            json!({"metadata": {"name": "pv-data"}, "spec": {"accessModes": self.modes}}),
        );
        cluster
    }

    fn metadata(&self, name: &str) -> Value {
        json!({
            "name": name, "uid": "00000000-0000-4000-8000-000000000001",
            "annotations": self.annotations, "finalizers": [self.finalizer],
            "deletionTimestamp": self.deleting.then_some("2026-01-01T00:09:59Z"),
        })
    }

    fn node(&self, taints: &[&str]) -> Value {
        let taints = taints.iter().map(|key| json!({"key": key, "effect": "NoExecute"}));
        let attached =
            (0..self.attached).map(|at| json!({"name": format!("kubernetes.io/csi/disk^{at}")}));
        json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": self.metadata("n1"),
            "spec": {"taints": taints.collect::<Value>()},
            "status": {
                "conditions": [{"type": "Ready", "status": self.ready}],
                "volumesAttached": attached.collect::<Value>(),
            },
        })
    }

    fn attachment(&self) -> Value {
        json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment",
            "metadata": self.metadata("csi-1"),
            "spec": {"attacher": "disk", "nodeName": "n1",
                     "source": {"persistentVolumeName": "pv-data"}},
            "status": {"attached": self.attached > 0},
        })
    }

    fn review(&self, request: Request) -> String {
        let node = |taints| self.node(taints);
        let (operation, name, new, old) = match request {
            Taint => ("UPDATE", "n1", node(&[TAINT]), node(&[])),
            Cordon => {
                let cordon = "node.kubernetes.io/unschedulable";
                ("UPDATE", "n1", node(&[cordon]), node(&[]))
            }
            LabelTainted => ("UPDATE", "n1", node(&[TAINT]), node(&[TAINT])),
            DeleteNode => ("DELETE", "n1", Value::Null, node(&[])),
            DeleteAttachment => ("DELETE", "csi-1", Value::Null, self.attachment()),
            DeleteAttachments => ("DELETE", "", Value::Null, self.attachment()),
        };
        let (group, kind) = match old["kind"].as_str() {
            Some("Node") => ("", "Node"),
            _ => ("storage.k8s.io", "VolumeAttachment"),
        };
        json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "request": {
                "uid": "u", "kind": {"group": group, "version": "v1", "kind": kind},
                "name": name, "operation": operation, "dryRun": self.dry_run,
                "userInfo": {"username": self.user},
                "object": new, "oldObject": old,
            },
        })
        .to_string()
    }

    fn answer(&self, request: Request) -> Answer {
        let body = self.review(request);
        let received = Received::read(body.as_bytes(), NOW.parse().unwrap()).unwrap();
        let cluster = self.cluster();
        let effective = in_effect(&self.policy);
        let verdict = received.judge(Endpoint::Validate, cluster.view(), &effective);
        received.answer(Endpoint::Validate, &verdict)
    }
}

#[test]
fn every_request_gets_its_verdict() {
    let mut wrong = Vec::new();
    for case in cases() {
        for request in &case.requests {
            let found = case.answer(*request).decision.name();
            let response = response(&case, *request);
            let warnings = case.warnings.as_ref();
            let suppressed = case.suppressed.as_ref();
            let is_so = found == case.expect
                && warnings.is_none_or(|warnings| response["warnings"] == json!(warnings))
                && suppressed
                    .is_none_or(|rule| response["auditAnnotations"]["suppressed"] == *rule);
            if !is_so {
                wrong.push(format!("{request:?}: {}: {found}: {response}", case.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

fn response(case: &Case, request: Request) -> Value {
    let body: Value = serde_json::from_slice(&case.answer(request).body).unwrap();
    body["response"].clone()
}

#[test]
fn a_denial_says_what_was_seen_and_what_to_do() {
    let message = |case: &Case, request| {
        response(case, request)["status"]["message"].as_str().unwrap().to_owned()
    };
    let live = Case::default();
    let all = [Taint, DeleteNode, DeleteAttachments].map(|request| message(&live, request));
    insta::assert_snapshot!(all.join("\n\n"));
    let forbidden = Case { policy: "defaults: {overrides: forbid}".to_owned(), ..Case::default() };
    assert!(!message(&forbidden, Taint).contains("kubectl annotate"));
    let many = Case { attached: 5, ..live };
    let denied = response(&many, Taint)["auditAnnotations"]["denied"].to_string();
    assert!(denied.contains("disk^2\\\" and 2 more"), "{denied}");
}

/// The Lease is read only if a denial depends on it.
#[test]
fn nothing_is_asked_where_nothing_hangs_on_it() {
    use engine::snapshot::{LiveLookups, Overlay, View};
    let questions = |case: &Case, request| {
        let body = case.review(request);
        let received = Received::read(body.as_bytes(), NOW.parse().unwrap()).unwrap();
        let mut cluster = Snapshot::new();
        for kind in [ObjectKind::Node, ObjectKind::Volume] {
            cluster.synced(kind);
        }
        cluster.apply(ObjectKind::Node.deserialize(case.node(&[])).unwrap());
        let volume = json!({"metadata": {"name": "pv-data"}, "spec": {"accessModes": case.modes}});
        cluster.apply(ObjectKind::Volume.deserialize(volume).unwrap());
        let mut asked = LiveLookups::default();
        let overlay = Overlay { lookups: Some(&asked), ..Overlay::NOTHING };
        let view = View::new(&cluster, &overlay);
        assert!(!matches!(view.node("n1"), Lookup::NotSynced));
        let _ = received.judge(Endpoint::Validate, view, &in_effect(&case.policy));
        asked.take_pending().iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    for case in cases() {
        for request in case.requests.iter().filter(|_| case.reads.is_some()) {
            let read = Some(questions(&case, *request));
            assert_eq!(read, case.reads, "{}: {request:?}", case.name);
        }
    }
}
