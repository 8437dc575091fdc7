//! Plans from plain facts, and what has none.

use serde::de::DeserializeSeed;
use serde_json::{Value, json};

use super::*;
use crate::printed;
use crate::safe::hostile;
use doctor::diagnosis::{self};
use doctor::migration::{CopyBy, DEFAULT_IMAGE, MigrationBlocked, MigrationInput, Wanted, plan};
use engine::analysis::{self, NodeAssumption};
use engine::model::access_mode::AccessMode;
use engine::model::object::{ObjectKind, ObjectRef};
use engine::model::snapshot_class::SnapshotClass;
use engine::observed::{Observed, Unread};
use engine::snapshot::Snapshot;
use engine::storage::Catalog;

/// A cluster of these objects.
#[derive(Default)]
struct World {
    objects: Vec<Value>,
    snapshot_classes: Option<Vec<Value>>,
    unread: Vec<&'static str>,
}

/// Claim `data` of namespace `shop`, in the class of Longhorn.
fn longhorn() -> World {
    World::default()
        .with(class("longhorn", "driver.longhorn.io", &json!({})))
        .claim("longhorn", "driver.longhorn.io")
}

/// The same on a disk of AWS, beside a class of EFS.
fn ebs() -> World {
    World::default()
        .with(class("gp3", "ebs.csi.aws.com", &json!({"type": "gp3"})))
        .with(class(
            "efs",
            "efs.csi.aws.com",
            &json!({"provisioningMode": "efs-ap"}),
        ))
        .claim("gp3", "ebs.csi.aws.com")
}

fn class(name: &str, driver: &str, parameters: &Value) -> Value {
    json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
        "metadata": {"name": name}, "provisioner": driver, "parameters": parameters})
}

fn workload(kind: &str, name: &str, spec: &Value) -> Value {
    let kind_of = engine::model::workload::WorkloadKind::from_name(kind).unwrap();
    let pods = json!({"metadata": {"labels": {"app": name}}, "spec": {"volumes": [
        {"name": "tmp", "emptyDir": {}},
        {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}});
    let own = match kind {
        "CronJob" => json!({"jobTemplate": {"spec": {"template": pods}}}),
        "Pod" => pods["spec"].clone(),
        _ => json!({"template": pods}),
    };
    let mut object = json!({"apiVersion": kind_of.api_version(), "kind": kind,
        "metadata": {"name": name, "namespace": "shop"}, "spec": own});
    json_patch::merge(&mut object["spec"], spec);
    object
}

fn but(mut object: Value, with: &Value) -> Value {
    json_patch::merge(&mut object, with);
    object
}

impl World {
    fn with(mut self, object: Value) -> Self {
        self.objects.push(object);
        self
    }

    /// Something else merged into the object of that kind.
    fn but(mut self, kind: &str, with: &Value) -> Self {
        let object = self.objects.iter_mut().find(|it| it["kind"] == kind);
        json_patch::merge(object.unwrap(), with);
        self
    }

    fn claim(self, class: &str, driver: &str) -> Self {
        self.with(json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data", "namespace": "shop"},
            "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": class,
                "volumeName": "pv-data", "resources": {"requests": {"storage": "10Gi"}}}}))
            .with(json!({"apiVersion": "v1", "kind": "PersistentVolume",
            "metadata": {"name": "pv-data"},
            "spec": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "10Gi"},
                "csi": {"driver": driver}}}))
    }

    /// Node n1, which has the volume.
    fn on_node(self) -> Self {
        self.with(
            json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"},
            "spec": {"taints": [
                {"key": "team", "value": "shop", "effect": "NoSchedule"},
                {"key": "node.kubernetes.io/memory-pressure", "effect": "NoSchedule"}]},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]}}),
        )
        .with(
            json!({"kind": "VolumeAttachment", "metadata": {"name": "csi-1"},
                "spec": {"nodeName": "n1", "source": {"persistentVolumeName": "pv-data"}},
                "status": {"attached": true}}),
        )
    }

    /// What `then` makes of the plan, or of why there is none.
    fn planned<T>(
        &self,
        wanted: Wanted<'_>,
        then: impl FnOnce(Result<MigrationPlan, MigrationBlocked>) -> T,
    ) -> T {
        let mut cluster = Snapshot::complete();
        let mut observed = Observed::default();
        for resource in &self.unread {
            observed.unread.push(Unread {
                resource: (*resource).into(),
                reason: "forbidden".to_owned(),
            });
        }
        for object in &self.objects {
            let text = |field: &str| object[field].as_str().unwrap_or_default();
            let read = object.clone();
            match text("kind") {
                "Pod" => observed.pods.push(serde_json::from_value(read).unwrap()),
                "Node" => observed.nodes.push(serde_json::from_value(read).unwrap()),
                "VolumeAttachment" => observed
                    .attachments
                    .push(serde_json::from_value(read).unwrap()),
                _ => {}
            }
            if let Some(kind) = ObjectKind::of_manifest(text("apiVersion"), text("kind")) {
                cluster.apply(kind.deserialize(object).unwrap());
            }
        }
        let classes = self.snapshot_classes.as_ref().map(|classes| {
            let classes = classes.iter().cloned();
            let read = classes.map(|it| serde_json::from_value(it).unwrap());
            read.collect::<Vec<SnapshotClass>>()
        });
        let facts = MigrationInput {
            cluster: diagnosis::DiagnosisInput {
                objects: analysis::Facts {
                    view: cluster.view(),
                    catalog: Catalog::embedded().unwrap(),
                    nodes: NodeAssumption::Auto,
                },
                observed: &observed,
                now: "2026-03-01T12:00:00Z".parse().unwrap(),
                kubectl: "kubectl",
            },
            snapshot_classes: classes.as_deref(),
        };
        let document = |(_, reference): &(ObjectKind, ObjectRef)| {
            let mut objects = self.objects.iter();
            let found = objects.find(|it| {
                it["kind"] == reference.kind.as_str()
                    && it["metadata"]["name"] == reference.name.as_str()
            });
            found.cloned()
        };
        then(plan(facts, wanted, |wanted| {
            wanted.iter().map(document).collect()
        }))
    }

    fn plan_text(&self, wanted: Wanted<'_>) -> String {
        self.planned(wanted, |plan| text(&plan.unwrap(), Objects::Inline))
    }

    fn refused(&self, wanted: Wanted<'_>) -> String {
        self.planned(wanted, |plan| plan.unwrap_err().to_string())
    }
}

/// The text without the ends of its lines.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The plan, whose commands are all listed.
fn text(plan: &MigrationPlan, objects: Objects<'_>) -> String {
    let text = unlisted_text(plan, objects);
    let commands = printed::commands(&text);
    printed::assert_listed(commands.iter().map(String::as_str), "migrate");
    text
}

fn unlisted_text(plan: &MigrationPlan, objects: Objects<'_>) -> String {
    let mut out = Vec::new();
    write(plan, objects, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

const WANTED: Wanted<'static> = Wanted {
    namespace: "shop",
    claim: "data",
    mode: AccessMode::ReadWriteMany,
    class: None,
    name: None,
    copy: CopyBy::Job,
    image: DEFAULT_IMAGE,
};

fn by(copy: CopyBy) -> Wanted<'static> {
    Wanted { copy, ..WANTED }
}

#[test]
fn longhorn_in_its_own_class() {
    let world = longhorn().on_node().with(workload(
        "Deployment",
        "web",
        &json!({"replicas": 1, "strategy": {"type": "Recreate"}}),
    ));
    insta::assert_snapshot!("longhorn", world.plan_text(WANTED));
}

#[test]
fn a_disk_of_aws_to_efs_with_all_that_may_be_around_it() {
    let tracked = json!({"metadata": {"annotations":
        {"argocd.argoproj.io/tracking-id": "shop:apps/Deployment:shop/web"}},
        "spec": {"template": {"spec": {"securityContext": {"fsGroup": 2000}}}}});
    let world = ebs()
        .on_node()
        .with(but(
            workload("Deployment", "web", &json!({"replicas": 2})),
            &tracked,
        ))
        .with(workload(
            "CronJob",
            "backup",
            &json!({"schedule": "@daily"}),
        ))
        .with(
            json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"maxReplicas": 5, "scaleTargetRef":
                {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}}),
        );
    insta::assert_snapshot!("ebs-to-efs", world.plan_text(WANTED));
}

/// Names of objects, of their owners and of who manages them.
#[test]
fn nothing_commands_a_terminal_or_a_pipeline() {
    let spoilt = [
        "name",
        "claimName",
        "volumeName",
        "persistentVolumeName",
        "storageClassName",
        "namespace",
        "nodeName",
        "key",
        "value",
        "schedule",
        "argocd.argoproj.io/tracking-id",
        "reason",
    ];
    let web = workload("Deployment", "web", &json!({"replicas": 2}));
    let tracked = json!({"metadata": {"annotations":
        {"argocd.argoproj.io/tracking-id": "shop:apps/Deployment:shop/web"}}});
    let mut world = ebs()
        .on_node()
        .with(but(web, &tracked))
        .with(workload(
            "CronJob",
            "backup",
            &json!({"schedule": "@daily"}),
        ))
        .with(workload("StatefulSet", "db", &json!({"replicas": 1})))
        .with(workload("Pod", "bare", &json!({})));
    for object in &mut world.objects {
        hostile::spoil(object, &spoilt);
    }
    let [namespace, claim] = ["shop", "data"].map(|name| format!("{name}{}", hostile::TEXT));
    let wanted = Wanted {
        namespace: &namespace,
        claim: &claim,
        name: Some("data-rwx"),
        image: hostile::TEXT,
        ..WANTED
    };
    for objects in [Objects::Inline, Objects::Files(hostile::TEXT)] {
        hostile::assert_safe(&world.planned(wanted, |plan| unlisted_text(&plan.unwrap(), objects)));
    }
}

#[test]
fn by_a_snapshot_of_the_same_driver() {
    let world = World {
        snapshot_classes: Some(vec![
            json!({"metadata": {"name": "other"}, "driver": "ebs.csi.aws.com"}),
            json!({"metadata": {"name": "a"}, "driver": "driver.longhorn.io"}),
            json!({"metadata": {"name": "b", "annotations":
                {"snapshot.storage.kubernetes.io/is-default-class": "true"}},
                "driver": "driver.longhorn.io"}),
        ]),
        ..longhorn()
    }
    .with(workload("StatefulSet", "db", &json!({"replicas": 1})));
    insta::assert_snapshot!("snapshot", world.plan_text(by(CopyBy::Snapshot)));
}

#[test]
fn what_is_made_anew_is_not_copied() {
    let world = longhorn().with(workload("DaemonSet", "web", &json!({})));
    insta::assert_snapshot!("nothing", world.plan_text(by(CopyBy::Nothing)));
}

#[test]
fn a_claim_that_nobody_uses_takes_no_standstill() {
    let plan = longhorn().planned(WANTED, Result::unwrap);
    let titles: Vec<&str> = plan.steps.iter().map(|step| step.title.as_str()).collect();
    assert_eq!(
        titles,
        [
            "Keep the old volume, whatever happens to its claim",
            "Make the new claim",
            "Copy the files",
            "Clean up, days later"
        ]
    );
    let report = text(&plan, Objects::Files("way"));
    assert!(report.contains("- Standstill: not at all\n"), "{report}");
    assert!(
        report.contains("kubectl apply -f way/20-copy.yaml\n"),
        "{report}"
    );
}

/// Each kind of user is stopped, given the new claim and started again in its own way.
#[test]
fn every_kind_of_user_has_its_own_commands() {
    let scaled = |name: &str| {
        [
            format!("scale {name} --replicas=0"),
            format!("scale {name} --replicas=1"),
        ]
    };
    let patched = |name: &str, on: &str, off: &str| {
        [
            format!("patch {name} --type=merge -p '{on}'"),
            format!("patch {name} --type=merge -p '{off}'"),
        ]
    };
    let selector = |value: &str| {
        format!(
            r#"{{"spec":{{"template":{{"spec":{{"nodeSelector":{{"stopped-for-migration":{value}}}}}}}}}}}"#
        )
    };
    let cases = [
        ("Deployment", scaled("deployment/web")),
        ("StatefulSet", scaled("statefulset/web")),
        ("ReplicaSet", scaled("replicaset/web")),
        ("ReplicationController", scaled("replicationcontroller/web")),
        (
            "DaemonSet",
            patched("daemonset/web", &selector(r#""true""#), &selector("null")),
        ),
        (
            "CronJob",
            patched(
                "cronjob/web",
                r#"{"spec":{"suspend":true}}"#,
                r#"{"spec":{"suspend":false}}"#,
            ),
        ),
        (
            "Job",
            [
                r#"patch job/web --type=merge -p '{"spec":{"suspend":true}}'"#.to_owned(),
                "Job web cannot be changed: create it again".to_owned(),
            ],
        ),
        (
            "Pod",
            [
                "delete pod/web".to_owned(),
                "Pod web cannot be changed: create it again".to_owned(),
            ],
        ),
    ];
    for (kind, parts) in cases {
        let report = longhorn()
            .with(workload(kind, "web", &json!({})))
            .plan_text(WANTED);
        for part in parts {
            assert!(
                report.contains(&part),
                "{kind}: {part:?} is missing in\n{report}"
            );
        }
        let changes = !matches!(kind, "Job" | "Pod");
        let volumes = match kind {
            "CronJob" => "/spec/jobTemplate/spec/template/spec/volumes/1/",
            _ => "/spec/template/spec/volumes/1/",
        };
        assert_eq!(report.contains(volumes), changes, "{kind}: {report}");
    }
}

/// What an owner's controller would undo is left to the owner.
#[test]
fn an_owner_is_named_in_the_place_of_what_it_manages() {
    let owned_by = |version: &str, kind: &str, name: &str| {
        json!({"metadata": {"ownerReferences": [
            {"apiVersion": version, "kind": kind, "name": name, "controller": true}]}})
    };
    let cases = [
        ("ReplicaSet", "Rollout"),
        ("Deployment", "Grafana"),
        ("StatefulSet", "Prometheus"),
        ("CronJob", "Backup"),
        ("Job", "ScaledJob"),
        ("Pod", "Workflow"),
    ];
    for (kind, by) in cases {
        let owned = but(
            workload(kind, "web-a", &json!({})),
            &owned_by("example.com/v1", by, "web"),
        );
        let version = owned["apiVersion"].as_str().unwrap();
        let mut pod = but(
            workload("Pod", "web-a-x", &json!({})),
            &owned_by(version, kind, "web-a"),
        );
        if kind == "Pod" {
            pod = owned.clone();
        }
        let report = longhorn().with(owned).with(pod).plan_text(WANTED);
        let report = words(&report);
        for part in [
            format!("- Used by: {by} web - Standstill: from step 4 to the end of step 7 "),
            format!("It is not known what writes the manifest of {by} web:"),
            format!("Stop {by} web as its documentation says"),
            format!("Give {by} web claim data-rwx in its own manifest."),
            format!("Start {by} web again."),
            format!("Stop {by} web first, give it claim data again"),
        ] {
            assert!(
                report.contains(&part),
                "{kind}: {part:?} is missing in\n{report}"
            );
        }
        assert!(!report.contains("/web"), "{kind}: {report}");
    }
}

#[test]
fn who_writes_the_manifests_is_suspended_and_resumed() {
    let labelled = |labels: Value| {
        let web = workload("Deployment", "web", &json!({}));
        longhorn().with(but(web, &json!({"metadata": {"labels": labels}})))
    };
    let flux = labelled(json!({"kustomize.toolkit.fluxcd.io/name": "shop",
        "kustomize.toolkit.fluxcd.io/namespace": "flux-system"}));
    let cases = [
        (
            labelled(json!({})),
            vec!["Nothing on these objects says that Argo CD, Flux or Helm manages them."],
        ),
        (
            flux,
            vec![
                r#"kubectl -n flux-system patch kustomizations.kustomize.toolkit.fluxcd.io/shop --type=merge -p '{"spec":{"suspend":true}}'"#,
                r#"kubectl -n flux-system patch kustomizations.kustomize.toolkit.fluxcd.io/shop --type=merge -p '{"spec":{"suspend":false}}'"#,
            ],
        ),
    ];
    for (world, parts) in cases {
        let report = world.plan_text(WANTED);
        for part in parts {
            assert!(report.contains(part), "{part:?} is missing in\n{report}");
        }
    }
}

/// KEDA is paused as long as the workload has to stand still and no longer, there and back,
/// and its ScaledObject is what lets it have more pods.
#[test]
fn keda_is_paused_only_while_all_stands_still() {
    let world = longhorn()
        .with(workload("Deployment", "web", &json!({})))
        .with(
            json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "keda-hpa-web", "namespace": "shop", "ownerReferences": [
                {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "name": "web",
                    "controller": true}]},
            "spec": {"maxReplicas": 1, "scaleTargetRef":
                {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}}),
        );
    let object = "scaledobjects.keda.sh/web";
    let annotate =
        |change: &str| format!("annotate {object} autoscaling.keda.sh/paused-replicas{change}");
    let limit = |most: u8| {
        format!("patch {object} --type=merge -p '{{\"spec\":{{\"maxReplicaCount\":{most}}}}}'")
    };
    let scale = |count: u8| format!("scale deployment/web --replicas={count}");
    let (pause, resume) = (annotate("=0 --overwrite"), annotate("-"));
    let stop = [pause, scale(0)];
    let start = [scale(1), resume];
    let there = [&stop[..], &start, &[limit(3)]].concat();
    let back = [&stop[..], &[limit(1)], &start].concat();
    for (copy, there, back) in [
        (CopyBy::Job, there, back),
        (CopyBy::Nothing, vec![limit(3)], vec![limit(1)]),
    ] {
        let plan = world.planned(by(copy), Result::unwrap);
        let scaling = |steps: &[Step]| {
            let actions = steps.iter().flat_map(|step| &step.actions);
            let commands = actions.filter_map(|action| match action {
                Action::Run(command) => command.strip_prefix("kubectl -n shop "),
                Action::Apply(_) => None,
            });
            let of_it = |it: &&str| it.contains("keda") || it.starts_with("scale ");
            let commands = commands.filter(of_it).map(str::to_owned);
            commands.collect::<Vec<String>>()
        };
        assert_eq!(scaling(&plan.steps), there, "{copy:?}");
        assert_eq!(scaling(&[plan.back]), back, "{copy:?}");
    }
}

/// A CronJob that is suspended already may have a Job that makes another pod.
#[test]
fn the_jobs_of_a_suspended_cron_job_are_waited_for() {
    let suspended = json!({"suspend": true});
    let report = longhorn()
        .with(workload("CronJob", "web", &suspended))
        .plan_text(WANTED);
    assert!(
        report.contains("get cronjob/web -o 'jsonpath={.status.active[*].name}'"),
        "{report}"
    );
}

/// Where something may not be read, the rest is reported, and what stays open.
#[test]
fn what_could_not_be_read_is_said() {
    let world = World {
        unread: vec!["pods", "volumeattachments", "nodes"],
        ..longhorn()
    };
    let report = words(&world.plan_text(WANTED));
    assert!(report.contains("## Not seen"), "{report}");
    assert!(
        report.contains("because the pods could not be read: forbidden."),
        "{report}"
    );
    // No class is known, and one is named: it is taken at the reader's word.
    let blind = World {
        unread: vec!["storageclasses"],
        ..World::default().claim("longhorn", "driver.longhorn.io")
    };
    assert_eq!(
        blind.refused(WANTED),
        "The StorageClasses of the cluster could not be read: forbidden. Name the class of the new claim with --class."
    );
    let wanted = Wanted {
        class: Some("longhorn"),
        ..WANTED
    };
    let report = words(&blind.plan_text(wanted));
    assert!(
        report.contains("not known: the StorageClasses could not be read"),
        "{report}"
    );
    assert!(
        report.contains("Nobody has verified that class longhorn"),
        "{report}"
    );
}

#[test]
fn what_has_no_way_is_refused_with_the_way_out() {
    let named = |class: &'static str| Wanted {
        class: Some(class),
        ..WANTED
    };
    let snapshots = |classes: Vec<Value>, world: World| World {
        snapshot_classes: Some(classes),
        ..world
    };
    let set = json!({"apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": {"name": "db", "namespace": "shop"},
        "spec": {"replicas": 0, "volumeClaimTemplates": [{"metadata": {"name": "data"}}]}});
    let claim = "PersistentVolumeClaim";
    let only_ebs = || {
        World::default()
            .with(class("gp3", "ebs.csi.aws.com", &json!({})))
            .claim("gp3", "ebs.csi.aws.com")
    };
    let cases = [
        ("no class can", only_ebs(), WANTED),
        (
            "no class can for sure",
            only_ebs()
                .with(class("odd", "unheard.example.com", &json!({})))
                .with(class("bucket", "gcsfuse.csi.storage.gke.io", &json!({}))),
            WANTED,
        ),
        ("the class cannot", ebs(), named("gp3")),
        ("no such class", ebs(), named("nfs")),
        ("no such claim", World::default(), WANTED),
        (
            "is it already",
            longhorn().but(claim, &json!({"spec": {"accessModes": ["ReadWriteMany"]}})),
            WANTED,
        ),
        (
            "a raw block device",
            longhorn().but(claim, &json!({"spec": {"volumeMode": "Block"}})),
            WANTED,
        ),
        (
            "a raw block device by snapshot",
            snapshots(vec![], longhorn()).but(claim, &json!({"spec": {"volumeMode": "Block"}})),
            by(CopyBy::Snapshot),
        ),
        (
            "not bound",
            World::default()
                .with(class("longhorn", "driver.longhorn.io", &json!({})))
                .with(json!({"apiVersion": "v1", "kind": claim,
                    "metadata": {"name": "data", "namespace": "shop"},
                    "spec": {"accessModes": ["ReadWriteOnce"]}})),
            WANTED,
        ),
        (
            "being deleted",
            longhorn().but(
                claim,
                &json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}),
            ),
            WANTED,
        ),
        (
            "made by a StatefulSet that has no pods now",
            longhorn()
                .but(claim, &json!({"metadata": {"name": "data-db-3"}}))
                .with(set),
            Wanted {
                claim: "data-db-3",
                ..WANTED
            },
        ),
        (
            "made by an operator",
            longhorn().but(
                claim,
                &json!({"metadata": {"ownerReferences": [{"apiVersion": "postgresql.cnpg.io/v1",
                    "kind": "Cluster", "name": "main", "controller": true}]}}),
            ),
            WANTED,
        ),
        (
            "a snapshot of another driver",
            snapshots(vec![], ebs()),
            Wanted {
                class: Some("efs"),
                ..by(CopyBy::Snapshot)
            },
        ),
        (
            "no snapshots",
            snapshots(vec![], longhorn()),
            by(CopyBy::Snapshot),
        ),
        (
            "the name is taken",
            longhorn().with(json!({"apiVersion": "v1", "kind": claim,
                "metadata": {"name": "data-rwx", "namespace": "shop"}})),
            WANTED,
        ),
        (
            "no name",
            longhorn(),
            Wanted {
                name: Some("Data_RWX"),
                ..WANTED
            },
        ),
        (
            "another mode",
            longhorn(),
            Wanted {
                mode: AccessMode::ReadWriteOncePod,
                ..WANTED
            },
        ),
    ];
    let report: String = cases
        .iter()
        .map(|(case, world, wanted)| format!("{case}\n  {}\n", world.refused(*wanted)))
        .collect();
    insta::assert_snapshot!("refusals", report);
}
