//! Diagnoses for people, in text.

use std::fmt;
use std::io::{self, Write};

use super::super::words::{NAMED, amount, claim, folded, so_far};
use super::super::{Width, safe};
use super::{Diagnosis, Ways};
use doctor::diagnosis::{
    CaseEntry, Examined, Health, HolderEntry, NodeEntry, Purpose, SuggestedAction, WaitingEntry,
    span,
};

/// The most characters of a line of a paragraph.
const WIDEST: usize = 99;

/// The output, and the width of its lines.
pub(super) struct Page<'o> {
    pub(super) width: Width,
    pub(super) out: &'o mut dyn Write,
}

impl Page<'_> {
    /// What `writeln!` calls.
    pub(super) fn write_fmt(&mut self, text: fmt::Arguments<'_>) -> io::Result<()> {
        self.out.write_fmt(text)
    }
}

pub(super) fn write(diagnosis: &Diagnosis, ways: Ways, out: &mut Page<'_>) -> io::Result<()> {
    let in_full = diagnosis.in_full();
    let summarised = in_full.len() < diagnosis.cases.len();
    match &diagnosis.node {
        Some(node) => volumes(node, out)?,
        None => writeln!(out, "{}", diagnosis.summary())?,
    }
    if diagnosis.cases.len() > 1 {
        writeln!(out)?;
        for (first, pods, cases) in diagnosis.by_cause() {
            let (title, cause) = (first.title, first.cause);
            let pods = amount(pods, "pod");
            let cases = amount(cases, "case");
            writeln!(out, "  {pods:>11} in {cases:<11}  {title} ({cause})")?;
        }
    }
    if summarised {
        writeln!(out)?;
        paragraph(
            out,
            "",
            "One case of each cause follows. A namespace (-n), or the name of a pod, a workload or a claim, shows the others; --format json lists them all.",
        )?;
    }
    for case in in_full {
        let (claim, title, cause) = (claim(case), case.title, case.cause);
        writeln!(out, "\n{}: {title} ({cause})\n", safe::line(&claim))?;
        match ways {
            Ways::Safest => brief(case, out)?,
            Ways::All => entry(case, out)?,
        }
    }
    let in_brief = ways == Ways::Safest && !diagnosis.unread.is_empty();
    if in_brief {
        let unread = diagnosis.unread.join(", ");
        writeln!(out)?;
        paragraph(out, "", &format!("Not seen: {unread}. --all-ways says what that leaves open."))?;
    }
    let open = if in_brief { &Vec::new() } else { &diagnosis.open };
    for (title, sentences) in [("Not seen", open), ("To be known", &diagnosis.notes)] {
        if !sentences.is_empty() {
            writeln!(out, "\n{title}:")?;
        }
        for sentence in sentences {
            paragraph(out, "  ", sentence)?;
        }
    }
    Ok(())
}

/// What a node still has, and how to empty it.
fn volumes(node: &NodeEntry, out: &mut Page<'_>) -> io::Result<()> {
    let (name, is_empty) = (&node.node.name, node.volumes.is_empty());
    let summary = if is_empty { "No volume is left on" } else { "Volumes are left on" };
    writeln!(out, "{summary} node {} ({}).", safe::line(name), health(&node.node))?;
    for sentence in &node.volumes {
        paragraph(out, "  ", sentence)?;
    }
    if let Some(way_out) = &node.way_out {
        writeln!(out)?;
        paragraph(out, "  ", way_out)?;
    }
    Ok(())
}

/// The most characters of a driver's message that are shown in brief.
const MESSAGE: usize = 160;

/// The cause, one waiting pod, one holder of the volume, the steps before the way out, and the
/// safest way out, each with its cost.
fn brief(case: &CaseEntry, out: &mut Page<'_>) -> io::Result<()> {
    if let Some(waiting) = case.waiting.first() {
        let more = and_more(case.waiting.len());
        row(out, "waits", &format!("{}{more}", waits(waiting)))?;
        if let Some(message) = &waiting.message {
            row(out, "", &format!("\"{}\"", shortened(message)))?;
        }
    }
    row(out, "volume", &volume_in_words(case))?;
    if let Some(holder) = case.holders.first() {
        let more = and_more(case.holders.len());
        row(out, "with", &format!("{}{more}", holds(holder)))?;
    }
    writeln!(out)?;
    paragraph(out, "  ", &case.explanation)?;
    let safest = case.safest();
    for (at, step) in safest.iter().enumerate() {
        if at == 0 || step.purpose == Purpose::WayOut {
            writeln!(out)?;
        }
        one_step(step, "", out)?;
    }
    match case.steps.len() - safest.len() {
        0 => Ok(()),
        more => writeln!(
            out,
            "\n  {} with --all-ways: what to look at, other ways, what to do afterwards.",
            amount(more, "more step")
        ),
    }
}

/// The beginning of a message.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(MESSAGE) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn entry(case: &CaseEntry, out: &mut Page<'_>) -> io::Result<()> {
    for waiting in case.waiting.iter().take(NAMED) {
        row(out, "waits", &waits(waiting))?;
        if let Some(message) = &waiting.message {
            row(out, "", &format!("\"{message}\""))?;
        }
    }
    if case.waiting.len() > NAMED {
        let more = case.waiting.len() - NAMED;
        row(out, "", &format!("and {} more", amount(more, "pod")))?;
    }
    row(out, "volume", &volume_in_words(case))?;
    for holder in case.holders.iter().take(NAMED) {
        row(out, "with", &holds(holder))?;
    }
    for attachment in &case.attachments {
        let (node, name, state) = (&attachment.node, &attachment.name, attachment.state);
        row(out, "attachment", &format!("{node}: {state} ({name})"))?;
        let errors = [&attachment.attach_error, &attachment.detach_error];
        for error in errors.into_iter().flatten() {
            row(out, "", &format!("\"{error}\""))?;
        }
    }
    for node in &case.nodes {
        row(out, "node", &format!("{}: {}", node.name, health(node)))?;
    }
    for node in case.nodes.iter().filter(|node| !node.taints.is_empty()) {
        let taints = node.taints.join(", ");
        row(out, "taints", &format!("{}: {taints}", node.name))?;
    }
    writeln!(out)?;
    paragraph(out, "  ", &case.explanation)?;
    steps(case, out)
}

fn steps(case: &CaseEntry, out: &mut Page<'_>) -> io::Result<()> {
    let several = case.steps.iter().filter(|step| step.purpose == Purpose::WayOut).count() > 1;
    for steps in case.steps.chunk_by(|a, b| a.purpose == b.purpose) {
        let title = match steps[0].purpose {
            Purpose::Check => "First look:",
            Purpose::Before => "Before any change:",
            Purpose::WayOut if case.passes => "It passes by itself. Steps that help:",
            Purpose::WayOut if several => "The way out, one of these, the safest first:",
            Purpose::WayOut => "The way out:",
            Purpose::Afterwards => "Afterwards:",
            Purpose::Note => "To be known:",
        };
        writeln!(out, "\n  {title}")?;
        for step in steps {
            one_step(step, "\n", out)?;
        }
    }
    Ok(())
}

/// A command and its cost, with `gap` around the command, or a note.
fn one_step(step: &SuggestedAction, gap: &str, out: &mut Page<'_>) -> io::Result<()> {
    let Some(command) = &step.command else {
        return paragraph(out, "    ", &step.text);
    };
    writeln!(out, "{gap}    {}{gap}", safe::line(command))?;
    paragraph(out, "      ", &format!("Costs: {}", step.text))
}

fn waits(waiting: &WaitingEntry) -> String {
    let node = match &waiting.node {
        Some(node) => format!("on {node}"),
        None => "without a node".to_owned(),
    };
    let (pod, workload) = (&waiting.pod, &waiting.workload);
    format!("{pod}, {workload}, {node}{}", so_far(waiting))
}

fn holds(holder: &HolderEntry) -> String {
    let node = holder.node.as_deref().unwrap_or("no node");
    let (pod, workload, state) = (&holder.pod, &holder.workload, &holder.state);
    format!("{pod}, {workload}, on {node}: {state}")
}

/// The number of pods besides the one that is named.
fn and_more(pods: usize) -> String {
    match pods - 1 {
        0 => String::new(),
        more => format!("; {} more", amount(more, "pod")),
    }
}

fn health(node: &Examined) -> String {
    let health = match node.health {
        Health::Alive => "Ready",
        Health::NotReady => "not Ready",
        Health::Lost => "LOST",
        Health::Gone => return "GONE".to_owned(),
        Health::Unknown => "health not known",
    };
    let lease = node.lease_seconds.map(|seconds| format!(", Lease {} old", span(seconds)));
    let cordoned = if node.cordoned { ", cordoned" } else { "" };
    format!("{health}{}{cordoned}", lease.unwrap_or_default())
}

fn volume_in_words(case: &CaseEntry) -> String {
    let volume = &case.volume;
    let name = volume.name.as_deref().unwrap_or("not known");
    let mut words = vec![name.to_owned()];
    words.extend(volume.class.as_ref().map(|class| match class.as_str() {
        "" => "no class".to_owned(),
        class => format!("class {class}"),
    }));
    let known = [volume.driver.to_string(), volume.access_modes.join(", ")];
    words.extend(known.into_iter().filter(|word| !word.is_empty()));
    words.join(", ")
}

fn row(out: &mut Page<'_>, name: &str, value: &str) -> io::Result<()> {
    hung(out, &format!("  {name:<10}  "), value)
}

/// Writes the text after `start`, below which its further lines begin.
pub(super) fn hung(out: &mut Page<'_>, start: &str, text: &str) -> io::Result<()> {
    writeln!(out, "{}", out.width.line(start, &safe::line(text)))
}

/// Writes the text in lines that fit; longer words are not broken.
pub(super) fn paragraph(out: &mut Page<'_>, indent: &str, text: &str) -> io::Result<()> {
    let width = out.width.characters().min(WIDEST);
    for line in folded(&safe::line(text), width.saturating_sub(indent.len())).split('\n') {
        writeln!(out, "{}", format!("{indent}{line}").trim_end())?;
    }
    Ok(())
}
