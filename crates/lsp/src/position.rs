//! Positions as the protocol counts them: lines from 0, and columns in UTF-16 units.

use lsp_types::{Position, Range, TextDocumentContentChangeEvent, TextEdit};
use report::Line;

/// The position of the byte `at` of the text.
fn position(text: &str, at: usize) -> Position {
    let before = text.get(..at).unwrap_or(text);
    let own = before.rsplit('\n').next().unwrap_or_default();
    Position::new(number(before.matches('\n').count()), number(own.encode_utf16().count()))
}

/// The byte of the text at the position; the end of the line or of the text if it has none.
pub(super) fn offset(text: &str, position: Position) -> usize {
    let before = text.split_inclusive('\n').take(position.line as usize);
    let start = before.map(str::len).sum();
    let line = text[start..].lines().next().unwrap_or_default();
    let mut units = 0;
    let within = line.char_indices().find(|(_, letter)| {
        let is_there = units >= position.character;
        units += letter.len_utf16() as u32;
        is_there
    });
    start + within.map_or(line.len(), |(at, _)| at)
}

/// The range of the bytes of the text.
pub(super) fn range(text: &str, start: usize, end: usize) -> Range {
    Range::new(position(text, start), position(text, end))
}

/// The range of a line of a report.
pub(super) fn range_of(line: &Line) -> Range {
    let at = |column: usize| {
        let before: String = line.text.chars().take(column.saturating_sub(1)).collect();
        Position { line: number(line.number.saturating_sub(1)), ..position(&before, before.len()) }
    };
    Range::new(at(line.column), at(line.end_column))
}

/// Applies a change that the editor made to the text.
pub(super) fn apply(text: &mut String, change: TextDocumentContentChangeEvent) {
    match change.range {
        None => *text = change.text,
        Some(Range { start, end }) => {
            let start = offset(text, start);
            let end = offset(text, end).max(start);
            text.replace_range(start..end, &change.text);
        }
    }
}

/// The edit that turns one text into the other: the lines from the first that differs to the last.
pub(super) fn edit(before: &str, after: &str) -> TextEdit {
    let start = same(before.split_inclusive('\n').zip(after.split_inclusive('\n')));
    let (old, new) = (&before[start..], &after[start..]);
    let kept = same(old.split_inclusive('\n').rev().zip(new.split_inclusive('\n').rev()));
    let new_text = new[..new.len() - kept].to_owned();
    TextEdit { range: range(before, start, before.len() - kept), new_text }
}

/// The bytes of the first lines that are the same.
fn same<'t>(lines: impl Iterator<Item = (&'t str, &'t str)>) -> usize {
    lines.take_while(|(a, b)| a == b).map(|(a, _)| a.len()).sum()
}

fn number(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The second line has a surrogate pair in UTF-16.
    const TEXT: &str = "a: 1\r\n💾é: 2\r\nend";

    #[test]
    fn positions_count_utf_16_units() {
        for (at, line, character) in
            [(0, 0, 0), (4, 0, 4), (6, 1, 0), (10, 1, 2), (12, 1, 3), (20, 2, 3)]
        {
            let place = Position::new(line, character);
            assert_eq!(position(TEXT, at), place, "byte {at}");
            assert_eq!(offset(TEXT, place), at, "{place:?}");
        }
        // Positions behind a line, inside a pair and behind the text.
        for (line, character, at) in [(0, 99, 4), (1, 1, 10), (9, 0, TEXT.len())] {
            assert_eq!(offset(TEXT, Position::new(line, character)), at);
        }
    }

    #[test]
    fn an_edit_turns_one_text_into_the_other() {
        let table =
            ["", "a\n", "a\nb\n", "a\r\nb\r\nc", "a\nx\nb\n", "💾\na\nb", "a\na\n", "a\na\na\n"];
        for before in table {
            for after in table {
                let TextEdit { range, new_text } = edit(before, after);
                let mut text = before.to_owned();
                let change = TextDocumentContentChangeEvent {
                    range: Some(range),
                    range_length: None,
                    text: new_text,
                };
                apply(&mut text, change);
                assert_eq!(text, after, "{before:?}");
            }
        }
    }
}
