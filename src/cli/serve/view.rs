//! The facts by which reviews are judged, from files or from a live cluster.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::options::{ServeOptions, Stale};
use engine::model::object::ObjectKind;
use engine::model::workload::WorkloadKind;
use engine::policy::Action;
use engine::snapshot::{Snapshot, Usage, View};
use engine::verdict::{EffectivePolicy, Verdict};
use source::Asker;
use source::connect::Access;
use source::facts::{self, FactsError};
use source::informer::{Doubt, Fitness, Informer, MAX_CONFIRMATIONS, MAX_LOOKUPS};
use source::revisions::{FileRevisions, LiveRevisions, Owner, Revision, RevisionsError};
use source::status::{KindStatus, Link};
use std::sync::atomic::Ordering;
use webhook::admission::{Endpoint, Received, is_reported};
use webhook::server::{HealthSource, Metrics, Readiness};

/// The name of the condition on the view.
const NAME: &str = "view";

/// The longest time that a review waits for facts that the view lacks: the API server that sent it
/// may itself be slow to answer. A denial is rare, and may wait longer to be confirmed.
const LONGEST_WAIT: Duration = Duration::from_secs(3);

/// The source of facts.
pub(super) enum FactSource {
    /// Files that stand for a whole cluster.
    Files { cluster: Box<Snapshot>, revisions: FileRevisions },
    /// A cluster that is followed.
    Live(Box<Live>),
}

/// A cluster that is followed.
pub(super) struct Live {
    informer: Informer,
    revisions: LiveRevisions,
    stale: Stale,
    metrics: Metrics,
}

impl FactSource {
    /// Reads the files that the options name or, if they name none, begins to follow the cluster.
    pub(super) fn open(options: &ServeOptions, metrics: &Metrics) -> Result<Self, FactsError> {
        if options.facts.is_empty() {
            let (pods, custom) = (options.bare_pods, options.custom_workloads);
            let informer = Informer::start(
                Access::default(),
                move |kind| {
                    (pods || kind != ObjectKind::Workload(WorkloadKind::Pod))
                        && (custom || kind.is_built_in())
                },
                options.object_memory << 20,
            );
            return Ok(Self::Live(Box::new(Live {
                informer,
                revisions: LiveRevisions::default(),
                stale: options.stale,
                metrics: metrics.clone(),
            })));
        }
        let cluster = facts::load(&options.facts, &mut io::stdin().lock())?;
        Ok(Self::Files {
            cluster: Box::new(cluster),
            revisions: FileRevisions::read(&options.facts),
        })
    }

    /// Judges by the view, and again if further facts are looked up. Spends at most half of the
    /// time until `deadline` on look-ups, and usually none.
    ///
    /// The cache may be behind, so a verdict that the user will see is first confirmed with the API
    /// server.
    pub(super) async fn verdict(
        &self,
        endpoint: Endpoint,
        received: &Received<'_>,
        effective: &ArcSwap<EffectivePolicy>,
        asker: Asker<'_>,
        deadline: Instant,
    ) -> Verdict {
        let judge = |view: View<'_>| received.judge(endpoint, view, &effective.load());
        let live = match self {
            Self::Files { cluster, .. } => return judge(cluster.view()),
            Self::Live(live) => &live.informer,
        };
        let mut left = MAX_LOOKUPS;
        let verdict = live.answer_within(asker, &mut left, wait_until(deadline), &judge).await;
        // An object that was too complex to judge is too complex again.
        if !is_reported(endpoint, &verdict) || verdict.too_complex {
            return verdict;
        }
        let action = verdict.action();
        let most = match action {
            Action::Deny | Action::Fix => MAX_CONFIRMATIONS,
            Action::Warn | Action::Ignore => left,
        };
        let soon = wait_until(deadline);
        let until = || if action == Action::Deny { half_way(deadline) } else { soon };
        let rule = verdict.with(Action::Deny).next().map(|finding| finding.rule);
        let decide = |view: View<'_>| {
            let rule = Some(rule?);
            let decided = received.judge_by(rule, endpoint, view, &effective.load());
            (decided.action() == Action::Deny).then_some(decided)
        };
        let (confirmed, doubt) = live.confirm(asker, most, until, decide, &judge).await;
        match doubt {
            // The objects that were looked up would be unknown again.
            Some(Doubt::TooMuch) if most < MAX_LOOKUPS => verdict,
            Some(doubt) => self.unconfirmed(confirmed, received, &doubt.to_string()),
            None => confirmed,
        }
    }

    /// Applies `--stale` to the verdict if it denies. `why` says what was not confirmed.
    pub(super) fn unconfirmed(
        &self,
        verdict: Verdict,
        received: &Received<'_>,
        why: &str,
    ) -> Verdict {
        let live = match self {
            Self::Live(live) if verdict.action() == Action::Deny => live,
            _ => return verdict,
        };
        let is_denied = live.stale == Stale::Deny;
        let result = if is_denied { "denied" } else { "warned" };
        live.metrics.unconfirmed_denials.get_or_create(&[("result", result)]).inc();
        tracing::warn!(
            object = %received.reference(), user = received.user(), is_denied, why,
            "A denial was not confirmed."
        );
        if is_denied { verdict } else { verdict.without_denials(&format!("Not denied: {why}.")) }
    }

    /// The revisions of a workload, which are compared with `template`.
    pub(super) async fn revisions(
        &self,
        owner: &Owner<'_>,
        template: &RawValue,
        asker: Asker<'_>,
        deadline: Instant,
    ) -> Result<Vec<Revision>, RevisionsError> {
        let live = match self {
            Self::Files { revisions, .. } => return Ok(revisions.find(owner, template)),
            Self::Live(live) => live,
        };
        let client = live.informer.client().ok_or(RevisionsError::Late("revisions"))?;
        live.revisions.find(&client, owner, template, asker, deadline).await
    }

    /// The informer, unless the facts come from files.
    pub(super) fn live(&self) -> Option<&Informer> {
        match self {
            Self::Files { .. } => None,
            Self::Live(live) => Some(&live.informer),
        }
    }

    /// The view's part of readiness. A call of it also updates the gauges.
    pub(super) fn health(self: &Arc<Self>, metrics: &Metrics) -> Arc<HealthSource> {
        let view = Arc::clone(self);
        let metrics = metrics.clone();
        Arc::new(move || match &*view {
            Self::Files { .. } => Readiness::ready(NAME, "The facts come from files."),
            Self::Live(live) => {
                let live = &live.informer;
                let usage = live.usage();
                gauge(&live.statuses(), usage, &metrics);
                for (result, count) in live.lookup_counts() {
                    let lookups = metrics.late_lookups.get_or_create(&[("result", result)]);
                    lookups.inner().store(count, Ordering::Relaxed);
                }
                condition(live.fitness(), usage)
            }
        })
    }
}

/// The middle of the remaining time: one half is for waiting, the other half for answering.
pub(super) fn half_way(deadline: Instant) -> Instant {
    let now = Instant::now();
    now + deadline.saturating_duration_since(now) / 2
}

fn wait_until(deadline: Instant) -> Instant {
    half_way(deadline).min(Instant::now() + LONGEST_WAIT)
}

fn condition(fitness: Fitness, usage: Usage) -> Readiness {
    match fitness {
        Fitness::Current if usage.left_out > 0 => Readiness::ready(
            NAME,
            format!(
                "All facts of the cluster are followed, but {} objects are left out to limit the memory; the log names their namespaces.",
                usage.left_out
            ),
        ),
        Fitness::Current => {
            Readiness::ready(NAME, "All facts of the cluster are known and followed.")
        }
        Fitness::Stale(why) => Readiness::degraded(NAME, why),
        Fitness::Incomplete(why) => Readiness::not_ready(NAME, why),
    }
}

fn gauge(statuses: &[KindStatus], usage: Usage, metrics: &Metrics) {
    metrics.view_bytes.set(number(usage.bytes));
    metrics.view_left_out.set(number(usage.left_out));
    let is_connected = statuses.iter().all(|status| status.link == Link::Connected);
    metrics.view_connected.set(is_connected.into());
    for status in statuses {
        let labels = [("resource", status.kind.plural())];
        let synced = metrics.view_synced.get_or_create(&labels);
        synced.set(status.synced.into());
        metrics.view_objects.get_or_create(&labels).set(number(status.objects));
        if let Some(at) = status.last_event {
            metrics.view_last_event.get_or_create(&labels).set(at);
        }
    }
}

fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
