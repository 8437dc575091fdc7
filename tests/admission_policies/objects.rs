//! Objects for the policies, drawn by lot.

use serde_json::{Value, json};

use crate::harness::shorthand::object;

/// Strategies as JSON; `null` leaves the field out.
pub(crate) const STRATEGIES: [&str; 9] = [
    "null",
    r#"{"type":"Recreate"}"#,
    r#"{"type":"RollingUpdate"}"#,
    r#"{"rollingUpdate":{"maxSurge":0,"maxUnavailable":1}}"#,
    r#"{"rollingUpdate":{"maxSurge":1,"maxUnavailable":0}}"#,
    r#"{"rollingUpdate":{"maxSurge":1,"maxUnavailable":1}}"#,
    r#"{"rollingUpdate":{"maxSurge":"10%","maxUnavailable":"90%"}}"#,
    r#"{"rollingUpdate":{"maxSurge":"100%","maxUnavailable":"50%"}}"#,
    r#"{"rollingUpdate":{"maxSurge":"0%","maxUnavailable":"10%"}}"#,
];

/// What may be merged into the pods' spec.
const PODS: [&str; 15] = [
    "{}",
    "{}",
    "{}",
    r#"{"nodeSelector":{"kubernetes.io/hostname":"node-a"}}"#,
    r#"{"nodeName":"node-a"}"#,
    r#"{"affinity":{"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"kubernetes.io/hostname","labelSelector":{"matchLabels":{"app":"web"}}}]}}}"#,
    r#"{"affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"kubernetes.io/hostname","labelSelector":{"matchLabels":{"app":"web"}}}]}}}"#,
    r#"{"affinity":{}}"#,
    r#"{"affinity":{"nodeAffinity":{},"podAntiAffinity":{}}}"#,
    r#"{"affinity":{"podAntiAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":1,"podAffinityTerm":{"topologyKey":"kubernetes.io/hostname","labelSelector":{"matchLabels":{"app":"web"}}}}]}}}"#,
    r#"{"tolerations":[{"operator":"Exists"}]}"#,
    r#"{"topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"kubernetes.io/hostname","whenUnsatisfiable":"DoNotSchedule","labelSelector":{"matchLabels":{"app":"web"}}}]}"#,
    r#"{"hostNetwork":true}"#,
    r#"{"schedulerName":"other"}"#,
    r#"{"initContainers":[{"name":"first","image":"i","resources":{"limits":{"example.com/gpu":"1"}}}]}"#,
];

const ANNOTATIONS: [&str; 8] = [
    "{}",
    "{}",
    "{}",
    r#"{"multi-attach-guard.dev/action":"warn","multi-attach-guard.dev/reason":"tested"}"#,
    r#"{"multi-attach-guard.dev/ignore":"rolling-update-overlap","multi-attach-guard.dev/reason":"tested"}"#,
    r#"{"multi-attach-guard.dev/action":"warn","multi-attach-guard.dev/reason":"why it cannot wait"}"#,
    r#"{"multi-attach-guard.dev/action":"warn","multi-attach-guard.dev/reason":"how you know"}"#,
    r#"{"other":"x"}"#,
];

const CLAIMS: [&str; 7] = ["data", "logs", "lock", "share", "local", "lost", "absent"];

/// A sequence of choices that a seed determines (SplitMix64).
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

    fn of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }

    fn json(&mut self, all: &[&str]) -> Value {
        serde_json::from_str(self.of(all)).unwrap()
    }
}

/// A Deployment with these claims, each mounted, and `spec` merged into its own.
pub(crate) fn deployment(spec: &Value, claims: &[&str]) -> Value {
    let volume = |(at, claim): (usize, &&str)| json!({"name": format!("v{at}"), "persistentVolumeClaim": {"claimName": claim}});
    let volumes: Vec<Value> = claims.iter().enumerate().map(volume).collect();
    let pod = json!({"volumes": volumes});
    object(json!({"kind": "Deployment", "pod": pod, "with": {"spec": spec}}))
}

fn merge(into: &mut Value, from: &Value) {
    for (key, value) in from.as_object().unwrap() {
        into[key] = value.clone();
    }
}

/// A workload of any sort that the API server accepts.
pub(crate) fn draw(lot: &mut Lot) -> Value {
    let mut spec = json!({"replicas": lot.below(4)});
    let kind = lot.of(&[
        "Deployment",
        "Deployment",
        "Deployment",
        "StatefulSet",
        "ReplicaSet",
    ]);
    if kind == "Deployment" {
        let strategy = lot.json(&STRATEGIES);
        if !strategy.is_null() {
            spec["strategy"] = strategy;
        }
    }
    if kind == "StatefulSet" {
        spec["serviceName"] = json!("web");
    }
    let count = lot.below(3);
    let mut claims: Vec<&str> = (0..=count).map(|_| lot.of(&CLAIMS)).collect();
    claims.dedup();
    let mut drawn = deployment(&spec, &claims);
    drawn["kind"] = json!(kind);
    drawn["metadata"]["annotations"] = lot.json(&ANNOTATIONS);
    let pod = lot.json(&PODS);
    let template = &mut drawn["spec"]["template"]["spec"];
    merge(template, &pod);
    // A claim that no container mounts.
    if lot.below(8) == 0 {
        template["containers"][0]["volumeMounts"] = json!([]);
    }
    drawn
}

/// A workload with odd values in odd places; the API server may refuse it as invalid.
pub(crate) fn odd(lot: &mut Lot) -> Value {
    const ODD: [&str; 10] = [
        "null",
        "[]",
        "{}",
        "0",
        "-1",
        "\"\"",
        "\"x\"",
        "true",
        "[null]",
        "2147483647",
    ];
    const PLACES: [&str; 18] = [
        "/spec/replicas",
        "/spec/strategy",
        "/spec/strategy/type",
        "/spec/strategy/rollingUpdate",
        "/spec/template/spec/volumes",
        "/spec/template/spec/volumes/0",
        "/spec/template/spec/volumes/0/persistentVolumeClaim",
        "/spec/template/spec/volumes/0/persistentVolumeClaim/claimName",
        "/spec/template/spec/containers",
        "/spec/template/spec/containers/0/volumeMounts",
        "/spec/template/spec/containers/0/volumeMounts/0",
        "/spec/template/spec/initContainers",
        "/spec/template/spec/nodeSelector",
        "/spec/template/spec/affinity",
        "/spec/template/spec/tolerations",
        "/metadata/annotations",
        "/metadata/ownerReferences",
        "/spec/template/spec/containers/0/resources",
    ];
    let mut object = draw(lot);
    for _ in 0..=lot.below(3) {
        let place = lot.of(&PLACES);
        let value = lot.json(&ODD);
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
