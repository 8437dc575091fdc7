//! The rows of `tests/ground-truth.yaml` as configurations, read from their key `model`.

use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::Value;

use crate::configuration::{
    Access, Affinity, Binding, Configuration, Kind, NODES, NodeSet, Spread, Strategy, Volume,
    WORKLOADS, Workload,
};
use crate::explore::{Outcome, Start};
use crate::reading::amount;

/// A row with its configurations.
#[derive(Debug, Deserialize)]
pub(crate) struct Row {
    #[serde(default)]
    pub(crate) id: String,
    pub(crate) what: String,
    seen: Seen,
    model: Explored,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Seen {
    One(Outcome),
    Some(Vec<Outcome>),
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Explored {
    One(Box<Model>),
    Some(Vec<Model>),
    /// The reason for which the model cannot express the row.
    Beyond(String),
}

/// One configuration, and optionally an update of its first workload.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Model {
    zones: Vec<u8>,
    modes: Vec<String>,
    attaches: bool,
    /// The nodes that the volume can be attached to; all by default.
    reach: Option<Vec<usize>>,
    binding: Binding,
    /// The number of pods that fit on a node.
    capacity: Option<u8>,
    pods: Vec<Pods>,
    becomes: Option<Pods>,
    from: Start,
    /// The model's outcome, if it differs from the observed one.
    seen: Option<Outcome>,
}

impl Default for Model {
    fn default() -> Self {
        Self {
            zones: vec![0, 0, 0],
            modes: vec!["ReadWriteOnce".to_owned()],
            attaches: true,
            reach: None,
            binding: Binding::Bound,
            capacity: None,
            pods: vec![Pods::default()],
            becomes: None,
            from: Start::Well,
            seen: None,
        }
    }
}

/// A workload.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Pods {
    kind: String,
    replicas: u8,
    completions: u8,
    recreate: bool,
    /// `maxSurge` and `maxUnavailable`: numbers or percentages.
    rolling: Option<(Value, Value)>,
    /// The nodes that the pods select.
    on: Option<Vec<usize>>,
    /// The nodes whose taints the pods tolerate.
    tolerates: Option<Vec<usize>>,
    /// Required affinity to the pods of these workloads.
    near: Vec<u8>,
    within_revision: bool,
    /// Preferred affinity to the workload's own pods.
    rather_near: bool,
    /// Required anti-affinity to the workload's own pods.
    apart: bool,
    /// The `maxSkew` of a spread with `whenUnsatisfiable: DoNotSchedule`.
    hostname_spread: Option<u8>,
    zone_spread: Option<u8>,
    port: bool,
    volume: bool,
}

impl Default for Pods {
    fn default() -> Self {
        Self {
            kind: "Deployment".to_owned(),
            replicas: 1,
            completions: 1,
            recreate: false,
            rolling: None,
            on: None,
            tolerates: None,
            near: Vec::new(),
            within_revision: false,
            rather_near: false,
            apart: false,
            hostname_spread: None,
            zone_spread: None,
            port: false,
            volume: true,
        }
    }
}

/// One exploration of a row.
pub(crate) struct Case {
    /// The row's id and its subject.
    pub(crate) name: String,
    pub(crate) configuration: Configuration,
    /// The configuration after an update, and the states in which the update is made.
    pub(crate) change: Option<(Configuration, Start)>,
    /// The outcomes that were observed.
    pub(crate) seen: Vec<Outcome>,
}

#[derive(Deserialize)]
struct GroundTruth {
    sections: Vec<Section>,
    derived: Vec<Row>,
}

#[derive(Deserialize)]
struct Section {
    rows: Vec<Row>,
}

static ROWS: LazyLock<Vec<Row>> = LazyLock::new(|| {
    // Each alias counts as its full content, so the default budget would reject the file as an
    // attack.
    let options = serde_saphyr::options! { budget: None };
    let text = include_str!("../ground-truth.yaml");
    let document: Value = serde_saphyr::from_str_with_options(text, options).unwrap();
    let truth: GroundTruth = serde_json::from_value(document).unwrap();
    let played = truth.sections.into_iter().flat_map(|section| section.rows);
    played.chain(truth.derived).collect()
});

/// The number of rows that the model cannot express.
pub(crate) fn beyond() -> usize {
    let beyond = |row: &&Row| matches!(&row.model, Explored::Beyond(reason) if !reason.is_empty());
    ROWS.iter().filter(beyond).count()
}

/// The cases of every row that the model can express.
pub(crate) fn cases() -> Vec<Case> {
    let cases = ROWS.iter().flat_map(|row| {
        let models = match &row.model {
            Explored::One(model) => std::slice::from_ref(model.as_ref()),
            Explored::Some(models) => models,
            Explored::Beyond(_) => &[],
        };
        models.iter().map(|model| model.case(row))
    });
    cases.collect()
}

impl Model {
    fn case(&self, row: &Row) -> Case {
        let seen = match (&self.seen, &row.seen) {
            (Some(seen), _) | (None, Seen::One(seen)) => std::slice::from_ref(seen),
            (None, Seen::Some(seen)) => seen,
        };
        let first: Vec<Workload> = self.pods.iter().map(Pods::workload).collect();
        let change = self.becomes.as_ref().map(|pods| {
            let others = self.pods.iter().skip(1).map(Pods::workload);
            let after: Vec<Workload> = std::iter::once(pods.workload()).chain(others).collect();
            (self.configuration(after), self.from)
        });
        Case {
            name: format!("{} {}", row.id, row.what),
            configuration: self.configuration(first),
            change,
            seen: seen.to_vec(),
        }
    }

    fn configuration(&self, workloads: Vec<Workload>) -> Configuration {
        assert!(
            self.zones.len() <= NODES && workloads.len() <= WORKLOADS,
            "too large for the state's encoding"
        );
        Configuration {
            zones: self.zones.clone(),
            volume: Volume {
                access: Access::of_modes(&self.modes),
                attach_required: self.attaches,
                nodes: nodes(self.reach.as_deref()),
                binding: self.binding,
            },
            workloads,
            capacity: self.capacity,
        }
    }
}

impl Pods {
    fn workload(&self) -> Workload {
        let near = self.near.iter().fold(0, |mask, number| mask | 1 << number);
        let spread = |max_skew| Spread { max_skew, own_revision: false };
        Workload {
            kind: self.kind(),
            replicas: self.replicas,
            uses_volume: self.volume,
            selected: nodes(self.on.as_deref()),
            tolerated: nodes(self.tolerates.as_deref()),
            affinity: match near {
                _ if self.rather_near => Affinity::Preferred,
                0 => Affinity::None,
                near => Affinity::required(near, self.within_revision),
            },
            anti_affinity: self.apart,
            hostname_spread: self.hostname_spread.map(spread),
            zone_spread: self.zone_spread.map(spread),
            port: self.port,
        }
    }

    fn kind(&self) -> Kind {
        match self.kind.as_str() {
            "Deployment" if self.recreate => Kind::Deployment(Strategy::Recreate),
            "Deployment" => Kind::Deployment(match &self.rolling {
                None => Strategy::DEFAULT,
                Some((surge, unavailable)) => Strategy::RollingUpdate {
                    surge: amount(surge),
                    unavailable: amount(unavailable),
                },
            }),
            "StatefulSet" => Kind::StatefulSet,
            "DaemonSet" => Kind::DaemonSet,
            "ReplicaSet" => Kind::ReplicaSet,
            "Job" => Kind::Job { completions: self.completions },
            other => unreachable!("the model knows no {other}"),
        }
    }
}

/// The set of these nodes; all by default.
fn nodes(named: Option<&[usize]>) -> NodeSet {
    named.map_or(NodeSet::first(NODES), NodeSet::of)
}
