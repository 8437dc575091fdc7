//! Each cause from plain facts, as the report for people shows it.

use serde::de::DeserializeSeed;
use serde_json::{Value, json};

use super::*;
use crate::printed;
use crate::safe::hostile;
use doctor::diagnosis::{CAUSES, DiagnosisInput, cases, explain, explanations};
use engine::analysis::{self, NodeAssumption};
use engine::model::object::{ObjectKind, ObjectRef};
use engine::model::observed::Observed;
use engine::snapshot::Snapshot;
use engine::storage::Catalog;

mod every_cause;
mod field_reports;
mod ways_out;

use every_cause::{every_cause, refused_attachment, two_pods};

/// The moment of every observation.
const NOW: &str = "2026-03-01T12:00:00Z";

/// A cluster of these objects, at [`NOW`].
#[derive(Clone, Default)]
struct World {
    objects: Vec<Value>,
}

impl World {
    /// Two nodes that are alive, and a claim `data` with its volume.
    fn new() -> Self {
        Self::default()
            .with(node("n1", "True"))
            .with(node("n2", "True"))
            .with(lease("n1", "2026-03-01T11:59:57Z"))
            .with(lease("n2", "2026-03-01T11:59:55Z"))
            .with(
                json!({"kind": "StorageClass", "apiVersion": "storage.k8s.io/v1",
                "metadata": {"name": "fast"}, "provisioner": "ebs.csi.aws.com"}),
            )
            .claim("data", "ReadWriteOnce")
    }

    fn with(mut self, object: Value) -> Self {
        self.objects.push(object);
        self
    }

    /// The same without the object of that kind and name.
    fn without(mut self, kind: &str, name: &str) -> Self {
        self.objects
            .retain(|it| it["kind"] != kind || it["metadata"]["name"] != name);
        self
    }

    fn claim(self, name: &str, mode: &str) -> Self {
        let volume = format!("pv-{name}");
        self.with(json!({"kind": "PersistentVolumeClaim", "apiVersion": "v1",
            "metadata": {"name": name, "namespace": "shop"},
            "spec": {"accessModes": [mode], "storageClassName": "fast", "volumeName": volume}}))
            .with(json!({"kind": "PersistentVolume", "apiVersion": "v1",
            "metadata": {"name": volume},
            "spec": {"accessModes": [mode], "csi": {"driver": "ebs.csi.aws.com"}}}))
    }

    fn deployment(self, name: &str, spec: &Value) -> Self {
        let mut object = json!({"kind": "Deployment", "apiVersion": "apps/v1",
            "metadata": {"name": name, "namespace": "shop"},
            "spec": {"replicas": 1, "selector": {"matchLabels": {"app": name}},
                "template": {"metadata": {"labels": {"app": name}}, "spec": {"volumes": [
                    {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}}}});
        json_patch::merge(&mut object["spec"], spec);
        if object["spec"]["strategy"].is_null() {
            // As the API server fills it in.
            object["spec"]["strategy"] = json!({"type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}});
        }
        self.with(object)
    }

    fn without_events(mut self) -> Self {
        self.objects.retain(|it| it["kind"] != "Event");
        self
    }

    /// The diagnosis, and that nothing in it is of another cause than `causes`.
    fn diagnosis(&self, causes: &[&str]) -> Diagnosis {
        let diagnosis = self.diagnose();
        let found: Vec<&str> = diagnosis.cases.iter().map(|case| case.cause).collect();
        assert_eq!(found, causes);
        let steps = diagnosis.cases.iter().flat_map(|case| &case.steps);
        for step in steps {
            let in_text = printed::between_backticks(&step.text);
            let all = step.command.iter().chain(&in_text);
            printed::assert_listed(all.map(String::as_str), "diagnose");
        }
        diagnosis
    }

    fn diagnose(&self) -> Diagnosis {
        let mut cluster = Snapshot::complete();
        let mut observed = Observed::default();
        for object in &self.objects {
            let text = |field: &str| object[field].as_str().unwrap_or_default();
            let read = |it: &Value| it.clone();
            match text("kind") {
                "Pod" => observed
                    .pods
                    .push(serde_json::from_value(read(object)).unwrap()),
                "Node" => observed
                    .nodes
                    .push(serde_json::from_value(read(object)).unwrap()),
                "Lease" => observed
                    .leases
                    .push(serde_json::from_value(read(object)).unwrap()),
                "Event" => observed
                    .events
                    .push(serde_json::from_value(read(object)).unwrap()),
                "VolumeAttachment" => observed
                    .attachments
                    .push(serde_json::from_value(read(object)).unwrap()),
                _ => {}
            }
            if let Some(kind) = ObjectKind::of_manifest(text("apiVersion"), text("kind")) {
                cluster.apply(kind.deserialize(object).unwrap());
            }
        }
        let facts = DiagnosisInput {
            objects: analysis::Facts {
                view: cluster.view(),
                catalog: Catalog::embedded().unwrap(),
                nodes: NodeAssumption::Auto,
            },
            observed: &observed,
            now: NOW.parse().unwrap(),
            kubectl: "kubectl",
        };
        let document = |(_, reference): &(ObjectKind, ObjectRef)| {
            let mut objects = self.objects.iter();
            let found = objects.find(|it| {
                it["kind"] == reference.kind.as_str()
                    && it["metadata"]["name"] == reference.name.as_str()
            });
            found.cloned()
        };
        Diagnosis {
            cases: cases(facts, |wanted| wanted.iter().map(document).collect()),
            ..Diagnosis::default()
        }
    }

    fn report(&self, cause: &str) -> String {
        text(&self.diagnosis(&[cause]))
    }
}

fn text(diagnosis: &Diagnosis) -> String {
    written(diagnosis, Format::Text)
}

fn written(diagnosis: &Diagnosis, format: Format) -> String {
    let mut out = Vec::new();
    write(diagnosis, format, Ways::All, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn node(name: &str, ready: &str) -> Value {
    json!({"kind": "Node", "apiVersion": "v1",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"conditions": [{"type": "Ready", "status": ready}]}})
}

fn lease(name: &str, renewed: &str) -> Value {
    json!({"kind": "Lease", "metadata": {"name": name}, "spec": {"renewTime": renewed}})
}

/// A pod of Deployment `app`, of the given revision, that uses claim `data`.
fn pod(app: &str, revision: &str, node: Option<&str>, phase: &str) -> Value {
    json!({"kind": "Pod", "apiVersion": "v1",
        "metadata": {"name": format!("{app}-{revision}-x"), "namespace": "shop",
            "labels": {"app": app, "pod-template-hash": revision},
            "creationTimestamp": "2026-03-01T11:56:40Z",
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet",
                "name": format!("{app}-{revision}"), "controller": true}]},
        "spec": {"nodeName": node, "volumes": [
            {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]},
        "status": {"phase": phase}})
}

/// The same with something else merged in.
fn but(mut object: Value, with: &Value) -> Value {
    json_patch::merge(&mut object, with);
    object
}

fn attachment(node: &str, attached: bool) -> Value {
    json!({"kind": "VolumeAttachment", "metadata": {"name": format!("csi-{node}")},
        "spec": {"nodeName": node, "source": {"persistentVolumeName": "pv-data"}},
        "status": {"attached": attached}})
}

fn event(pod: &str, message: &str) -> Value {
    json!({"kind": "Event", "reason": "FailedAttachVolume", "message": message,
        "involvedObject": {"kind": "Pod", "namespace": "shop", "name": pod}})
}

fn unschedulable(message: &str) -> Value {
    json!({"status": {"conditions": [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}]}})
}

/// The object of that kind and name with something merged in.
fn with(mut world: World, kind: &str, name: &str, further: &Value) -> World {
    let found = world
        .objects
        .iter_mut()
        .find(|it| it["kind"] == kind && it["metadata"]["name"] == name)
        .unwrap();
    json_patch::merge(found, further);
    world
}

/// A rollout of Deployment `web` from n1 to n2.
fn rollout() -> World {
    World::new()
        .deployment("web", &json!({}))
        .with(json!({"kind": "ReplicaSet", "apiVersion": "apps/v1",
            "metadata": {"name": "web-old", "namespace": "shop",
                "annotations": {"deployment.kubernetes.io/revision": "1"}}}))
        .with(pod("web", "old", Some("n1"), "Running"))
        .with(pod("web", "new", Some("n2"), "Pending"))
        .with(attachment("n1", true))
}

const AFFINITY: &str = "0/2 nodes are available: 1 node(s) were unschedulable, 2 node(s) didn't match pod affinity rules.";

/// A template whose pods must run where those of `app` run.
fn beside(app: &str) -> Value {
    json!({"spec": {"affinity": {"podAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [{
            "labelSelector": {"matchLabels": {"app": app}},
            "topologyKey": "kubernetes.io/hostname"}]}}}})
}

/// A pod that must run where pods like it run, after its node was cordoned.
fn drained() -> World {
    World::new()
        .without("Node", "n1")
        .with(but(
            node("n1", "True"),
            &json!({"spec": {"unschedulable": true}}),
        ))
        .deployment(
            "web",
            &json!({"strategy": {"type": "Recreate"}, "template": beside("web")}),
        )
        .with(but(
            pod("web", "a", None, "Pending"),
            &unschedulable(AFFINITY),
        ))
        .with(attachment("n1", true))
}

fn lost() -> World {
    rollout()
        .without("Node", "n1")
        .without("Lease", "n1")
        .without("Pod", "web-old-x")
        .with(but(
            node("n1", "Unknown"),
            &json!({"spec": {"taints": [{"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}]}}),
        ))
        .with(lease("n1", "2026-03-01T11:50:00Z"))
        .with(but(
            pod("web", "old", Some("n1"), "Running"),
            &json!({"metadata": {"deletionTimestamp": "2026-03-01T11:55:00Z"}}),
        ))
}

#[test]
fn each_cause_is_named_with_its_way_out() {
    let every = every_cause();
    for cause in CAUSES {
        let (_, world) = every
            .iter()
            .find(|(code, _)| *code == cause.code)
            .unwrap_or_else(|| panic!("{} has no case here", cause.code));
        insta::assert_snapshot!(cause.code, world.report(cause.code));
    }
}

/// The runbook's commands are those that are printed, and those are run by
/// `tests/diagnose`.
#[test]
fn the_runbook_shows_what_is_printed() {
    let runbook = include_str!("../../../../docs/runbook.md");
    let sections: Vec<(&str, &str)> = runbook
        .split("\n## ")
        .skip(1)
        .filter_map(|section| section.split_once('\n'))
        .collect();
    let (words, sections): (Vec<_>, Vec<_>) = sections
        .into_iter()
        .partition(|(title, _)| *title == "By the words of the error");
    assert_eq!(words.len(), 1);
    says_what_is_explained(words[0].1);
    let every = every_cause();
    for (code, section) in &sections {
        let (_, world) = every.iter().find(|(cause, _)| cause == code).unwrap();
        let diagnosis = world.diagnosis(&[code]);
        let blocks = |language: &str| {
            let opening = format!("```{language}\n");
            let blocks = section.split(&opening).skip(1);
            let blocks: Vec<_> = blocks.map(|it| it.split_once("```").unwrap().0).collect();
            blocks.concat()
        };
        let commands = diagnosis.cases[0].steps.iter();
        let commands: Vec<&str> = commands.filter_map(|it| it.command.as_deref()).collect();
        let shown = blocks("sh");
        let shown: Vec<&str> = shown.lines().collect();
        assert_eq!(shown, commands, "{code}");
        let report = text(&diagnosis);
        let said = blocks("text");
        assert!(
            report.contains(&said),
            "{code}: {said}\nis not in\n{report}"
        );
    }
    let codes: Vec<&str> = sections.iter().map(|(code, _)| *code).collect();
    assert_eq!(codes.len(), CAUSES.len(), "{codes:?}");
}

/// Where a heading of a page is found.
fn anchor(heading: &str) -> String {
    let letters = heading.to_lowercase().replace(' ', "-");
    letters.replace(|it: char| !it.is_alphanumeric() && !"-_".contains(it), "")
}

/// Each line that is explained has a section, with the explanation and the causes. A way out of
/// several lines stands at the first of them.
fn says_what_is_explained(words: &str) {
    let mut expected = String::new();
    let mut ways_out: Vec<(&str, &str)> = Vec::new();
    for known in explanations() {
        let in_text = printed::between_backticks(known.fix);
        let commands = known.look.iter().chain(&in_text);
        printed::assert_listed(commands.map(String::as_str), "diagnose --explain");
        let links = known
            .causes
            .iter()
            .map(|code| format!("[`{code}`](#{code})"));
        let links = Vec::from_iter(links).join(", ");
        let way_out = match ways_out.iter().find(|(fix, _)| *fix == known.fix) {
            Some((_, title)) => format!("The way out: [{title}](#{}).", anchor(title)),
            None => known.fix.to_owned(),
        };
        ways_out.push((known.fix, known.searched));
        expected += &format!(
            "### {}\n\n*{}*: {}\n\n{way_out}\n\nCauses: {links}.\n\n",
            known.searched, known.says, known.meaning
        );
    }
    let (before, there) = words.split_at(words.find("### ").unwrap_or(words.len()));
    if std::env::var_os("MESSAGES").is_some_and(|it| it == "write") {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/runbook.md");
        let text = std::fs::read_to_string(page).unwrap();
        std::fs::write(page, text.replace(words, &format!("{before}{expected}"))).unwrap();
        return;
    }
    assert_eq!(
        there.trim(),
        expected.trim(),
        "docs/runbook.md is not what crates/doctor/src/messages.yaml says; MESSAGES=write cargo test -p report runbook writes it"
    );
}

/// Programs get what people get.
#[test]
fn explanations_are_written_in_each_format() {
    let line = "Waiting for detach for volume \"pv-data\" Volume is already used by pod(s) web-1";
    let known = explain(line).unwrap();
    let write = |format| {
        let mut out = Vec::new();
        explanation::write(&known, format, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    insta::assert_snapshot!("explanation", write(Format::Text));
    let json: Value = serde_json::from_str(&write(Format::Json)).unwrap();
    assert_eq!(json["causes"][0], "rollout-overlap");
}

/// What differs from the cases above, and what becomes of it.
#[test]
fn what_decides_between_causes() {
    let reads = |world: World, cause: &str, sentence: &str| {
        let report = world.report(cause).replace('\n', " ");
        let report: Vec<&str> = report.split_whitespace().collect();
        let report = report.join(" ");
        assert!(
            report.contains(sentence),
            "{sentence:?} is not in\n{report}"
        );
    };
    let ending = json!({"metadata": {"deletionTimestamp": "2026-03-01T11:59:00Z"}});
    reads(
        rollout()
            .without("Pod", "web-old-x")
            .with(but(pod("web", "old", Some("n1"), "Running"), &ending)),
        "delay",
        "which is terminating and should be gone shortly",
    );
    reads(
        rollout().without("Pod", "web-old-x"),
        "delay",
        "No pod seems to use the volume on node n1",
    );
    reads(
        rollout()
            .without("Pod", "web-old-x")
            .without("Node", "n1")
            .with(node("n1", "False")),
        "delay",
        "that node is not Ready",
    );
    reads(
        lost().without("Node", "n1"),
        "node-lost",
        "there is no such Node any more",
    );
    reads(
        lost().without("Node", "n1").with(but(
            node("n1", "Unknown"),
            &json!({"spec": {"taints": [{"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}]}}),
        )),
        "node-lost",
        "lets the volume go within a minute",
    );
    // Whoever has deleted the old pod by force has let Kubernetes do the same.
    reads(
        lost().without("Pod", "web-old-x"),
        "node-lost",
        "detaches the volume by force 6 minutes after the last one went, even if the machine still writes to it",
    );
    let everywhere = json!({"spec": {"tolerations": [{"operator": "Exists"}]}});
    let tolerant = |world: World| {
        world
            .without("Pod", "web-old-x")
            .with(but(pod("web", "old", Some("n1"), "Running"), &everywhere))
    };
    reads(
        tolerant(lost()),
        "node-lost",
        "kubectl -n shop delete pod/web-old-x --wait=false",
    );
    reads(
        tolerant(lost().without("Node", "n1").with(but(
            node("n1", "Unknown"),
            &json!({"spec": {"taints": [{"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}]}}),
        ))),
        "node-lost",
        "tolerates it and is not terminating, so that it keeps the volume",
    );
    reads(
        lost().without("Node", "n1").with(but(
            node("n1", "Unknown"),
            &json!({"spec": {"taints": [{"key": "node.cloudprovider.kubernetes.io/shutdown", "effect": "NoSchedule"}]}}),
        )),
        "node-lost",
        "says that the cloud has shut it down",
    );
    // What Kubernetes has let go of, no taint brings on.
    let refused = || {
        but(
            attachment("n1", true),
            &json!({"metadata": {"deletionTimestamp": "2026-03-01T09:00:00Z"},
                "status": {"detachError": {"message": "no such machine"}}}),
        )
    };
    let let_go = || {
        lost()
            .without("Pod", "web-old-x")
            .without("VolumeAttachment", "csi-n1")
            .with(refused())
    };
    reads(
        let_go(),
        "driver-error",
        "could not detach the volume from node n1",
    );
    reads(
        let_go().without("Node", "n1"),
        "driver-error",
        "If the console shows that the disk is attached to no machine",
    );
    // On a node that is alive it is its grace period that counts.
    let overdue = but(
        pod("web", "old", Some("n1"), "Running"),
        &json!({"metadata": {
            "deletionTimestamp": "2026-03-01T07:00:00Z",
            "ownerReferences": [{"kind": "StatefulSet", "name": "web", "controller": true}],
        }}),
    );
    let overdue = World::new().with(overdue).with(attachment("n1", true));
    reads(
        overdue,
        "stalled",
        "which is terminating and should have been gone 5 h ago: its containers, a finalizer or its kubelet hold it. The next pod is not created until it is gone.",
    );
    // A StatefulSet makes no other pod of that name before the old one is gone.
    let set = json!({"metadata": {
        "deletionTimestamp": "2026-03-01T11:55:00Z",
        "ownerReferences": [{"kind": "StatefulSet", "name": "web", "controller": true}],
    }});
    reads(
        lost()
            .without("Pod", "web-old-x")
            .without("Pod", "web-new-x")
            .with(but(pod("web", "old", Some("n1"), "Running"), &set)),
        "node-lost",
        "the next one is not created until it is gone",
    );
    // A Deployment that is recreated makes none before all old ones are gone.
    let recreated = || {
        let recreate = json!({"strategy": {"type": "Recreate"}});
        lost()
            .without("Deployment", "web")
            .deployment("web", &recreate)
    };
    reads(
        recreated().without("Pod", "web-new-x"),
        "node-lost",
        "the next one is not created until it is gone",
    );
    // Of one that was evicted, the successor is there at once, and waits itself.
    reads(recreated(), "node-lost", "1 pod waits for a volume");
    // The pods of a lost node count for affinity until they are gone.
    reads(
        lost().without("Pod", "web-new-x").with(but(
            pod("web", "new", None, "Pending"),
            &unschedulable(AFFINITY),
        )),
        "node-lost",
        "kubectl taint node n1 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute",
    );
    // A pod that fits on no node of pods like it, which stay.
    reads(
        rollout().without("Pod", "web-new-x").with(but(
            pod("web", "new", None, "Pending"),
            &unschedulable(AFFINITY),
        )),
        "rollout-overlap",
        "kubectl -n shop patch deployment/web --type=json -p '[{\"op\":\"replace\",\"path\":\"/spec/strategy\",\"value\":{\"type\":\"Recreate\"}}]'",
    );
    // The scheduler itself keeps a second pod off such a claim.
    reads(
        rollout()
            .without("PersistentVolumeClaim", "data")
            .claim("data", "ReadWriteOncePod")
            .without("Pod", "web-new-x")
            .with(but(
                pod("web", "new", None, "Pending"),
                &unschedulable("0/2 nodes are available: 2 node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod."),
            )),
        "rollout-overlap",
        "for one pod at a time (ReadWriteOncePod)",
    );
    // The attacher of the driver does not run.
    reads(
        rollout()
            .without("Pod", "web-old-x")
            .without("VolumeAttachment", "csi-n1")
            .with(attachment("n2", false))
            .with(event("web-new-x", "AttachVolume.Attach failed for volume \"pv-data\" : timed out waiting for external-attacher of ebs.csi.aws.com CSI driver to attach volume")),
        "driver-error",
        "timed out waiting for external-attacher",
    );
    // Without CSI there are no VolumeAttachments: the pods show it.
    reads(
        rollout().without("VolumeAttachment", "csi-n1"),
        "rollout-overlap",
        "kubectl -n shop rollout undo deployment/web --to-revision=1",
    );
    // Both texts of the attach-detach controller, and nothing else to be seen.
    reads(
        rollout()
            .without("VolumeAttachment", "csi-n1")
            .without("Pod", "web-old-x")
            .with(event("web-new-x", "Multi-Attach error for volume \"pv-data\" Volume is already exclusively attached to one node and can't be attached to another")),
        "delay",
        "it is yet to be attached",
    );
    reads(
        rollout().with(but(
            attachment("n2", false),
            &json!({"status": {"attachError": {"message": "no such\u{1b}[31mdisk"}}}),
        )),
        "driver-error",
        r#"could not attach the volume to node n2: "no such\u{1b}[31mdisk""#,
    );
    // Who waits has nothing, whatever comes first in the list.
    let third = but(
        pod("aux", "a", Some("n2"), "Pending"),
        &json!({"metadata": {"creationTimestamp": "2026-03-01T11:50:00Z"}}),
    );
    let shared = World::new()
        .with(third)
        .with(pod("backup", "b", Some("n2"), "Pending"))
        .with(pod("web", "a", Some("n1"), "Running"))
        .with(attachment("n1", true));
    for case in shared.diagnosis(&["shared-claim"; 2]).cases {
        assert!(
            case.because.contains("pod web-a-x of Deployment web"),
            "{}",
            case.because
        );
        assert_eq!(case.holders.len(), 1, "{case:?}");
    }
    // Nor do two new pods wait for each other.
    let two = json!({"replicas": 4, "strategy": {"type": "RollingUpdate",
        "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}}});
    let second = but(
        pod("web", "new", Some("n2"), "Pending"),
        &json!({"metadata": {"name": "web-new-y"}}),
    );
    let two = rollout()
        .without("Deployment", "web")
        .deployment("web", &two);
    reads(
        two.with(second),
        "rollout-overlap",
        "2 pods wait for a volume",
    );
    // The node has it, and cannot mount it.
    let mount = |world: World, message: &str| {
        let mut event = event("web-new-x", message);
        event["reason"] = "FailedMount".into();
        world
            .without("Pod", "web-old-x")
            .without("VolumeAttachment", "csi-n1")
            .with(attachment("n2", true))
            .with(event)
    };
    reads(
        mount(
            rollout(),
            "MountVolume.MountDevice failed for volume \"pv-data\" : rpc error: code = Internal desc = rbd image replicapool/csi-vol-1 is still being used",
        ),
        "driver-error",
        "The volume is attached, but the kubelet could not mount it on node n2",
    );
    // What was said of an earlier pod of that name is of no account.
    let mut earlier = event(
        "web-new-x",
        "AttachVolume.Attach failed for volume \"pv-data\" : no such disk",
    );
    earlier["involvedObject"]["uid"] = "0b6d9a4e-3a5c-4b8e-9a43-6f1f0e6c2d11".into();
    let this = json!({"metadata": {"uid": "1b6d9a4e-3a5c-4b8e-9a43-6f1f0e6c2d11"}});
    reads(
        World::new()
            .with(but(pod("web", "new", Some("n2"), "Pending"), &this))
            .with(earlier),
        "delay",
        "it is yet to be attached",
    );
    // What was said last counts, not what is listed first.
    let at = |time: &str, message: &str| {
        but(event("web-new-x", message), &json!({"lastTimestamp": time}))
    };
    reads(
        World::new()
            .with(pod("web", "new", Some("n2"), "Pending"))
            .with(at("2026-03-01T11:57:00Z", "Multi-Attach error for volume \"pv-data\" Volume is already used by pod(s) web-old-x"))
            .with(at("2026-03-01T11:59:00Z", "AttachVolume.Attach failed for volume \"pv-data\" : timed out waiting for external-attacher")),
        "driver-error",
        "timed out waiting for external-attacher",
    );
    // It was on this very node, and is on its way off it.
    reads(
        World::new()
            .with(pod("web", "new", Some("n2"), "Pending"))
            .with(but(
                attachment("n2", true),
                &json!({"metadata": {"deletionTimestamp": "2026-03-01T11:59:30Z"}}),
            ))
            .with(event("web-new-x", "AttachVolume.Attach failed for volume \"pv-data\" : volume attachment is being deleted")),
        "delay",
        "The driver is detaching the volume from node n2",
    );
    // A healthy node from which nothing comes.
    reads(
        rollout()
            .without("Pod", "web-old-x")
            .without("Pod", "web-new-x")
            .with(but(
                pod("web", "new", Some("n2"), "Pending"),
                &json!({"metadata": {"creationTimestamp": "2026-02-27T12:00:00Z"}}),
            )),
        "stalled",
        "the kubelet of n1 has not unmounted it",
    );
    reads(
        World::new()
            .with(pod("web", "new", Some("n2"), "Pending"))
            .with(event("web-new-x", "Multi-Attach error for volume \"pv-data\" Volume is already used by 1 pod(s) in different namespaces")),
        "same-disk",
        "another PersistentVolume stands for the same disk",
    );
    // Somebody has taken the attachment away by hand, and the pod still runs there.
    reads(
        rollout()
            .without("Node", "n1")
            .without("Lease", "n1")
            .without("VolumeAttachment", "csi-n1")
            .with(node("n1", "Unknown"))
            .with(lease("n1", "2026-03-01T11:45:00Z"))
            .with(refused()),
        "node-lost",
        "must be powered off",
    );
    // A claim for one pod that another of the node has, as the kubelet says it.
    let alone = rollout()
        .without("PersistentVolumeClaim", "data")
        .claim("data", "ReadWriteOncePod")
        .without("Pod", "web-old-x")
        .with(pod("web", "old", Some("n2"), "Running"));
    let mut in_use = event(
        "web-new-x",
        "MountVolume.SetUp failed for volume \"pv-data\" : volume uses the ReadWriteOncePod access mode and is already in use by another pod",
    );
    in_use["reason"] = "FailedMount".into();
    reads(
        alone
            .without("VolumeAttachment", "csi-n1")
            .with(attachment("n2", true))
            .with(in_use),
        "rollout-overlap",
        "for one pod at a time",
    );
    // Longer than Kubernetes waits before it detaches by force.
    reads(
        rollout()
            .without("Pod", "web-old-x")
            .without("Pod", "web-new-x")
            .without("Node", "n1")
            .with(node("n1", "False"))
            .with(but(
                pod("web", "new", Some("n2"), "Pending"),
                &json!({"metadata": {"creationTimestamp": "2026-02-27T12:00:00Z"}}),
            )),
        "stalled",
        "--disable-force-detach-on-timeout",
    );
    // A pod that ends late on the node that the new one is on keeps nothing from it.
    reads(
        World::new()
            .with(but(
                pod("web", "old", Some("n2"), "Running"),
                &json!({"metadata": {"deletionTimestamp": "2026-03-01T11:50:00Z"}}),
            ))
            .with(pod("web", "new", Some("n2"), "Pending"))
            .with(but(
                attachment("n1", true),
                &json!({"metadata": {"deletionTimestamp": "2026-03-01T11:59:40Z"}}),
            )),
        "delay",
        "So far the pod has waited",
    );
    for (message, advice) in [
        (
            "rpc error: code = Internal desc = exceeded maximum number of attempts, 3, RequestLimitExceeded",
            "A controller that does not run",
        ),
        (
            "rpc error: code = ResourceExhausted desc = max number of volumes reached",
            "Cordon it and delete the pod",
        ),
        (
            "volume is attached to the wrong droplet(4711)",
            "Find that machine in the console",
        ),
        ("no credentials", "A controller that does not run"),
    ] {
        let failed = but(
            attachment("n2", false),
            &json!({"status": {"attachError": {"message": message}}}),
        );
        reads(
            World::new()
                .with(pod("web", "new", Some("n2"), "Pending"))
                .with(failed),
            "driver-error",
            advice,
        );
    }
    // What cannot be detached is the reason why it cannot be attached.
    reads(
        World::new()
            .deployment("web", &json!({"strategy": {"type": "Recreate"}}))
            .with(pod("web", "new", Some("n2"), "Pending"))
            .with(but(
                attachment("n1", true),
                &json!({"metadata": {"deletionTimestamp": "2026-03-01T11:58:00Z"},
                    "status": {"detachError": {"message": "volume is busy"}}}),
            ))
            .with(but(
                attachment("n2", false),
                &json!({"status": {"attachError": {"message": "already attached to n1"}}}),
            )),
        "driver-error",
        "could not detach the volume from node n1: \"volume is busy\"",
    );
    // Two pods that start at once can both get a VolumeAttachment; the driver refuses one.
    reads(
        two_pods(World::new().deployment("web", &json!({"replicas": 2})))
            .with(refused_attachment("already attached to n1")),
        "too-many-replicas",
        "claim \"data\" can be attached to one node at a time",
    );
}

#[test]
fn what_does_not_wait_for_a_volume_is_not_reported() {
    let mounted = json!({"status": {"containerStatuses":
        [{"state": {"waiting": {"reason": "ImagePullBackOff"}}}]}});
    let worlds = [
        ("all runs", rollout().without("Pod", "web-new-x")),
        (
            "another reason to wait",
            rollout()
                .without("Pod", "web-new-x")
                .with(but(pod("web", "new", Some("n2"), "Pending"), &mounted)),
        ),
        (
            "a pod that ends",
            rollout().without("Pod", "web-new-x").with(but(
                pod("web", "new", Some("n2"), "Pending"),
                &json!({"metadata": {"deletionTimestamp": NOW}}),
            )),
        ),
        (
            "a pod of a StatefulSet that ends on a node that is alive",
            World::new().with(attachment("n1", true)).with(but(
                pod("web", "old", Some("n1"), "Running"),
                &json!({"metadata": {
                    "deletionTimestamp": "2026-03-01T11:59:30Z",
                    "ownerReferences": [{"kind": "StatefulSet", "name": "web", "controller": true}],
                }}),
            )),
        ),
        (
            "a pod that is over keeps nothing",
            World::new().with(pod("web", "old", Some("n1"), "Succeeded")),
        ),
    ];
    for (name, world) in worlds {
        let report = text(&world.diagnosis(&[]));
        assert_eq!(report, "No pod waits for a volume.\n", "{name}");
    }
}

/// Node clocks that are wrong make no node lost.
#[test]
fn leases_are_judged_by_the_clocks_of_the_nodes() {
    for (n1, n2, cause) in [
        (
            "2026-03-01T10:00:00Z",
            "2026-03-01T10:00:05Z",
            "rollout-overlap",
        ),
        (
            "2026-03-01T14:00:00Z",
            "2026-03-01T14:00:05Z",
            "rollout-overlap",
        ),
    ] {
        let world = rollout()
            .without("Lease", "n1")
            .without("Lease", "n2")
            .with(lease("n1", n1))
            .with(lease("n2", n2));
        assert!(world.report(cause).contains("Ready, Lease 5 s old"), "{n1}");
    }
    // An hour ahead, and silent for ten minutes of it.
    let world = lost()
        .without("Lease", "n1")
        .without("Lease", "n2")
        .with(lease("n1", "2026-03-01T12:50:00Z"))
        .with(lease("n2", "2026-03-01T13:00:00Z"));
    assert!(world.report("node-lost").contains("LOST, Lease 10 min old"));
}

#[test]
fn many_cases_are_summarised_by_cause() {
    let mut world = World::new();
    for number in 0..2000 {
        let claim = format!("data-{number}");
        let app = format!("web{number}");
        let volumes = json!({"spec": {"volumes": [
            {"name": "v", "persistentVolumeClaim": {"claimName": claim}}]}});
        world = world
            .claim(&claim, "ReadWriteOnce")
            .with(but(pod(&app, "old", Some("n1"), "Running"), &volumes))
            .with(but(pod(&app, "new", Some("n2"), "Pending"), &volumes));
    }
    let report = text(&world.diagnosis(&["rollout-overlap"; 2000]));
    assert!(
        report.starts_with(
            "2000 pods wait for 2000 volumes.\n\n    2000 pods in 2000 cases   The rollout starts"
        ),
        "{report}"
    );
    assert!(report.lines().count() < 60, "{}", report.lines().count());
}

/// Names and messages are whatever drivers, nodes and users wrote.
#[test]
fn nothing_commands_a_terminal_or_a_pipeline() {
    let spoilt = [
        "name",
        "claimName",
        "nodeName",
        "volumeName",
        "persistentVolumeName",
        "message",
        "storageClassName",
        "key",
        "value",
        "namespace",
    ];
    for (cause, mut world) in every_cause() {
        for object in &mut world.objects {
            hostile::spoil(object, &spoilt);
        }
        let mut diagnosis = world.diagnose();
        assert!(!diagnosis.cases.is_empty(), "{cause}");
        diagnosis.open.push(hostile::TEXT.to_owned());
        diagnosis.notes.push(hostile::TEXT.to_owned());
        for format in [Format::Text, Format::Json] {
            hostile::assert_safe(&written(&diagnosis, format));
        }
    }
    let line = format!(
        "Multi-Attach error for volume \"{0}\" Volume is already used by pod(s) {0}",
        hostile::TEXT
    );
    let known = explain(&line).unwrap();
    for format in [Format::Text, Format::Json] {
        let mut out = Vec::new();
        explanation::write(&known, format, &mut out).unwrap();
        hostile::assert_safe(&String::from_utf8(out).unwrap());
    }
}

#[test]
fn programs_and_people_are_told_the_same() {
    let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    for (cause, world) in every_cause() {
        let diagnosis = world.diagnosis(&[cause]);
        let json: Value = serde_json::from_str(&written(&diagnosis, Format::Json)).unwrap();
        assert_eq!(json["cases"][0]["cause"], cause);
        assert_eq!(json["cases"][0]["volume"]["claim"], "data");
        let text = one_line(&written(&diagnosis, Format::Text));
        for step in json["cases"][0]["steps"].as_array().unwrap() {
            let said = step["command"].as_str().or(step["text"].as_str()).unwrap();
            assert!(
                text.contains(&one_line(said)),
                "{cause}: {said}\nnot in\n{text}"
            );
        }
    }
}

/// Whoever looks for the way out reads one screen.
#[test]
fn a_case_in_brief_has_one_way_out_and_at_most_twenty_lines() {
    for (cause, world) in every_cause() {
        let mut diagnosis = world.diagnose();
        diagnosis.cases.retain(|case| case.cause == cause);
        diagnosis.cases.truncate(1);
        let mut out = Vec::new();
        write(&diagnosis, Format::Text, Ways::Safest, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let case = text.split("\nNot seen:").next().unwrap_or_default();
        let case = case.split("\nTo be known:").next().unwrap_or_default();
        assert!(case.lines().count() <= 20, "{cause}:\n{text}");
        let steps = &diagnosis.cases[0].steps;
        let way_out = steps
            .iter()
            .find(|it| it.purpose == doctor::diagnosis::Purpose::WayOut);
        if let Some(command) = way_out.and_then(|it| it.command.as_ref()) {
            assert!(text.contains(command.as_str()), "{cause}:\n{text}");
        }
    }
}
