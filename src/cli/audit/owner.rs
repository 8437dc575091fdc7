//! The tool or controller that writes a live object, so that a change of the object alone does not
//! stay.

use serde_json::Value;

use doctor::diagnosis::command;
use engine::model::object::ObjectRef;
use report::live::Owner;

fn label<'d>(document: &'d Value, key: &str) -> Option<&'d str> {
    document["metadata"]["labels"][key].as_str()
}

fn annotation<'d>(document: &'d Value, key: &str) -> Option<&'d str> {
    document["metadata"]["annotations"][key].as_str()
}

/// The writer of `document`; of several, the one that has the last word. `None` if nothing names
/// one. A printed command begins with `helm` and the options that lead to the cluster.
pub(super) fn writer(document: &Value, object: &ObjectRef, helm: &str) -> Option<Owner> {
    controller(document)
        .or_else(|| flux(document))
        .or_else(|| argo_cd(document))
        .or_else(|| helm_release(document, object, helm))
        .or_else(|| manager(document))
}

/// The owner of the object, whose controller writes it again.
fn controller(document: &Value) -> Option<Owner> {
    let owners = document["metadata"]["ownerReferences"].as_array()?;
    let owner = owners.iter().find(|owner| owner["controller"] == true)?;
    let (kind, name) = (owner["kind"].as_str()?, owner["name"].as_str()?);
    let group = owner["apiVersion"].as_str()?;
    Some(Owner {
        name: format!("{kind} {name} ({group})"),
        change: format!("Change that {kind}: its controller writes this object again."),
        command: None,
    })
}

fn flux(document: &Value) -> Option<Owner> {
    let written_by = |tool: &str, kind: &str, changed: &str| {
        let of = |field: &str| label(document, &format!("{tool}.toolkit.fluxcd.io/{field}"));
        Some(Owner {
            name: format!("Flux {kind} {}/{}", of("namespace")?, of("name")?),
            change: format!("Change {changed} in Git; Flux sets the object back."),
            command: None,
        })
    };
    written_by("helm", "HelmRelease", "its spec.values")
        .or_else(|| written_by("kustomize", "Kustomization", "the manifest"))
}

/// The Application of Argo CD, by annotation or label, whichever
/// `application.resourceTrackingMethod` selects.
fn argo_cd(document: &Value) -> Option<Owner> {
    let tracked = annotation(document, "argocd.argoproj.io/tracking-id");
    let application = tracked
        .and_then(|id| id.split(':').next())
        .or_else(|| label(document, "argocd.argoproj.io/instance"))?;
    Some(Owner {
        name: format!("Argo CD Application {application}"),
        change: "Change its source; Argo CD sets the object back, or reports it as OutOfSync."
            .to_owned(),
        command: None,
    })
}

fn helm_release(document: &Value, object: &ObjectRef, helm: &str) -> Option<Owner> {
    let release = annotation(document, "meta.helm.sh/release-name")?;
    let own = object.namespace.as_deref().unwrap_or_default();
    let namespace = annotation(document, "meta.helm.sh/release-namespace").unwrap_or(own);
    let chart = label(document, "helm.sh/chart").map(|chart| format!(", chart {chart}"));
    let values = command::line(helm, &["get", "values", release, "--all", "-n", namespace]);
    Some(Owner {
        name: format!(
            "Helm release {release} in {namespace}{}",
            chart.unwrap_or_default()
        ),
        change: "Change its values, or the next upgrade writes the object again. A strategy is often under strategy, deploymentStrategy or updateStrategy.".to_owned(),
        command: Some(values),
    })
}

fn manager(document: &Value) -> Option<Owner> {
    let name = label(document, "app.kubernetes.io/managed-by")?;
    Some(Owner {
        name: format!("{name}, says its label app.kubernetes.io/managed-by"),
        change: "Change its source.".to_owned(),
        command: None,
    })
}
