//! A volume at risk, step by step: which pods are on which nodes, and who holds it.

use maud::{Markup, html};

use super::super::Located;
use engine::rules::Outcome;

/// What a pod does at a step.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PodState {
    Runs,
    Waits,
}

struct Pod {
    label: String,
    state: PodState,
    /// The number of its node.
    node: usize,
}

/// One moment.
struct Frame {
    caption: String,
    pods: Vec<Pod>,
    /// The node that the volume is attached to.
    holder: usize,
}

/// How many nodes a picture has: one that holds the volume and another one.
const NODES: [&str; 2] = ["a node", "another node"];

impl Frame {
    fn new(caption: &str, holder: usize) -> Self {
        Self {
            caption: caption.to_owned(),
            pods: Vec::new(),
            holder,
        }
    }

    fn pod(mut self, label: &str, state: PodState, node: usize) -> Self {
        self.pods.push(Pod {
            label: label.to_owned(),
            state,
            node,
        });
        self
    }
}

/// How the hazard ends when nobody steps in; empty where no pods are at fault.
pub(super) fn of(located: &Located) -> Markup {
    let finding = &located.finding;
    if finding.object.kind == "PersistentVolumeClaim" {
        return html! {};
    }
    let users = located.users.iter();
    let mut others = users
        .filter(|user| user.name != finding.object.name || user.kind != finding.object.kind)
        .map(|user| user.name.as_str());
    // The pods of an autoscaler or a Scale are those of the workload.
    let (name, other) = match finding.object.kind.as_str() {
        "HorizontalPodAutoscaler" | "Scale" => {
            (others.next().unwrap_or(&finding.object.name), None)
        }
        _ => (finding.object.name.as_str(), others.next()),
    };
    let outcome = finding.outcome;
    let (title, steps) = match (outcome, other) {
        (Outcome::Deadlock, _) | (Outcome::Delay, None) => {
            ("What a rollout does", rollout(name, outcome))
        }
        (Outcome::Delay | Outcome::Stuck, Some(other)) => {
            ("What happens when both run", both(other, name, outcome))
        }
        (Outcome::Stuck, None) => (
            "What happens to the pods",
            vec![
                Frame::new("The first pod runs where the volume is attached.", 0).pod(
                    name,
                    PodState::Runs,
                    0,
                ),
                Frame::new("A pod on another node never starts.", 0)
                    .pod(name, PodState::Runs, 0)
                    .pod(name, PodState::Waits, 1),
            ],
        ),
        _ => return html! {},
    };
    strip(title, located, &steps)
}

/// A rollout that starts the new pod on another node.
fn rollout(name: &str, outcome: Outcome) -> Vec<Frame> {
    let [old, new] = generations(name);
    let side_by_side = |caption| {
        Frame::new(caption, 0)
            .pod(&old, PodState::Runs, 0)
            .pod(&new, PodState::Waits, 1)
    };
    vec![
        Frame::new(
            "Before a rollout, the pod runs where the volume is attached.",
            0,
        )
        .pod(&old, PodState::Runs, 0),
        side_by_side(
            "The rollout starts the new pod first, and the scheduler may choose another node.",
        ),
        if outcome == Outcome::Deadlock {
            side_by_side(
                "The old pod stays until the new one is ready, and the new one waits for the volume: the rollout never ends.",
            )
        } else {
            Frame::new(
                "The old pod is gone; the volume follows, and the new pod runs.",
                1,
            )
            .pod(&new, PodState::Runs, 1)
        },
    ]
}

/// Two workloads on two nodes.
fn both(first: &str, second: &str, outcome: Outcome) -> Vec<Frame> {
    let caption = if outcome == Outcome::Stuck {
        "The other one, on another node, never starts while the first one runs."
    } else {
        "The other one, on another node, waits until the first one is done."
    };
    vec![
        Frame::new("The first one runs where the volume is attached.", 0).pod(
            first,
            PodState::Runs,
            0,
        ),
        Frame::new(caption, 0)
            .pod(first, PodState::Runs, 0)
            .pod(second, PodState::Waits, 1),
    ]
}

/// The same with the remedy; empty where a picture would say no more.
pub(super) fn with(located: &Located, remedy: &str) -> Markup {
    let finding = &located.finding;
    let name = finding.object.name.as_str();
    let [old, new] = generations(name);
    let steps = match remedy {
        "recreate" | "zero-surge" => vec![
            Frame::new("The old pod runs.", 0).pod(&old, PodState::Runs, 0),
            Frame::new("It is stopped first, and the volume is free.", 0),
            Frame::new("The new pod starts on any node, and the volume follows.", 1).pod(
                &new,
                PodState::Runs,
                1,
            ),
        ],
        "colocate" => vec![
            Frame::new("All pods are kept on the node that has the volume.", 0)
                .pod(&old, PodState::Runs, 0)
                .pod(&new, PodState::Runs, 0),
        ],
        _ => return html! {},
    };
    strip("What a rollout does then", located, &steps)
}

fn strip(title: &str, located: &Located, steps: &[Frame]) -> Markup {
    let volume = located
        .finding
        .volumes
        .first()
        .map_or("volume", |name| name.as_str());
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

/// The step for those who hear it: where each pod is and what it does.
fn in_words(volume: &str, step: &Frame) -> String {
    let pods: Vec<String> = step
        .pods
        .iter()
        .map(|pod| {
            let does = match pod.state {
                PodState::Runs => "runs",
                PodState::Waits => "waits",
            };
            format!("{} {does} on {}", pod.label, NODES[pod.node])
        })
        .collect();
    let pods = if pods.is_empty() {
        "no pod runs".to_owned()
    } else {
        pods.join("; ")
    };
    format!("{volume} is attached to {}; {pods}.", NODES[step.holder])
}

/// The most letters that fit into a box.
const FIT: usize = 18;

fn fitting(text: &str) -> String {
    shortened(text, FIT)
}

fn shortened(text: &str, letters: usize) -> String {
    if text.chars().count() <= letters {
        return text.to_owned();
    }
    let start: String = text.chars().take(letters - 1).collect();
    format!("{start}…")
}

/// The labels of the pods before and after a rollout, which still differ in a box.
fn generations(name: &str) -> [String; 2] {
    ["(old)", "(new)"].map(|which| {
        let name = shortened(name, FIT - which.len() - 1);
        format!("{name} {which}")
    })
}

fn drawing(volume: &str, step: &Frame) -> Markup {
    const WIDTH: usize = 142;
    const LEFT: [usize; 2] = [4, 154];
    let disk = LEFT[step.holder] + 30;
    html! {
        svg viewBox="0 0 300 168" role="img" aria-label=(in_words(volume, step)) {
            @for (number, node) in NODES.iter().enumerate() {
                rect.node x=(LEFT[number]) y="4" width=(WIDTH) height="112" rx="6" {}
                text x=(LEFT[number] + 8) y="20" { (node) }
                @for (at, pod) in step.pods.iter().filter(|pod| pod.node == number).enumerate() {
                    @let top = 28 + at * 42;
                    @if pod.state == PodState::Runs && number == step.holder {
                        line.mount x1=(LEFT[number] + 71) y1=(top + 36) x2=(LEFT[number] + 71) y2="130" {}
                    }
                    rect class=(match pod.state { PodState::Runs => "pod runs", PodState::Waits => "pod waits" })
                        x=(LEFT[number] + 8) y=(top) width=(WIDTH - 16) height="36" rx="5" {}
                    text x=(LEFT[number] + 14) y=(top + 15) { (fitting(&pod.label)) }
                    text x=(LEFT[number] + 14) y=(top + 30) {
                        @match pod.state {
                            PodState::Runs => "✓ runs",
                            PodState::Waits => "✗ cannot start",
                        }
                    }
                }
            }
            rect.volume x=(disk - 26) y="130" width="134" height="30" rx="12" {}
            text x=(disk - 14) y="149" { (fitting(volume)) }
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
            assert_eq!(fitting(&label), label);
            assert!(label.ends_with(')'), "{label}");
        }
    }
}
