//! Runs the commands that the guard prints, in the state for which it printed them and with the
//! guard on, and the commands that end a rollout that hangs.

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};

use crate::controllers::{ControllerTest, Row, WITHIN, is_silent};
use crate::guarded_cluster::GuardedCluster;
use crate::harness::{Lent, Needs, seen, start_control_plane, wait_until};
use crate::said::Said;
use crate::stored;

pub(crate) const ROWS: [Row; 7] = rows! {
    "Deployment | kubectl rollout undo to the revision whose pod runs | silent" => undo_to_what_runs;
    "Deployment | an apply of the template whose pod runs, with a new image beside it | deny (rolling-update-overlap)" => another_template_is_no_rollback;
    "Deployment | server-side apply of Recreate, after the printed command | silent" => server_side_apply_after_the_printed_command;
    "Deployment | back to a revision whose ReplicaSet is gone | deny (rolling-update-overlap)" => back_to_a_revision_that_is_gone;
    "Deployment | kubectl rollout undo to a revision that is at fault and has no ready pod | deny (rolling-update-overlap)" => back_to_a_revision_without_pods;
    "Deployment | a hotfix, where managedFields are empty or lie | silent" => hotfix_whoever_is_said_to_apply;
    "Deployment and StatefulSet | an update, while the guard may not read revisions | warn (rolling-update-overlap) and warn (replicas-share-volume)" => rights_to_revisions_are_missing;
};

const SET_IMAGE: [&str; 4] = ["set", "image", "deployment/web", "main=example.com/app:2"];

/// A rollout that hangs: the pod of the first revision is ready, the pod of the second is not.
fn hanging(cluster: &GuardedCluster) -> Result<ControllerTest<'_>, String> {
    let test = ControllerTest::new(cluster, &json!({ "kind": "Deployment" }))?;
    test.until_revision("1")?;
    make_ready(&test, "example.com/app:1")?;
    test.unguarded(&SET_IMAGE);
    test.until_revision("2")?;
    let third = ["set", "image", "deployment/web", "main=example.com/app:3"];
    test.until_refused(&third, "rolling-update-overlap")?;
    Ok(test)
}

fn undo_to_what_runs(cluster: &GuardedCluster) -> Result<(), String> {
    let test = hanging(cluster)?;
    let output = test.kubectl(&["rollout", "undo", "deployment/web", "--to-revision=1"]);
    let said = Said::of(&output);
    let passed = output.status == 0 && said.denied.is_empty() && said.warned.is_empty();
    let rollback = "This is a rollback to ReplicaSet web-";
    let noted = said.noted.iter().any(|note| note.starts_with(rollback));
    seen(passed && noted, output)?;
    until_image(&test, "example.com/app:1")
}

fn another_template_is_no_rollback(cluster: &GuardedCluster) -> Result<(), String> {
    let test = hanging(cluster)?;
    let image = ["set", "image", "deployment/web", "main=example.com/app:4"];
    let denied = Said::of(&test.kubectl(&image)).denied;
    seen(denied.contains("rolling-update-overlap"), denied).map(drop)
}

fn server_side_apply_after_the_printed_command(cluster: &GuardedCluster) -> Result<(), String> {
    let test = ControllerTest::new(cluster, &json!({ "kind": "Deployment" }))?;
    test.until_revision("1")?;
    run_what_the_denial_prints(&test)?;
    let mut manifest = test.read("Deployment/web");
    let applied = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web" },
        "spec": {
            "selector": manifest["spec"]["selector"].take(),
            "strategy": { "type": "Recreate" },
            "template": manifest["spec"]["template"].take(),
        },
    });
    let arguments = ["apply", "--server-side", "--force-conflicts", "-f", "-"];
    let output = test.namespace.kubectl(&arguments, Some(&applied.to_string()));
    is_silent(output)
}

/// Checks that a hotfix is refused, and runs the command that the denial prints.
fn run_what_the_denial_prints(test: &ControllerTest<'_>) -> Result<(), String> {
    test.until_refused(&SET_IMAGE, "rolling-update-overlap")?;
    let output = test.kubectl(&SET_IMAGE).failure();
    let denial = output
        .stderr
        .split("denied the request: ")
        .nth(1)
        .ok_or_else(|| format!("{output:#?}"))?
        .trim_end();
    if denial.chars().count() > 350 {
        return Err(format!("The denial is too long: {denial}"));
    }
    let command = denial.split('`').nth(1).ok_or_else(|| format!("No command in {denial}"))?;
    let ran = test.namespace.plane.printed(command).output().unwrap();
    seen(ran.status.success(), (command, ran)).map(drop)
}

fn pods(test: &ControllerTest<'_>) -> Vec<Value> {
    let versions = stored::versions(&test.namespace);
    versions.keys().filter(|name| name.starts_with("Pod/")).map(|name| test.read(name)).collect()
}

fn image_of(pod: &Value) -> &Value {
    &pod["spec"]["containers"][0]["image"]
}

/// Waits for the pod with that image, and marks it as ready, as a kubelet would.
fn make_ready(test: &ControllerTest<'_>, image: &str) -> Result<(), String> {
    let plane = test.namespace.plane;
    let pod = wait_until("the pod", WITHIN, || {
        let pods = pods(test);
        pods.iter().find(|pod| image_of(pod) == image).cloned().ok_or_else(|| format!("{pods:?}"))
    })?;
    let name = pod["metadata"]["name"].as_str().unwrap_or_default();
    let api: Api<Pod> = Api::namespaced(plane.client(), &test.namespace);
    let status = json!({ "status": { "phase": "Running",
        "conditions": [{ "type": "Ready", "status": "True" }] } });
    let patch = Patch::Strategic(status);
    plane
        .block_on(api.patch_status(name, &PatchParams::default(), &patch))
        .map_err(|error| format!("{name}: {error}"))?;
    wait_until("a ready replica", WITHIN, || {
        let ready = test.read("Deployment/web")["status"]["readyReplicas"].clone();
        seen(ready == 1, ready).map(drop)
    })
}

/// Waits until all pods have that image.
fn until_image(test: &ControllerTest<'_>, image: &str) -> Result<(), String> {
    wait_until(&format!("pods of {image}"), WITHIN, || {
        let pods = pods(test);
        let images: Vec<&Value> = pods.iter().map(image_of).collect();
        let all = !images.is_empty() && images.iter().all(|other| **other == image);
        seen(all, images).map(drop)
    })
}

/// No stored object has the template of the running pod any more.
fn back_to_a_revision_that_is_gone(cluster: &GuardedCluster) -> Result<(), String> {
    let test = hanging(cluster)?;
    let versions = stored::versions(&test.namespace);
    let runs = versions
        .keys()
        .filter(|name| name.starts_with("ReplicaSet/"))
        .find(|name| test.read(name)["status"]["readyReplicas"] == 1)
        .ok_or_else(|| format!("No ReplicaSet is ready: {versions:?}"))?;
    let named = runs.replace("ReplicaSet/", "replicaset/");
    test.unguarded(&["delete", &named, "--cascade=orphan"]);
    let undo = test.kubectl(&["rollout", "undo", "deployment/web", "--to-revision=1"]);
    seen(undo.stderr.contains("unable to find specified revision"), undo)?;
    let image = ["set", "image", "deployment/web", "main=example.com/app:1"];
    test.until_refused(&image, "rolling-update-overlap")
}

/// The second revision never had a ready pod, so that a rollback to it hangs too.
fn back_to_a_revision_without_pods(cluster: &GuardedCluster) -> Result<(), String> {
    let test = hanging(cluster)?;
    test.unguarded(&["set", "image", "deployment/web", "main=example.com/app:3"]);
    test.until_revision("3")?;
    let undo = ["rollout", "undo", "deployment/web", "--to-revision=2"];
    test.until_refused(&undo, "rolling-update-overlap")?;
    let output = test.kubectl(&["rollout", "undo", "deployment/web", "--to-revision=1"]);
    output.done()?;
    until_image(&test, "example.com/app:1")
}

/// The printed command lets the change pass, whatever the managed fields say.
fn hotfix_whoever_is_said_to_apply(cluster: &GuardedCluster) -> Result<(), String> {
    let lie = json!([{"manager": "flux", "operation": "Apply", "apiVersion": "apps/v1",
        "time": "2020-01-01T00:00:00Z", "fieldsType": "FieldsV1",
        "fieldsV1": {"f:metadata": {"f:labels": {}}}}]);
    for managers in [json!([{}]), lie] {
        let test = ControllerTest::new(cluster, &json!({ "kind": "Deployment" }))?;
        test.until_revision("1")?;
        let patch = json!({"metadata": {"managedFields": managers}}).to_string();
        test.unguarded(&["patch", "deployment/web", "--type=merge", "-p", &patch]);
        run_what_the_denial_prints(&test)?;
        test.is_silent(&SET_IMAGE)?;
        until_image(&test, "example.com/app:2")?;
    }
    Ok(())
}

/// A guard that may not read revisions denies nothing that may be a rollback, and reports the
/// missing permission. It still denies updates that do not change the template.
fn rights_to_revisions_are_missing(_: &GuardedCluster) -> Result<(), String> {
    let Some(started) = start_control_plane(Needs::ApiServer) else {
        return Ok(());
    };
    let lent = Lent::new(started);
    let plane = lent.0;
    let cluster = GuardedCluster::new(plane);
    let mut role = plane.get(&["clusterrole", "multi-attach-guard"]);
    let revisions = [json!("replicasets"), json!("controllerrevisions")];
    for rule in role["rules"].as_array_mut().unwrap() {
        let resources = rule["resources"].as_array_mut().unwrap();
        resources.retain(|resource| !revisions.contains(resource));
    }
    let rules = role["rules"].as_array_mut().unwrap();
    rules.retain(|rule| rule["resources"] != json!([]));
    let replace = plane.kubectl(&["replace", "-f", "-"], Some(&role.to_string()));
    replace.done()?;
    for (kind, replicas, resource, rule) in [
        ("Deployment", 1, "replicasets", "rolling-update-overlap"),
        ("StatefulSet", 2, "controllerrevisions", "replicas-share-volume"),
    ] {
        let test = ControllerTest::new(&cluster, &json!({ "kind": kind, "replicas": replicas }))?;
        let target = format!("{}/web", kind.to_lowercase());
        let image = ["set", "image", &target, SET_IMAGE[3], "--dry-run=server"];
        wait_until("the guard to say what it lacks", WITHIN, || {
            let output = test.kubectl(&image);
            let parts = [
                "Warning: Not denied: it may be a rollback, and the guard may not list ",
                resource,
                &format!("Warning: {rule}"),
            ];
            let says = parts.iter().all(|part| output.stderr.contains(part));
            seen(output.status == 0 && says, output).map(drop)
        })?;
        let scale = ["scale", &target, "--replicas=3"];
        test.until_refused(&scale, "autoscaler-exceeds-volume")?;
    }
    Ok(())
}
