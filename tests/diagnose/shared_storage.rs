//! The page `docs/migrate.md`: its blocks are run unchanged and in sequence, there and back.

use serde_json::json;

use crate::harness::fake_nodes::{ENDS_AFTER, SHARED_DRIVER};
use crate::harness::shorthand::object;
use crate::stage::{Stage, on, recreated, workload};

const PAGE: &str = include_str!("../../docs/migrate.md");

/// The shell block under the heading with these words.
fn block(title: &str) -> &'static str {
    let mut sections = PAGE.split("\n## ");
    let section = sections.find(|it| it.lines().next().is_some_and(|it| it.contains(title)));
    let section = section.unwrap_or_else(|| panic!("The page has no section {title:?}."));
    let mut blocks = section.split("```sh\n").skip(1);
    let block = blocks.next().and_then(|it| it.split("```").next());
    assert!(blocks.next().is_none(), "{title:?} has two blocks");
    block.unwrap_or_else(|| panic!("{title:?} has no block"))
}

/// A reader's shell with the variables of the page.
struct Reader<'a> {
    stage: &'a Stage,
    variables: String,
}

impl<'a> Reader<'a> {
    /// A reader who sets all variables of the page and moves these workloads.
    fn new(stage: &'a Stage, workloads: &str) -> Self {
        let Stage { namespace, .. } = stage;
        let mut variables = block("Decide first").to_owned();
        for (shown, own) in [
            ("NS=shop", format!("NS={namespace}")),
            ("CLASS=shared", format!("CLASS={namespace}-shared")),
            ("'deployment/web cronjob/backup'", format!("'{workloads}'")),
            ("'[]'", "'[{key: stage, operator: Exists}]'".to_owned()),
        ] {
            assert!(variables.contains(shown), "{shown:?} in {variables}");
            variables = variables.replace(shown, &own);
        }
        Self { stage, variables }
    }

    fn pastes(&self, title: &str) {
        self.enters(block(title));
    }

    fn enters(&self, block: &str) {
        self.stage
            .shell(&format!("set -e\n{}{block}", self.variables));
    }

    /// Runs the block that copies the files, except its logs. Simulated nodes run no containers, so
    /// the test ends the pod, and the pod has no logs.
    fn copies(&self) {
        let copy = block("Copy the files");
        let (copy, logs) = copy.split_once("kubectl -n \"$NS\" logs").unwrap();
        assert_eq!(logs.lines().count(), 1, "{logs}");
        std::thread::scope(|scope| {
            scope.spawn(|| self.enters(copy));
            let pod = pod_of(self.stage, "copy-to-data-rwx");
            end(self.stage, &pod, 1);
        });
    }
}

/// Makes the class of the new claim, with an annotation for its access modes, and the volume that
/// its driver would make.
fn furnish(stage: &Stage) {
    let class = format!("{}-shared", stage.namespace);
    let modes = json!({"multi-attach-guard.dev/access-modes": "ReadWriteOnce,ReadWriteMany"});
    let with = json!({"metadata": {"annotations": modes}, "provisioner": SHARED_DRIVER});
    stage.apply(&object(
        json!({"kind": "StorageClass", "name": class, "with": with}),
    ));
    let shared =
        json!({"spec": {"accessModes": ["ReadWriteMany"], "csi": {"driver": SHARED_DRIVER}}});
    stage.volume("data-rwx", &class, &shared);
}

/// The claim of a workload's pods.
fn claim_of(stage: &Stage, workload: &str) -> String {
    stage.field(workload, "..volumes[0].persistentVolumeClaim.claimName")
}

/// Waits for the pod of a Job; returns the pod's labels.
fn pod_of(stage: &Stage, job: &str) -> String {
    let pod = format!("batch.kubernetes.io/job-name={job}");
    stage.kubectl(&["wait", "--for=create", "pod", "-l", &pod, "--timeout=240s"]);
    pod
}

/// Makes a pod end after this number of seconds.
fn end(stage: &Stage, pod: &str, seconds: u32) {
    let ends = format!("{ENDS_AFTER}={seconds}");
    stage.kubectl(&["annotate", "pod", "-l", pod, &ends]);
}

/// Runs CronJob `backup` once; returns the labels of its running pod.
fn back_up(stage: &Stage, job: &str) -> String {
    stage.kubectl(&["create", "job", job, "--from=cronjob/backup"]);
    let pod = pod_of(stage, job);
    let runs = "--for=jsonpath={.status.phase}=Running";
    stage.kubectl(&["wait", runs, "pod", "-l", &pod, "--timeout=240s"]);
    pod
}

pub(crate) fn there_and_back(stage: &Stage) {
    furnish(stage);
    stage.starts(&recreated("web"));
    let job = json!({"spec": {"backoffLimit": 0}});
    let never = json!({"with": {"spec": {"schedule": "0 0 30 2 *", "jobTemplate": job}}});
    stage.apply(&workload("CronJob", "backup", &never));
    let node = stage.node_of("web");
    stage.kubectl(&["cordon", &stage.other_node(&node)]);
    // An evicted pod must not disturb the migration.
    let evicted = back_up(stage, "evicted");
    let name = stage.kubectl(&["get", "pod", "-l", &evicted, "-o", "name"]);
    let failed = r#"{"status":{"phase":"Failed","reason":"Evicted"}}"#;
    stage.kubectl(&["patch", name.trim(), "--subresource=status", "-p", failed]);

    let reader = Reader::new(stage, "deployment/web cronjob/backup");
    reader.pastes("1. Keep the old volume");
    reader.pastes("2. Make the new claim");
    let begun = back_up(stage, "begun");
    end(stage, &begun, 10);
    reader.pastes("3. Stop");
    let left = stage.field("pod", ".items[*].status.phase");
    let mut left: Vec<&str> = left.split(' ').collect();
    left.sort_unstable();
    assert_eq!(left, ["Failed", "Succeeded"]);
    stage.uncordon();
    reader.copies();
    reader.pastes("5. Let the workloads");
    reader.pastes("6. Start");
    stage.until_runs("web");
    for workload in ["deployment/web", "cronjob/backup"] {
        assert_eq!(claim_of(stage, workload), "data-rwx");
    }
    assert_eq!(stage.field("cronjob/backup", ".spec.suspend"), "false");
    let (code, output) = stage.diagnose(&["pvc/data-rwx"]);
    assert_eq!(code, 0, "{output}");

    reader.pastes("3. Stop");
    reader.pastes("Go back");
    reader.pastes("6. Start");
    stage.until_runs("web");
    assert_eq!(claim_of(stage, "deployment/web"), "data");
    let strategy = stage.field("deployment/web", ".spec.strategy.type");
    assert_eq!(strategy, "Recreate");

    for title in ["3. Stop", "5. Let the workloads", "6. Start"] {
        reader.pastes(title);
    }
    stage.until_runs("web");
    std::thread::scope(|scope| {
        scope.spawn(|| reader.pastes("8. Clean up"));
        // The claim is kept while finished pods use it.
        let deleted = "--for=jsonpath={.metadata.deletionTimestamp}";
        stage.kubectl(&["wait", deleted, "pvc/data", "--timeout=240s"]);
        stage.kubectl(&["delete", "pod", "--field-selector=status.phase!=Running"]);
    });
    stage.until_phase(&format!("pv/{}", stage.volume), "Released");
}

/// Kinds whose pods are stopped and started in other ways than those of a Deployment.
pub(crate) fn of_sets(stage: &Stage) {
    let here = on(&stage.nodes[0]);
    for (kind, further) in [
        ("StatefulSet", &json!({})),
        ("DaemonSet", &here),
        ("ReplicaSet", &json!({})),
    ] {
        let object = workload(kind, "web", further);
        furnish(stage);
        stage.starts(&object);
        let target = format!("{}/web", kind.to_lowercase());
        let reader = Reader::new(stage, &target);
        reader.pastes("1. Keep the old volume");
        reader.pastes("2. Make the new claim");
        reader.pastes("3. Stop");
        reader.copies();
        reader.pastes("5. Let the workloads");
        reader.pastes("6. Start");
        stage.until_runs("web");
        assert_eq!(claim_of(stage, &target), "data-rwx");
        for title in ["3. Stop", "Go back", "6. Start"] {
            reader.pastes(title);
        }
        stage.until_runs("web");
        assert_eq!(claim_of(stage, &target), "data");
        stage.delete(&object);
        stage.kubectl(&["delete", "pvc/data-rwx"]);
        stage.kubectl(&["delete", "pv", &format!("{}-data-rwx", stage.namespace)]);
    }
}
