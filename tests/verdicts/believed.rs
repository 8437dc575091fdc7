//! The metadata that the judgement believes, and the ways round it: `believed.yaml` has a row for each
//! field and annotation that is read, `bypasses.yaml` one for each way, and `docs/security.md` has the
//! tables (`TABLE=write` writes them).

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::Mutex;

use serde::Deserialize;

const METADATA: &str = include_str!("../../crates/engine/src/model/metadata.rs");
/// What is read elsewhere: its name in `believed.yaml`, the source and the words that read it.
const ELSEWHERE: [(&str, &str, &str); 2] = [
    (
        "revision",
        include_str!("../../crates/source/src/revisions.rs"),
        "rename = \"deployment.kubernetes.io/revision\"",
    ),
    ("claimRef", include_str!("../../crates/engine/src/model/volume.rs"), "claim_ref"),
];
const PAGE: &str = "docs/security.md";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    reads: Vec<String>,
    field: String,
    writer: String,
    follows: String,
    test: [String; 2],
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Bypass {
    how: String,
    happens: String,
    test: [String; 2],
}

/// The fields of `Metadata`, and the names of the annotations that are read.
fn read() -> BTreeSet<String> {
    let part = |begin: &str, end: &str| {
        let (_, rest) = METADATA.split_once(begin).unwrap();
        rest.split_once(end).unwrap().0.to_owned()
    };
    let fields = part("pub struct Metadata {\n", "\n}\n");
    let fields = fields.lines().filter_map(|line| line.strip_prefix("    pub ")?.split_once(':'));
    let annotations = part("const RELEVANT: [&str; ", "];");
    let annotations = annotations.lines().skip(1).map(|line| line.trim().trim_end_matches(','));
    fields
        .map(|(name, _)| name.to_owned())
        .chain(annotations.filter(|name| !name.is_empty()).map(str::to_owned))
        .chain(["PREFIX".to_owned()])
        .chain(
            ELSEWHERE
                .iter()
                .filter(|(_, source, words)| source.contains(words))
                .map(|(name, ..)| (*name).to_owned()),
        )
        .collect()
}

/// Asserts that the file of the test has its name.
fn assert_has(row: &str, [file, name]: &[String; 2]) {
    let tests = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
    assert!(tests.contains(name.as_str()), "{row}: {file} has no \"{name}\"");
}

/// Compares the table with that of the page between two marks, or writes it.
fn is_on_the_page(mark: &str, table: &str) {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    let page = fs::read_to_string(&path).unwrap();
    let (begin, end) = (format!("<!-- {mark} -->\n"), format!("<!-- end of {mark} -->\n"));
    let (before, rest) = page.split_once(&begin).unwrap();
    let (own, after) = rest.split_once(&end).unwrap();
    let table = format!("\n{table}\n");
    if std::env::var_os("TABLE").is_some_and(|value| value == "write") {
        fs::write(path, format!("{before}{begin}{table}{end}{after}")).unwrap();
    } else {
        assert_eq!(own, table, "`TABLE=write` writes it into {PAGE}");
    }
}

#[test]
fn what_is_read_from_metadata_has_a_row_and_a_test_that_forges_it() {
    let rows: Vec<Row> = serde_saphyr::from_str(include_str!("believed.yaml")).unwrap();
    let named: Vec<&String> = rows.iter().flat_map(|row| &row.reads).collect();
    let named_once: BTreeSet<String> = named.iter().copied().cloned().collect();
    assert_eq!((named_once, named.len()), (read(), read().len()));
    let mut table = "| field | who writes it | what follows |\n|---|---|---|\n".to_owned();
    for Row { field, writer, follows, test, .. } in &rows {
        assert_has(field, test);
        writeln!(table, "| {field} | {writer} | {follows} |").unwrap();
    }
    is_on_the_page("believed", &table);
}

#[test]
fn each_way_round_the_guard_has_a_test_that_goes_it() {
    let rows: Vec<Bypass> = serde_saphyr::from_str(include_str!("bypasses.yaml")).unwrap();
    let mut table = "| how | what happens |\n|---|---|\n".to_owned();
    for Bypass { how, happens, test } in &rows {
        assert_has(how, test);
        writeln!(table, "| {how} | {happens} |").unwrap();
    }
    is_on_the_page("bypasses", &table);
}
