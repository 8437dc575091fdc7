//! Ranges of lines of files.

use std::path::{Path, PathBuf};

use super::files::Files;
use manifest::locate::Spot;
use manifest::position::Lines;
use report::{Line, Place};

/// The line with that number, with the range of all its text.
pub(super) fn whole(number: usize, text: &str) -> Line {
    let indent = text.chars().take_while(|c| *c == ' ').count();
    Line {
        number,
        column: indent + 1,
        end_column: text.trim_end().chars().count().max(indent + 1) + 1,
        text: text.to_owned(),
    }
}

/// The range at `spot`.
pub(super) fn at(lines: &Lines<'_>, spot: Spot) -> Line {
    let (number, column) = lines.line_and_column(spot.start);
    let (_, end_column) = lines.line_and_column(spot.end);
    // The file may have been changed in the meantime.
    let own = lines
        .text
        .get(lines.start(spot.start)..)
        .and_then(|rest| rest.lines().next())
        // A file may end in the middle of a CRLF.
        .map(|line| line.trim_end_matches('\r'));
    Line {
        number,
        column,
        end_column: end_column.max(column + 1),
        text: own.unwrap_or_default().to_owned(),
    }
}

/// The place of the range in the file with that name.
pub(super) fn in_file(
    line: Line,
    file: String,
    template: Option<String>,
    files: &dyn Files,
) -> Place {
    let real = files.real(Path::new(&file)).unwrap_or_else(|| PathBuf::from(&file));
    let path = Some(files.path_of(&real));
    Place { file, path, line, template }
}
