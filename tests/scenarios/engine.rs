//! What the engine says of a scenario's objects, in the cluster as it is.

use kube::api::{Api, ApiResource, DynamicObject, ListParams};
use kube::core::GroupVersionKind;
use multi_attach_guard::cluster::Cluster;
use multi_attach_guard::model::object::{Object, ObjectKind, ObjectRef};
use multi_attach_guard::policy::Policy;
use multi_attach_guard::rules;
use multi_attach_guard::storage::Catalog;
use multi_attach_guard::verdict::{Aim, Finding, Raw, Review, Settings, evaluate};
use serde::de::DeserializeSeed;
use serde_json::Value;

use crate::harness::ControlPlane;
use crate::outcome::Outcome;

/// Every kind the engine asks about.
const FACTS: [(&str, &str, &str); 11] = [
    ("", "v1", "Node"),
    ("", "v1", "Namespace"),
    ("", "v1", "PersistentVolume"),
    ("", "v1", "PersistentVolumeClaim"),
    ("storage.k8s.io", "v1", "StorageClass"),
    ("storage.k8s.io", "v1", "CSIDriver"),
    ("apps", "v1", "Deployment"),
    ("apps", "v1", "StatefulSet"),
    ("apps", "v1", "DaemonSet"),
    ("batch", "v1", "Job"),
    ("autoscaling", "v2", "HorizontalPodAutoscaler"),
];

/// The engine's word on everything in a namespace.
#[derive(Clone, Debug)]
pub(crate) struct Opinion {
    /// The worst outcome it foresees.
    pub(crate) outcome: Outcome,
    /// Its findings.
    pub(crate) messages: Vec<String>,
}

/// Judges every object in `namespace` as if it were new.
///
/// # Errors
///
/// A sentence when the engine is not sure, or cannot read an object.
pub(crate) fn opinion(plane: &ControlPlane, namespace: &str) -> Result<Opinion, String> {
    let mut cluster = Cluster::complete();
    let mut judged = Vec::new();
    for document in documents(plane)? {
        let object = read(&document)?;
        if document["metadata"]["namespace"] == *namespace {
            judged.push((reference(&document), read(&document)?));
        }
        cluster.apply(object);
    }
    let catalog = Catalog::embedded().map_err(ToString::to_string)?;
    let settings = Settings::new(Policy::default(), catalog).map_err(|it| it.to_string())?;
    let mut findings = Vec::new();
    for (reference, object) in &judged {
        let review = Review {
            object,
            old: None,
            reference,
            scaled: None,
            raw: &NoDocuments,
            aim: Aim::Judge,
        };
        findings.extend(evaluate(&review, cluster.view(), &settings).findings);
    }
    let outcomes = findings
        .iter()
        .map(outcome)
        .collect::<Result<Vec<_>, _>>()?;
    Ok(Opinion {
        outcome: outcomes.into_iter().max().unwrap_or(Outcome::None),
        messages: findings
            .into_iter()
            .map(|finding| finding.message)
            .collect(),
    })
}

fn outcome(finding: &Finding) -> Result<Outcome, String> {
    match finding.outcome {
        rules::Outcome::Deadlock => Ok(Outcome::Deadlock),
        rules::Outcome::Stuck => Ok(Outcome::Stuck),
        rules::Outcome::Delay => Ok(Outcome::Delay),
        other => Err(format!("The engine says {other}: {}", finding.message)),
    }
}

fn documents(plane: &ControlPlane) -> Result<Vec<Value>, String> {
    let mut documents = Vec::new();
    for (group, version, kind) in FACTS {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        let api = Api::<DynamicObject>::all_with(plane.client(), &resource);
        let list = plane
            .block_on(api.list(&ListParams::default()))
            .map_err(|it| it.to_string())?;
        for object in list.items {
            let mut document = serde_json::to_value(object).map_err(|it| it.to_string())?;
            // A list names the kind once, not in its items.
            document["apiVersion"] = resource.api_version.as_str().into();
            document["kind"] = kind.into();
            documents.push(document);
        }
    }
    Ok(documents)
}

fn read(document: &Value) -> Result<Object, String> {
    let text = |field: &str| document[field].as_str().unwrap_or_default();
    let kind = ObjectKind::of_manifest(text("apiVersion"), text("kind"))
        .ok_or_else(|| format!("The engine does not know {}.", text("kind")))?;
    let bytes = document.to_string();
    let mut bytes = serde_json::Deserializer::from_str(&bytes);
    kind.deserialize(&mut bytes)
        .map_err(|error| format!("{error}: {document}"))
}

fn reference(document: &Value) -> ObjectRef {
    let text = |pointer: &str| {
        document
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .into()
    };
    ObjectRef {
        api_version: text("/apiVersion"),
        kind: text("/kind"),
        namespace: Some(text("/metadata/namespace")),
        name: text("/metadata/name"),
    }
}

/// Nothing is patched here, so no document is needed.
struct NoDocuments;

impl Raw for NoDocuments {
    fn object(&self) -> Option<&Value> {
        None
    }

    fn old(&self) -> Option<&Value> {
        None
    }
}
