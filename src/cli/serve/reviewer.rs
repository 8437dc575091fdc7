//! Between HTTP and admission: takes each review to the facts and the policy
//! of the moment.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::time::Instant;

use super::view::View;
use crate::admission::{self, Answer, Endpoint, Malformed, Received};
use crate::cluster;
use crate::model::object::ObjectKind;
use crate::model::workload::WorkloadKind;
use crate::server::Reviewer;
use crate::verdict::Settings;

/// The kinds that are judged, for the metrics.
pub(super) fn kinds() -> Vec<&'static str> {
    let others = [ObjectKind::Claim, ObjectKind::Autoscaler, ObjectKind::Scale];
    let workloads = WorkloadKind::ALL.into_iter().map(ObjectKind::Workload);
    workloads
        .chain(others)
        .map(ObjectKind::name)
        .chain([admission::OTHER_KIND])
        .collect()
}

/// The longest a review waits for a fact that the view lacks, should the API
/// server that asks be slow to answer itself.
const LONGEST_WAIT: Duration = Duration::from_secs(3);

/// Answers what the server receives with what admission decides.
pub(super) struct AdmissionReviewer {
    pub(super) settings: Arc<ArcSwap<Settings>>,
    pub(super) view: Arc<View>,
}

impl Reviewer for AdmissionReviewer {
    async fn review(
        &self,
        endpoint: Endpoint,
        body: &[u8],
        deadline: Instant,
    ) -> Result<Answer, Malformed> {
        let received = Received::read(body).inspect_err(|malformed| {
            tracing::warn!(%malformed, "A body was refused.");
        })?;
        let judge = |view: cluster::View<'_>| received.judge(endpoint, view, &self.settings.load());
        let verdict = self.view.answer(wait_until(deadline), judge).await;
        Ok(received.answer(endpoint, &verdict))
    }
}

/// Half of the time that is left is for waiting, the other half for answering.
fn wait_until(deadline: Instant) -> Instant {
    let now = Instant::now();
    let left = deadline.saturating_duration_since(now);
    now + (left / 2).min(LONGEST_WAIT)
}
