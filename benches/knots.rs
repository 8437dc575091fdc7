//! The maximum work that one object can cause: judgements in random clusters that are made to be
//! hard. Prints the slowest, next to the goal.

#![allow(clippy::unwrap_used, reason = "a bench that cannot run has nothing else to say")]

#[path = "shared/mod.rs"]
mod shared;

use std::borrow::Cow;
use std::time::Duration;

use engine::model::object::{Object, ObjectKind, ObjectRef};
use engine::snapshot::Snapshot;
use engine::verdict::{Document, EffectivePolicy, Mode, Review, Verdict, evaluate};
use serde_json::Value;
use shared::knots::{GOAL, Knot, Lot};
use source::policy_file;

const CLUSTERS: usize = 300;

/// A document without any content; the engine uses only the object's facts.
struct NoDocument;

impl Document for NoDocument {
    fn object(&self) -> Option<&Value> {
        None
    }

    fn requester(&self) -> Option<Cow<'_, str>> {
        None
    }
}

fn judge(knot: &Knot, cluster: &Snapshot, effective: &EffectivePolicy) -> Verdict {
    let Object::Workload(workload) = &knot.judged else { unreachable!("knots are of workloads") };
    let reference = ObjectRef {
        api_version: format!("{}/v1", ObjectKind::Workload(workload.kind).group()).into(),
        kind: workload.kind.name().into(),
        namespace: Some("shop".into()),
        name: "w-0".into(),
    };
    let review = Review {
        object: &knot.judged,
        old: None,
        reference: &reference,
        scaled: None,
        document: &NoDocument,
        mode: Mode::Judge,
    };
    evaluate(&review, cluster.view(), effective)
}

/// The time that this thread has run on a processor (`proc_pid_schedstat`), independent of other
/// work on the machine.
fn on_processor() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    let nanoseconds = text.split(' ').next().unwrap();
    Duration::from_nanos(nanoseconds.parse().unwrap())
}

fn main() {
    let effective = policy_file::effective(None).unwrap();
    for (title, sizes) in [
        ("80 workloads (goal: 50 ms at most)", &[GOAL] as &[_]),
        ("up to 2,000 workloads", &[10, 20, 40, GOAL, 200, 2_000]),
    ] {
        let mut lot = Lot::new(1);
        let mut slowest = (Duration::ZERO, String::new());
        let mut too_complex = 0;
        for _ in 0..CLUSTERS {
            let mut knot = Knot::draw(&mut lot, sizes);
            let mut cluster = Snapshot::complete();
            for object in knot.objects.drain(..) {
                cluster.apply(object);
            }
            // The faster of two runs is the one that was disturbed less.
            let took = (0..2).map(|_| {
                let start = on_processor();
                let verdict = judge(&knot, &cluster, &effective);
                (on_processor() - start, verdict.too_complex)
            });
            let (took, is_given_up) = took.min().unwrap();
            too_complex += usize::from(is_given_up);
            if took > slowest.0 {
                slowest = (took, knot.drawn);
            }
        }
        println!("{title}: {CLUSTERS} clusters, {too_complex} given up");
        println!("  slowest {:?}: {}", slowest.0, slowest.1);
    }
}
