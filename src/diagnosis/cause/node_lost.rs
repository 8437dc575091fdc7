//! The node that has the volume does not answer.
//!
//! Kubernetes cannot tell a machine that is off from one that is cut off and still writes:
//! it keeps the volume where it is until somebody who knows says so.

use super::{Cause, Purpose, Step, wait};
use crate::diagnosis::command;
use crate::diagnosis::health::{Examined, Health};
use crate::diagnosis::span;
use crate::diagnosis::stuck::Stuck;
use crate::model::node::OUT_OF_SERVICE;

pub(super) const CAUSE: Cause = Cause {
    code: "node-lost",
    title: "The node that has the volume is lost",
    passes: false,
    judge,
    steps: |stuck, _| steps(stuck),
};

fn judge(stuck: &Stuck<'_>) -> Option<String> {
    let node = stuck.lost_node()?;
    let name = &node.name;
    if node.health == Health::Gone {
        return Some(format!(
            "Node {name} has the volume, and there is no such Node any more. Kubernetes detaches by force 6 minutes after the last pod of that node is gone, and not before."
        ));
    }
    if node.out_of_service {
        return Some(format!(
            "Node {name} has the volume and is lost; its taint {OUT_OF_SERVICE} says that the machine is off, so that Kubernetes lets the volume go within a minute."
        ));
    }
    let age = node.lease.map(|age| format!("{} ago", span(age)));
    Some(silent(&node, age))
}

/// Why volumes stay on a node that does not answer; `renewed` says when its Lease was last
/// renewed.
pub(in crate::diagnosis) fn silent(node: &Examined, renewed: Option<String>) -> String {
    let name = &node.name;
    let lease = match renewed {
        Some(renewed) => format!("its Lease was last renewed {renewed}"),
        None => "it has no Lease that could be read".to_owned(),
    };
    let ready = node.ready.unwrap_or("Unknown");
    format!(
        "Node {name} has the volume and does not answer: Ready is {ready}, and {lease}. Kubernetes does not let the volume go as long as the machine may still write to it; without help that is for good, as the old pod cannot end there."
    )
}

/// What somebody has to look at before [`taint`] is run.
pub(in crate::diagnosis) fn power(name: &str) -> String {
    format!(
        "Look at the machine itself, in the console of your cloud or data centre: {name} must be powered off. Neither Kubernetes nor this program can see that."
    )
}

/// The command for when the machine is off.
pub(in crate::diagnosis) fn taint(kubectl: &str, name: &str) -> String {
    let taint = format!("{OUT_OF_SERVICE}=nodeshutdown:NoExecute");
    command::line(kubectl, &["taint", "node", name, &taint])
}

/// What the command does, and does to those who run it too early.
pub(in crate::diagnosis) fn price(name: &str) -> String {
    format!(
        "Every pod of {name} is deleted and every volume detached, in seconds. If the machine is not off, two of them write to one disk and the data is lost."
    )
}

fn steps(stuck: &Stuck<'_>) -> Vec<Step> {
    let Some(node) = stuck.lost_node() else {
        return Vec::new();
    };
    let name = node.name.as_str();
    if node.health == Health::Gone || node.out_of_service {
        return vec![wait(
            stuck,
            Purpose::WayOut,
            "Time, and nothing else. Deleting the VolumeAttachment by hand is no faster way: if the machine still runs, two of them write to one disk.",
        )];
    }
    vec![
        Step::new(
            Purpose::Check,
            stuck.kubectl(&["get", "node", name, "-o", "wide"]),
            "Nothing. Where the node is Ready again, the volume is released by itself.",
        ),
        Step::told(&power(name)),
        Step::new(
            Purpose::WayOut,
            taint(stuck.index.facts.kubectl, name),
            &price(name),
        ),
        Step::new(
            Purpose::Afterwards,
            stuck.kubectl(&["taint", "node", name, &format!("{OUT_OF_SERVICE}-")]),
            "Nothing. When the machine has been restarted, pods may run there again.",
        ),
    ]
}
