//! The page around a report: no script, no network, readable in print and by ear.

use std::io::{self, Write};

use super::safe;
use maud::{DOCTYPE, Markup, PreEscaped, html};

/// Colours keep a contrast of 4.5 to 1 or more in both schemes (WCAG 2.2, 1.4.3), and
/// no meaning is carried by colour alone.
const STYLE: &str = include_str!("page.css");

/// What a page says above its content.
pub(super) struct Heading<'h> {
    /// What the page is about: "Volumes at risk" for example.
    pub title: &'h str,
    /// How much of it there is, in a word or two; after the title in the window's name.
    pub extent: &'h str,
    /// What it is a page of, and when.
    pub origin: Option<&'h str>,
    /// The sentence below the title.
    pub summary: &'h str,
}

/// Writes a whole page, safe to print: a pipeline's log may show it.
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
