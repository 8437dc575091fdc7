//! The chart beyond its defaults.

use std::fs;
use std::process::Command;

use crate::harness::{self, Needs};
use crate::rendered::{documents, helm, objects, printed, templated};
use crate::repository;

#[test]
fn lint_has_nothing_to_say() {
    let programs = harness::or_skip!(harness::require_programs(Needs::ApiServer));
    printed(
        helm(programs)
            .args(["lint", "--strict"])
            .arg(repository("manifests/chart")),
    );
}

/// The kind of an object, a value of the chart, and what it makes of the object's field. Fencing
/// never fails: where nobody answers, an administrator is not stopped.
const VALUES: &str = r#"Deployment | replicas=3 | /spec/replicas | 3
Deployment | image.repository=registry.shop/guard | /spec/template/spec/containers/0/image | "registry.shop/guard:0.1.0"
Deployment | image.digest=sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef | /spec/template/spec/containers/0/image | "multi-attach-guard@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
Deployment | priorityClassName=high | /spec/template/spec/priorityClassName | "high"
Deployment | nodeSelector.pool=system | /spec/template/spec/nodeSelector | {"kubernetes.io/os":"linux","pool":"system"}
Deployment | stale=deny | /spec/template/spec/containers/0/args/6 | "--stale=deny"
Deployment | extraArgs={--drain-timeout=30s} | /spec/template/spec/containers/0/args/6 | "--drain-timeout=30s"
ConfigMap | policy.nodes=always | /data/policy.yaml | "nodes: always\n"
Deployment | certificates.clientCA=PEM | /spec/template/spec/containers/0/args/6 | "--client-ca=/etc/multi-attach-guard/client-ca.crt"
ConfigMap | certificates.clientCA=PEM | /data/client-ca.crt | "PEM\n"
NetworkPolicy | networkPolicyFrom={10.0.0.0/28,fd00::/64} | /spec/ingress/0/from | [{"ipBlock":{"cidr":"10.0.0.0/28"}},{"ipBlock":{"cidr":"fd00::/64"}}]
NetworkPolicy | networkPolicyFrom[0].podSelector.matchLabels.app=konnectivity-agent | /spec/ingress/0/from | [{"podSelector":{"matchLabels":{"app":"konnectivity-agent"}}}]
NetworkPolicy | webhookPort=9443 | /spec/ingress/0/ports/0/port | 9443
Deployment | webhookPort=9443 | /spec/template/spec/containers/0/args/6 | "--listen=0.0.0.0:9443"
Deployment | adminPort=9080 | /spec/template/spec/containers/0/args/6 | "--admin=0.0.0.0:9080"
Deployment | hostNetwork=true | /spec/strategy/rollingUpdate | {"maxSurge":0,"maxUnavailable":1}
Deployment | podLabels.team=storage | /spec/template/metadata/labels/team | "storage"
ValidatingWebhookConfiguration | webhookLabels.admissions\.enforcer/disabled=yes | /metadata/labels | {"admissions.enforcer/disabled":"yes","app.kubernetes.io/name":"multi-attach-guard"}
ValidatingWebhookConfiguration | webhookAnnotations.team=storage | /metadata/annotations | {"team":"storage"}
ValidatingWebhookConfiguration | timeoutSeconds=5 | /webhooks/4/timeoutSeconds | 5
ValidatingWebhookConfiguration | exemptNamespaces={kube-system,istio-system} | /webhooks/0/namespaceSelector/matchExpressions/0/values | ["kube-system","istio-system","multi-attach-guard"]
ValidatingWebhookConfiguration | fencing.enabled=true,failurePolicy=Fail | /webhooks/0/name | "fencing.multi-attach-guard.dev"
ValidatingWebhookConfiguration | fencing.enabled=true,failurePolicy=Fail | /webhooks/0/failurePolicy | "Ignore"
ValidatingWebhookConfiguration | fencing.enabled=true,failurePolicy=Fail | /webhooks/1/failurePolicy | "Fail"
ValidatingWebhookConfiguration | exemptNamespaces=null | /webhooks/0/namespaceSelector/matchExpressions/0/values | ["multi-attach-guard"]
ValidatingWebhookConfiguration | webhookLabels=null | /metadata/labels | {"app.kubernetes.io/name":"multi-attach-guard"}
ConfigMap | policy=null | /data/policy.yaml | "{}\n""#;

#[test]
fn values_reach_the_objects() {
    let programs = harness::or_skip!(harness::require_programs(Needs::ApiServer));
    for line in VALUES.lines() {
        let [kind, value, pointer, expected] = line.split(" | ").collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        let objects = objects(&templated(programs, &[value]));
        let key = (kind.to_owned(), "multi-attach-guard".to_owned());
        let found = objects[&key].pointer(pointer).map(ToString::to_string);
        assert_eq!(found.as_deref(), Some(expected), "{value}");
    }
}

#[test]
fn a_secret_of_ones_own_needs_no_cert_manager() {
    let programs = harness::or_skip!(harness::require_programs(Needs::ApiServer));
    let values = [
        "certificates.source=files",
        "certificates.secretName=own",
        "certificates.caBundle=Zm9v",
    ];
    let rendered = templated(programs, &values);
    assert!(!rendered.contains("cert-manager"), "{rendered}");
    assert!(rendered.contains("secretName: own"), "{rendered}");
    // No right to write anything.
    assert!(!rendered.contains("kind: Role\n"), "{rendered}");
    assert!(!rendered.contains("multi-attach-guard-certificates"));
    let webhooks: Vec<_> = documents(&rendered)
        .into_iter()
        .filter_map(|it| it["webhooks"].as_array().cloned())
        .flatten()
        .collect();
    assert!(webhooks.len() > 1);
    for webhook in webhooks {
        assert_eq!(webhook["clientConfig"]["caBundle"], "Zm9v", "{webhook}");
    }
}

#[test]
fn values_that_contradict_each_other_are_refused() {
    let programs = harness::or_skip!(harness::require_programs(Needs::ApiServer));
    let cases = [
        ("replicas=1,failurePolicy=Fail", "/replicas"),
        ("replicas=0", "/replicas"),
        ("certificates.source=files", "/certificates/caBundle"),
        ("certificates.caBundle=Zm9v", "/certificates/caBundle"),
        ("certificates.source=secret", "/certificates/source"),
        ("image.repository=guard:1", "/image/repository"),
        ("image.digest=latest", "/image/digest"),
        ("failurePolicy=fail", "/failurePolicy"),
        ("timeoutSeconds=60", "/timeoutSeconds"),
        ("stale=ignore", "/stale"),
        ("networkPolicyFrom={apiserver}", "/networkPolicyFrom"),
        (
            "networkPolicyFrom[0].cidr=10.0.0.0/28",
            "/networkPolicyFrom",
        ),
        ("webhookPort=443", "/webhookPort"),
        ("webhookPort=null", "webhookPort"),
        ("webhookPort=8443,adminPort=8443", "/adminPort"),
        (r"podLabels.app\.kubernetes\.io/name=web", "/podLabels"),
        ("replicaCount=2", "replicaCount"),
        ("fencing=true", "/fencing"),
        ("policy.defaults.outcomes.deadlok=warn", "/policy/defaults"),
        (
            "policy.defaults.rules.unresolved-claim=allow",
            "/policy/defaults",
        ),
        ("policy.default.remedy=auto", "/policy"),
        ("policy.exemptions[0].names={web}", "/policy/exemptions"),
    ];
    for (values, at) in cases {
        let output = helm(programs)
            .args(["template", "multi-attach-guard"])
            .arg(repository("manifests/chart"))
            .arg(format!("--set={values}"))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{values} was taken");
        assert!(said.contains(at), "{values}: {said}");
    }
}

/// Helm follows the links of `files/`, and a package holds what they lead to.
#[test]
fn a_packed_chart_renders_as_its_folder_does() {
    for entry in fs::read_dir(repository("manifests/chart/files")).unwrap() {
        let file = entry.unwrap().path();
        assert!(file.is_symlink(), "{} is a copy", file.display());
    }
    let programs = harness::or_skip!(harness::require_programs(Needs::ApiServer));
    let folder = tempfile::tempdir().unwrap();
    let chart = repository("manifests/chart");
    let package = folder.path().join(format!(
        "multi-attach-guard-{}.tgz",
        env!("CARGO_PKG_VERSION")
    ));
    printed(
        helm(programs)
            .args(["package", "--destination"])
            .args([folder.path(), &chart]),
    );
    let [folder, packed] = [chart, package].map(|chart| {
        printed(
            helm(programs)
                .args(["template", "guard", "--set"])
                .arg("fencing.enabled=true,monitoring.enabled=true,admissionPolicies.enabled=true")
                .arg(chart),
        )
    });
    assert_eq!(folder, packed);
}

#[test]
fn the_readme_is_the_one_that_the_values_make() {
    let written = printed(&mut Command::new(repository("manifests/chart/readme")));
    let readme = fs::read_to_string(repository("manifests/chart/README.md")).unwrap();
    assert!(
        written == readme,
        "values.yaml or Chart.yaml has changed: make chart"
    );
}
