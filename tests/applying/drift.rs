//! Applies the original manifest again after the guard's repair: does the tool see a difference,
//! and does the guard repair the object again?

use k8s_openapi::api::apps::v1::DeploymentSpec;
use serde_json::{Value, json};

use crate::applier_cluster::{ApplierCluster, Mode, shared};
use crate::harness::Output;
use crate::manifests::deployment;
use crate::ways::{Applier, Way};
use crate::{document, play};

/// The strategy in Git, if any.
type Strategy = fn() -> Option<Value>;

/// The strategies in Git.
const SAID: [(&str, Strategy); 3] = [
    ("no strategy", || None),
    ("`type: RollingUpdate`", || Some(json!({ "type": "RollingUpdate" }))),
    ("its own `maxSurge`", || {
        Some(json!({ "type": "RollingUpdate", "rollingUpdate": { "maxSurge": 1 } }))
    }),
];

const REMEDIES: [&str; 3] = ["zero-surge", "recreate", "colocate"];

type Cell = (usize, &'static str, Way);

#[test]
fn what_the_guard_repairs_is_applied_again() {
    let Some(cluster) = shared() else { return };
    let ways = Way::declarative();
    let mut cells: Vec<Cell> = Vec::new();
    for said in 0..SAID.len() {
        for remedy in REMEDIES {
            cells.extend(ways.iter().map(|way| (said, remedy, *way)));
        }
    }
    let results = play(&cells, |cell| again(cluster, *cell));
    let rows = cells.iter().zip(&results).map(|((said, remedy, way), seen)| {
        let git = vec![SAID[*said].0.to_owned(), format!("`{remedy}`")];
        (git, way.name(), vec![seen.clone()])
    });
    let header = "Git says | remedy | way of applying | applied again";
    document::check("drift", header, rows);
}

fn again(cluster: &ApplierCluster, (said, remedy, way): Cell) -> Result<String, String> {
    let applier = Applier::new(cluster, way, Mode::Fix(remedy))?;
    let namespace = applier.namespace.as_str();
    let manifest = deployment(namespace, SAID[said].1().as_ref());
    let first = applier.apply(&manifest)?;
    first.done()?;
    let before = cluster.read(namespace)?.spec;
    if !has(remedy, &before) && !repaired(&first) {
        return Err(format!("It was not repaired: {first:#?}"));
    }
    // Otherwise the controllers' writes would count as a difference.
    cluster.rollout_ends(namespace)?;
    let second = applier.apply(&manifest)?;
    second.done()?;
    let is_kept = cluster.read(namespace)?.spec == before;
    let differs = match way {
        Way::Apply(&[]) => Some(second.stdout.contains("configured")),
        Way::Apply(_) => {
            let file = applier.file(&manifest);
            let diff = ["diff", "--server-side", "-f", &file];
            Some(applier.kubectl(cluster.plane.kubeconfig(), &diff).status == 1)
        }
        Way::Controller(..) => Some(second.stdout.trim() == "out of sync"),
        _ => None,
    };
    cluster.remove(namespace);
    let compared = match differs {
        Some(true) => "out of sync, ",
        Some(false) => "in sync, ",
        None => "",
    };
    let again = match (way, repaired(&second)) {
        _ if !is_kept => "another strategy is stored",
        // Argo CD passes no warning on.
        (Way::Controller("argo-cd", _), _) => "",
        (_, true) => "repaired again",
        (_, false) => "not repaired again",
    };
    Ok(format!("{compared}{again}").trim_end_matches(", ").to_owned())
}

/// Whether the stored Deployment has the remedy.
fn has(remedy: &str, spec: &DeploymentSpec) -> bool {
    let spec = serde_json::to_value(spec).unwrap_or_default();
    let at = |pointer: &str| spec.pointer(pointer).cloned().unwrap_or_default();
    match remedy {
        "recreate" => at("/strategy/type") == "Recreate",
        "zero-surge" => at("/strategy/rollingUpdate/maxSurge") == 0,
        _ => at("/template/spec/affinity/podAffinity") != Value::Null,
    }
}

/// Whether the guard says that it has repaired something.
fn repaired(output: &Output) -> bool {
    output.stderr.contains(": fixed with ")
}
