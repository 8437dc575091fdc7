//! The cases of the verdicts, as an API server answers them while no guard runs: with the policies,
//! and with the facts that the guard would have written.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use axum::http::Method;
use engine::policy::Action;
use engine::snapshot::{Overlay, View};
use engine::verdict::Mode;
use engine::volume_facts::{Members, VolumeFacts};
use serde_json::{Value, json};

use super::case::{Case, cases, in_effect};
use super::harness::uncertain::Uncertain;
use super::harness::{self, ControlPlane, Needs, asking, at_once, seen, until};
use super::{SOON, install};

/// The kinds that a policy reads.
const KINDS: [&str; 6] =
    ["DaemonSet", "Deployment", "HorizontalPodAutoscaler", "ReplicaSet", "Scale", "StatefulSet"];

/// The number of cases that are asked about at once.
const AT_ONCE: usize = 4;

const PAGE: &str = "docs/always-there.md";

/// The answer to a case.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Passes,
    /// A policy refuses it, with this sentence.
    Refused(String),
    /// Kubernetes accepts no such object, and says why.
    Invalid(String),
}

/// A case in its own namespace.
struct Prepared<'c> {
    case: &'c Case,
    namespace: String,
    /// The reason why the objects that the case begins with are not stored.
    refused: Option<String>,
}

/// The facts that a guard would have written about the namespace of the case.
fn facts(case: &Case) -> Option<Value> {
    let snapshot = case.cluster.facts();
    let view = View::new(&snapshot, &Overlay::NOTHING);
    let members = Members::of(view);
    let object = case.object();
    let namespace = object["metadata"]["namespace"].as_str()?;
    let members = members.get(namespace)?;
    let facts = VolumeFacts::of(namespace, members, view, &in_effect(&case.policy));
    (!facts.is_empty()).then(|| serde_json::to_value(&facts).unwrap())
}

/// The path of the collection, or of an object in it.
fn path(namespace: &str, object: &Value) -> String {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap();
    let (version, kind) = match object.get("scaled") {
        Some(scaled) => ("apps/v1", scaled.as_str().unwrap()),
        None => (text("/apiVersion"), text("/kind")),
    };
    format!("/apis/{version}/namespaces/{namespace}/{}s", kind.to_lowercase())
}

/// Sends an object as the account that submits it in the case.
fn send(plane: &ControlPlane, case: &Case, method: Method, path: &str, object: &Value) -> Answer {
    let mut request = asking::request(method, path, object);
    if let Some(requester) = &case.requester {
        let headers = request.headers_mut();
        headers.insert("impersonate-user", requester.parse().unwrap());
        headers.insert("impersonate-group", "system:masters".parse().unwrap());
    }
    match plane.block_on(plane.client().request_text(request)) {
        Ok(_) => Answer::Passes,
        Err(kube::Error::Api(status)) if status.message.contains("ValidatingAdmissionPolicy") => {
            Answer::Refused(status.message.clone())
        }
        Err(kube::Error::Api(status)) if matches!(status.code, 400 | 404 | 422) => {
            Answer::Invalid(status.message.clone())
        }
        Err(error) => panic!("{}: {error}", case.name),
    }
}

/// The object in this namespace, with the fields that the API server requires and that decide
/// nothing.
fn moved(mut object: Value, namespace: &str) -> Value {
    object["metadata"]["namespace"] = json!(namespace);
    let owners = object.pointer_mut("/metadata/ownerReferences").and_then(Value::as_array_mut);
    for owner in owners.into_iter().flatten() {
        add(owner, "uid", json!("00000000-0000-4000-8000-000000000000"));
    }
    let templates = object.pointer_mut("/spec/volumeClaimTemplates").and_then(Value::as_array_mut);
    for template in templates.into_iter().flatten() {
        add(&mut template["spec"], "resources", json!({"requests": {"storage": "1Gi"}}));
    }
    object
}

/// Adds a field that is missing.
fn add(object: &mut Value, field: &str, value: Value) {
    if let Some(fields) = object.as_object_mut() {
        fields.entry(field).or_insert(value);
    }
}

impl<'c> Prepared<'c> {
    fn new(plane: &ControlPlane, case: &'c Case, at: usize) -> Self {
        let name = format!("verdict-{at}");
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        plane.send(Method::POST, "/api/v1/namespaces", &namespace).unwrap();
        let mut prepared = Self { case, namespace: name.clone(), refused: None };
        // Without facts, the policies refuse nothing.
        for before in prepared.before() {
            let object = moved(before, &name);
            let answer = send(plane, case, Method::POST, &path(&name, &object), &object);
            if let Answer::Invalid(why) = answer {
                prepared.refused = Some(why);
            }
        }
        if let Some(spec) = facts(case) {
            let written = json!({"apiVersion": "multi-attach-guard.dev/v1alpha1", "kind": "VolumeFacts",
                "metadata": {"name": "volumes", "namespace": name}, "spec": spec});
            let all =
                format!("/apis/multi-attach-guard.dev/v1alpha1/namespaces/{name}/volumefacts");
            plane.send(Method::POST, &all, &written).unwrap();
        }
        prepared
    }

    /// The objects that are stored before: the one that is updated, or the one that is scaled.
    fn before(&self) -> Vec<Value> {
        let object = self.case.object();
        let Some(scaled) = object["scaled"].as_str() else {
            return self.case.before().into_iter().collect();
        };
        let replicas =
            self.case.before().unwrap_or_else(|| object.clone())["spec"]["replicas"].clone();
        let mut found = self.case.cluster.objects();
        found.retain(|other| {
            other["kind"] == scaled && other["metadata"]["name"] == object["metadata"]["name"]
        });
        for workload in &mut found {
            if self.case.old.is_some() {
                workload["spec"]["replicas"] = replicas.clone();
            }
        }
        found
    }

    /// The answer of the API server.
    fn answer(&self, plane: &ControlPlane) -> Answer {
        if let Some(why) = &self.refused {
            return Answer::Invalid(why.clone());
        }
        let object = moved(self.case.object(), &self.namespace);
        let (mut path, name) = (path(&self.namespace, &object), &object["metadata"]["name"]);
        let mut method = Method::POST;
        if object.get("scaled").is_some() || self.case.old.is_some() {
            method = Method::PUT;
            path = format!("{path}/{}", name.as_str().unwrap());
        }
        if object.get("scaled").is_some() {
            path += "/scale";
        }
        send(plane, self.case, method, &format!("{path}?dryRun=All"), &object)
    }
}

/// Waits until the API server knows the facts of all namespaces that were made before.
fn until_known(plane: &ControlPlane, case: &Case) {
    let last = Prepared::new(plane, case, 0);
    until("the facts", SOON, || {
        let answer = last.answer(plane);
        seen(matches!(answer, Answer::Refused(_)), answer)
    });
}

/// A denial of the guard that no policy gives has a reason from a closed list, and no policy refuses
/// what the guard allows.
#[test]
fn each_verdict_is_given_without_the_guard_or_has_a_reason() {
    // A server of its own: a guard would replace the facts.
    let plane = harness::or_skip!(harness::start_control_plane(Needs::ApiServer));
    install(&plane);
    let all = cases();
    let is_being_deleted =
        |case: &Case| case.object().pointer("/metadata/deletionTimestamp").is_some();
    let is_of_cluster =
        |case: &&Case| !case.cluster.files && case.deleted_at.is_none() && !is_being_deleted(case);
    let (read, others): (Vec<&Case>, Vec<&Case>) =
        all.iter().filter(is_of_cluster).partition(|case| {
            let object = case.object();
            let read = |kind: &Value| KINDS.iter().any(|name| kind == *name);
            read(&object["kind"]) && object.get("scaled").is_none_or(read)
        });
    let prepared = at_once(AT_ONCE, &read, |at, case| Prepared::new(&plane, case, at + 1));
    until_known(&plane, &all[0]);
    let mut wrong = Vec::new();
    let mut counts = BTreeMap::<Option<Uncertain>, usize>::new();
    let mut invalid = Vec::new();
    let answers = at_once(AT_ONCE, &prepared, |_, prepared| prepared.answer(&plane));
    for (Prepared { case, .. }, answer) in prepared.iter().zip(answers) {
        let verdict = case.verdict(Mode::Admit);
        let rules: BTreeSet<&str> =
            verdict.with(Action::Deny).map(|finding| finding.rule).collect();
        let reason = case.uncertain.or_else(|| Uncertain::of_rules(rules.iter().copied()));
        match (answer, rules.is_empty()) {
            (Answer::Invalid(why), _) => invalid.push(format!("{}: {why}", case.name)),
            (Answer::Passes, true) => {}
            (Answer::Passes, false) if reason.is_some() => {
                *counts.entry(reason).or_default() += 1;
            }
            (Answer::Passes, false) => wrong.push(format!("{}: it passes: {rules:?}", case.name)),
            (Answer::Refused(said), true) => {
                wrong.push(format!("{}: it is refused: {said}", case.name));
            }
            (Answer::Refused(said), false) if reason.is_some() => {
                wrong.push(format!("{}: {reason:?}, and it is refused: {said}", case.name));
            }
            (Answer::Refused(said), false) => {
                *counts.entry(None).or_default() += 1;
                if !rules.iter().any(|rule| said.ends_with(&format!("rules {rule}"))) {
                    wrong.push(format!("{}: it is refused by another rule: {said}", case.name));
                }
            }
        }
    }
    for case in others {
        let is_denied = case.verdict(Mode::Admit).action() == Action::Deny;
        *counts.entry(Some(Uncertain::Kinds)).or_default() += usize::from(is_denied);
    }
    println!("{} cases, {counts:?}; Kubernetes accepts no such object: {invalid:#?}", all.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The page has exactly the reasons of the cases.
#[test]
fn the_page_has_each_reason_for_which_a_policy_passes_a_denial() {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE)).unwrap();
    let (_, list) = page.split_once("It passes a denial of the guard only if:\n\n").unwrap();
    let (list, _) = list.split_once("\n\n").unwrap();
    let items = list.lines().filter_map(|line| line.strip_prefix("- **")?.split_once("**"));
    let found: Vec<&str> = items.map(|(reason, _)| reason).collect();
    assert_eq!(found, Uncertain::ALL.map(Uncertain::reason));
}
