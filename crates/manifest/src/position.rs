//! Lines and columns.

/// A text with the start of each line, for lookups of positions.
#[derive(Debug)]
pub struct Lines<'t> {
    /// The text.
    pub text: &'t str,
    /// The byte offset at which each line starts, except the first.
    starts: Vec<usize>,
}

impl<'t> Lines<'t> {
    /// Finds the lines of `text`.
    pub fn of(text: &'t str) -> Self {
        let starts = text.match_indices('\n').map(|(at, _)| at + 1).collect();
        Self { text, starts }
    }

    /// The line and the column of the byte `at`, both counted from 1; the column counts characters.
    pub fn line_and_column(&self, at: usize) -> (usize, usize) {
        let (before, start) = self.line(at);
        let own = self.text[start..].char_indices();
        let column = own.take_while(|(place, letter)| start + place + letter.len_utf8() <= at);
        (before + 1, column.count() + 1)
    }

    /// The byte offset of the start of the line that contains the byte `at`.
    pub fn start(&self, at: usize) -> usize {
        self.line(at).1
    }

    /// The text of the line with that number, counted from 0.
    pub fn text_of(&self, number: usize) -> &'t str {
        let start =
            number.checked_sub(1).map_or(Some(0), |before| self.starts.get(before).copied());
        let rest = start.and_then(|start| self.text.get(start..)).unwrap_or_default();
        rest.lines().next().unwrap_or_default()
    }

    /// The number of lines before the one that contains `at`, and the byte offset of its start.
    fn line(&self, at: usize) -> (usize, usize) {
        let before = self.starts.partition_point(|start| *start <= at);
        let start = before.checked_sub(1).map_or(0, |line| self.starts[line]);
        (before, start)
    }
}

#[cfg(test)]
mod tests {
    use super::Lines;

    #[test]
    fn columns_count_characters() {
        let text = "é: 1\nb: 2\n";
        for (at, place) in
            [(0, (1, 1)), (2, (1, 2)), (6, (2, 1)), (11, (3, 1)), (99, (3, 1)), (1, (1, 1))]
        {
            assert_eq!(Lines::of(text).line_and_column(at), place, "byte {at}");
        }
    }
}
