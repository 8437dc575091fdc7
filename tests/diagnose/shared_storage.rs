//! The page `docs/migrate.md`: its blocks are run unchanged and in sequence, there and back.

use serde_json::json;

use crate::harness::fake_nodes::{ENDS_AFTER, SHARED_DRIVER};
use crate::harness::shorthand::object;
use crate::incident::{Incident, on, recreated, workload};

const PAGE: &str = include_str!("../../docs/migrate.md");

/// The shell block under the heading with these words.
fn block(title: &str) -> &'static str {
    let section = PAGE
        .split("\n## ")
        .find(|section| section.lines().next().is_some_and(|heading| heading.contains(title)))
        .unwrap_or_else(|| panic!("The page has no section {title:?}."));
    let mut blocks = section.split("```sh\n").skip(1);
    let block = blocks.next().and_then(|block| block.split("```").next());
    assert!(blocks.next().is_none(), "{title:?} has two blocks");
    block.unwrap_or_else(|| panic!("{title:?} has no block"))
}

/// A reader's shell with the variables of the page.
struct Reader<'a> {
    incident: &'a Incident,
    variables: String,
}

impl<'a> Reader<'a> {
    /// A reader who sets all variables of the page and moves these workloads.
    fn new(incident: &'a Incident, workloads: &str) -> Self {
        let Incident { namespace, .. } = incident;
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
        Self { incident, variables }
    }

    fn pastes(&self, title: &str) {
        self.enters(block(title));
    }

    fn enters(&self, block: &str) {
        self.incident.shell(&format!("set -e\n{}{block}", self.variables));
    }

    /// Runs the block that copies the files, except its logs. Simulated nodes run no containers, so
    /// the test ends the pod, and the pod has no logs.
    fn copies(&self) {
        let copy = block("Copy the files");
        let (copy, logs) = copy.split_once("kubectl -n \"$NS\" logs").unwrap();
        assert_eq!(logs.lines().count(), 1, "{logs}");
        std::thread::scope(|scope| {
            scope.spawn(|| self.enters(copy));
            let pod = pod_of(self.incident, "copy-to-data-rwx");
            end(self.incident, &pod, 1);
        });
    }
}

/// Makes the class of the new claim, with an annotation for its access modes, and the volume that
/// its driver would make.
fn furnish(incident: &Incident) {
    let class = format!("{}-shared", incident.namespace);
    let modes = json!({"multi-attach-guard.dev/access-modes": "ReadWriteOnce,ReadWriteMany"});
    let with = json!({"metadata": {"annotations": modes}, "provisioner": SHARED_DRIVER});
    incident.apply(&object(json!({"kind": "StorageClass", "name": class, "with": with})));
    let shared =
        json!({"spec": {"accessModes": ["ReadWriteMany"], "csi": {"driver": SHARED_DRIVER}}});
    incident.volume("data-rwx", &class, &shared);
}

/// The claim of a workload's pods.
fn claim_of(incident: &Incident, workload: &str) -> String {
    incident.field(workload, "..volumes[0].persistentVolumeClaim.claimName")
}

/// Waits for the pod of a Job; returns the pod's labels.
fn pod_of(incident: &Incident, job: &str) -> String {
    let pod = format!("batch.kubernetes.io/job-name={job}");
    incident.kubectl(&["wait", "--for=create", "pod", "-l", &pod, "--timeout=240s"]);
    pod
}

/// Makes a pod end after this number of seconds.
fn end(incident: &Incident, pod: &str, seconds: u32) {
    let ends = format!("{ENDS_AFTER}={seconds}");
    incident.kubectl(&["annotate", "pod", "-l", pod, &ends]);
}

/// Runs CronJob `backup` once; returns the labels of its running pod.
fn back_up(incident: &Incident, job: &str) -> String {
    incident.kubectl(&["create", "job", job, "--from=cronjob/backup"]);
    let pod = pod_of(incident, job);
    let runs = "--for=jsonpath={.status.phase}=Running";
    incident.kubectl(&["wait", runs, "pod", "-l", &pod, "--timeout=240s"]);
    pod
}

pub(crate) fn there_and_back(incident: &Incident) {
    furnish(incident);
    incident.starts(&recreated("web"));
    let job = json!({"spec": {"backoffLimit": 0}});
    let never = json!({"with": {"spec": {"schedule": "0 0 30 2 *", "jobTemplate": job}}});
    incident.apply(&workload("CronJob", "backup", &never));
    let node = incident.node_of("web");
    incident.kubectl(&["cordon", &incident.other_node(&node)]);
    // An evicted pod must not disturb the migration.
    let evicted = back_up(incident, "evicted");
    let name = incident.kubectl(&["get", "pod", "-l", &evicted, "-o", "name"]);
    let failed = r#"{"status":{"phase":"Failed","reason":"Evicted"}}"#;
    incident.kubectl(&["patch", name.trim(), "--subresource=status", "-p", failed]);

    let reader = Reader::new(incident, "deployment/web cronjob/backup");
    reader.pastes("1. Keep the old volume");
    reader.pastes("2. Make the new claim");
    let begun = back_up(incident, "begun");
    end(incident, &begun, 10);
    reader.pastes("3. Stop");
    let phases = incident.field("pod", ".items[*].status.phase");
    let mut left: Vec<&str> = phases.split(' ').collect();
    left.sort_unstable();
    assert_eq!(left, ["Failed", "Succeeded"]);
    incident.uncordon();
    reader.copies();
    reader.pastes("5. Let the workloads");
    reader.pastes("6. Start");
    incident.until_runs("web");
    for workload in ["deployment/web", "cronjob/backup"] {
        assert_eq!(claim_of(incident, workload), "data-rwx");
    }
    assert_eq!(incident.field("cronjob/backup", ".spec.suspend"), "false");
    let (code, output) = incident.diagnose(&["pvc/data-rwx"]);
    assert_eq!(code, 0, "{output}");

    reader.pastes("3. Stop");
    reader.pastes("Go back");
    reader.pastes("6. Start");
    incident.until_runs("web");
    assert_eq!(claim_of(incident, "deployment/web"), "data");
    let strategy = incident.field("deployment/web", ".spec.strategy.type");
    assert_eq!(strategy, "Recreate");

    for title in ["3. Stop", "5. Let the workloads", "6. Start"] {
        reader.pastes(title);
    }
    incident.until_runs("web");
    std::thread::scope(|scope| {
        scope.spawn(|| reader.pastes("8. Clean up"));
        // The claim is kept while finished pods use it.
        let deleted = "--for=jsonpath={.metadata.deletionTimestamp}";
        incident.kubectl(&["wait", deleted, "pvc/data", "--timeout=240s"]);
        incident.kubectl(&["delete", "pod", "--field-selector=status.phase!=Running"]);
    });
    incident.until_phase(&format!("pv/{}", incident.volume), "Released");
}

/// Kinds whose pods are stopped and started in other ways than those of a Deployment.
pub(crate) fn of_sets(incident: &Incident) {
    let here = on(&incident.nodes[0]);
    for (kind, further) in
        [("StatefulSet", &json!({})), ("DaemonSet", &here), ("ReplicaSet", &json!({}))]
    {
        let object = workload(kind, "web", further);
        furnish(incident);
        incident.starts(&object);
        let target = format!("{}/web", kind.to_lowercase());
        let reader = Reader::new(incident, &target);
        reader.pastes("1. Keep the old volume");
        reader.pastes("2. Make the new claim");
        reader.pastes("3. Stop");
        reader.copies();
        reader.pastes("5. Let the workloads");
        reader.pastes("6. Start");
        incident.until_runs("web");
        assert_eq!(claim_of(incident, &target), "data-rwx");
        for title in ["3. Stop", "Go back", "6. Start"] {
            reader.pastes(title);
        }
        incident.until_runs("web");
        assert_eq!(claim_of(incident, &target), "data");
        incident.delete(&object);
        incident.kubectl(&["delete", "pvc/data-rwx"]);
        incident.kubectl(&["delete", "pv", &format!("{}-data-rwx", incident.namespace)]);
    }
}
