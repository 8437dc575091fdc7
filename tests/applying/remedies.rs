//! Each remedy, applied to a live Deployment in each way, under each guard.

use serde_json::json;

use crate::applier_cluster::{ApplierCluster, Mode, shared};
use crate::manifests::{deployment, second_revision};
use crate::printed::{Audited, Printed};
use crate::ways::{Answer, Applier, Way, ran};
use crate::{document, play};

const REMEDIES: [&str; 4] = ["recreate", "zero-surge", "colocate", "drop-leftover"];

const MODES: [Mode; 4] = [Mode::Fix("auto"), Mode::Deny, Mode::WarnOnly, Mode::Absent];

type Cell = (&'static str, Way, Mode);

#[test]
fn every_remedy_works_in_every_way_as_printed() {
    let Some(cluster) = shared() else { return };
    let mut cells: Vec<Cell> = Vec::new();
    for remedy in REMEDIES {
        // A patch never contains a leftover.
        let ways = Way::all().into_iter();
        for way in ways.filter(|way| remedy != "drop-leftover" || !way.is_by_hand()) {
            cells.extend(MODES.map(|mode| (remedy, way, mode)));
        }
    }
    let results = play(&cells, |cell| put(cluster, *cell));
    let rows =
        cells.iter().step_by(MODES.len()).zip(results.chunks(MODES.len())).map(
            |((remedy, way, _), modes)| (vec![format!("`{remedy}`")], way.name(), modes.to_vec()),
        );
    document::check(
        "remedies",
        "remedy | way of applying | guard repairs | guard denies | guard warns only | no guard",
        rows,
    );
}

/// Applies the remedy to a faulty live Deployment, then ships the second revision.
fn put(cluster: &ApplierCluster, (remedy, way, mode): Cell) -> Result<String, String> {
    let applier = Applier::new(cluster, way, mode)?;
    let namespace = applier.namespace.as_str();
    let live = deployment(namespace, None);
    applier.create(&live)?;
    if !cluster.rollout_ends(namespace)? {
        return Err("The first revision does not run.".to_owned());
    }
    let audited = Audited::of(&applier)?;
    let leftover = json!({ "type": "Recreate", "rollingUpdate": { "maxSurge": 1 } });
    let written = match remedy {
        "drop-leftover" => deployment(namespace, Some(&leftover)),
        _ => live,
    };
    let printed = Printed::of_file(&applier, remedy, &written)?;
    let apply = || match way {
        Way::Patch("json") => Ok(applier.patch(audited.patch(remedy)?)),
        _ => applier.apply(&printed.fixed),
    };
    let mut cell = match Answer::of(&apply()?)? {
        Answer::Accepted => "passes".to_owned(),
        Answer::Denied => return Ok("denied".to_owned()),
        Answer::Unprocessable => {
            let once = if way.is_by_hand() { audited.once() } else { printed.once.clone() };
            let Some(once) = once else {
                return Ok("422".to_owned());
            };
            run(&applier, &once)?;
            match Answer::of(&apply()?)? {
                Answer::Accepted => "422; passes after the command".to_owned(),
                answer => return Err(format!("{answer:?} after {once}")),
            }
        }
    };
    let shipped = applier.apply(&second_revision(printed.fixed.clone()))?;
    match Answer::of(&shipped)? {
        Answer::Accepted if cluster.rollout_ends(namespace)? => {}
        Answer::Accepted => cell.push_str(", the rollout hangs"),
        answer => return Err(format!("{answer:?} to the next revision: {shipped:#?}")),
    }
    cluster.remove(namespace);
    Ok(cell)
}

/// Runs a printed command unchanged.
fn run(applier: &Applier<'_>, command: &str) -> Result<(), String> {
    ran(applier.cluster.plane.printed(command)).done()
}

/// `audit` offers first a remedy that passes, whichever way the live object is applied.
#[test]
fn audit_offers_first_what_passes() {
    let Some(cluster) = shared() else { return };
    play(&Way::all(), |way| {
        let applier = Applier::new(cluster, *way, Mode::Absent)?;
        let namespace = applier.namespace.as_str();
        applier.create(&deployment(namespace, None))?;
        cluster.rollout_ends(namespace)?;
        let audited = Audited::of(&applier)?;
        let patch = audited.remedies().next().ok_or("audit offers nothing")?;
        let strategy = patch["patch"][0]["value"].clone();
        // The offered strategy, applied as the tool applies it.
        let manifest = deployment(namespace, Some(&strategy));
        let answer = match *way {
            Way::Patch("json") => Answer::of(&applier.patch(&patch["patch"]))?,
            _ => Answer::of(&applier.apply(&manifest)?)?,
        };
        cluster.remove(namespace);
        match answer {
            Answer::Accepted => Ok(()),
            answer => Err(format!("{} is {answer:?}", patch["name"])),
        }
    });
}

/// The printed command alone, while Git has no strategy: the next apply keeps the strategy that the
/// command has set, or reverts it.
#[test]
fn what_the_command_sets_is_kept_or_taken_back() {
    let Some(cluster) = shared() else { return };
    let ways = Way::declarative();
    let kept = play(&ways, |way| {
        let applier = Applier::new(cluster, *way, Mode::Absent)?;
        let namespace = applier.namespace.as_str();
        let manifest = deployment(namespace, None);
        applier.create(&manifest)?;
        let printed = Printed::of_file(&applier, "recreate", &manifest)?;
        run(&applier, &printed.once.ok_or("No command is printed.")?)?;
        applier.apply(&manifest)?.done()?;
        let strategy = cluster.read(namespace)?.spec.strategy;
        cluster.remove(namespace);
        Ok(match strategy.and_then(|strategy| strategy.type_).as_deref() {
            Some("Recreate") => "stays Recreate",
            _ => "is RollingUpdate again",
        })
    });
    let rows = ways
        .iter()
        .zip(kept)
        .map(|(way, strategy)| (Vec::new(), way.name(), vec![strategy.to_owned()]));
    document::check("kept", "way of applying | after the next apply", rows);
}
