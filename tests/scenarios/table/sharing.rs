//! X1, X11, X13, X14, Y2, Y14, Y27: more pods than one Deployment of one replica.

use serde_json::{Value, json};

use super::*;
use crate::manifests::{Volume, claim_spec};

pub(super) fn scenarios() -> Vec<Scenario> {
    let one = || Volume::new(&[RWO]);
    let api = || Workload::deployment("api");
    vec![
        Scenario::new("X1d", "a DaemonSet")
            .volume(one())
            .apply(&Workload::daemon_set("agent"))
            .ends(&[Stuck]),
        Scenario::new("X1j", "a Job with parallelism 2")
            .volume(one())
            .apply(&Workload::job("import").spec("parallelism", json!(2)))
            .ends(&[Stuck])
            .engine_says(Delay, "the pods of a Job end, and these do not"),
        Scenario::new("X1s", "Recreate, scaled from 1 to 2")
            .volume(one())
            .apply(&web().recreate())
            .then(Action::Kubectl(vec![
                "scale",
                "deployment/web",
                "--replicas=2",
            ]))
            .ends(&[Stuck]),
        Scenario::new("X1t", "two Deployments share a claim")
            .volume(one())
            .apply(&web().recreate())
            .apply(&api().recreate())
            .ends(&[Stuck]),
        Scenario::new("X1r", "two replicas that mount the claim readOnly")
            .volume(one())
            .apply(&web().recreate().replicas(2).read_only())
            .ends(&[Stuck]),
        Scenario::new("X11", "a backup Job with affinity to the app's pods")
            .volume(one())
            .apply(&web().recreate())
            .apply(&Workload::job("backup").near(near_app("web")))
            .ends(&[Nothing]),
        Scenario::new(
            "X11s",
            "two Deployments share a claim, each near itself only",
        )
        .volume(one())
        .apply(&web().near_itself())
        .apply(&api().near_itself())
        .ends(&[Stuck]),
        Scenario::new(
            "X11h",
            "two Deployments share a claim on two different hosts",
        )
        .volume(one())
        .apply(&web().on_node("a"))
        .apply(&api().on_node("b"))
        .ends(&[Stuck]),
        Scenario::new(
            "X11w",
            "two Deployments share a claim, each waits to be near the other",
        )
        .volume(one())
        .apply(&web().recreate().near(near_app("api")))
        .apply(&api().recreate().near(near_app("web")))
        .ends(&[Stuck]),
        Scenario::new(
            "X11b",
            "two Deployments share a claim, one near the other, which is near both",
        )
        .volume(one())
        .apply(&web().near(json!({ "labelSelector": { "matchLabels": { "part-of": "{run}" } } })))
        .apply(&api().near(near_app("web")))
        .roll_out(&NEW_IMAGE)
        .ends(&[Nothing]),
        Scenario::new("X13", "a Job with parallelism 2 and one completion")
            .volume(one())
            .apply(
                &Workload::job("import")
                    .spec("parallelism", json!(2))
                    .spec("completions", json!(1)),
            )
            .ends(&[Nothing]),
        Scenario::new("X14", "a StatefulSet's claim used by another workload")
            .volume(one().claim("data-postgres-0").unclaimed())
            .apply(&postgres())
            .apply(&api().recreate().claim("data-postgres-0"))
            .ends(&[Stuck]),
        Scenario::new("Y2", "the same, the other workload first")
            .volume(one().claim("data-postgres-0").unclaimed())
            .then(Action::ApplyAtOnce(vec![
                api()
                    .recreate()
                    .claim("data-postgres-0")
                    .cpus(MOST_OF_A_NODE)
                    .manifest(),
            ]))
            .apply(&postgres().cpus(MOST_OF_A_NODE))
            .ends(&[Stuck]),
        Scenario::new(
            "Y2c",
            "a StatefulSet's claim used by a CronJob that was there first",
        )
        .volume(one().claim("data-postgres-0").unclaimed())
        .apply(&Workload::cron_job("backup").claim("data-postgres-0"))
        .apply(&postgres())
        .then(Action::Kubectl(vec![
            "create",
            "job",
            "backup-now",
            "--from=cronjob/backup",
        ]))
        .ends(&[Stuck]),
        Scenario::new(
            "Y2o",
            "a claim with the name of an ordinal below the StatefulSet's first",
        )
        .volume(one().claim("data-postgres-0"))
        .volume(one().named("data-postgres-1").unclaimed())
        .apply(&postgres().spec("ordinals", json!({ "start": 1 })))
        .apply(&api().recreate().claim("data-postgres-0"))
        .ends(&[Nothing]),
        Scenario::new("Y14", "a ReplicationController with two replicas")
            .volume(one())
            .apply(&Workload::replication_controller("web").replicas(2))
            .ends(&[Stuck]),
        Scenario::new(
            "Y14p",
            "a pod of a controller that nobody knows, and a Deployment",
        )
        .volume(one())
        .then(Action::Apply(vec![custom_pod()]))
        .apply(&api().recreate())
        .ends(&[Stuck]),
        Scenario::new(
            "Y27",
            "two Deployments share a claim, each with a local volume of its own",
        )
        .volume(one())
        .volume(one().named("first").local().on_node("a"))
        .volume(one().named("second").local().on_node("b"))
        .apply(&web().recreate().also("first"))
        .apply(&api().recreate().also("second"))
        .ends(&[Stuck]),
    ]
}

/// A pod whose controller is of a kind that makes no pods as far as anybody knows.
fn custom_pod() -> Value {
    let mut pod = Workload::bare_pod("db-0").manifest();
    pod["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "name": "default",
        "uid": "{account}",
        "controller": true,
    }]);
    pod
}

/// The pods of a workload.
fn near_app(name: &str) -> Value {
    json!({ "labelSelector": { "matchLabels": { "app": name } } })
}

fn postgres() -> Workload {
    Workload::stateful_set("postgres")
        .pod("volumes", json!([]))
        .spec(
            "volumeClaimTemplates",
            json!([{
                "metadata": { "name": "data" },
                "spec": claim_spec(&[RWO]),
            }]),
        )
}
