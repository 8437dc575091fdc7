//! What the ways out depend on besides the cause: who owns the objects that
//! they change, and what their controllers do.

use super::*;
use doctor::diagnosis::{Purpose, SuggestedAction};

/// The steps of the one case.
fn steps(world: &World, cause: &str) -> Vec<SuggestedAction> {
    world.diagnosis(&[cause]).cases.remove(0).steps
}

/// The commands of that purpose, without what every one begins with.
fn commands(steps: &[SuggestedAction], purpose: Purpose) -> Vec<&str> {
    let of_it = steps.iter().filter(|step| step.purpose == purpose);
    of_it
        .filter_map(|step| step.command.as_deref())
        .map(|it| {
            it.trim_start_matches("kubectl ")
                .trim_start_matches("-n shop ")
        })
        .collect()
}

fn says(steps: &[SuggestedAction], sentence: &str) -> bool {
    steps.iter().any(|step| step.text.contains(sentence))
}

fn owned_by(api_version: &str, kind: &str, name: &str) -> Value {
    json!({"metadata": {"ownerReferences": [
        {"apiVersion": api_version, "kind": kind, "name": name, "uid": "1", "controller": true}]}})
}

fn case(cause: &str) -> World {
    let mut every = every_cause().into_iter();
    every.find(|(code, _)| *code == cause).unwrap().1
}

/// `kubectl rollout undo` goes to the revision that runs, and only where nothing is paused.
#[test]
fn a_rollout_is_taken_back_to_the_revision_that_runs() {
    let undo = |world: World| {
        let steps = steps(&world, "rollout-overlap");
        let before = commands(&steps, Purpose::Before).join(" ");
        (commands(&steps, Purpose::WayOut)[0].to_owned(), before)
    };
    let base = || case("rollout-overlap");
    let revised = |revision: Value| {
        let annotations = json!({"deployment.kubernetes.io/revision": revision});
        let further = json!({"metadata": {"annotations": annotations}});
        with(base(), "ReplicaSet", "web-old", &further)
    };
    let looked_up = r#"rollout undo deployment/web --to-revision="$(kubectl -n shop get replicaset/web-old -o 'jsonpath={.metadata.annotations.deployment\.kubernetes\.io/revision}')""#;
    for (world, expected) in [
        (
            revised(json!("7")),
            "rollout undo deployment/web --to-revision=7",
        ),
        (revised(json!("x; y")), looked_up),
        (base().without("ReplicaSet", "web-old"), looked_up),
    ] {
        assert_eq!(undo(world), (expected.to_owned(), String::new()));
    }
    let paused = || {
        let paused = json!({"spec": {"paused": true}});
        with(base(), "Deployment", "web", &paused)
    };
    assert_eq!(undo(paused()).1, "rollout resume deployment/web");
    let delivered = json!({"metadata": {"annotations":
        {"argocd.argoproj.io/tracking-id": "shop:apps/Deployment:shop/web"}}});
    assert_eq!(
        undo(with(paused(), "Deployment", "web", &delivered)).1,
        "-n argocd annotate applications.argoproj.io/shop argocd.argoproj.io/skip-reconcile=true --overwrite rollout resume deployment/web"
    );
}

/// What a delivery would undo comes between suspending and resuming it.
#[test]
fn deliveries_are_suspended_first() {
    let argo = json!({"metadata": {"annotations":
        {"argocd.argoproj.io/tracking-id": "shop:apps/Deployment:shop/web"}}});
    let target = "-n argocd annotate applications.argoproj.io/shop";
    for cause in [
        "rollout-overlap",
        "moved-pin",
        "too-many-replicas",
        "shared-claim",
    ] {
        let steps = steps(&with(case(cause), "Deployment", "web", &argo), cause);
        assert_eq!(
            commands(&steps, Purpose::Before),
            [format!(
                "{target} argocd.argoproj.io/skip-reconcile=true --overwrite"
            )],
            "{cause}"
        );
        assert_eq!(
            commands(&steps, Purpose::Afterwards),
            [format!("{target} argocd.argoproj.io/skip-reconcile-")],
            "{cause}"
        );
        let purposes: Vec<_> = steps.iter().map(|it| it.purpose).collect();
        assert_eq!(purposes[0], Purpose::Before, "{cause}");
    }
    let helm = json!({"metadata": {"annotations": {"meta.helm.sh/release-name": "shop"}}});
    let steps = steps(
        &with(case("rollout-overlap"), "Deployment", "web", &helm),
        "rollout-overlap",
    );
    assert!(commands(&steps, Purpose::Before).is_empty());
    assert!(
        says(&steps, "the Helm release shop: its next upgrade undoes it"),
        "{steps:#?}"
    );
}

/// Under every way out that an operator would undo stands who does.
#[test]
fn operators_are_named() {
    let owner = owned_by("example.com/v1", "Shop", "main");
    for (cause, ways) in [("rollout-overlap", 3), ("too-many-replicas", 1)] {
        let steps = steps(&with(case(cause), "Deployment", "web", &owner), cause);
        let report = steps.iter().filter(|step| {
            step.text
                .contains("Deployment web belongs to Shop main, whose controller may undo this")
        });
        assert_eq!(report.count(), ways, "{steps:#?}");
    }
}

/// KEDA writes its autoscaler back, so that its ScaledObject is changed, and scales from 0 up.
#[test]
fn keda_is_asked_itself() {
    let owner = owned_by("keda.sh/v1alpha1", "ScaledObject", "web");
    let patch = |spec: &str| {
        format!("patch scaledobjects.keda.sh/web --type=merge -p '{{\"spec\":{{{spec}}}}}'")
    };
    for (fewest, spec) in [
        (Value::Null, r#""maxReplicaCount":1"#),
        (json!(1), r#""maxReplicaCount":1"#),
        (json!(2), r#""minReplicaCount":1,"maxReplicaCount":1"#),
    ] {
        let world = with(case("autoscaler"), "HorizontalPodAutoscaler", "web", &owner);
        let fewest = json!({"spec": {"minReplicas": fewest}});
        let world = with(world, "HorizontalPodAutoscaler", "web", &fewest);
        let steps = steps(&world, "autoscaler");
        assert_eq!(commands(&steps, Purpose::WayOut), [patch(spec)]);
    }
    let scaled = but(
        json!({"kind": "HorizontalPodAutoscaler", "apiVersion": "autoscaling/v2",
            "metadata": {"name": "keda-hpa-web", "namespace": "shop"},
            "spec": {"maxReplicas": 1, "scaleTargetRef":
                {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}}),
        &owner,
    );
    let steps = steps(&case("shared-claim").with(scaled), "shared-claim");
    assert_eq!(
        commands(&steps, Purpose::WayOut)[2],
        "annotate scaledobjects.keda.sh/web autoscaling.keda.sh/paused-replicas=0 --overwrite"
    );
    assert!(
        says(
            &steps,
            "`kubectl -n shop annotate scaledobjects.keda.sh/web autoscaling.keda.sh/paused-replicas-`"
        ),
        "{steps:#?}"
    );
}

/// A pod of a ReplicaSet that is not a Deployment's, and that ReplicaSet.
fn of_replica_set(
    world: World,
    set: &str,
    pod_name: &str,
    node: &str,
    phase: &str,
    owner: &Value,
) -> World {
    let labels = json!({"metadata": {"name": pod_name, "labels": {"pod-template-hash": null},
        "ownerReferences": [{"kind": "ReplicaSet", "name": set, "controller": true}]}});
    let made = but(
        json!({"kind": "ReplicaSet", "apiVersion": "apps/v1",
            "metadata": {"name": set, "namespace": "shop"}, "spec": {"replicas": 1}}),
        owner,
    );
    let world = world.without("ReplicaSet", set).with(made);
    world.with(but(pod("web", "x", Some(node), phase), &labels))
}

/// ReplicaSets of one controller are revisions of one thing, and it is that which is changed.
#[test]
fn what_rolls_out_replica_sets_itself_is_known() {
    let rollout = owned_by("argoproj.io/v1alpha1", "Rollout", "web");
    let two = |owner: &Value| {
        let world = World::new().with(attachment("n1", true));
        let world = of_replica_set(world, "web-old", "web-old-x", "n1", "Running", owner);
        of_replica_set(world, "web-new", "web-new-x", "n2", "Pending", owner)
    };
    let report = two(&rollout).report("rollout-overlap");
    assert!(
        report.contains("The rollout of Rollout web waits for pod web-new-x"),
        "{report}"
    );
    let of_it = steps(&two(&rollout), "rollout-overlap");
    assert_eq!(
        commands(&of_it, Purpose::WayOut),
        [
            r#"patch rollouts.argoproj.io/web --subresource=status --type=merge -p '{"status":{"abort":true}}'"#
        ]
    );
    let other = owned_by("example.com/v1", "Fleet", "web");
    let of_it = steps(&two(&other), "rollout-overlap");
    assert!(commands(&of_it, Purpose::WayOut).is_empty(), "{of_it:#?}");
    assert!(
        says(
            &of_it,
            "at Fleet web: its controller may undo a change to ReplicaSet web-new by hand"
        ),
        "{of_it:#?}"
    );
    // The same where the template moved.
    let moved = json!({"spec": {"template": {"spec": {
        "nodeSelector": {"kubernetes.io/hostname": "n2"}}}}});
    let report = with(two(&rollout), "ReplicaSet", "web-new", &moved).report("moved-pin");
    assert!(
        report.contains("The template of Rollout web no longer lets its pods on node n1"),
        "{report}"
    );
    // More pods of one revision.
    let world = of_replica_set(
        two(&rollout).without("Pod", "web-old-x"),
        "web-new",
        "web-new-y",
        "n1",
        "Running",
        &rollout,
    );
    assert_eq!(
        commands(&steps(&world, "too-many-replicas"), Purpose::WayOut),
        ["scale rollouts.argoproj.io/web --replicas=1"]
    );
    // Beside another workload.
    let world = World::new()
        .deployment("backup", &json!({}))
        .with(attachment("n1", true));
    let world = of_replica_set(world, "web-old", "web-old-x", "n1", "Running", &rollout).with(pod(
        "backup",
        "b",
        Some("n2"),
        "Pending",
    ));
    let of_it = steps(&world, "shared-claim");
    assert_eq!(
        commands(&of_it, Purpose::WayOut).last(),
        Some(&"scale rollouts.argoproj.io/web --replicas=0")
    );
}

/// A pod of StatefulSet `web`. With no more than its phase it is not ready.
fn of_stateful_set(number: i64, node: &str, state: &str) -> Value {
    let (phase, ready) = match state {
        "Ready" => ("Running", "True"),
        phase => (phase, "False"),
    };
    but(
        pod("web", "x", Some(node), phase),
        &json!({"metadata": {"name": format!("web-{number}"),
            "labels": {"pod-template-hash": null},
            "ownerReferences": [{"kind": "StatefulSet", "name": "web", "controller": true}]},
            "status": {"conditions": [{"type": "Ready", "status": ready}]}}),
    )
}

/// StatefulSet `web` with pods in these states, from its first number on: those that wait
/// are on a node without the volume.
fn stateful_set(first: i64, states: &[&str]) -> World {
    let world = World::new().with(attachment("n1", true)).with(json!({
        "kind": "StatefulSet", "apiVersion": "apps/v1",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"replicas": 3, "ordinals": {"start": first}, "template": {"spec": {"volumes": [
            {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}}}}));
    let pods = (first..).zip(states).map(|(number, state)| {
        let node = if *state == "Pending" { "n2" } else { "n1" };
        of_stateful_set(number, node, state)
    });
    pods.fold(world, World::with)
}

/// A StatefulSet keeps the pod with the lowest number, and may never get to the others.
#[test]
fn the_pods_that_a_stateful_set_does_not_get_to_are_deleted() {
    let autoscaler = json!({"kind": "HorizontalPodAutoscaler", "apiVersion": "autoscaling/v2",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"maxReplicas": 5, "scaleTargetRef":
            {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web"}}});
    let delete = " && kubectl -n shop delete --ignore-not-found";
    for (first, states, deleted, said) in [
        (
            0,
            ["Running", "Pending", "Pending"],
            " pod/web-1 pod/web-2",
            "Pod web-0 is left, as a StatefulSet keeps the pod with the lowest number: the others go.",
        ),
        (
            0,
            ["Ready", "Pending", "Pending"],
            " pod/web-1 pod/web-2",
            ": the others go.",
        ),
        (0, ["Ready", "Ready", "Pending"], "", ": the others go."),
        (
            0,
            ["Pending", "Ready", "Pending"],
            " pod/web-1 pod/web-2",
            "web-1, which runs, stops, and web-0 starts once it is gone",
        ),
        (
            0,
            ["Pending", "Ready", "Ready"],
            " pod/web-1 pod/web-2",
            "all that run stop, and web-0 starts once they are gone",
        ),
        (
            5,
            ["Pending", "Ready", "Pending"],
            " pod/web-6 pod/web-7",
            "web-6, which runs, stops, and web-5 starts once it is gone",
        ),
    ] {
        let world = stateful_set(first, &states);
        let scale = "scale statefulset/web --replicas=1";
        let limit = r#"patch hpa/web --type=merge -p '{"spec":{"minReplicas":1,"maxReplicas":1}}'"#;
        for (world, cause, command) in [
            (stateful_set(first, &states), "too-many-replicas", scale),
            (world.with(autoscaler.clone()), "autoscaler", limit),
        ] {
            let steps = steps(&world, cause);
            let expected = match deleted {
                "" => command.to_owned(),
                pods => format!("{command}{delete}{pods}"),
            };
            assert_eq!(commands(&steps, Purpose::WayOut), [expected], "{states:?}");
            assert!(says(&steps, said), "{steps:#?}");
        }
    }
    // Where all are to go, those that are ready go in their order.
    for (states, deleted) in [
        (["Ready", "Ready", "Ready"], ""),
        (["Ready", "Ready", "Running"], ""),
        (["Running", "Ready", "Running"], " pod/web-0 pod/web-2"),
    ] {
        let world = stateful_set(0, &states).deployment("app", &json!({}));
        let world = world.with(pod("app", "a", Some("n2"), "Pending"));
        let scale = "scale statefulset/web --replicas=0";
        let expected = match deleted {
            "" => scale.to_owned(),
            pods => format!("{scale}{delete}{pods}"),
        };
        let steps = steps(&world, "shared-claim");
        let ways = commands(&steps, Purpose::WayOut);
        assert_eq!(ways.last(), Some(&expected.as_str()), "{states:?}");
    }
}

/// Numbers that no API server lets through end nothing.
#[test]
fn a_stateful_set_may_start_at_any_number() {
    let mut world = stateful_set(0, &["Ready", "Pending"]);
    let start = json!({"spec": {"ordinals": {"start": i64::MAX}}});
    world = with(world, "StatefulSet", "web", &start);
    let steps = steps(&world, "too-many-replicas");
    assert!(
        says(&steps, &format!("Pod web-{} is left", i64::MAX)),
        "{steps:#?}"
    );
}

/// A workload of another kind that waits for what Deployment `web` has.
fn beside_web(kind: &str, api_version: &str, owner: &Value) -> World {
    let made = json!({"kind": kind, "apiVersion": api_version,
        "metadata": {"name": "backup-1", "namespace": "shop"}, "spec": {"template": {"spec": {
            "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}}}});
    let metadata = json!({"metadata": {"name": "backup-1-0", "labels": {"pod-template-hash": null},
        "ownerReferences": [{"kind": kind, "name": "backup-1", "controller": true}]}});
    let version = json!({"template": {"metadata": {"labels": {"helm.sh/chart": "web-1.2.3"}}}});
    let cron_job = json!({"kind": "CronJob", "apiVersion": "batch/v1",
        "metadata": {"name": "backup", "namespace": "shop"},
        "spec": {"jobTemplate": {"spec": made["spec"]}}});
    World::new()
        .deployment("web", &version)
        .with(cron_job)
        .with(but(made, owner))
        .with(pod("web", "a", Some("n1"), "Running"))
        .with(but(pod("backup", "b", Some("n2"), "Pending"), &metadata))
        .with(attachment("n1", true))
}

/// Whatever makes the pods that wait, its next ones are not kept from running.
#[test]
fn what_shares_a_claim_is_stopped_or_led_as_its_kind_allows() {
    let affinity = r#"{"affinity":{"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"labelSelector":{"matchLabels":{"app":"web"}},"topologyKey":"kubernetes.io/hostname"}]}}}"#;
    let last = "scale deployment/web --replicas=0".to_owned();
    let of_cron_job = owned_by("batch/v1", "CronJob", "backup");
    for (kind, api_version, owner, ways) in [
        (
            "Job",
            "batch/v1",
            of_cron_job,
            vec![
                "delete job/backup-1".to_owned(),
                format!(
                    r#"patch cronjob/backup --type=merge -p '{{"spec":{{"jobTemplate":{{"spec":{{"template":{{"spec":{affinity}}}}}}}}}}}' && kubectl -n shop delete job/backup-1"#
                ),
            ],
        ),
        (
            "Job",
            "batch/v1",
            json!({}),
            vec![r#"patch job/backup-1 --type=merge -p '{"spec":{"suspend":true}}'"#.to_owned()],
        ),
        (
            "StatefulSet",
            "apps/v1",
            json!({}),
            vec![
                "scale statefulset/backup-1 --replicas=0".to_owned(),
                format!(
                    r#"patch statefulset/backup-1 --type=merge -p '{{"spec":{{"template":{{"spec":{affinity}}}}}}}' && kubectl -n shop delete pod/backup-1-0"#
                ),
            ],
        ),
    ] {
        let steps = steps(&beside_web(kind, api_version, &owner), "shared-claim");
        let expected: Vec<&str> = ways.iter().chain([&last]).map(String::as_str).collect();
        assert_eq!(
            commands(&steps, Purpose::WayOut),
            expected,
            "{kind} {owner}"
        );
    }
    let bare = steps(&beside_web("Job", "batch/v1", &json!({})), "shared-claim");
    assert!(
        says(
            &bare,
            "It starts again with `kubectl -n shop patch job/backup-1 --type=merge -p '{\"spec\":{\"suspend\":false}}'`, once nobody else has the volume."
        ),
        "{bare:#?}"
    );
}

/// Who delivers a CronJob brings back no Job that was deleted: it is suspended where the
/// CronJob itself is changed.
#[test]
fn a_cron_job_is_delivered_and_not_its_job() {
    let tracked = json!({"metadata": {"annotations":
        {"argocd.argoproj.io/tracking-id": "shop:batch/CronJob:shop/backup"}}});
    let of_cron_job = owned_by("batch/v1", "CronJob", "backup");
    let world = || {
        let world = beside_web("Job", "batch/v1", &of_cron_job);
        with(world, "CronJob", "backup", &tracked)
    };
    let led = steps(&world(), "shared-claim");
    assert!(
        says(
            &led,
            "Application shop of Argo CD delivers CronJob backup and"
        ),
        "{led:#?}"
    );
    // Nothing is led to pods whose selector could not be read.
    let only_deleted = steps(&world().without("Deployment", "web"), "shared-claim");
    assert_eq!(
        commands(&only_deleted, Purpose::WayOut),
        ["delete job/backup-1", "scale deployment/web --replicas=0"]
    );
    assert!(
        commands(&only_deleted, Purpose::Before).is_empty(),
        "{only_deleted:#?}"
    );
}

/// Nothing is led to the pods of a Job, which end.
#[test]
fn nothing_is_led_to_what_ends() {
    let world = World::new().deployment("web", &json!({}));
    let job = json!({"kind": "Job", "apiVersion": "batch/v1",
        "metadata": {"name": "backup", "namespace": "shop"},
        "spec": {"selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": "1"}}}});
    let of_job = json!({"metadata": {"labels": {"pod-template-hash": null},
        "ownerReferences": [{"kind": "Job", "name": "backup", "controller": true}]}});
    let world = world
        .with(job)
        .with(but(pod("backup", "b", Some("n1"), "Running"), &of_job))
        .with(pod("web", "a", Some("n2"), "Pending"))
        .with(attachment("n1", true));
    let steps = steps(&world, "shared-claim");
    assert_eq!(
        commands(&steps, Purpose::WayOut),
        [
            "scale deployment/web --replicas=0",
            r#"patch job/backup --type=merge -p '{"spec":{"suspend":true}}'"#
        ]
    );
}
