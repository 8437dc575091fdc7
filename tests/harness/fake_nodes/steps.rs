//! The requests to the API server for each step of [`super::life`].

use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use serde_json::{Value, json};

use super::life::{Action, Object};

/// Takes one step.
pub(super) async fn take(client: &kube::Client, step: &Action) -> kube::Result<()> {
    let pods = |pod: &Object| Api::<Pod>::namespaced(client.clone(), &pod.namespace);
    let attachments = Api::<VolumeAttachment>::all(client.clone());
    let unconditional = PatchParams::default();
    match step {
        Action::Report { node, volumes } => {
            let nodes = Api::<Node>::all(client.clone());
            let report = json!({ "status": {
                "conditions": [super::ready()],
                "volumesInUse": volumes,
            }});
            nodes.patch_status(node, &unconditional, &Patch::Strategic(&report)).await?;
        }
        Action::Run { pod, .. } | Action::End(pod) => {
            let found = pods(pod).get(&pod.name).await?;
            let report = report(pod, &found, matches!(step, Action::Run { .. }));
            pods(pod).patch_status(&pod.name, &unconditional, &Patch::Strategic(&report)).await?;
        }
        Action::Remove(pod) => {
            let at_once = DeleteParams {
                grace_period_seconds: Some(0),
                preconditions: Some(Preconditions {
                    uid: Some(pod.uid.clone()),
                    resource_version: None,
                }),
                ..DeleteParams::default()
            };
            pods(pod).delete(&pod.name, &at_once).await?;
        }
        Action::Attach(attachment) => {
            // The finalizer first: from here on the attacher has something to undo.
            let hold = json!({ "metadata": {
                "uid": attachment.uid,
                "finalizers": ["external-attacher/fake"],
            }});
            attachments.patch(&attachment.name, &unconditional, &Patch::Merge(&hold)).await?;
            let report = json!({ "status": { "attached": true, "attachError": null } });
            attachments
                .patch_status(&attachment.name, &unconditional, &Patch::Merge(&report))
                .await?;
        }
        Action::Detach(attachment) => {
            let release = json!({ "metadata": { "uid": attachment.uid, "finalizers": null } });
            attachments.patch(&attachment.name, &unconditional, &Patch::Merge(&release)).await?;
        }
        Action::Refuse { attachment, field, message } => {
            let error = json!({ "time": super::now(), "message": message });
            let report = json!({ "status": { (*field): error } });
            attachments
                .patch_status(&attachment.name, &unconditional, &Patch::Merge(&report))
                .await?;
        }
        Action::Provision { claim, zone } => {
            let claims = Api::<PersistentVolumeClaim>::namespaced(client.clone(), &claim.namespace);
            let volume = provisioned(&claims.get(&claim.name).await?, zone);
            Api::<PersistentVolume>::all(client.clone())
                .create(&PostParams::default(), &volume)
                .await?;
        }
    }
    Ok(())
}

/// The volume for a claim, usable on the nodes of one zone.
fn provisioned(claim: &PersistentVolumeClaim, zone: &str) -> PersistentVolume {
    let (metadata, spec) = (&claim.metadata, claim.spec.as_ref());
    let name = format!("pvc-{}", metadata.uid.as_deref().unwrap_or_default());
    let requests = spec.and_then(|spec| spec.resources.as_ref()?.requests.as_ref());
    let volume = json!({
        "metadata": { "name": name, "labels": { super::SCENARIO: metadata.namespace } },
        "spec": {
            "capacity": requests,
            "accessModes": spec.and_then(|spec| spec.access_modes.as_ref()),
            "storageClassName": spec.and_then(|spec| spec.storage_class_name.as_ref()),
            "claimRef": {
                "namespace": metadata.namespace,
                "name": metadata.name,
                "uid": metadata.uid,
            },
            "csi": { "driver": super::ZONAL_DRIVER, "volumeHandle": name },
            "nodeAffinity": { "required": { "nodeSelectorTerms": [{
                "matchExpressions": [{ "key": super::ZONE, "operator": "In", "values": [zone] }],
            }]}},
        },
    });
    serde_json::from_value(volume).unwrap()
}

/// The status that a kubelet reports for a pod whose containers run or have ended.
fn report(object: &Object, pod: &Pod, runs: bool) -> Value {
    let now = super::now();
    let condition = |kind: &&str| {
        let reason = if runs { Value::Null } else { json!("PodCompleted") };
        let status = if runs { "True" } else { "False" };
        json!({ "type": kind, "status": status, "reason": reason, "lastTransitionTime": now })
    };
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let state = if runs {
        json!({ "running": { "startedAt": now } })
    } else {
        json!({ "terminated": { "exitCode": 0, "reason": "Completed", "finishedAt": now } })
    };
    let statuses = containers.map(|container| {
        json!({
            "name": container.name,
            "image": container.image,
            "imageID": "",
            "ready": runs,
            "started": runs,
            "restartCount": 0,
            "state": state,
        })
    });
    let mut status = json!({ "containerStatuses": statuses.collect::<Vec<_>>() });
    let begun = ["Initialized", "PodReadyToStartContainers"];
    let conditions = ["ContainersReady", "Ready"].iter();
    if runs {
        status["phase"] = json!("Running");
        status["startTime"] = json!(now);
        status["conditions"] = begun.iter().chain(conditions).map(condition).collect();
    } else {
        status["phase"] = json!("Succeeded");
        status["conditions"] = conditions.map(condition).collect();
    }
    json!({ "metadata": { "uid": object.uid }, "status": status })
}
