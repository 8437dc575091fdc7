//! The Report objects that `--reports` keeps, with the rights of its component alone and by the
//! definition of openreports.io itself.

use serde_json::{Value, json};

use crate::harness::{self, ControlPlane, Guard, GuardOptions, Needs, wait_until};
use crate::installed::{DEADLINE, account, grant, kubeconfig};

const NODES_AND_CLASS: &str = "
{apiVersion: v1, kind: Node, metadata: {name: reports-a}}
---
{apiVersion: v1, kind: Node, metadata: {name: reports-b}}
---
{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: reports}, provisioner: reports.csi.example.com}
---
{apiVersion: storage.k8s.io/v1, kind: CSIDriver, metadata: {name: reports.csi.example.com}, spec: {attachRequired: true}}
";

/// A claim and a Deployment that uses it.
fn workload(name: &str, strategy: &str) -> String {
    format!(
        "
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {{name: {name}}}
spec: {{accessModes: [ReadWriteOnce], storageClassName: reports, resources: {{requests: {{storage: 1Gi}}}}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}}}
spec:
  strategy: {{type: {strategy}}}
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec:
      containers: [{{name: c, image: i, volumeMounts: [{{name: v, mountPath: /v}}]}}]
      volumes: [{{name: v, persistentVolumeClaim: {{claimName: {name}}}}}]
"
    )
}

struct World {
    plane: &'static ControlPlane,
    guard: Guard,
}

impl World {
    fn new() -> Option<Self> {
        let plane = harness::require_control_plane(Needs::ApiServer)?;
        let module = "github.com/openreports/reports-api@v0.2.1";
        let module = harness::require_module(harness::programs::minors()[0], module)?;
        let definition = module.join("config/crd/openreports.io_reports.yaml");
        let definition = definition.display().to_string();
        let apply = ["apply", "--server-side", "-f", &definition];
        plane.kubectl(&apply, None).success();
        let established = [
            "wait",
            "--for=condition=Established",
            "crd/reports.openreports.io",
        ];
        plane.kubectl(&established, None).success();
        plane
            .kubectl(&["apply", "-f", "-"], Some(NODES_AND_CLASS))
            .success();
        account(plane);
        grant(plane, "bare-pods");
        grant(plane, "reports");
        let kubeconfig = kubeconfig(plane).display().to_string();
        let options = GuardOptions {
            arguments: vec!["--reports".to_owned()],
            environment: vec![("KUBECONFIG".to_owned(), kubeconfig)],
            ..GuardOptions::default()
        };
        let guard = plane.guard("reports", &options);
        Some(Self { plane, guard })
    }

    fn report(&self, namespace: &str) -> Option<Value> {
        let get = [
            "-n",
            namespace,
            "get",
            "reports.openreports.io/multi-attach-guard",
            "--ignore-not-found",
            "-o=json",
            "--show-managed-fields",
        ];
        let printed = self.plane.kubectl(&get, None).success().stdout;
        (!printed.is_empty()).then(|| serde_json::from_str(&printed).unwrap())
    }

    /// Waits until the objects and policies in the Report are these; without any, until there is none.
    fn until_found(&self, namespace: &str, expected: &[&str]) -> Option<Value> {
        wait_until(&format!("{expected:?}"), DEADLINE, || {
            let report = self.report(namespace);
            let results = report.as_ref().and_then(|it| it["results"].as_array());
            let found: Vec<String> = results
                .into_iter()
                .flatten()
                .map(|it| {
                    let word = |value: &Value| value.as_str().unwrap().to_owned();
                    format!(
                        "{} {}",
                        word(&it["resources"][0]["name"]),
                        word(&it["policy"])
                    )
                })
                .collect();
            if found == expected && report.is_some() != expected.is_empty() {
                return Ok(report);
            }
            Err(format!("{found:?}\n{}", self.guard.program.log_tail()))
        })
        .unwrap()
    }
}

#[test]
fn a_report_follows_what_is_in_its_namespace() {
    let Some(world) = World::new() else {
        return;
    };
    let plane = world.plane;
    let (first, second) = (plane.namespace("reported"), plane.namespace("beside"));
    plane.apply(&first, &workload("web", "RollingUpdate"));
    let created = world
        .until_found(&first, &["web rolling-update-overlap"])
        .unwrap();
    assert_eq!(
        created["summary"],
        json!({"pass": 0, "fail": 1, "warn": 0, "error": 0, "skip": 0})
    );
    assert_eq!(created["results"][0]["result"], "fail");
    assert_eq!(
        created["metadata"]["managedFields"]
            .as_array()
            .map(Vec::len),
        Some(1)
    );

    // A write to another namespace shows that the cluster was looked at since.
    plane.apply(&second, &workload("db", "RollingUpdate"));
    world.until_found(&second, &["db rolling-update-overlap"]);
    let version = |report: &Value| report["metadata"]["resourceVersion"].clone();
    assert_eq!(
        version(&world.report(&first).unwrap()),
        version(&created),
        "nothing has changed"
    );

    plane.apply(&first, &workload("api", "RollingUpdate"));
    let updated = world.until_found(
        &first,
        &["api rolling-update-overlap", "web rolling-update-overlap"],
    );
    assert_eq!(updated.unwrap()["summary"]["fail"], 2);

    let patch = [
        "-n",
        &first,
        "patch",
        "reports.openreports.io/multi-attach-guard",
        "--type=merge",
        r#"--patch={"results":[]}"#,
    ];
    plane.kubectl(&patch, None).success();
    world.until_found(
        &first,
        &["api rolling-update-overlap", "web rolling-update-overlap"],
    );
    let restored = "multi_attach_guard_reports_restored_total";
    assert!(world.guard.count(plane, restored) >= 1);

    for name in ["api", "web"] {
        plane.apply(&first, &workload(name, "Recreate"));
    }
    world.until_found(&first, &[]);
    // The other one is not touched.
    assert!(world.report(&second).is_some());

    drop(world.guard);
    let delete = [
        "delete",
        "reports.openreports.io",
        "--all-namespaces",
        "--field-selector",
        "metadata.name=multi-attach-guard",
    ];
    plane.kubectl(&delete, None).success();
    let left = ["get", "reports.openreports.io", "-A", "-o=name"];
    assert_eq!(plane.kubectl(&left, None).success().stdout, "");
}

/// Without the definition, reviews go on and readiness says what is missing.
#[test]
fn a_cluster_without_the_definition_is_said() {
    let Some(plane) = harness::start_control_plane(Needs::ApiServer) else {
        return;
    };
    let options = GuardOptions {
        arguments: vec!["--reports".to_owned()],
        ..GuardOptions::default()
    };
    let guard = plane.guard("undefined", &options);
    let url = format!("{}/readyz", guard.admin_url);
    wait_until("the condition", DEADLINE, || {
        let text = plane.block_on(async {
            let answer = plane.http().get(&url).send().await.unwrap();
            answer.text().await.unwrap()
        });
        let expected = "degraded reports: Report objects cannot be read";
        text.contains(expected).then_some(()).ok_or(text)
    })
    .unwrap();
}
