//! One cluster for each cause.

use super::*;

pub(super) fn every_cause() -> Vec<(&'static str, World)> {
    let multi_attach =
        "Multi-Attach error for volume \"pv-data\" Volume is already used by pod(s) web-old-x";
    vec![
        (
            "rollout-overlap",
            rollout().with(event("web-new-x", multi_attach)),
        ),
        (
            "moved-pin",
            rollout()
                .without("Deployment", "web")
                .deployment("web", &json!({"template": {"spec": {"nodeSelector": {"kubernetes.io/hostname": "n2"}}}})),
        ),
        (
            "too-many-replicas",
            two_pods(World::new().deployment("web", &json!({"replicas": 2, "strategy": {"type": "Recreate"}}))),
        ),
        (
            "autoscaler",
            two_pods(World::new().deployment("web", &json!({"strategy": {"type": "Recreate"}}))
                .with(json!({"kind": "HorizontalPodAutoscaler", "apiVersion": "autoscaling/v2",
                    "metadata": {"name": "web", "namespace": "shop"},
                    "spec": {"maxReplicas": 5, "scaleTargetRef":
                        {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}}))),
        ),
        (
            "shared-claim",
            World::new()
                .deployment("web", &json!({}))
                .deployment("backup", &json!({}))
                .with(pod("web", "a", Some("n1"), "Running"))
                .with(pod("backup", "b", Some("n2"), "Pending"))
                .with(attachment("n1", true)),
        ),
        ("drain-with-co-location", drained()),
        ("node-lost", lost()),
        (
            "driver-error",
            World::new()
                .deployment("web", &json!({"strategy": {"type": "Recreate"}}))
                .with(pod("web", "a", Some("n2"), "Pending"))
                .with(but(
                    attachment("n1", true),
                    &json!({"metadata": {"deletionTimestamp": "2026-03-01T11:58:00Z"},
                        "status": {"detachError": {"message": "rpc error: code = Internal desc = volume is busy"}}}),
                )),
        ),
        (
            "stalled",
            World::new()
                .deployment("web", &json!({"strategy": {"type": "Recreate"}}))
                .with(pod("web", "new", Some("n2"), "Pending"))
                .with(but(
                    attachment("n1", true),
                    &json!({"metadata": {"deletionTimestamp": "2026-03-01T11:10:00Z"}}),
                )),
        ),
        (
            "delay",
            World::new()
                .deployment("web", &json!({"strategy": {"type": "Recreate"}}))
                .with(but(
                    pod("web", "old", Some("n1"), "Running"),
                    &json!({"metadata": {"deletionTimestamp": "2026-03-01T12:00:20Z"}}),
                ))
                .with(pod("web", "new", Some("n2"), "Pending"))
                .with(attachment("n1", true)),
        ),
        ("unbound-claim", never_provisioned()),
        ("node-name-unbound", node_named()),
        ("mislabelled-volume", mislabelled()),
        ("same-disk", one_disk()),
        ("second-mount", second_mount()),
        ("attach-limit", full_nodes()),
        ("no-node-for-volume", other_zone()),
        ("follower", follower()),
        (
            "other",
            World::new()
                .deployment("web", &json!({}))
                .with(but(
                    pod("web", "new", None, "Pending"),
                    &unschedulable("0/2 nodes are available: 2 Insufficient cpu."),
                )),
        ),
    ]
}

/// The claim `data` without a volume.
pub(super) fn unbound(world: World, mode: &str) -> World {
    world
        .without("PersistentVolumeClaim", "data")
        .without("PersistentVolume", "pv-data")
        .with(json!({"kind": "PersistentVolumeClaim", "apiVersion": "v1",
            "metadata": {"name": "data", "namespace": "shop"},
            "spec": {"accessModes": [mode], "storageClassName": "fast"}}))
}

/// An Event about the claim `data`.
pub(super) fn of_claim(reason: &str, kind: &str, message: &str) -> Value {
    json!({"kind": "Event", "reason": reason, "type": kind, "message": message,
        "involvedObject": {"kind": "PersistentVolumeClaim", "namespace": "shop", "name": "data"}})
}

/// The provisioner cannot give the mode that the claim requests.
pub(super) fn never_provisioned() -> World {
    unbound(World::new(), "ReadWriteMany")
        .deployment("web", &json!({}))
        .with(but(
            pod("web", "new", None, "Pending"),
            &unschedulable(
                "0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims.",
            ),
        ))
        .with(of_claim(
            "ProvisioningFailed",
            "Warning",
            "failed to provision volume with StorageClass \"fast\": rpc error: code = InvalidArgument desc = volume capability is not supported",
        ))
}

/// A template names its node, and the class binds late.
pub(super) fn node_named() -> World {
    let late = json!({"volumeBindingMode": "WaitForFirstConsumer"});
    let world = unbound(World::new(), "ReadWriteOnce");
    with(world, "StorageClass", "fast", &late)
        .deployment("web", &json!({"template": {"spec": {"nodeName": "n2"}}}))
        .with(pod("web", "new", Some("n2"), "Pending"))
}

/// A pod that has the volume, and another of the same template that waits on the other node.
pub(super) fn two_pods(world: World) -> World {
    world
        .with(pod("web", "a", Some("n1"), "Running"))
        .with(but(
            pod("web", "a", Some("n2"), "Pending"),
            &json!({"metadata": {"name": "web-a-y"}}),
        ))
        .with(attachment("n1", true))
}

/// The attachment to the second node, which the driver refuses.
pub(super) fn refused_attachment(message: &str) -> Value {
    let status = json!({"status": {"attachError": {"message": message}}});
    but(attachment("n2", false), &status)
}

/// Two replicas on two nodes of a volume that says ReadWriteMany.
pub(super) fn mislabelled() -> World {
    let world = World::new()
        .without("PersistentVolumeClaim", "data")
        .without("PersistentVolume", "pv-data")
        .claim("data", "ReadWriteMany")
        .deployment("web", &json!({"replicas": 2}));
    two_pods(world).with(refused_attachment(
        "rpc error: code = Internal desc = VolumeInUse: vol-1 is already attached to an instance",
    ))
}

/// Two claims of one disk, each with a pod, and no Events any more.
pub(super) fn one_disk() -> World {
    let handle = json!({"spec": {"csi": {"volumeHandle": "vol-1"}}});
    let bound = json!({"spec": {"claimRef": {"namespace": "shop", "name": "archive"}}});
    let old = json!({"metadata": {"creationTimestamp": "2026-03-01T09:00:00Z"}});
    let world = World::new()
        .claim("archive", "ReadWriteOnce")
        .with(but(
            pod("archive", "a", Some("n1"), "Running"),
            &json!({"spec": {"volumes": [
                {"name": "v", "persistentVolumeClaim": {"claimName": "archive"}}]}}),
        ))
        .with(but(pod("web", "a", Some("n2"), "Pending"), &old))
        .with(but(
            attachment("n1", true),
            &json!({"spec": {"source": {"persistentVolumeName": "pv-archive"}}}),
        ));
    let world = with(world, "PersistentVolume", "pv-data", &handle);
    let world = with(world, "PersistentVolume", "pv-archive", &handle);
    with(world, "PersistentVolume", "pv-archive", &bound)
}

/// A rollout on one node, with a driver that mounts a volume for one pod.
pub(super) fn second_mount() -> World {
    let driver = json!({"spec": {"csi": {"driver": "zfs.csi.openebs.io"}}});
    let world = rollout()
        .without("VolumeAttachment", "csi-n1")
        .without("Pod", "web-new-x")
        .with(
            json!({"kind": "CSIDriver", "apiVersion": "storage.k8s.io/v1",
            "metadata": {"name": "zfs.csi.openebs.io"}, "spec": {"attachRequired": false}}),
        )
        .with(pod("web", "new", Some("n1"), "Pending"))
        .with(but(
            event("web-new-x", "MountVolume.SetUp failed for volume \"pv-data\" : rpc error: code = Internal desc = verifyMount: device already mounted at [/var/lib/kubelet/pods/1/volumes/kubernetes.io~csi/pv-data/mount]"),
            &json!({"reason": "FailedMount"}),
        ));
    let class = json!({"provisioner": "zfs.csi.openebs.io"});
    let world = with(world, "StorageClass", "fast", &class);
    with(world, "PersistentVolume", "pv-data", &driver)
}

/// No node can attach another volume.
pub(super) fn full_nodes() -> World {
    let volumes = [("n1", 3), ("n2", 2)];
    let all = volumes
        .into_iter()
        .flat_map(|(node, count)| (0..count).map(move |number| (node, number)));
    let world = World::new().deployment("web", &json!({})).with(but(
        pod("web", "a", None, "Pending"),
        &unschedulable("0/2 nodes are available: 2 node(s) exceed max volume count."),
    ));
    all.fold(world, |world, (node, number)| {
        world.with(but(
            attachment(node, true),
            &json!({"metadata": {"name": format!("csi-{node}-{number}")},
                "spec": {"source": {"persistentVolumeName": format!("pv-{node}-{number}")}}}),
        ))
    })
}

/// The volume is in another zone than all nodes.
pub(super) fn other_zone() -> World {
    let zone = json!({"spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "topology.kubernetes.io/zone", "operator": "In",
            "values": ["z1"]}]}]}}}});
    let world = World::new().deployment("web", &json!({})).with(but(
        pod("web", "a", None, "Pending"),
        &unschedulable("0/2 nodes are available: 2 node(s) had volume node affinity conflict."),
    ));
    with(world, "PersistentVolume", "pv-data", &zone)
}

/// A Job that must run where Deployment `web` runs, whose node is cordoned.
pub(super) fn follower() -> World {
    let job = json!({"kind": "Job", "apiVersion": "batch/v1",
        "metadata": {"name": "dump", "namespace": "shop"},
        "spec": {"template": beside("web")}});
    let of_job = json!({"metadata": {"name": "dump-q", "labels": {"pod-template-hash": null},
        "ownerReferences": [{"kind": "Job", "name": "dump", "controller": true}]}});
    let world = World::new()
        .deployment("web", &json!({}))
        .with(job)
        .with(pod("web", "a", Some("n1"), "Running"))
        .with(but(
            but(pod("dump", "q", None, "Pending"), &of_job),
            &unschedulable(AFFINITY),
        ))
        .with(attachment("n1", true));
    with(
        world,
        "Node",
        "n1",
        &json!({"spec": {"unschedulable": true}}),
    )
}
