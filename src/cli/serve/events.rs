//! What of a verdict is told in Events.

use std::convert::Infallible;

use kube::Client;

use super::options::ServeOptions;
use super::{ServeError, cluster};
use crate::admission::{Decision, Received};
use crate::events::{Occurrence, Reason, Teller, Told, Untold, queue};
use crate::policy::{Action, is_denied_by_default};
use crate::server::Metrics;
use crate::verdict::{Finding, Verdict};

/// Where the reviewer leaves what is to be told.
pub(super) struct Events {
    teller: Teller,
    metrics: Metrics,
}

/// The two ends of the queue, if Events are asked for.
pub(super) async fn open(
    options: &ServeOptions,
    metrics: &Metrics,
) -> Result<(Option<Events>, Option<(Untold, Client)>), ServeError> {
    metrics.expect_events(Told::ALL.map(Told::name));
    if !options.events {
        return Ok((None, None));
    }
    let (client, _) = cluster("--events").await?;
    let (teller, untold) = queue();
    let events = Events {
        teller,
        metrics: metrics.clone(),
    };
    Ok((Some(events), Some((untold, client))))
}

/// Records for ever; without a queue there is nothing to record.
pub(super) async fn record(queue: Option<(Untold, Client)>, metrics: &Metrics) -> Infallible {
    match queue {
        Some((untold, client)) => {
            let told = |told: Told| metrics.event(told.name());
            untold.record(client, told).await
        }
        None => std::future::pending().await,
    }
}

impl Events {
    /// Leaves what is to be told of a review that was decided.
    pub(super) fn tell(&self, received: &Received<'_>, decision: Decision, verdict: &Verdict) {
        let Some(object) = received.submitted() else {
            return;
        };
        for (finding, reason) in worth_telling(decision, verdict) {
            let is_kept = self.teller.tell(Occurrence {
                kind: object.kind,
                namespace: object.namespace.clone(),
                name: object.name.clone(),
                uid: object.uid,
                rule: finding.rule,
                reason,
                note: finding.message.clone(),
            });
            if !is_kept {
                self.metrics.event(Told::Dropped.name());
            }
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
