//! Whether the machine of a node is on, judged by its signs of life.

use std::fmt;

use jiff::{SignedDuration, Timestamp};

use crate::model::lease::Lease;
use crate::snapshot::Lookup;

/// A node's signs of life at one moment.
///
/// A kubelet renews its Lease every ten seconds; the controller manager sets `Ready` to
/// `Unknown` when it has seen no renewal for 40 or 50 s (`--node-monitor-grace-period`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heartbeat {
    /// The condition `Ready` of the Node; `None` if it is `Unknown`.
    ready: Lookup<Option<bool>>,
    /// The age of the Lease by the local clock, and the time for which it is valid; `None` if it was
    /// never renewed. If its renewal is further in the future than that time, the clocks differ, so
    /// it shows nothing.
    lease: Lookup<Option<(SignedDuration, SignedDuration)>>,
}

/// The conclusion from the signs of life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// The machine is on.
    Alive,
    /// It has been silent for so long that it may well be off.
    Silent,
    /// Unknown.
    Unknown,
}

impl Heartbeat {
    /// The signs of life at `now`: the condition `Ready` of the Node, `None` if it is `Unknown`,
    /// and the Lease.
    pub fn seen(ready: Lookup<Option<bool>>, lease: Lookup<&Lease>, now: Timestamp) -> Self {
        Self { ready, lease: lease.map(|lease| Some((lease.age(now)?, lease.duration()))) }
    }

    /// The conclusion from the signs. One fresh sign shows that the machine is on; silence never
    /// proves that it is off.
    pub fn life(&self) -> Life {
        match (self.ready, self.lease) {
            (Lookup::Found(Some(true)), _) => Life::Alive,
            (_, Lookup::Found(Some((age, valid)))) if age.abs() <= valid => Life::Alive,
            (Lookup::NotSynced, _) | (_, Lookup::NotSynced) => Life::Unknown,
            // The clocks differ.
            (_, Lookup::Found(Some((age, _)))) if age.is_negative() => Life::Unknown,
            _ => Life::Silent,
        }
    }
}

/// As in "its Lease was renewed 4 s ago and its Ready condition is True".
impl fmt::Display for Heartbeat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.lease {
            Lookup::Found(Some((age, valid))) if age < -valid => write!(
                f,
                "its Lease was renewed {} in the future by the clock here, so the clocks differ",
                rounded(-age)
            )?,
            Lookup::Found(Some((age, valid))) => {
                let last = if age <= valid { "" } else { "last " };
                let age = rounded(age.max(SignedDuration::ZERO));
                write!(f, "its Lease was {last}renewed {age} ago")?;
            }
            Lookup::Found(None) | Lookup::Absent => f.write_str("it has no Lease")?,
            Lookup::NotSynced => f.write_str("its Lease could not be read")?,
        }
        f.write_str(match self.ready {
            Lookup::Found(Some(true)) => " and its Ready condition is True",
            Lookup::Found(Some(false)) => " and its Ready condition is False",
            Lookup::Found(None) => " and its Ready condition is Unknown",
            Lookup::Absent => " and there is no Node object",
            Lookup::NotSynced => " and its Ready condition could not be read",
        })
    }
}

/// A length of time, rounded as far as is useful.
fn rounded(time: SignedDuration) -> String {
    match time.as_secs() {
        seconds @ ..120 => format!("{seconds} s"),
        seconds @ 120..7_200 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3_600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::object::{Object, ObjectKind};
    use crate::snapshot::Snapshot;
    use serde::de::DeserializeSeed;
    use serde_json::{Value, json};

    const NOW: &str = "2026-01-01T01:00:00Z";

    fn of(status: Option<&str>, lease: Option<Value>, everything_known: bool) -> Heartbeat {
        let mut cluster = if everything_known { Snapshot::complete() } else { Snapshot::new() };
        let read = |kind: ObjectKind, json: Value| kind.deserialize(json).unwrap();
        if let Some(spec) = lease {
            let metadata = json!({"name": "n1", "namespace": "kube-node-lease"});
            let json = json!({"metadata": metadata, "spec": spec});
            cluster.apply(read(ObjectKind::Lease, json));
        }
        let node = status.map(|status| {
            let conditions = json!([{"type": "Ready", "status": status}]);
            let json = json!({"metadata": {"name": "n1"}, "status": {"conditions": conditions}});
            match read(ObjectKind::Node, json) {
                Object::Node(node) => node,
                other => panic!("{other:?}"),
            }
        });
        let missing = if everything_known { Lookup::Absent } else { Lookup::NotSynced };
        let ready = node.as_ref().map_or(missing, Lookup::Found).map(|node| node.status.ready);
        Heartbeat::seen(ready, cluster.view().node_lease("n1"), NOW.parse().unwrap())
    }

    #[test]
    fn one_fresh_sign_of_life_is_enough() {
        let renewed = |time: &str| Some(json!({"renewTime": time, "leaseDurationSeconds": 40}));
        let fresh = || renewed("2026-01-01T00:59:56.500000Z");
        let old = || renewed("2026-01-01T00:55:00.000000Z");
        let a_little_ahead = || renewed("2026-01-01T01:00:20.000000Z");
        let far_ahead = || renewed("2026-01-01T01:05:00.000000Z");
        let cases = [
            (Some("True"), fresh(), Life::Alive),
            (Some("True"), old(), Life::Alive),
            (Some("True"), None, Life::Alive),
            (Some("True"), far_ahead(), Life::Alive),
            (Some("False"), fresh(), Life::Alive),
            (Some("Unknown"), fresh(), Life::Alive),
            (Some("Unknown"), a_little_ahead(), Life::Alive),
            (None, fresh(), Life::Alive),
            (Some("False"), old(), Life::Silent),
            (Some("Unknown"), old(), Life::Silent),
            (Some("Unknown"), Some(json!({})), Life::Silent),
            (Some("Unknown"), None, Life::Silent),
            (None, old(), Life::Silent),
            (None, None, Life::Silent),
            (Some("Unknown"), far_ahead(), Life::Unknown),
        ];
        for (ready, lease, expected) in cases {
            let heartbeat = of(ready, lease.clone(), true);
            assert_eq!(heartbeat.life(), expected, "{ready:?} {lease:?}");
        }
        for (ready, lease, expected) in [
            (Some("True"), None, Life::Alive),
            (Some("Unknown"), None, Life::Unknown),
            (None, old(), Life::Unknown),
            (None, fresh(), Life::Alive),
        ] {
            let heartbeat = of(ready, lease.clone(), false);
            assert_eq!(heartbeat.life(), expected, "not synced: {ready:?} {lease:?}");
        }
    }

    #[test]
    fn they_are_written_in_words() {
        let renewed = |time: &str| Some(json!({"renewTime": time}));
        let cases = [
            (
                of(Some("True"), renewed("2026-01-01T00:59:56.500000Z"), true),
                "its Lease was renewed 3 s ago and its Ready condition is True",
            ),
            (
                of(Some("Unknown"), renewed("2026-01-01T00:55:00Z"), true),
                "its Lease was last renewed 5 min ago and its Ready condition is Unknown",
            ),
            (
                of(Some("False"), renewed("2026-01-01T09:00:00Z"), true),
                "its Lease was renewed 8 h in the future by the clock here, so the clocks differ \
                 and its Ready condition is False",
            ),
            (of(None, None, true), "it has no Lease and there is no Node object"),
            (
                of(None, None, false),
                "its Lease could not be read and its Ready condition could not be read",
            ),
        ];
        for (heartbeat, expected) in cases {
            assert_eq!(heartbeat.to_string(), expected);
        }
    }
}
