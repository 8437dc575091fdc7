//! A volume, a claim and its Deployment in one breath, again and again, while much else
//! happens: no answer may rest on what the guard has not heard of yet.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::{Value, json};

use crate::harness::{GuardOptions, WebhookOptions};
use crate::manifests::{Binding, Class, Volume, Workload, request};
use crate::scenario::Scenario;
use crate::stage::{Stage, World};

/// How often each of the two is played.
const ROUNDS: usize = 50;

/// So many rounds at once.
const AT_ONCE: usize = 5;

/// So many threads that make volumes and delete them all the while.
const BUSY: usize = 4;

/// Scenario X12, which must pass, and X12o, which must be refused, fifty times each with a
/// guard that denies.
///
/// # Errors
///
/// The wrong answers.
pub(crate) fn play(world: &World) -> Result<(), String> {
    let guard = world.plane.guard("hurry", &GuardOptions::default());
    let stage = Stage::build(world, &Scenario::new("hurry", ""), None)?;
    let webhooks = WebhookOptions::new(&guard.url, &[stage.name()]);
    let registration = world.plane.register_webhooks(stage.name(), &webhooks);
    let wrong = rounds(&stage);
    drop(registration);
    stage.strike();
    match &wrong[..] {
        [] => Ok(()),
        wrong => Err(format!(
            "{} wrong answers:\n{}",
            wrong.len(),
            wrong.join("\n")
        )),
    }
}

fn rounds(stage: &Stage<'_>) -> Vec<String> {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        for number in 0..BUSY {
            let over = &over;
            scope.spawn(move || {
                let volume = free(&format!("busy-{number}"), &["ReadWriteOnce"]).storage();
                while !over.load(Ordering::Relaxed) {
                    // Whether it succeeds is of no interest.
                    let _ = stage.create(&volume);
                    let _ = stage.delete(&volume);
                }
            });
        }
        let players: Vec<_> = (0..AT_ONCE)
            .map(|first| {
                scope.spawn(move || {
                    let own = (first..ROUNDS).step_by(AT_ONCE);
                    own.filter_map(|number| round(stage, number).err())
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        let wrong = players.into_iter().flat_map(|player| match player.join() {
            Ok(wrong) => wrong,
            Err(_) => vec!["A player panicked.".to_owned()],
        });
        let wrong = wrong.collect();
        over.store(true, Ordering::Relaxed);
        wrong
    })
}

fn round(stage: &Stage<'_>, number: usize) -> Result<(), String> {
    let sharing = free(
        &format!("shared-{number}"),
        &["ReadWriteOnce", "ReadWriteMany"],
    );
    if let Some(refusal) = in_one_breath(stage, &sharing)? {
        return Err(format!("Round {number}: X12 was refused: {refusal}"));
    }
    let exclusive = free(&format!("alone-{number}"), &["ReadWriteOnce"]);
    match in_one_breath(stage, &exclusive)? {
        Some(_) => Ok(()),
        None => Err(format!("Round {number}: X12o was not refused.")),
    }
}

/// A volume that no claim has yet, for claims for ReadWriteOnce.
fn free(name: &str, modes: &[&'static str]) -> Volume {
    Volume::new(modes)
        .asking(&["ReadWriteOnce"])
        .named(name)
        .binding(Binding::None)
}

/// Makes a class, the volume, a claim for it and a Deployment of two; answers with the
/// refusal of the last.
fn in_one_breath(stage: &Stage<'_>, volume: &Volume) -> Result<Option<String>, String> {
    let name = volume.claim_name();
    let class = json!(format!("{{run}}-{name}"));
    let of_class = |mut object: Value, field: &str| {
        object["spec"][field] = class.clone();
        object
    };
    let mut manifest = Class::new(&volume.provisioner()).manifest();
    manifest["metadata"]["name"] = class.clone();
    stage.create(&manifest)?;
    stage.create(&of_class(volume.storage(), "storageClassName"))?;
    stage.write(
        &of_class(request(name, &["ReadWriteOnce"]), "storageClassName"),
        false,
    )?;
    let workload = Workload::deployment(name).recreate().replicas(2);
    match stage.write(&workload.claim(name).manifest(), false) {
        Ok(_) => Ok(None),
        Err(refusal) if refusal.contains("denied the request") => Ok(Some(refusal)),
        Err(reason) => Err(reason),
    }
}
