//! The metadata that the judgement believes: `believed.yaml` has a row for each field and annotation
//! that is read, and `docs/security.md` has the table (`TABLE=write` writes it).

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

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
const BEGIN: &str = "<!-- believed -->\n";
const END: &str = "<!-- end of believed -->\n";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    reads: Vec<String>,
    field: String,
    writer: String,
    follows: String,
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

#[test]
fn what_is_read_from_metadata_has_a_row_and_a_test_that_forges_it() {
    let rows: Vec<Row> = serde_saphyr::from_str(include_str!("believed.yaml")).unwrap();
    let named: Vec<&String> = rows.iter().flat_map(|row| &row.reads).collect();
    let named_once: BTreeSet<String> = named.iter().copied().cloned().collect();
    assert_eq!((named_once, named.len()), (read(), read().len()));
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut table = "| field | who writes it | what follows |\n|---|---|---|\n".to_owned();
    for Row { field, writer, follows, test: [file, name], .. } in &rows {
        let tests = fs::read_to_string(root.join(file)).unwrap();
        assert!(tests.contains(name.as_str()), "{field}: {file} has no \"{name}\"");
        writeln!(table, "| {field} | {writer} | {follows} |").unwrap();
    }
    let page = fs::read_to_string(root.join(PAGE)).unwrap();
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (own, after) = rest.split_once(END).unwrap();
    let table = format!("\n{table}\n");
    if std::env::var_os("TABLE").is_some_and(|value| value == "write") {
        fs::write(root.join(PAGE), format!("{before}{BEGIN}{table}{END}{after}")).unwrap();
    } else {
        assert_eq!(own, table, "`TABLE=write` writes it into {PAGE}");
    }
}
