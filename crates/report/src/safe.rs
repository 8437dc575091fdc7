//! Text from manifests and clusters, made safe to print.
//!
//! Users can put any text into names, kinds, reasons and file names. Printed unchanged, it could
//! move the cursor of a terminal (ESC), show words in a different order (bidirectional overrides),
//! start a new line, make XML that is not well-formed (U+FFFE), or be a command to the pipeline
//! that runs the program: `::stop-commands::x` at the start of a line, `##[add-mask]x` and
//! `##vso[…]` anywhere. Such characters are written as Rust's escapes: `\u{1b}`. Safe text does not
//! change. Text that was made safe remains safe when it is joined with other text or wrapped
//! between words.

use std::borrow::Cow;
use std::fmt::Write;
use std::ops::Deref;

use serde::Serialize;
use serde_json::Value;

use super::live::{Override, Owner};
use super::{Located, Place, Report};
use doctor::diagnosis::CaseEntry;
use engine::model::object::ObjectRef;

/// Whether it is invisible and changes the text around it, or a character that no text contains.
fn is_hidden(letter: char) -> bool {
    let is_listed = matches!(
        letter,
        '\u{ad}' // soft hyphen
            | '\u{34f}' // combining grapheme joiner
            | '\u{61c}' // Arabic letter mark
            | '\u{115f}'..='\u{1160}' // fillers of Hangul
            | '\u{17b4}'..='\u{17b5}' // vowels of Khmer that are not seen
            | '\u{180b}'..='\u{180f}' // Mongolian selectors and separator
            | '\u{200b}' // zero width space
            | '\u{200e}'..='\u{200f}' // left-to-right and right-to-left marks
            | '\u{202a}'..='\u{202e}' // embeddings and overrides
            | '\u{2060}'..='\u{206f}' // word joiner, invisible operators, isolates, deprecated format characters
            | '\u{3164}' // filler of Hangul
            | '\u{fdd0}'..='\u{fdef}' // non-characters
            | '\u{feff}' // byte order mark
            | '\u{ffa0}' // filler of Hangul
            | '\u{fff0}'..='\u{fffb}' // interlinear annotation
            | '\u{1bca0}'..='\u{1bca3}' // shorthand format controls
            | '\u{1d173}'..='\u{1d17a}' // musical format controls
            | '\u{e0000}'..='\u{e0fff}' // tags and further variation selectors, which can hold a text
    );
    // The last two characters of each plane are no text.
    is_listed || letter.is_control() || u32::from(letter) & 0xfffe == 0xfffe
}

/// Whether a terminal or a pipeline may interpret this as the end of a line, or as a tab.
const fn is_break(letter: char) -> bool {
    matches!(letter, '\t'..='\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Whether a pipeline finds a command at the start of `text`: `##[`, `##vso[`, `##teamcity[`.
fn is_marker(text: &str) -> bool {
    text.strip_prefix("##").is_some_and(|rest| {
        rest.trim_start_matches(|letter: char| letter.is_ascii_alphabetic()).starts_with('[')
    })
}

/// Whether the first character of `rest`, which is `letter`, is not safe to print.
fn is_unsafe(letter: char, rest: &str) -> bool {
    is_break(letter) || is_hidden(letter) || is_marker(rest)
}

/// The treatment of line breaks and tabs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Breaks {
    /// Each becomes a space.
    Spaces,
    /// Line feeds are kept.
    Lines,
    /// Tabs and the line ends of Unix and Windows are kept, because `patch` needs them.
    Patch,
}

impl Breaks {
    /// Whether the first character of `rest` is kept.
    fn keeps(self, rest: &str) -> bool {
        match self {
            Self::Spaces => false,
            Self::Lines => rest.starts_with('\n'),
            Self::Patch => ["\n", "\t", "\r\n"].iter().any(|end| rest.starts_with(end)),
        }
    }

    /// Whether a command may begin after `before`. Other text may be wrapped between words, but the
    /// lines of a patch are not.
    const fn begins_after(self, before: char, begun: bool) -> bool {
        match self {
            Self::Spaces | Self::Lines => before.is_whitespace(),
            Self::Patch => before == '\n' || (begun && before.is_whitespace()),
        }
    }
}

fn made_safe(text: &str, breaks: Breaks) -> Cow<'_, str> {
    let mut safe = String::new();
    // The length of the text that is already in `safe`.
    let mut copied = 0;
    let mut may_begin = true;
    for (at, letter) in text.char_indices() {
        let rest = &text[at..];
        // A second colon may come from the text that follows.
        let is_command = may_begin && (rest == ":" || rest.starts_with("::"));
        may_begin = breaks.begins_after(letter, may_begin);
        if breaks.keeps(rest) || !(is_command || is_unsafe(letter, rest)) {
            continue;
        }
        safe.push_str(&text[copied..at]);
        if is_break(letter) {
            safe.push(' ');
        } else {
            let _ = write!(safe, "{}", letter.escape_unicode());
        }
        copied = at + letter.len_utf8();
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    safe.push_str(&text[copied..]);
    Cow::Owned(safe)
}

/// Makes the text safe on one line.
pub fn line(text: &str) -> Cow<'_, str> {
    made_safe(text, Breaks::Spaces)
}

/// Makes the text safe and keeps its line breaks, for messages of several lines.
pub fn lines(text: &str) -> Cow<'_, str> {
    made_safe(text, Breaks::Lines)
}

/// Makes a diff safe. The diff can be applied only if nothing in it had to be escaped; it is then
/// borrowed.
pub fn patch(diff: &str) -> Cow<'_, str> {
    made_safe(diff, Breaks::Patch)
}

/// Makes a line of a file safe, with every character in its column.
fn source(text: &str) -> String {
    text.char_indices()
        .map(|(at, letter)| match letter {
            '\t' => letter,
            _ if is_unsafe(letter, &text[at..]) => char::REPLACEMENT_CHARACTER,
            _ => letter,
        })
        .collect()
}

/// The value as JSON on several lines. Programs read exactly the original text: characters that are
/// not safe to print are written as JSON escapes.
///
/// # Errors
/// The value cannot be serialized as JSON.
pub fn json<T: Serialize>(value: &T) -> serde_json::Result<String> {
    let mut json = json_escaped(&serde_json::to_string_pretty(value)?);
    json.push('\n');
    Ok(json)
}

/// The same JSON with escapes for all characters, except line breaks, that are not safe to print.
pub fn json_escaped(json: &str) -> String {
    let mut safe = String::with_capacity(json.len() + 1);
    for (at, letter) in json.char_indices() {
        if letter != '\n' && is_unsafe(letter, &json[at..]) {
            for unit in letter.encode_utf16(&mut [0; 2]) {
                let _ = write!(safe, "\\u{unit:04x}");
            }
        } else {
            safe.push(letter);
        }
    }
    safe
}

/// The `yaml` of `value`, or its JSON if that YAML is not safe to print; JSON is also YAML.
pub fn yaml(yaml: String, value: &Value) -> String {
    match patch(&yaml) {
        Cow::Borrowed(_) => yaml,
        Cow::Owned(_) => json_escaped(&format!("{value:#}\n")),
    }
}

/// Makes each text safe on one line.
fn clean<'t, T: Deref<Target = str> + From<String> + 't>(
    texts: impl IntoIterator<Item = &'t mut T>,
) {
    for text in texts {
        if let Cow::Owned(safe) = line(text) {
            *text = safe.into();
        }
    }
}

fn clean_object(object: &mut ObjectRef) {
    clean([&mut object.api_version, &mut object.kind, &mut object.name]);
    clean(&mut object.namespace);
}

fn clean_place(place: &mut Place) {
    clean([&mut place.file]);
    clean(&mut place.path);
    clean(&mut place.template);
    place.line.text = source(&place.line.text);
}

fn clean_finding(located: &mut Located) {
    let finding = &mut located.finding;
    clean_object(&mut finding.object);
    clean([&mut finding.field_path, &mut finding.message, &mut finding.brief, &mut finding.step]);
    clean(&mut finding.volumes);
    for reason in [&mut finding.suppressed, &mut finding.lowered] {
        clean(reason.iter_mut().map(|entry| &mut entry.reason));
    }
    located.place.iter_mut().for_each(clean_place);
    for excerpt in &mut located.excerpts {
        clean([&mut excerpt.file]);
        for mark in &mut excerpt.marks {
            mark.line.text = source(&mark.line.text);
            mark.before = source(&mark.before);
            clean([&mut mark.label]);
        }
    }
    clean(&mut located.by_fix);
    located.owner.iter_mut().for_each(clean_owner);
    clean(&mut located.command);
    located.users.iter_mut().for_each(clean_object);
}

fn clean_owner(owner: &mut Owner) {
    clean([&mut owner.name, &mut owner.change]);
    clean(&mut owner.command);
}

/// The names come from the cluster, and the messages from its drivers.
fn clean_case(case: &mut CaseEntry) {
    clean([&mut case.explanation]);
    clean([&mut case.volume.namespace, &mut case.volume.claim]);
    for waiting in &mut case.waiting {
        clean([&mut waiting.pod]);
        clean([&mut waiting.workload]);
        clean(&mut waiting.node);
    }
    for step in &mut case.steps {
        clean(&mut step.command);
        clean([&mut step.text]);
    }
}

fn clean_override(exception: &mut Override) {
    clean_object(&mut exception.object);
    clean(exception.sets.values_mut());
    clean([&mut exception.reason]);
    for text in [&mut exception.by, &mut exception.until, &mut exception.ignored] {
        clean(text);
    }
}

impl Report {
    /// A copy of the report for people: each text is safe to print and on one line. The changes by
    /// remedies ([`super::Fix`], the patches) are not changed.
    pub(super) fn made_safe(&self) -> Self {
        let mut report = self.clone();
        if let Some(origin) = &mut report.origin {
            clean([&mut origin.cluster]);
            clean(&mut origin.namespace);
        }
        for stuck in &mut report.stuck {
            clean_case(&mut stuck.case);
            stuck.owner.iter_mut().for_each(clean_owner);
        }
        report.overrides.iter_mut().for_each(clean_override);
        clean(&mut report.open);
        report.findings.iter_mut().for_each(clean_finding);
        for notice in report.incomplete.iter_mut().chain(&mut report.notices) {
            notice.object.iter_mut().for_each(clean_object);
            notice.place.iter_mut().for_each(clean_place);
            clean([&mut notice.text]);
        }
        for unread in &mut report.unread {
            clean([&mut unread.file, &mut unread.message]);
            clean(&mut unread.path);
        }
        for one in &mut report.not_judged {
            clean([&mut one.what, &mut one.place, &mut one.reason]);
            clean(&mut one.command);
        }
        clean(&mut report.hints);
        for judged in &mut report.judged {
            clean_object(&mut judged.object);
            clean(&mut judged.file);
        }
        let skipped = std::mem::take(&mut report.summary.skipped).into_iter();
        report.summary.skipped =
            skipped.map(|(kind, count)| (line(&kind).into_owned(), count)).collect();
        report
    }
}

/// Helpers for the tests of every format.
#[cfg(test)]
pub(super) mod hostile {
    use serde_json::Value;

    /// A text that tries to control a terminal or a pipeline, or to mislead the reader.
    pub(crate) const TEXT: &str = "a\n::stop-commands::x\r::error::y\x1b[2J##[add-mask]z\
        ##vso[task.complete]\u{202e}\u{fffe}\u{85}\u{2028}\n##teamcity[x";

    /// Appends [`TEXT`] to the names and sentences in `object` that have one of these keys.
    pub(crate) fn spoil(object: &mut Value, keys: &[&str]) {
        match object {
            Value::Object(fields) => {
                for (key, value) in fields {
                    match value {
                        Value::String(text) if keys.contains(&key.as_str()) => text.push_str(TEXT),
                        _ => spoil(value, keys),
                    }
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| spoil(item, keys)),
            _ => {}
        }
    }

    pub(crate) fn assert_safe(text: &str) {
        for line in text.lines() {
            assert!(!line.trim_start().starts_with("::"), "{line:?} in\n{text}");
        }
        for forbidden in [
            "\u{1b}",
            "\r",
            "\u{202e}",
            "\u{fffe}",
            "\u{85}",
            "\u{2028}",
            "##[",
            "##vso[",
            "##teamcity[",
        ] {
            assert!(!text.contains(forbidden), "{forbidden:?} in\n{text:?}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_safe_stays_and_what_is_not_is_shown() {
        for (text, safe) in [
            ("shop/web", "shop/web"),
            ("größe 数 👩‍💻", "größe 数 👩‍💻"),
            ("arn:aws:s3:::bucket a::b", "arn:aws:s3:::bucket a::b"),
            ("# a ## b", "# a ## b"),
            ("two\r\nlines\there", "two  lines here"),
            ("a\u{2028}b\u{85}c", "a b c"),
            ("\x1b[31mred", "\\u{1b}[31mred"),
            ("a\u{202e}b\u{2069}\u{200f}", "a\\u{202e}b\\u{2069}\\u{200f}"),
            ("a\u{fffe}\u{10ffff}", "a\\u{fffe}\\u{10ffff}"),
            ("::stop-commands::x", "\\u{3a}:stop-commands::x"),
            ("a\n::error::x", "a \\u{3a}:error::x"),
            ("a\u{a0}::error::x", "a\u{a0}\\u{3a}:error::x"),
            ("a :", "a \\u{3a}"),
            ("a: b:", "a: b:"),
            ("x##vso[task]##[y", "x\\u{23}#vso[task]\\u{23}#[y"),
            ("###[y", "#\\u{23}#[y"),
        ] {
            assert_eq!(line(text), safe, "{text:?}");
            assert_eq!(line(safe), safe, "made safe twice");
        }
        assert_eq!(lines("a\n::error::x\rb"), "a\n\\u{3a}:error::x b");
    }

    #[test]
    fn a_patch_can_be_applied_unless_something_in_it_is_escaped() {
        let plain = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-\ta: ::/0\r\n+\ta: 1\r\n";
        assert!(matches!(patch(plain), Cow::Borrowed(_)));
        for (diff, safe) in [
            (" a\n ::error::x\n", " a\n \\u{3a}:error::x\n"),
            ("+a\rb\x1b\n", "+a b\\u{1b}\n"),
            ("-##[group]\n", "-\\u{23}#[group]\n"),
        ] {
            assert_eq!(patch(diff), safe);
        }
    }

    #[test]
    fn yaml_means_the_same() {
        let to_yaml = |value: &Value| serde_saphyr::to_string(value).unwrap();
        let plain = serde_json::json!({"a": ["x", "::/0"]});
        assert_eq!(yaml(to_yaml(&plain), &plain), to_yaml(&plain));
        let value = serde_json::json!({"a": hostile::TEXT, hostile::TEXT: 1});
        let written = yaml(to_yaml(&value), &value);
        hostile::assert_safe(&written);
        assert_eq!(serde_saphyr::from_str::<Value>(&written).unwrap(), value);
    }

    #[test]
    fn a_line_of_a_file_keeps_its_columns() {
        let text = "\tname: \u{202e}x\x1b ##[y # é";
        let safe = source(text);
        assert_eq!(safe, "\tname: \u{fffd}x\u{fffd} \u{fffd}#[y # é");
        assert_eq!(safe.chars().count(), text.chars().count());
    }

    #[test]
    fn json_means_the_same() {
        let value = serde_json::json!({"a\u{202e}": "\u{fffe}\x7f\x1b ##[x\u{10ffff}é"});
        let written = json(&value).unwrap();
        assert_eq!(
            written,
            "{\n  \"a\\u202e\": \"\\ufffe\\u007f\\u001b \\u0023#[x\\udbff\\udfffé\"\n}\n"
        );
        let read: serde_json::Value = serde_json::from_str(&written).unwrap();
        assert_eq!(read, value);
    }
}
