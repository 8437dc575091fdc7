//! More pods than the volume can serve, of one workload or of several.

use serde_json::{Value, json};

use crate::incident::{self, Incident, autoscaler, beside_web, deployment, merged, workload};

/// Two pods that avoid each other's nodes, in shorthand.
pub(crate) fn two_apart() -> Value {
    json!({"replicas": 2, "apart_from": {"app": "web"}})
}

pub(crate) fn more_replicas_than_the_volume_can_have(incident: &Incident) {
    for (kind, further) in [
        ("Deployment", merged(two_apart(), &json!({"strategy": "Recreate"}))),
        ("DaemonSet", json!({})),
        ("Job", two_apart()),
    ] {
        let object = workload(kind, "web", &further);
        incident.apply(&object);
        let case = incident.until("too-many-replicas");
        let ways = incident::ways_out(&case);
        assert_eq!(ways.len(), 1, "{case:#}");
        incident.run(&ways[0]);
        incident.until_nothing_waits();
        incident.until_runs("web");
        incident.delete(&object);
    }
}

/// While pod 0 waits, the controller removes none of the others.
pub(crate) fn a_stateful_set_whose_first_pod_waits(incident: &Incident) {
    incident.apply(&workload("StatefulSet", "web", &two_apart()));
    incident.until("too-many-replicas");
    let node = incident.node_of("web");
    incident.kubectl(&["cordon", &node]);
    incident.kubectl(&["delete", "pod", "web-0"]);
    incident.until_phase("pod/web-1", "Running");
    incident.uncordon();
    let case = incident.until_case("too-many-replicas", "web-0 to wait", |case| {
        case["waiting"][0]["pod"] == "web-0"
    });
    incident.leads_out(&case);
    incident.until_runs("web");
    let pods = incident.kubectl(&["get", "pods", "-o", "name"]);
    assert_eq!(pods, "pod/web-0\n");
}

pub(crate) fn an_autoscaler_that_asks_for_more(incident: &Incident) {
    let apart = json!({"strategy": "Recreate", "apart_from": {"app": "web"}});
    incident.starts(&deployment("web", &apart));
    incident.apply(&autoscaler(2));
    // The guard would refuse the autoscaler's request, so the test scales.
    incident.kubectl(&["scale", "deployment/web", "--replicas=2"]);
    let case = incident.until("autoscaler");
    incident.leads_out(&case);
    incident.until_runs("web");
}

pub(crate) fn a_claim_that_two_workloads_share(incident: &Incident) {
    for way in 0..3 {
        incident.starts(&deployment("web", &json!({})));
        let node = incident.node_of("web");
        incident.kubectl(&["cordon", &node]);
        incident.apply(&deployment("backup", &json!({})));
        let case = incident.until("shared-claim");
        incident.uncordon();
        let ways = incident::ways_out(&case);
        assert_eq!(ways.len(), 3, "{case:#}");
        incident.run(&ways[way]);
        incident.until_nothing_waits();
        // The first way stops no running pod; after the second, both run.
        let run: &[&str] = [&["web"][..], &["web", "backup"], &["backup"]][way];
        run.iter().for_each(|app| incident.until_runs(app));
        incident.delete(&deployment("web", &json!({})));
        incident.delete(&deployment("backup", &json!({})));
    }
}

/// Affinity to the other workload and a selector for another node would exclude every node.
pub(crate) fn selectors_that_keep_them_apart(incident: &Incident) {
    let on =
        |node: &str, strategy: &str| merged(incident::on(node), &json!({"strategy": strategy}));
    let [first, second] = [&incident.nodes[0], &incident.nodes[1]];
    incident.starts(&deployment("web", &on(first, "Recreate")));
    for strategy in ["Recreate", "RollingUpdate"] {
        let backup = deployment("backup", &on(second, strategy));
        incident.apply(&backup);
        let case = incident.until("shared-claim");
        incident.run(&incident::ways_out(&case)[1]);
        incident.until_nothing_waits();
        incident.until_runs("backup");
        assert_eq!(incident.node_of("backup"), *first);
        incident.delete(&backup);
    }
    // The state after a user has added only the affinity.
    let beside = merged(on(second, "Recreate"), &beside_web());
    incident.apply(&deployment("backup", &beside));
    let case = incident.until("follower");
    incident.leads_out(&case);
    incident.until_runs("backup");
    assert_eq!(incident.node_of("backup"), *first);
}

/// If the controller does not replace pods itself, the next pod runs beside the other workload.
pub(crate) fn a_claim_that_is_shared_with_what_keeps_its_pods(incident: &Incident) {
    incident.starts(&deployment("web", &json!({})));
    let node = incident.node_of("web");
    let seldom =
        json!({"with": {"spec": {"schedule": "0 0 1 1 *", "concurrencyPolicy": "Forbid"}}});
    let run = |name: &str| incident.kubectl(&["create", "job", "--from=cronjob/backup", name]);
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
        incident.kubectl(&["cordon", &node]);
        incident.apply(&object);
        if is_cron_job {
            run(&format!("backup-{way}"));
        }
        let case = incident.until("shared-claim");
        incident.uncordon();
        incident.run(&incident::ways_out(&case)[way]);
        incident.until_nothing_waits();
        if way == 1 {
            if is_cron_job {
                run("backup-again");
            }
            incident.until_runs("backup");
            assert_eq!(incident.node_of("backup"), node);
        }
        if kind == "Job" {
            incident.kubectl(&["scale", "deployment/web", "--replicas=0"]);
            let gone = ["--for=delete", "pod", "-l", "app=web", "--timeout=120s"];
            incident.kubectl(&[&["wait"], &gone[..]].concat());
            incident.run(&incident::in_texts(&case, "\"suspend\":false"));
            incident.until_runs("backup");
        }
        incident.delete(&object);
    }
}
