//! A scenario as data: the existing objects, the user's actions and the expected outcome. All
//! scenarios are rows of `tests/ground-truth.yaml`; the head of that file explains each key.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::harness::fake_nodes::ATTACHING_DRIVER;
use crate::harness::hollow_nodes::Kubelet;
use crate::harness::programs::minor;
use crate::harness::shorthand::{Claim, Storage, merge};
use crate::manifests::Manifest;
use crate::outcome::Outcome;

/// The whole file.
static GROUND_TRUTH: LazyLock<GroundTruth> = LazyLock::new(|| {
    // Each alias counts as its full content, so the default budget would reject the file as an
    // attack.
    let options = serde_saphyr::options! { budget: None };
    let text = include_str!("../ground-truth.yaml");
    let document: Value = serde_saphyr::from_str_with_options(text, options).unwrap();
    let mut read: GroundTruth = serde_json::from_value(document).unwrap();
    let rows = read.sections.iter_mut().flat_map(|section| &mut section.rows);
    for row in rows {
        for claim in row.claims.values_mut() {
            claim.volume.get_or_insert_with(|| claim.modes.clone());
        }
    }
    read
});

#[derive(Deserialize)]
struct GroundTruth {
    played: Played,
    sections: Vec<Section>,
}

/// The minors on which every row was played that the kind of node can play.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Played {
    pub(crate) simulated: Vec<String>,
    pub(crate) kubelets: Vec<String>,
}

/// The minors on which every row was played that the kind of node can play.
pub(crate) fn played() -> &'static Played {
    &GROUND_TRUTH.played
}

/// Related rows.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Section {
    pub(crate) title: String,
    pub(crate) rows: Vec<Scenario>,
}

/// All sections.
pub(crate) fn sections() -> &'static [Section] {
    &GROUND_TRUTH.sections
}

/// One row of ground truth.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Scenario {
    pub(crate) id: String,
    pub(crate) what: String,
    #[serde(default = "three_nodes")]
    pub(crate) zones: Vec<String>,
    #[serde(default)]
    pub(crate) others: Vec<String>,
    /// The numbers of the nodes that have an additional taint.
    #[serde(skip)]
    pub(crate) tainted: Vec<usize>,
    #[serde(default)]
    pub(crate) hostnames: Vec<String>,
    #[serde(default)]
    pub(crate) resources: Vec<BTreeMap<String, u32>>,
    #[serde(default)]
    class: Value,
    #[serde(default = "one_claim")]
    pub(crate) claims: BTreeMap<String, Claim>,
    #[serde(default)]
    pub(crate) existing: Vec<Value>,
    pub(crate) steps: Vec<Action>,
    seen: Outcomes,
    #[serde(default)]
    differs: BTreeMap<String, Outcomes>,
    #[serde(default)]
    pub(crate) then: Vec<Action>,
    /// The time that the way out took on some minors.
    #[serde(default)]
    took: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) engine: Option<Said>,
    /// Whether the standalone policy refuses a step; nothing where it is not asked.
    #[serde(default)]
    pub(crate) standalone: Option<Standalone>,
    #[serde(default)]
    pub(crate) alone: bool,
    #[serde(default)]
    since: Option<String>,
    #[serde(default)]
    kubelets: Option<String>,
    #[serde(default)]
    pub(crate) node: Kubelet,
    /// The part that only the explorer reads.
    #[serde(default, rename = "model")]
    _model: Value,
}

fn three_nodes() -> Vec<String> {
    vec!["zone-1".to_owned(); 3]
}

fn one_claim() -> BTreeMap<String, Claim> {
    [("data".to_owned(), Claim::default())].into()
}

/// The outcomes that are allowed.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Outcomes {
    One(Outcome),
    Some(Vec<Outcome>),
}

impl Outcomes {
    fn as_slice(&self) -> &[Outcome] {
        match self {
            Self::One(outcome) => std::slice::from_ref(outcome),
            Self::Some(outcomes) => outcomes,
        }
    }

    fn words(&self) -> String {
        let words: Vec<String> = self.as_slice().iter().map(ToString::to_string).collect();
        words.join(" or ")
    }
}

/// The engine's answer, if it differs from the observations.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Said {
    pub(crate) says: Outcome,
    /// The reason for which the engine cannot answer otherwise.
    pub(crate) because: String,
}

/// The answer of the standalone policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Standalone {
    Refuses,
    Passes,
}

/// The implementation of the nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Nodes {
    /// [`crate::harness::FakeNodes`].
    Simulated,
    /// [`crate::harness::HollowNodes`].
    Kubelets,
}

/// An action of a user, or a failure. In its texts, `{node}` and `{pod}` are replaced by the
/// results of the last [`Action::Find`].
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Action {
    /// `kubectl apply` of these objects in one file, then wait for rest.
    Apply(Vec<Manifest>),
    /// `kubectl apply` of these objects; the next action follows at once.
    ApplyAtOnce(Vec<Manifest>),
    /// Server-side apply of one object, without kubectl, then wait for rest.
    #[serde(skip)]
    Write(Value),
    /// kubectl with these arguments in the scenario's namespace, then wait for rest.
    Kubectl(String),
    /// kubectl with these arguments; the next action follows at once.
    KubectlAtOnce(String),
    /// Finds the running pod of this app, and its node.
    Find(String),
    /// `{node}` dies; wait until its pod is evicted, then for rest.
    Die,
    /// Wait until everything runs, for at most this many seconds.
    Heal(u64),
}

impl Action {
    /// Whether the next action waits until everything has come to rest.
    pub(crate) const fn rests(&self) -> bool {
        match self {
            Self::Apply(_) | Self::Write(_) | Self::Kubectl(_) | Self::Die | Self::Heal(_) => true,
            Self::ApplyAtOnce(_) | Self::KubectlAtOnce(_) | Self::Find(_) => false,
        }
    }
}

/// The names of a scenario's claims and of their volumes.
pub(crate) const STORAGE: Storage<'_> = Storage {
    namespace: "{run}",
    class: "{run}",
    driver: ATTACHING_DRIVER,
    volumes: "{run}-",
    handles: "{run}-",
};

impl Scenario {
    /// A scenario without steps.
    pub(crate) fn new(name: &str, zones: &[String], claims: BTreeMap<String, Claim>) -> Self {
        let row = json!({ "id": name, "what": "", "zones": zones, "steps": [], "seen": [] });
        Self { claims, ..serde_json::from_value(row).unwrap() }
    }

    /// The volumes, with the names of their claims.
    pub(crate) fn volumes(&self) -> impl Iterator<Item = (&String, Value)> {
        let claims = self.claims.iter();
        claims.filter_map(|(name, claim)| Some((name, claim.volume(name, &STORAGE)?)))
    }

    /// The class of the claims, if there are any.
    pub(crate) fn class(&self) -> Option<Value> {
        let first = self.volumes().next();
        if first.is_none() && self.class.is_null() {
            return None;
        }
        let driver = first.map(|(_, volume)| {
            volume
                .pointer("/spec/csi/driver")
                .cloned()
                .unwrap_or(json!("kubernetes.io/no-provisioner"))
        });
        let mut class = json!({
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": { "name": "{run}" },
            "provisioner": driver,
            "volumeBindingMode": "Immediate",
        });
        merge(&mut class, &self.class);
        Some(class)
    }

    /// The outcomes that ground truth allows on the tested minor and with these nodes.
    pub(crate) fn expected(&self, nodes: Nodes) -> &[Outcome] {
        let minor = minor();
        let elsewhere = match nodes {
            Nodes::Simulated => vec![minor],
            Nodes::Kubelets => vec![format!("{minor} kubelets"), "kubelets".to_owned(), minor],
        };
        elsewhere.iter().find_map(|place| self.differs.get(place)).unwrap_or(&self.seen).as_slice()
    }

    /// The worst outcome on other minors, if the tested minor differs.
    pub(crate) fn seen_on_other_minors(&self) -> Option<Outcome> {
        let differs = self.differs.contains_key(&minor());
        self.seen.as_slice().iter().copied().max().filter(|_| differs)
    }

    /// Whether nodes of this kind can play the scenario on the tested minor.
    pub(crate) fn suits(&self, nodes: Nodes) -> bool {
        let number =
            |minor: &str| minor.strip_prefix("1.").and_then(|digits| digits.parse::<u32>().ok());
        if (self.since.as_deref()).is_some_and(|since| number(&minor()) < number(since)) {
            return false;
        }
        match nodes {
            Nodes::Simulated => self.kubelets.as_deref() != Some("needed"),
            Nodes::Kubelets => self.kubelets.as_deref().is_none_or(|need| need == "needed"),
        }
    }

    /// The row of the scenario in `docs/evidence/ground-truth.md`.
    pub(crate) fn row(&self) -> String {
        let engine = match &self.engine {
            None => "the same".to_owned(),
            Some(Said { says, because }) => format!("{says}: {because}"),
        };
        let mut elsewhere: Vec<String> =
            self.differs.iter().map(|(place, seen)| format!("{place}: {}", seen.words())).collect();
        elsewhere
            .extend(self.took.iter().map(|(place, time)| format!("{place}: healed in {time}")));
        elsewhere.extend(self.since.as_ref().map(|since| format!("since {since}")));
        match self.kubelets.as_deref() {
            None => {}
            Some("needed") => elsewhere.push("with kubelets only".to_owned()),
            Some(reason) => elsewhere.push(format!("not with kubelets: {reason}")),
        }
        let (id, what, seen) = (&self.id, &self.what, self.seen.words());
        format!("| {id} | {what} | {seen} | {} | {engine} |", elsewhere.join("; "))
    }
}
