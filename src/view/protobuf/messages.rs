//! The protobuf messages of the resources that are followed, as far as they are read.
//!
//! Numbers, names and types are those of `generated.proto` in `k8s.io/api` v0.36.2 and
//! `k8s.io/apimachinery` v0.36.2; Kubernetes never gives a number to another field. What
//! [`crate::model`] reads of an object has to stand here: a test takes every field of an
//! object away in turn, and sees what is missed.

/// A field of a message.
pub(super) struct Field {
    /// By which the message knows it.
    pub(super) number: u32,
    /// By which JSON knows it.
    pub(super) name: &'static str,
    /// What is in it.
    pub(super) shape: Shape,
}

/// What a field holds, and how JSON writes that.
pub(super) enum Shape {
    /// A string.
    Text,
    /// A boolean.
    Flag,
    /// An integer.
    Number,
    /// `Time`; RFC 3339 in JSON.
    Time,
    /// `IntOrString`.
    IntOrString,
    /// A message with these fields.
    Object(&'static [Field]),
    /// The same, but in JSON its fields are among those around it.
    Inlined(&'static [Field]),
    /// A list of strings.
    Texts,
    /// A list of messages.
    Objects(&'static [Field]),
    /// A map of strings.
    TextByName,
    /// A map of `Quantity`; each is a string in JSON.
    QuantityByName,
}

impl Shape {
    /// What stands around the values in JSON, where there may be several.
    pub(super) const fn brackets(&self) -> Option<(u8, u8)> {
        match self {
            Self::Texts | Self::Objects(_) => Some((b'[', b']')),
            Self::TextByName | Self::QuantityByName => Some((b'{', b'}')),
            _ => None,
        }
    }
}

/// The fields of an object of that kind.
pub(super) fn fields_of(kind: &[u8]) -> Option<&'static [Field]> {
    Some(match kind {
        b"PersistentVolumeClaim" => CLAIM,
        b"PersistentVolume" => VOLUME,
        b"StorageClass" => STORAGE_CLASS,
        b"CSIDriver" => CSI_DRIVER,
        b"Node" => NODE,
        b"Namespace" => NAMESPACE,
        b"Deployment" => DEPLOYMENT,
        b"StatefulSet" => STATEFUL_SET,
        b"DaemonSet" => DAEMON_SET,
        b"ReplicaSet" => REPLICA_SET,
        b"ReplicationController" => REPLICATION_CONTROLLER,
        b"Job" => JOB,
        b"CronJob" => CRON_JOB,
        b"Pod" => POD,
        b"HorizontalPodAutoscaler" => AUTOSCALER,
        b"Status" => STATUS,
        _ => return None,
    })
}

const fn field(number: u32, name: &'static str, shape: Shape) -> Field {
    Field {
        number,
        name,
        shape,
    }
}

const fn text(number: u32, name: &'static str) -> Field {
    field(number, name, Shape::Text)
}

const fn object(number: u32, name: &'static str, fields: &'static [Field]) -> Field {
    field(number, name, Shape::Object(fields))
}

const fn objects(number: u32, name: &'static str, fields: &'static [Field]) -> Field {
    field(number, name, Shape::Objects(fields))
}

/// Of which only counts that it is there.
const PRESENT: &[Field] = &[];

const METADATA: Field = object(1, "metadata", OBJECT_META);

const OBJECT_META: &[Field] = &[
    text(1, "name"),
    text(2, "generateName"),
    text(3, "namespace"),
    text(5, "uid"),
    text(6, "resourceVersion"),
    field(8, "creationTimestamp", Shape::Time),
    field(9, "deletionTimestamp", Shape::Time),
    field(11, "labels", Shape::TextByName),
    field(12, "annotations", Shape::TextByName),
    objects(13, "ownerReferences", OWNER_REFERENCE),
];

const OWNER_REFERENCE: &[Field] = &[
    text(1, "kind"),
    text(3, "name"),
    text(4, "uid"),
    text(5, "apiVersion"),
    field(6, "controller", Shape::Flag),
];

/// The `metadata` of a Status is one of lists, which nothing is read of.
const STATUS: &[Field] = &[
    text(2, "status"),
    text(3, "message"),
    text(4, "reason"),
    field(6, "code", Shape::Number),
];

const REQUIREMENT: &[Field] = &[
    text(1, "key"),
    text(2, "operator"),
    field(3, "values", Shape::Texts),
];

const LABEL_SELECTOR: &[Field] = &[
    field(1, "matchLabels", Shape::TextByName),
    objects(2, "matchExpressions", REQUIREMENT),
];

const CLAIM: &[Field] = &[
    METADATA,
    object(2, "spec", CLAIM_SPEC),
    object(3, "status", &[field(2, "accessModes", Shape::Texts)]),
];

const CLAIM_SPEC: &[Field] = &[
    field(1, "accessModes", Shape::Texts),
    object(
        2,
        "resources",
        &[field(2, "requests", Shape::QuantityByName)],
    ),
    text(3, "volumeName"),
    object(4, "selector", LABEL_SELECTOR),
    text(5, "storageClassName"),
    text(6, "volumeMode"),
    object(7, "dataSource", PRESENT),
    object(8, "dataSourceRef", PRESENT),
];

const VOLUME: &[Field] = &[
    METADATA,
    object(2, "spec", VOLUME_SPEC),
    object(3, "status", &[text(1, "phase")]),
];

const VOLUME_SPEC: &[Field] = &[
    field(1, "capacity", Shape::QuantityByName),
    field(2, "persistentVolumeSource", Shape::Inlined(VOLUME_SOURCE)),
    field(3, "accessModes", Shape::Texts),
    object(4, "claimRef", OBJECT_REFERENCE),
    text(6, "storageClassName"),
    text(8, "volumeMode"),
    object(9, "nodeAffinity", &[object(1, "required", NODE_SELECTOR)]),
];

const OBJECT_REFERENCE: &[Field] = &[text(2, "namespace"), text(3, "name"), text(4, "uid")];

const VOLUME_SOURCE: &[Field] = &[
    object(1, "gcePersistentDisk", PRESENT),
    object(2, "awsElasticBlockStore", PRESENT),
    object(3, "hostPath", PRESENT),
    object(4, "glusterfs", PRESENT),
    object(5, "nfs", PRESENT),
    object(6, "rbd", PRESENT),
    object(7, "iscsi", PRESENT),
    object(8, "cinder", PRESENT),
    object(9, "cephfs", PRESENT),
    object(10, "fc", PRESENT),
    object(11, "flocker", PRESENT),
    object(12, "flexVolume", PRESENT),
    object(13, "azureFile", PRESENT),
    object(14, "vsphereVolume", PRESENT),
    object(15, "quobyte", PRESENT),
    object(16, "azureDisk", PRESENT),
    object(17, "photonPersistentDisk", PRESENT),
    object(18, "portworxVolume", PRESENT),
    object(19, "scaleIO", PRESENT),
    object(20, "local", PRESENT),
    object(21, "storageos", PRESENT),
    object(22, "csi", &[text(1, "driver")]),
];

const STORAGE_CLASS: &[Field] = &[
    METADATA,
    text(2, "provisioner"),
    field(3, "parameters", Shape::TextByName),
    text(7, "volumeBindingMode"),
    objects(
        8,
        "allowedTopologies",
        &[objects(
            1,
            "matchLabelExpressions",
            &[text(1, "key"), field(2, "values", Shape::Texts)],
        )],
    ),
];

const CSI_DRIVER: &[Field] = &[
    METADATA,
    object(2, "spec", &[field(1, "attachRequired", Shape::Flag)]),
];

const NAMESPACE: &[Field] = &[METADATA];

const NODE: &[Field] = &[
    METADATA,
    object(2, "spec", &[objects(5, "taints", TAINT)]),
    object(
        3,
        "status",
        &[
            field(2, "allocatable", Shape::QuantityByName),
            objects(4, "conditions", CONDITION),
            objects(10, "volumesAttached", &[text(1, "name")]),
        ],
    ),
];

const TAINT: &[Field] = &[text(1, "key"), text(2, "value"), text(3, "effect")];

const CONDITION: &[Field] = &[text(1, "type"), text(2, "status")];

const NODE_SELECTOR: &[Field] = &[objects(
    1,
    "nodeSelectorTerms",
    &[
        objects(1, "matchExpressions", REQUIREMENT),
        objects(2, "matchFields", REQUIREMENT),
    ],
)];

const DEPLOYMENT: &[Field] = &[
    METADATA,
    object(
        2,
        "spec",
        &[
            field(1, "replicas", Shape::Number),
            object(3, "template", POD_TEMPLATE),
            object(4, "strategy", STRATEGY),
            field(7, "paused", Shape::Flag),
        ],
    ),
];

/// Of Deployments and of DaemonSets.
const STRATEGY: &[Field] = &[
    text(1, "type"),
    object(
        2,
        "rollingUpdate",
        &[
            field(1, "maxUnavailable", Shape::IntOrString),
            field(2, "maxSurge", Shape::IntOrString),
        ],
    ),
];

const STATEFUL_SET: &[Field] = &[
    METADATA,
    object(
        2,
        "spec",
        &[
            field(1, "replicas", Shape::Number),
            object(3, "template", POD_TEMPLATE),
            objects(4, "volumeClaimTemplates", CLAIM),
            object(7, "updateStrategy", STATEFUL_SET_STRATEGY),
            object(11, "ordinals", &[field(1, "start", Shape::Number)]),
        ],
    ),
];

const STATEFUL_SET_STRATEGY: &[Field] = &[
    text(1, "type"),
    object(
        2,
        "rollingUpdate",
        &[field(2, "maxUnavailable", Shape::IntOrString)],
    ),
];

const DAEMON_SET: &[Field] = &[
    METADATA,
    object(
        2,
        "spec",
        &[
            object(2, "template", POD_TEMPLATE),
            object(3, "updateStrategy", STRATEGY),
        ],
    ),
];

/// Of ReplicaSets and of ReplicationControllers.
const REPLICAS: &[Field] = &[
    field(1, "replicas", Shape::Number),
    object(3, "template", POD_TEMPLATE),
];

const REPLICA_SET: &[Field] = &[METADATA, object(2, "spec", REPLICAS)];

const REPLICATION_CONTROLLER: &[Field] = &[METADATA, object(2, "spec", REPLICAS)];

const JOB: &[Field] = &[
    METADATA,
    object(2, "spec", JOB_SPEC),
    object(
        3,
        "status",
        &[
            objects(1, "conditions", CONDITION),
            field(3, "completionTime", Shape::Time),
        ],
    ),
];

const JOB_SPEC: &[Field] = &[
    field(1, "parallelism", Shape::Number),
    field(2, "completions", Shape::Number),
    object(6, "template", POD_TEMPLATE),
    text(9, "completionMode"),
    field(10, "suspend", Shape::Flag),
];

const CRON_JOB: &[Field] = &[
    METADATA,
    object(
        2,
        "spec",
        &[
            field(4, "suspend", Shape::Flag),
            object(5, "jobTemplate", &[object(2, "spec", JOB_SPEC)]),
        ],
    ),
];

const POD: &[Field] = &[
    METADATA,
    object(2, "spec", POD_SPEC),
    object(3, "status", &[text(1, "phase")]),
];

const POD_TEMPLATE: &[Field] = &[
    object(1, "metadata", &[field(11, "labels", Shape::TextByName)]),
    object(2, "spec", POD_SPEC),
];

const POD_SPEC: &[Field] = &[
    objects(1, "volumes", POD_VOLUME),
    objects(2, "containers", CONTAINER),
    text(3, "restartPolicy"),
    field(7, "nodeSelector", Shape::TextByName),
    text(10, "nodeName"),
    field(11, "hostNetwork", Shape::Flag),
    object(18, "affinity", AFFINITY),
    objects(20, "initContainers", CONTAINER),
    objects(22, "tolerations", TOLERATION),
    objects(33, "topologySpreadConstraints", TOPOLOGY_SPREAD),
];

const CONTAINER: &[Field] = &[
    objects(6, "ports", &[field(2, "hostPort", Shape::Number)]),
    object(
        8,
        "resources",
        &[
            field(1, "limits", Shape::QuantityByName),
            field(2, "requests", Shape::QuantityByName),
        ],
    ),
    text(24, "restartPolicy"),
];

const AFFINITY: &[Field] = &[
    object(
        1,
        "nodeAffinity",
        &[object(
            1,
            "requiredDuringSchedulingIgnoredDuringExecution",
            NODE_SELECTOR,
        )],
    ),
    object(2, "podAffinity", POD_AFFINITY),
    object(3, "podAntiAffinity", POD_AFFINITY),
];

const POD_AFFINITY: &[Field] = &[objects(
    1,
    "requiredDuringSchedulingIgnoredDuringExecution",
    &[
        object(1, "labelSelector", LABEL_SELECTOR),
        field(2, "namespaces", Shape::Texts),
        text(3, "topologyKey"),
        object(4, "namespaceSelector", LABEL_SELECTOR),
        field(5, "matchLabelKeys", Shape::Texts),
        field(6, "mismatchLabelKeys", Shape::Texts),
    ],
)];

const TOLERATION: &[Field] = &[
    text(1, "key"),
    text(2, "operator"),
    text(3, "value"),
    text(4, "effect"),
];

const TOPOLOGY_SPREAD: &[Field] = &[
    field(1, "maxSkew", Shape::Number),
    text(2, "topologyKey"),
    text(3, "whenUnsatisfiable"),
    object(4, "labelSelector", LABEL_SELECTOR),
    field(5, "minDomains", Shape::Number),
    text(6, "nodeAffinityPolicy"),
    text(7, "nodeTaintsPolicy"),
    field(8, "matchLabelKeys", Shape::Texts),
];

const POD_VOLUME: &[Field] = &[
    text(1, "name"),
    field(2, "volumeSource", Shape::Inlined(POD_VOLUME_SOURCE)),
];

/// A source of a pod that may be for reading only.
const fn source(number: u32, name: &'static str, read_only: &'static [Field]) -> Field {
    object(number, name, read_only)
}

const POD_VOLUME_SOURCE: &[Field] = &[
    source(3, "gcePersistentDisk", &[field(4, "readOnly", Shape::Flag)]),
    source(
        4,
        "awsElasticBlockStore",
        &[field(4, "readOnly", Shape::Flag)],
    ),
    source(8, "iscsi", &[field(6, "readOnly", Shape::Flag)]),
    source(10, "persistentVolumeClaim", &[text(1, "claimName")]),
    source(11, "rbd", &[field(8, "readOnly", Shape::Flag)]),
    source(13, "cinder", &[field(3, "readOnly", Shape::Flag)]),
    source(20, "vsphereVolume", PRESENT),
    source(22, "azureDisk", &[field(5, "readOnly", Shape::Flag)]),
    source(24, "portworxVolume", &[field(3, "readOnly", Shape::Flag)]),
    source(29, "ephemeral", &[object(1, "volumeClaimTemplate", CLAIM)]),
];

const AUTOSCALER: &[Field] = &[
    METADATA,
    object(
        2,
        "spec",
        &[
            object(
                1,
                "scaleTargetRef",
                &[text(1, "kind"), text(2, "name"), text(3, "apiVersion")],
            ),
            field(3, "maxReplicas", Shape::Number),
            object(
                5,
                "behavior",
                &[object(1, "scaleUp", &[text(1, "selectPolicy")])],
            ),
        ],
    ),
];
