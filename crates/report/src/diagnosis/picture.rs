//! A case as a picture in text: nodes as boxes, pods and the attachment in them.

use super::super::safe;
use doctor::diagnosis::{CaseEntry, Health, NodeEntry, span};

/// Pods that a box shows; of more, their number.
const PODS: usize = 4;

/// Characters inside a box.
const WIDTH: usize = 44;

/// The lines of a picture that is no wider than `width`, if two boxes fit into that.
pub(super) fn of(case: &CaseEntry, width: usize) -> Vec<String> {
    let mut boxes: Vec<Vec<String>> = case
        .nodes
        .iter()
        .map(|node| framed(&title(node), &inside(case, Some(&node.name))))
        .collect();
    let nowhere = inside(case, None);
    if !nowhere.is_empty() {
        boxes.push(framed("no node", &nowhere));
    }
    let in_a_row = (width / (WIDTH + 5)).max(1);
    boxes.chunks(in_a_row).flat_map(side_by_side).collect()
}

fn title(node: &NodeEntry) -> String {
    let mut title = format!("node {} · {}", node.name, health(node));
    if node.cordoned {
        title += " · cordoned";
    }
    title
}

pub(super) fn health(node: &NodeEntry) -> String {
    let lease = |known: &str| match node.lease_seconds {
        Some(seconds) => format!("{known}, Lease {} old", span(seconds)),
        None => known.to_owned(),
    };
    match node.health {
        Health::Alive => lease("Ready"),
        Health::NotReady => lease("not Ready"),
        Health::Lost => lease("LOST"),
        Health::Gone => "GONE".to_owned(),
        Health::Unknown => lease("health not known"),
    }
}

/// What is on a node, or on none.
fn inside(case: &CaseEntry, node: Option<&str>) -> Vec<String> {
    let on = |other: Option<&str>| other == node;
    let holders = case.holders.iter().filter(|it| on(it.node.as_deref()));
    let mut lines: Vec<String> = holders
        .map(|it| format!("● {} ({})", it.pod, it.state))
        .collect();
    let waiting = case.waiting.iter().filter(|it| on(it.node.as_deref()));
    lines.extend(waiting.map(|it| format!("○ {} (waits)", it.pod)));
    if lines.len() > PODS {
        let more = lines.len() - PODS;
        lines.truncate(PODS);
        lines.push(format!("  and {more} more"));
    }
    let volume = case.volume.name.as_ref().unwrap_or(&case.volume.claim);
    let attachments = case.attachments.iter();
    for attachment in attachments.filter(|it| on(Some(it.node.as_str()))) {
        lines.push(format!("▣ {volume} ({})", attachment.state));
    }
    lines
}

fn framed(title: &str, lines: &[String]) -> Vec<String> {
    let title = cut(title, WIDTH - 1);
    let rest = "─".repeat(WIDTH - title.chars().count());
    let mut framed = vec![format!("┌ {title} {rest}┐")];
    framed.extend(lines.iter().map(|line| {
        let line = cut(line, WIDTH);
        format!("│ {line:<WIDTH$} │")
    }));
    framed.push(format!("└{}┘", "─".repeat(WIDTH + 2)));
    framed
}

/// The text, safe to print, its middle left out where it is longer than `most` characters:
/// names differ at their ends.
fn cut(text: &str, most: usize) -> String {
    let text = safe::line(text);
    let length = text.chars().count();
    if length <= most {
        return text.into_owned();
    }
    let head = most / 2;
    let tail = most - head - 1;
    let start: String = text.chars().take(head).collect();
    let end: String = text.chars().skip(length - tail).collect();
    format!("{start}…{end}")
}

fn side_by_side(boxes: &[Vec<String>]) -> Vec<String> {
    let height = boxes.iter().map(Vec::len).max().unwrap_or(0);
    // All boxes end on the same line.
    let blank = format!("│ {:WIDTH$} │", "");
    let line = |framed: &Vec<String>, at: usize| match framed.split_last() {
        Some((last, _)) if at + 1 == height => last.clone(),
        Some((_, rest)) => rest.get(at).unwrap_or(&blank).clone(),
        None => String::new(),
    };
    (0..height)
        .map(|at| {
            let parts: Vec<String> = boxes.iter().map(|framed| line(framed, at)).collect();
            parts.join(" ")
        })
        .collect()
}
