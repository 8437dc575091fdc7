//! Events on objects, so that `kubectl describe` shows what the guard did to them.
//!
//! A review is answered before its object is stored, and other webhooks can still refuse it.
//! So Events wait in a queue until their object exists. Sending to the queue never blocks a
//! request: when the queue is full, the Event is dropped.

use std::collections::HashMap;
use std::convert::Infallible;
use std::future::{Future, pending};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::poll_fn;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::api::DynamicObject;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use kube::{Api, Client};
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{Sender, channel};
use tokio::time::{Instant, error::Elapsed, sleep, timeout};

use super::options::ServeOptions;
use super::{ServeError, cluster};
use engine::model::metadata::is_name;
use engine::model::uid::Uid;
use engine::policy::{Action, is_denied_by_default};
use engine::verdict::{Finding, Verdict};
use source::api_resource;
use webhook::admission::{Decision, Received, Submitted};
use webhook::server::Metrics;

/// The reporter, in the column `From`.
const CONTROLLER: &str = "multi-attach-guard";

/// The capacity of the queue; further occurrences are dropped.
const QUEUE: usize = 1024;

/// The number of occurrences that wait for their object at the same time.
const AWAITED: usize = 256;

/// The number of concurrent requests. It is small so that Events leave the API server free for
/// reviews.
const AT_ONCE: usize = 4;

/// The pauses before each look for the object. It nearly always exists at the first look; other
/// webhooks can take up to 30 s.
const LOOKS: [Duration; 5] = [
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
    Duration::from_secs(8),
    Duration::from_secs(16),
];

/// The time without an answer after which the API server counts as unreachable.
const ANSWER: Duration = Duration::from_secs(10);

/// The time in which the same Event is recorded only once: a client that sends an object in a loop
/// must not cause a stream of writes.
const PAUSE: Duration = Duration::from_secs(60);

/// The longest note in bytes (`NoteLengthLimit` of the API server's validation).
const LONGEST_NOTE: usize = 1024;

/// The results of Events, in metrics.
const RECORDED: &str = "recorded";
/// The same Event is less than a minute old.
const REPEATED: &str = "repeated";
/// The object was not stored, or is gone.
const GONE: &str = "gone";
/// The queue was full.
const DROPPED: &str = "dropped";
/// The API server refused, or did not answer.
const FAILED: &str = "failed";

/// The object was changed so that the hazard is gone.
const REPAIRED: &str = "Repaired";
/// The object passed with a warning; the built-in policy would have denied it.
const WARNED: &str = "Warned";

/// The sending end of the queue.
pub(super) struct Events {
    sender: Sender<Occurrence>,
    metrics: Metrics,
}

/// Something that happened to an object.
struct Occurrence {
    object: Submitted,
    event: Event,
}

/// With `--events`, the queue and a future that records its Events forever.
pub(super) async fn open(
    options: &ServeOptions,
    metrics: &Metrics,
) -> Result<Option<(Events, impl Future<Output = Infallible> + use<>)>, ServeError> {
    for result in [RECORDED, REPEATED, GONE, DROPPED, FAILED] {
        drop(metrics.events.get_or_create(&[("result", result)]));
    }
    if !options.events {
        return Ok(None);
    }
    let (client, _) = cluster("--events").await?;
    let recorder = EventRecorder {
        recorder: Recorder::new(client.clone(), Reporter::from(CONTROLLER)),
        client,
        metrics: metrics.clone(),
        turns: Semaphore::new(AT_ONCE),
        recent: Mutex::default(),
    };
    let (sender, mut queue) = channel(QUEUE);
    let events = Events { sender, metrics: metrics.clone() };
    let record = async move {
        poll_fn(|context| queue.poll_recv(context))
            .for_each_concurrent(AWAITED, |occurrence| recorder.take(occurrence))
            .await;
        pending().await
    };
    Ok(Some((events, record)))
}

impl Events {
    /// Queues the Events for a review that was decided.
    pub(super) fn enqueue(&self, received: &Received<'_>, decision: Decision, verdict: &Verdict) {
        let Some(object) = received.submitted() else {
            return;
        };
        for (finding, reason) in reportable(decision, verdict) {
            let sent = self
                .sender
                .try_send(Occurrence { object: object.clone(), event: event(finding, reason) });
            if sent.is_err() {
                count(&self.metrics, DROPPED);
            }
        }
    }
}

/// The findings that deserve an Event: repairs, unless the object is denied for another finding,
/// and warnings that the built-in policy would deny.
fn reportable(
    decision: Decision,
    verdict: &Verdict,
) -> impl Iterator<Item = (&Finding, &'static str)> {
    let reported = match decision {
        Decision::Patched if verdict.action() != Action::Deny => Some((Action::Fix, REPAIRED)),
        Decision::Warned => Some((Action::Warn, WARNED)),
        Decision::Allowed | Decision::Patched | Decision::Denied | Decision::Unreadable => None,
    };
    verdict.findings.iter().filter_map(move |finding| {
        let (action, reason) = reported?;
        let is_grave =
            action == Action::Fix || is_denied_by_default(finding.outcome, finding.certainty);
        (finding.action == action && is_grave).then_some((finding, reason))
    })
}

fn count(metrics: &Metrics, result: &'static str) {
    metrics.events.get_or_create(&[("result", result)]).inc();
}

/// A reason why an Event was not recorded.
#[derive(Debug, thiserror::Error)]
enum Trouble {
    #[error("{0}")]
    Client(#[from] kube::Error),
    #[error("no answer within {} s", ANSWER.as_secs())]
    Silent(#[from] Elapsed),
}

/// The identity of an Event: the object's uid, the rule and the reason.
type Key = (String, String, String);

struct EventRecorder {
    client: Client,
    recorder: Recorder,
    metrics: Metrics,
    turns: Semaphore,
    /// The time at which each Event was recorded.
    recent: Mutex<HashMap<Key, Instant>>,
}

impl EventRecorder {
    /// Records the occurrence once its object exists, and counts the result.
    async fn take(&self, occurrence: Occurrence) {
        let result = self.record(&occurrence).await.unwrap_or_else(|trouble| {
            let object = &occurrence.object;
            tracing::warn!(
                kind = object.kind.name(), namespace = %object.namespace, name = %object.name,
                "An Event could not be recorded: {trouble}. Give the guard's ServiceAccount the \
                 rights in manifests/components/events."
            );
            FAILED
        });
        count(&self.metrics, result);
    }

    async fn record(&self, occurrence: &Occurrence) -> Result<&'static str, Trouble> {
        let Occurrence { object, event } = occurrence;
        let Some(uid) = self.stored(object).await? else {
            return Ok(GONE);
        };
        let key = (uid.clone(), event.action.clone(), event.reason.clone());
        if !self.is_new(&key, Instant::now()) {
            return Ok(REPEATED);
        }
        let reference = reference(object, uid);
        let published = {
            let _turn = self.turns.acquire().await;
            timeout(ANSWER, self.recorder.publish(event, &reference)).await
        };
        match published {
            Ok(Ok(())) => Ok(RECORDED),
            failed => {
                self.recent().remove(&key);
                Ok(failed?.map(|()| RECORDED)?)
            }
        }
    }

    /// The uid of the object once it exists, by which `kubectl describe` finds Events; `None` if it
    /// is never stored, or if another object has its name.
    async fn stored(&self, object: &Submitted) -> Result<Option<String>, Trouble> {
        // The mutating webhook sees names that the API server has yet to refuse, and a request could
        // reach something else: `../secrets`.
        if !is_name(&object.namespace) || !is_name(&object.name) {
            return Ok(None);
        }
        let resource = api_resource(object.kind);
        let api: Api<DynamicObject> =
            Api::namespaced_with(self.client.clone(), &object.namespace, &resource);
        for pause in LOOKS {
            sleep(pause).await;
            let _turn = self.turns.acquire().await;
            let expected = (object.uid != Uid::default()).then(|| object.uid.to_string());
            let found = match timeout(ANSWER, api.get_metadata_opt(&object.name)).await? {
                // The guard may judge pods without the right to read them; assume that the pod
                // exists.
                Err(kube::Error::Api(status)) if status.is_forbidden() && expected.is_some() => {
                    return Ok(expected);
                }
                found => found?,
            };
            if let Some(uid) = found.and_then(|stored| stored.metadata.uid) {
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

/// The Event. Its action is the rule, so that Events of two rules on one object stay separate.
fn event(finding: &Finding, reason: &str) -> Event {
    Event {
        type_: if reason == REPAIRED { EventType::Normal } else { EventType::Warning },
        reason: reason.to_owned(),
        note: Some(noted(&finding.message)),
        action: finding.rule.to_owned(),
        secondary: None,
    }
}

fn reference(object: &Submitted, uid: String) -> ObjectReference {
    ObjectReference {
        api_version: Some(object.kind.api_version().to_owned()),
        kind: Some(object.kind.name().to_owned()),
        namespace: Some(object.namespace.to_string()),
        name: Some(object.name.to_string()),
        uid: Some(uid),
        ..ObjectReference::default()
    }
}

/// The text, cut to the length of a note.
fn noted(text: &str) -> String {
    if text.len() <= LONGEST_NOTE {
        return text.to_owned();
    }
    let mut end = LONGEST_NOTE - '…'.len_utf8();
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…", &text[..end])
}

#[cfg(test)]
mod tests {
    use axum::http::{Request, Response};
    use engine::model::object::ObjectKind;
    use kube::client::Body;
    use tower::service_fn;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn objects_are_looked_for_only_under_names_that_can_exist() {
        let client = Client::new(
            service_fn(async |_: Request<Body>| {
                let stored = br#"{"metadata": {"name": "web", "uid": "u"}}"#;
                Ok::<_, Infallible>(Response::new(Body::from(stored.to_vec())))
            }),
            "default",
        );
        let recorder = EventRecorder {
            recorder: Recorder::new(client.clone(), Reporter::from(CONTROLLER)),
            client,
            metrics: Metrics::new(&[]),
            turns: Semaphore::new(AT_ONCE),
            recent: Mutex::default(),
        };
        for (namespace, name, uid) in
            [("shop", "web", Some("u")), ("shop", "../secrets/web", None), ("a?x=y", "web", None)]
        {
            let object = Submitted {
                kind: ObjectKind::Claim,
                namespace: namespace.into(),
                name: name.into(),
                uid: Uid::default(),
            };
            let found = recorder.stored(&object).await.unwrap();
            assert_eq!(found.as_deref(), uid, "{namespace}/{name}");
        }
    }

    #[test]
    fn notes_are_no_longer_than_the_api_server_takes() {
        assert_eq!(noted("short"), "short");
        let long = noted(&"ü".repeat(LONGEST_NOTE));
        assert!(long.len() <= LONGEST_NOTE && long.ends_with("ü…"), "{long}");
        assert_eq!(noted(&"a".repeat(LONGEST_NOTE)).len(), LONGEST_NOTE);
    }
}
