//! A range of a line of a file.

use std::path::{Path, PathBuf};

use super::files::Files;
use manifest::locate::Spot;
use manifest::position::Lines;
use report::Place;

/// A line of a file and a range of columns on it. Lines and columns are counted from 1, and columns
/// count characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) number: usize,
    pub(super) column: usize,
    pub(super) end_column: usize,
    pub(super) text: String,
}

impl Line {
    /// The line with that number, with the range of all its text.
    pub(super) fn whole(number: usize, text: &str) -> Self {
        let indent = text.chars().take_while(|c| *c == ' ').count();
        Self {
            number,
            column: indent + 1,
            end_column: text.trim_end().chars().count().max(indent + 1) + 1,
            text: text.to_owned(),
        }
    }

    /// The range at `spot` of the text, whose lines are `lines`.
    pub(super) fn at(text: &str, lines: &Lines<'_>, spot: Spot) -> Self {
        let (number, column) = lines.line_and_column(spot.start);
        let (_, end_column) = lines.line_and_column(spot.end);
        // The file may have been changed in the meantime.
        let from_line = text.get(lines.start(spot.start)..);
        let own = from_line.and_then(|it| it.lines().next());
        // A file may end in the middle of a CRLF.
        let own = own.map(|it| it.trim_end_matches('\r'));
        Self {
            number,
            column,
            end_column: end_column.max(column + 1),
            text: own.unwrap_or_default().to_owned(),
        }
    }

    /// Converts the range to a place in a file.
    pub(super) fn place(
        self,
        file: String,
        path: Option<String>,
        template: Option<String>,
    ) -> Place {
        Place {
            file,
            path,
            line: self.number,
            column: self.column,
            end_column: self.end_column,
            text: self.text,
            template,
        }
    }

    /// Converts the range to a place in the file with that name.
    pub(super) fn in_file(
        self,
        file: String,
        template: Option<String>,
        files: &dyn Files,
    ) -> Place {
        let real = files.real(Path::new(&file));
        let real = real.unwrap_or_else(|| PathBuf::from(&file));
        self.place(file, Some(files.path_of(&real)), template)
    }
}
