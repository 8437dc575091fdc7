//! Between HTTP and admission: neither knows the other.

use axum::http::StatusCode;

use crate::admission::{self, Admission, Answer, Malformed};
use crate::model::cluster::ClusterView;
use crate::model::object::ObjectKind;
use crate::model::workload::WorkloadKind;
use crate::server::{Decision, Endpoint, Reviewed, Reviewer};

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

/// Answers what the server receives with what admission decides.
pub(super) struct AdmissionReviewer<V>(pub(super) Admission<V>);

impl<V: ClusterView + Send + Sync + 'static> Reviewer for AdmissionReviewer<V> {
    fn review(&self, endpoint: Endpoint, body: &[u8]) -> Reviewed {
        let endpoint = match endpoint {
            Endpoint::Mutate => admission::Endpoint::Mutate,
            Endpoint::Validate => admission::Endpoint::Validate,
        };
        match self.0.review(endpoint, body) {
            Ok(answer) => answered(answer),
            Err(malformed) => refused(&malformed),
        }
    }
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
