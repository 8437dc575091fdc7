//! What the guard repairs, applied again: does the tool see a difference, and is it
//! repaired again?

use serde_json::{Value, json};

use crate::harness::Output;
use crate::manifests::deployment;
use crate::ways::{Applier, Way};
use crate::world::{Mode, World, world};
use crate::{document, play};

/// What Git says of the strategy.
const SAID: [(&str, fn() -> Option<Value>); 3] = [
    ("no strategy", || None),
    ("`type: RollingUpdate`", || {
        Some(json!({ "type": "RollingUpdate" }))
    }),
    ("its own `maxSurge`", || {
        Some(json!({ "type": "RollingUpdate", "rollingUpdate": { "maxSurge": 1 } }))
    }),
];

const REMEDIES: [&str; 3] = ["zero-surge", "recreate", "colocate"];

type Cell = (usize, &'static str, Way);

#[test]
fn what_the_guard_repairs_is_applied_again() {
    let Some(world) = world() else { return };
    let ways: Vec<Way> = Way::ALL
        .into_iter()
        .filter(|it| it.is_declarative())
        .collect();
    let mut cells: Vec<Cell> = Vec::new();
    for said in 0..SAID.len() {
        for remedy in REMEDIES {
            cells.extend(ways.iter().map(|way| (said, remedy, *way)));
        }
    }
    let results = play(&cells, |_, cell| {
        again(world, *cell).map_err(|error| format!("{cell:?}: {error}"))
    });
    let rows = cells.iter().zip(&results);
    let rows = rows.map(|((said, remedy, way), seen)| {
        let git = format!("{} ∣ `{remedy}`", SAID[*said].0);
        (git, way.name(), vec![seen.clone()])
    });
    let header = ["Git says ∣ remedy", "way of applying", "applied again"];
    document::check("drift", &header, &document::folded(rows));
}

fn again(world: &World, (said, remedy, way): Cell) -> Result<String, String> {
    let namespace = world.namespace(Mode::Fix(remedy))?;
    let folder = world.folder(&namespace);
    let applier = Applier {
        world,
        way,
        namespace: &namespace,
        folder: &folder,
    };
    let manifest = deployment(&namespace, SAID[said].1());
    let first = applier.apply(&manifest)?;
    first.done()?;
    if !repaired(&first) {
        return Err(format!("It was not repaired: {first:#?}"));
    }
    let before = world.read(&namespace)?.spec;
    let second = applier.apply(&manifest)?;
    second.done()?;
    if world.read(&namespace)?.spec != before {
        return Err("Another thing is stored.".to_owned());
    }
    let differs = match way {
        Way::Apply => Some(second.stdout.contains("configured")),
        Way::ServerSideApply => {
            let file = applier.file(&manifest);
            let diff = ["diff", "--server-side", "-f", &file];
            Some(applier.kubectl(world.plane.kubeconfig(), &diff).status == 1)
        }
        Way::Flux | Way::ArgoCd | Way::ArgoCdServerSide => {
            Some(second.stdout.trim() == "out of sync")
        }
        _ => None,
    };
    world.remove(&namespace);
    let seen = match differs {
        Some(true) => "out of sync, ",
        Some(false) => "in sync, ",
        None => "",
    };
    let again = match repaired(&second) {
        true => "repaired again",
        false => "not repaired again",
    };
    Ok(format!("{seen}{again}"))
}

fn repaired(output: &Output) -> bool {
    output.stderr.contains(": fixed with ")
}
