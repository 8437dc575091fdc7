//! `migrate` on a real control plane with simulated nodes: every step run as it is
//! printed, there and back, and everything it prints before the API server and the guard.

use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use crate::delivered::define;
use crate::harness::fake_nodes::{ATTACHING_DRIVER, ENDS_AFTER, SHARED_DRIVER};
use crate::printed::between_backticks;
use crate::stage::{Stage, deployment, merged, stateful_set, workload};

/// A class that says of itself what its volumes can do, for want of a driver that the
/// catalog knows. Its volumes are made by hand.
fn class(name: &str, driver: &str) -> Value {
    json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
        "metadata": {"name": name, "annotations":
            {"multi-attach-guard.dev/access-modes": "ReadWriteOnce,ReadWriteMany"}},
        "provisioner": driver})
}

/// The volume that a driver would make for the new claim.
fn volume(stage: &Stage, class: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "PersistentVolume",
    "metadata": {"name": format!("{}-rwx", stage.namespace)},
    "spec": {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteMany"],
        "storageClassName": class,
        "claimRef": {"namespace": stage.namespace, "name": "data-rwx"},
        "csi": {"driver": SHARED_DRIVER, "volumeHandle": format!("{}-rwx", stage.namespace)},
    }})
}

/// A directory that is not there yet, in a place that goes with the control plane.
fn directory(stage: &Stage, name: &str) -> PathBuf {
    let place = stage.world.plane.write_file(&stage.namespace, "");
    place.with_extension(name)
}

/// The exit code of the program in the namespace of the stage, and all that it printed.
fn guard(stage: &Stage, arguments: &[&str]) -> (i32, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_multi-attach-guard"))
        .args(arguments)
        .env("KUBECONFIG", stage.world.plane.kubeconfig())
        .output()
        .unwrap();
    let both = [output.stdout, output.stderr].concat();
    (
        output.status.code().unwrap(),
        String::from_utf8(both).unwrap(),
    )
}

fn migrate(stage: &Stage, arguments: &[&str]) -> (i32, String) {
    let command = ["migrate", "-n", &stage.namespace];
    guard(stage, &[&command, arguments].concat())
}

/// The commands of the section of a plan whose title has these words.
fn commands(plan: &str, title: &str) -> String {
    let mut sections = plan.split("\n## ");
    let section = sections.find(|it| it.lines().next().is_some_and(|it| it.contains(title)));
    let section = section.unwrap_or_else(|| panic!("{title:?} is missing in\n{plan}"));
    let block = section.split("```sh\n").nth(1).unwrap_or_default();
    block.split("```").next().unwrap_or_default().to_owned()
}

/// Runs the commands of a section as they are printed.
fn follow(stage: &Stage, plan: &str, title: &str) {
    let commands = commands(plan, title);
    stage.run(&format!("set -e\n{commands}"));
    stage.end("it is done");
}

/// The claim that the pods of a Deployment use.
fn claim_of(stage: &Stage, deployment: &str) -> String {
    let path = "jsonpath={.spec.template.spec.volumes[0].persistentVolumeClaim.claimName}";
    stage.kubectl(&["get", deployment, "-o", path])
}

/// The labels of the pod of a Job, which is there.
fn pod_of(stage: &Stage, job: &str) -> String {
    let pod = format!("batch.kubernetes.io/job-name={job}");
    stage.kubectl(&["wait", "--for=create", "pod", "-l", &pod, "--timeout=120s"]);
    pod
}

fn until_is(stage: &Stage, pod: &str, phase: &str) {
    let phase = format!("--for=jsonpath={{.status.phase}}={phase}");
    stage.kubectl(&["wait", &phase, "pod", "-l", pod, "--timeout=120s"]);
}

/// Has a pod end soon: a simulated node runs no containers, so that theirs end when they
/// are requested to, and have no logs.
fn end(stage: &Stage, pod: &str, seconds: u32) {
    let ends = format!("{ENDS_AFTER}={seconds}");
    stage.kubectl(&["annotate", "pod", "-l", pod, &ends]);
}

/// Runs CronJob `backup` once; answers with the labels of the pod, which runs.
fn back_up(stage: &Stage, job: &str) -> String {
    stage.kubectl(&["create", "job", job, "--from=cronjob/backup"]);
    let pod = pod_of(stage, job);
    until_is(stage, &pod, "Running");
    pod
}

/// Runs the copy as it is printed.
fn copy(stage: &Stage, plan: &str) {
    let commands = commands(plan, "Copy the files");
    let (apply, rest) = commands.split_once("kubectl -n").unwrap();
    stage.run(apply);
    let pod = pod_of(stage, "data-rwx-copy");
    end(stage, &pod, 1);
    let (wait, logs) = rest.split_once('\n').unwrap();
    stage.run(&format!("kubectl -n{wait}"));
    stage.end("the files are copied");
    assert!(logs.ends_with(" logs job/data-rwx-copy\n"), "{logs}");
    let node = "jsonpath={.items[0].spec.nodeName}";
    let node = stage.kubectl(&["get", "pod", "-l", &pod, "-o", node]);
    assert!(stage.nodes.contains(&node), "{node}");
}

pub(crate) fn the_way_there_and_back_is_run_as_it_is_printed(stage: &Stage) {
    let shared = format!("{}-shared", stage.namespace);
    stage.apply(&class(&shared, SHARED_DRIVER));
    stage.apply(&volume(stage, &shared));
    let recreate = json!({"spec": {"strategy": {"type": "Recreate"}}});
    stage.apply(&deployment("web", &recreate));
    stage.until_runs("web");
    let never = json!({"spec": {"schedule": "0 0 30 2 *", "jobTemplate": {"spec": {
        "backoffLimit": 0, "template": workload("batch/v1", "Job", "backup", &json!({}))["spec"]["template"]}}}});
    stage.apply(&merged(
        json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "backup"}}),
        &never,
    ));
    stage.apply(&json!({
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web"},
        "spec": {
            "maxReplicas": 1,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        },
    }));
    let node = stage.node_of("web");
    // Finished pods, which stay: one that ended by itself, and one that was evicted.
    stage.kubectl(&["cordon", &stage.other_node(&node)]);
    let ended = back_up(stage, "ended");
    end(stage, &ended, 1);
    until_is(stage, &ended, "Succeeded");
    let evicted = back_up(stage, "evicted");
    let name = stage.kubectl(&["get", "pod", "-l", &evicted, "-o", "name"]);
    let failed = r#"{"status":{"phase":"Failed","reason":"Evicted"}}"#;
    stage.kubectl(&["patch", name.trim(), "--subresource=status", "-p", failed]);

    let out = directory(stage, "way");
    let out = out.to_str().unwrap();
    let (code, plan) = migrate(stage, &["pvc/data", "--class", &shared, "--out", out]);
    assert_eq!(code, 0, "{plan}");
    for part in [
        &*format!("on node {node}"),
        "stated by the policy or the StorageClass",
        "Used by: CronJob backup, Deployment web with HorizontalPodAutoscaler web",
    ] {
        assert!(plan.contains(part), "{part:?} is missing in\n{plan}");
    }

    // The guard has nothing against what is applied, and neither has the API server.
    let (code, output) = guard(stage, &["check", "--cluster", "--fail-on", "deny", out]);
    assert_eq!(code, 0, "{output}");
    stage.kubectl(&["apply", "--dry-run=server", "-f", out]);

    follow(stage, &plan, "Keep the old volume");
    follow(stage, &plan, "Make the new claim");
    let begun = back_up(stage, "begun");
    end(stage, &begun, 10);
    follow(stage, &plan, "Stop what uses the old claim");
    let phases = "jsonpath={.items[*].status.phase}";
    assert_eq!(
        stage.kubectl(&["get", "pod", "-l", &begun, "-o", phases]),
        "Succeeded"
    );
    let left = stage.kubectl(&["get", "pod", "-o", phases]);
    let mut left: Vec<&str> = left.split(' ').collect();
    left.sort_unstable();
    assert_eq!(left, ["Failed", "Succeeded", "Succeeded"]);
    stage.uncordon();
    copy(stage, &plan);
    follow(stage, &plan, "Let the workloads use the new claim");
    follow(stage, &plan, "Start it again");
    follow(stage, &plan, "Check that it worked");
    follow(stage, &plan, "Use what is possible now");
    stage.until_runs("web");
    assert_eq!(claim_of(stage, "deployment/web"), "data-rwx");
    let suspended = stage.kubectl(&["get", "cronjob/backup", "-o", "jsonpath={.spec.suspend}"]);
    assert_eq!(suspended, "false");
    let (code, output) = stage.diagnose(&["pvc/data-rwx"]);
    assert_eq!(code, 0, "{output}");
    // What is there is not written over, and what has been done is not planned again.
    let (code, output) = migrate(
        stage,
        &["data", "--name", "other", "--class", &shared, "--out", out],
    );
    assert_eq!(
        (
            code,
            output.contains("is there already. Nothing was written")
        ),
        (2, true),
        "{output}"
    );
    let (code, output) = migrate(stage, &["data-rwx"]);
    assert_eq!(
        (code, &*output),
        (2, "Claim data-rwx is ReadWriteMany already.\n")
    );

    follow(stage, &plan, "How to go back");
    stage.until_runs("web");
    assert_eq!(claim_of(stage, "deployment/web"), "data");
    let held = "jsonpath={.spec.strategy.type}{.spec.maxReplicas}";
    let held = |object: &str| stage.kubectl(&["get", object, "-o", held]);
    assert_eq!(
        (held("deployment/web"), held("hpa/web")),
        ("Recreate".to_owned(), "1".to_owned())
    );

    follow(stage, &plan, "Stop what uses the old claim");
    follow(stage, &plan, "Let the workloads use the new claim");
    follow(stage, &plan, "Start it again");
    stage.until_runs("web");
    std::thread::scope(|scope| {
        scope.spawn(|| follow(stage, &plan, "Clean up, days later"));
        // The claim is kept for the pods that have finished.
        let deleted = "--for=jsonpath={.metadata.deletionTimestamp}";
        stage.kubectl(&["wait", deleted, "pvc/data", "--timeout=120s"]);
        let gone = "wait --for=delete pvc/data --timeout=5s";
        stage.shell(&format!("! kubectl -n {} {gone}", stage.namespace));
        stage.kubectl(&["delete", "pod", "--field-selector=status.phase!=Running"]);
    });
    let volume = format!("pv/{}", stage.volume);
    let policy = "jsonpath={.status.phase} {.spec.persistentVolumeReclaimPolicy}";
    stage.kubectl(&[
        "wait",
        "--for=jsonpath={.status.phase}=Released",
        "--timeout=60s",
        &volume,
    ]);
    assert_eq!(
        stage.kubectl(&["get", &volume, "-o", policy]),
        "Released Retain"
    );
    let delete = between_backticks(&plan);
    stage.run(delete.iter().find(|it| it.contains("delete pv/")).unwrap());
    stage.kubectl(&["wait", "--for=delete", &volume, "--timeout=60s"]);
    stage.end("the volume is gone");
}

pub(crate) fn a_snapshot_is_taken_where_the_driver_has_a_class_for_it(stage: &Stage) {
    let shared = format!("{}-shared", stage.namespace);
    stage.apply(&class(&shared, ATTACHING_DRIVER));
    let wanted = ["data", "--copy", "snapshot", "--class", &shared];
    let (code, output) = migrate(stage, &wanted);
    assert_eq!(code, 2, "{output}");
    assert!(
        output.starts_with("The cluster has no VolumeSnapshotClass of"),
        "{output}"
    );

    for (kind, plural, scope) in [
        ("VolumeSnapshotClass", "volumesnapshotclasses", "Cluster"),
        ("VolumeSnapshot", "volumesnapshots", "Namespaced"),
    ] {
        define(stage, kind, plural, "snapshot.storage.k8s.io", "v1", scope);
    }
    stage.apply(&json!({"apiVersion": "snapshot.storage.k8s.io/v1",
        "kind": "VolumeSnapshotClass", "metadata": {"name": "by-disk"},
        "driver": ATTACHING_DRIVER, "deletionPolicy": "Delete"}));
    let out = directory(stage, "way");
    let out = out.to_str().unwrap();
    let (code, plan) = migrate(stage, &[&wanted[..], &["--out", out]].concat());
    assert_eq!(code, 0, "{plan}");
    assert!(plan.contains("With VolumeSnapshotClass by-disk"), "{plan}");
    let (code, output) = guard(stage, &["check", "--cluster", "--fail-on", "deny", out]);
    assert_eq!(code, 0, "{output}");
    stage.kubectl(&["apply", "--dry-run=server", "-f", out]);
    // What the snapshot controller would say.
    let snapshot = "volumesnapshots.snapshot.storage.k8s.io/data-rwx-from";
    std::thread::scope(|scope| {
        scope.spawn(|| {
            stage.kubectl(&["wait", "--for=create", snapshot, "--timeout=240s"]);
            let ready = r#"{"status":{"readyToUse":true}}"#;
            let patch = [
                "patch",
                snapshot,
                "--subresource=status",
                "--type=merge",
                "-p",
                ready,
            ];
            stage.kubectl(&patch);
        });
        follow(stage, &plan, "Take a snapshot");
    });
    let clean_up = commands(&plan, "Clean up, days later");
    stage.run(clean_up.lines().next().unwrap());
    stage.kubectl(&["wait", "--for=delete", snapshot, "--timeout=60s"]);
    stage.end("the snapshot is gone");
}

/// Kinds whose pods are stopped and started in other ways than a Deployment's.
pub(crate) fn of_sets(stage: &Stage) {
    let shared = format!("{}-shared", stage.namespace);
    stage.apply(&class(&shared, SHARED_DRIVER));
    stage.apply(&volume(stage, &shared));
    let here = json!({"spec": {"template": {"spec": {
        "nodeSelector": {"kubernetes.io/hostname": stage.nodes[0]}}}}});
    let set = workload("apps/v1", "DaemonSet", "web", &here);
    let one = json!({"spec": {"replicas": 1}});
    let bare = workload("apps/v1", "ReplicaSet", "web", &one);
    let plain = json!({"spec": {"replicas": 1, "selector": {"matchLabels": null, "app": "web"}}});
    let older = workload("v1", "ReplicationController", "web", &plain);
    for object in [stateful_set(), set, bare, older] {
        stage.apply(&object);
        stage.until_runs("web");
        let (code, plan) = migrate(stage, &["data", "--class", &shared]);
        assert_eq!(code, 0, "{plan}");
        follow(stage, &plan, "Keep the old volume");
        follow(stage, &plan, "Make the new claim");
        follow(stage, &plan, "Stop what uses the old claim");
        copy(stage, &plan);
        follow(stage, &plan, "Let the workloads use the new claim");
        follow(stage, &plan, "Start it again");
        follow(stage, &plan, "Check that it worked");
        stage.until_runs("web");
        let target = format!("{}/web", object["kind"].as_str().unwrap().to_lowercase());
        assert_eq!(claim_of(stage, &target), "data-rwx");
        follow(stage, &plan, "How to go back");
        stage.until_runs("web");
        assert_eq!(claim_of(stage, &target), "data");
        stage.delete(&object);
        stage.kubectl(&["delete", "pvc/data-rwx"]);
        let name = format!("pv/{}-rwx", stage.namespace);
        stage.kubectl(&["delete", &name]);
        stage.apply(&volume(stage, &shared));
    }
}

/// What stands in the commands without `--out`, and what is no claim.
pub(crate) fn what_is_printed_can_be_pasted_and_what_is_not_there_is_named(stage: &Stage) {
    let shared = format!("{}-shared", stage.namespace);
    stage.apply(&class(&shared, SHARED_DRIVER));
    let (code, plan) = migrate(stage, &["data", "--class", &shared, "--copy", "none"]);
    assert_eq!(code, 0, "{plan}");
    stage.apply(&volume(stage, &shared));
    follow(stage, &plan, "Make the new claim");
    for (arguments, sentence) in [
        (&["absent"][..], "There is no claim \"absent\" in namespace"),
        (
            &["data", "--class", "absent"],
            "There is no StorageClass \"absent\".",
        ),
        (
            &["data", "--class", &shared],
            "There is already a claim \"data-rwx\".",
        ),
        (
            &["data", "--to", "ReadWriteTwice"],
            "expected ReadWriteMany",
        ),
    ] {
        let (code, output) = migrate(stage, arguments);
        assert_eq!(code, 2, "{output}");
        assert!(output.contains(sentence), "{output}");
    }
}
