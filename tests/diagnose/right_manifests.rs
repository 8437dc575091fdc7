//! The manifests in `examples/right`: each rolls out on a real control plane without a guard, also
//! when its pods must move to another node.

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::fake_nodes::{ATTACHING_DRIVER, SHARED_DRIVER};
use crate::harness::shorthand::{Claim, object};
use crate::harness::{self, ControlPlane, Lent, Needs, NodeSpec, seen, until};

const NAMESPACE: &str = "shop";
const SOON: Duration = Duration::from_secs(120);

/// The documents of each file, by its name.
fn files() -> Vec<(String, Vec<Value>)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/right");
    let mut files: Vec<(String, Vec<Value>)> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            let text = std::fs::read_to_string(&path).unwrap();
            (path.display().to_string(), serde_saphyr::from_multiple(&text).unwrap())
        })
        .collect();
    files.sort_by(|a, b| a.0.cmp(&b.0));
    files
}

fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

struct Shop<'p> {
    plane: &'p ControlPlane,
}

impl Shop<'_> {
    fn kubectl(&self, arguments: &[&str]) -> String {
        let arguments = [&["-n", NAMESPACE], arguments].concat();
        self.plane.kubectl(&arguments, None).success().stdout
    }

    /// Makes the volume that a driver would make for the claim.
    fn provision(&self, name: &str, claim: &Value) {
        let class = Some(text(claim, "/spec/storageClassName")).filter(|class| !class.is_empty());
        let driver = if class == Some("shared") { SHARED_DRIVER } else { ATTACHING_DRIVER };
        let mode = text(claim, "/spec/accessModes/0");
        let place = [class.unwrap_or("disks"), driver];
        let [mut volume, _] = Claim::with_mode(mode).bound_in(NAMESPACE, name, place);
        volume["spec"]["capacity"] = claim["spec"]["resources"]["requests"].clone();
        self.plane.apply("default", &volume.to_string());
    }

    /// The nodes of the app's pods that are not ending.
    fn nodes_of(&self, app: &str) -> Vec<String> {
        let listed = self.kubectl(&["get", "pods", "-l", &format!("app={app}"), "-o=json"]);
        let pods: Value = serde_json::from_str(&listed).unwrap();
        let pods = pods["items"].as_array().unwrap().iter();
        pods.filter(|pod| pod["metadata"]["deletionTimestamp"].is_null())
            .map(|pod| text(pod, "/spec/nodeName").to_owned())
            .collect()
    }

    /// Rolls the workload out, and then once more without the node that it is on.
    fn rolls_out_and_moves(&self, workload: &Value) {
        let app = text(workload, "/metadata/name");
        let name = format!("{}/{app}", text(workload, "/kind").to_lowercase());
        let rolls_out = || self.kubectl(&["rollout", "status", &name, "--timeout=5m"]);
        rolls_out();
        self.kubectl(&["rollout", "restart", &name]);
        rolls_out();
        let node = self.nodes_of(app).swap_remove(0);
        self.plane.kubectl(&["cordon", &node], None).success();
        if workload.pointer("/spec/template/spec/affinity").is_some() {
            // Pods that follow each other move only together: while one is left, the others must
            // stay with it.
            self.kubectl(&["scale", &name, "--replicas=0"]);
            let pods = format!("app={app}");
            self.kubectl(&["wait", "--for=delete", "--timeout=5m", "pod", "-l", &pods]);
            let replicas = workload["spec"]["replicas"].to_string();
            self.kubectl(&["scale", &name, &format!("--replicas={replicas}")]);
        } else {
            // kubectl refuses a second restart within a second.
            self.kubectl(&["set", "env", &name, "MOVED=yes"]);
        }
        until("the pods to move", SOON, || {
            let nodes = self.nodes_of(app);
            seen(
                !nodes.is_empty() && nodes.iter().all(|other| !other.is_empty() && *other != node),
                nodes,
            )
        });
        rolls_out();
        self.plane.kubectl(&["uncordon", &node], None).success();
    }

    /// Runs the CronJob at once; its pod must be on the application's node.
    fn follows(&self, cron_job: &Value) {
        let name = text(cron_job, "/metadata/name");
        self.kubectl(&["create", "job", "now", &format!("--from=cronjob/{name}")]);
        until("the backup to follow the application", SOON, || {
            let nodes = [self.nodes_of(name), self.nodes_of("application")];
            seen(!nodes[0].is_empty() && nodes[0] == nodes[1], nodes)
        });
    }
}

/// `None` without a control plane.
pub(crate) fn roll_out_and_move() -> Option<()> {
    let lent = Lent::new(harness::start_control_plane(Needs::Controllers)?);
    let shop = Shop { plane: lent.0 };
    let nodes = shop.plane.fake_nodes();
    nodes.add(&["a", "b"].map(|name| NodeSpec {
        name: name.to_owned(),
        cpus: 8,
        ..NodeSpec::default()
    }));
    shop.plane.kubectl(&["create", "namespace", NAMESPACE], None).success();
    let default = json!({"storageclass.kubernetes.io/is-default-class": "true"});
    for (name, driver, annotations) in
        [("disks", ATTACHING_DRIVER, default), ("shared", SHARED_DRIVER, json!({}))]
    {
        let with = json!({"metadata": {"annotations": annotations}, "provisioner": driver});
        let class = object(json!({"kind": "StorageClass", "name": name, "with": with}));
        shop.plane.apply("default", &class.to_string());
    }
    let files = files();
    assert!(files.len() >= 7, "{files:?}");
    for (path, documents) in &files {
        for document in documents {
            match text(document, "/kind") {
                "PersistentVolumeClaim" => {
                    shop.provision(text(document, "/metadata/name"), document);
                }
                "StatefulSet" => {
                    let app = text(document, "/metadata/name");
                    let template = &document["spec"]["volumeClaimTemplates"][0];
                    for ordinal in 0..document["spec"]["replicas"].as_u64().unwrap() {
                        shop.provision(&format!("data-{app}-{ordinal}"), template);
                    }
                }
                _ => {}
            }
        }
        shop.kubectl(&["apply", "-f", path]);
        for document in documents {
            match text(document, "/kind") {
                "Deployment" | "StatefulSet" => shop.rolls_out_and_moves(document),
                "CronJob" => shop.follows(document),
                _ => {}
            }
        }
    }
    Some(())
}
