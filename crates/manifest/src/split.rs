//! Cuts a file's text into its YAML documents.
//!
//! A `---` or `...` at the start of a line always ends a document, even inside a block or quoted
//! scalar (YAML 1.2, production `c-forbidden`). The cut therefore needs no parser, and a broken
//! document leaves the others readable.

/// One document of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part<'t> {
    /// The document's text, including its `---` line.
    pub text: &'t str,
    /// The byte offset of the text in the file.
    pub start: usize,
    /// The file's line on which the text starts, counted from 1.
    pub line: usize,
}

impl<'t> Part<'t> {
    /// The template from which `helm template` rendered the document, according to its comment, for
    /// example `chart/templates/web.yaml`.
    pub fn template(&self) -> Option<&'t str> {
        self.text
            .lines()
            .map(str::trim_end)
            .take_while(|line| line.is_empty() || line.starts_with(['#', '-', '%']))
            .find_map(|line| line.strip_prefix("# Source: "))
            .map(str::trim)
            .filter(|template| !template.is_empty())
    }

    /// Whether the text holds only markers, comments and blank lines.
    pub(crate) fn is_blank(&self) -> bool {
        self.text.lines().all(|line| {
            let rest = marker(line).map_or(line, |marker| &line[marker.len()..]).trim();
            rest.is_empty() || rest.starts_with('#')
        })
    }
}

/// Cuts `text` into its documents. Empty parts are kept, so that the number of a document does not
/// change when another one is edited.
pub fn parts(text: &str) -> Vec<Part<'_>> {
    // The offset and the number of the first line of each part.
    let mut starts = Vec::new();
    let (mut begun, mut ended, mut at) = (false, false, 0);
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let marker = marker(line);
        // Directives and comments before a `---` belong to the document after it.
        let new = if marker == Some("---") { begun } else { ended };
        if new || starts.is_empty() {
            starts.push((at, number + 1));
            begun = false;
        }
        ended = marker == Some("...");
        let is_content = !matches!(line.trim_start().bytes().next(), None | Some(b'#' | b'%'));
        begun |= marker.is_some() || is_content;
        at += line.len();
    }
    let ends = starts.iter().skip(1).map(|(start, _)| *start);
    let parts = starts.iter().zip(ends.chain([text.len()]));
    let part = |(&(start, line), end)| Part { text: &text[start..end], start, line };
    parts.map(part).collect()
}

/// The marker at the start of the line, if it has one.
fn marker(line: &str) -> Option<&str> {
    let (marker, rest) = line.split_at_checked(3)?;
    let is_marker = matches!(marker, "---" | "...");
    (is_marker && (rest.is_empty() || rest.starts_with([' ', '\t', '\r', '\n']))).then_some(marker)
}

#[cfg(test)]
mod tests {
    use super::parts;

    #[test]
    fn documents_are_cut_at_their_markers() {
        type Case<'c> = (&'c str, &'c str, &'c [(&'c str, usize)]);
        let table: &[Case<'_>] = &[
            ("empty file", "", &[]),
            ("one document", "a: 1\n", &[("a: 1\n", 1)]),
            ("no newline at the end", "a: 1", &[("a: 1", 1)]),
            ("two documents", "a: 1\n---\nb: 2\n", &[("a: 1\n", 1), ("---\nb: 2\n", 2)]),
            ("leading marker", "---\na: 1\n---\nb: 2\n", &[("---\na: 1\n", 1), ("---\nb: 2\n", 3)]),
            (
                "comment before the marker",
                "# licence\n\n---\na: 1\n",
                &[("# licence\n\n---\na: 1\n", 1)],
            ),
            ("directive", "%YAML 1.1\n---\na: 1\n", &[("%YAML 1.1\n---\na: 1\n", 1)]),
            (
                "content on the marker's line",
                "--- {a: 1}\n--- # two\nb: 2\n",
                &[("--- {a: 1}\n", 1), ("--- # two\nb: 2\n", 2)],
            ),
            ("end marker", "a: 1\n...\n---\nb: 2\n", &[("a: 1\n...\n", 1), ("---\nb: 2\n", 3)]),
            (
                "end marker, then a directive",
                "a: 1\n...\n%YAML 1.1\n---\nb: 2\n",
                &[("a: 1\n...\n", 1), ("%YAML 1.1\n---\nb: 2\n", 3)],
            ),
            (
                "windows line ends",
                "a: 1\r\n---\r\nb: 2\r\n",
                &[("a: 1\r\n", 1), ("---\r\nb: 2\r\n", 2)],
            ),
            ("a longer rule is no marker", "a: |\n  x\n----\n", &[("a: |\n  x\n----\n", 1)]),
            (
                "indented rule in a block scalar",
                "a: |\n  ---\nb: 1\n",
                &[("a: |\n  ---\nb: 1\n", 1)],
            ),
            (
                "empty documents",
                "---\n---\na: 1\n---\n",
                &[("---\n", 1), ("---\na: 1\n", 2), ("---\n", 4)],
            ),
        ];
        for (name, text, expected) in table {
            let found = parts(text);
            let seen: Vec<(&str, usize)> =
                found.iter().map(|part| (part.text, part.line)).collect();
            assert_eq!(&seen, expected, "{name}");
            assert_eq!(
                found.iter().map(|part| part.text).collect::<String>(),
                *text,
                "{name}: nothing is lost"
            );
        }
    }

    #[test]
    fn helm_names_the_template() {
        let table = [
            (
                "helm template",
                "---\n# Source: web/templates/app.yaml\na: 1\n",
                Some("web/templates/app.yaml"),
            ),
            (
                "after a licence",
                "---\n# Licence\n\n# Source: web/templates/app.yaml\na: 1\n",
                Some("web/templates/app.yaml"),
            ),
            ("after the content", "a: 1\n# Source: web/templates/app.yaml\n", None),
            ("none", "a: 1\n", None),
        ];
        for (name, text, template) in table {
            assert_eq!(parts(text)[0].template(), template, "{name}");
        }
    }

    #[test]
    fn blank_documents_are_known() {
        for (text, blank) in [
            ("---\n", true),
            ("# only words\n\n---  # more\n...\n", true),
            ("--- {}\n", false),
            ("a: 1\n", false),
        ] {
            assert_eq!(parts(text)[0].is_blank(), blank, "{text:?}");
        }
    }
}
