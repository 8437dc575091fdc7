//! The engine's findings about a scenario's objects, in the present cluster.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use engine::model::object::{Object, ObjectKind, ObjectRef};
use engine::policy::Policy;
use engine::rules;
use engine::snapshot::Snapshot;
use engine::storage::Catalog;
use engine::verdict::{Document, EffectivePolicy, Finding, Mode, Review, evaluate};
use kube::api::{Api, ApiResource, DynamicObject, ListParams};
use serde::de::DeserializeSeed;
use serde_json::Value;

use crate::harness::ControlPlane;
use crate::harness::fake_nodes::SCENARIO;
use crate::observe::{resource, with_kind};
use crate::outcome::Outcome;
use crate::scenario_run::Testbed;

/// Group, version, kind.
type Kind = (&'static str, &'static str, &'static str);

/// The observer does not watch this kind, because its status changes constantly.
const AUTOSCALER: Kind = ("autoscaling", "v2", "HorizontalPodAutoscaler");

const NAMESPACE: Kind = ("", "v1", "Namespace");

const VOLUME: Kind = ("", "v1", "PersistentVolume");

/// The kinds whose objects belong to one scenario and carry its label.
const OF_THE_SCENARIO: [Kind; 3] =
    [("", "v1", "Node"), VOLUME, ("storage.k8s.io", "v1", "StorageClass")];

/// The kinds whose objects all scenarios share.
const OF_ALL: [Kind; 2] =
    [("storage.k8s.io", "v1", "CSIDriver"), ("node.k8s.io", "v1", "RuntimeClass")];

/// Objects before a user's action, by uid.
pub(crate) type Before = HashMap<String, Arc<Value>>;

/// The engine's findings about everything in a namespace.
#[derive(Clone, Debug)]
pub(crate) struct Opinion {
    /// The worst outcome of the findings.
    pub(crate) outcome: Outcome,
    /// The messages of the findings.
    pub(crate) messages: Vec<String>,
    /// Whether all of them are about rolling updates without surge, which denials advise.
    pub(crate) is_advised: bool,
}

/// Judges every object in `namespace` that is not made by a controller: as an update if `before`
/// has another generation of it, otherwise as a new object.
///
/// # Errors
///
/// A sentence if the engine is not sure, or cannot read an object.
pub(crate) fn opinion(
    testbed: &Testbed,
    namespace: &str,
    before: &Before,
) -> Result<Opinion, String> {
    let mut cluster = Snapshot::complete();
    let mut judged = Vec::new();
    for (kind, document) in documents(testbed, namespace)? {
        let object = read(kind, &document)?;
        let metadata = &document["metadata"];
        if metadata["namespace"] == *namespace && !is_controlled(&document) {
            let earlier = metadata["uid"]
                .as_str()
                .and_then(|uid| before.get(uid))
                .filter(|old| old["metadata"]["generation"] != metadata["generation"])
                .map(|old| Value::clone(old));
            judged.push(Judged { kind, earlier, document });
        }
        cluster.apply(object);
    }
    said(&judged, &cluster)
}

/// Judges an object that is about to be written, in the cluster before the write.
///
/// # Errors
///
/// As [`opinion`].
pub(crate) fn forecast(testbed: &Testbed, object: &Value) -> Result<Opinion, String> {
    let mut cluster = Snapshot::complete();
    let mut earlier = None;
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
    let documents = documents(testbed, namespace)?;
    for (kind, document) in &documents {
        let same = |field: &str| document["metadata"][field] == object["metadata"][field];
        if document["kind"] == object["kind"] && same("namespace") && same("name") {
            earlier = Some(document.clone());
        }
        cluster.apply(read(*kind, document)?);
    }
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    let kind = ObjectKind::of_manifest(text("apiVersion"), text("kind"));
    let judged = kind.map(|kind| Judged { kind, document: object.clone(), earlier });
    said(judged.as_slice(), &cluster)
}

/// An object and its earlier version.
struct Judged {
    kind: ObjectKind,
    document: Value,
    earlier: Option<Value>,
}

impl Document for Judged {
    fn object(&self) -> Option<&Value> {
        Some(&self.document)
    }

    fn changes_template(&self) -> bool {
        let new = self.document.pointer("/spec/template");
        let earlier = self.earlier.as_ref();
        earlier.is_none_or(|old| new != old.pointer("/spec/template"))
    }
}

fn said(reviewed: &[Judged], cluster: &Snapshot) -> Result<Opinion, String> {
    let catalog = Catalog::embedded().map_err(ToString::to_string)?;
    let effective = EffectivePolicy::new(Policy::default(), catalog);
    let mut findings = Vec::new();
    let mut is_advised = true;
    for judged in reviewed {
        let object = read(judged.kind, &judged.document)?;
        let old = judged.earlier.as_ref().map(|old| read(judged.kind, old)).transpose()?;
        let review = Review {
            object: &object,
            old: old.as_ref(),
            reference: &reference(&judged.document),
            scaled: None,
            document: judged,
            mode: Mode::Judge,
        };
        let found = evaluate(&review, cluster.view(), &effective).findings;
        // A claim has no strategy, and the API server fills in that of a Deployment.
        let surge = judged.document.pointer("/spec/strategy/rollingUpdate/maxSurge");
        is_advised &= surge.is_none_or(|surge| *surge == 0)
            && found.iter().all(|finding| finding.rule == "rolling-update-overlap");
        findings.extend(found);
    }
    let outcomes: Vec<Outcome> = findings.iter().map(outcome).collect::<Result<_, _>>()?;
    Ok(Opinion {
        outcome: outcomes.into_iter().max().unwrap_or(Outcome::None),
        messages: findings.into_iter().map(|finding| finding.message).collect(),
        is_advised,
    })
}

fn outcome(finding: &Finding) -> Result<Outcome, String> {
    match finding.outcome {
        rules::Outcome::Deadlock => Ok(Outcome::Deadlock),
        rules::Outcome::Stuck => Ok(Outcome::Stuck),
        rules::Outcome::Delay => Ok(Outcome::Delay),
        rules::Outcome::DataLoss => Ok(Outcome::DataLoss),
        other => Err(format!("The engine says {other}: {}", finding.message)),
    }
}

/// The objects that the guard follows, limited to those of the scenario: reading everybody's
/// objects takes longer than judging. Referring objects are listed before the objects that they
/// name, so that the volume of a claim that is being bound is there.
fn documents(testbed: &Testbed, namespace: &str) -> Result<Vec<(ObjectKind, Value)>, String> {
    let plane = testbed.plane;
    let everywhere = |kind, selector: &str| {
        let resource = resource(kind);
        list(
            plane,
            &Api::all_with(plane.client(), &resource),
            &resource,
            &ListParams::default().labels(selector),
        )
    };
    let own = format!("kubernetes.io/metadata.name in ({namespace}, {namespace}-other)");
    let namespaces = everywhere(NAMESPACE, &own)?;
    let mut documents = Vec::new();
    let autoscalers = resource(AUTOSCALER);
    for (_, found) in &namespaces {
        let name = found["metadata"]["name"].as_str().unwrap_or_default();
        // The observer has already caught up with the run's own namespace.
        if name != namespace {
            testbed.observer.catch_up(plane, name)?;
        }
        documents.extend(testbed.observer.documents(name));
        let api = Api::namespaced_with(plane.client(), name, &autoscalers);
        documents.extend(list(plane, &api, &autoscalers, &ListParams::default())?);
    }
    documents.extend(namespaces);
    for kind in OF_THE_SCENARIO {
        documents.extend(everywhere(kind, &format!("{SCENARIO}={namespace}"))?);
    }
    // The external-provisioner does not label its volumes with the scenario.
    let volume = resource(VOLUME);
    let volumes = Api::all_with(plane.client(), &volume);
    for name in unlisted_volumes(&documents) {
        let by_name = ListParams::default().fields(&format!("metadata.name={name}"));
        documents.extend(list(plane, &volumes, &volume, &by_name)?);
    }
    for kind in OF_ALL {
        documents.extend(everywhere(kind, "")?);
    }
    Ok(documents)
}

/// The volumes that are named by claims but are not among the documents.
fn unlisted_volumes(documents: &[(ObjectKind, Value)]) -> BTreeSet<String> {
    let texts = |kind: &str, pointer: &str| -> BTreeSet<String> {
        documents
            .iter()
            .map(|(_, document)| document)
            .filter(|document| document["kind"] == kind)
            .filter_map(|document| document.pointer(pointer)?.as_str())
            .map(str::to_owned)
            .collect()
    };
    let listed = texts(VOLUME.2, "/metadata/name");
    let mut named = texts("PersistentVolumeClaim", "/spec/volumeName");
    named.retain(|name| !name.is_empty() && !listed.contains(name));
    named
}

fn list(
    plane: &ControlPlane,
    api: &Api<DynamicObject>,
    resource: &ApiResource,
    selected: &ListParams,
) -> Result<Vec<(ObjectKind, Value)>, String> {
    let kind = ObjectKind::of(&resource.group, &resource.kind)
        .ok_or_else(|| format!("The engine reads no {}.", resource.kind))?;
    let found = plane.block_on(api.list(selected)).map_err(|error| error.to_string())?;
    let documents = found.items.into_iter().map(|object| {
        let document = serde_json::to_value(object).map_err(|error| error.to_string())?;
        Ok((kind, with_kind(document, resource)))
    });
    documents.collect()
}

fn is_controlled(document: &Value) -> bool {
    let owners = document["metadata"]["ownerReferences"].as_array();
    owners.is_some_and(|owners| owners.iter().any(|owner| owner["controller"] == true))
}

fn read(kind: ObjectKind, document: &Value) -> Result<Object, String> {
    let read = kind.deserialize(document);
    read.map_err(|error| format!("{error}: {document}"))
}

fn reference(document: &Value) -> ObjectRef {
    let text = |pointer: &str| {
        document.pointer(pointer).and_then(Value::as_str).unwrap_or_default().into()
    };
    ObjectRef {
        api_version: text("/apiVersion"),
        kind: text("/kind"),
        namespace: Some(text("/metadata/namespace")),
        name: text("/metadata/name"),
    }
}
