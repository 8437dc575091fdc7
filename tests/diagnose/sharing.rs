//! More pods than the volume can serve, of one workload or of several.

use serde_json::{Value, json};

use crate::stage::{self, Stage, autoscaler, beside_web, deployment, merged, workload};

/// Two pods that avoid each other's nodes, in shorthand.
pub(crate) fn two_apart() -> Value {
    json!({"replicas": 2, "apart_from": {"app": "web"}})
}

pub(crate) fn more_replicas_than_the_volume_can_have(stage: &Stage) {
    for (kind, further) in [
        (
            "Deployment",
            merged(two_apart(), &json!({"strategy": "Recreate"})),
        ),
        ("DaemonSet", json!({})),
        ("Job", two_apart()),
    ] {
        let object = workload(kind, "web", &further);
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

/// While pod 0 waits, the controller removes none of the others.
pub(crate) fn a_stateful_set_whose_first_pod_waits(stage: &Stage) {
    stage.apply(&workload("StatefulSet", "web", &two_apart()));
    stage.until("too-many-replicas");
    let node = stage.node_of("web");
    stage.kubectl(&["cordon", &node]);
    stage.kubectl(&["delete", "pod", "web-0"]);
    stage.until_phase("pod/web-1", "Running");
    stage.uncordon();
    let case = stage.until_case("too-many-replicas", "web-0 to wait", |case| {
        case["waiting"][0]["pod"] == "web-0"
    });
    stage.leads_out(&case);
    stage.until_runs("web");
    let pods = stage.kubectl(&["get", "pods", "-o", "name"]);
    assert_eq!(pods, "pod/web-0\n");
}

pub(crate) fn an_autoscaler_that_asks_for_more(stage: &Stage) {
    let apart = json!({"strategy": "Recreate", "apart_from": {"app": "web"}});
    stage.starts(&deployment("web", &apart));
    stage.apply(&autoscaler(2));
    // The guard would refuse the autoscaler's request, so the test scales.
    stage.kubectl(&["scale", "deployment/web", "--replicas=2"]);
    let case = stage.until("autoscaler");
    stage.leads_out(&case);
    stage.until_runs("web");
}

pub(crate) fn a_claim_that_two_workloads_share(stage: &Stage) {
    for way in 0..3 {
        stage.starts(&deployment("web", &json!({})));
        let node = stage.node_of("web");
        stage.kubectl(&["cordon", &node]);
        stage.apply(&deployment("backup", &json!({})));
        let case = stage.until("shared-claim");
        stage.uncordon();
        let ways = stage::ways_out(&case);
        assert_eq!(ways.len(), 3, "{case:#}");
        stage.run(&ways[way]);
        stage.until_nothing_waits();
        // The first way stops no running pod; after the second, both run.
        let run: &[&str] = [&["web"][..], &["web", "backup"], &["backup"]][way];
        run.iter().for_each(|app| stage.until_runs(app));
        stage.delete(&deployment("web", &json!({})));
        stage.delete(&deployment("backup", &json!({})));
    }
}

/// Affinity to the other workload and a selector for another node would exclude every node.
pub(crate) fn selectors_that_keep_them_apart(stage: &Stage) {
    let on = |node: &str, strategy: &str| merged(stage::on(node), &json!({"strategy": strategy}));
    let [first, second] = [&stage.nodes[0], &stage.nodes[1]];
    stage.starts(&deployment("web", &on(first, "Recreate")));
    for strategy in ["Recreate", "RollingUpdate"] {
        let backup = deployment("backup", &on(second, strategy));
        stage.apply(&backup);
        let case = stage.until("shared-claim");
        stage.run(&stage::ways_out(&case)[1]);
        stage.until_nothing_waits();
        stage.until_runs("backup");
        assert_eq!(stage.node_of("backup"), *first);
        stage.delete(&backup);
    }
    // The state after a user has added only the affinity.
    let beside = merged(on(second, "Recreate"), &beside_web());
    stage.apply(&deployment("backup", &beside));
    let case = stage.until("follower");
    stage.leads_out(&case);
    stage.until_runs("backup");
    assert_eq!(stage.node_of("backup"), *first);
}

/// If the controller does not replace pods itself, the next pod runs beside the other workload.
pub(crate) fn a_claim_that_is_shared_with_what_keeps_its_pods(stage: &Stage) {
    stage.starts(&deployment("web", &json!({})));
    let node = stage.node_of("web");
    let seldom =
        json!({"with": {"spec": {"schedule": "0 0 1 1 *", "concurrencyPolicy": "Forbid"}}});
    let run = |name: &str| stage.kubectl(&["create", "job", "--from=cronjob/backup", name]);
    // Each is first stopped, and then kept beside the other workload.
    for (kind, further, way) in [
        ("StatefulSet", &json!({}), 0),
        ("CronJob", &seldom, 0),
        ("StatefulSet", &json!({}), 1),
        ("CronJob", &seldom, 1),
        ("Job", &json!({}), 0),
    ] {
        let object = workload(kind, "backup", further);
        let is_cron_job = kind == "CronJob";
        stage.kubectl(&["cordon", &node]);
        stage.apply(&object);
        if is_cron_job {
            run(&format!("backup-{way}"));
        }
        let case = stage.until("shared-claim");
        stage.uncordon();
        stage.run(&stage::ways_out(&case)[way]);
        stage.until_nothing_waits();
        if way == 1 {
            if is_cron_job {
                run("backup-again");
            }
            stage.until_runs("backup");
            assert_eq!(stage.node_of("backup"), node);
        }
        if kind == "Job" {
            stage.kubectl(&["scale", "deployment/web", "--replicas=0"]);
            let gone = ["--for=delete", "pod", "-l", "app=web", "--timeout=120s"];
            stage.kubectl(&[&["wait"], &gone[..]].concat());
            stage.run(&stage::in_texts(&case, "\"suspend\":false"));
            stage.until_runs("backup");
        }
        stage.delete(&object);
    }
}
