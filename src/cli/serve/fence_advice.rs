//! Reports unreachable nodes that hold volumes.
//!
//! ```text
//! unreachable node (snapshot) ─▶ what it holds (live lookup) ─▶ advice ─▶ metrics, Events
//! ```
//!
//! Every replica looks by itself. Their metrics agree, and their Events have the same names, so
//! the API server keeps only the first of each.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use jiff::Timestamp;
use kube::Client;
use tokio::time::{Instant, sleep};

use super::event_recorder::{Occurrence, Reason};
use super::events::Events;
use super::view::FactSource;
use doctor::diagnosis::{self, BlockedPod, FenceAdvice, fence_advice};
use engine::analysis;
use engine::model::Text;
use engine::model::object::ObjectKind;
use engine::model::workload::WorkloadKind;
use engine::snapshot::Lookup;
use engine::verdict::EffectivePolicy;
use source::informer::{Fitness, Informer};
use source::unreachable_nodes;
use webhook::server::{Metrics, SilentNode};

/// The pause between two looks. While all nodes are ready, a look sends no requests.
const INTERVAL: Duration = Duration::from_secs(30);

/// The time limit for all requests of one look.
const LONGEST_LOOK: Duration = Duration::from_secs(20);

/// When the same Event is recorded again for a pod: the API server deletes Events after an hour
/// (`--event-ttl`), and an earlier attempt may have failed.
const AGAIN: Duration = Duration::from_secs(600);

/// The most nodes that get metric series of their own.
const MOST_NODES: usize = 100;

/// Looks for unreachable nodes and reports them.
pub(super) struct Advisor {
    pub(super) view: Arc<FactSource>,
    pub(super) effective: Arc<ArcSwap<EffectivePolicy>>,
    pub(super) client: Client,
    pub(super) events: Events,
    pub(super) metrics: Metrics,
}

/// Looks forever; without an advisor it only waits.
pub(super) async fn follow(advisor: Option<Advisor>) -> Infallible {
    let live = advisor.as_ref().and_then(|it| Some((it, it.view.live()?)));
    let Some((advisor, live)) = live else {
        return std::future::pending().await;
    };
    let mut history = History::default();
    let mut trouble = None;
    loop {
        sleep(INTERVAL).await;
        let looked = advisor.look(live).await;
        advisor.metrics.silent_nodes.looked(looked.is_ok());
        trouble = match looked {
            Ok(advice) => {
                history.report(&advice, advisor);
                None
            }
            Err(reason) => {
                if trouble.as_ref() != Some(&reason) {
                    tracing::warn!(
                        "The volumes of unreachable nodes cannot be determined: {reason} The rights that \
                         --fence-advice needs are in manifests/components/fence-advice."
                    );
                }
                Some(reason)
            }
        };
    }
}

impl Advisor {
    /// The current advice, or why it is not known.
    async fn look(&self, live: &Informer) -> Result<Vec<FenceAdvice>, String> {
        if let Fitness::Incomplete(reason) = live.fitness() {
            return Err(reason);
        }
        if live.look(|view| view.visit_nodes(None, &mut |_| false)) == Lookup::NotSynced {
            return Err("the nodes are not known; /readyz says why.".to_owned());
        }
        let deadline = Instant::now() + LONGEST_LOOK;
        let Some(nodes) = live.answer(deadline, unreachable_nodes::nodes).await else {
            return Ok(Vec::new());
        };
        let (observed, now) = unreachable_nodes::read(&self.client, nodes, deadline).await;
        if let Some(unread) = observed.unread.first() {
            return Err(format!(
                "the {} could not be read: {}.",
                unread.resource, unread.reason
            ));
        }
        let effective = self.effective.load();
        let advice = live.answer(deadline, |view| {
            fence_advice(diagnosis::DiagnosisInput {
                objects: analysis::Facts {
                    view,
                    catalog: effective.catalog(),
                    nodes: effective.policy().nodes(),
                },
                observed: &observed,
                now,
                kubectl: "kubectl",
            })
        });
        Ok(advice.await)
    }
}

/// What was reported so far.
#[derive(Default)]
struct History {
    /// The nodes that have series.
    nodes: Vec<Text>,
    /// When each Event was queued, by its name.
    events: HashMap<String, Instant>,
}

impl History {
    fn report(&mut self, advice: &[FenceAdvice], advisor: &Advisor) {
        let metrics = &advisor.metrics;
        metrics.silent_nodes.set_count(advice.len());
        let shown = &advice[..advice.len().min(MOST_NODES)];
        self.nodes.retain(|name| {
            let stays = shown.iter().any(|silent| silent.node == *name);
            if !stays {
                metrics.silent_nodes.forget(name);
            }
            stays
        });
        for silent in shown {
            metrics.silent_nodes.set(&SilentNode {
                name: &silent.node,
                volumes: silent.volumes.len(),
                waiting: silent.waiting.len(),
                last_renewed: silent.last_renewed,
            });
            if !self.nodes.contains(&silent.node) {
                tracing::warn!(
                    node = %silent.node,
                    volumes = silent.volumes.len(),
                    "A node that holds volumes is unreachable."
                );
                self.nodes.push(silent.node.clone());
            }
        }
        let now = Instant::now();
        self.events
            .retain(|_, at| now.saturating_duration_since(*at) < AGAIN);
        for silent in advice {
            for pod in &silent.waiting {
                let name = name_of_event(silent, pod);
                if self.events.contains_key(&name) {
                    continue;
                }
                // A dropped Event is queued again at the next look.
                if advisor.events.enqueue(occurrence(&name, pod)) {
                    self.events.insert(name, now);
                }
            }
        }
    }
}

/// The same for every replica: from the pod, and the node's last heartbeat.
fn name_of_event(silent: &FenceAdvice, pod: &BlockedPod) -> String {
    let since = silent.last_renewed.map_or(0, Timestamp::as_microsecond);
    format!("multi-attach-guard.{}.{since:x}", pod.uid)
}

fn occurrence(name_of_event: &str, pod: &BlockedPod) -> Occurrence {
    Occurrence {
        kind: ObjectKind::Workload(WorkloadKind::Pod),
        namespace: pod.namespace.clone(),
        name: pod.name.clone(),
        uid: pod.uid,
        rule: "fence-advice",
        name_of_event: name_of_event.to_owned(),
        reason: Reason::HeldBySilentNode,
        note: pod.note.clone(),
    }
}
