//! The HTML page around a report. It has no script and needs no network, and it can be printed and
//! read by screen readers.

use std::io::{self, Write};

use super::safe;
use maud::{DOCTYPE, Markup, PreEscaped, html};

/// Colours have a contrast of 4.5 to 1 or more in both schemes (WCAG 2.2, 1.4.3), and colour is
/// never the only sign of a meaning.
const STYLE: &str = include_str!("page.css");

/// The head of a page.
pub(super) struct Heading<'h> {
    /// The title of the page, for example "Volumes at risk".
    pub title: &'h str,
    /// The number of entries in a word or two; it follows the title in the window's name.
    pub extent: &'h str,
    /// The cluster that the page is about, and the time.
    pub origin: Option<&'h str>,
    /// The summary below the title.
    pub summary: &'h str,
}

/// Writes a complete page that is safe to print, because it may be shown in the log of a pipeline.
pub(super) fn write(
    heading: &Heading<'_>,
    content: &Markup,
    out: &mut dyn Write,
) -> io::Result<()> {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (heading.title) ": " (heading.extent) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header {
                    h1 { (heading.title) }
                    @if let Some(origin) = heading.origin { p.origin { (origin) } }
                    p.summary { (heading.summary) }
                }
                main { (content) }
                footer {
                    p { "Made by multi-attach-guard " (env!("CARGO_PKG_VERSION")) "." }
                }
            }
        }
    };
    writeln!(out, "{}", safe::lines(&page.into_string()))
}
