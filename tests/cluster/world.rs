//! A cluster with what decides in it, and the program beside it.

use std::path::Path;
use std::process::Output;
use std::sync::OnceLock;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::output::{code, fed, program, report};
use crate::harness::shorthand::{Claim, Storage, object};
use crate::harness::{self, ControlPlane, Needs};

/// What the cluster holds beside the objects that are judged.
fn cluster(namespace: &str) -> Vec<Value> {
    let node = |name: &str| json!({"kind": "Node", "name": name, "labels": {"kubernetes.io/hostname": name}});
    let driver = |name: &str, attached: bool| json!({"kind": "CSIDriver", "name": name, "with": {"spec": {"attachRequired": attached}}});
    let secret = json!({"tier": "fast", "password": "hunter2"});
    let disk = json!({"provisioner": "disk.csi.example.com", "parameters": secret});
    let claim = |name: &str, mode: &str, class: &str| {
        let spec = json!({"accessModes": [mode], "storageClassName": class});
        json!({"kind": "PersistentVolumeClaim", "name": name, "with": {"spec": spec}})
    };
    let hidden = json!({"stringData": {"key": "value-of-the-secret"}});
    let others = [
        node("node-a"),
        node("node-b"),
        json!({"kind": "StorageClass", "name": "disk", "with": disk}),
        json!({"kind": "StorageClass", "name": "share", "with": {"provisioner": "efs.csi.aws.com"}}),
        driver("disk.csi.example.com", true),
        driver("efs.csi.aws.com", false),
        claim("alone", "ReadWriteOncePod", "disk"),
        claim("shared", "ReadWriteMany", "share"),
        claim("held", "ReadWriteOnce", "disk"),
        json!({"kind": "Secret", "name": "hidden", "with": hidden}),
        json!({"kind": "Pod", "name": "other", "container": {"image": "image-of-a-pod"}}),
    ];
    let storage = Storage {
        namespace,
        class: "disk",
        driver: "disk.csi.example.com",
        volumes: "cluster-",
        handles: "handle-of-the-volume-",
    };
    let bound = Claim::exclusive().bound("bound", &storage);
    others.map(object).into_iter().chain(bound).collect()
}

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
            let list = json!({"apiVersion": "v1", "kind": "List", "items": cluster(&namespace)});
            plane.apply(&namespace, &list.to_string());
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

    /// An audit of a namespace in that format.
    pub(crate) fn audit(&self, namespace: &str, format: &str) -> Output {
        let format = format.split(' ');
        let arguments = ["audit", "-n", namespace, "-o"].into_iter().chain(format);
        self.run(&arguments.collect::<Vec<_>>())
    }

    pub(crate) fn check(&self, arguments: &[&str]) -> Value {
        let output = self.run(&[&["check", "--format", "json"], arguments].concat());
        assert_ne!(code(&output), 2, "{output:?}");
        report(&output)
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
    let mut command = program(arguments);
    let command = command.current_dir(folder);
    fed(command.env("KUBECONFIG", kubeconfig), input)
}
