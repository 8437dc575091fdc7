//! Tests of each cause with plain facts, through the report for people. The facts are in
//! `tests/cases.yaml`.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde::de::{DeserializeOwned, DeserializeSeed};
use serde_json::{Map, Value, json};

use super::*;
use crate::Width;
use crate::printed;
use crate::safe::hostile;
use crate::words::folded;
use doctor::diagnosis::{
    CAUSES, DiagnosisInput, Explained, Purpose, Remark, SuggestedAction, cases, explain,
    explanations, node, remarks,
};
use engine::analysis::{self, NodeAssumption};
use engine::model::object::{Object, ObjectKind, ObjectRef};
use engine::model::observed::Observed;
use engine::model::server_version::ServerVersion;
use engine::model::workload::{Workload, WorkloadKind};
use engine::remedy::REMEDIES;
use engine::snapshot::Snapshot;
use engine::storage::Catalog;

/// The time of every observation.
const NOW: &str = "2026-03-01T12:00:00Z";

/// Changes to the objects of a cluster, by kind and name.
type Changes = Map<String, Value>;

/// The content of `tests/cases.yaml`.
#[derive(Deserialize)]
struct Written {
    clusters: BTreeMap<String, Changes>,
    cases: Vec<Case>,
}

/// The expected report for a cluster with some changes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    #[serde(rename = "in")]
    cluster: String,
    #[serde(default, rename = "is")]
    title: String,
    #[serde(default, rename = "where")]
    changes: Changes,
    /// The cause of the only case, or the causes of all cases.
    cause: Value,
    /// Sentences that the report contains, and texts that it does not contain.
    #[serde(default)]
    says: Vec<String>,
    #[serde(default)]
    silent: Vec<String>,
    /// Texts that the reason of each case contains, and the number of pods that hold its volume.
    #[serde(default)]
    explains: Vec<String>,
    holders: Option<usize>,
    /// All commands that are a way out, or only the first one; the commands before and after them.
    ways: Option<Vec<String>>,
    first: Option<String>,
    before: Option<Vec<String>>,
    afterwards: Option<Vec<String>>,
}

impl Written {
    fn read() -> Self {
        let text = include_str!("tests/cases.yaml");
        serde_saphyr::from_str_with_options(text, serde_saphyr::options! { budget: None }).unwrap()
    }

    fn cluster(&self, name: &str) -> Cluster {
        let changes = &self.clusters[name];
        let base = match changes.get("from").and_then(Value::as_str) {
            Some(base) => self.cluster(base),
            None => Cluster::default(),
        };
        base.but(changes)
    }

    /// One cluster for each cause.
    fn every_cause(&self) -> Vec<(&'static str, Cluster)> {
        CAUSES.iter().map(|cause| (cause.code.as_str(), self.cluster(&cause.code))).collect()
    }
}

/// Reads the cluster with that name.
fn cluster(name: &str) -> Cluster {
    Written::read().cluster(name)
}

fn every_cause() -> Vec<(&'static str, Cluster)> {
    Written::read().every_cause()
}

/// The objects of a cluster at [`NOW`], by kind and name.
#[derive(Clone, Default)]
struct Cluster {
    objects: Map<String, Value>,
    server: ServerVersion,
}

impl Cluster {
    fn but(mut self, changes: &Changes) -> Self {
        for (key, words) in changes.iter().filter(|(key, _)| *key != "from") {
            if key == "server" {
                (self.server, _) = ServerVersion::read(words.as_str().unwrap());
            } else if words.is_null() {
                assert!(self.objects.remove(key).is_some(), "there is no {key}");
            } else {
                let (kind, name) = key.split_once(' ').unwrap();
                let object = self.objects.entry(key).or_insert_with(|| made(kind, name));
                applied(object, words);
            }
        }
        self
    }

    /// The same cluster with the objects of such a map.
    fn with(self, changes: Value) -> Self {
        self.but(&serde_json::from_value(changes).unwrap())
    }

    /// The diagnosis, after a check that its cases have exactly the causes `causes`.
    fn diagnosis(&self, causes: &[&str]) -> Diagnosis {
        let diagnosis = self.diagnose();
        let found: Vec<&str> = diagnosis.cases.iter().map(|case| case.cause).collect();
        assert_eq!(found, causes);
        for case in &diagnosis.cases {
            assert!(!case.explanation.is_empty(), "{case:#?}");
        }
        let steps = diagnosis.cases.iter().flat_map(|case| &case.steps);
        for step in steps {
            let in_text = printed::between_backticks(&step.text);
            let all = step.command.iter().chain(&in_text);
            printed::assert_listed(all.map(String::as_str), "diagnose");
        }
        diagnosis
    }

    /// The objects as the API server completes them.
    fn completed(&self) -> Map<String, Value> {
        let mut objects = self.objects.clone();
        for object in objects.values_mut() {
            if object["kind"] == "Deployment" && object["spec"]["strategy"].is_null() {
                // The API server fills in the strategy in the same way.
                object["spec"]["strategy"] = json!({"type": "RollingUpdate",
                    "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}});
            }
        }
        objects
    }

    fn diagnose(&self) -> Diagnosis {
        let objects = self.completed();
        let document = |reference: &ObjectRef| {
            let found = objects.values().find(|object| {
                object["kind"] == reference.kind.as_str()
                    && object["metadata"]["name"] == reference.name.as_str()
            });
            Some((reference.clone(), found?.clone()))
        };
        self.observe(|facts| Diagnosis {
            cases: cases(facts, |wanted| wanted.iter().filter_map(document).collect()),
            ..Diagnosis::default()
        })
    }

    /// The answer of `ask` to what is seen of the cluster.
    fn observe<T>(&self, ask: impl FnOnce(DiagnosisInput<'_>) -> T) -> T {
        fn of<T: DeserializeOwned>(objects: &Map<String, Value>, kind: &str) -> Vec<T> {
            objects
                .values()
                .filter(|object| object["kind"] == kind)
                .cloned()
                .map(|object| serde_json::from_value(object).unwrap())
                .collect()
        }
        let objects = self.completed();
        let observed = Observed {
            pods: of(&objects, "Pod"),
            nodes: of(&objects, "Node"),
            leases: of(&objects, "Lease"),
            events: of(&objects, "Event"),
            attachments: of(&objects, "VolumeAttachment"),
            replica_sets: objects.values().filter_map(replica_set).collect(),
            ..Observed::default()
        };
        let mut cluster = Snapshot::complete();
        cluster.server = self.server;
        for object in objects.values() {
            let text = |field: &str| object[field].as_str().unwrap_or_default();
            if let Some(kind) = ObjectKind::of_manifest(text("apiVersion"), text("kind")) {
                cluster.apply(kind.deserialize(object).unwrap());
            }
        }
        ask(DiagnosisInput {
            objects: analysis::Facts {
                view: cluster.view(),
                catalog: Catalog::embedded().unwrap(),
                nodes: NodeAssumption::Auto,
                rule: None,
            },
            observed: &observed,
            now: NOW.parse().unwrap(),
            kubectl: "kubectl",
        })
    }

    /// The steps of the only case.
    fn steps(&self, cause: &str) -> Vec<SuggestedAction> {
        self.diagnosis(&[cause]).cases.remove(0).steps
    }
}

/// The object, if it is a ReplicaSet.
fn replica_set(object: &Value) -> Option<Workload> {
    let kind = WorkloadKind::ReplicaSet;
    match ObjectKind::Workload(kind).deserialize(object) {
        Ok(Object::Workload(set)) if object["kind"] == kind.name() => Some(set),
        _ => None,
    }
}

/// An object of that kind and name, in the state that it has in most cases.
fn made(kind: &str, name: &str) -> Value {
    let claims =
        |claim: &str| json!([{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]);
    let template =
        json!({"metadata": {"labels": {"app": name}}, "spec": {"volumes": claims("data")}});
    let (api_version, object) = match kind {
        "Node" => (
            "v1",
            json!({"metadata": {"labels": {"kubernetes.io/hostname": name}},
                "status": {"conditions": [{"type": "Ready", "status": "True"}]}}),
        ),
        "Lease" => {
            ("coordination.k8s.io/v1", json!({"spec": {"renewTime": "2026-03-01T11:59:57Z"}}))
        }
        "StorageClass" => ("storage.k8s.io/v1", json!({"provisioner": "ebs.csi.aws.com"})),
        "PersistentVolumeClaim" => (
            "v1",
            json!({"spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "fast",
                "volumeName": format!("pv-{name}")}}),
        ),
        "PersistentVolume" => (
            "v1",
            json!({"spec": {"accessModes": ["ReadWriteOnce"], "csi": {"driver": "ebs.csi.aws.com"}}}),
        ),
        "Deployment" => (
            "apps/v1",
            json!({"spec": {"replicas": 1, "selector": {"matchLabels": {"app": name}},
                "template": template}}),
        ),
        "ReplicaSet" => ("apps/v1", json!({"spec": {"replicas": 1}})),
        "StatefulSet" => {
            ("apps/v1", json!({"spec": {"replicas": 3, "template": {"spec": template["spec"]}}}))
        }
        "Job" => ("batch/v1", json!({"spec": {"template": {"spec": template["spec"]}}})),
        "CronJob" => (
            "batch/v1",
            json!({"spec": {"jobTemplate": {"spec": {"template": {"spec": template["spec"]}}}}}),
        ),
        "HorizontalPodAutoscaler" => (
            "autoscaling/v2",
            json!({"spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment",
                "name": "web"}}}),
        ),
        // The pod belongs to Deployment `web` and its revision `old`: `web-old-x`.
        "Pod" => {
            let mut parts = name.split('-');
            let (app, revision) = (parts.next().unwrap(), parts.next().unwrap_or_default());
            let owner = format!("apps/v1 ReplicaSet {app}-{revision}");
            let mut pod = json!({"metadata": {"labels": {"app": app},
                    "creationTimestamp": "2026-03-01T11:56:40Z"},
                "spec": {"volumes": claims("data")}, "status": {"phase": "Pending"}});
            applied(&mut pod, &json!({"owner": owner}));
            pod["metadata"]["labels"]["pod-template-hash"] = revision.into();
            ("v1", pod)
        }
        // The attachment is for volume `pv-data`, to node `n1`: `csi-n1`.
        "VolumeAttachment" => (
            "storage.k8s.io/v1",
            json!({"spec": {"nodeName": name.split('-').nth(1),
                    "source": {"persistentVolumeName": "pv-data"}},
                "status": {"attached": true}}),
        ),
        // The Event is about the pod with its name; a suffix after a slash distinguishes Events.
        "Event" => (
            "v1",
            json!({"reason": "FailedAttachVolume", "involvedObject":
                {"kind": "Pod", "namespace": "shop", "name": name.split('/').next()}}),
        ),
        "CSIDriver" => ("storage.k8s.io/v1", json!({})),
        "Namespace" => ("v1", json!({})),
        other => panic!("no object of kind {other} is made here"),
    };
    let mut whole = json!({"kind": kind, "apiVersion": api_version, "metadata": {"name": name}});
    let cluster_wide = ["Node", "Lease", "StorageClass", "PersistentVolume", "VolumeAttachment"];
    if !cluster_wide.contains(&kind) && !matches!(kind, "CSIDriver" | "Namespace") {
        whole["metadata"]["namespace"] = "shop".into();
    }
    json_patch::merge(&mut whole, &object);
    whole
}

/// Merges words into an object: shorthands, which are handled here, and plain fields.
fn applied(object: &mut Value, words: &Value) {
    let Some(words) = words.as_object() else {
        object["message"] = words.clone();
        return;
    };
    let time = |at: &Value| match at.as_str() {
        Some(at) if at.len() == 8 => format!("2026-03-01T{at}Z").into(),
        _ => at.clone(),
    };
    for (word, value) in words {
        let text = value.as_str().unwrap_or_default();
        let merged = match word.as_str() {
            "node" => json!({"spec": {"nodeName": value}}),
            "phase" => json!({"status": {"phase": value}}),
            "mode" => json!({"spec": {"accessModes": [value]}}),
            "ending" => json!({"metadata": {"deletionTimestamp": time(value)}}),
            "made" => json!({"metadata": {"creationTimestamp": time(value)}}),
            "renewed" => json!({"spec": {"renewTime": time(value)}}),
            "annotations" => json!({"metadata": {"annotations": value}}),
            "template" => json!({"spec": {"template": {"spec": value}}}),
            "attachError" | "detachError" => json!({"status": {word.as_str(): {"message": value}}}),
            "ready" => json!({"status": {"conditions": [{"type": "Ready", "status": value}]}}),
            "unschedulable" => json!({"status": {"conditions": [{"type": "PodScheduled",
                "status": "False", "reason": "Unschedulable", "message": value}]}}),
            "taint" => {
                let (key, effect) = text.split_once('=').unwrap();
                json!({"spec": {"taints": [{"key": key, "effect": effect}]}})
            }
            "only-on" => {
                let (key, label) = text.split_once('=').unwrap();
                json!({"spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": [
                    {"matchExpressions": [{"key": key, "operator": "In", "values": [label]}]}]}}}})
            }
            // Pods must run on the node where those of that app run.
            "beside" => json!({"spec": {"template": {"spec": {"affinity": {"podAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [{
                    "labelSelector": {"matchLabels": {"app": value}},
                    "topologyKey": "kubernetes.io/hostname"}]}}}}}}),
            "owner" => {
                let parts: Vec<&str> = text.split(' ').collect();
                match parts[..] {
                    [api_version, kind, name] => json!({"metadata": {
                        "labels": {"pod-template-hash": null}, "ownerReferences": [
                        {"apiVersion": api_version, "kind": kind, "name": name, "uid": "1",
                            "controller": true}]}}),
                    _ => json!({"metadata": {"labels": {"pod-template-hash": null},
                        "ownerReferences": null}}),
                }
            }
            _ => json!({word.as_str(): value}),
        };
        json_patch::merge(object, &merged);
    }
}

fn text(diagnosis: &Diagnosis) -> String {
    written(diagnosis, Format::Text)
}

fn written(diagnosis: &Diagnosis, format: Format) -> String {
    let mut out = Vec::new();
    write(diagnosis, format, Ways::All, Width::OfPipe, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The commands of the steps with that purpose.
fn commands(steps: &[SuggestedAction], purpose: Purpose) -> Vec<&str> {
    steps
        .iter()
        .filter(|step| step.purpose == purpose)
        .filter_map(|step| step.command.as_deref())
        .collect()
}

#[test]
fn each_cause_is_named_with_its_way_out() {
    for (code, cluster) in every_cause() {
        insta::assert_snapshot!(code, text(&cluster.diagnosis(&[code])));
    }
}

#[test]
fn each_case_has_its_cause_and_its_words() {
    let written = Written::read();
    let mut failed = Vec::new();
    for case in &written.cases {
        let cluster = written.cluster(&case.cluster).but(&case.changes);
        let diagnosis = cluster.diagnose();
        let causes: Vec<Value> = diagnosis.cases.iter().map(|found| found.cause.into()).collect();
        let expected = match &case.cause {
            Value::Array(several) => several.clone(),
            cause => vec![cause.clone()],
        };
        let report = text(&diagnosis);
        let line = one_line(&report);
        let mut wrong = |what: String| {
            failed.push(format!("{} {:?}: {what}", case.cluster, case.title));
        };
        if causes != expected {
            wrong(format!("{causes:?} instead of {expected:?}\n{report}"));
            continue;
        }
        cluster.diagnosis(&Vec::from_iter(diagnosis.cases.iter().map(|found| found.cause)));
        if causes.is_empty() && report != "No pod waits for a volume.\n" {
            wrong(format!("it says {report}"));
        }
        for said in case.says.iter().filter(|said| !line.contains(said.as_str())) {
            wrong(format!("{said:?} is not in\n{report}"));
        }
        for said in case.silent.iter().filter(|said| line.contains(said.as_str())) {
            wrong(format!("{said:?} is in\n{report}"));
        }
        for found in &diagnosis.cases {
            for part in &case.explains {
                if !found.explanation.contains(part.as_str()) {
                    wrong(format!("it says {}", found.explanation));
                }
            }
            if case.holders.is_some_and(|holders| holders != found.holders.len()) {
                wrong(format!("{:?}", found.holders));
            }
        }
        let steps = diagnosis.cases.first().map_or(&[][..], |found| &found.steps);
        let ways = commands(steps, Purpose::WayOut);
        if case.first.as_deref().is_some_and(|first| ways.first() != Some(&first)) {
            wrong(format!("the first way is {ways:?}"));
        }
        for (purpose, wanted) in [
            (Purpose::WayOut, &case.ways),
            (Purpose::Before, &case.before),
            (Purpose::Afterwards, &case.afterwards),
        ] {
            let found = commands(steps, purpose);
            if wanted.as_ref().is_some_and(|commands| *commands != found) {
                wrong(format!("{purpose:?} {found:#?}"));
            }
        }
        let first = steps.first().map(|step| step.purpose);
        if case.afterwards.is_some() && first != Some(Purpose::Before) {
            wrong(format!("it begins with {first:?}"));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}

/// The commands in the runbook are the printed ones, and `tests/diagnose` runs them.
#[test]
fn the_runbook_shows_what_is_printed() {
    let runbook = include_str!("../../../../docs/runbook.md");
    let sections: Vec<(&str, &str)> =
        runbook.split("\n## ").skip(1).filter_map(|section| section.split_once('\n')).collect();
    let (words, sections): (Vec<_>, Vec<_>) =
        sections.into_iter().partition(|(title, _)| *title == "By the words of the error");
    assert_eq!(words.len(), 1);
    says_what_is_explained(words[0].1);
    let every = every_cause();
    for (code, section) in &sections {
        let (_, cluster) = every.iter().find(|(cause, _)| cause == code).unwrap();
        let diagnosis = cluster.diagnosis(&[code]);
        let blocks = |language: &str| {
            let opening = format!("```{language}\n");
            section
                .split(&opening)
                .skip(1)
                .map(|block| block.split_once("```").unwrap().0)
                .collect::<String>()
        };
        let commands: Vec<&str> =
            diagnosis.cases[0].steps.iter().filter_map(|step| step.command.as_deref()).collect();
        assert_eq!(blocks("sh").lines().collect::<Vec<_>>(), commands, "{code}");
        let report = text(&diagnosis);
        let said = blocks("text");
        assert!(report.contains(&said), "{code}: {said}\nis not in\n{report}");
    }
    let codes: Vec<&str> = sections.iter().map(|(code, _)| *code).collect();
    assert_eq!(codes.len(), CAUSES.len(), "{codes:?}");
}

/// The anchor of a heading in a page.
fn anchor(heading: &str) -> String {
    heading
        .to_lowercase()
        .replace(' ', "-")
        .replace(|letter: char| !letter.is_alphanumeric() && !"-_".contains(letter), "")
}

/// Each explained line has a section with the explanation, the causes and all words by which it is
/// recognised, so that a search in the page finds it. A way out that several lines share is in the
/// section of the first of them.
fn says_what_is_explained(words: &str) {
    let mut expected = String::new();
    let mut ways_out: Vec<(&str, &str)> = Vec::new();
    for known in explanations() {
        let in_text = printed::between_backticks(known.fix);
        let commands = known.look.iter().chain(&in_text);
        printed::assert_listed(commands.map(String::as_str), "diagnose --explain");
        let links: Vec<String> =
            known.causes.iter().map(|code| format!("[`{code}`](#{code})")).collect();
        let causes = match links.as_slice() {
            [] => String::new(),
            links => format!("{}\n\n", links.join(", ")),
        };
        let way_out = match ways_out.iter().find(|(fix, _)| *fix == known.fix) {
            Some((_, title)) => format!("[The same way out](#{}).", anchor(title)),
            None => known.fix.to_owned(),
        };
        ways_out.push((known.fix, known.searched));
        let patterns = known.words.join("`, `");
        expected += &format!(
            "### {}\n\n*{}*: {}\n\n{way_out}\n\n{causes}Words: `{patterns}`\n\n",
            known.searched, known.says, known.meaning
        );
    }
    expected += "<!-- end -->\n";
    let (before, there) = words.split_at(words.find("### ").unwrap_or(words.len()));
    if std::env::var_os("MESSAGES").is_some_and(|mode| mode == "write") {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/runbook.md");
        let text = std::fs::read_to_string(page).unwrap();
        std::fs::write(page, text.replace(words, &format!("{before}{expected}"))).unwrap();
        return;
    }
    assert!(
        there.trim() == expected.trim(),
        "docs/runbook.md is not what crates/doctor/src/messages.yaml says; MESSAGES=write cargo test --workspace --lib -- runbook writes it"
    );
}

/// Programs get the same content as people.
#[test]
fn explanations_are_written_in_each_format() {
    let line = "Waiting for detach for volume \"pv-data\" Volume is already used by pod(s) web-1";
    let known = explain(line);
    let write = |format| {
        let mut out = Vec::new();
        explanation::write(&known, format, Width::OfPipe, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    insta::assert_snapshot!("explanation", write(Format::Text));
    let json: Value = serde_json::from_str(&write(Format::Json)).unwrap();
    assert_eq!(json["known"][0]["causes"][0], "rollout-overlap");
}

/// A command that is folded is two wrong ones in a shell.
#[test]
fn printed_commands_can_be_pasted() {
    let mut sentences: Vec<String> = REMEDIES.iter().map(|remedy| remedy.cost.to_owned()).collect();
    let (mut printed, mut commands) = (Vec::new(), Vec::new());
    for known in explanations() {
        sentences.extend([known.meaning.clone(), known.fix.to_owned()]);
        commands.extend(known.look.clone());
        let explained = Explained { known: vec![known], unknown: BTreeSet::new() };
        let mut out = Vec::new();
        explanation::write(&explained, Format::Text, Width::OfPipe, &mut out).unwrap();
        printed.push(String::from_utf8(out).unwrap());
    }
    for (_, cluster) in every_cause() {
        let diagnosis = cluster.diagnose();
        for step in diagnosis.cases.iter().flat_map(|case| &case.steps) {
            sentences.push(step.text.clone());
            commands.extend(step.command.clone());
        }
        printed.push(text(&diagnosis));
    }
    for width in 40..=200 {
        printed.extend(sentences.iter().map(|sentence| folded(sentence, width)));
    }
    commands.extend(printed.iter().flat_map(|text| printed::copied(text)).map(str::to_owned));
    printed::assert_pasted(commands.iter().map(String::as_str));
}

#[test]
fn many_cases_are_summarised_by_cause() {
    let mut cluster = cluster("cluster");
    for number in 0..2000 {
        let claim = format!("data-{number}");
        let volumes = json!({"volumes": [
            {"name": "v", "persistentVolumeClaim": {"claimName": claim}}]});
        cluster = cluster.with(json!({
            format!("PersistentVolumeClaim {claim}"): {},
            format!("PersistentVolume pv-{claim}"): {},
            format!("Pod web{number}-old-x"): {"node": "n1", "phase": "Running", "spec": volumes},
            format!("Pod web{number}-new-x"): {"node": "n2", "spec": volumes},
        }));
    }
    let report = text(&cluster.diagnosis(&["rollout-overlap"; 2000]));
    assert!(
        report.starts_with(
            "2000 pods wait for 2000 volumes.\n\n    2000 pods in 2000 cases   The rollout starts"
        ),
        "{report}"
    );
    assert!(report.lines().count() < 60, "{}", report.lines().count());
}

/// Drivers, nodes and users can put any text into names and messages.
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
    for (cause, mut cluster) in every_cause() {
        for object in cluster.objects.values_mut() {
            hostile::spoil(object, &spoilt);
        }
        let mut diagnosis = cluster.diagnose();
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
    let known = explain(&line);
    for format in [Format::Text, Format::Json] {
        let mut out = Vec::new();
        explanation::write(&known, format, Width::OfPipe, &mut out).unwrap();
        hostile::assert_safe(&String::from_utf8(out).unwrap());
    }
}

#[test]
fn programs_and_people_are_told_the_same() {
    for (cause, cluster) in every_cause() {
        let diagnosis = cluster.diagnosis(&[cause]);
        let json: Value = serde_json::from_str(&written(&diagnosis, Format::Json)).unwrap();
        assert_eq!(json["cases"][0]["cause"], cause);
        assert_eq!(json["cases"][0]["volume"]["claim"], "data");
        let text = one_line(&written(&diagnosis, Format::Text));
        for step in json["cases"][0]["steps"].as_array().unwrap() {
            let said = step["command"].as_str().or(step["text"].as_str()).unwrap();
            assert!(text.contains(&one_line(said)), "{cause}: {said}\nnot in\n{text}");
        }
    }
}

/// A reader who looks for the way out has to read only one screen.
#[test]
fn a_case_in_brief_has_one_way_out_and_at_most_twenty_lines() {
    for (cause, cluster) in every_cause() {
        let mut diagnosis = cluster.diagnose();
        diagnosis.cases.retain(|case| case.cause == cause);
        diagnosis.cases.truncate(1);
        let mut out = Vec::new();
        write(&diagnosis, Format::Text, Ways::Safest, Width::OfPipe, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let before = text.split("\nNot seen:").next().unwrap_or_default();
        let case = before.split("\nTo be known:").next().unwrap_or_default();
        assert!(case.lines().count() <= 20, "{cause}:\n{text}");
        let steps = &diagnosis.cases[0].steps;
        if let Some(command) = commands(steps, Purpose::WayOut).first() {
            assert!(text.contains(command), "{cause}:\n{text}");
        }
    }
}

/// Commands that cost data if they are run too early, and the condition that stands before each.
const DANGEROUS: [(&str, &str); 5] = [
    ("out-of-service=", "powered off"),
    ("/metadata/finalizers", "attached to no machine"),
    (" --force", "powered off"),
    ("delete volumeattachment", "attached to no machine"),
    ("delete pvc/", "holds no data"),
];

/// A condition behind the command, or on another page, does not help a reader who pastes it.
fn assert_conditions_come_first(place: &str, text: &str) {
    let line = one_line(text);
    for (command, condition) in DANGEROUS {
        for (at, _) in line.match_indices(command).filter(|(at, _)| !line[..*at].ends_with("with"))
        {
            assert!(
                line[..at].contains(condition),
                "{place}: {command} without {condition}\n{text}"
            );
        }
    }
}

#[test]
fn no_dangerous_command_stands_alone() {
    let written = Written::read();
    for case in &written.cases {
        let diagnosis = written.cluster(&case.cluster).but(&case.changes).diagnose();
        for ways in [Ways::Safest, Ways::All] {
            let mut out = Vec::new();
            write(&diagnosis, Format::Text, ways, Width::OfPipe, &mut out).unwrap();
            assert_conditions_come_first(&case.cluster, &String::from_utf8(out).unwrap());
        }
        let json = self::written(&diagnosis, Format::Json);
        assert_conditions_come_first(&case.cluster, &json);
    }
    for known in explanations() {
        assert_conditions_come_first(known.searched, known.fix);
    }
    let runbook = include_str!("../../../../docs/runbook.md");
    for section in runbook.split("\n## ").skip(1) {
        assert_conditions_come_first("the runbook", section);
    }
}

/// The only remark about the cluster.
fn remark(cluster: &Cluster) -> Remark {
    let mut found = cluster.observe(remarks);
    assert_eq!(found.len(), 1, "{found:#?}");
    let remark = found.remove(0);
    let commands = printed::between_backticks(&remark.text);
    printed::assert_listed(commands.iter().map(String::as_str), "diagnose");
    remark
}

#[test]
fn what_nobody_waits_for_is_named() {
    let taint = json!({"taint": "node.kubernetes.io/out-of-service=NoExecute"});
    let ending = json!({"ending": "11:00:00"});
    let job = json!({"node": "n2", "phase": "Succeeded", "owner": "batch/v1 Job stage"});
    for (changes, about, said) in [
        (
            json!({"Node n1": taint}),
            "n1",
            "`kubectl taint node n1 node.kubernetes.io/out-of-service-` removes it.",
        ),
        (
            json!({"PersistentVolumeClaim data": ending, "Pod stage-k": job}),
            "data",
            "pod stage-k of Job stage names it, although it has finished (Succeeded).",
        ),
    ] {
        let remark = remark(&cluster("cluster").with(changes));
        assert!(remark.about.iter().any(|name| *name == about), "{remark:#?}");
        assert!(remark.text.contains(said), "{remark:#?}");
    }
    for (changes, why) in [
        (
            json!({"Node n1": {"ready": "Unknown", "taint": taint["taint"]}, "Lease n1": null}),
            "the node is lost",
        ),
        (json!({"PersistentVolumeClaim data": ending}), "no pod names it"),
        (json!({"Pod stage-k": job}), "the claim stays"),
    ] {
        let found = cluster("cluster").with(changes).observe(remarks);
        assert!(found.is_empty(), "{why}: {found:#?}");
    }
}

#[test]
fn attachments_that_no_pod_needs_are_named() {
    let silent = json!({"ready": "Unknown", "taint": "node.kubernetes.io/unreachable=NoExecute"});
    for (changes, said) in [
        (
            json!({"Pod stage-k": {"node": "n1", "phase": "Succeeded"}}),
            "Node n1 is Ready, and no pod needs what is attached to it: volume pv-data of claim shop/data (attached for 1 h). The kubelet of a healthy node",
        ),
        (json!({"Pod web-a-x": {"node": "n2", "phase": "Running"}}), "(attached for 1 h)"),
        (
            json!({"VolumeAttachment csi-n1": {"ending": "11:30:00", "detachError": "busy"}}),
            "(being detached for 30 min). The kubelet",
        ),
        (
            json!({"VolumeAttachment csi-n1": {"status": {"attached": false}}}),
            "being attached for 1 h",
        ),
        (json!({"Node n1": {"ready": "False"}}), "Node n1 is not Ready, and no pod needs"),
        (json!({"Node n1": silent, "Lease n1": null}), "Node n1 does not answer, and no pod"),
        (json!({"Node n1": null, "Lease n1": null}), "no longer exists, and no pod needs what"),
        (json!({"Node n1": null, "Lease n1": null}), "Since 1.38, Kubernetes detaches it once"),
        (
            json!({"Node n1": null, "Lease n1": null, "server": "v1.37.2"}),
            "Before 1.38, Kubernetes detaches it by force 6 minutes after",
        ),
    ] {
        let remark = remark(&cluster("kept").with(changes));
        assert_eq!(remark.about, ["pv-data", "data"]);
        assert!(remark.text.contains(said), "{remark:#?}");
    }
    let many = (0..9)
        .map(|number| json!({format!("VolumeAttachment csi-n1-{number}"): {"made": "11:00:00"}}));
    let remark = remark(&many.fold(cluster("kept"), Cluster::with));
    assert!(remark.text.contains("(attached for 1 h), 5 more. The"), "{remark:#?}");
    let twin = json!({"namespace": "shop", "name": "twin"});
    let of_twin = json!([{"name": "v", "persistentVolumeClaim": {"claimName": "twin"}}]);
    for (changes, why) in [
        (json!({"VolumeAttachment csi-n1": {"made": "11:56:00"}}), "a detach takes so long"),
        (
            json!({"VolumeAttachment csi-n1": {"made": "11:54:00"}, "Node n1": null}),
            "a detach by force takes so long",
        ),
        (json!({"Pod web-a-x": {"node": "n1", "phase": "Running"}}), "a pod there has it"),
        (json!({"Pod web-a-x": {"node": "n2"}}), "a pod elsewhere waits for it"),
        (json!({"Pod web-a-x": {}}), "a pod without a node waits for it"),
        (
            json!({"Pod web-a-x": {"node": "n2", "phase": "Running", "ending": "12:00:20"}}),
            "a pod elsewhere ends",
        ),
        (json!({"Deployment web": {}}), "the next pod is about to be made"),
        (json!({"Namespace shop": null}), "its pods were not read"),
        (
            json!({
                "PersistentVolume pv-data": {"spec": {"csi": {"volumeHandle": "vol-1"}}},
                "PersistentVolume pv-twin": {"spec": {"csi": {"volumeHandle": "vol-1"},
                    "claimRef": twin}},
                "Pod web-a-x": {"node": "n1", "phase": "Running", "spec": {"volumes": of_twin}},
            }),
            "a pod there has the disk by another volume",
        ),
    ] {
        let found = cluster("kept").with(changes).observe(remarks);
        assert!(found.is_empty(), "{why}: {found:#?}");
    }
}

#[test]
fn a_node_says_what_it_still_has() {
    let ask = |name: &str, changes: Value| {
        let entry = cluster(name).with(changes).observe(|facts| node(facts, "n1"));
        let diagnosis = Diagnosis { node: entry, ..Diagnosis::default() };
        let way_out = diagnosis.node.iter().flat_map(|node| &node.way_out);
        let commands: Vec<String> =
            way_out.flat_map(|text| printed::between_backticks(text)).collect();
        printed::assert_listed(commands.iter().map(String::as_str), "diagnose");
        let text = text(&diagnosis);
        assert_conditions_come_first("node/n1", &text);
        one_line(&text)
    };
    for (name, changes, said) in [
        ("cluster", json!({}), "No volume is left on node n1 (Ready, Lease 3 s old)."),
        (
            "rollout",
            json!({}),
            "Volume pv-data is attached; pod web-old-x of Deployment web in shop has it.",
        ),
        ("rollout", json!({}), "`kubectl drain n1 --ignore-daemonsets --delete-emptydir-data`"),
        ("stalled", json!({}), "is being detached; no pod of the node that was read uses it."),
        ("stalled", json!({}), "Do not delete a VolumeAttachment"),
        ("rollout", json!({"Node n1": {"ready": "False"}}), "Mend the node first"),
        ("node-lost", json!({}), "must be powered off"),
        (
            "rollout",
            json!({"VolumeAttachment csi-n1": null}),
            "Pod web-old-x of Deployment web in shop uses claim data; no",
        ),
        (
            "cluster",
            json!({"Node n1": {"status": {"volumesInUse": ["kubernetes.io/csi/a^b"]}}}),
            "The kubelet reports 1 attachable",
        ),
    ] {
        let text = ask(name, changes);
        assert!(text.contains(said), "{said}\n{text}");
    }
    assert!(cluster("cluster").observe(|facts| node(facts, "n9")).is_none());
}

/// Every way out that an operator would undo names the operator's object.
#[test]
fn operators_are_named() {
    for (cause, ways) in [("rollout-overlap", 3), ("too-many-replicas", 1)] {
        let owned =
            cluster(cause).with(json!({"Deployment web": {"owner": "example.com/v1 Shop main"}}));
        let named = "Deployment web belongs to Shop main, whose controller may undo this";
        let steps = owned.steps(cause);
        let naming = steps.iter().filter(|step| step.text.contains(named)).count();
        assert_eq!(naming, ways, "{steps:#?}");
    }
}

/// StatefulSet `web` with pods in these states, numbered from `first`. Waiting pods are on a node
/// without the volume.
fn stateful_set(first: i64, states: &[&str]) -> Cluster {
    let set = json!({"VolumeAttachment csi-n1": {},
        "StatefulSet web": {"spec": {"ordinals": {"start": first}}}});
    let pods = (first..).zip(states).map(|(number, state)| {
        let (node, phase, ready) = match *state {
            "Ready" => ("n1", "Running", "True"),
            "Running" => ("n1", "Running", "False"),
            _ => ("n2", "Pending", "False"),
        };
        json!({format!("Pod web-{number}"): {"node": node, "phase": phase, "ready": ready,
            "owner": "apps/v1 StatefulSet web"}})
    });
    pods.fold(cluster("cluster").with(set), Cluster::with)
}

/// A StatefulSet keeps the pod with the lowest number, and may never delete the others.
#[test]
fn the_pods_that_a_stateful_set_does_not_get_to_are_deleted() {
    let autoscaler = json!({"HorizontalPodAutoscaler web": {"spec": {"maxReplicas": 5,
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web"}}}});
    let delete = " && kubectl -n shop delete --ignore-not-found";
    for (first, states, deleted, said) in [
        (
            0,
            ["Running", "Pending", "Pending"],
            " pod/web-1 pod/web-2",
            "Pod web-0 is left, as a StatefulSet keeps the pod with the lowest number: the others go.",
        ),
        (0, ["Ready", "Pending", "Pending"], " pod/web-1 pod/web-2", ": the others go."),
        (0, ["Ready", "Ready", "Pending"], "", ": the others go."),
        (
            0,
            ["Pending", "Ready", "Pending"],
            " pod/web-1 pod/web-2",
            "web-1, which runs, stops, and web-0 starts once it is gone",
        ),
        (
            0,
            ["Pending", "Ready", "Ready"],
            " pod/web-1 pod/web-2",
            "all that run stop, and web-0 starts once they are gone",
        ),
        (
            5,
            ["Pending", "Ready", "Pending"],
            " pod/web-6 pod/web-7",
            "web-6, which runs, stops, and web-5 starts once it is gone",
        ),
    ] {
        let scale = "kubectl -n shop scale statefulset/web --replicas=1";
        let limit = r#"kubectl -n shop patch hpa/web --type=merge -p '{"spec":{"minReplicas":1,"maxReplicas":1}}'"#;
        for (cluster, cause, command) in [
            (stateful_set(first, &states), "too-many-replicas", scale),
            (stateful_set(first, &states).with(autoscaler.clone()), "autoscaler", limit),
        ] {
            let steps = cluster.steps(cause);
            let expected = match deleted {
                "" => command.to_owned(),
                pods => format!("{command}{delete}{pods}"),
            };
            assert_eq!(commands(&steps, Purpose::WayOut), [expected], "{states:?}");
            assert!(steps.iter().any(|step| step.text.contains(said)), "{steps:#?}");
        }
    }
    // If all pods must go, ready ones are removed in their order by the scale-down.
    for (states, deleted) in [
        (["Ready", "Ready", "Ready"], ""),
        (["Ready", "Ready", "Running"], ""),
        (["Running", "Ready", "Running"], " pod/web-0 pod/web-2"),
    ] {
        let cluster = stateful_set(0, &states)
            .with(json!({"Deployment app": {}, "Pod app-a-x": {"node": "n2"}}));
        let scale = "kubectl -n shop scale statefulset/web --replicas=0";
        let expected = match deleted {
            "" => scale.to_owned(),
            pods => format!("{scale}{delete}{pods}"),
        };
        let steps = cluster.steps("shared-claim");
        let ways = commands(&steps, Purpose::WayOut);
        assert_eq!(ways.last(), Some(&expected.as_str()), "{states:?}");
    }
}
