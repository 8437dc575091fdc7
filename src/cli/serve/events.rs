//! Which findings become Kubernetes Events, and the queue for them.

use std::convert::Infallible;

use kube::Client;

use super::event_recorder::{EventQueue, EventResult, EventSender, Occurrence, Reason, queue};
use super::options::ServeOptions;
use super::{ServeError, cluster};
use engine::policy::{Action, is_denied_by_default};
use engine::verdict::{Finding, Verdict};
use webhook::admission::{Decision, Received};
use webhook::server::Metrics;

/// Queues Events.
#[derive(Clone)]
pub(super) struct Events {
    sender: EventSender,
    metrics: Metrics,
}

/// The Events to record, and the client that records them.
pub(super) struct Queue {
    events: EventQueue,
    client: Client,
}

/// The two ends of the queue, with `--events`.
pub(super) async fn open(
    options: &ServeOptions,
    metrics: &Metrics,
) -> Result<Option<(Events, Queue)>, ServeError> {
    metrics
        .events
        .expect(EventResult::ALL.map(EventResult::name));
    if !options.events {
        return Ok(None);
    }
    let (client, _) = cluster("--events").await?;
    let (sender, queued) = queue();
    let events = Events {
        sender,
        metrics: metrics.clone(),
    };
    let queue = Queue {
        events: queued,
        client,
    };
    Ok(Some((events, queue)))
}

/// Records Events forever; without a queue it only waits.
pub(super) async fn record(queue: Option<Queue>, metrics: &Metrics) -> Infallible {
    match queue {
        Some(Queue { events, client }) => {
            let count = |result: EventResult| metrics.events.count(result.name());
            events.record(client, count).await
        }
        None => std::future::pending().await,
    }
}

impl Events {
    /// Queues the Events for a review that was decided.
    pub(super) fn enqueue(&self, received: &Received<'_>, decision: Decision, verdict: &Verdict) {
        let Some(object) = received.submitted() else {
            return;
        };
        for (finding, reason) in reportable(decision, verdict) {
            let is_kept = self.sender.send(Occurrence {
                kind: object.kind,
                namespace: object.namespace.clone(),
                name: object.name.clone(),
                uid: object.uid,
                rule: finding.rule,
                reason,
                note: finding.message.clone(),
            });
            if !is_kept {
                self.metrics.events.count(EventResult::Dropped.name());
            }
        }
    }
}

/// The findings that deserve an Event: repairs, unless the object is denied for another finding,
/// and warnings that the built-in policy would deny.
fn reportable(decision: Decision, verdict: &Verdict) -> impl Iterator<Item = (&Finding, Reason)> {
    let reported = match decision {
        Decision::Patched if verdict.action() != Action::Deny => {
            Some((Action::Fix, Reason::Repaired))
        }
        Decision::Warned => Some((Action::Warn, Reason::Warned)),
        Decision::Allowed | Decision::Patched | Decision::Denied | Decision::Unreadable => None,
    };
    let findings = verdict.findings.iter();
    findings.filter_map(move |finding| {
        let (action, reason) = reported?;
        let is_grave =
            action == Action::Fix || is_denied_by_default(finding.outcome, finding.certainty);
        (finding.action == action && is_grave).then_some((finding, reason))
    })
}
