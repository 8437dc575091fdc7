//! Between HTTP and admission: neither knows the other.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use axum::http::StatusCode;
use tokio::time::Instant;

use super::view::View;
use crate::admission::{self, Answer, Malformed, Received};
use crate::model::cluster::ClusterView;
use crate::model::object::ObjectKind;
use crate::model::workload::WorkloadKind;
use crate::server::{Decision, Endpoint, Reviewed, Reviewer};
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
    async fn review(&self, endpoint: Endpoint, body: &[u8], deadline: Instant) -> Reviewed {
        let endpoint = match endpoint {
            Endpoint::Mutate => admission::Endpoint::Mutate,
            Endpoint::Validate => admission::Endpoint::Validate,
        };
        let received = match Received::read(body) {
            Ok(received) => received,
            Err(malformed) => return refused(&malformed),
        };
        let judge = |view: &dyn ClusterView| received.judge(endpoint, view, &self.settings.load());
        let verdict = self.view.answer(wait_until(deadline), judge).await;
        answered(received.answer(endpoint, &verdict))
    }
}

/// Half of the time that is left is for waiting, the other half for answering.
fn wait_until(deadline: Instant) -> Instant {
    let now = Instant::now();
    let left = deadline.saturating_duration_since(now);
    now + (left / 2).min(LONGEST_WAIT)
}

fn answered(answer: Answer) -> Reviewed {
    Reviewed {
        status: StatusCode::OK,
        body: answer.body.into(),
        kind: answer.kind,
        decision: match answer.decision {
            admission::Decision::Allowed => Decision::Allowed,
            admission::Decision::Warned => Decision::Warned,
            admission::Decision::Patched => Decision::Patched,
            admission::Decision::Denied => Decision::Denied,
            admission::Decision::Unreadable => Decision::Error,
        },
    }
}

fn refused(malformed: &Malformed) -> Reviewed {
    tracing::warn!(%malformed, "A body was refused.");
    Reviewed {
        status: StatusCode::BAD_REQUEST,
        body: format!("{malformed}\n").into(),
        kind: admission::OTHER_KIND,
        decision: Decision::Error,
    }
}
