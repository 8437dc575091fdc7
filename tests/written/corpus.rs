//! Files by people and other programs: the files of `tests/corpus`.

use std::fs;

use serde_json::Value;

/// The path and the text of each file.
pub(crate) fn files() -> Vec<(String, String)> {
    let mut files: Vec<(String, String)> = ["tests/corpus", "tests/corpus/at-fault"]
        .map(|folder| fs::read_dir(folder).unwrap())
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file() && path.extension().is_none_or(|end| end != "md"))
        .map(|path| (path.display().to_string(), fs::read_to_string(&path).unwrap()))
        .collect();
    files.sort();
    assert_eq!(files.len(), 13, "a file of the corpus has gone or come");
    files
}

/// The documents as another reader with the same rules reads them.
pub(crate) fn values(text: &str) -> Vec<Value> {
    let options = serde_saphyr::options! {
        legacy_octal_numbers: true,
        merge_keys: serde_saphyr::MergeKeyPolicy::Merge,
        budget: None,
    };
    serde_saphyr::from_multiple_with_options(text, options).unwrap()
}
