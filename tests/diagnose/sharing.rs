//! More pods than the volume can have, of one workload or of several.

use serde_json::json;

use crate::harness;
use crate::stage::{self, Stage, apart, autoscaler, beside_web, deployment, merged, workload};

pub(crate) fn more_replicas_than_the_volume_can_have(stage: &Stage) {
    let recreate = json!({"spec": {"replicas": 2, "strategy": {"type": "Recreate"}}});
    let kinds = [
        merged(deployment("web", &recreate), &apart()),
        workload("DaemonSet", "web", &json!({})),
        merged(
            workload("Job", "web", &json!({"spec": {"parallelism": 2}})),
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
pub(crate) fn a_stateful_set_whose_first_pod_waits(stage: &Stage) {
    let two = json!({"spec": {"replicas": 2, "serviceName": "web"}});
    stage.apply(&merged(workload("StatefulSet", "web", &two), &apart()));
    stage.until("too-many-replicas");
    let node = stage.node_of("web");
    stage.kubectl(&["cordon", &node]);
    stage.kubectl(&["delete", "pod", "web-0"]);
    let running = "--for=jsonpath={.status.phase}=Running";
    stage.kubectl(&["wait", running, "--timeout=120s", "pod/web-1"]);
    stage.uncordon();
    let case = harness::until("web-0 to wait", stage::PATIENCE, || {
        let case = stage.until("too-many-replicas");
        if case["waiting"][0]["pod"] == "web-0" {
            Ok(case)
        } else {
            Err(format!("{case:#}"))
        }
    });
    stage.leads_out(&case);
    stage.until_runs("web");
    let pods = stage.kubectl(&["get", "pods", "-o", "name"]);
    assert_eq!(pods, "pod/web-0\n");
}

pub(crate) fn an_autoscaler_that_asks_for_more(stage: &Stage) {
    let recreate = json!({"spec": {"strategy": {"type": "Recreate"}}});
    stage.starts(&merged(deployment("web", &recreate), &apart()));
    stage.apply(&autoscaler(2));
    // The guard would refuse what the autoscaler asks for.
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
        // Nothing that runs is stopped by the first, both run after the second.
        let run: &[&str] = [&["web"][..], &["web", "backup"], &["backup"]][way];
        run.iter().for_each(|app| stage.until_runs(app));
        stage.delete(&deployment("web", &json!({})));
        stage.delete(&deployment("backup", &json!({})));
    }
}

/// Affinity to the other workload and a selector of another node would keep the pod from every node.
pub(crate) fn selectors_that_keep_them_apart(stage: &Stage) {
    let recreate = json!({"spec": {"strategy": {"type": "Recreate"}}});
    let on = |node: &str| merged(stage::on(node), &recreate);
    let [first, second] = [&stage.nodes[0], &stage.nodes[1]];
    stage.starts(&deployment("web", &on(first)));
    let backup = deployment("backup", &on(second));
    let mut rolling = backup.clone();
    rolling["spec"]["strategy"] = json!({"type": "RollingUpdate"});
    for backup in [&backup, &rolling] {
        stage.apply(backup);
        let case = stage.until("shared-claim");
        stage.run(&stage::ways_out(&case)[1]);
        stage.until_nothing_waits();
        stage.until_runs("backup");
        assert_eq!(stage.node_of("backup"), *first);
        stage.delete(backup);
    }
    // As somebody left it who had the affinity alone.
    stage.apply(&merged(backup, &beside_web()));
    let case = stage.until("follower");
    stage.leads_out(&case);
    stage.until_runs("backup");
    assert_eq!(stage.node_of("backup"), *first);
}

/// Of what its controller does not replace by itself, the next pod runs beside the other.
pub(crate) fn a_claim_that_is_shared_with_what_keeps_its_pods(stage: &Stage) {
    stage.starts(&deployment("web", &json!({})));
    let node = stage.node_of("web");
    let one = json!({"spec": {"replicas": 1, "serviceName": "backup"}});
    let set = workload("StatefulSet", "backup", &one);
    let job = workload("Job", "backup", &json!({}));
    let cron_job = json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "backup"},
        "spec": {"schedule": "0 0 1 1 *", "concurrencyPolicy": "Forbid",
            "jobTemplate": {"spec": job["spec"]}}});
    let run = |name: &str| stage.kubectl(&["create", "job", "--from=cronjob/backup", name]);
    for (number, object) in [&set, &cron_job, &set, &cron_job, &job]
        .into_iter()
        .enumerate()
    {
        let is_cron_job = object["kind"] == "CronJob";
        // First each is stopped, then kept beside the other one.
        let way = usize::from((2..4).contains(&number));
        stage.kubectl(&["cordon", &node]);
        stage.apply(object);
        if is_cron_job {
            run(&format!("backup-{number}"));
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
        if object["kind"] == "Job" {
            stage.kubectl(&["scale", "deployment/web", "--replicas=0"]);
            let gone = ["--for=delete", "pod", "-l", "app=web", "--timeout=120s"];
            stage.kubectl(&[&["wait"], &gone[..]].concat());
            stage.run(&stage::in_texts(&case, "\"suspend\":false"));
            stage.until_runs("backup");
        }
        stage.delete(object);
    }
}
