//! Connects HTTP with admission: judges each review by the current facts and the current policy.

use std::net::IpAddr;
use std::sync::Arc;

use arc_swap::ArcSwap;
use jiff::Timestamp;
use tokio::time::Instant;

use super::callers::Callers;
use super::events::Events;
use super::rollback::allow_rollback;
use super::view::{FactSource, half_way};
use engine::model::object::ObjectKind;
use engine::model::workload::WorkloadKind;
use engine::verdict::EffectivePolicy;
use source::Asker;
use webhook::admission::{self, Answer, Endpoint, MalformedReview, Received};
use webhook::server::Reviewer;

/// The kinds that are judged, for the metrics.
pub(super) fn kinds() -> Vec<&'static str> {
    let others = [
        ObjectKind::Claim,
        ObjectKind::Autoscaler,
        ObjectKind::ScaledObject,
        ObjectKind::Scale,
        ObjectKind::Node,
        ObjectKind::VolumeAttachment,
    ];
    WorkloadKind::ALL
        .into_iter()
        .map(ObjectKind::Workload)
        .chain(others)
        .map(ObjectKind::name)
        .chain([admission::OTHER_KIND])
        .collect()
}

/// Answers the reviews that the server receives, as admission decides.
pub(super) struct AdmissionReviewer {
    pub(super) effective: Arc<ArcSwap<EffectivePolicy>>,
    pub(super) view: Arc<FactSource>,
    /// The clients; `None` if each proves its identity.
    pub(super) callers: Option<Callers>,
    /// The queue of Events, if they are enabled.
    pub(super) events: Option<Events>,
}

impl Reviewer for AdmissionReviewer {
    async fn review(
        &self,
        endpoint: Endpoint,
        body: &[u8],
        client: Option<IpAddr>,
        deadline: Instant,
    ) -> Result<Answer, MalformedReview> {
        let received = Received::read(body, Timestamp::now()).inspect_err(|malformed| {
            tracing::warn!(%malformed, "A body was refused.");
        })?;
        if let (Some(callers), Some(client), Some(live)) = (&self.callers, client, self.view.live())
            && let Some(object) = received.submitted()
        {
            live.look(|view| callers.learn(client, object, view));
        }
        let stranger = self.callers.as_ref().and_then(|callers| callers.stranger(client));
        let asker = Asker { namespace: received.namespace(), stranger };
        let verdict =
            self.view.verdict(endpoint, &received, &self.effective, asker, deadline).await;
        let until = half_way(deadline);
        let verdict = allow_rollback(&self.view, endpoint, &received, verdict, asker, until).await;
        let answer = received.answer(endpoint, &verdict);
        if let Some(events) = &self.events {
            events.enqueue(&received, answer.decision, &verdict);
        }
        Ok(answer)
    }
}
