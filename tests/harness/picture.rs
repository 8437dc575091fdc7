//! The pictures of terminals in the documentation: what a program printed, drawn as SVG.
//!
//! `PICTURES=write` before a test writes its pictures.

use std::fs;
use std::path::Path;

/// A part of a line in one colour.
struct Span {
    text: String,
    bold: bool,
    /// The terminal's number of the colour, for example 91 for red.
    colour: Option<u8>,
}

/// The parts of each line.
fn lines(printed: &str) -> Vec<Vec<Span>> {
    let mut lines = vec![Vec::new()];
    let (mut bold, mut colour) = (false, None);
    for part in printed.trim_end().split('\x1b') {
        let text = match part.strip_prefix('[').and_then(|rest| rest.split_once('m')) {
            Some((code, text)) => {
                match code.parse().unwrap_or(0) {
                    1 => bold = true,
                    colour_code @ 30..=97 => colour = Some(colour_code),
                    _ => (bold, colour) = (false, None),
                }
                text
            }
            None => part,
        };
        for (number, piece) in text.split('\n').enumerate() {
            if number > 0 {
                lines.push(Vec::new());
            }
            if let Some(line) = lines.last_mut().filter(|_| !piece.is_empty()) {
                line.push(Span { text: piece.to_owned(), bold, colour });
            }
        }
    }
    lines
}

/// The lines without their colours.
#[allow(dead_code, reason = "pictures of editors are not read")]
pub(crate) fn without_colours(printed: &str) -> Vec<String> {
    let spans = lines(printed).into_iter();
    let text = |line: Vec<Span>| line.into_iter().map(|span| span.text).collect();
    spans.map(text).collect()
}

/// A theme: its background, its text, and red, green, yellow, blue, magenta and cyan.
const LIGHT: [&str; 8] =
    ["#ffffff", "#1f2328", "#b42318", "#116329", "#7d4e00", "#0550ae", "#6639ba", "#0f6a75"];
const DARK: [&str; 8] =
    ["#0d1117", "#e6edf3", "#ff8a80", "#7ee787", "#e3b341", "#79c0ff", "#d2a8ff", "#76e3ea"];

/// The terminal as a drawing. Each part has the width of its letters, with any font.
fn picture(
    title: &str,
    lines: &[Vec<Span>],
    [background, text, colours @ ..]: [&str; 8],
) -> String {
    const COLUMNS: usize = 80;
    // The size of a letter in tenths of a pixel.
    const LETTER: usize = 84;
    const LINE: usize = 19;
    const EDGE: usize = 16;
    let pixels = |tenths: usize| format!("{}.{}", tenths / 10, tenths % 10);
    let width = 2 * EDGE + COLUMNS * LETTER / 10;
    let height = 2 * EDGE + lines.len() * LINE;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\" role=\"img\" aria-label=\"{}\">\n<rect width=\"{width}\" height=\"{height}\" rx=\"8\" \
         fill=\"{background}\" stroke=\"{text}\" stroke-opacity=\".2\"/>\n<g font-family=\"ui-monospace, \
         SFMono-Regular, Menlo, Consolas, 'Liberation Mono', monospace\" font-size=\"14\" fill=\"{text}\" \
         xml:space=\"preserve\">\n",
        escaped(title)
    );
    for (number, line) in lines.iter().enumerate() {
        let mut column = 0;
        for span in line {
            let colour = span.colour.and_then(|code| colours.get(usize::from(code % 10) - 1));
            let fill = colour.map_or_else(String::new, |code| format!(" fill=\"{code}\""));
            let weight = if span.bold { " font-weight=\"bold\"" } else { "" };
            // Browsers join blanks.
            for piece in span.text.split_inclusive("  ") {
                let length = piece.chars().count();
                assert!(column + length <= COLUMNS, "{piece:?} is too long");
                let before = length - piece.trim_start().chars().count();
                let shown = piece.trim();
                if !shown.is_empty() {
                    svg += &format!(
                        "<text x=\"{}\" y=\"{}\" textLength=\"{}\" \
                         lengthAdjust=\"spacingAndGlyphs\"{fill}{weight}>{}</text>\n",
                        pixels(10 * EDGE + LETTER * (column + before)),
                        EDGE + LINE * number + 14,
                        pixels(LETTER * shown.chars().count()),
                        escaped(shown)
                    );
                }
                column += length;
            }
        }
    }
    svg + "</g>\n</svg>\n"
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Compares the pictures `docs/images/NAME-*.svg` with what was printed.
pub(crate) fn compare(name: &str, title: &str, printed: &str) {
    for (theme, colours) in [("light", LIGHT), ("dark", DARK)] {
        let drawn = picture(title, &lines(printed), colours);
        let file =
            Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("docs/images/{name}-{theme}.svg"));
        if std::env::var_os("PICTURES").is_some_and(|value| value == "write") {
            fs::write(&file, drawn).unwrap();
            continue;
        }
        assert!(
            fs::read_to_string(&file).is_ok_and(|picture| picture == drawn),
            "{} is not what is printed; run this test with PICTURES=write to draw it",
            file.display()
        );
    }
}
