//! The guard's certificate is swapped, half-written, and replaced by one that has expired.

use std::fs;

use crate::Played;
use crate::harness::{ControlPlane, Guard, wait_until};
use crate::load::DEADLINE;
use crate::world::{self, World};

/// Requests after each change.
const SOME: usize = 100;

pub(crate) fn it_changes(world: &'static World) -> Result<Played, String> {
    let plane = world.plane;
    let guard = plane.guard("certificate", &world::sure());
    let load = world.load_of_newcomers(&guard);
    load.until_more(SOME)?;

    // The certificate first, then its key, as somebody would copy them.
    plane.pki.serving("guard-certificate");
    until_reloaded(plane, &guard, "success", 1)?;
    load.until_more(SOME)?;

    let before = reloads(plane, &guard, "failure");
    let whole = fs::read(&guard.certificate).unwrap();
    fs::write(&guard.certificate, &whole[..whole.len() / 2]).unwrap();
    until_reloaded(plane, &guard, "failure", before + 1)?;
    load.until_more(SOME)?;

    let before = reloads(plane, &guard, "failure");
    plane.pki.expired_serving("guard-certificate");
    until_reloaded(plane, &guard, "failure", before + 1)?;
    load.until_more(SOME)?;
    Ok(Played::answered(load.end(), "the last good one stays"))
}

/// How often the certificate was read again with that result.
fn reloads(plane: &ControlPlane, guard: &Guard, result: &str) -> u64 {
    let series = format!("multi_attach_guard_certificate_reloads_total{{result=\"{result}\"}}");
    guard.count(plane, &series)
}

fn until_reloaded(
    plane: &ControlPlane,
    guard: &Guard,
    result: &str,
    wanted: u64,
) -> Result<(), String> {
    let what = format!("{wanted} times {result} in reading the certificate");
    wait_until(&what, DEADLINE, || match reloads(plane, guard, result) {
        count if count >= wanted => Ok(()),
        count => Err(count.to_string()),
    })
}
