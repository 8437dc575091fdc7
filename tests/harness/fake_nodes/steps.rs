//! How each step of [`super::life`] is written to the API server.

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
            nodes
                .patch_status(node, &unconditional, &Patch::Strategic(&report))
                .await?;
        }
        Action::Run { pod, .. } => {
            let found = pods(pod).get(&pod.name).await?;
            let report = running(pod, &found);
            pods(pod)
                .patch_status(&pod.name, &unconditional, &Patch::Strategic(&report))
                .await?;
        }
        Action::End(pod) => {
            let found = pods(pod).get(&pod.name).await?;
            let report = ended(pod, &found);
            pods(pod)
                .patch_status(&pod.name, &unconditional, &Patch::Strategic(&report))
                .await?;
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
            attachments
                .patch(&attachment.name, &unconditional, &Patch::Merge(&hold))
                .await?;
            let report = json!({ "status": { "attached": true, "attachError": null } });
            attachments
                .patch_status(&attachment.name, &unconditional, &Patch::Merge(&report))
                .await?;
        }
        Action::Detach(attachment) => {
            let release = json!({ "metadata": { "uid": attachment.uid, "finalizers": null } });
            attachments
                .patch(&attachment.name, &unconditional, &Patch::Merge(&release))
                .await?;
        }
        Action::Refuse {
            attachment,
            field,
            message,
        } => {
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

/// The volume that the claim asks for, for the nodes of one zone.
fn provisioned(claim: &PersistentVolumeClaim, zone: &str) -> PersistentVolume {
    let (metadata, spec) = (&claim.metadata, claim.spec.as_ref());
    let name = format!("pvc-{}", metadata.uid.as_deref().unwrap_or_default());
    let requests = spec.and_then(|it| it.resources.as_ref()?.requests.as_ref());
    let volume = json!({
        "metadata": { "name": name, "labels": { super::SCENARIO: metadata.namespace } },
        "spec": {
            "capacity": requests,
            "accessModes": spec.and_then(|it| it.access_modes.as_ref()),
            "storageClassName": spec.and_then(|it| it.storage_class_name.as_ref()),
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

fn running(object: &Object, pod: &Pod) -> Value {
    let now = super::now();
    let condition =
        |kind: &str| json!({ "type": kind, "status": "True", "lastTransitionTime": now });
    let containers = statuses(pod, true, &json!({ "running": { "startedAt": now } }));
    json!({
        "metadata": { "uid": object.uid },
        "status": {
            "phase": "Running",
            "startTime": now,
            "conditions": [
                condition("Initialized"),
                condition("PodReadyToStartContainers"),
                condition("ContainersReady"),
                condition("Ready"),
            ],
            "containerStatuses": containers,
        },
    })
}

fn ended(object: &Object, pod: &Pod) -> Value {
    let now = super::now();
    let condition = |kind: &str| {
        json!({
            "type": kind,
            "status": "False",
            "reason": "PodCompleted",
            "lastTransitionTime": now,
        })
    };
    let end = json!({ "terminated": { "exitCode": 0, "reason": "Completed", "finishedAt": now } });
    json!({
        "metadata": { "uid": object.uid },
        "status": {
            "phase": "Succeeded",
            "conditions": [condition("ContainersReady"), condition("Ready")],
            "containerStatuses": statuses(pod, false, &end),
        },
    })
}

fn statuses(pod: &Pod, ready: bool, state: &Value) -> Vec<Value> {
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    containers
        .map(|container| {
            json!({
                "name": container.name,
                "image": container.image,
                "imageID": "",
                "ready": ready,
                "started": ready,
                "restartCount": 0,
                "state": state,
            })
        })
        .collect()
}
