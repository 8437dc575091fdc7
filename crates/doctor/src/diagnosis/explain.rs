//! What a line of an Event means, without a cluster: for someone with a ticket and no access.

use serde::Serialize;

use super::command::quoted;
use super::messages::{
    ATTACHED_ELSEWHERE, CLAIM_ENDS, EXCLUSIVELY_ATTACHED, IN_ANOTHER_NAMESPACE,
    IN_USE_BY_ANOTHER_POD, KUBELET_WAITS, LIMIT_OF_NODES, LIMIT_REACHED, MOUNTED_ALREADY,
    MULTI_ATTACH, NO_POD_TO_FOLLOW, NODE_CONFLICT, Phrase, TAKEN_BY_ANOTHER_POD,
    WAITING_FOR_DETACH,
};
use engine::model::metadata::is_name;

/// What a line means.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// The words by which the line was recognised, as people search for them.
    pub searched: &'static str,
    /// What has happened: sentences.
    pub meaning: &'static str,
    /// Commands that show more. Names in capitals are placeholders.
    pub look: Vec<String>,
    /// What ends it: sentences.
    pub fix: &'static str,
    /// The causes that it may come of, the likeliest first.
    pub causes: &'static [&'static str],
}

/// A line that is known.
pub(super) struct Line {
    searched: &'static str,
    pub(super) phrase: Phrase,
    meaning: &'static str,
    look: &'static [&'static str],
    fix: &'static str,
    causes: &'static [&'static str],
}

const DIAGNOSE: &str = "multi-attach-guard diagnose -n {namespace} pod/{pod}";
const ATTACHMENTS: &str = "kubectl get volumeattachment -o custom-columns=NAME:.metadata.name,VOLUME:.spec.source.persistentVolumeName,NODE:.spec.nodeName,ATTACHED:.status.attached";
const DESCRIBE_CLAIM: &str = "kubectl -n {namespace} describe pvc/{claim}";
const DESCRIBE_POD: &str = "kubectl -n {namespace} describe pod/{pod}";

const IN_USE: &[&str] = &[
    "rollout-overlap",
    "shared-claim",
    "too-many-replicas",
    "autoscaler",
    "moved-pin",
    "node-lost",
    "delay",
];

const UNDO: &str = "If this is a rollout, `kubectl -n NAMESPACE rollout undo deployment/NAME` ends the wait without stopping anything, and `strategy: {type: Recreate}` keeps it from coming back. If another workload has the volume, stop one of the two or keep both on one node. If the node that has it is dead, see that the machine is off before anything else. Never delete the VolumeAttachment or the pod by force: two machines would write to one disk.";

/// Every line that is known, the most particular first.
pub(super) static LINES: &[Line] = &[
    Line {
        searched: "pod(s) in different namespaces",
        phrase: IN_ANOTHER_NAMESPACE,
        meaning: "The disk is attached to another node, for pods of other namespaces. A claim cannot be used from another namespace, so that a second PersistentVolume with the same driver and volumeHandle stands for the same disk.",
        look: &[
            "kubectl get pv -o custom-columns=NAME:.metadata.name,DRIVER:.spec.csi.driver,HANDLE:.spec.csi.volumeHandle,NAMESPACE:.spec.claimRef.namespace,CLAIM:.spec.claimRef.name",
            DIAGNOSE,
        ],
        fix: "Keep one of the two volumes, and set its reclaim policy to Retain before you delete the claim of the other: with Delete the disk goes with it.",
        causes: &["same-disk"],
    },
    Line {
        searched: "already exclusively attached to one node",
        phrase: EXCLUSIVELY_ATTACHED,
        meaning: "The attach-detach controller keeps the volume for the node that has it, and knows no pod there that uses it: the old pod is gone, and the volume is yet to be detached. Until Kubernetes 1.36 the line ends with \"and can't be attached to another\", since 1.37 with \"waiting on detach before it can be attached to another node\".",
        look: &[ATTACHMENTS, DIAGNOSE],
        fix: "On a healthy node this passes within a minute. If the node is not Ready, Kubernetes detaches by force 6 minutes after its last pod is gone; if it is dead, see that the machine is off, then `kubectl taint node NODE node.kubernetes.io/out-of-service=nodeshutdown:NoExecute`. If the node is healthy and nothing moves, its kubelet has not unmounted the volume.",
        causes: &["delay", "node-lost", "stalled", "driver-error"],
    },
    Line {
        searched: "Waiting for detach for volume",
        phrase: WAITING_FOR_DETACH,
        meaning: "Kubernetes 1.37 and later: the volume is attached to another node, and the pods that the line names use it there. Before 1.37 the same Event begins with \"Multi-Attach error for volume\".",
        look: &[ATTACHMENTS, DIAGNOSE],
        fix: UNDO,
        causes: IN_USE,
    },
    Line {
        searched: "Multi-Attach error for volume",
        phrase: MULTI_ATTACH,
        meaning: "Kubernetes until 1.36: the volume is attached to another node, and the pods that the line names use it there. Since 1.37 the same Event begins with \"Waiting for detach for volume\".",
        look: &[ATTACHMENTS, DIAGNOSE],
        fix: UNDO,
        causes: IN_USE,
    },
    Line {
        searched: "device already mounted at",
        phrase: MOUNTED_ALREADY,
        meaning: "The driver (OpenEBS ZFS and LVM among others) mounts a volume for one pod at a time, on one node too, and another pod of that node has it. In a rolling update that is the old pod, which waits for the new one.",
        look: &[DESCRIBE_POD, DIAGNOSE],
        fix: "`kubectl -n NAMESPACE rollout undo deployment/NAME` ends the wait; `strategy: {type: Recreate}` stops the old pod first from then on. With ZFS, a StorageClass with `shared: \"yes\"` lets several pods of a node have new volumes.",
        causes: &["second-mount"],
    },
    Line {
        searched: "volume node affinity conflict",
        phrase: NODE_CONFLICT,
        meaning: "The volume can be used in one zone, pool or node only, and no node there takes the pod. Kubernetes 1.36 and later say \"didn't match PersistentVolume's node affinity\".",
        look: &[
            "kubectl get pv {volume} -o jsonpath={.spec.nodeAffinity}",
            "kubectl get nodes -L topology.kubernetes.io/zone",
            DIAGNOSE,
        ],
        fix: "Add a node where the volume is, uncordon the one there is (`kubectl uncordon NODE`), or take back the change of nodeSelector, affinity or node pool that moved the pod. A volume does not move between zones: a snapshot or a copy does.",
        causes: &["no-node-for-volume"],
    },
    Line {
        searched: "unbound immediate PersistentVolumeClaims",
        phrase: Phrase(&["unbound immediate persistentvolumeclaims"]),
        meaning: "A claim of the pod has no volume, and its class makes volumes at once: its provisioner has refused, is not running, or there is no such class.",
        look: &[DESCRIBE_CLAIM, "kubectl get storageclass", DIAGNOSE],
        fix: "The claim's Events hold the provisioner's words. A claim without a volume holds no data: delete it and create it with a class and an access mode that go together (`multi-attach-guard capabilities` lists them).",
        causes: &["unbound-claim"],
    },
    Line {
        searched: "didn't find available persistent volumes to bind",
        phrase: Phrase(&["didn't find available persistent volumes to bind"]),
        meaning: "The claim's class provisions nothing where the pod may be, and no PersistentVolume that is free fits the claim there.",
        look: &[DESCRIBE_CLAIM, "kubectl get pv", DIAGNOSE],
        fix: "Create a PersistentVolume that fits: size, access modes, volumeMode, class and selector must match, and its node affinity must allow a node of the pod's. One that is Released keeps its old claimRef and fits nobody.",
        causes: &["unbound-claim", "other"],
    },
    Line {
        searched: "PVC is not bound",
        phrase: Phrase(&["pvc is not bound"]),
        meaning: "The pod is on a node, and its claim has no volume. The scheduler places no such pod: `nodeName` in its template has put it there, past the scheduler.",
        look: &[DESCRIBE_CLAIM, DIAGNOSE],
        fix: "Replace `nodeName: NODE` by `nodeSelector: {kubernetes.io/hostname: NODE}` and create the pod anew.",
        causes: &["node-name-unbound", "unbound-claim"],
    },
    Line {
        searched: "waiting for first consumer to be created before binding",
        phrase: Phrase(&["waiting for first consumer to be created before binding"]),
        meaning: "This is no error: the claim gets its volume once the scheduler has chosen a node for a pod that uses it. It stays so where no pod uses the claim, where the scheduler finds no node, and where the pod names its node by `nodeName`.",
        look: &[DESCRIBE_CLAIM, DIAGNOSE],
        fix: "See why the pod has no node; if it has `nodeName`, use a nodeSelector on kubernetes.io/hostname instead.",
        causes: &["node-name-unbound", "other"],
    },
    Line {
        searched: "failed to provision volume with StorageClass",
        phrase: Phrase(&["failed to provision volume"]),
        meaning: "The provisioner of the claim's class refuses to make a volume. What follows \"desc =\" are its words.",
        look: &[DESCRIBE_CLAIM, DIAGNOSE],
        fix: "\"not supported\" and \"InvalidArgument\" mean that the class cannot give that access mode or volumeMode: delete the claim, which holds no data, and create it with one that it can. Otherwise it is a quota, credentials or a full back end.",
        causes: &["unbound-claim"],
    },
    Line {
        searched: "persistentvolumeclaim not found",
        phrase: Phrase(&["\" not found", "bound to non-existent pv"]),
        meaning: "The pod mentions a claim that its namespace does not have, or the claim a volume that is gone.",
        look: &["kubectl -n {namespace} get pvc", DIAGNOSE],
        fix: "Create the claim, or correct its name in the pod's template.",
        causes: &["unbound-claim"],
    },
    Line {
        searched: "PVC is being deleted",
        phrase: CLAIM_ENDS,
        meaning: "Somebody has deleted the claim. It stays until no pod uses it any more, and no new pod starts with it.",
        look: &[DESCRIBE_CLAIM, DIAGNOSE],
        fix: "Copy the data before the last pod that runs is stopped, or set the volume's reclaim policy to Retain: `kubectl patch pv VOLUME --type=merge -p '{\"spec\":{\"persistentVolumeReclaimPolicy\":\"Retain\"}}'`. Then create the claim anew.",
        causes: &["unbound-claim"],
    },
    Line {
        searched: "exceed max volume count",
        phrase: LIMIT_OF_NODES,
        meaning: "The nodes that could take the pod have as many volumes as their driver or machine type can attach.",
        look: &[
            "kubectl get csinode -o custom-columns=NODE:.metadata.name,DRIVERS:.spec.drivers[*].name,LIMITS:.spec.drivers[*].allocatable.count",
            ATTACHMENTS,
            DIAGNOSE,
        ],
        fix: "Add a node where the volume can be, or stop pods with volumes on a node that is full.",
        causes: &["attach-limit"],
    },
    Line {
        searched: "ReadWriteOncePod access mode already in-use",
        phrase: Phrase(&[
            TAKEN_BY_ANOTHER_POD.0[0],
            TAKEN_BY_ANOTHER_POD.0[1],
            IN_USE_BY_ANOTHER_POD.0[0],
        ]),
        meaning: "The claim is ReadWriteOncePod, and another pod uses it, wherever it is. Until Kubernetes 1.33 the scheduler's line is \"node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode\".",
        look: &[DESCRIBE_CLAIM, DIAGNOSE],
        fix: "One pod at a time: `replicas: 1`, and `strategy: {type: Recreate}` in a Deployment, as a rolling update starts a second pod. If this is a rollout, `kubectl -n NAMESPACE rollout undo deployment/NAME` ends the wait.",
        causes: &[
            "rollout-overlap",
            "too-many-replicas",
            "shared-claim",
            "autoscaler",
        ],
    },
    Line {
        searched: "didn't match pod affinity rules",
        phrase: NO_POD_TO_FOLLOW,
        meaning: "The pod must run on a node of certain other pods, and no such node accepts it: the node is cordoned or full, or the last of those pods is gone.",
        look: &["kubectl get nodes", DIAGNOSE],
        fix: "`kubectl uncordon NODE`, if the node of the pod that it follows is cordoned. Do not scale the workload that it follows to 0: without a pod to follow, no node would do.",
        causes: &["follower", "drain-with-co-location"],
    },
    Line {
        searched: "conflicting SELinux labels of volume",
        phrase: Phrase(&["conflicting selinux labels of volume"]),
        meaning: "Two pods of one node mount the volume with different SELinux labels, which a driver with `seLinuxMount: true` cannot do.",
        look: &[DESCRIBE_POD, DIAGNOSE],
        fix: "Give both pods the same `seLinuxOptions`, or set `seLinuxChangePolicy: Recursive` in their security contexts.",
        causes: &["driver-error"],
    },
    Line {
        searched: "attachment limit of the node",
        phrase: LIMIT_REACHED,
        meaning: "The driver says that the node has as many volumes as it can attach. The scheduler did not know, as the CSINode names no limit or a higher one.",
        look: &[ATTACHMENTS, DIAGNOSE],
        fix: "`kubectl cordon NODE`, then delete the pod, which has not started, if a controller makes it anew: the next one goes elsewhere.",
        causes: &["driver-error", "attach-limit"],
    },
    Line {
        searched: "already attached to another node",
        phrase: ATTACHED_ELSEWHERE,
        meaning: "The driver refuses to attach or mount the disk, as another machine has it. Kubernetes let it try: the volume's access modes say that it can be shared, or a machine has the disk that Kubernetes does not know of.",
        look: &[ATTACHMENTS, "kubectl get pv {volume}", DIAGNOSE],
        fix: "If a VolumeAttachment shows the disk on another node, one of the two pods has to go, and the PersistentVolume's accessModes have to be corrected. Otherwise find the machine in the console of your cloud, and detach the disk there once nothing writes to it.",
        causes: &["mislabelled-volume", "driver-error", "same-disk"],
    },
    Line {
        searched: "FailedAttachVolume",
        phrase: Phrase(&["attachvolume.attach failed", "failedattachvolume"]),
        meaning: "The volume could not be attached to the pod's node. What follows the last colon are the driver's words; \"timed out waiting for external-attacher\" means that the driver's controller says nothing at all.",
        look: &[ATTACHMENTS, "kubectl get pods -A -o wide", DIAGNOSE],
        fix: "See that the driver's controller runs; the log of its container csi-attacher says the rest. Credentials, a quota and a disk that the back end has lost are the usual reasons.",
        causes: &["driver-error", "rollout-overlap", "shared-claim"],
    },
    Line {
        searched: "timed out waiting for the condition",
        phrase: Phrase(&[KUBELET_WAITS.0[0], "timed out waiting for the condition"]),
        meaning: "A kubelet has waited two minutes for the volumes listed as \"unmounted\", and waits on. This is not the reason: another Event of the pod, FailedAttachVolume or FailedMount, has it.",
        look: &[DESCRIBE_POD, ATTACHMENTS, DIAGNOSE],
        fix: "Explain the other Event. If there is none, see whether the volume is attached to the node; if it is, the log of the kubelet there says what it does.",
        causes: &["rollout-overlap", "driver-error", "stalled", "other"],
    },
    Line {
        searched: "MountVolume.SetUp failed for volume",
        phrase: Phrase(&[
            "mountvolume.setup failed",
            "mountvolume.mountdevice failed",
            "mapvolume",
            "failedmount",
        ]),
        meaning: "The volume is where it should be, and the kubelet cannot mount it. What follows the last colon are the words of the driver's node plugin.",
        look: &[DESCRIBE_POD, DIAGNOSE],
        fix: "The log of the driver's node plugin on that node says the rest.",
        causes: &["driver-error", "second-mount"],
    },
];

impl Line {
    /// What the line means; names are taken from `text`.
    fn explanation(&self, text: &str) -> Explanation {
        let look = self.look.iter().map(|command| filled(command, text));
        Explanation {
            searched: self.searched,
            meaning: self.meaning,
            look: look.collect(),
            fix: self.fix,
            causes: self.causes,
        }
    }
}

/// What a line of an Event, or of the scheduler, means; `None` where it is none that is known.
/// The words by which people search for such a line are enough.
#[must_use]
pub fn explain(text: &str) -> Option<Explanation> {
    let by_phrase = LINES.iter().find(|line| line.phrase.is_in(text));
    let searched = || {
        let text = text.to_lowercase();
        let mut lines = LINES.iter();
        lines.find(|line| text.contains(&line.searched.to_lowercase()))
    };
    Some(by_phrase.or_else(searched)?.explanation(text))
}

/// Every explanation, without names.
pub fn explanations() -> impl Iterator<Item = Explanation> {
    LINES.iter().map(|line| line.explanation(""))
}

/// What stands for a name in a command, what precedes it in a line, and what to write where
/// the line has none.
const NAMES: [(&str, &[&str], &str); 4] = [
    ("{volume}", &["for volume \""], "VOLUME"),
    ("{claim}", &["persistentvolumeclaim \""], "CLAIM"),
    ("{pod}", &[], "POD"),
    ("{namespace}", &[], "NAMESPACE"),
];

fn filled(command: &str, text: &str) -> String {
    let mut command = command.to_owned();
    for (place, openings, unknown) in NAMES {
        let mut found = openings.iter().filter_map(|opening| {
            let name = text.split_once(opening)?.1.split('"').next()?;
            is_name(name).then_some(name)
        });
        let name = found.next().map_or(unknown.into(), quoted);
        command = command.replace(place, &name);
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnosis::cause::Cause;

    /// Lines as Kubernetes 1.30 to 1.37 write them, and what each is known by.
    const SEEN: [(&str, &str); 21] = [
        (
            "Multi-Attach error for volume \"pv-data\" Volume is already used by pod(s) web-1",
            "Multi-Attach error for volume",
        ),
        (
            "Multi-Attach error for volume \"pv-data\" Volume is already exclusively attached to one node and can't be attached to another",
            "already exclusively attached to one node",
        ),
        (
            "Multi-Attach error for volume \"pv-data\" Volume is already used by 2 pod(s) in different namespaces",
            "pod(s) in different namespaces",
        ),
        (
            "Waiting for detach for volume \"pv-data\" Volume is already used by pod(s) web-1",
            "Waiting for detach for volume",
        ),
        (
            "Waiting for detach for volume \"pv-data\" Volume is already exclusively attached to one node, waiting on detach before it can be attached to another node",
            "already exclusively attached to one node",
        ),
        (
            "Warning  FailedAttachVolume  3m  attachdetach-controller  AttachVolume.Attach failed for volume \"pv-data\" : timed out waiting for external-attacher of ebs.csi.aws.com CSI driver to attach volume vol-1",
            "FailedAttachVolume",
        ),
        (
            "AttachVolume.Attach failed for volume \"pv-data\" : rpc error: code = Internal desc = VolumeInUse: vol-1 is already attached to an instance",
            "already attached to another node",
        ),
        (
            "AttachVolume.Attach failed for volume \"pv-data\" : rpc error: code = ResourceExhausted desc = limit",
            "attachment limit of the node",
        ),
        (
            "0/3 nodes are available: 3 node(s) had volume node affinity conflict.",
            "volume node affinity conflict",
        ),
        (
            "0/3 nodes are available: 3 node(s) didn't match PersistentVolume's node affinity.",
            "volume node affinity conflict",
        ),
        (
            "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found",
            "unbound immediate PersistentVolumeClaims",
        ),
        (
            "0/3 nodes are available: 3 node(s) exceed max volume count.",
            "exceed max volume count",
        ),
        (
            "0/3 nodes are available: 1 node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode.",
            "ReadWriteOncePod access mode already in-use",
        ),
        (
            "0/3 nodes are available: 3 node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod.",
            "ReadWriteOncePod access mode already in-use",
        ),
        (
            "MountVolume.SetUp failed for volume \"pv-data\" : rpc error: code = Internal desc = verifyMount: device already mounted at [/var/lib/kubelet/pods/0]",
            "device already mounted at",
        ),
        (
            "MountVolume.MountDevice failed for volume \"pv-data\" : rpc error: code = Internal desc = exit status 32",
            "MountVolume.SetUp failed for volume",
        ),
        (
            "Unable to attach or mount volumes: unmounted volumes=[v], unattached volumes=[], failed to process volumes=[]: timed out waiting for the condition",
            "timed out waiting for the condition",
        ),
        (
            "Unable to attach or mount volumes: unmounted volumes=[v]: error processing PVC shop/data: PVC is not bound",
            "PVC is not bound",
        ),
        (
            "persistentvolumeclaim \"data\" not found",
            "persistentvolumeclaim not found",
        ),
        (
            "persistentvolumeclaim \"data\" is being deleted",
            "PVC is being deleted",
        ),
        (
            "0/2 nodes are available: 1 node(s) were unschedulable, 1 node(s) didn't match pod affinity rules.",
            "didn't match pod affinity rules",
        ),
    ];

    #[test]
    fn the_words_that_people_search_for_are_explained() {
        for known in explanations() {
            assert!(explain(known.searched).is_some(), "{}", known.searched);
        }
    }

    #[test]
    fn each_wording_is_recognised() {
        for (line, searched) in SEEN {
            let found = explain(line).map(|it| it.searched);
            assert_eq!(found, Some(searched), "{line}");
        }
        for line in ["", "Back-off pulling image \"x\"", "2 Insufficient cpu"] {
            assert_eq!(explain(line), None, "{line}");
        }
    }

    #[test]
    fn every_explanation_leads_to_causes() {
        for line in LINES {
            assert!(!line.causes.is_empty(), "{}", line.searched);
            for code in line.causes {
                assert!(Cause::named(code).is_some(), "{code}");
            }
        }
    }

    #[test]
    fn names_from_the_line_are_filled_in() {
        let line = "AttachVolume.Attach failed for volume \"pv-data\" : already attached to n1";
        let look = explain(line).map(|it| it.look).unwrap_or_default();
        assert!(
            look.contains(&"kubectl get pv pv-data".to_owned()),
            "{look:?}"
        );
        // What is no name of an object does not get into a command.
        let line = line.replace("pv-data", "$(reboot)");
        let look = explain(&line).map(|it| it.look).unwrap_or_default();
        assert!(
            look.contains(&"kubectl get pv VOLUME".to_owned()),
            "{look:?}"
        );
    }
}
