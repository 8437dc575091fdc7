//! The upgrade from an earlier version and the removal, as docs/install.md describes them: nothing
//! is left, whatever was applied before.

use std::process::Command;

use serde_json::{Value, json};

use crate::harness::shorthand::object;
use crate::harness::{self, ControlPlane, Needs, Output, seen, until};
use crate::installed::{DEADLINE, define, options};
use crate::pages::{blocks, section};
use crate::rendered::{built, objects, printed};
use crate::repository;

const EARLIER: &str = include_str!("earlier.yaml");

const NAME: &str = "multi-attach-guard";

/// Runs the guard until it has made the objects that it makes by itself: the Secret of its
/// certificate, and the facts about a namespace.
pub(crate) fn run_for_once(plane: &ControlPlane) {
    let ebs = json!({"provisioner": "ebs.csi.aws.com"});
    for shorthand in [
        json!({"kind": "StorageClass", "name": "disk", "with": ebs}),
        json!({"kind": "PersistentVolumeClaim"}),
    ] {
        plane.apply("default", &object(shorthand).to_string());
    }
    let options = options(plane, &["--manage-certs", "--admission-policies"]);
    let _guard = plane.serve("removed", &options);
    until("what the guard makes", DEADLINE, || {
        let get = ["get", "volumefacts,secrets", "--all-namespaces", "-o=name"];
        let made = plane.kubectl(&get, None).stdout;
        seen(made.contains("volumefacts") && made.contains("secret/"), made)
    });
}

/// Waits until no object in the cluster has the guard's name in its own name, a label or a group.
/// Objects in a namespace that is being deleted are excepted, because no controller deletes them
/// here, and Events, because they expire.
pub(crate) fn until_nothing_is_left(plane: &ControlPlane) {
    let names_of_kinds = ["api-resources", "--verbs=list", "-o=name"];
    until("all of the guard to be gone", DEADLINE, || {
        let listed = plane.kubectl(&names_of_kinds, None).success().stdout;
        let kinds: Vec<&str> = listed.lines().filter(|kind| !kind.starts_with("events")).collect();
        let get = ["get", &kinds.join(","), "--all-namespaces", "-o=json"];
        let output = plane.kubectl(&get, None);
        let list: Value =
            serde_json::from_str(&output.stdout).map_err(|_| format!("{output:#?}"))?;
        let objects = list["items"].as_array().into_iter().flatten();
        let left: Vec<String> = objects
            .filter_map(|object| {
                let metadata = &object["metadata"];
                let about = json!([metadata["name"], metadata["labels"], object["apiVersion"]]);
                let goes =
                    metadata["namespace"] == NAME || !metadata["deletionTimestamp"].is_null();
                (about.to_string().contains(NAME) && !goes)
                    .then(|| format!("{} {}", object["kind"], metadata["name"]))
            })
            .collect();
        let path = "-o=jsonpath={.metadata.deletionTimestamp}";
        let namespace = plane.kubectl(&["get", "namespace", NAME, path], None);
        let goes = namespace.status != 0 || !namespace.stdout.is_empty();
        seen(left.is_empty() && goes, (left, namespace))
    });
}

/// The base with every component that can be combined with the others.
fn everything() -> String {
    let components: Vec<String> = std::fs::read_dir(repository("manifests/components"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        // Without the other sources of the certificate, and without the component that makes
        // failures fatal.
        .filter(|name| !["cert-manager", "files", "strict"].contains(&name.as_str()))
        .map(|name| format!("../../../manifests/components/{name}"))
        .collect();
    let kustomization = json!({
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": ["../../../manifests/base"],
        "components": components,
    });
    let folder = repository("target/tmp/everything");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("kustomization.yaml"), kustomization.to_string()).unwrap();
    let programs = harness::require_programs(Needs::ApiServer).unwrap();
    printed(Command::new(programs.path("kustomize")).arg("build").arg(folder))
}

fn stored(plane: &ControlPlane, kind: &str) -> Value {
    plane.get(&[kind, NAME, "-n", NAME])
}

fn names(webhooks: &Value) -> Vec<&str> {
    let webhooks = webhooks["webhooks"].as_array().unwrap().iter();
    webhooks.map(|webhook| webhook["name"].as_str().unwrap()).collect()
}

/// Creates, as a dry run, an object about which the guard is asked.
fn try_a_workload(plane: &ControlPlane) -> Output {
    let workload = object(json!({"kind": "Deployment", "uses": ["data"]}));
    let create = ["create", "--dry-run=server", "-f", "-"];
    plane.kubectl(&create, Some(&workload.to_string()))
}

/// Needs its own control plane, because the installation is cluster-wide. No pod ever runs in it:
/// the worst case for an installation.
#[test]
fn an_earlier_install_is_upgraded_and_removed_without_blocking_anybody() {
    let plane = harness::or_skip!(harness::start_control_plane(Needs::ApiServer));
    let programs = harness::require_programs(Needs::ApiServer).unwrap();
    define(&plane);
    let apply = |manifests: &str| {
        plane.kubectl(&["apply", "--validate=strict", "-f", "-"], Some(manifests)).success()
    };
    apply(EARLIER);
    let present = built(programs, "cert-manager");
    assert_eq!(apply(&present).stderr, "");
    for kind in ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"] {
        let wanted = &objects(&present)[&(kind.to_owned(), NAME.to_owned())];
        assert_eq!(names(&stored(&plane, kind)), names(wanted), "{kind}");
    }
    let budget = stored(&plane, "poddisruptionbudget");
    assert_eq!(budget["spec"].get("minAvailable"), None, "{budget}");
    // Applying the same manifests again starts no rollout.
    let generation = || stored(&plane, "deployment")["metadata"]["generation"].clone();
    let before = generation();
    apply(&present);
    assert_eq!(before, generation());

    apply(&everything());
    run_for_once(&plane);
    apply(&built(programs, "warn-only"));
    // The worst case: the guard does not answer, and workloads are refused.
    apply(&built(programs, "strict"));
    until("workloads to wait for the guard", DEADLINE, || {
        let said = try_a_workload(&plane);
        seen(said.stderr.contains("failed calling webhook"), said)
    });
    // The page's commands for removal, with its addition for API servers that repair objects
    // themselves.
    let section = section("install.md", "Removing");
    let (_, block) = blocks(&section)[0];
    let lines = block.lines();
    let commands: Vec<&str> = lines.filter_map(|line| line.strip_prefix("kubectl ")).collect();
    let [first, last] = commands[..] else { panic!("{commands:?}") };
    let repair = "delete mutatingadmissionpolicies,mutatingadmissionpolicybindings,";
    for command in [first.replacen("delete ", repair, 1).as_str(), last] {
        // No controller empties the namespace here.
        plane.run(&format!("{command} --wait=false"));
    }
    until("workloads to pass", DEADLINE, || try_a_workload(&plane).done());
    until_nothing_is_left(&plane);
}
