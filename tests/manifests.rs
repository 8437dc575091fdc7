//! The manifests in `manifests/base/`, on a real API server.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failed step of a helper fails its test"
)]

mod harness;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use harness::{ControlPlane, Guard, GuardOptions, Needs};
use k8s_openapi::ByteString;
use serde_json::{Value, json};

/// Nothing here takes this long.
const DEADLINE: Duration = Duration::from_secs(60);

const SHOP: &str = "apiVersion: v1
kind: Node
metadata: {name: a, labels: {kubernetes.io/hostname: a}}
---
apiVersion: v1
kind: Node
metadata: {name: b, labels: {kubernetes.io/hostname: b}}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: block}
provisioner: ebs.csi.aws.com
---
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: shop}
spec: {storageClassName: block, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("manifests/base")
}

fn apply_file(plane: &ControlPlane, name: &str) {
    let path = folder().join(name);
    plane
        .kubectl(
            &["apply", "--validate=strict", "-f", path.to_str().unwrap()],
            None,
        )
        .success();
}

/// A server that talks to the API server with the rights of its ServiceAccount
/// alone, and with the arguments of the Deployment but for addresses and files.
fn guard(plane: &ControlPlane) -> Guard {
    let token = [
        "create",
        "token",
        "multi-attach-guard",
        "-n=multi-attach-guard",
    ];
    let token = plane.kubectl(&token, None).success().stdout;
    let view = ["config", "view", "--raw", "-o=json"];
    let mut config: Value =
        serde_json::from_str(&plane.kubectl(&view, None).success().stdout).unwrap();
    config["users"][0]["user"] = json!({"token": token.trim()});
    let kubeconfig = plane.write_file("kubeconfig-of-the-guard", &config.to_string());
    let path = kubeconfig.display().to_string();
    plane.guard(
        "deployed",
        &GuardOptions {
            arguments: vec!["--log-format=json".to_owned()],
            environment: vec![("KUBECONFIG".to_owned(), path)],
        },
    )
}

/// Registers `manifests/base/webhooks.yaml`, changed only in where the server is.
fn register(plane: &ControlPlane, guard: &Guard) {
    let file = folder().join("webhooks.yaml");
    let read = [
        "create",
        "--dry-run=client",
        "-o=json",
        "-f",
        file.to_str().unwrap(),
    ];
    let read = plane.kubectl(&read, None).success().stdout;
    let documents = serde_json::Deserializer::from_str(&read).into_iter::<Value>();
    for document in documents {
        let mut document = document.unwrap();
        for webhook in document["webhooks"].as_array_mut().unwrap() {
            let service = &webhook["clientConfig"]["service"];
            assert_eq!(service["name"], "multi-attach-guard");
            assert_eq!(service["namespace"], "multi-attach-guard");
            let path = service["path"].as_str().unwrap();
            webhook["clientConfig"] = json!({
                "url": format!("{}{path}", guard.url),
                "caBundle": ByteString(plane.pki.authority_pem().into_bytes()),
            });
        }
        let apply = ["apply", "--validate=strict", "-f", "-"];
        plane.kubectl(&apply, Some(&document.to_string())).success();
    }
}

fn metrics(plane: &ControlPlane, guard: &Guard) -> String {
    let url = format!("{}/metrics", guard.admin_url);
    plane.block_on(async {
        let answer = plane.http().get(url).send().await.unwrap();
        answer.text().await.unwrap()
    })
}

fn value(metrics: &str, series: &str) -> u64 {
    metrics
        .lines()
        .find_map(|line| line.strip_prefix(series)?.trim().parse().ok())
        .unwrap_or_else(|| panic!("no series {series} in\n{metrics}"))
}

/// Reviews of a kind that were answered by the validating webhook.
fn reviews(plane: &ControlPlane, guard: &Guard, kind: &str) -> u64 {
    let metrics = metrics(plane, guard);
    ["allowed", "denied", "warned"]
        .into_iter()
        .map(|decision| {
            let labels = format!(r#"endpoint="validate",kind="{kind}",decision="{decision}""#);
            value(
                &metrics,
                &format!("multi_attach_guard_reviews_total{{{labels}}}"),
            )
        })
        .sum()
}

fn deployment(replicas: u32, strategy: &str) -> String {
    format!(
        "{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: web, namespace: shop}}, spec: {{replicas: {replicas}, \
         selector: {{matchLabels: {{app: web}}}}, strategy: {{type: {strategy}}}, template: {{metadata: {{labels: {{app: web}}}}, \
         spec: {{containers: [{{name: web, image: web}}], volumes: [{{name: data, persistentVolumeClaim: {{claimName: data}}}}]}}}}}}}}"
    )
}

fn pod(name: &str, owners: &str) -> String {
    format!(
        "{{apiVersion: v1, kind: Pod, metadata: {{name: {name}, namespace: shop, ownerReferences: {owners}}}, \
         spec: {{containers: [{{name: c, image: c}}]}}}}"
    )
}

#[test]
fn what_the_manifests_hold_works_on_a_real_api_server() {
    let Some(plane) = harness::start_control_plane(Needs::ApiServer) else {
        return;
    };
    for file in [
        "namespace.yaml",
        "rbac.yaml",
        "policy.yaml",
        "deployment.yaml",
    ] {
        apply_file(&plane, file);
    }
    plane.kubectl(&["apply", "-f", "-"], Some(SHOP)).success();
    let guard = guard(&plane);
    rights_are_those_the_view_needs(&plane, &guard);
    webhooks_send_what_is_judged(&plane, &guard);
}

/// The server became ready, so its rights suffice; none is there for nothing,
/// and none lets it write.
fn rights_are_those_the_view_needs(plane: &ControlPlane, guard: &Guard) {
    let get = ["get", "clusterrole", "multi-attach-guard", "-o=json"];
    let role: Value = serde_json::from_str(&plane.kubectl(&get, None).success().stdout).unwrap();
    let rules = role["rules"].as_array().unwrap();
    let strings = |value: &Value| -> BTreeSet<String> {
        let items = value.as_array().unwrap().iter();
        items
            .map(|item| item.as_str().unwrap().to_owned())
            .collect()
    };
    for rule in rules {
        let reading = ["get", "list", "watch"].map(str::to_owned).into();
        assert_eq!(strings(&rule["verbs"]), reading);
    }
    let granted: BTreeSet<String> = rules
        .iter()
        .flat_map(|rule| strings(&rule["resources"]))
        .collect();
    let metrics = metrics(plane, guard);
    let followed: BTreeSet<String> = metrics
        .lines()
        .filter_map(|line| line.strip_prefix("multi_attach_guard_view_synced{resource=\""))
        .filter_map(|line| Some(line.strip_suffix("\"} 1")?.to_owned()))
        .collect();
    assert_eq!(followed, granted);
    assert_eq!(value(&metrics, "multi_attach_guard_view_connected"), 1);
}

fn webhooks_send_what_is_judged(plane: &ControlPlane, guard: &Guard) {
    register(plane, guard);
    // The API server learns of webhooks through a cache, so the first requests
    // may pass it by.
    let create = ["create", "--dry-run=server", "-f", "-"];
    harness::wait_until("the webhooks to be asked", DEADLINE, || {
        let created = plane.kubectl(&create, Some(&deployment(1, "RollingUpdate")));
        if created.stderr.contains("rolling-update-overlap") {
            Ok(())
        } else {
            Err(created.stderr)
        }
    })
    .unwrap();
    let apply = ["apply", "-f", "-"];
    plane
        .kubectl(&apply, Some(&deployment(1, "Recreate")))
        .success();

    let scale = ["scale", "-n=shop", "deployment/web", "--replicas=2"];
    let refused = plane.kubectl(&scale, None).failure();
    assert!(
        refused.stderr.contains("scale.multi-attach-guard.dev"),
        "{refused:#?}"
    );

    let owner = |controller: bool| {
        format!(
            "[{{apiVersion: apps/v1, kind: ReplicaSet, name: r, uid: u, controller: {controller}}}]"
        )
    };
    let cases = [
        ("made by a controller", owner(true), 0),
        ("with an owner that is no controller", owner(false), 1),
        ("without an owner", "[]".to_owned(), 1),
    ];
    for (case, owners, asked) in cases {
        let before = reviews(plane, guard, "Pod");
        plane.kubectl(&create, Some(&pod("p", &owners))).success();
        assert_eq!(reviews(plane, guard, "Pod") - before, asked, "a pod {case}");
    }
    let in_kube_system = pod("p", "[]").replace("namespace: shop", "namespace: kube-system");
    let before = reviews(plane, guard, "Pod");
    plane.kubectl(&create, Some(&in_kube_system)).success();
    assert_eq!(
        reviews(plane, guard, "Pod"),
        before,
        "kube-system is left alone"
    );
}
