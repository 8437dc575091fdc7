//! Diagnoses as one page.

use std::io::{self, Write};

use maud::{Markup, html};

use super::super::page::{self, Heading};
use super::text::{counted, volume_in_words};
use super::{Diagnosis, picture};
use doctor::diagnosis::{CaseEntry, Purpose, SuggestedAction, span};

/// Boxes stand below each other: a page may be narrow.
const PICTURE_WIDTH: usize = 50;

pub(super) fn write(diagnosis: &Diagnosis, out: &mut dyn Write) -> io::Result<()> {
    let heading = Heading {
        title: "Volumes waited for",
        extent: &counted(diagnosis.pods(), "pod"),
        origin: None,
        summary: &diagnosis.summary(),
    };
    let content = html! {
        (by_cause(diagnosis))
        @for entry in diagnosis.in_full() { (case(entry)) }
        (sentences("Not seen", &diagnosis.open))
        (sentences("To be known", &diagnosis.notes))
    };
    page::write(&heading, &content, out)
}

fn by_cause(diagnosis: &Diagnosis) -> Markup {
    html! {
        @if diagnosis.cases.len() > 1 {
            section {
                h2 { "By cause" }
                table {
                    thead { tr {
                        th scope="col" { "Cause" }
                        th.number scope="col" { "Pods" }
                        th.number scope="col" { "Cases" }
                    } }
                    tbody {
                        @for (first, pods, cases) in diagnosis.by_cause() {
                            tr {
                                th scope="row" { (first.title) " " code { (first.cause) } }
                                td.number { (pods) }
                                td.number { (cases) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn case(entry: &CaseEntry) -> Markup {
    html! {
        article class=(if entry.passes { "warning" } else { "error" }) {
            h2 { "PersistentVolumeClaim " (entry.volume.namespace) "/" (entry.volume.claim) }
            p.brief { code { (entry.cause) } " · " (entry.title) }
            p { (entry.because) }
            ul {
                @for waiting in &entry.waiting {
                    li {
                        "Pod " (waiting.pod) " of " (waiting.workload) " waits"
                        @if let Some(node) = &waiting.node { " on " (node) }
                        @if let Some(seconds) = waiting.seconds { ", for " (span(seconds)) }
                        "."
                        @if let Some(message) = &waiting.message { " “" (message) "”" }
                    }
                }
                li { "Volume: " (volume_in_words(entry)) }
            }
            pre.diff role="img" aria-label="Nodes, the pods on them and where the volume is attached" {
                @for line in picture::of(entry, PICTURE_WIDTH) { (line) "\n" }
            }
            @for step in &entry.steps { (self::step(step)) }
        }
    }
}

fn step(step: &SuggestedAction) -> Markup {
    let title = match step.purpose {
        Purpose::Check => "First look",
        Purpose::Before => "Before any change",
        Purpose::WayOut => "A way out",
        Purpose::Afterwards => "Afterwards",
        Purpose::Note => "To be known",
    };
    html! {
        h3 { (title) }
        @if let Some(command) = &step.command {
            pre.diff { (command) }
            p { "Costs: " (step.text) }
        } @else {
            p { (step.text) }
        }
    }
}

fn sentences(title: &str, sentences: &[String]) -> Markup {
    html! {
        @if !sentences.is_empty() {
            section {
                h2 { (title) }
                ul { @for sentence in sentences { li { (sentence) } } }
            }
        }
    }
}
