//! The rows of `tests/ground-truth.yaml` in the model's terms: their key `model`.

use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::Value;

use crate::configuration::{
    Affinity, Amount, Binding, Configuration, Kind, NodeSet, Spread, Strategy, Volume, Workload,
};
use crate::explore::{Outcome, Start};

/// A row with the configurations that stand for it.
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
    /// Why the model has no words for it.
    Beyond(String),
}

/// One world, and what an update makes of its first workload.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Model {
    zones: Vec<u8>,
    modes: Vec<String>,
    attaches: bool,
    /// The nodes that can have the volume; all where it says nothing.
    reach: Option<Vec<usize>>,
    binding: Binding,
    /// So many pods fit on a node.
    capacity: Option<u8>,
    pods: Vec<Pods>,
    becomes: Option<Pods>,
    from: Start,
    /// What the model finds where that is not what was seen.
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

/// What makes the pods.
#[derive(Clone, Copy, Debug, Deserialize)]
enum Controller {
    Deployment,
    StatefulSet,
    DaemonSet,
    ReplicaSet,
    Job,
}

/// A workload.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Pods {
    kind: Controller,
    replicas: u8,
    completions: u8,
    recreate: bool,
    /// `maxSurge` and `maxUnavailable`: numbers or percentages.
    rolling: Option<(Value, Value)>,
    /// The nodes that it selects.
    on: Option<Vec<usize>>,
    /// The nodes whose taints it tolerates.
    tolerates: Option<Vec<usize>>,
    /// Required affinity to the pods of these workloads.
    near: Vec<u8>,
    within_revision: bool,
    /// Preferred affinity to its own pods.
    rather_near: bool,
    /// Anti-affinity to its own pods.
    apart: bool,
    /// The `maxSkew` of a hard spread.
    hostname_spread: Option<u8>,
    zone_spread: Option<u8>,
    port: bool,
    volume: bool,
}

impl Default for Pods {
    fn default() -> Self {
        Self {
            kind: Controller::Deployment,
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

/// What is explored of one row.
pub(crate) struct Case {
    /// The row's id and what it is about.
    pub(crate) name: String,
    pub(crate) configuration: Configuration,
    /// What an update makes of it, and from which state.
    pub(crate) change: Option<(Configuration, Start)>,
    /// The outcomes that were seen.
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
    // Aliases repeat what they stand for, which counts as an attack otherwise.
    let options = serde_saphyr::options! { budget: None };
    let text = include_str!("../ground-truth.yaml");
    let document: Value = serde_saphyr::from_str_with_options(text, options).unwrap();
    let truth: GroundTruth = serde_json::from_value(document).unwrap();
    let played = truth.sections.into_iter().flat_map(|it| it.rows);
    played.chain(truth.derived).collect()
});

/// How many rows the model has no words for.
pub(crate) fn beyond() -> usize {
    let beyond = |row: &&Row| matches!(&row.model, Explored::Beyond(reason) if !reason.is_empty());
    ROWS.iter().filter(beyond).count()
}

/// Every row that the model has words for, and what follows from the source beside them.
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
            (self.configuration(&after), self.from)
        });
        Case {
            name: format!("{} {}", row.id, row.what),
            configuration: self.configuration(&first),
            change,
            seen: seen.to_vec(),
        }
    }

    fn configuration(&self, workloads: &[Workload]) -> Configuration {
        let modes: Vec<&str> = self.modes.iter().map(String::as_str).collect();
        let mut volume = Volume::with_modes(&modes);
        volume.attach_required = self.attaches;
        volume.binding = self.binding;
        if let Some(nodes) = &self.reach {
            volume.nodes = NodeSet::of(nodes);
        }
        let mut world = Configuration::new(3, volume, workloads);
        world.zones.clone_from(&self.zones);
        world.capacity = self.capacity;
        world
    }
}

impl Pods {
    fn workload(&self) -> Workload {
        let mut workload = Workload::new(self.kind(), self.replicas);
        if let Some(nodes) = &self.on {
            workload.selected = NodeSet::of(nodes);
        }
        if let Some(nodes) = &self.tolerates {
            workload.tolerated = NodeSet::of(nodes);
        }
        if self.rather_near {
            workload.affinity = Affinity::Preferred;
        } else if !self.near.is_empty() {
            workload.affinity = Affinity::Required {
                workloads: self
                    .near
                    .iter()
                    .fold(0, |mask, number| mask | (1 << number)),
                own_revision: self.within_revision,
            };
        }
        let spread = |max_skew| Spread {
            max_skew,
            own_revision: false,
        };
        workload.anti_affinity = self.apart;
        workload.hostname_spread = self.hostname_spread.map(spread);
        workload.zone_spread = self.zone_spread.map(spread);
        workload.port = self.port;
        workload.uses_volume = self.volume;
        workload
    }

    fn kind(&self) -> Kind {
        match self.kind {
            Controller::Deployment if self.recreate => Kind::Deployment(Strategy::Recreate),
            Controller::Deployment => Kind::Deployment(match &self.rolling {
                None => Strategy::DEFAULT,
                Some((surge, unavailable)) => Strategy::RollingUpdate {
                    surge: amount(surge),
                    unavailable: amount(unavailable),
                },
            }),
            Controller::StatefulSet => Kind::StatefulSet,
            Controller::DaemonSet => Kind::DaemonSet,
            Controller::ReplicaSet => Kind::ReplicaSet,
            Controller::Job => Kind::Job {
                completions: self.completions,
            },
        }
    }
}

fn amount(written: &Value) -> Amount {
    match written.as_str() {
        Some(percent) => Amount::Percent(percent.trim_end_matches('%').parse().unwrap()),
        None => Amount::Number(u8::try_from(written.as_u64().unwrap()).unwrap()),
    }
}
