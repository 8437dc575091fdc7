//! What people have met, and what decides each of these causes.

use super::every_cause::*;
use super::*;
use doctor::diagnosis::{Purpose, SuggestedAction};

/// The one case, as one line of text.
fn line(world: &World, cause: &str) -> String {
    let report = world.report(cause);
    let words: Vec<&str> = report.split_whitespace().collect();
    words.join(" ")
}

fn assert_says(world: &World, cause: &str, sentences: &[&str]) {
    let report = line(world, cause);
    for sentence in sentences {
        assert!(
            report.contains(sentence),
            "{sentence:?} is not in\n{report}"
        );
    }
}

fn ways(world: &World, cause: &str) -> Vec<String> {
    let steps = world.diagnosis(&[cause]).cases.remove(0).steps;
    let ways = steps.into_iter().filter(|it| it.purpose == Purpose::WayOut);
    ways.filter_map(|it: SuggestedAction| it.command).collect()
}

/// The pod of Deployment `web` that waits, as another that has no node for another reason.
fn instead(world: World, message: &str) -> World {
    let (pods, others): (Vec<_>, Vec<_>) = world
        .objects
        .into_iter()
        .partition(|it| it["kind"] == "Pod" && it["status"]["phase"] == "Pending");
    let pod = but(pods[0].clone(), &unschedulable(message));
    World { objects: others }.with(pod)
}

#[test]
fn a_claim_without_a_volume() {
    assert_says(
        &never_provisioned(),
        "unbound-claim",
        &[
            "1 pod waits for a volume.",
            "desc = volume capability is not supported",
            "Its provisioner (ebs.csi.aws.com) says",
            "The class cannot give what the claim requests.",
        ],
    );
    let silent = || never_provisioned().without_events();
    assert_says(&silent(), "delay", &["its provisioner is making one"]);
    let aged = json!({"metadata": {"creationTimestamp": "2026-03-01T10:00:00Z"}});
    let aged = with(silent(), "Pod", "web-new-x", &aged);
    assert_says(
        &aged,
        "unbound-claim",
        &["No Event says why any more. Its StorageClass is fast."],
    );
    let waiting = of_claim(
        "ExternalProvisioning",
        "Normal",
        "Waiting for a volume to be created either by the external provisioner 'ebs.csi.aws.com' or manually",
    );
    let aged = aged.with(waiting);
    assert_says(
        &aged,
        "unbound-claim",
        &["The provisioner has said nothing yet."],
    );
    // A claim that is not there, one whose volume is gone, and one that goes.
    let no_claim = never_provisioned().without("PersistentVolumeClaim", "data");
    assert_says(
        &no_claim,
        "unbound-claim",
        &["namespace shop has no claim of that name"],
    );
    let named = json!({"spec": {"volumeName": "pv-gone"}});
    let named = with(never_provisioned(), "PersistentVolumeClaim", "data", &named);
    assert_says(
        &named,
        "unbound-claim",
        &["asks for PersistentVolume pv-gone in spec.volumeName, and there is none of that name"],
    );
    let lost = json!({"spec": {"volumeName": "pv-gone"},
        "status": {"accessModes": ["ReadWriteMany"]}});
    let lost = with(never_provisioned(), "PersistentVolumeClaim", "data", &lost);
    assert_says(
        &lost,
        "unbound-claim",
        &["bound to PersistentVolume pv-gone, which does not exist"],
    );
    let ends = json!({"metadata": {"deletionTimestamp": NOW}});
    let ends = with(World::new(), "PersistentVolumeClaim", "data", &ends).with(but(
        pod("web", "a", None, "Pending"),
        &unschedulable("0/2 nodes are available: persistentvolumeclaim \"data\" is being deleted."),
    ));
    assert_says(
        &ends,
        "unbound-claim",
        &["no new pod starts with a claim that is being deleted"],
    );
    // A claim that waits for its pod is not what the pod waits for.
    let late = json!({"volumeBindingMode": "WaitForFirstConsumer"});
    let late = with(silent(), "StorageClass", "fast", &late);
    let late = instead(late, "0/2 nodes are available: 2 Insufficient cpu.");
    assert_says(
        &late,
        "other",
        &["2 Insufficient cpu", "once the scheduler has chosen a node"],
    );
}

#[test]
fn a_pod_that_names_its_node() {
    assert_says(
        &node_named(),
        "node-name-unbound",
        &["the claim never gets a volume"],
    );
    assert_eq!(
        ways(&node_named(), "node-name-unbound"),
        [
            r#"kubectl -n shop patch deployment/web --type=merge -p '{"spec":{"template":{"spec":{"nodeName":null,"nodeSelector":{"kubernetes.io/hostname":"n2"}}}}}'"#
        ]
    );
    // A pod that nobody makes anew is not deleted.
    let bare = node_named().without("Deployment", "web");
    assert!(ways(&bare, "node-name-unbound").is_empty());
    // A bound claim is attached wherever the pod is.
    let bound = node_named()
        .without("PersistentVolumeClaim", "data")
        .claim("data", "ReadWriteOnce");
    assert_says(&bound, "delay", &["yet to be attached"]);
}

#[test]
fn a_volume_that_promises_too_much() {
    assert_says(
        &mislabelled(),
        "mislabelled-volume",
        &[
            "The disk is attached to n1 (pod web-a-x). Its driver cannot attach it twice, whatever the volume's ReadWriteMany says.",
            "n2: attaching",
        ],
    );
    assert!(!line(&mislabelled(), "mislabelled-volume").contains("does not know"));
    assert_eq!(
        ways(&mislabelled(), "mislabelled-volume"),
        ["kubectl -n shop scale deployment/web --replicas=1"]
    );
    // Another fault than that is what the driver says.
    let other = json!({"status": {"attachError": {"message": "no credentials"}}});
    let other = with(mislabelled(), "VolumeAttachment", "csi-n2", &other);
    assert_says(&other, "driver-error", &["\"no credentials\""]);
}

/// A pod with a ReadWriteMany volume waits until it is attached like any other.
#[test]
fn a_volume_for_many_nodes_is_waited_for() {
    let shared = |attachment: Value| {
        let world = mislabelled().without("VolumeAttachment", "csi-n2");
        world.with(attachment)
    };
    let attaching = shared(attachment("n2", false));
    assert_says(&attaching, "delay", &["attaching it to node n2"]);
    let made = json!({"metadata": {"creationTimestamp": "2026-03-01T10:00:00Z"}});
    let attaching = shared(but(attachment("n2", false), &made));
    let aged = with(attaching, "Pod", "web-a-y", &made);
    assert_says(&aged, "stalled", &["to attach the volume to node n2"]);
    // A node that is lost does not keep it from others.
    let lost = with(
        aged,
        "Node",
        "n1",
        &json!({"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]},
        "spec": {"taints": [{"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}]}}),
    );
    assert_says(&lost, "stalled", &["to attach the volume to node n2"]);
}

#[test]
fn one_disk_behind_two_volumes() {
    assert_says(
        &one_disk(),
        "same-disk",
        &[
            "PersistentVolumes pv-data and pv-archive of claim shop/archive are one disk (ebs.csi.aws.com, volumeHandle vol-1), and pod shop/archive-a-x uses it on node n1.",
        ],
    );
    // Two disks are two.
    let two = json!({"spec": {"csi": {"volumeHandle": "vol-2"}}});
    let two = with(one_disk(), "PersistentVolume", "pv-data", &two);
    assert_says(&two, "stalled", &["nothing attaches it"]);
}

#[test]
fn a_second_mount_on_one_node() {
    assert_says(
        &second_mount(),
        "second-mount",
        &[
            "refuses to mount the volume on node n1 for a second pod",
            "pod web-old-x of Deployment web on the same node has it",
            "device already mounted at",
            "claim \"data\" can be mounted for one pod at a time",
        ],
    );
    let ways = ways(&second_mount(), "second-mount");
    assert!(
        ways[0].ends_with("rollout undo deployment/web --to-revision=1"),
        "{ways:?}"
    );
    assert!(ways[1].contains("Recreate"), "{ways:?}");
    // Whatever else the kubelet complains of is a fault of the driver.
    let other =
        json!({"message": "MountVolume.SetUp failed for volume \"pv-data\" : dataset busy"});
    let mut world = second_mount();
    let found = world.objects.iter_mut().find(|it| it["kind"] == "Event");
    json_patch::merge(found.unwrap(), &other);
    assert_says(&world, "driver-error", &["dataset busy"]);
}

#[test]
fn nodes_that_are_full() {
    assert_says(
        &full_nodes(),
        "attach-limit",
        &["Attached are: n1 has 3, n2 has 2."],
    );
    // With the other reason of a node, too.
    let both = instead(
        full_nodes(),
        "0/2 nodes are available: 1 node(s) exceed max volume count, 1 node(s) had volume node affinity conflict.",
    );
    assert_says(&both, "attach-limit", &["n1 has 3"]);
    let other = instead(
        full_nodes(),
        "0/2 nodes are available: 2 Insufficient memory.",
    );
    assert_says(&other, "other", &["2 Insufficient memory"]);
}

#[test]
fn a_volume_where_no_node_takes_the_pod() {
    let place = "only where topology.kubernetes.io/zone is z1, and a volume does not move.";
    assert_says(
        &other_zone(),
        "no-node-for-volume",
        &[place, "The cluster has no node there.", "Add a node there"],
    );
    let newer = instead(
        other_zone(),
        "0/2 nodes are available: 2 node(s) didn't match PersistentVolume's node affinity.",
    );
    assert_says(&newer, "no-node-for-volume", &[place]);
    // One node is there, and is cordoned.
    let there = json!({"metadata": {"labels": {"topology.kubernetes.io/zone": "z1"}},
        "spec": {"unschedulable": true}});
    let there = with(other_zone(), "Node", "n1", &there);
    assert_says(&there, "no-node-for-volume", &["There is node n1"]);
    assert_eq!(ways(&there, "no-node-for-volume"), ["kubectl uncordon n1"]);
    // The template keeps its pods off.
    let moved = json!({"spec": {"template": {"spec": {"nodeSelector": {"pool": "b"}}}}});
    let moved = with(there, "Deployment", "web", &moved);
    assert_says(
        &moved,
        "no-node-for-volume",
        &["Its own template keeps it off"],
    );
    assert_eq!(
        ways(&moved, "no-node-for-volume")[1],
        "kubectl -n shop rollout undo deployment/web"
    );
    let other = instead(other_zone(), "0/2 nodes are available: 2 Insufficient cpu.");
    assert_says(&other, "other", &["2 Insufficient cpu"]);
}

#[test]
fn a_job_beside_a_pod_on_a_cordoned_node() {
    assert_says(
        &follower(),
        "follower",
        &[
            "is cordoned and takes no new pods",
            "Do not scale Deployment web to 0",
        ],
    );
    assert_eq!(
        ways(&follower(), "follower"),
        ["kubectl uncordon n1", "kubectl -n shop delete pod/web-a-x"]
    );
    // A volume that cannot leave the node takes the pod back there.
    let local = json!({"spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In",
            "values": ["n1"]}]}]}}}});
    let local = with(follower(), "PersistentVolume", "pv-data", &local);
    assert_eq!(ways(&local, "follower"), ["kubectl uncordon n1"]);
    // On a node that is full, too, the one it follows stays.
    let full = with(
        follower(),
        "Node",
        "n1",
        &json!({"spec": {"unschedulable": false}}),
    );
    let ways = ways(&full, "follower").join(" ");
    assert!(
        !ways.contains("scale") && !ways.contains("delete"),
        "{ways}"
    );
    // What may be the first of its like needs nobody.
    let alone = json!({"spec": {"template": {"metadata": {"labels": {"app": "web"}}}}});
    let alone = with(follower(), "Job", "dump", &alone);
    assert_says(&alone, "shared-claim", &["pod web-a-x"]);
}

/// Before Kubernetes 1.34 the scheduler had other words for ReadWriteOncePod.
#[test]
fn both_wordings_for_one_pod() {
    for words in [
        "1 node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode, 1 node(s) had untolerated taint(s).",
        "2 node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod.",
    ] {
        let world = rollout()
            .without("PersistentVolumeClaim", "data")
            .without("PersistentVolume", "pv-data")
            .claim("data", "ReadWriteOncePod")
            .without("Pod", "web-new-x")
            .with(but(
                pod("web", "new", None, "Pending"),
                &unschedulable(&format!("0/2 nodes are available: {words}")),
            ));
        assert_says(
            &world,
            "rollout-overlap",
            &["for one pod at a time (ReadWriteOncePod)"],
        );
    }
}

/// Since Kubernetes 1.37 the attach-detach controller has other words.
#[test]
fn both_wordings_of_the_attach_detach_controller() {
    let seen = |words: &str| rollout().with(event("web-new-x", words));
    let words =
        "Waiting for detach for volume \"pv-data\" Volume is already used by pod(s) web-old-x";
    assert_says(&seen(words), "rollout-overlap", &[words]);
    let words = "Waiting for detach for volume \"pv-data\" Volume is already exclusively attached to one node, waiting on detach before it can be attached to another node";
    let gone = seen(words).without("Pod", "web-old-x");
    assert_says(&gone, "delay", &[words]);
    // Where nothing else is known of the volume, these words are enough.
    let unread = seen(words).without("PersistentVolume", "pv-data");
    assert!(unread.report("unbound-claim").contains("pv-data"));
}

/// The claim of a generic ephemeral volume goes with its pod.
#[test]
fn what_would_delete_the_data_is_not_advised() {
    let owner = json!({"metadata": {"ownerReferences": [
        {"apiVersion": "v1", "kind": "Pod", "name": "builder", "uid": "1", "controller": true}]}});
    let bare = |name: &str, node: &str, phase: &str| {
        let bare = json!({"metadata": {"name": name, "labels": {"pod-template-hash": null},
            "ownerReferences": null}});
        but(pod(name, "x", Some(node), phase), &bare)
    };
    let world = World::new()
        .with(bare("builder", "n1", "Running"))
        .with(bare("scan", "n2", "Pending"))
        .with(attachment("n1", true));
    let owned = with(world, "PersistentVolumeClaim", "data", &owner);
    assert_eq!(
        ways(&owned, "shared-claim"),
        ["kubectl -n shop delete pod/scan"]
    );
    assert_says(
        &owned,
        "shared-claim",
        &["when that pod goes, the claim and its data are deleted, and Pod scan gets nothing"],
    );
    let plain = with(
        owned,
        "PersistentVolumeClaim",
        "data",
        &json!({"metadata": {"ownerReferences": null}}),
    );
    assert_eq!(ways(&plain, "shared-claim").len(), 2);
    assert!(plain.report("shared-claim").contains("docs/migrate.md"));
}

/// Where the driver has yet to attach the volume, it is not, and the node is not tainted.
#[test]
fn a_node_that_never_had_the_volume() {
    let lost = json!({"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]},
        "spec": {"taints": [{"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}]}});
    let world = World::new()
        .deployment("web", &json!({"strategy": {"type": "Recreate"}}))
        .with(attachment("n1", false))
        .with(pod("web", "a", Some("n2"), "Pending"));
    let world = with(world, "Node", "n1", &lost);
    let report = world.report("delay");
    assert!(!report.contains("taint node"), "{report}");
    // It has it, and a Lease that looks fresh by the clock of its machine says nothing: the
    // taint does.
    let attached = json!({"status": {"attached": true}});
    let attached = with(world, "VolumeAttachment", "csi-n1", &attached);
    assert_says(&attached, "node-lost", &["kubectl taint node n1", "LOST"]);
}

/// A delay that lasts is none.
#[test]
fn a_delay_ends() {
    let made = |at: &str| json!({"metadata": {"creationTimestamp": at}});
    let world = |at: &str| {
        let waiting = but(pod("web", "a", Some("n2"), "Pending"), &made(at));
        World::new().deployment("web", &json!({})).with(waiting)
    };
    assert_says(
        &world("2026-03-01T11:58:00Z"),
        "delay",
        &["yet to be attached"],
    );
    assert_says(
        &world("2026-03-01T11:50:00Z"),
        "stalled",
        &["nothing attaches it"],
    );
    let here = |at: &str| world(at).with(attachment("n2", true));
    assert_says(
        &here("2026-03-01T11:58:00Z"),
        "delay",
        &["whose kubelet mounts it"],
    );
    assert_says(
        &here("2026-03-01T11:50:00Z"),
        "other",
        &["Kubernetes does not say why"],
    );
    let kubelet = "Unable to attach or mount volumes: unmounted volumes=[v]: timed out waiting for the condition";
    let said = here("2026-03-01T11:50:00Z").with(but(
        event("web-a-x", kubelet),
        &json!({"reason": "FailedMount"}),
    ));
    assert_says(&said, "other", &[kubelet]);
}

/// The attacher says so, not the driver.
#[test]
fn a_node_without_the_driver() {
    let world = World::new()
        .deployment("web", &json!({"strategy": {"type": "Recreate"}}))
        .with(pod("web", "a", Some("n2"), "Pending"))
        .with(refused_attachment(
            "CSINode n2 does not contain driver ebs.csi.aws.com",
        ));
    assert_says(
        &world,
        "driver-error",
        &[
            "Node n2 does not have ebs.csi.aws.com: the node plugin, a pod of the driver's DaemonSet, is not there or does not run.",
            "kubectl cordon n2",
            "Neither credentials nor a quota is the reason.",
        ],
    );
    assert_eq!(
        ways(&world, "driver-error"),
        ["kubectl -n shop delete pod/web-a-x"]
    );
}

/// After a reboot the pod is back where its old attachment is still being deleted.
#[test]
fn an_attachment_of_the_same_node_that_cannot_go() {
    let world = World::new()
        .deployment("web", &json!({"strategy": {"type": "Recreate"}}))
        .with(pod("web", "a", Some("n1"), "Pending"))
        .with(but(
            attachment("n1", true),
            &json!({"metadata": {"deletionTimestamp": "2026-03-01T11:00:00Z"},
                "status": {"detachError": {"message": "context deadline exceeded"}}}),
        ))
        .with(event(
            "web-a-x",
            "AttachVolume.Attach failed for volume \"pv-data\" : volume attachment is being deleted",
        ));
    assert_says(
        &world,
        "driver-error",
        &[
            "The driver could not detach the volume from node n1: \"context deadline exceeded\".",
            "The pod is on that node again, and the volume is attached to it once this old attachment is gone.",
            "Do not remove the finalizer of VolumeAttachment csi-n1 before the console of your storage shows that the disk is attached to no machine.",
        ],
    );
}

/// `spec.volumeName` is a wish until the claim is bound.
#[test]
fn a_claim_that_asks_for_the_volume_of_another() {
    let asking = |namespace: &str, uid: &str| {
        let world = World::new().deployment("web", &json!({})).with(but(
            pod("web", "a", None, "Pending"),
            &unschedulable(
                "0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims.",
            ),
        ));
        let today = json!({"metadata": {"uid": "22222222-2222-4222-8222-222222222222"}});
        let world = with(world, "PersistentVolumeClaim", "data", &today);
        let owner = json!({"spec": {"claimRef":
            {"namespace": namespace, "name": "data", "uid": uid}}});
        with(world, "PersistentVolume", "pv-data", &owner)
    };
    let earlier = asking("shop", "11111111-1111-4111-8111-111111111111");
    assert_says(
        &earlier,
        "unbound-claim",
        &[
            "asks for PersistentVolume pv-data in spec.volumeName, and that volume is still bound to an earlier claim of the same name.",
            "Do not replace the claim by one without spec.volumeName",
        ],
    );
    assert_eq!(
        ways(&earlier, "unbound-claim"),
        [
            r#"kubectl patch pv/pv-data --type=json -p '[{"op":"remove","path":"/spec/claimRef/uid"}]'"#
        ]
    );
    let other = asking("blog", "11111111-1111-4111-8111-111111111111");
    assert_says(
        &other,
        "unbound-claim",
        &["that volume is still bound to claim blog/data."],
    );
    assert!(ways(&other, "unbound-claim").is_empty());
}

/// The controller that binds speaks, not the provisioner.
#[test]
fn a_restore_that_nobody_makes() {
    let copy = json!({"spec": {"dataSource":
        {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "s"}}});
    let aged = json!({"metadata": {"creationTimestamp": "2026-03-01T10:00:00Z"}});
    let world = never_provisioned().without_events().with(of_claim(
        "ExternalProvisioning",
        "Normal",
        "Waiting for a volume to be created either by the external provisioner 'ebs.csi.aws.com' or manually",
    ));
    let world = with(world, "Pod", "web-new-x", &aged);
    assert_says(
        &with(world, "PersistentVolumeClaim", "data", &copy),
        "unbound-claim",
        &[
            "Kubernetes says: \"Waiting for a volume",
            "The provisioner has said nothing yet.",
            "of a VolumeSnapshot that its status.readyToUse is true",
        ],
    );
}

#[test]
fn a_disk_in_a_machine_that_is_gone() {
    let host = json!({"spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In",
            "values": ["old-1"]}]}]}}}});
    let world = with(other_zone(), "PersistentVolume", "pv-data", &host);
    assert_says(
        &world,
        "no-node-for-volume",
        &[
            "The data of volume pv-data is on one machine, where kubernetes.io/hostname is old-1, and the cluster has no such node.",
            "Bring back that very machine: no other node can have this data.",
        ],
    );
}

/// The affinity that is offered leads where the pod may be, or the selector goes with it.
#[test]
fn affinity_and_a_selector_do_not_contradict_each_other() {
    let on = |node: &str| json!({"nodeSelector": {"kubernetes.io/hostname": node}});
    let two = |own: &Value| {
        World::new()
            .deployment("web", &json!({"template": {"spec": on("n1")}}))
            .deployment("backup", &json!({"template": {"spec": own}}))
            .with(pod("web", "a", Some("n1"), "Running"))
            .with(pod("backup", "b", Some("n2"), "Pending"))
            .with(attachment("n1", true))
    };
    let all = ways(&two(&on("n2")), "shared-claim");
    assert!(all[1].contains(r#""nodeSelector":null"#), "{all:?}");
    let pool = json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
        {"nodeSelectorTerms": [{"matchExpressions":
            [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["n2"]}]}]}}}});
    let all = ways(&two(&pool), "shared-claim");
    assert!(all.iter().all(|it| !it.contains("podAffinity")), "{all:?}");

    let mut spec = beside("web")["spec"].clone();
    json_patch::merge(&mut spec, &on("n2"));
    let follower = World::new()
        .deployment("web", &json!({}))
        .deployment("copy", &json!({"template": {"spec": spec}}))
        .with(pod("web", "a", Some("n1"), "Running"))
        .with(but(
            pod("copy", "b", None, "Pending"),
            &unschedulable(AFFINITY),
        ))
        .with(attachment("n1", true));
    assert_says(
        &follower,
        "follower",
        &["its own nodeSelector (kubernetes.io/hostname=n2) keeps it off"],
    );
    assert_eq!(
        ways(&follower, "follower"),
        [
            r#"kubectl -n shop patch deployment/copy --type=merge -p '{"spec":{"template":{"spec":{"nodeSelector":null}}}}'"#
        ]
    );
}
