//! What is told in Events, and what of a verdict is.

use std::convert::Infallible;

use kube::Client;

use super::event_recorder::{EventQueue, EventResult, EventSender, Occurrence, Reason, queue};
use super::options::ServeOptions;
use super::{ServeError, cluster};
use engine::policy::{Action, is_denied_by_default};
use engine::verdict::{Finding, Verdict};
use webhook::admission::{Decision, Received};
use webhook::server::Metrics;

/// Where what is to be told is left.
#[derive(Clone)]
pub(super) struct Events {
    teller: EventSender,
    metrics: Metrics,
}

/// What is yet to be recorded, and by whom.
pub(super) struct Queue {
    untold: EventQueue,
    client: Client,
}

/// The two ends of the queue, if something is to be told in Events.
pub(super) async fn open(
    options: &ServeOptions,
    metrics: &Metrics,
) -> Result<Option<(Events, Queue)>, ServeError> {
    metrics
        .events
        .expect(EventResult::ALL.map(EventResult::name));
    let option = match (options.events, options.fence_advice) {
        (true, _) => "--events",
        (false, true) => "--fence-advice",
        (false, false) => return Ok(None),
    };
    let (client, _) = cluster(option).await?;
    let (teller, untold) = queue();
    let events = Events {
        teller,
        metrics: metrics.clone(),
    };
    Ok(Some((events, Queue { untold, client })))
}

/// Records for ever; without a queue there is nothing to record.
pub(super) async fn record(queue: Option<Queue>, metrics: &Metrics) -> Infallible {
    match queue {
        Some(Queue { untold, client }) => {
            let told = |told: EventResult| metrics.events.count(told.name());
            untold.record(client, told).await
        }
        None => std::future::pending().await,
    }
}

impl Queue {
    /// The client with which Events are recorded.
    pub(super) fn client(&self) -> Client {
        self.client.clone()
    }
}

impl Events {
    /// Leaves something to be told; `false` where it is dropped.
    pub(super) fn leave(&self, occurrence: Occurrence) -> bool {
        let is_kept = self.teller.tell(occurrence);
        if !is_kept {
            self.metrics.events.count(EventResult::Dropped.name());
        }
        is_kept
    }

    /// Leaves what is to be told of a review that was decided.
    pub(super) fn tell(&self, received: &Received<'_>, decision: Decision, verdict: &Verdict) {
        let Some(object) = received.submitted() else {
            return;
        };
        for (finding, reason) in worth_telling(decision, verdict) {
            self.leave(Occurrence {
                kind: object.kind,
                namespace: object.namespace.clone(),
                name: object.name.clone(),
                uid: object.uid,
                rule: finding.rule,
                name_of_event: String::new(),
                reason,
                note: finding.message.clone(),
            });
        }
    }
}

/// The findings that somebody will want to have been told of: repairs, unless the object
/// is refused all the same, and warnings that the built-in policy has as denials.
fn worth_telling(
    decision: Decision,
    verdict: &Verdict,
) -> impl Iterator<Item = (&Finding, Reason)> {
    let told = match decision {
        Decision::Patched if verdict.action() != Action::Deny => {
            Some((Action::Fix, Reason::Repaired))
        }
        Decision::Warned => Some((Action::Warn, Reason::Warned)),
        Decision::Allowed | Decision::Patched | Decision::Denied | Decision::Unreadable => None,
    };
    let findings = verdict.findings.iter();
    findings.filter_map(move |finding| {
        let (action, reason) = told?;
        let is_grave =
            action == Action::Fix || is_denied_by_default(finding.outcome, finding.certainty);
        (finding.action == action && is_grave).then_some((finding, reason))
    })
}
