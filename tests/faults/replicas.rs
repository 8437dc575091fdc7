//! One of two replicas ends while the API server asks them.

use std::time::Instant;

use crate::Played;
use crate::fault_test::FaultTest;
use crate::harness::{GuardOptions, WebhookOptions, sum};
use crate::load::{DEADLINE, Load};
use crate::service::Service;

/// The maximal number of requests a second. Each causes two reviews, one for each webhook.
const RATE: u32 = 300;

/// The number of requests before and after the fault.
const SOME: usize = 300;

/// One of two replicas ends. On `TERM`, it answers the requests under way, and new ones go to the
/// other replica. On `KILL`, requests are lost that it was answering, because the API server does
/// not send them again, and requests that were sent on its connections, or on one that its socket
/// still accepted, before the API server noticed. With the failure policy `Ignore` these pass, and
/// the API server counts them. All later requests are answered.
pub(crate) fn one_of_two(
    test: &'static FaultTest,
    signal: &str,
    failure_policy: &'static str,
) -> Result<Played, String> {
    let plane = test.plane;
    let options = GuardOptions::default().with(&["--shutdown-delay=1s"]);
    let start = |name: &str| plane.guard(&format!("{signal}-{failure_policy}-{name}"), &options);
    let replicas = ["one", "other"].map(start);
    let service = Service::before(plane, &replicas.each_ref());
    let webhooks =
        WebhookOptions { failure_policy, ..WebhookOptions::new(&service.url, &[&test.namespace]) };
    let _registration = plane.register_webhooks("faults", &webhooks);

    let load =
        Load::start(plane.runtime().handle(), RATE, |number| test.ask_the_api_server(number));
    load.until_more(SOME)?;
    let passed = passed_unasked(test);
    let (number, busier) = replicas
        .iter()
        .enumerate()
        .max_by_key(|(_, replica)| replica.count(plane, "multi_attach_guard_reviews_total{"))
        .unwrap();
    let began = Instant::now();
    busier.program.signal(signal);
    busier.program.wait(DEADLINE)?;
    plane.block_on(service.until_left(number))?;
    let known = Instant::now();
    load.until_more(SOME)?;
    let mut tally = load.end();
    let passed = passed_unasked(test) - passed;
    if failure_policy == "Ignore" && tally.wrong.len() as u64 <= passed {
        tally.failed.append(&mut tally.wrong);
    }

    let reviews = 2_000 * tally.sent as u128 / tally.took.as_millis();
    let remark = format!("{reviews} reviews a second");
    if signal == "TERM" {
        return Ok(Played::answered(tally, remark));
    }
    let under_way =
        tally.failed.iter().filter(|miss| miss.sent < known && began <= miss.ended).count();
    Ok(Played {
        unanswerable: under_way,
        remark: remark + "; what failed came to what died, before that was known",
        tally,
    })
}

/// The number of objects that passed because the API server could not call the validating webhook.
fn passed_unasked(test: &FaultTest) -> u64 {
    let name = "apiserver_admission_webhook_fail_open_count";
    sum(&test.plane.exposition(), name, &[r#"type="validating""#])
}
