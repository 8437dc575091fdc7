//! Clusters of any size, as the manifests of their objects.

use engine::model::object::{Object, ObjectKind};
use engine::model::workload::WorkloadKind;
use serde::de::DeserializeSeed;

/// The number of namespaces that contain the claims and workloads.
pub(crate) const NAMESPACES: usize = 500;

/// The manifest of one object.
pub(crate) struct Manifest {
    kind: ObjectKind,
    /// JSON on one line.
    pub(crate) json: String,
}

impl Manifest {
    fn new(kind: ObjectKind, api_version: &str, fields: &str) -> Self {
        let name = kind.name();
        let json = format!(r#"{{"apiVersion":"{api_version}","kind":"{name}",{fields}}}"#);
        Self { kind, json: json.replace('\n', "") }
    }

    /// The object as facts.
    pub(crate) fn read(&self) -> Object {
        let mut json = serde_json::Deserializer::from_str(&self.json);
        self.kind.deserialize(&mut json).unwrap()
    }
}

/// The name of the claim with this number.
pub(crate) fn claim_name(number: usize) -> String {
    format!("checkout-service-data-{number}")
}

/// The namespace of the claim and the workload with this number.
pub(crate) fn namespace(number: usize) -> String {
    format!("team-{}", number % NAMESPACES)
}

fn uuid(number: usize) -> String {
    format!("0f3c9a7e-51d2-4c8b-9e60-{number:012}")
}

/// A claim bound to the volume of the same number.
pub(crate) fn claim(number: usize) -> Manifest {
    claim_of(&namespace(number), &claim_name(number), number)
}

pub(crate) fn claim_of(namespace: &str, name: &str, volume: usize) -> Manifest {
    Manifest::new(
        ObjectKind::Claim,
        "v1",
        &format!(
            r#""metadata":{{"name":"{name}","namespace":"{namespace}",
            "labels":{{"app.kubernetes.io/name":"checkout","app.kubernetes.io/instance":"checkout-{volume}",
            "app.kubernetes.io/managed-by":"Helm"}},
            "annotations":{{"pv.kubernetes.io/bind-completed":"yes","volume.kubernetes.io/storage-provisioner":"ebs.csi.aws.com"}}}},
            "spec":{{"accessModes":["ReadWriteOnce"],"resources":{{"requests":{{"storage":"20Gi"}}}},
            "storageClassName":"gp3-encrypted","volumeMode":"Filesystem","volumeName":"pvc-{}"}},
            "status":{{"phase":"Bound","accessModes":["ReadWriteOnce"]}}"#,
            uuid(volume)
        ),
    )
}

/// The volume of the claim with this number.
pub(crate) fn volume(number: usize) -> Manifest {
    volume_of(&namespace(number), &claim_name(number), number)
}

fn volume_of(namespace: &str, claim: &str, number: usize) -> Manifest {
    Manifest::new(
        ObjectKind::Volume,
        "v1",
        &format!(
            r#""metadata":{{"name":"pvc-{}"}},"spec":{{"accessModes":["ReadWriteOnce"],"capacity":{{"storage":"20Gi"}},
            "claimRef":{{"kind":"PersistentVolumeClaim","namespace":"{namespace}","name":"{claim}"}},
            "csi":{{"driver":"ebs.csi.aws.com","volumeHandle":"vol-{number}"}},
            "nodeAffinity":{{"required":{{"nodeSelectorTerms":[{{"matchExpressions":[
              {{"key":"topology.kubernetes.io/zone","operator":"In","values":["eu-central-1a"]}}]}}]}}}},
            "persistentVolumeReclaimPolicy":"Delete","storageClassName":"gp3-encrypted","volumeMode":"Filesystem"}}"#,
            uuid(number)
        ),
    )
}

/// A Deployment with so many claims and labels that it is hardly smaller than the largest one that
/// the guard keeps.
pub(crate) fn largest(number: usize) -> Manifest {
    let volume = |at| {
        format!(
            r#"{{"name":"v{at}","persistentVolumeClaim":{{"claimName":"data-{number}-{at}"}}}}"#
        )
    };
    let label = |at| format!(r#""l{number}-{at}":"""#);
    let volumes: Vec<String> = (0..75).map(volume).collect();
    let labels: Vec<String> = (0..75).map(label).collect();
    Manifest::new(
        ObjectKind::Workload(WorkloadKind::Deployment),
        "apps/v1",
        &format!(
            r#""metadata":{{"name":"largest-{number}","namespace":"{}"}},"spec":{{"template":{{
            "metadata":{{"labels":{{{}}}}},"spec":{{"volumes":[{}]}}}}}}"#,
            namespace(number),
            labels.join(","),
            volumes.join(",")
        ),
    )
}

/// A Deployment that uses the claim with the same number.
pub(crate) fn workload(number: usize) -> Manifest {
    let labels = format!(
        r#"{{"app.kubernetes.io/name":"checkout","app.kubernetes.io/instance":"checkout-{number}",
        "app.kubernetes.io/version":"1.27.{}","app.kubernetes.io/managed-by":"Helm","app.kubernetes.io/part-of":"shop"}}"#,
        number % 7
    );
    Manifest::new(
        ObjectKind::Workload(WorkloadKind::Deployment),
        "apps/v1",
        &format!(
            r#""metadata":{{"name":"checkout-service-{number}","namespace":"{}","labels":{labels}}},
            "spec":{{"replicas":1,"strategy":{{"type":"RollingUpdate","rollingUpdate":{{"maxSurge":"25%","maxUnavailable":"25%"}}}},
            "selector":{{"matchLabels":{{"app.kubernetes.io/name":"checkout","app.kubernetes.io/instance":"checkout-{number}"}}}},
            "template":{{"metadata":{{"labels":{labels}}},"spec":{{"volumes":[
              {{"name":"data","persistentVolumeClaim":{{"claimName":"{}"}}}},
              {{"name":"config","configMap":{{"name":"checkout"}}}}]}}}}}}"#,
            namespace(number),
            claim_name(number),
        ),
    )
}

/// A node, in one of three zones.
pub(crate) fn node(number: usize) -> Manifest {
    Manifest::new(
        ObjectKind::Node,
        "v1",
        &format!(
            r#""metadata":{{"name":"ip-10-0-{number}.eu-central-1.compute.internal","labels":{{
            "kubernetes.io/hostname":"ip-10-0-{number}","kubernetes.io/os":"linux","kubernetes.io/arch":"amd64",
            "topology.kubernetes.io/zone":"eu-central-1{}","node.kubernetes.io/instance-type":"m6i.2xlarge"}}}}"#,
            ["a", "b", "c"][number % 3]
        ),
    )
}

/// The number of objects in a cluster.
#[derive(Clone, Copy)]
pub(crate) struct Size {
    pub(crate) nodes: usize,
    pub(crate) claims: usize,
    pub(crate) workloads: usize,
}

/// Six nodes without workloads.
pub(crate) const SMALL: Size = Size { nodes: 6, claims: 0, workloads: 0 };

/// The cluster for which the goals are set.
pub(crate) const LARGE: Size = Size { nodes: 5_000, claims: 100_000, workloads: 50_000 };

impl Size {
    /// The cluster's objects, including the claims that the files in `benches/data` name.
    pub(crate) fn manifests(self) -> impl Iterator<Item = Manifest> {
        let class = Manifest::new(
            ObjectKind::StorageClass,
            "storage.k8s.io/v1",
            r#""metadata":{"name":"gp3-encrypted"},"provisioner":"ebs.csi.aws.com","volumeBindingMode":"WaitForFirstConsumer""#,
        );
        let driver = Manifest::new(
            ObjectKind::CsiDriver,
            "storage.k8s.io/v1",
            r#""metadata":{"name":"ebs.csi.aws.com"},"spec":{"attachRequired":true}"#,
        );
        let of_the_review = ["wiki-data", "wiki-uploads"].into_iter().zip(self.claims..).flat_map(
            |(name, number)| [claim_of("tools", name, number), volume_of("tools", name, number)],
        );
        [class, driver]
            .into_iter()
            .chain(of_the_review)
            .chain((0..self.nodes).map(node))
            .chain((0..self.claims).flat_map(|number| [claim(number), volume(number)]))
            .chain((0..self.workloads).map(workload))
    }
}
