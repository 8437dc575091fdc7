//! Random objects for the policies.

use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::harness::shorthand::{merge, object};

/// The values to draw from: `objects.yaml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Choices {
    pub(crate) strategies: Vec<Value>,
    pods: Vec<Value>,
    annotations: Vec<Value>,
    kinds: Vec<String>,
    claims: Vec<String>,
    odd: Vec<Value>,
    places: Vec<String>,
}

pub(crate) static CHOICES: LazyLock<Choices> =
    LazyLock::new(|| serde_saphyr::from_str(include_str!("objects.yaml")).unwrap());

/// A sequence of random choices that a seed determines (SplitMix64).
pub(crate) struct Lot(u64);

impl Lot {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn below(&mut self, count: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut drawn = self.0;
        drawn = (drawn ^ (drawn >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        drawn = (drawn ^ (drawn >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((drawn ^ (drawn >> 31)) % count as u64) as usize
    }

    fn of<T>(&mut self, all: &'static [T]) -> &'static T {
        &all[self.below(all.len())]
    }
}

/// A Deployment with these claims, each mounted, and `spec` merged into its own.
pub(crate) fn deployment(spec: &Value, claims: &[&str]) -> Value {
    let volume = |(at, claim): (usize, &&str)| json!({"name": format!("v{at}"), "persistentVolumeClaim": {"claimName": claim}});
    let volumes: Vec<Value> = claims.iter().enumerate().map(volume).collect();
    let pod = json!({"volumes": volumes});
    object(json!({"kind": "Deployment", "pod": pod, "with": {"spec": spec}}))
}

/// A random workload that the API server accepts.
pub(crate) fn draw(lot: &mut Lot) -> Value {
    let mut spec = json!({"replicas": lot.below(4)});
    let kind = lot.of(&CHOICES.kinds);
    if kind == "Deployment" {
        spec["strategy"] = lot.of(&CHOICES.strategies).clone();
    }
    if kind == "StatefulSet" {
        spec["serviceName"] = json!("web");
    }
    let count = lot.below(3);
    let mut claims: Vec<&str> = (0..=count).map(|_| lot.of(&CHOICES.claims).as_str()).collect();
    claims.dedup();
    let mut drawn = deployment(&spec, &claims);
    drawn["kind"] = json!(kind);
    drawn["metadata"]["annotations"] = lot.of(&CHOICES.annotations).clone();
    let pod = lot.of(&CHOICES.pods);
    let template = &mut drawn["spec"]["template"]["spec"];
    merge(template, pod);
    // One claim in eight cases is mounted by no container.
    if lot.below(8) == 0 {
        template["containers"][0]["volumeMounts"] = json!([]);
    }
    drawn
}

/// A random workload with odd values in odd places; the API server may refuse it as invalid.
pub(crate) fn odd(lot: &mut Lot) -> Value {
    let mut object = draw(lot);
    for _ in 0..=lot.below(3) {
        let place = lot.of(&CHOICES.places);
        let value = lot.of(&CHOICES.odd).clone();
        let (parent, field) = place.rsplit_once('/').unwrap();
        if let Some(Value::Object(parent)) = object.pointer_mut(parent) {
            parent.insert(field.to_owned(), value);
        } else if let Some(found) = object.pointer_mut(place) {
            *found = value;
        }
    }
    if lot.below(10) == 0 {
        let volumes = (0..300).map(|at| json!({"name": format!("e{at}"), "emptyDir": {}}));
        object["spec"]["template"]["spec"]["volumes"] = volumes.collect();
    }
    object["spec"]["unknown"] = json!({"field": [1]});
    object
}
