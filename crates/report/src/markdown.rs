//! Reports as one comment for a pull request.
//!
//! The comment begins with [`MARKER`], by which a pipeline finds the comment of its last run and
//! updates it. Text from manifests is escaped, so it cannot create links, images, mentions or HTML.

use std::io::{self, Write};

use super::live::Stuck;
use super::{Fix, Located, Notice, Report, Severity, words};
use engine::verdict::Proposal;

/// The first line of every comment; it is not shown.
const MARKER: &str = "<!-- multi-attach-guard -->";

/// The most bytes of a comment; further entries are only counted. GitHub accepts comments of 65,536
/// characters.
const LONGEST: usize = 60_000;

pub(super) fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let summary = prose(&words::summary(report));
    let mut page = format!("{MARKER}\n### multi-attach-guard\n\n{summary}\n");
    let stuck = report.stuck_now().map(stuck);
    let line = |what: &str, text: &str| format!("\n**{what}** {}\n", prose(text));
    let overrides =
        report.overrides.iter().map(|exception| line("override", &exception.to_string()));
    let open = report.open.iter().map(|sentence| line("not seen", sentence));
    let findings = report.reported().map(|(severity, located)| finding(severity, located));
    let unread = report.unread.iter().map(|unread| {
        let (place, message) = (code(&unread.place()), prose(&unread.message));
        format!("\n**error** {place}: {message}\n")
    });
    let notice = |notice: &Notice| line("note", &notice.sentence());
    let incomplete = report.incomplete.iter().map(notice);
    let notices = report.notices.iter().map(notice);
    let not_judged =
        words::not_judged(report).into_iter().map(|sentence| line("not judged", &sentence));
    let mut left_out = 0;
    let entries = stuck.chain(incomplete).chain(findings).chain(unread).chain(notices);
    for entry in entries.chain(not_judged).chain(overrides).chain(open) {
        if page.len() + entry.len() > LONGEST {
            left_out += 1;
        } else {
            page += &entry;
        }
    }
    if left_out > 0 {
        let amount = words::amount(left_out, "entry").replace("entrys", "entries");
        page += &format!("\n{amount} left out.\n");
    }
    out.write_all(page.as_bytes())
}

fn stuck(stuck: &Stuck) -> String {
    let case = &stuck.case;
    let steps: String = case
        .safest()
        .into_iter()
        .map(|step| {
            let command = step.command.as_deref().map(|command| format!("{}\n\n", code(command)));
            format!("\n{}{}\n", command.unwrap_or_default(), prose(&step.text))
        })
        .collect();
    format!(
        "\n**stuck now** `{}` {}\n\n{}\n{steps}",
        case.cause,
        prose(&format!("{}: {}", words::claim(case), case.title)),
        prose(&case.explanation),
    )
}

fn finding(severity: Severity, located: &Located) -> String {
    let finding = &located.finding;
    let place = located.place.as_ref().map_or_else(String::new, |place| {
        let at = code(&format!("{}:{}", place.file, place.line.number));
        match &place.template {
            Some(template) => format!("{at}, rendered from {}: ", code(template)),
            None => format!("{at}: "),
        }
    });
    let remedies: String = finding
        .remedies
        .iter()
        .map(|Proposal { remedy, .. }| format!("- `{}`: {}\n", remedy.name, prose(remedy.cost)))
        .collect();
    format!(
        "\n**{}** `{}` {place}{}\n\n<details><summary>Why, and what helps</summary>\n\n{}\n\n{remedies}{}</details>\n",
        severity.name(),
        finding.rule,
        prose(&format!("{}: {}", finding.object, finding.brief)),
        prose(&finding.message),
        located.fix.as_ref().map_or_else(String::new, diff),
    )
}

/// The change by the first remedy.
fn diff(fix: &Fix) -> String {
    let lines = |sign: char, lines: &[String]| -> String {
        let line = |text: &String| format!("{sign}{}\n", super::safe::line(text.trim_end()));
        lines.iter().map(line).collect()
    };
    let changed = lines('-', &fix.removed) + &lines('+', &fix.added);
    // The fence is longer than any in the text, so that nothing in the text ends the block.
    let longest = changed.split(|letter| letter != '`').map(str::len).max();
    let fence = "`".repeat(longest.unwrap_or_default().max(2) + 1);
    format!("\n{fence}diff\n{changed}{fence}\n\n")
}

/// Formats text as code, in which no character has a meaning.
fn code(text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    format!("`{}`", text.replace('`', "'"))
}

/// The characters that may be markup.
const MARKUP: &str = r"\`*_{}[]<>!|~&$:";

/// Sentences with their text unchanged. Backticks around commands are escaped: names between them
/// could contain backticks and change which ones pair up.
fn prose(text: &str) -> String {
    let mut markdown = String::with_capacity(text.len() + 16);
    for (at, letter) in text.char_indices() {
        if MARKUP.contains(letter) {
            markdown.push('\\');
        }
        markdown.push(letter);
        // Otherwise the text could mention a user, refer to an issue, or become a link.
        if matches!(letter, '@' | '#') || begins_reference(&text[at..]) {
            markdown.push_str("<!-- -->");
        }
    }
    markdown
}

/// Whether the text may begin with a bare address, or with an issue such as `GH-1`.
fn begins_reference(text: &str) -> bool {
    let begins = |start: &str| {
        text.as_bytes()
            .get(..start.len())
            .is_some_and(|begin| begin.eq_ignore_ascii_case(start.as_bytes()))
    };
    let is_issue = begins("gh-") && text.as_bytes().get(3).is_some_and(u8::is_ascii_digit);
    is_issue || ["www.", "http", "ftp", "mailto", "xmpp"].into_iter().any(begins)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_makes_no_markup() {
        for (text, markdown) in [
            ("claim \"data\" of 100 %", "claim \"data\" of 100 %"),
            ("run `kubectl get -o a|b` now", "run \\`kubectl get -o a\\|b\\` now"),
            ("![x](http://e)<img>", "\\!\\[x\\](h<!-- -->ttp\\://e)\\<img\\>"),
            ("@team #1 ` *b*", "@<!-- -->team #<!-- -->1 \\` \\*b\\*"),
            ("a``b` `c`", "a\\`\\`b\\` \\`c\\`"),
            ("WWW.e.org", "W<!-- -->WW.e.org"),
            ("gh-1 high-end", "g<!-- -->h-1 high-end"),
        ] {
            assert_eq!(prose(text), markdown);
        }
        assert_eq!(code("a`b"), "`a'b`");
    }

    #[test]
    fn nothing_in_a_change_ends_its_block() {
        let fix = Fix {
            remedy: "recreate",
            line: 1,
            removed: vec!["````\n".to_owned()],
            added: vec!["a: 1\n".to_owned()],
        };
        assert_eq!(diff(&fix), "\n`````diff\n-````\n+a: 1\n`````\n\n");
    }
}
