//! Draws a volume at risk, step by step: the pods on each node, and the node that the volume is
//! attached to.

use maud::{Markup, html};

use super::super::Located;
use engine::model::words::cut;
use engine::rules::Outcome;

/// One step.
struct Frame<'p> {
    caption: &'static str,
    /// The index of the node that the volume is attached to.
    holder: usize,
    /// The pods that run on that node.
    runs: Vec<&'p str>,
    /// The pods that cannot start on the other node.
    waits: Vec<&'p str>,
}

/// The nodes of a picture: one with the volume and another one.
const NODES: [&str; 2] = ["a node", "another node"];

impl<'p> Frame<'p> {
    fn new(caption: &'static str, holder: usize, runs: &[&'p str], waits: &[&'p str]) -> Self {
        Self { caption, holder, runs: runs.to_vec(), waits: waits.to_vec() }
    }
}

/// The steps of the hazard if nobody acts; empty if no pods are at fault.
pub(super) fn of(located: &Located) -> Markup {
    let finding = &located.finding;
    if finding.object.kind == "PersistentVolumeClaim" {
        return html! {};
    }
    let users = located.users.iter();
    let mut others = users
        .filter(|user| user.name != finding.object.name || user.kind != finding.object.kind)
        .map(|user| user.name.as_str());
    // An autoscaler or a Scale has the pods of its workload.
    let (name, other) = match finding.object.kind.as_str() {
        "HorizontalPodAutoscaler" | "Scale" => {
            (others.next().unwrap_or(&finding.object.name), None)
        }
        _ => (finding.object.name.as_str(), others.next()),
    };
    let outcome = finding.outcome;
    let [old, new] = &generations(name);
    let (title, steps) = match (outcome, other) {
        (Outcome::Deadlock, _) | (Outcome::Delay, None) => {
            ("During a rollout", rollout(old, new, outcome))
        }
        (Outcome::Delay | Outcome::Stuck, Some(other)) => {
            ("While both run", both(other, name, outcome))
        }
        (Outcome::Stuck, None) => ("Where the pods run", alone(name)),
        _ => return html! {},
    };
    strip(title, located, &steps)
}

/// A rollout that starts the new pod on another node.
fn rollout<'p>(old: &'p str, new: &'p str, outcome: Outcome) -> Vec<Frame<'p>> {
    let before = "Before a rollout, the pod runs where the volume is attached.";
    let during = "The rollout starts the new pod first, and the scheduler may choose another node.";
    let stuck = "The old pod stays until the new one is ready, and the new one waits for the volume: the rollout never ends.";
    let after = "The old pod is gone; the volume follows, and the new pod runs.";
    vec![
        Frame::new(before, 0, &[old], &[]),
        Frame::new(during, 0, &[old], &[new]),
        if outcome == Outcome::Deadlock {
            Frame::new(stuck, 0, &[old], &[new])
        } else {
            Frame::new(after, 1, &[new], &[])
        },
    ]
}

/// Two pods of one workload on two nodes.
fn alone(name: &str) -> Vec<Frame<'_>> {
    let first = "The first pod runs where the volume is attached.";
    let second = "A pod on another node never starts.";
    vec![Frame::new(first, 0, &[name], &[]), Frame::new(second, 0, &[name], &[name])]
}

/// Two workloads on two nodes.
fn both<'p>(first: &'p str, second: &'p str, outcome: Outcome) -> Vec<Frame<'p>> {
    let caption = if outcome == Outcome::Stuck {
        "The other one, on another node, never starts while the first one runs."
    } else {
        "The other one, on another node, waits until the first one is done."
    };
    let before = "The first one runs where the volume is attached.";
    vec![Frame::new(before, 0, &[first], &[]), Frame::new(caption, 0, &[first], &[second])]
}

/// The same rollout with the remedy; empty if a picture would add nothing.
pub(super) fn with(located: &Located, remedy: &str) -> Markup {
    let [old, new] = &generations(&located.finding.object.name);
    let free = "It is stopped first, and the volume is free.";
    let moved = "The new pod starts on any node, and the volume follows.";
    let kept = "All pods are kept on the node that has the volume.";
    let steps = match remedy {
        "recreate" | "zero-surge" => vec![
            Frame::new("The old pod runs.", 0, &[old], &[]),
            Frame::new(free, 0, &[], &[]),
            Frame::new(moved, 1, &[new], &[]),
        ],
        "colocate" => vec![Frame::new(kept, 0, &[old, new], &[])],
        _ => return html! {},
    };
    strip("During a rollout with the remedy", located, &steps)
}

fn strip(title: &str, located: &Located, steps: &[Frame<'_>]) -> Markup {
    let volume = located.finding.volumes.first().map_or("volume", |name| name.as_str());
    html! {
        h4 { (title) }
        ol.steps {
            @for (number, step) in steps.iter().enumerate() {
                li {
                    figure {
                        (drawing(volume, step))
                        figcaption { (number + 1) ". " (step.caption) }
                    }
                }
            }
        }
    }
}

/// The step in words for screen readers: the node and the state of each pod.
fn in_words(volume: &str, step: &Frame<'_>) -> String {
    let (here, there) = (NODES[step.holder], NODES[1 - step.holder]);
    let runs = step.runs.iter().map(|pod| format!("{pod} runs on {here}"));
    let waits = step.waits.iter().map(|pod| format!("{pod} waits on {there}"));
    let mut pods: Vec<String> = runs.chain(waits).collect();
    if pods.is_empty() {
        pods.push("no pod runs".to_owned());
    }
    format!("{volume} is attached to {here}; {}.", pods.join("; "))
}

/// The most characters that fit in a box.
const FIT: usize = 18;

/// The labels of the pods before and after a rollout, shortened so that they still differ in a box.
fn generations(name: &str) -> [String; 2] {
    ["(old)", "(new)"].map(|which| {
        let name = cut(name, FIT - which.len() - 1);
        format!("{name} {which}")
    })
}

fn drawing(volume: &str, step: &Frame<'_>) -> Markup {
    const WIDTH: usize = 142;
    const LEFT: [usize; 2] = [4, 154];
    let disk = LEFT[step.holder] + 30;
    html! {
        svg viewBox="0 0 300 168" role="img" aria-label=(in_words(volume, step)) {
            @for (number, node) in NODES.iter().enumerate() {
                rect.node x=(LEFT[number]) y="4" width=(WIDTH) height="112" rx="6" {}
                text x=(LEFT[number] + 8) y="20" { (node) }
                @let runs = number == step.holder;
                @for (at, pod) in (if runs { &step.runs } else { &step.waits }).iter().enumerate() {
                    @let top = 28 + at * 42;
                    @if runs {
                        line.mount x1=(LEFT[number] + 71) y1=(top + 36) x2=(LEFT[number] + 71) y2="130" {}
                    }
                    rect class=(if runs { "pod runs" } else { "pod waits" })
                        x=(LEFT[number] + 8) y=(top) width=(WIDTH - 16) height="36" rx="5" {}
                    text x=(LEFT[number] + 14) y=(top + 15) { (cut(pod, FIT)) }
                    text x=(LEFT[number] + 14) y=(top + 30) {
                        @if runs { "✓ runs" } @else { "✗ cannot start" }
                    }
                }
            }
            rect.volume x=(disk - 26) y="130" width="134" height="30" rx="12" {}
            text x=(disk - 14) y="149" { (cut(volume, FIT)) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_leave_room_for_what_tells_pods_apart() {
        assert_eq!(generations("web"), ["web (old)", "web (new)"]);
        for label in generations("ledger-of-the-payments") {
            assert_eq!(cut(&label, FIT), label);
            assert!(label.ends_with(')'), "{label}");
        }
    }
}
