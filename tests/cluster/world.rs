//! A cluster with what decides in it, and the program beside it.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use serde_json::Value;
use tempfile::TempDir;

use crate::harness::{self, ControlPlane, Needs};

/// What the cluster holds beside the objects that are judged.
const CLUSTER: &str = "
{apiVersion: v1, kind: Node, metadata: {name: node-a, labels: {kubernetes.io/hostname: node-a}}}
---
{apiVersion: v1, kind: Node, metadata: {name: node-b, labels: {kubernetes.io/hostname: node-b}}}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: disk}
provisioner: disk.csi.example.com
parameters: {tier: fast, password: hunter2}
---
{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: share}, provisioner: efs.csi.aws.com}
---
{apiVersion: storage.k8s.io/v1, kind: CSIDriver, metadata: {name: disk.csi.example.com}, spec: {attachRequired: true}}
---
{apiVersion: storage.k8s.io/v1, kind: CSIDriver, metadata: {name: efs.csi.aws.com}, spec: {attachRequired: false}}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: cluster-bound}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  storageClassName: disk
  claimRef: {namespace: NAMESPACE, name: bound}
  csi: {driver: disk.csi.example.com, volumeHandle: handle-of-the-volume}
";

const CLAIMS: &str = "
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: bound}
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: disk
  volumeName: cluster-bound
  resources: {requests: {storage: 1Gi}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: alone}
spec:
  accessModes: [ReadWriteOncePod]
  storageClassName: disk
  resources: {requests: {storage: 1Gi}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: shared}
spec:
  accessModes: [ReadWriteMany]
  storageClassName: share
  resources: {requests: {storage: 1Gi}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: held}
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: disk
  resources: {requests: {storage: 1Gi}}
---
{apiVersion: v1, kind: Secret, metadata: {name: hidden}, stringData: {key: value-of-the-secret}}
---
apiVersion: v1
kind: Pod
metadata: {name: other}
spec: {containers: [{name: c, image: image-of-a-pod}]}
";

/// A cluster with everything in it, and a folder to work in.
pub(crate) struct World {
    /// The cluster.
    pub(crate) plane: &'static ControlPlane,
    /// Where its claims are.
    pub(crate) namespace: &'static str,
    /// Where the program runs.
    pub(crate) folder: TempDir,
}

impl World {
    /// `None` where there is no control plane. The cluster's objects are made once.
    pub(crate) fn new() -> Option<Self> {
        static NAMESPACE: OnceLock<String> = OnceLock::new();
        let plane = harness::require_control_plane(Needs::ApiServer)?;
        let namespace = NAMESPACE.get_or_init(|| {
            let namespace = plane.namespace("cluster");
            let cluster = CLUSTER.replace("NAMESPACE", &namespace);
            plane
                .kubectl(&["apply", "-f", "-"], Some(&cluster))
                .success();
            plane.apply(&namespace, CLAIMS);
            namespace
        });
        let folder = tempfile::tempdir().unwrap();
        Some(Self {
            plane,
            namespace,
            folder,
        })
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        run(self.folder.path(), self.plane.kubeconfig(), arguments)
    }

    pub(crate) fn check(&self, arguments: &[&str]) -> Value {
        let output = self.run(&[&["check", "--format", "json"], arguments].concat());
        assert_ne!(output.status.code(), Some(2), "{}", err(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// What kubectl says when the manifest is sent through the webhooks.
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

pub(crate) fn run(folder: &Path, kubeconfig: &Path, arguments: &[&str]) -> Output {
    run_with(folder, kubeconfig, arguments, "")
}

pub(crate) fn run_with(
    folder: &Path,
    kubeconfig: &Path,
    arguments: &[&str],
    input: &str,
) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_multi-attach-guard"))
        .args(arguments)
        .current_dir(folder)
        .env("KUBECONFIG", kubeconfig)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Whoever reads no input may be gone before it is written.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

pub(crate) fn out(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

pub(crate) fn err(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap()
}
