//! Requests that may take the volumes of a node, and what becomes of each.

use engine::model::object::ObjectKind;
use engine::snapshot::{Lookup, Snapshot};
use jiff::Timestamp;
use serde::de::DeserializeSeed;
use serde_json::{Value, json};
use webhook::admission::{Answer, Decision, Endpoint, Received};

use super::in_effect;

const NOW: &str = "2026-01-01T00:10:00Z";
const ALICE: &str = "alice@example.com";
const TAINT: &str = "node.kubernetes.io/out-of-service";

/// The request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Request {
    /// The taint is put on the node.
    Taint,
    /// The node gets another taint.
    Cordon,
    /// The node has the taint, and gets a label.
    LabelTainted,
    DeleteNode,
    /// Deletes a VolumeAttachment by its name.
    DeleteAttachment,
    /// Deletes all VolumeAttachments: the request names none.
    DeleteAttachments,
}
use Request::{Cordon, DeleteAttachment, DeleteAttachments, DeleteNode, LabelTainted, Taint};

/// The node, its volume and who asks.
#[derive(Clone)]
struct Case {
    request: Request,
    user: &'static str,
    /// The status of the condition Ready.
    ready: &'static str,
    /// How many seconds ago the Lease was renewed; `None`: there is none.
    lease_age: Option<i64>,
    /// Whether anything is known but what the request brings.
    facts: bool,
    /// How many volumes are attached.
    attached: usize,
    /// The access modes of the volume.
    modes: &'static [&'static str],
    annotations: Value,
    finalizer: &'static str,
    deleting: bool,
    dry_run: bool,
    policy: &'static str,
}

/// A live node with two volumes of its own; a user puts the taint on it.
const LIVE: Case = Case {
    request: Taint,
    user: ALICE,
    ready: "True",
    lease_age: Some(4),
    facts: true,
    attached: 2,
    modes: &["ReadWriteOnce"],
    annotations: Value::Null,
    finalizer: "example.com/inventory",
    deleting: false,
    dry_run: false,
    policy: "",
};

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
        let taints = taints
            .iter()
            .map(|key| json!({"key": key, "effect": "NoExecute"}));
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

    fn review(&self) -> String {
        let node = |taints| self.node(taints);
        let (operation, name, new, old) = match self.request {
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

    fn answer(&self) -> Answer {
        let body = self.review();
        let received = Received::read(body.as_bytes(), NOW.parse().unwrap()).unwrap();
        let cluster = self.cluster();
        let effective = in_effect(self.policy);
        let verdict = received.judge(Endpoint::Validate, cluster.view(), &effective);
        received.answer(Endpoint::Validate, &verdict)
    }
}

const TRUSTING: &str =
    "fencing: {accounts: [\"system:serviceaccount:kube-system:cluster-*\", karpenter]}";
const AUTOSCALER: &str = "system:serviceaccount:kube-system:cluster-autoscaler";
const CONTROLLER: &str = "system:serviceaccount:kube-system:attachdetach-controller";

fn cases() -> Vec<(&'static str, Case, Decision)> {
    use Decision::{Allowed, Denied, Warned};
    let with = |request| Case { request, ..LIVE };
    let silent = |request| Case {
        ready: "Unknown",
        lease_age: Some(90),
        ..with(request)
    };
    let override_with = |annotations| Case {
        annotations,
        ..LIVE
    };
    let reason = "multi-attach-guard.dev/reason";
    let ignore = "multi-attach-guard.dev/ignore";
    let ignored = json!({ignore: "fencing-live-node", reason: "pulled the plug"});
    let mut cases = vec![
        ("taint, alive", with(Taint), Denied),
        ("Node deleted, alive", with(DeleteNode), Denied),
        ("attachment deleted, alive", with(DeleteAttachment), Denied),
        (
            "all attachments deleted, alive",
            with(DeleteAttachments),
            Denied,
        ),
        ("taint, silent", silent(Taint), Allowed),
        ("Node deleted, silent", silent(DeleteNode), Allowed),
        (
            "attachment deleted, silent",
            silent(DeleteAttachment),
            Allowed,
        ),
        (
            "Node deleted, which Karpenter drains first",
            Case {
                finalizer: "karpenter.sh/termination",
                ..with(DeleteNode)
            },
            Allowed,
        ),
        (
            "taint on a node that Karpenter would drain",
            Case {
                finalizer: "karpenter.sh/termination",
                ..with(Taint)
            },
            Denied,
        ),
        ("another taint", with(Cordon), Allowed),
        ("a label on a tainted node", with(LabelTainted), Allowed),
        (
            "a dry run",
            Case {
                dry_run: true,
                ..LIVE
            },
            Denied,
        ),
    ];
    for request in [Taint, DeleteNode, DeleteAttachment] {
        let with = |case: Case| Case { request, ..case };
        cases.extend([
            (
                "Ready, Lease old",
                with(Case {
                    lease_age: Some(90),
                    ..LIVE
                }),
                Denied,
            ),
            (
                "not Ready, Lease fresh",
                with(Case {
                    ready: "False",
                    ..LIVE
                }),
                Denied,
            ),
            (
                "not heard of, Lease fresh",
                with(Case {
                    ready: "Unknown",
                    ..LIVE
                }),
                Denied,
            ),
            (
                "not Ready, Lease old",
                with(Case {
                    ready: "False",
                    lease_age: Some(41),
                    ..LIVE
                }),
                Allowed,
            ),
            (
                "not heard of, no Lease",
                with(Case {
                    ready: "Unknown",
                    lease_age: None,
                    ..LIVE
                }),
                Allowed,
            ),
            (
                "not heard of, Lease of the future",
                with(Case {
                    ready: "Unknown",
                    lease_age: Some(-300),
                    ..LIVE
                }),
                Warned,
            ),
            (
                "nothing attached",
                with(Case {
                    attached: 0,
                    ..LIVE
                }),
                Allowed,
            ),
            (
                "already being deleted",
                with(Case {
                    deleting: true,
                    ..LIVE
                }),
                Allowed,
            ),
            (
                "the attach-detach controller",
                with(Case {
                    user: CONTROLLER,
                    ..LIVE
                }),
                Allowed,
            ),
            (
                "a controller manager of one account",
                with(Case {
                    user: "system:kube-controller-manager",
                    ..LIVE
                }),
                Allowed,
            ),
            (
                "an autoscaler",
                with(Case {
                    user: AUTOSCALER,
                    ..LIVE
                }),
                Denied,
            ),
            (
                "an autoscaler that is named",
                with(Case {
                    user: AUTOSCALER,
                    policy: TRUSTING,
                    ..LIVE
                }),
                Allowed,
            ),
            (
                "somebody else then",
                with(Case {
                    policy: TRUSTING,
                    ..LIVE
                }),
                Denied,
            ),
            (
                "with a reason",
                with(override_with(ignored.clone())),
                Allowed,
            ),
            (
                "without a reason",
                with(override_with(json!({ignore: "fencing-live-node"}))),
                Denied,
            ),
            (
                "with a reason where that is forbidden",
                with(Case {
                    policy: "defaults: {overrides: forbid}",
                    ..override_with(ignored.clone())
                }),
                Denied,
            ),
            (
                "where the policy warns",
                with(Case {
                    policy: "defaults: {rules: {fencing-live-node: warn}}",
                    ..LIVE
                }),
                Warned,
            ),
            (
                "where the policy exempts it",
                with(Case {
                    policy: "exemptions: [{kinds: [Node, VolumeAttachment], reason: spot nodes}]",
                    ..LIVE
                }),
                Allowed,
            ),
        ]);
    }
    cases.extend([
        (
            "an attachment of a shared volume",
            Case {
                modes: &["ReadWriteMany"],
                ..with(DeleteAttachment)
            },
            Allowed,
        ),
        (
            "a Node with an unreadable Lease, Ready",
            Case {
                facts: false,
                ..with(DeleteNode)
            },
            Denied,
        ),
        (
            "a Node with an unreadable Lease",
            Case {
                facts: false,
                ready: "Unknown",
                ..with(DeleteNode)
            },
            Warned,
        ),
        (
            "an attachment where nothing can be read",
            Case {
                facts: false,
                ..with(DeleteAttachment)
            },
            Warned,
        ),
        (
            "the same where the policy denies",
            Case {
                facts: false,
                policy: "defaults: {outcomes: {unknown: deny}, certainty: {assumed: deny}}",
                ..with(DeleteAttachment)
            },
            Denied,
        ),
    ]);
    cases
}

#[test]
fn every_request_gets_its_verdict() {
    let mut table = String::new();
    let mut wrong = Vec::new();
    for (name, case, expected) in cases() {
        let found = case.answer();
        let row = format!("{:?}: {name}: {}\n", case.request, found.decision.name());
        if found.decision != expected {
            wrong.push(format!("{row}  instead of {}", expected.name()));
        }
        table.push_str(&row);
    }
    print!("{table}");
    assert!(wrong.is_empty(), "{}", wrong.concat());
}

fn response(case: &Case) -> Value {
    let body: Value = serde_json::from_slice(&case.answer().body).unwrap();
    body["response"].clone()
}

#[test]
fn a_denial_says_what_was_seen_and_what_to_do() {
    let with = |request| Case { request, ..LIVE };
    let message = |case: &Case| {
        let response = response(case);
        let message = response.pointer("/status/message").and_then(Value::as_str);
        message.unwrap().to_owned()
    };
    let all: Vec<String> = [Taint, DeleteNode, DeleteAttachments]
        .map(|request| message(&with(request)))
        .into();
    insta::assert_snapshot!(all.join("\n\n"));

    let no_override = "defaults: {overrides: forbid}";
    let case = Case {
        policy: no_override,
        ..LIVE
    };
    assert!(!message(&case).contains("kubectl annotate"));
    let many = Case {
        attached: 5,
        ..LIVE
    };
    let denied = response(&many)["auditAnnotations"]["denied"].to_string();
    assert!(denied.contains("disk^2\\\" and 2 more"), "{denied}");
}

#[test]
fn an_override_is_kept_for_the_audit_log() {
    let annotations = json!({
        "multi-attach-guard.dev/ignore": "fencing-live-node",
        "multi-attach-guard.dev/reason": "pulled the plug",
    });
    for request in [Taint, DeleteNode, DeleteAttachment] {
        let response = response(&Case {
            request,
            annotations: annotations.clone(),
            ..LIVE
        });
        assert_eq!(
            response["auditAnnotations"]["suppressed"],
            "fencing-live-node (pulled the plug)"
        );
    }
}

#[test]
fn what_is_uncertain_is_said() {
    let case = Case {
        facts: false,
        ready: "Unknown",
        request: DeleteNode,
        ..LIVE
    };
    let response = response(&case);
    assert_eq!(
        response["warnings"],
        json!([
            "fencing-live-node: it is not known whether node n1 is off; 2 volumes are attached to it"
        ])
    );
}

/// The Lease is read where a denial hangs on it, and nowhere else.
#[test]
fn nothing_is_asked_where_nothing_hangs_on_it() {
    use engine::snapshot::{LiveLookups, Overlay, View};
    let questions = |case: &Case| {
        let body = case.review();
        let received = Received::read(body.as_bytes(), NOW.parse().unwrap()).unwrap();
        let mut cluster = Snapshot::new();
        for kind in [ObjectKind::Node, ObjectKind::Volume] {
            cluster.synced(kind);
        }
        cluster.apply(ObjectKind::Node.deserialize(case.node(&[])).unwrap());
        let volume = json!({"metadata": {"name": "pv-data"}, "spec": {"accessModes": case.modes}});
        cluster.apply(ObjectKind::Volume.deserialize(volume).unwrap());
        let mut asked = LiveLookups::default();
        let overlay = Overlay {
            lookups: Some(&asked),
            ..Overlay::NOTHING
        };
        let view = View::new(&cluster, &overlay);
        assert!(!matches!(view.node("n1"), Lookup::NotSynced));
        let _ = received.judge(Endpoint::Validate, view, &in_effect(case.policy));
        asked
            .take_pending()
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
    };
    let lease = ["Lease kube-node-lease/n1"];
    for request in [Taint, DeleteNode, DeleteAttachment] {
        let case = Case { request, ..LIVE };
        assert_eq!(questions(&case), lease, "{request:?}");
        for case in [
            Case {
                attached: 0,
                ..case.clone()
            },
            Case {
                user: CONTROLLER,
                ..case.clone()
            },
            Case {
                user: AUTOSCALER,
                policy: TRUSTING,
                ..case.clone()
            },
            Case {
                deleting: true,
                ..case.clone()
            },
        ] {
            assert_eq!(questions(&case), [""; 0], "{request:?}");
        }
    }
    for request in [Cordon, LabelTainted] {
        assert_eq!(questions(&Case { request, ..LIVE }), [""; 0], "{request:?}");
    }
    let shared = Case {
        modes: &["ReadWriteMany"],
        request: DeleteAttachment,
        ..LIVE
    };
    assert_eq!(questions(&shared), [""; 0]);
}
