//! One of two replicas ends while the API server asks them.

use std::time::Instant;

use crate::Played;
use crate::harness::{GuardOptions, WebhookOptions};
use crate::load::{DEADLINE, Load, Pace};
use crate::service::Service;
use crate::world::World;

/// Each request is two reviews: one for either webhook.
const PACE: Pace = Pace {
    askers: 16,
    rate: 300.0,
};

/// Requests before and after.
const SOME: usize = 300;

/// Asked to end, it answers what is under way, and lets the others go elsewhere.
pub(crate) fn one_is_ended(world: &'static World) -> Result<Played, String> {
    one_of_two(world, "TERM")
}

/// Killed, it takes with it what it was just answering, as the API server does not ask a
/// second time, and what came by its connections, or by one that its socket still took,
/// before the API server knew. Whatever is sent afterwards is answered.
pub(crate) fn one_is_killed(world: &'static World) -> Result<Played, String> {
    one_of_two(world, "KILL")
}

fn one_of_two(world: &'static World, signal: &str) -> Result<Played, String> {
    let plane = world.plane;
    let options = GuardOptions {
        arguments: vec!["--shutdown-delay=1s".to_owned()],
        ..GuardOptions::default()
    };
    let replicas = ["one", "other"].map(|name| plane.guard(&format!("{signal}-{name}"), &options));
    let service = Service::before(plane, &replicas.each_ref());
    let webhooks = WebhookOptions::new(&service.url, &[&world.namespace]);
    let _registration = plane.register_webhooks("faults", &webhooks);

    let load = Load::start(plane.runtime().handle(), PACE, |number| {
        world.ask_the_api_server(number)
    });
    load.until_more(SOME)?;
    let (number, busier) = replicas
        .iter()
        .enumerate()
        .max_by_key(|(_, it)| it.count(plane, "multi_attach_guard_reviews_total{"))
        .unwrap();
    let began = Instant::now();
    busier.program.signal(signal);
    busier.program.wait(DEADLINE)?;
    plane.block_on(service.until_left(number))?;
    let known = Instant::now();
    load.until_more(SOME)?;
    let tally = load.end();

    let rate = 2.0 * tally.rate();
    Ok(match signal {
        "KILL" => Played {
            unanswerable: tally
                .failed
                .iter()
                .filter(|it| it.sent < known && began <= it.ended)
                .count(),
            remark: format!(
                "{rate:.0} reviews a second; what failed came to what died, before that was known"
            ),
            tally,
        },
        _ => Played {
            unanswerable: 0,
            remark: format!("{rate:.0} reviews a second"),
            tally,
        },
    })
}
