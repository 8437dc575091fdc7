//! Events about pods and claims.

use jiff::Timestamp;
use serde::Deserialize;

use super::Text;
use super::de::nullable;
use super::live_pod::Pod;
use super::metadata::{Metadata, time};
use super::uid::Uid;

/// The kind of claims in Events.
const CLAIM: &str = "PersistentVolumeClaim";

/// An Event about a pod or a claim.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Event {
    metadata: Metadata,
    /// The pod or claim it is about.
    pub involved_object: Involved,
    /// `Normal` or `Warning`.
    #[serde(rename = "type", deserialize_with = "nullable")]
    kind: Text,
    /// `FailedAttachVolume` for example.
    #[serde(deserialize_with = "nullable")]
    pub reason: Text,
    /// The text.
    #[serde(deserialize_with = "nullable")]
    pub message: String,
    #[serde(deserialize_with = "nullable")]
    reporting_component: Text,
    #[serde(deserialize_with = "nullable")]
    source: EventSource,
    #[serde(deserialize_with = "time")]
    last_timestamp: Option<Timestamp>,
    #[serde(deserialize_with = "time")]
    event_time: Option<Timestamp>,
    #[serde(deserialize_with = "nullable")]
    series: Series,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Series {
    #[serde(deserialize_with = "time")]
    last_observed_time: Option<Timestamp>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct EventSource {
    #[serde(deserialize_with = "nullable")]
    component: Text,
}

impl Event {
    /// The component that recorded it; empty if it does not say. Provisioners append the name of
    /// their pod after `_`.
    pub fn reporter(&self) -> &str {
        let names = [&self.reporting_component, &self.source.component];
        let name = names.into_iter().find(|name| !name.is_empty());
        name.map_or("", |name| name.split('_').next().unwrap_or_default())
    }

    /// Whether it is about this pod, not about an earlier one with the same name.
    pub fn is_about(&self, pod: &Pod) -> bool {
        self.involved_object.kind != CLAIM && self.involved_object.is(&pod.meta)
    }

    /// Whether it is about this claim, not about an earlier one with the same name.
    pub fn is_about_claim(&self, claim: &Metadata) -> bool {
        self.involved_object.kind == CLAIM && self.involved_object.is(claim)
    }

    /// Whether it reports a fault, not progress.
    pub fn is_warning(&self) -> bool {
        self.kind == "Warning"
    }

    /// The time at which it last occurred. The field depends on the component that recorded it.
    pub fn said_at(&self) -> Option<Timestamp> {
        let times = [
            self.series.last_observed_time,
            self.last_timestamp,
            self.event_time,
            self.metadata.created(),
        ];
        times.into_iter().flatten().max()
    }
}

/// The object that an Event is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Involved {
    /// `Pod` for example.
    #[serde(deserialize_with = "nullable")]
    pub kind: Text,
    /// Its namespace.
    #[serde(deserialize_with = "nullable")]
    pub namespace: Text,
    /// Its name.
    #[serde(deserialize_with = "nullable")]
    pub name: Text,
    /// Its uid.
    #[serde(deserialize_with = "nullable")]
    pub uid: Uid,
}

impl Involved {
    fn is(&self, object: &Metadata) -> bool {
        self.name == object.name
            && self.namespace == object.namespace
            && !self.uid.contradicts(object.uid)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn events_are_about_one_pod_or_one_claim() {
        let event = |kind: &str| {
            let document = json!({"type": "Warning", "involvedObject":
                {"kind": kind, "namespace": "shop", "name": "data"}});
            serde_json::from_value::<Event>(document).unwrap()
        };
        let metadata = json!({"namespace": "shop", "name": "data"});
        let claim: Metadata = serde_json::from_value(metadata.clone()).unwrap();
        let pod: Pod = serde_json::from_value(json!({"metadata": metadata})).unwrap();
        let of_claim = event("PersistentVolumeClaim");
        assert!(of_claim.is_about_claim(&claim) && !of_claim.is_about(&pod));
        assert!(of_claim.is_warning());
        let of_pod = event("Pod");
        assert!(of_pod.is_about(&pod) && !of_pod.is_about_claim(&claim));
    }
}
