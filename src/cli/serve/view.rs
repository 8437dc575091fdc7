//! The facts that reviews are judged by: those of files, or a live cluster's.

use std::io;
use std::sync::Arc;

use tokio::time::Instant;

use super::options::ServeOptions;
use crate::cluster::{self, Cluster};
use crate::server::{Condition, HealthSource, Metrics, ViewGauges};
use crate::view::connect::Access;
use crate::view::facts::{self, FactsError};
use crate::view::live::{Fitness, LiveView};
use crate::view::status::{KindStatus, Link};

/// The name of the condition on the view.
const NAME: &str = "view";

/// Where facts come from.
pub(super) enum View {
    /// Files, which stand for a whole cluster.
    Files(Box<Cluster>),
    /// A cluster, followed.
    Live(Box<LiveView>),
}

impl View {
    /// Reads the files the options name or, where they name none, begins to
    /// follow the cluster.
    pub(super) fn open(options: &ServeOptions) -> Result<Self, FactsError> {
        if options.facts.is_empty() {
            let live = LiveView::start(Access::default());
            return Ok(Self::Live(Box::new(live)));
        }
        let cluster = facts::load(&options.facts, &mut io::stdin().lock())?;
        Ok(Self::Files(Box::new(cluster)))
    }

    /// Judges by the view; `judge` may be called again with more facts. Waits
    /// for facts until `deadline` at most, and in most cases not at all.
    pub(super) async fn answer<T>(
        &self,
        deadline: Instant,
        judge: impl Fn(cluster::View<'_>) -> T,
    ) -> T {
        match self {
            Self::Files(cluster) => judge(cluster.view()),
            Self::Live(live) => live.answer(deadline, judge).await,
        }
    }

    /// What readiness makes of the view. The gauges are set when it is asked.
    pub(super) fn health(self: &Arc<Self>, metrics: &Metrics) -> Arc<dyn HealthSource> {
        let view = Arc::clone(self);
        let metrics = metrics.clone();
        Arc::new(move || {
            vec![match &*view {
                Self::Files(_) => Condition::ready(NAME, "The facts come from files."),
                Self::Live(live) => {
                    gauge(&live.statuses(), &metrics);
                    condition(live.fitness())
                }
            }]
        })
    }
}

fn condition(fitness: Fitness) -> Condition {
    match fitness {
        Fitness::Current => {
            Condition::ready(NAME, "All facts of the cluster are known and followed.")
        }
        Fitness::Stale(why) => Condition::degraded(NAME, why),
        Fitness::Incomplete(why) => Condition::not_ready(NAME, why),
    }
}

fn gauge(statuses: &[KindStatus], metrics: &Metrics) {
    let connected = |status: &KindStatus| matches!(status.link, Link::Connected { .. });
    metrics.set_view_connected(statuses.iter().all(connected));
    for status in statuses {
        let gauges: ViewGauges = metrics.view(status.resource);
        gauges.set_synced(status.synced);
        gauges.set_objects(status.objects);
        if let Some(at) = status.last_event {
            gauges.set_last_event(at);
        }
    }
}
