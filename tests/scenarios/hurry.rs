//! Creates a volume, a claim and their Deployment in immediate succession, many times, while much
//! else happens. No answer may be based on the absence of an object that the guard does not know
//! yet.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::json;

use crate::harness::shorthand::{Claim, Storage};
use crate::harness::{GuardOptions, WebhookOptions};
use crate::manifests::Manifest;
use crate::scenario::{Nodes, STORAGE, Scenario};
use crate::scenario_run::{ScenarioRun, Testbed};

/// The number of times that each scenario is played.
const ROUNDS: usize = 50;

/// The number of rounds that run at once.
const AT_ONCE: usize = 5;

/// The number of threads that create and delete volumes in the background.
const BUSY: usize = 4;

/// The pause of each thread after a volume. It limits the number of requests, however slow the
/// machine is.
const PAUSE: Duration = Duration::from_millis(100);

/// Plays scenario X12, which must pass, and X12o, which must be refused, fifty times each with a
/// guard that denies.
///
/// # Errors
///
/// The wrong answers.
pub(crate) fn play(testbed: &Testbed) -> Result<(), String> {
    let guard = testbed.plane.guard("hurry", &GuardOptions::default());
    let scenario = Scenario::new("hurry", &["zone-1"; 3].map(str::to_owned), BTreeMap::new());
    let run = ScenarioRun::build(testbed, &scenario, None, Nodes::Simulated)?;
    let webhooks = WebhookOptions::new(&guard.url, &[run.name()]);
    let registration = testbed.plane.register_webhooks(run.name(), &webhooks);
    let wrong = rounds(&run);
    drop(registration);
    drop(run);
    if wrong.is_empty() {
        return Ok(());
    }
    let (count, wrong) = (wrong.len(), wrong.join("\n"));
    Err(format!("{count} wrong answers:\n{wrong}"))
}

fn rounds(run: &ScenarioRun<'_>) -> Vec<String> {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        for number in 0..BUSY {
            let over = &over;
            scope.spawn(move || {
                let claim = free(&["ReadWriteOnce"]);
                let volume = claim.volume(&format!("busy-{number}"), &STORAGE).unwrap();
                while !over.load(Ordering::Relaxed) {
                    // Failures do not matter here.
                    let _ = run.create(&volume);
                    let _ = run.delete(&volume);
                    thread::sleep(PAUSE);
                }
            });
        }
        let players: Vec<_> = (0..AT_ONCE)
            .map(|first| {
                scope.spawn(move || {
                    let own = (first..ROUNDS).step_by(AT_ONCE);
                    own.filter_map(|number| round(run, number).err()).collect::<Vec<_>>()
                })
            })
            .collect();
        let wrong = players
            .into_iter()
            .flat_map(|player| match player.join() {
                Ok(wrong) => wrong,
                Err(_) => vec!["A player panicked.".to_owned()],
            })
            .collect();
        over.store(true, Ordering::Relaxed);
        wrong
    })
}

fn round(run: &ScenarioRun<'_>, number: usize) -> Result<(), String> {
    let sharing = free(&["ReadWriteOnce", "ReadWriteMany"]);
    if let Some(refusal) = in_one_breath(run, &format!("shared-{number}"), &sharing)? {
        return Err(format!("Round {number}: X12 was refused: {refusal}"));
    }
    let exclusive = free(&["ReadWriteOnce"]);
    match in_one_breath(run, &format!("alone-{number}"), &exclusive)? {
        Some(_) => Ok(()),
        None => Err(format!("Round {number}: X12o was not refused.")),
    }
}

/// A claim for ReadWriteOnce, and a volume that is not reserved for it.
fn free(modes: &[&str]) -> Claim {
    Claim {
        volume: Some(modes.iter().map(|&mode| mode.to_owned()).collect()),
        volume_with: json!({ "spec": { "claimRef": null } }),
        ..Claim::default()
    }
}

/// Creates a class, the volume, a claim for it and a Deployment of two replicas. Returns the
/// refusal of the Deployment.
fn in_one_breath(
    run: &ScenarioRun<'_>,
    name: &str,
    claim: &Claim,
) -> Result<Option<String>, String> {
    let class = format!("{{run}}-{name}");
    let storage = Storage { class: &class, ..STORAGE };
    run.create(&json!({
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": { "name": class },
        "provisioner": storage.driver,
    }))?;
    run.create(&claim.volume(name, &storage).ok_or("There is no volume.")?)?;
    run.write(&claim.manifest(name, &storage), false)?;
    let workload = json!({
        "kind": "Deployment", "name": name, "uses": [name], "strategy": "Recreate", "replicas": 2,
    });
    match run.write(&Manifest::try_from(workload)?.0, false) {
        Ok(_) => Ok(None),
        Err(refusal) if refusal.contains("denied the request") => Ok(Some(refusal)),
        Err(reason) => Err(reason),
    }
}
