//! The tables of `docs/evidence/applying.md` that the tests write from their results.

use std::sync::Mutex;

/// Allows one table at a time, because all are on one page.
static WRITING: Mutex<()> = Mutex::new(());

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/evidence/applying.md");

/// A row: its subject, the way of applying, and the observations.
type Row = (Vec<String>, String, Vec<String>);

/// Asserts that the page has this table, or writes it if `APPLYING=write` is set. Ways of applying
/// with equal results share a row.
///
/// # Panics
///
/// If the page has a different table, or no place for it.
pub(crate) fn check(name: &str, header: &str, rows: impl Iterator<Item = Row>) {
    let mut folded: Vec<Row> = Vec::new();
    for (group, way, cells) in rows {
        let mut others = folded.iter_mut();
        match others.find(|other| other.0 == group && other.2 == cells) {
            Some((_, ways, _)) => ways.push_str(&format!(", {way}")),
            None => folded.push((group, way, cells)),
        }
    }
    let line = "---|".repeat(header.split(" | ").count());
    let mut table = format!("| {header} |\n|{line}\n");
    for (group, ways, cells) in folded {
        let row = [group, vec![ways], cells].concat();
        table.push_str(&format!("| {} |\n", row.join(" | ")));
    }
    let _writing = WRITING.lock().unwrap();
    let page = std::fs::read_to_string(PAGE).unwrap();
    let begin =
        format!("<!-- table {name}: APPLYING=write cargo test --workspace --test applying -->\n");
    let end = format!("<!-- end of table {name} -->\n");
    let place =
        page.split_once(&begin).and_then(|(before, rest)| Some((before, rest.split_once(&end)?)));
    let Some((before, (there, after))) = place else {
        panic!("{PAGE} has no {begin} or no {end}");
    };
    if std::env::var_os("APPLYING").is_some_and(|value| value == "write") {
        std::fs::write(PAGE, format!("{before}{begin}{table}{end}{after}")).unwrap();
        return;
    }
    assert_eq!(
        there, table,
        "docs/evidence/applying.md says otherwise; APPLYING=write cargo test --workspace --test applying writes it"
    );
}
