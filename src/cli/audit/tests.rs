use std::collections::HashMap;

use serde::de::DeserializeSeed;
use serde_json::{Value, json};

use super::objects::own_part;
use super::*;
use engine::model::observed::{Observed, Unread};
use engine::model::volume_attachment::VolumeAttachment;
use engine::policy::{Action, Policy};
use engine::snapshot::Snapshot;
use engine::storage::Catalog;
use report::Format;

fn cluster(objects: &[Value]) -> Snapshot {
    let mut cluster = Snapshot::complete();
    let disk = json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
        "metadata": {"name": "disk"}, "provisioner": "ebs.csi.aws.com"});
    let nodes = ["n1", "n2"].map(|name| {
        json!({"apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}}})
    });
    for object in [disk].iter().chain(&nodes).chain(objects) {
        let word = |field: &str| object[field].as_str().unwrap();
        let kind = ObjectKind::of_manifest(word("apiVersion"), word("kind")).unwrap();
        cluster.apply(kind.deserialize(object).unwrap());
    }
    cluster
}

fn claim(namespace: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"namespace": namespace, "name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "disk"}})
}

fn template(name: &str) -> Value {
    json!({"metadata": {"labels": {"app": name}}, "spec": {
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}})
}

fn deployment(namespace: &str, name: &str, strategy: &str) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"namespace": namespace, "name": name},
        "spec": {"strategy": {"type": strategy}, "selector": {"matchLabels": {"app": name}},
            "template": template(name)}})
}

const NOW: &str = "2026-11-25T12:00:00Z";

fn report(objects: &[Value], namespace: Option<&str>) -> Report {
    attached_report(objects, namespace, &[])
}

fn attached_report(
    objects: &[Value],
    namespace: Option<&str>,
    attachments: &[VolumeAttachment],
) -> Report {
    let effective = EffectivePolicy::new(Policy::default(), Catalog::embedded().unwrap());
    let cluster = cluster(objects);
    let now = NOW.parse().unwrap();
    let audited = Audited::new(&cluster, attachments, &effective, now, |reference| {
        namespace.is_none() || reference.namespace.as_deref() == namespace
    });
    let documents = |_: &[ObjectRef]| Ok(HashMap::new());
    let mut report = audited.report(Format::Text, &ClusterArgs::default(), documents).unwrap();
    report.count();
    report.sort_by_namespace();
    report
}

fn found(report: &Report) -> Vec<String> {
    report
        .findings
        .iter()
        .map(|located| format!("{} {}", located.finding.object, located.finding.rule))
        .collect()
}

#[test]
fn the_worst_namespace_comes_first() {
    let report = report(
        &[
            claim("a"),
            claim("b"),
            claim("c"),
            deployment("a", "web", "Recreate"),
            deployment("b", "web", "RollingUpdate"),
            deployment("c", "api", "RollingUpdate"),
            deployment("c", "web", "RollingUpdate"),
        ],
        None,
    );
    assert_eq!(
        found(&report),
        [
            "Deployment c/api rolling-update-overlap",
            "Deployment c/web rolling-update-overlap",
            "Deployment c/web workloads-share-volume",
            "Deployment b/web rolling-update-overlap",
        ]
    );
    assert_eq!(hints(&report, true)[0], "By namespace, worst first: c: 3 errors; b: 1 error.");
    assert_eq!((report.summary.judged, report.summary.facts), (7, 3));
}

#[test]
fn a_shared_claim_is_reported_for_the_one_that_comes_and_goes() {
    let job = json!({"apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"namespace": "shop", "name": "backup"}, "spec": {"template": template("backup")}});
    let report = report(&[claim("shop"), deployment("shop", "web", "Recreate"), job], None);
    assert_eq!(found(&report), ["Job shop/backup workloads-share-volume"]);
}

#[test]
fn two_workloads_on_a_claim_get_the_node_of_its_volume() {
    let bound = |mut claim: Value| {
        claim["spec"]["volumeName"] = json!("pv");
        claim
    };
    let volume = json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pv"},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "disk",
            "claimRef": {"namespace": "shop", "name": "data"},
            "csi": {"driver": "ebs.csi.aws.com", "volumeHandle": "h"}}});
    let attachment = json!([{"status": {"attached": true},
        "spec": {"nodeName": "n2", "source": {"persistentVolumeName": "pv"}}}]);
    let attached: Vec<VolumeAttachment> = serde_json::from_value(attachment).unwrap();
    let set = json!({"apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": {"namespace": "shop", "name": "web"}, "spec": {"template": template("web")}});
    let web = deployment("shop", "web", "Recreate");
    let shared = [bound(claim("shop")), volume, deployment("shop", "api", "Recreate")];
    let command = |other: &Value, attachments: &[VolumeAttachment]| {
        let objects = [&shared[..], std::slice::from_ref(other)].concat();
        let report = attached_report(&objects, None, attachments);
        assert_eq!(report.findings.len(), 1, "{:?}", found(&report));
        report.findings[0].command.clone()
    };
    let patch = |object: &str, patch: &str| {
        format!("kubectl -n shop patch {object} --type=merge -p '{patch}'")
    };
    let selector = r#""template":{"spec":{"nodeSelector":{"kubernetes.io/hostname":"n2"}}}"#;
    for (object, later) in [("deployment/web", &web), ("statefulset/web", &set)] {
        let expected = [
            patch(object, &format!(r#"{{"spec":{{"replicas":0,{selector}}}}}"#)),
            patch("deployment/api", &format!(r#"{{"spec":{{{selector}}}}}"#)),
            patch(object, r#"{"spec":{"replicas":1}}"#),
        ];
        assert_eq!(command(later, &attached), Some(expected.join(" && ")));
    }
    assert_eq!(command(&web, &[]), None, "nothing says where the volume is");
    let third = deployment("shop", "more", "Recreate");
    let three = attached_report(&[&shared[..], &[web, third]].concat(), None, &attached);
    assert!(three.findings.iter().all(|located| located.command.is_none()));
}

#[test]
fn what_is_not_meant_counts_and_is_not_reported() {
    let objects = [
        claim("a"),
        claim("b"),
        deployment("a", "web", "RollingUpdate"),
        deployment("b", "web", "RollingUpdate"),
    ];
    let report = report(&objects, Some("b"));
    assert_eq!(found(&report), ["Deployment b/web rolling-update-overlap"]);
}

#[test]
fn a_deployment_without_pods_is_judged_as_it_will_be() {
    let at_zero = |strategy| {
        let mut deployment = deployment("shop", "web", strategy);
        deployment["spec"]["replicas"] = json!(0);
        report(&[claim("shop"), deployment], None)
    };
    let report = at_zero("RollingUpdate");
    assert_eq!(found(&report), ["Deployment shop/web rolling-update-overlap"]);
    let finding = &report.findings[0].finding;
    assert!(finding.message.contains(" and is judged as with one. "), "{}", finding.message);
    assert_eq!(found(&at_zero("Recreate")), [] as [&str; 0]);
}

/// One override ends today, one has ended, and one does not count because it has no reason. The
/// action of a Namespace needs none and counts, although its list lacks one.
#[test]
fn overrides_end_by_the_clock_of_the_cluster() {
    let with = |name: &str, annotations: Value| {
        let mut deployment = deployment("shop", name, "RollingUpdate");
        deployment["metadata"]["annotations"] = annotations;
        deployment
    };
    let until = |until: &str| {
        json!({"multi-attach-guard.dev/ignore": "rolling-update-overlap", "multi-attach-guard.dev/reason": "moves",
            "multi-attach-guard.dev/until": until})
    };
    let mut namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "lab"}});
    namespace["metadata"]["labels"] = json!({"multi-attach-guard.dev/action": "warn"});
    namespace["metadata"]["annotations"] =
        json!({"multi-attach-guard.dev/ignore": "rolling-update-overlap"});
    let objects = [
        claim("shop"),
        with("ends-today", until("2026-11-25")),
        with("ended", until("2026-11-24")),
        with("no-reason", json!({"multi-attach-guard.dev/action": "ignore"})),
        namespace,
    ];
    let report = report(&objects, Some("shop"));
    let found: Vec<(String, Action)> = (report.findings.iter())
        .filter(|located| located.finding.rule == "rolling-update-overlap")
        .map(|located| (located.finding.object.name.to_string(), located.finding.action))
        .collect();
    let expected =
        [("ended", Action::Deny), ("ends-today", Action::Ignore), ("no-reason", Action::Deny)];
    assert_eq!(found, expected.map(|(name, action)| (name.to_owned(), action)));

    let all: Vec<String> =
        overrides::all(&cluster(&objects), &Policy::default(), NOW.parse().unwrap())
            .iter()
            .map(ToString::to_string)
            .collect();
    let unknown = "it is not known since when and by whom";
    assert_eq!(
        all,
        [
            format!(
                "Namespace lab: action=warn, ignore=rolling-update-overlap; {unknown}; no end."
            ),
            format!(
                "Deployment shop/ended: ignore=rolling-update-overlap, \"moves\"; {unknown}; until 2026-11-24. It does not count: multi-attach-guard.dev keys are ignored: multi-attach-guard.dev/until was 2026-11-24."
            ),
            format!(
                "Deployment shop/ends-today: ignore=rolling-update-overlap, \"moves\"; {unknown}; until 2026-11-25."
            ),
            format!(
                "Deployment shop/no-reason: action=ignore; {unknown}; no end. It does not count: multi-attach-guard.dev/action is ignored: add multi-attach-guard.dev/reason to say why."
            ),
        ]
    );
}

#[test]
fn the_manager_that_wrote_an_override_last_is_named() {
    let manager = |name: &str, time: &str, key: &str| {
        json!({"manager": name, "time": time,
            "fieldsV1": {"f:metadata": {"f:annotations": {key: {}}}}})
    };
    let action = "f:multi-attach-guard.dev/action";
    let document = json!({"metadata": {"managedFields": [
        manager("helm", "2026-11-01T00:00:00Z", action),
        manager("kubectl-annotate", "2026-11-02T00:00:00Z", action),
        manager("kubelet", "2026-11-03T00:00:00Z", "f:other"),
    ]}});
    let written = overrides::written(&document).unwrap();
    let expected = "2026-11-02T00:00:00Z".parse().ok();
    assert_eq!(written, ("kubectl-annotate".to_owned(), expected));
    assert_eq!(overrides::written(&json!({})), None);
}

#[test]
fn whoever_has_the_last_word_owns_the_object() {
    let helm = json!({"labels": {"app.kubernetes.io/managed-by": "Helm", "helm.sh/chart": "grafana-8.5.1"},
        "annotations": {"meta.helm.sh/release-name": "graphs", "meta.helm.sh/release-namespace": "shop"}});
    let with = |key: &str, value: Value| {
        let mut metadata = helm.clone();
        metadata[key].as_object_mut().unwrap().extend(value.as_object().unwrap().clone());
        metadata
    };
    let owned = {
        let mut metadata = helm.clone();
        metadata["ownerReferences"] = json!([{"apiVersion": "grafana.integreatly.org/v1beta1", "kind": "Grafana", "name": "main", "controller": true}]);
        metadata
    };
    let cases = [
        (owned, "Grafana main (grafana.integreatly.org/v1beta1)"),
        (
            with(
                "labels",
                json!({"helm.toolkit.fluxcd.io/name": "graphs", "helm.toolkit.fluxcd.io/namespace": "infra"}),
            ),
            "Flux HelmRelease infra/graphs",
        ),
        (
            with(
                "labels",
                json!({"kustomize.toolkit.fluxcd.io/name": "apps", "kustomize.toolkit.fluxcd.io/namespace": "infra"}),
            ),
            "Flux Kustomization infra/apps",
        ),
        (
            with(
                "annotations",
                json!({"argocd.argoproj.io/tracking-id": "shop:apps/Deployment:shop/web"}),
            ),
            "Argo CD Application shop",
        ),
        (
            with("labels", json!({"argocd.argoproj.io/instance": "shop"})),
            "Argo CD Application shop",
        ),
        (helm, "Helm release graphs in shop, chart grafana-8.5.1"),
        (
            json!({"labels": {"app.kubernetes.io/managed-by": "my-operator"}}),
            "my-operator, says its label app.kubernetes.io/managed-by",
        ),
    ];
    let object = ObjectKind::Workload(WorkloadKind::Deployment).reference("shop", "web");
    for (metadata, expected) in cases {
        let owner =
            owner::writer(&json!({"metadata": metadata}), &object, "helm --kube-context=prod")
                .unwrap();
        assert_eq!(owner.name, expected);
        let command = "helm --kube-context=prod get values graphs --all -n shop";
        let shown = expected.starts_with("Helm ").then_some(command);
        assert_eq!(owner.command.as_deref(), shown, "{owner}");
    }
    assert_eq!(owner::writer(&json!({"metadata": {}}), &object, "helm"), None);
}

#[test]
fn what_the_cluster_added_is_no_part_of_what_somebody_wrote() {
    let own = own_part(&json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "uid": "u", "resourceVersion": "1", "generation": 2,
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "a": "b"}},
        "spec": {"replicas": 1}, "status": {"replicas": 1},
    }));
    assert_eq!(
        own,
        json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "web", "annotations": {"a": "b"}}, "spec": {"replicas": 1}})
    );
}

#[test]
fn an_audit_needs_what_every_cluster_serves_and_it_judges() {
    let cases = [
        ("persistentvolumeclaims", true),
        ("replicationcontrollers", true),
        ("horizontalpodautoscalers", true),
        ("pods", false),
        ("rollouts", false),
        ("nodes", false),
    ];
    for (resource, expected) in cases {
        let unread =
            Unread { resource: resource.into(), reason: "1 of 3 are malformed".to_owned() };
        let observed = Observed { unread: vec![unread], ..Observed::default() };
        assert_eq!(facts::is_blind(&observed), expected, "{resource}");
    }
}
