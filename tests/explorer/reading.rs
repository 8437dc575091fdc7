//! Workloads read back from the objects that [`manifests`](crate::manifests) writes and remedies patch.
//!
//! A value that the model cannot express fails the test: a remedy may not write anything whose
//! effect is unknown.

use serde_json::Value;

use crate::configuration::{
    Affinity, Amount, Configuration, Kind, NodeSet, Spread, Strategy, Workload,
};
use crate::manifests::{CLAIM, HOSTNAME, ZONE, host, name, set_label, taint};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// Reads the workload with this index of the configuration from `object`.
pub(crate) fn workload(object: &Value, index: usize, configuration: &Configuration) -> Workload {
    let spec = &object["spec"];
    let number = |field: &str| u8::try_from(spec[field].as_u64().unwrap()).unwrap();
    let (kind, replicas) = match object["kind"].as_str().unwrap() {
        "Deployment" => (Kind::Deployment(strategy(&spec["strategy"])), number("replicas")),
        "StatefulSet" => (Kind::StatefulSet, number("replicas")),
        "ReplicaSet" => (Kind::ReplicaSet, number("replicas")),
        "DaemonSet" => (Kind::DaemonSet, configuration.workloads[index].replicas),
        "Job" => {
            let completions = number("completions");
            (Kind::Job { completions }, number("parallelism"))
        }
        other => unreachable!("the model knows no {other}"),
    };
    let pod = &spec["template"]["spec"];
    let affinity = &pod["affinity"];
    let uses_volume = list(&pod["volumes"])
        .iter()
        .any(|volume| volume["persistentVolumeClaim"]["claimName"] == CLAIM);
    let mut workload = Workload {
        uses_volume,
        selected: selected(pod, configuration),
        tolerated: tolerated(pod, configuration),
        affinity: Affinity::None,
        anti_affinity: false,
        port: !list(&pod["containers"][0]["ports"]).is_empty(),
        ..Workload::new(kind, replicas)
    };
    let matched = |term: &Value| {
        assert_eq!(term["topologyKey"], HOSTNAME);
        matched(&term["labelSelector"], configuration)
    };
    if !list(&affinity["podAffinity"][PREFERRED]).is_empty() {
        workload.affinity = Affinity::Preferred;
    }
    let terms = list(&affinity["podAffinity"][REQUIRED]);
    if !terms.is_empty() {
        // A pod counts only if it matches all the terms.
        workload.affinity = Affinity::Required {
            workloads: terms.iter().map(matched).fold(0b11, |all, term| all & term),
            own_revision: terms.iter().any(by_revision),
        };
    }
    for term in list(&affinity["podAntiAffinity"][REQUIRED]) {
        assert_eq!(matched(term), 1 << index);
        workload.anti_affinity = true;
    }
    for constraint in list(&pod["topologySpreadConstraints"]) {
        let selected = self::matched(&constraint["labelSelector"], configuration);
        assert_eq!(selected, 1 << index);
        let spread = Some(Spread {
            max_skew: u8::try_from(constraint["maxSkew"].as_u64().unwrap()).unwrap(),
            own_revision: by_revision(constraint),
        });
        match constraint["topologyKey"].as_str().unwrap() {
            HOSTNAME => workload.hostname_spread = spread,
            ZONE => workload.zone_spread = spread,
            other => unreachable!("the model knows no topology {other}"),
        }
    }
    workload
}

/// Reads the strategy. The API server refuses `rollingUpdate` with the type Recreate.
fn strategy(strategy: &Value) -> Strategy {
    let rolling = &strategy["rollingUpdate"];
    match strategy["type"].as_str().unwrap() {
        "Recreate" => {
            assert!(rolling.is_null(), "{strategy}");
            Strategy::Recreate
        }
        "RollingUpdate" => {
            let read = Strategy::RollingUpdate {
                surge: amount(&rolling["maxSurge"]),
                unavailable: amount(&rolling["maxUnavailable"]),
            };
            assert!(read.is_valid());
            read
        }
        other => unreachable!("there is no strategy {other}"),
    }
}

/// `maxSurge` or `maxUnavailable`: a number or a percentage.
pub(crate) fn amount(value: &Value) -> Amount {
    match value {
        Value::String(percent) => {
            Amount::Percent(percent.strip_suffix('%').unwrap().parse().unwrap())
        }
        number => Amount::Number(u8::try_from(number.as_u64().unwrap()).unwrap()),
    }
}

fn selected(pod: &Value, configuration: &Configuration) -> NodeSet {
    let mut selected = configuration.nodes();
    for (label, _) in pod["nodeSelector"].as_object().into_iter().flatten() {
        let all = (0..=selected.0).map(NodeSet);
        let set = all.into_iter().find(|set| set_label(*set) == *label);
        selected = selected.and(set.unwrap());
    }
    let required = &pod["affinity"]["nodeAffinity"][REQUIRED];
    if let [term] = list(&required["nodeSelectorTerms"]) {
        let hosts = list(&term["matchExpressions"][0]["values"]);
        let named =
            (0..configuration.zones.len()).filter(|node| hosts.contains(&host(*node).into()));
        selected = selected.and(NodeSet::of(&named.collect::<Vec<_>>()));
    }
    selected
}

fn tolerated(pod: &Value, configuration: &Configuration) -> NodeSet {
    let tolerates = |node: &usize| {
        list(&pod["tolerations"]).iter().any(|toleration| {
            assert_eq!(toleration["operator"], "Exists");
            toleration["key"].is_null() || toleration["key"] == taint(*node)
        })
    };
    let nodes: Vec<usize> = (0..configuration.zones.len()).filter(tolerates).collect();
    NodeSet::of(&nodes)
}

/// The workloads whose pods a label selector matches, one bit each.
fn matched(selector: &Value, configuration: &Configuration) -> u8 {
    let workloads = configuration.workloads.iter().enumerate();
    workloads
        .filter(|(index, workload)| {
            let label = |key: &str| match (key, workload.kind) {
                ("app", _) => Some(name(*index)),
                ("part-of", _) => Some("shop".to_owned()),
                ("batch.kubernetes.io/job-name", Kind::Job { .. }) => Some(name(*index)),
                _ => None,
            };
            let equal = selector["matchLabels"].as_object().into_iter().flatten();
            equal.into_iter().all(|(key, value)| label(key).is_some_and(|own| *value == own))
                && list(&selector["matchExpressions"]).iter().all(|expression| {
                    assert_eq!(expression["operator"], "In");
                    let values = list(&expression["values"]);
                    label(expression["key"].as_str().unwrap())
                        .is_some_and(|own| values.contains(&own.into()))
                })
        })
        .fold(0, |mask, (index, _)| mask | 1 << index)
}

fn by_revision(constraint: &Value) -> bool {
    list(&constraint["matchLabelKeys"]).iter().any(|key| key == "pod-template-hash")
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}
