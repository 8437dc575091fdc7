//! The protobuf messages of the watched resources, with the fields that are read.
//!
//! Numbers, names and types are those of `generated.proto` in `k8s.io/api` v0.36.2 and
//! `k8s.io/apimachinery` v0.36.2; Kubernetes never reuses a number. Every field that the engine's
//! model reads has to be in these tables: a test removes each other field and checks that the
//! model reads the same.

/// A field of a message.
pub(super) struct Field {
    /// Its number in the message.
    pub(super) number: u32,
    /// Its name in JSON.
    pub(super) name: &'static str,
    /// Its type.
    pub(super) shape: Shape,
}

/// The type of a field, and its form in JSON.
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
    /// The same; JSON has its fields in the object around it.
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
    /// The brackets in JSON, for types with several values.
    pub(super) const fn brackets(&self) -> Option<(u8, u8)> {
        match self {
            Self::Texts | Self::Objects(_) => Some((b'[', b']')),
            Self::TextByName | Self::QuantityByName => Some((b'{', b'}')),
            _ => None,
        }
    }
}

/// The fields of an object of this kind.
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
        b"ReplicaSet" | b"ReplicationController" => REPLICA_SET,
        b"Job" => JOB,
        b"CronJob" => CRON_JOB,
        b"Pod" => POD,
        b"HorizontalPodAutoscaler" => AUTOSCALER,
        b"RuntimeClass" => RUNTIME_CLASS,
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

const fn texts(number: u32, name: &'static str) -> Field {
    field(number, name, Shape::Texts)
}

const fn flag(number: u32, name: &'static str) -> Field {
    field(number, name, Shape::Flag)
}

const fn number(number: u32, name: &'static str) -> Field {
    field(number, name, Shape::Number)
}

const fn object(number: u32, name: &'static str, fields: &'static [Field]) -> Field {
    field(number, name, Shape::Object(fields))
}

const fn objects(number: u32, name: &'static str, fields: &'static [Field]) -> Field {
    field(number, name, Shape::Objects(fields))
}

/// Presence only; no fields are read.
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
    texts(14, "finalizers"),
];

const OWNER_REFERENCE: &[Field] = &[
    text(1, "kind"),
    text(3, "name"),
    text(4, "uid"),
    text(5, "apiVersion"),
    flag(6, "controller"),
];

/// The `metadata` of a Status is that of a list, whose fields are not read.
const STATUS: &[Field] = &[
    text(2, "status"),
    text(3, "message"),
    text(4, "reason"),
    number(6, "code"),
];

const REQUIREMENT: &[Field] = &[text(1, "key"), text(2, "operator"), texts(3, "values")];

const LABEL_SELECTOR: &[Field] = &[
    field(1, "matchLabels", Shape::TextByName),
    objects(2, "matchExpressions", REQUIREMENT),
];

const CLAIM: &[Field] = &[
    METADATA,
    object(2, "spec", CLAIM_SPEC),
    object(3, "status", &[texts(2, "accessModes")]),
];

const CLAIM_SPEC: &[Field] = &[
    texts(1, "accessModes"),
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
    text(9, "volumeAttributesClassName"),
];

const VOLUME: &[Field] = &[
    METADATA,
    object(2, "spec", VOLUME_SPEC),
    object(3, "status", &[text(1, "phase")]),
];

const VOLUME_SPEC: &[Field] = &[
    field(1, "capacity", Shape::QuantityByName),
    field(2, "persistentVolumeSource", Shape::Inlined(VOLUME_SOURCE)),
    texts(3, "accessModes"),
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
    object(22, "csi", &[text(1, "driver"), text(2, "volumeHandle")]),
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
            &[text(1, "key"), texts(2, "values")],
        )],
    ),
];

const CSI_DRIVER: &[Field] = &[
    METADATA,
    object(
        2,
        "spec",
        &[flag(1, "attachRequired"), flag(8, "seLinuxMount")],
    ),
];

const RUNTIME_CLASS: &[Field] = &[
    METADATA,
    object(
        4,
        "scheduling",
        &[
            field(1, "nodeSelector", Shape::TextByName),
            objects(2, "tolerations", TOLERATION),
        ],
    ),
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
            number(1, "replicas"),
            object(3, "template", POD_TEMPLATE),
            object(4, "strategy", STRATEGY),
            flag(7, "paused"),
        ],
    ),
    object(3, "status", &[number(7, "readyReplicas")]),
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
            number(1, "replicas"),
            object(3, "template", POD_TEMPLATE),
            objects(4, "volumeClaimTemplates", CLAIM),
            object(7, "updateStrategy", STATEFUL_SET_STRATEGY),
            object(11, "ordinals", &[number(1, "start")]),
        ],
    ),
    object(3, "status", &[number(3, "readyReplicas")]),
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
    object(3, "status", PRESENT),
];

/// ReplicationControllers are the same.
const REPLICA_SET: &[Field] = &[
    METADATA,
    object(
        2,
        "spec",
        &[number(1, "replicas"), object(3, "template", POD_TEMPLATE)],
    ),
    object(3, "status", &[number(4, "readyReplicas")]),
];

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
    number(1, "parallelism"),
    number(2, "completions"),
    flag(5, "manualSelector"),
    object(6, "template", POD_TEMPLATE),
    text(9, "completionMode"),
    flag(10, "suspend"),
    text(15, "managedBy"),
];

const CRON_JOB: &[Field] = &[
    METADATA,
    object(
        2,
        "spec",
        &[
            flag(4, "suspend"),
            object(5, "jobTemplate", &[object(2, "spec", JOB_SPEC)]),
        ],
    ),
    object(3, "status", PRESENT),
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
    flag(11, "hostNetwork"),
    object(
        14,
        "securityContext",
        &[
            object(1, "seLinuxOptions", SELINUX_OPTIONS),
            text(13, "seLinuxChangePolicy"),
        ],
    ),
    object(18, "affinity", AFFINITY),
    objects(20, "initContainers", CONTAINER),
    objects(22, "tolerations", TOLERATION),
    text(29, "runtimeClassName"),
    objects(33, "topologySpreadConstraints", TOPOLOGY_SPREAD),
    objects(
        34,
        "ephemeralContainers",
        &[field(
            1,
            "ephemeralContainerCommon",
            Shape::Inlined(CONTAINER),
        )],
    ),
];

const SELINUX_OPTIONS: &[Field] = &[
    text(1, "user"),
    text(2, "role"),
    text(3, "type"),
    text(4, "level"),
];

const CONTAINER: &[Field] = &[
    objects(6, "ports", &[number(2, "hostPort")]),
    object(
        8,
        "resources",
        &[
            field(1, "limits", Shape::QuantityByName),
            field(2, "requests", Shape::QuantityByName),
        ],
    ),
    objects(9, "volumeMounts", &[text(1, "name")]),
    object(
        15,
        "securityContext",
        &[
            flag(2, "privileged"),
            object(3, "seLinuxOptions", SELINUX_OPTIONS),
        ],
    ),
    objects(21, "volumeDevices", &[text(1, "name")]),
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
        texts(2, "namespaces"),
        text(3, "topologyKey"),
        object(4, "namespaceSelector", LABEL_SELECTOR),
        texts(5, "matchLabelKeys"),
        texts(6, "mismatchLabelKeys"),
    ],
)];

const TOLERATION: &[Field] = &[
    text(1, "key"),
    text(2, "operator"),
    text(3, "value"),
    text(4, "effect"),
];

const TOPOLOGY_SPREAD: &[Field] = &[
    number(1, "maxSkew"),
    text(2, "topologyKey"),
    text(3, "whenUnsatisfiable"),
    object(4, "labelSelector", LABEL_SELECTOR),
    number(5, "minDomains"),
    text(6, "nodeAffinityPolicy"),
    text(7, "nodeTaintsPolicy"),
    texts(8, "matchLabelKeys"),
];

const POD_VOLUME: &[Field] = &[
    text(1, "name"),
    field(2, "volumeSource", Shape::Inlined(POD_VOLUME_SOURCE)),
];

/// Claims, and the in-tree types that matter in pods (`engine::model::in_tree`).
const POD_VOLUME_SOURCE: &[Field] = &[
    object(3, "gcePersistentDisk", &[flag(4, "readOnly")]),
    object(4, "awsElasticBlockStore", &[flag(4, "readOnly")]),
    object(8, "iscsi", &[flag(6, "readOnly")]),
    object(10, "persistentVolumeClaim", &[text(1, "claimName")]),
    object(11, "rbd", &[flag(8, "readOnly")]),
    object(13, "cinder", &[flag(3, "readOnly")]),
    object(20, "vsphereVolume", PRESENT),
    object(22, "azureDisk", &[flag(5, "readOnly")]),
    object(24, "portworxVolume", &[flag(3, "readOnly")]),
    object(29, "ephemeral", &[object(1, "volumeClaimTemplate", CLAIM)]),
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
            number(2, "minReplicas"),
            number(3, "maxReplicas"),
            object(
                5,
                "behavior",
                &[object(1, "scaleUp", &[text(1, "selectPolicy")])],
            ),
        ],
    ),
    object(3, "status", &[objects(6, "conditions", CONDITION)]),
];
