//! A cluster with the facts for the judgements, and the program to run on it.

use std::path::Path;
use std::process::Output;
use std::sync::OnceLock;

use serde_json::Value;
use tempfile::TempDir;

use crate::harness::output::{code, fed, program, report};
use crate::harness::shorthand::{Claim, Storage, list};
use crate::harness::{self, ControlPlane, Needs};

/// The objects of the cluster besides those that are judged.
const CLUSTER: &str = "
- {kind: Node, name: node-a, labels: {kubernetes.io/hostname: node-a}}
- {kind: Node, name: node-b, labels: {kubernetes.io/hostname: node-b}}
- {kind: StorageClass, name: disk, with: {provisioner: disk.csi.example.com, parameters: {tier: fast, password: hunter2}}}
- {kind: StorageClass, name: share, with: {provisioner: efs.csi.aws.com}}
- {kind: RuntimeClass, name: one-node, with: {handler: runc, scheduling: {nodeSelector: {kubernetes.io/hostname: node-a}}}}
- {kind: CSIDriver, name: disk.csi.example.com, with: {spec: {attachRequired: true}}}
- {kind: CSIDriver, name: efs.csi.aws.com, with: {spec: {attachRequired: false}}}
- {kind: PersistentVolumeClaim, name: alone, with: {spec: {accessModes: [ReadWriteOncePod]}}}
- {kind: PersistentVolumeClaim, name: shared, with: {spec: {accessModes: [ReadWriteMany], storageClassName: share}}}
- {kind: PersistentVolumeClaim, name: held}
- {kind: Secret, name: hidden, with: {stringData: {key: value-of-the-secret}}}
- {kind: Pod, name: other, container: {image: image-of-a-pod}}
";

/// A cluster with these objects, and a folder to work in.
pub(crate) struct CommandTest {
    /// The cluster.
    pub(crate) plane: &'static ControlPlane,
    /// The namespace of its claims.
    pub(crate) namespace: &'static str,
    /// The folder in which the program runs.
    pub(crate) folder: TempDir,
}

impl CommandTest {
    /// `None` without a control plane. The cluster's objects are made once.
    pub(crate) fn new() -> Option<Self> {
        static NAMESPACE: OnceLock<String> = OnceLock::new();
        let plane = harness::require_control_plane(Needs::ApiServer)?;
        let namespace = NAMESPACE.get_or_init(|| {
            let created = plane.namespace("cluster");
            plane.apply(&created, &list(CLUSTER));
            let storage = Storage {
                namespace: &created,
                class: "disk",
                driver: "disk.csi.example.com",
                volumes: "cluster-",
                handles: "handle-of-the-volume-",
            };
            for object in Claim::exclusive().bound("bound", &storage) {
                plane.apply(&created, &object.to_string());
            }
            created
        });
        let folder = tempfile::tempdir().unwrap();
        Some(Self { plane, namespace, folder })
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        run(self.folder.path(), self.plane.kubeconfig(), arguments, "")
    }

    /// An audit of a namespace in this format.
    pub(crate) fn audit(&self, namespace: &str, format: &str) -> Output {
        let arguments: Vec<_> =
            ["audit", "-n", namespace, "-o"].into_iter().chain(format.split(' ')).collect();
        self.run(&arguments)
    }

    pub(crate) fn check(&self, arguments: &[&str]) -> Value {
        let output = self.run(&[&["check", "--format", "json"], arguments].concat());
        assert_ne!(code(&output), 2, "{output:?}");
        report(&output)
    }

    /// kubectl's messages when the manifest is sent through the webhooks.
    pub(crate) fn dry_run(&self, manifest: &str) -> String {
        let arguments = ["create", "--dry-run=server", "-f", "-"];
        let output = self.plane.kubectl(&arguments, Some(manifest));
        assert!(
            output.status == 0 || output.stderr.contains("denied the request: "),
            "{output:#?}"
        );
        output.stderr
    }
}

pub(crate) fn run(folder: &Path, kubeconfig: &Path, arguments: &[&str], input: &str) -> Output {
    fed(program(arguments).current_dir(folder).env("KUBECONFIG", kubeconfig), input)
}
