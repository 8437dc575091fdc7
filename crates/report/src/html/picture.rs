//! Draws a volume at risk, step by step: the pods on each node, and the node that the volume is
//! attached to.

use maud::{Markup, html};

use super::super::Located;
use engine::model::words::cut;
use engine::rules::Outcome;

/// One step with two pods, which are numbered 0 and 1.
struct Frame {
    caption: &'static str,
    /// The index of the node that the volume is attached to.
    holder: usize,
    /// The pods that run on that node.
    runs: &'static [usize],
    /// The pods that cannot start on the other node.
    waits: &'static [usize],
}

/// A step with the volume on the node `holder`.
const fn frame(
    caption: &'static str,
    holder: usize,
    runs: &'static [usize],
    waits: &'static [usize],
) -> Frame {
    Frame { caption, holder, runs, waits }
}

/// The steps of a rollout that starts the new pod on another node.
const BEFORE: Frame =
    frame("Before a rollout, the pod runs where the volume is attached.", 0, &[0], &[]);
const DURING: Frame = frame(
    "The rollout starts the new pod first, and the scheduler may choose another node.",
    0,
    &[0],
    &[1],
);
const STUCK: Frame = frame(
    "The old pod stays until the new one is ready, and the new one waits for the volume: the rollout never ends.",
    0,
    &[0],
    &[1],
);
const AFTER: Frame =
    frame("The old pod is gone; the volume follows, and the new pod runs.", 1, &[1], &[]);

/// Two pods of one workload on two nodes.
const ALONE: [Frame; 2] = [
    frame("The first pod runs where the volume is attached.", 0, &[0], &[]),
    frame("A pod on another node never starts.", 0, &[0], &[1]),
];

/// The steps of two workloads on two nodes.
const FIRST: Frame = frame("The first one runs where the volume is attached.", 0, &[0], &[]);
const NEVER: Frame =
    frame("The other one, on another node, never starts while the first one runs.", 0, &[0], &[1]);
const LATER: Frame =
    frame("The other one, on another node, waits until the first one is done.", 0, &[0], &[1]);

/// A rollout that stops the old pod first, as some remedies make it.
const STOPPED: [Frame; 3] = [
    frame("The old pod runs.", 0, &[0], &[]),
    frame("It is stopped first, and the volume is free.", 0, &[], &[]),
    frame("The new pod starts on any node, and the volume follows.", 1, &[1], &[]),
];
/// A rollout on one node.
const KEPT: [Frame; 1] =
    [frame("All pods are kept on the node that has the volume.", 0, &[0, 1], &[])];

/// The nodes of a picture: one with the volume and another one.
const NODES: [&str; 2] = ["a node", "another node"];

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
    let [old, new] = &generations(name);
    let rollout = [old, new].map(String::as_str);
    match (finding.outcome, other) {
        (Outcome::Deadlock, _) => {
            strip("During a rollout", located, rollout, &[BEFORE, DURING, STUCK])
        }
        (Outcome::Delay, None) => {
            strip("During a rollout", located, rollout, &[BEFORE, DURING, AFTER])
        }
        (Outcome::Delay, Some(other)) => {
            strip("While both run", located, [other, name], &[FIRST, LATER])
        }
        (Outcome::Stuck, Some(other)) => {
            strip("While both run", located, [other, name], &[FIRST, NEVER])
        }
        (Outcome::Stuck, None) => strip("Where the pods run", located, [name, name], &ALONE),
        _ => html! {},
    }
}

/// The same rollout with the remedy; empty if a picture would add nothing.
pub(super) fn with(located: &Located, remedy: &str) -> Markup {
    let [old, new] = &generations(&located.finding.object.name);
    let steps: &[Frame] = match remedy {
        "recreate" | "zero-surge" => &STOPPED,
        "colocate" => &KEPT,
        _ => return html! {},
    };
    strip("During a rollout with the remedy", located, [old, new].map(String::as_str), steps)
}

fn strip(title: &str, located: &Located, pods: [&str; 2], steps: &[Frame]) -> Markup {
    let volume = located.finding.volumes.first().map_or("volume", |name| name.as_str());
    html! {
        h4 { (title) }
        ol.steps {
            @for (number, step) in steps.iter().enumerate() {
                li {
                    figure {
                        (drawing(volume, pods, step))
                        figcaption { (number + 1) ". " (step.caption) }
                    }
                }
            }
        }
    }
}

/// The step in words for screen readers: the node and the state of each pod.
fn in_words(volume: &str, pods: [&str; 2], step: &Frame) -> String {
    let (here, there) = (NODES[step.holder], NODES[1 - step.holder]);
    let runs = step.runs.iter().map(|pod| format!("{} runs on {here}", pods[*pod]));
    let waits = step.waits.iter().map(|pod| format!("{} waits on {there}", pods[*pod]));
    let mut states: Vec<String> = runs.chain(waits).collect();
    if states.is_empty() {
        states.push("no pod runs".to_owned());
    }
    format!("{volume} is attached to {here}; {}.", states.join("; "))
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

fn drawing(volume: &str, pods: [&str; 2], step: &Frame) -> Markup {
    const WIDTH: usize = 142;
    const LEFT: [usize; 2] = [4, 154];
    let disk = LEFT[step.holder] + 30;
    html! {
        svg viewBox="0 0 300 168" role="img" aria-label=(in_words(volume, pods, step)) {
            @for (number, node) in NODES.iter().enumerate() {
                rect.node x=(LEFT[number]) y="4" width=(WIDTH) height="112" rx="6" {}
                text x=(LEFT[number] + 8) y="20" { (node) }
                @let runs = number == step.holder;
                @for (at, pod) in (if runs { step.runs } else { step.waits }).iter().enumerate() {
                    @let top = 28 + at * 42;
                    @if runs {
                        line.mount x1=(LEFT[number] + 71) y1=(top + 36) x2=(LEFT[number] + 71) y2="130" {}
                    }
                    rect class=(if runs { "pod runs" } else { "pod waits" })
                        x=(LEFT[number] + 8) y=(top) width=(WIDTH - 16) height="36" rx="5" {}
                    text x=(LEFT[number] + 14) y=(top + 15) { (cut(pods[*pod], FIT)) }
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
