//! The tables of `docs/evidence/applying.md` that are written by what was played.

use std::sync::Mutex;

/// One table at a time: they are on one page.
static WRITING: Mutex<()> = Mutex::new(());

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/evidence/applying.md");

/// The rows of a table. Ways of applying that fare alike share a row.
pub(crate) fn folded(
    rows: impl Iterator<Item = (Vec<String>, String, Vec<String>)>,
) -> Vec<Vec<String>> {
    let mut folded: Vec<(Vec<String>, Vec<String>, Vec<String>)> = Vec::new();
    for (group, way, cells) in rows {
        let alike = folded
            .iter_mut()
            .find(|(other, _, others)| *other == group && *others == cells);
        match alike {
            Some((_, ways, _)) => ways.push(way),
            None => folded.push((group, vec![way], cells)),
        }
    }
    let rows = folded.into_iter();
    rows.map(|(group, ways, cells)| [group, vec![ways.join(", ")], cells].concat())
        .collect()
}

/// Asserts that the page has this table, or writes it where `APPLYING=write` is set.
///
/// # Panics
///
/// When the page has another table, or no place for one.
pub(crate) fn check(name: &str, header: &[&str], rows: &[Vec<String>]) {
    let mut table = format!(
        "| {} |\n|{}\n",
        header.join(" | "),
        "---|".repeat(header.len())
    );
    for row in rows {
        table.push_str(&format!("| {} |\n", row.join(" | ")));
    }
    let _writing = WRITING.lock().unwrap();
    let page = std::fs::read_to_string(PAGE).unwrap();
    let begin = format!("<!-- table {name}: APPLYING=write cargo test --test applying -->\n");
    let end = format!("<!-- end of table {name} -->\n");
    let (before, rest) = page
        .split_once(&begin)
        .unwrap_or_else(|| panic!("{PAGE} has no line {begin}"));
    let (there, after) = rest
        .split_once(&end)
        .unwrap_or_else(|| panic!("{PAGE} has no line {end}"));
    if std::env::var_os("APPLYING").is_some_and(|it| it == "write") {
        let page = format!("{before}{begin}{table}{end}{after}");
        std::fs::write(PAGE, page).unwrap();
        return;
    }
    assert_eq!(
        there, table,
        "docs/evidence/applying.md says otherwise; APPLYING=write cargo test --test applying writes it"
    );
}
