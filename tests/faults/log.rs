//! There is no room for the log.

use crate::Played;
use crate::harness::GuardOptions;
use crate::world::{self, World};

/// Requests; every second one is a denial that would be logged.
const SOME: usize = 300;

pub(crate) fn disk_is_full(world: &'static World) -> Result<Played, String> {
    let options = GuardOptions {
        // There is never room on it: full(4).
        output: Some("/dev/full".into()),
        ..world::sure()
    };
    let guard = world.plane.guard("full", &options);
    let load = world.load(&guard);
    load.until_more(SOME)?;
    let tally = load.end();
    let panics = guard.count(world.plane, "multi_attach_guard_review_panics_total");
    match panics {
        0 => Ok(Played::answered(tally, "every second request is logged")),
        _ => Err(format!("{panics} reviews panicked.")),
    }
}
