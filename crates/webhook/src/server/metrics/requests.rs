//! Requests to the webhooks, and their results.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::{Held, metric};
use crate::admission::{Answer, Decision, Endpoint, Operation};
use crate::server::error::RequestError;

/// Seconds. A decision takes microseconds, a live look-up milliseconds, and
/// the API server gives up after at most 30 s.
const DURATION_BUCKETS: [f64; 14] = [
    0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0,
    10.0,
];

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct EndpointLabels {
    endpoint: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ReviewLabels {
    endpoint: &'static str,
    kind: &'static str,
    operation: &'static str,
    dry_run: &'static str,
    decision: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct FindingLabels {
    endpoint: &'static str,
    kind: &'static str,
    operation: &'static str,
    dry_run: &'static str,
    rule: &'static str,
    action: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ReasonLabels {
    reason: &'static str,
}

#[derive(Clone)]
struct Durations;

impl MetricConstructor<Histogram> for Durations {
    fn new_metric(&self) -> Histogram {
        Histogram::new(DURATION_BUCKETS)
    }
}

/// Requests to the webhooks. Clones share their values.
#[derive(Clone)]
pub(in crate::server) struct RequestMetrics {
    durations: Family<EndpointLabels, Histogram, Durations>,
    reviews: Family<ReviewLabels, Counter>,
    findings: Family<FindingLabels, Counter>,
    refusals: Family<ReasonLabels, Counter>,
    in_flight: Gauge,
    too_complex: Counter,
    panics: Counter,
}

impl RequestMetrics {
    pub(super) fn register(registry: &mut Registry, kinds: &[&'static str]) -> Self {
        let durations = Family::new_with_constructor(Durations);
        registry.register(
            "request_duration_seconds",
            "Seconds from the end of a request's headers to its answer",
            durations.clone(),
        );
        let metrics = Self {
            durations,
            reviews: metric(
                registry,
                "reviews",
                "Reviews answered, by webhook, kind of object, operation, dry run and decision",
            ),
            findings: metric(
                registry,
                "findings",
                "Hazards found in reviews, by rule and what was done about them; a review at both \
                 webhooks counts at both",
            ),
            refusals: metric(
                registry,
                "requests_refused",
                "Requests that were not answered as a review, by reason; those with the reasons \
                 busy and memory were shed",
            ),
            in_flight: metric(
                registry,
                "requests_in_flight",
                "Requests to a webhook that have no answer yet",
            ),
            too_complex: metric(
                registry,
                "reviews_given_up",
                "Reviews of objects too complex to judge within the limit, answered as unknown",
            ),
            panics: metric(
                registry,
                "review_panics",
                "Reviews that ended in a panic, which is a bug in this program",
            ),
        };
        metrics.create_series(kinds);
        metrics
    }

    fn create_series(&self, kinds: &[&'static str]) {
        for endpoint in Endpoint::ALL.map(Endpoint::name) {
            drop(self.durations.get_or_create(&EndpointLabels { endpoint }));
            for &kind in kinds {
                for operation in Operation::JUDGED.map(Operation::name) {
                    for decision in Decision::ALL.map(Decision::name) {
                        drop(self.reviews.get_or_create(&ReviewLabels {
                            endpoint,
                            kind,
                            operation,
                            dry_run: yes_or_no(false),
                            decision,
                        }));
                    }
                }
            }
        }
        for reason in RequestError::REASONS {
            drop(self.refusals.get_or_create(&ReasonLabels { reason }));
        }
    }

    /// Counts a request as in flight until the guard is dropped.
    pub(in crate::server) fn started(&self) -> Held {
        Held::new(&self.in_flight)
    }

    pub(in crate::server) fn ended(&self, endpoint: Endpoint, after: Duration) {
        let endpoint = endpoint.name();
        self.durations
            .get_or_create(&EndpointLabels { endpoint })
            .observe(after.as_secs_f64());
    }

    pub(in crate::server) fn refused(&self, reason: &'static str) {
        self.refusals.get_or_create(&ReasonLabels { reason }).inc();
    }

    pub(in crate::server) fn panicked(&self) {
        self.panics.inc();
    }

    pub(in crate::server) fn answered(&self, endpoint: Endpoint, answer: &Answer) {
        let endpoint = endpoint.name();
        let (kind, operation) = (answer.kind, answer.operation.name());
        let dry_run = yes_or_no(answer.dry_run);
        self.reviews
            .get_or_create(&ReviewLabels {
                endpoint,
                kind,
                operation,
                dry_run,
                decision: answer.decision.name(),
            })
            .inc();
        for (rule, action) in &answer.findings {
            self.findings
                .get_or_create(&FindingLabels {
                    endpoint,
                    kind,
                    operation,
                    dry_run,
                    rule,
                    action: action.name(),
                })
                .inc();
        }
        if answer.too_complex {
            self.too_complex.inc();
        }
    }
}

const fn yes_or_no(yes: bool) -> &'static str {
    if yes { "true" } else { "false" }
}
