//! The cost of a decision alone: reading a review, judging it and writing the answer, compared with
//! only looking for its uid. Prints ratios, next to the goals.

#![allow(clippy::unwrap_used, reason = "a bench that cannot run has nothing else to say")]

#[path = "shared/mod.rs"]
mod shared;

use std::hint::black_box;
use std::time::{Duration, Instant};

use engine::snapshot::Snapshot;
use engine::verdict::EffectivePolicy;
use jiff::Timestamp;
use shared::cluster::{LARGE, SMALL, Size};
use shared::reviews::{Sample, samples, skim};
use source::policy_file;
use webhook::admission::{Decision, Endpoint, Received};

const ROUNDS: usize = 41;

fn cluster(size: Size) -> Snapshot {
    let mut cluster = Snapshot::complete();
    for manifest in size.manifests() {
        cluster.apply(manifest.read());
    }
    cluster
}

fn answer(sample: &Sample, cluster: &Snapshot, effective: &EffectivePolicy) -> Decision {
    let received = Received::read(sample.body.as_bytes(), Timestamp::UNIX_EPOCH).unwrap();
    let verdict = received.judge(Endpoint::Validate, cluster.view(), effective);
    let answer = received.answer(Endpoint::Validate, &verdict);
    black_box(&answer.body);
    answer.decision
}

/// The fastest of several runs of each, which was disturbed least. The runs alternate, so that all
/// meet the same disturbances.
fn fastest<const N: usize>(mut works: [&mut dyn FnMut(); N]) -> [Duration; N] {
    const CALLS: u32 = 500;
    let mut fastest = [Duration::MAX; N];
    for _ in 0..ROUNDS {
        for (work, best) in works.iter_mut().zip(&mut fastest) {
            let start = Instant::now();
            for _ in 0..CALLS {
                work();
            }
            *best = (*best).min(start.elapsed() / CALLS);
        }
    }
    fastest
}

fn main() {
    let effective = policy_file::effective(None).unwrap();
    let (small, large) = (cluster(SMALL), cluster(LARGE));
    println!(
        "nanoseconds a review            bytes   skim   read   full  full/skim  large/small cluster (goal: 1.20 at most)"
    );
    for sample in samples() {
        let decision = answer(&sample, &small, &effective);
        assert_eq!(decision != Decision::Denied, sample.allowed, "{}", sample.name);
        let body = sample.body.as_bytes();
        let [skimmed, read, full, in_large] = fastest([
            &mut || drop(black_box(skim(body))),
            &mut || {
                black_box(Received::read(body, Timestamp::UNIX_EPOCH).unwrap());
            },
            &mut || {
                answer(&sample, &small, &effective);
            },
            &mut || {
                answer(&sample, &large, &effective);
            },
        ]);
        let ratio = |a: Duration, b: Duration| a.as_secs_f64() / b.as_secs_f64();
        println!(
            "  {:28} {:6} {:6} {:6} {:6} {:10.2} {:12.2}",
            sample.name,
            body.len(),
            skimmed.as_nanos(),
            read.as_nanos(),
            full.as_nanos(),
            ratio(full, skimmed),
            ratio(in_large, full),
        );
    }
}
