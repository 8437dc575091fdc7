//! Events on objects, so that `kubectl describe` shows what the guard did to them.
//!
//! A review is answered before its object is stored, and other webhooks can still refuse it.
//! So Events wait in a queue until their object exists. Sending to the queue never blocks a
//! request: when the queue is full, the Event is dropped.

use std::collections::HashMap;
use std::convert::Infallible;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::poll_fn;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::api::DynamicObject;
use kube::core::{ApiResource, GroupVersionKind};
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use kube::{Api, Client};
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::{Instant, error::Elapsed, sleep, timeout};

use engine::model::Text;
use engine::model::object::ObjectKind;
use engine::model::uid::Uid;

/// The reporter, in the column `From`.
const CONTROLLER: &str = "multi-attach-guard";

/// Capacity of the queue; further occurrences are dropped.
const QUEUE: usize = 1024;

/// Occurrences that wait for their object at the same time.
const AWAITED: usize = 256;

/// Concurrent requests, so that Events leave the API server free for reviews.
const AT_ONCE: usize = 4;

/// Pauses before each look for the object. It nearly always exists at the first look; other
/// webhooks can take up to 30 s.
const LOOKS: [Duration; 5] = [
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
    Duration::from_secs(8),
    Duration::from_secs(16),
];

/// After this time without an answer the API server counts as unreachable.
const ANSWER: Duration = Duration::from_secs(10);

/// The same Event is recorded once in this time: a client that sends an object in a loop must
/// not cause a stream of writes.
const PAUSE: Duration = Duration::from_secs(60);

/// The longest note in bytes (`NoteLengthLimit` of the API server's validation).
const LONGEST_NOTE: usize = 1024;

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Reason {
    /// The object was changed so that the hazard is gone.
    Repaired,
    /// The object passed with a warning; the built-in policy would have denied it.
    Warned,
}

/// Something that happened to an object.
#[derive(Clone, Debug)]
pub(super) struct Occurrence {
    /// The object's kind.
    pub kind: ObjectKind,
    /// Its namespace.
    pub namespace: Text,
    /// Its name.
    pub name: Text,
    /// The object's uid, if it is known already.
    pub uid: Uid,
    /// The rule of the finding.
    pub rule: &'static str,
    /// What was done.
    pub reason: Reason,
    /// The Event's text.
    pub note: String,
}

/// What happened to an occurrence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventResult {
    /// The Event was recorded.
    Recorded,
    /// The same Event is less than a minute old.
    Repeated,
    /// The object was not stored, or is gone.
    Gone,
    /// The queue was full.
    Dropped,
    /// The API server refused, or did not answer.
    Failed,
}

impl EventResult {
    /// All results.
    pub(super) const ALL: [Self; 5] = [
        Self::Recorded,
        Self::Repeated,
        Self::Gone,
        Self::Dropped,
        Self::Failed,
    ];

    /// The name in metrics.
    #[must_use]
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Recorded => "recorded",
            Self::Repeated => "repeated",
            Self::Gone => "gone",
            Self::Dropped => "dropped",
            Self::Failed => "failed",
        }
    }
}

/// The sending end of the queue.
#[derive(Clone, Debug)]
pub(super) struct EventSender(Sender<Occurrence>);

/// The receiving end of the queue.
#[derive(Debug)]
pub(super) struct EventQueue(Receiver<Occurrence>);

/// A queue with its two ends.
#[must_use]
pub(super) fn queue() -> (EventSender, EventQueue) {
    let (sender, receiver) = channel(QUEUE);
    (EventSender(sender), EventQueue(receiver))
}

impl EventSender {
    /// Queues an occurrence without waiting; `false` if it was dropped.
    #[must_use]
    pub(super) fn send(&self, occurrence: Occurrence) -> bool {
        self.0.try_send(occurrence).is_ok()
    }
}

impl EventQueue {
    /// Records occurrences forever, and reports the result of each.
    pub(super) async fn record(
        mut self,
        client: Client,
        results: impl Fn(EventResult),
    ) -> Infallible {
        let recorder = EventRecorder::new(client);
        poll_fn(|context| self.0.poll_recv(context))
            .for_each_concurrent(AWAITED, |occurrence| {
                let (recorder, results) = (&recorder, &results);
                async move { results(recorder.outcome(&occurrence).await) }
            })
            .await;
        std::future::pending().await
    }
}

/// Why an Event was not recorded.
#[derive(Debug, thiserror::Error)]
enum Trouble {
    #[error("{0}")]
    Client(#[from] kube::Error),
    #[error("no answer within {} s", ANSWER.as_secs())]
    Silent(#[from] Elapsed),
}

/// What makes two Events the same.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    uid: String,
    rule: &'static str,
    reason: Reason,
}

struct EventRecorder {
    client: Client,
    recorder: Recorder,
    turns: Semaphore,
    /// When each Event was recorded.
    recent: Mutex<HashMap<Key, Instant>>,
}

impl EventRecorder {
    fn new(client: Client) -> Self {
        Self {
            recorder: Recorder::new(client.clone(), Reporter::from(CONTROLLER)),
            client,
            turns: Semaphore::new(AT_ONCE),
            recent: Mutex::default(),
        }
    }

    async fn outcome(&self, occurrence: &Occurrence) -> EventResult {
        self.record(occurrence).await.unwrap_or_else(|trouble| {
            tracing::warn!(
                kind = occurrence.kind.name(),
                namespace = %occurrence.namespace,
                name = %occurrence.name,
                "An Event could not be recorded: {trouble}. Give the guard's ServiceAccount the \
                 rights in manifests/components/events."
            );
            EventResult::Failed
        })
    }

    async fn record(&self, occurrence: &Occurrence) -> Result<EventResult, Trouble> {
        let Some(uid) = self.stored(occurrence).await? else {
            return Ok(EventResult::Gone);
        };
        let key = Key {
            uid: uid.clone(),
            rule: occurrence.rule,
            reason: occurrence.reason,
        };
        if !self.is_new(&key, Instant::now()) {
            return Ok(EventResult::Repeated);
        }
        let (event, reference) = (occurrence.event(), occurrence.reference(uid));
        let published = {
            let _turn = self.turns.acquire().await;
            timeout(ANSWER, self.recorder.publish(&event, &reference)).await
        };
        match published {
            Ok(Ok(())) => Ok(EventResult::Recorded),
            failed => {
                self.recent().remove(&key);
                Ok(failed?.map(|()| EventResult::Recorded)?)
            }
        }
    }

    /// The uid of the object once it exists, by which `kubectl describe` finds Events; `None` if it
    /// is never stored, or if another object has its name.
    async fn stored(&self, occurrence: &Occurrence) -> Result<Option<String>, Trouble> {
        let resource = occurrence.resource();
        let api: Api<DynamicObject> =
            Api::namespaced_with(self.client.clone(), &occurrence.namespace, &resource);
        for pause in LOOKS {
            sleep(pause).await;
            let _turn = self.turns.acquire().await;
            let expected = (occurrence.uid != Uid::default()).then(|| occurrence.uid.to_string());
            let found = match timeout(ANSWER, api.get_metadata_opt(&occurrence.name)).await? {
                // The guard may judge pods without the right to read them; assume that it exists.
                Err(kube::Error::Api(status)) if status.is_forbidden() && expected.is_some() => {
                    return Ok(expected);
                }
                found => found?,
            };
            if let Some(uid) = found.and_then(|object| object.metadata.uid) {
                let is_it = expected.is_none_or(|expected| expected == uid);
                return Ok(is_it.then_some(uid));
            }
        }
        Ok(None)
    }

    /// Whether no such Event was recorded lately; marks it as recorded.
    fn is_new(&self, key: &Key, now: Instant) -> bool {
        let mut recent = self.recent();
        recent.retain(|_, recorded| now.duration_since(*recorded) < PAUSE);
        if recent.contains_key(key) {
            return false;
        }
        recent.insert(key.clone(), now);
        true
    }

    fn recent(&self) -> MutexGuard<'_, HashMap<Key, Instant>> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Occurrence {
    fn resource(&self) -> ApiResource {
        let (group, version) = self
            .kind
            .api_version()
            .rsplit_once('/')
            .unwrap_or(("", self.kind.api_version()));
        ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, self.kind.name()))
    }

    fn reference(&self, uid: String) -> ObjectReference {
        ObjectReference {
            api_version: Some(self.kind.api_version().to_owned()),
            kind: Some(self.kind.name().to_owned()),
            namespace: Some(self.namespace.to_string()),
            name: Some(self.name.to_string()),
            uid: Some(uid),
            ..ObjectReference::default()
        }
    }

    /// The action is the rule, so that Events of two rules on one object stay separate.
    fn event(&self) -> Event {
        Event {
            type_: match self.reason {
                Reason::Repaired => EventType::Normal,
                Reason::Warned => EventType::Warning,
            },
            reason: self.reason.to_string(),
            note: Some(noted(&self.note)),
            action: self.rule.to_owned(),
            secondary: None,
        }
    }
}

/// The word in the column `Reason`.
impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Repaired => "Repaired",
            Self::Warned => "Warned",
        })
    }
}

/// The text, cut to the length of a note.
fn noted(text: &str) -> String {
    const CUT: &str = "…";
    if text.len() <= LONGEST_NOTE {
        return text.to_owned();
    }
    let fits = |(at, letter): &(usize, char)| at + letter.len_utf8() + CUT.len() <= LONGEST_NOTE;
    let start = text.char_indices().take_while(fits);
    start.map(|(_, letter)| letter).chain(CUT.chars()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn occurrence() -> Occurrence {
        Occurrence {
            kind: ObjectKind::Claim,
            namespace: "shop".into(),
            name: "data".into(),
            uid: Uid::default(),
            rule: "unsupported-access-mode",
            reason: Reason::Warned,
            note: "It cannot be.".to_owned(),
        }
    }

    #[test]
    fn what_does_not_fit_is_dropped_at_once() {
        let (sender, _queue) = queue();
        let kept = (0..2 * QUEUE).filter(|_| sender.send(occurrence()));
        assert_eq!(kept.count(), QUEUE);
    }

    #[test]
    fn notes_are_no_longer_than_the_api_server_takes() {
        assert_eq!(noted("short"), "short");
        let long = noted(&"ü".repeat(LONGEST_NOTE));
        assert!(long.len() <= LONGEST_NOTE && long.ends_with("ü…"), "{long}");
        assert_eq!(noted(&"a".repeat(LONGEST_NOTE)).len(), LONGEST_NOTE);
    }

    #[test]
    fn resources_are_named_as_the_api_server_names_them() {
        use engine::model::workload::WorkloadKind;
        let cases = [
            (ObjectKind::Claim, "", "v1", "persistentvolumeclaims"),
            (
                ObjectKind::Autoscaler,
                "autoscaling",
                "v2",
                "horizontalpodautoscalers",
            ),
            (
                ObjectKind::Workload(WorkloadKind::CronJob),
                "batch",
                "v1",
                "cronjobs",
            ),
        ];
        for (kind, group, version, plural) in cases {
            let resource = Occurrence {
                kind,
                ..occurrence()
            }
            .resource();
            let found = (&*resource.group, &*resource.version, &*resource.plural);
            assert_eq!(found, (group, version, plural));
        }
    }
}
