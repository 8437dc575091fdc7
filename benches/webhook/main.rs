//! The cost of a review over HTTPS: the real program, compared with the same server with a reviewer
//! that only looks for the uid, and with one that does not even read. All run at the same time,
//! each as its own process on one core, and alternate under the same load. Prints the servers' CPU
//! time per review and ratios, with the goals.

mod client;
mod process;
#[path = "../shared/mod.rs"]
mod shared;
mod stand_in;

use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use client::{Client, Protocol};
use process::{ServerProcess, pin_this_process};
use shared::cluster::{LARGE, SMALL};
use shared::reviews::{Sample, samples};
use stand_in::StandIn;

/// The guard's maximum cost, as a multiple of that of the server that only looks for the uid.
const GOAL: &str = "2.0 at most, 1.35 when built by make dist";

/// The number of reviews in one turn of one server.
const TURN: usize = 2_000;

/// The number of turns of each server.
const ROUNDS: usize = 15;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let arguments: Vec<String> = std::env::args().collect();
    if let Some((stand_in, ca)) = StandIn::from_arguments(&arguments) {
        return stand_in::serve(stand_in, &ca);
    }
    pin_this_process();
    let folder = tempfile::tempdir()?;
    let mut servers = vec![
        ServerProcess::stand_in(StandIn::Constant, folder.path())?,
        ServerProcess::stand_in(StandIn::Skim, folder.path())?,
        ServerProcess::guard("guard", SMALL, folder.path())?,
    ];
    let large = std::env::var_os("SMALL_ONLY").is_none();
    if large {
        servers.push(ServerProcess::guard("guard, large", LARGE, folder.path())?);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    // As in other benches, a word on the command line chooses samples by name.
    let wanted = arguments.iter().skip(1).find(|word| !word.starts_with('-'));
    let chosen: Vec<Sample> = samples()
        .into_iter()
        .filter(|sample| wanted.is_none_or(|word| sample.name.contains(word.as_str())))
        .collect();
    runtime.block_on(measure(&servers, &chosen))
}

async fn measure(servers: &[ServerProcess], samples: &[Sample]) -> Result<(), Box<dyn Error>> {
    for server in servers {
        println!(
            "{:14} ready after {:5} ms, {:6.1} MiB resident",
            server.name,
            server.started_in.as_millis(),
            server.resident_mib()?
        );
    }
    println!(
        "CPU microseconds a review, and as a multiple of \"uid only\" (goal for guard: {GOAL})"
    );
    for protocol in [Protocol::Http1, Protocol::Http2] {
        for sample in samples {
            costs(servers, protocol, sample).await?;
        }
    }
    println!(
        "at half load: the same, and latency in microseconds (goal for guard: CPU and p99 {GOAL})"
    );
    for protocol in [Protocol::Http1, Protocol::Http2] {
        if let Some(sample) = samples.first() {
            half_load(servers, protocol, sample).await?;
        }
    }
    Ok(())
}

/// Prints one line: the median over the rounds of each server's CPU time per review.
async fn costs(
    servers: &[ServerProcess],
    protocol: Protocol,
    sample: &Sample,
) -> Result<(), Box<dyn Error>> {
    let clients = clients(servers, protocol)?;
    let mut costs = vec![Vec::new(); servers.len()];
    for round in 0..=ROUNDS {
        for ((server, client), turns) in servers.iter().zip(&clients).zip(&mut costs) {
            let before = server.cpu_time()?;
            client.saturate(sample, TURN).await?;
            let each = (server.cpu_time()? - before) / u32::try_from(TURN)?;
            // The first round warms connections and caches.
            if round > 0 {
                turns.push(each);
            }
        }
    }
    print!("  {protocol} {:16}", sample.name);
    let medians: Vec<Duration> = costs.into_iter().map(median).collect();
    for (server, cost) in servers.iter().zip(&medians) {
        print!("  {}", overlay(server, *cost, medians[1]));
    }
    println!();
    Ok(())
}

/// Prints one line: CPU time per review and percentiles of each server's latency, at half of the
/// rate at which the uid-only server and this client together are saturated. Every server gets the
/// same number of reviews in the same time, so that none benefits from batches, which only occur
/// under full load.
async fn half_load(
    servers: &[ServerProcess],
    protocol: Protocol,
    sample: &Sample,
) -> Result<(), Box<dyn Error>> {
    let clients = clients(servers, protocol)?;
    let full_rate = clients[1].saturate(sample, 10 * TURN).await?;
    let pause = (full_rate / u32::try_from(10 * TURN)?) * 2;
    let mut latencies = vec![Vec::new(); servers.len()];
    let mut costs = vec![Vec::new(); servers.len()];
    for round in 0..=ROUNDS {
        for (number, (server, client)) in servers.iter().zip(&clients).enumerate() {
            let before = server.cpu_time()?;
            let seen = client.at_pace(sample, TURN, pause).await?;
            let each = (server.cpu_time()? - before) / u32::try_from(TURN)?;
            if round > 0 {
                latencies[number].extend(seen);
                costs[number].push(each);
            }
        }
    }
    let medians: Vec<Duration> = costs.into_iter().map(median).collect();
    print!("  {protocol} every {:.0}", pause.as_secs_f64() * 1e6);
    for ((server, mut sorted), cost) in servers.iter().zip(latencies).zip(&medians) {
        sorted.sort_unstable();
        let at = |share: usize| sorted[sorted.len() * share / 100].as_micros();
        let cost = overlay(server, *cost, medians[1]);
        print!("  {cost} p50 {} p99 {}", at(50), at(99));
    }
    println!();
    Ok(())
}

/// A server's CPU time per review in microseconds, and as a multiple of the uid-only one's.
fn overlay(server: &ServerProcess, cost: Duration, uid_only: Duration) -> String {
    let (cost, uid_only) = (cost.as_secs_f64(), uid_only.as_secs_f64());
    format!("{} {:.1} ({:.2})", server.name, cost * 1e6, cost / uid_only)
}

fn clients(servers: &[ServerProcess], protocol: Protocol) -> Result<Vec<Client>, Box<dyn Error>> {
    servers.iter().map(|server| Client::new(server, protocol)).collect()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
