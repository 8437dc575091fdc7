//! The cost of the cluster in memory: memory per object, look-ups in a large cluster compared with
//! the same look-ups in a small one, and look-ups while others write. Prints ratios, next to the
//! goals.

#![allow(clippy::unwrap_used, reason = "a bench that cannot run has nothing else to say")]

#[path = "shared/mod.rs"]
mod shared;

use std::fs;
use std::hint::black_box;
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use engine::model::labels::Labels;
use engine::model::workload::WorkloadKind;
use engine::snapshot::{NodeHint, Snapshot, View};
use shared::cluster::{
    LARGE, Manifest, claim, claim_name, claim_of, largest, namespace, node, volume, workload,
};

/// The resident memory of this process in bytes (`proc_pid_statm(5)`, 4 KiB pages).
fn resident() -> usize {
    let statm = fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

fn memory_of(what: &str, count: usize, cluster: &mut Snapshot, make: fn(usize) -> Manifest) {
    let before = resident();
    for number in 0..count {
        cluster.apply(make(number).read());
    }
    let each = (resident() - before) as f64 / count as f64;
    println!("memory per {what}, beside 1 KiB: {:.2} (goal: 1.00 at most)", each / 1024.0);
}

/// The memory for twice as many large objects as the limit allows.
fn memory_of_the_largest() {
    const LIMIT: usize = 192 << 20;
    let mut cluster = Snapshot::complete().limited(LIMIT);
    let before = resident();
    for number in 0..2 * LIMIT / (20 << 10) {
        cluster.apply(largest(number).read());
    }
    let (taken, usage) = ((resident() - before) as f64, cluster.usage());
    println!(
        "memory of the largest objects, beside the limit: {:.2} (goal: 1.30 at most), {} left out",
        taken / LIMIT as f64,
        usage.left_out
    );
}

/// The look-ups of one decision about a Deployment with one claim.
fn decision(view: View<'_>, number: usize) {
    let namespace = namespace(number);
    let name = claim_name(number);
    let labels: Labels =
        [("app.kubernetes.io/instance", format!("checkout-{number}"))].into_iter().collect();
    let hint = NodeHint {
        key: "topology.kubernetes.io/zone",
        values: vec!["eu-central-1a".into()].into(),
    };
    let claim = view.claim(&namespace, &name).found().unwrap();
    black_box(view.volume(&claim.spec.volume_name));
    black_box(view.storage_class("gp3-encrypted"));
    black_box(view.csi_driver("ebs.csi.aws.com"));
    black_box(view.workloads_using(&namespace, &name));
    black_box(view.autoscalers_of(WorkloadKind::Deployment, &namespace, &name));
    black_box(view.nodes(Some(hint)).take(2).count());
    let workloads = view.workloads_with(Some(&namespace), labels);
    black_box(workloads.count());
}

/// The fastest of several runs, which was disturbed least.
fn time_of(view: View<'_>, objects: usize) -> Duration {
    const ROUNDS: usize = 20_000;
    (0..15)
        .map(|_| {
            let start = Instant::now();
            for round in 0..ROUNDS {
                decision(view, round * 7919 % objects);
            }
            start.elapsed()
        })
        .min()
        .unwrap()
}

/// The median and the 99th percentile of one decision. Each decision takes the lock once, while
/// another thread makes a change every `pause`.
fn beside_a_writer(cluster: &RwLock<Snapshot>, pause: Option<Duration>) -> [Duration; 2] {
    const DECISIONS: usize = 100_000;
    let done = AtomicBool::new(false);
    let mut times = Vec::with_capacity(DECISIONS);
    thread::scope(|scope| {
        if let Some(pause) = pause {
            let done = &done;
            scope.spawn(move || {
                let mut number = 0;
                while !done.load(Ordering::Relaxed) {
                    number += 1;
                    let changed = claim_of("shop", "changing", number).read();
                    cluster.write().unwrap().apply(changed);
                    thread::sleep(pause);
                }
            });
        }
        for round in 0..DECISIONS {
            let start = Instant::now();
            decision(cluster.read().unwrap().view(), round * 7919 % LARGE.workloads);
            times.push(start.elapsed());
        }
        done.store(true, Ordering::Relaxed);
    });
    times.sort_unstable();
    [times[DECISIONS / 2], times[DECISIONS / 100 * 99]]
}

fn main() {
    memory_of_the_largest();
    let mut large = Snapshot::complete();
    memory_of("claim", LARGE.claims, &mut large, claim);
    memory_of("persistent volume", LARGE.claims, &mut large, volume);
    memory_of("workload", LARGE.workloads, &mut large, workload);
    memory_of("node", LARGE.nodes, &mut large, node);

    let mut small = Snapshot::complete();
    for number in 0..10 {
        small.apply(claim(number).read());
        small.apply(volume(number).read());
        small.apply(workload(number).read());
        small.apply(node(number).read());
    }
    // The same ten objects in both, so that the processor's cache holds them in either case.
    let (few, same) = (time_of(small.view(), 10), time_of(large.view(), 10));
    let spread = time_of(large.view(), LARGE.workloads);
    let ratio = |time: Duration| time.as_secs_f64() / few.as_secs_f64();
    println!(
        "look-ups of a decision in {} nodes, {} claims, {} workloads, beside a nearly empty cluster:",
        LARGE.nodes, LARGE.claims, LARGE.workloads
    );
    println!("  about the same few objects: {:.2} (goal: 1.20 at most)", ratio(same));
    println!("  about other objects each time: {:.2}", ratio(spread));
    let large = RwLock::new(large);
    let alone = beside_a_writer(&large, None);
    let written = beside_a_writer(&large, Some(Duration::from_micros(100)));
    println!(
        "  while another thread changes about 5,000 objects a second, beside undisturbed: median {:.2}, 99th percentile {:.2}",
        written[0].as_secs_f64() / alone[0].as_secs_f64(),
        written[1].as_secs_f64() / alone[1].as_secs_f64()
    );
}
