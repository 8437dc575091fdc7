//! `diagnose` on a real control plane with simulated nodes: each cause as it happens, the
//! cause and the way out as they are printed, and that way out run as it stands.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "in a test, the panic and its message are the report"
)]

#[path = "../harness/mod.rs"]
mod harness;
mod migrate;
mod rights;
mod stage;
mod unscheduled;

use serde_json::{Value, json};
use stage::{Stage, deployment, merged, workload};

/// A rollout of Deployment `web` that must leave its node.
fn roll_out(stage: &Stage, revision: usize) {
    let node = stage.node_of("web");
    stage.kubectl(&["cordon", &node]);
    set_image(stage, revision);
}

fn set_image(stage: &Stage, revision: usize) {
    let image = format!("app=example.com/app:{revision}");
    stage.kubectl(&["set", "image", "deployment/web", &image]);
}

/// Waits until a pod of that revision waits, and no other.
fn until_waits(stage: &Stage, revision: usize) {
    let image = format!("example.com/app:{revision}");
    let path = "jsonpath={.items[*].spec.containers[0].image}";
    let pending = [
        "get",
        "pods",
        "--field-selector=status.phase=Pending",
        "-o",
        path,
    ];
    harness::wait_until("the next revision to wait", stage::PATIENCE, || {
        let images = stage.kubectl(&pending);
        (images == image).then_some(()).ok_or(images)
    })
    .unwrap();
}

/// What the Deployment asks for.
fn image(stage: &Stage) -> String {
    let path = "jsonpath={.spec.template.spec.containers[0].image}";
    stage.kubectl(&["get", "deployment/web", "-o", path])
}

/// Each way out of a rollout that cannot end, one after the other.
fn each_way_out(stage: &Stage, cause: &str, stick: impl Fn(usize), heal: impl Fn(usize)) {
    for way in 0..3 {
        stick(way);
        let case = stage.until(cause);
        let ways = stage::ways_out(&case);
        assert_eq!(ways.len(), 3, "{case:#}");
        for before in stage::commands(&case, "before") {
            stage.run(&before);
        }
        stage.run(&ways[way]);
        stage.until_nothing_waits();
        stage.kubectl(&["rollout", "status", "deployment/web", "--timeout=120s"]);
        heal(way);
    }
}

/// Two rollouts get stuck, one after the other, and the second is paused.
#[test]
fn a_rollout_that_overlaps() {
    let Some(stage) = Stage::new("overlap") else {
        return;
    };
    let web = deployment("web", &json!({}));
    stage.apply(&web);
    stage.until_runs("web");
    each_way_out(
        &stage,
        "rollout-overlap",
        |way| {
            roll_out(&stage, 10 * way + 2);
            stage.until("rollout-overlap");
            set_image(&stage, 10 * way + 3);
            until_waits(&stage, 10 * way + 3);
            stage.kubectl(&["rollout", "pause", "deployment/web"]);
        },
        |way| {
            let expected = [1, 13, 23][way];
            assert_eq!(image(&stage), format!("example.com/app:{expected}"));
            stage.uncordon();
            // The way out is undone, for the next one.
            let strategy =
                r#"[{"op":"replace","path":"/spec/strategy","value":{"type":"RollingUpdate"}}]"#;
            stage.kubectl(&["patch", "deployment/web", "--type=json", "-p", strategy]);
        },
    );
}

/// Of such a volume no second pod gets as far as a node: the scheduler turns it away.
#[test]
fn a_rollout_of_a_volume_for_one_pod() {
    let Some(stage) = Stage::with_mode("alone", "ReadWriteOncePod") else {
        return;
    };
    stage.apply(&deployment("web", &json!({})));
    stage.until_runs("web");
    stage.kubectl(&["set", "image", "deployment/web", "app=example.com/app:2"]);
    let case = stage.until("rollout-overlap");
    let waiting = &case["waiting"][0];
    assert!(waiting["node"].is_null(), "{case:#}");
    assert!(
        waiting["message"]
            .as_str()
            .is_some_and(|message| message.contains("ReadWriteOncePod")),
        "{case:#}"
    );
    stage.run(&stage::ways_out(&case)[1]);
    stage.until_nothing_waits();
    stage.kubectl(&["rollout", "status", "deployment/web", "--timeout=120s"]);
}

#[test]
fn an_update_that_moves_the_pod() {
    let Some(stage) = Stage::new("moved") else {
        return;
    };
    let on = |node: &str| {
        let selector = json!({"spec": {"template": {"spec": {
            "nodeSelector": {"kubernetes.io/hostname": node}}}}});
        deployment("web", &selector)
    };
    stage.apply(&on(&stage.nodes[0]));
    stage.until_runs("web");
    each_way_out(
        &stage,
        "moved-pin",
        |_| {
            let elsewhere = stage.other_node(&stage.node_of("web"));
            stage.apply(&on(&elsewhere));
        },
        |_| {
            let strategy =
                r#"[{"op":"replace","path":"/spec/strategy","value":{"type":"RollingUpdate"}}]"#;
            stage.kubectl(&["patch", "deployment/web", "--type=json", "-p", strategy]);
        },
    );
}

/// Pods of one workload that keep off each other's nodes.
fn apart() -> Value {
    json!({"spec": {"template": {"spec": {"affinity": {"podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [{
            "labelSelector": {"matchLabels": {"app": "web"}},
            "topologyKey": "kubernetes.io/hostname",
        }],
    }}}}}})
}

#[test]
fn more_replicas_than_the_volume_can_have() {
    let Some(stage) = Stage::new("replicas") else {
        return;
    };
    let recreate = json!({"spec": {"replicas": 2, "strategy": {"type": "Recreate"}}});
    let kinds = [
        merged(deployment("web", &recreate), &apart()),
        workload("apps/v1", "DaemonSet", "web", &json!({})),
        merged(
            workload(
                "batch/v1",
                "Job",
                "web",
                &json!({"spec": {"parallelism": 2}}),
            ),
            &apart(),
        ),
    ];
    for object in kinds {
        stage.apply(&object);
        let case = stage.until("too-many-replicas");
        let ways = stage::ways_out(&case);
        assert_eq!(ways.len(), 1, "{case:#}");
        stage.run(&ways[0]);
        stage.until_nothing_waits();
        stage.until_runs("web");
        stage.delete(&object);
    }
}

/// As long as pod 0 waits, the controller gives up none of the others.
#[test]
fn a_stateful_set_whose_first_pod_waits() {
    let Some(stage) = Stage::new("ordinals") else {
        return;
    };
    let two = json!({"spec": {"replicas": 2, "serviceName": "web"}});
    stage.apply(&merged(
        workload("apps/v1", "StatefulSet", "web", &two),
        &apart(),
    ));
    stage.until("too-many-replicas");
    let node = stage.node_of("web");
    stage.kubectl(&["cordon", &node]);
    stage.kubectl(&["delete", "pod", "web-0"]);
    let running = "--for=jsonpath={.status.phase}=Running";
    stage.kubectl(&["wait", running, "--timeout=120s", "pod/web-1"]);
    stage.uncordon();
    let case = harness::wait_until("web-0 to wait", stage::PATIENCE, || {
        let case = stage.until("too-many-replicas");
        match case["waiting"][0]["pod"] == "web-0" {
            true => Ok(case),
            false => Err(format!("{case:#}")),
        }
    })
    .unwrap();
    stage.run(&stage::ways_out(&case)[0]);
    stage.until_nothing_waits();
    stage.until_runs("web");
    let pods = stage.kubectl(&["get", "pods", "-o", "name"]);
    assert_eq!(pods, "pod/web-0\n");
}

#[test]
fn an_autoscaler_that_asks_for_more() {
    let Some(stage) = Stage::new("autoscaler") else {
        return;
    };
    let recreate = json!({"spec": {"strategy": {"type": "Recreate"}}});
    stage.apply(&merged(deployment("web", &recreate), &apart()));
    stage.until_runs("web");
    stage.apply(&json!({
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web"},
        "spec": {
            "minReplicas": 2,
            "maxReplicas": 3,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        },
    }));
    let case = stage.until("autoscaler");
    stage.run(&stage::ways_out(&case)[0]);
    stage.until_nothing_waits();
    stage.until_runs("web");
}

#[test]
fn a_claim_that_two_workloads_share() {
    let Some(stage) = Stage::new("shared") else {
        return;
    };
    for way in 0..3 {
        stage.apply(&deployment("web", &json!({})));
        stage.until_runs("web");
        let node = stage.node_of("web");
        stage.kubectl(&["cordon", &node]);
        stage.apply(&deployment("backup", &json!({})));
        let case = stage.until("shared-claim");
        stage.uncordon();
        let ways = stage::ways_out(&case);
        assert_eq!(ways.len(), 3, "{case:#}");
        stage.run(&ways[way]);
        stage.until_nothing_waits();
        // Nothing that runs is stopped by the first, both run after the second.
        let run: &[&str] = [&["web"][..], &["web", "backup"], &["backup"]][way];
        run.iter().for_each(|app| stage.until_runs(app));
        stage.delete(&deployment("web", &json!({})));
        stage.delete(&deployment("backup", &json!({})));
    }
}

/// Of what its controller does not replace by itself, the next pod runs beside the other.
#[test]
fn a_claim_that_is_shared_with_what_keeps_its_pods() {
    let Some(stage) = Stage::new("kept") else {
        return;
    };
    stage.apply(&deployment("web", &json!({})));
    stage.until_runs("web");
    let node = stage.node_of("web");
    let one = json!({"spec": {"replicas": 1, "serviceName": "backup"}});
    let set = workload("apps/v1", "StatefulSet", "backup", &one);
    let job = workload("batch/v1", "Job", "backup", &json!({}));
    let cron_job = json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "backup"},
        "spec": {"schedule": "0 0 1 1 *", "concurrencyPolicy": "Forbid",
            "jobTemplate": {"spec": job["spec"]}}});
    let run = |name: &str| stage.kubectl(&["create", "job", "--from=cronjob/backup", name]);
    for object in [set, cron_job] {
        let is_cron_job = object["kind"] == "CronJob";
        stage.kubectl(&["cordon", &node]);
        stage.apply(&object);
        if is_cron_job {
            run("backup-1");
        }
        let case = stage.until("shared-claim");
        stage.uncordon();
        stage.run(&stage::ways_out(&case)[1]);
        stage.until_nothing_waits();
        if is_cron_job {
            run("backup-2");
        }
        stage.until_runs("backup");
        assert_eq!(stage.node_of("backup"), node);
        stage.delete(&object);
    }
}

#[test]
fn a_drain_that_the_scheduler_does_not_notice() {
    let Some(stage) = Stage::alone("drain") else {
        return;
    };
    let beside_itself = json!({"spec": {
        "strategy": {"type": "Recreate"},
        "template": {"spec": {"affinity": {"podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [{
                "labelSelector": {"matchLabels": {"app": "web"}},
                "topologyKey": "kubernetes.io/hostname",
            }],
        }}}},
    }});
    stage.apply(&deployment("web", &beside_itself));
    stage.until_runs("web");
    let node = stage.node_of("web");
    stage.kubectl(&["cordon", &node]);
    stage.kubectl(&["delete", "pod", "-l", "app=web", "--wait=false"]);
    let case = stage.until("drain-with-co-location");
    stage.run(&stage::ways_out(&case)[0]);
    stage.until_nothing_waits();
    stage.until_runs("web");
    stage.uncordon();
}

#[test]
fn a_node_that_is_lost() {
    let set = json!({"spec": {"replicas": 1, "serviceName": "web"}});
    // A StatefulSet makes no second pod of the same name, so that nothing is Pending there.
    for object in [
        deployment("web", &json!({})),
        workload("apps/v1", "StatefulSet", "web", &set),
    ] {
        let Some(stage) = Stage::new("lost") else {
            return;
        };
        stage.apply(&object);
        stage.until_runs("web");
        let replicas = ["a", "b"].map(|name| stage.advisor(name));
        let node = stage.node_of("web");
        stage.world.nodes.die(&node);
        let case = stage.until("node-lost");
        let nodes = case["nodes"].as_array().unwrap();
        assert!(
            nodes
                .iter()
                .any(|it| it["name"] == *node && it["health"] == "lost"),
            "{case:#}"
        );
        stage.run(&stage::commands(&case, "check")[0]);
        let way_out = &stage::ways_out(&case)[0];
        let pod = case["waiting"][0]["pod"].as_str().unwrap();
        for guard in &replicas {
            stage.until_advised(guard, &node, pod, way_out);
        }
        stage.run(way_out);
        stage.until_nothing_waits();
        stage.until_runs("web");
        for guard in &replicas {
            stage.until_not_advised(guard, &node);
        }
        stage.world.nodes.revive(&node);
        stage.run(&stage::commands(&case, "afterwards")[0]);
    }
}

/// Kubernetes lets the volume go by itself, but minutes later (S13f plays it to the end).
#[test]
fn a_lost_node_whose_object_is_deleted() {
    let Some(stage) = Stage::new("gone") else {
        return;
    };
    stage.apply(&deployment("web", &json!({})));
    stage.until_runs("web");
    let node = stage.node_of("web");
    stage.world.nodes.die(&node);
    stage.until("node-lost");
    stage.kubectl(&["delete", "node", &node]);
    let case = harness::wait_until("the node to be gone", stage::PATIENCE, || {
        let case = stage.until("node-lost");
        let nodes = case["nodes"].as_array().unwrap();
        let is_gone = |it: &Value| it["name"] == *node && it["health"] == "gone";
        match nodes.iter().any(is_gone) {
            true => Ok(case),
            false => Err(format!("{case:#}")),
        }
    })
    .unwrap();
    let because = case["because"].as_str().unwrap();
    assert!(
        because.contains("there is no such Node any more"),
        "{because}"
    );
    assert!(
        stage::ways_out(&case)
            .iter()
            .all(|way| !way.contains("taint")),
        "{case:#}"
    );
}

#[test]
fn a_driver_that_cannot_detach() {
    let Some(stage) = Stage::new("driver") else {
        return;
    };
    let recreate = json!({"spec": {"strategy": {"type": "Recreate"}}});
    stage.apply(&deployment("web", &recreate));
    stage.until_runs("web");
    stage
        .world
        .nodes
        .refuse_detach(&stage.volume, "the disk is busy");
    roll_out(&stage, 2);
    let case = stage.until("driver-error");
    assert!(
        case["because"]
            .as_str()
            .unwrap()
            .contains("\"the disk is busy\""),
        "{case:#}"
    );
    stage.run(&stage::commands(&case, "check")[0]);
    stage.world.nodes.allow_detach(&stage.volume);
    stage.run(&stage::ways_out(&case)[0]);
    stage.until_nothing_waits();
    stage.uncordon();
}

#[test]
fn a_volume_on_its_way() {
    let Some(stage) = Stage::new("delay") else {
        return;
    };
    let slow = json!({"spec": {
        "strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
        "template": {"spec": {"terminationGracePeriodSeconds": 20}},
    }});
    stage.apply(&deployment("web", &slow));
    stage.until_runs("web");
    roll_out(&stage, 2);
    let case = stage.until("delay");
    let watch = stage.watch();
    stage.run(&stage::ways_out(&case)[0]);
    stage.until_nothing_waits();
    // It ends by itself, when nothing waits any more.
    let output = watch.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("(delay)"), "{text}");
    assert!(text.ends_with("No pod waits for a volume.\n"), "{text}");
    stage.uncordon();
}
