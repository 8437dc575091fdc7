//! The denials that policies in the API server do not give by themselves.

use serde::Deserialize;

/// The reason why a policy passes an object that the guard denies. A policy sees the object, the
/// object that it replaces, and the facts that the guard has written.
///
/// docs/always-there.md has one item for each, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Uncertain {
    /// Another workload, autoscaler or volume, which may have changed since its facts were written.
    Others,
    /// The nodes that match a node selector or a volume's node affinity.
    Nodes,
    /// The effect of the pods' own affinity.
    Affinity,
    /// The time, which policies cannot read: overrides with an end, heartbeats of nodes.
    Clock,
    /// A claim is created, and stops no pod.
    NewClaims,
    /// A property of the volume that is not among the facts.
    Storage,
    /// A template that may be one of an earlier revision, whose pods run.
    Revisions,
    /// An owner, which may be what the object is judged by.
    Owners,
    /// A kind, or a fault of a kind, that no policy is for.
    Kinds,
}

/// The reason for all denials of a rule that no policy gives.
const BY_RULE: [(&str, Uncertain); 8] = [
    ("co-location-impossible", Uncertain::Affinity),
    ("fencing-live-node", Uncertain::Clock),
    ("mislabelled-volume", Uncertain::Storage),
    ("no-node-for-volume", Uncertain::Nodes),
    ("unguarded-volume", Uncertain::Storage),
    ("unresolved-claim", Uncertain::Others),
    ("unsupported-access-mode", Uncertain::NewClaims),
    ("workloads-share-volume", Uncertain::Others),
];

impl Uncertain {
    pub(crate) const ALL: [Self; 9] = [
        Self::Others,
        Self::Nodes,
        Self::Affinity,
        Self::Clock,
        Self::NewClaims,
        Self::Storage,
        Self::Revisions,
        Self::Owners,
        Self::Kinds,
    ];

    /// The reason that follows from the rules of a denial; `None` if a policy gives denials of one
    /// of them.
    pub(crate) fn of_rules<'r>(rules: impl IntoIterator<Item = &'r str>) -> Option<Self> {
        let of_rule = |rule| Some(BY_RULE.iter().find(|(code, _)| *code == rule)?.1);
        let reasons: Option<Vec<Self>> = rules.into_iter().map(of_rule).collect();
        reasons?.first().copied()
    }

    /// The reason in a few words.
    pub(crate) const fn reason(self) -> &'static str {
        match self {
            Self::Others => "another object decides",
            Self::Nodes => "the nodes decide",
            Self::Affinity => "the pods' affinity decides",
            Self::Clock => "the time decides",
            Self::NewClaims => "a new claim only waits",
            Self::Storage => "the facts do not include it",
            Self::Revisions => "it may be a rollback",
            Self::Owners => "it has an owner",
            Self::Kinds => "no policy is for it",
        }
    }
}
