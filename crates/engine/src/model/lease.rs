//! The Lease that a node's kubelet renews while it is alive.

use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;

use super::resource::Resource;

/// The namespace of the Leases, each with the name of its node
/// (`NamespaceNodeLease` in `k8s.io/api/core/v1`).
pub const NODE_LEASES: &str = "kube-node-lease";

/// The default duration of a kubelet's Lease (`nodeLeaseDurationSeconds` in its configuration).
/// The kubelet renews it four times in that time.
pub const DURATION_SECONDS: i64 = 40;

/// A Lease: the time of its last renewal, and its duration.
pub type Lease = Resource<LeaseSpec>;

/// The times of a Lease.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct LeaseSpec {
    /// The time of the last renewal, by the kubelet's clock.
    pub renew_time: Option<Timestamp>,
    /// The seconds for which it is valid after that.
    pub lease_duration_seconds: Option<i64>,
}

impl Lease {
    /// The time between its renewal and `now`, which is negative if the clocks differ. `None` if
    /// it was never renewed.
    pub fn age(&self, now: Timestamp) -> Option<SignedDuration> {
        Some(now.duration_since(self.spec.renew_time?))
    }

    /// The time for which it is valid after a renewal.
    pub(crate) fn duration(&self) -> SignedDuration {
        let given = self.spec.lease_duration_seconds.filter(|seconds| *seconds > 0);
        SignedDuration::from_secs(given.unwrap_or(DURATION_SECONDS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(spec: &str) -> Lease {
        serde_json::from_str(&format!(r#"{{"metadata":{{"name":"n"}},"spec":{spec}}}"#)).unwrap()
    }

    #[test]
    fn a_kubelet_s_lease_is_read() {
        let now = "2026-01-01T00:00:30Z".parse().unwrap();
        let cases = [
            (
                r#"{"renewTime":"2026-01-01T00:00:20.500000Z","leaseDurationSeconds":15}"#,
                Some(9_500),
                15,
            ),
            (r#"{"renewTime":"2026-01-01T00:01:00Z"}"#, Some(-30_000), 40),
            (r#"{"renewTime":null,"leaseDurationSeconds":0}"#, None, 40),
            ("null", None, 40),
        ];
        for (spec, age, duration) in cases {
            let lease = lease(spec);
            let found = lease.age(now).map(|elapsed| elapsed.as_millis());
            assert_eq!(found, age, "{spec}");
            assert_eq!(lease.duration().as_secs(), duration, "{spec}");
        }
    }
}
