//! The overrides in a cluster, each with its reason, its start, its writer and its end.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use engine::model::labels::Labels;
use engine::policy::{OverrideSource, Policy, Target, keys};
use engine::snapshot::{Snapshot, StoredObject};
use report::live::Override;

/// The keys of overrides, with their names in the report.
const SETTINGS: [(&str, &str); 3] =
    [("action", keys::ACTION), ("ignore", keys::IGNORE), ("remedy", keys::REMEDY)];

/// The overrides of the cluster, in the order of their objects' names.
pub(super) fn all(cluster: &Snapshot, policy: &Policy, now: Timestamp) -> Vec<Override> {
    let mut all: Vec<Override> =
        cluster.objects().filter_map(|stored| set_on(stored, policy, now)).collect();
    all.sort_by_cached_key(|exception| {
        (exception.object.namespace.clone(), exception.object.to_string())
    });
    all
}

fn set_on(stored: &StoredObject, policy: &Policy, now: Timestamp) -> Option<Override> {
    let (metadata, labels) = match stored {
        StoredObject::Workload(workload) => (&workload.metadata, None),
        StoredObject::Claim(claim) => (&claim.metadata, None),
        StoredObject::Autoscaler(autoscaler) => (&autoscaler.metadata, None),
        StoredObject::Namespace(namespace) => {
            (&namespace.metadata, Some(&namespace.metadata.labels))
        }
        _ => return None,
    };
    let annotations = &metadata.annotations;
    let get = |key: &str| annotations.get(key).or_else(|| labels?.get(key));
    let sets: BTreeMap<&'static str, String> = SETTINGS
        .into_iter()
        .filter_map(|(name, key)| Some((name, get(key)?.trim().to_owned())))
        .collect();
    if sets.is_empty() {
        return None;
    }
    let kind = stored.kind();
    let none = Labels::default();
    let on_namespace = labels.is_some();
    let target = Target {
        namespace: if on_namespace { &metadata.name } else { &metadata.namespace },
        namespace_metadata: on_namespace.then_some(metadata),
        kind: kind.name(),
        name: &metadata.name,
        annotations: if on_namespace { &none } else { annotations },
        controlled: metadata.controller.is_some(),
        now: Some(now),
    };
    let mut object = kind.reference(&metadata.namespace, &metadata.name);
    object.namespace = object.namespace.filter(|namespace| !namespace.is_empty());
    let resolved = policy.resolve(&target);
    let ignored = resolved.passed_over().iter().find(|passed| {
        passed.ends_override
            && matches!(passed.source, OverrideSource::Namespace(_)) == on_namespace
    });
    Some(Override {
        object,
        sets,
        reason: get(keys::REASON).map_or_else(String::new, |text| text.trim().to_owned()),
        by: None,
        since: None,
        until: get(keys::UNTIL).map(|text| text.trim().to_owned()),
        ignored: ignored.map(ToString::to_string),
    })
}

/// The field manager that last wrote the annotations or labels of the override, and the time.
pub(super) fn written(document: &Value) -> Option<(String, Option<Timestamp>)> {
    let managers = document["metadata"]["managedFields"].as_array()?;
    let owns = |manager: &&Value| {
        let fields = &manager["fieldsV1"]["f:metadata"];
        SETTINGS.iter().any(|(_, key)| {
            let key = format!("f:{key}");
            ["f:annotations", "f:labels"].iter().any(|part| !fields[part][&key].is_null())
        })
    };
    let times = managers.iter().filter(owns).map(|manager| {
        let time = manager["time"].as_str().and_then(|time| time.parse().ok());
        (time, manager["manager"].as_str())
    });
    let (since, by): (Option<Timestamp>, _) = times.max()?;
    Some((by?.to_owned(), since))
}
