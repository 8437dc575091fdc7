//! Reads the fuzzer's corpora again, with the same functions.

use std::fs;
use std::path::PathBuf;

#[path = "../../fuzz/targets/mod.rs"]
#[allow(unreachable_pub, reason = "the fuzzer's binaries see these functions from outside")]
mod targets;

use targets::mutated_review::{Lot, Seed};

/// The files of the target's corpus.
fn files(target: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(format!("fuzz/corpus/{target}")).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() > 10, "{target}: {}", files.len());
    files
}

/// Runs every file of the target's corpus, and names those that fail.
fn replay(target: &str, run: fn(&[u8])) {
    let mut at_fault = Vec::new();
    for file in files(target) {
        let bytes = fs::read(&file).unwrap();
        if std::panic::catch_unwind(|| run(&bytes)).is_err() {
            at_fault.push(file);
        }
    }
    assert!(at_fault.is_empty(), "{at_fault:#?}");
}

/// A test for each corpus: its name, the folder and the target.
macro_rules! replays {
    ($($name:ident: $folder:literal, $target:ident;)*) => {
        $(#[test]
        fn $name() {
            replay($folder, targets::$target::run);
        })*
    };
}

replays! {
    reviews: "review", review;
    reviews_read_in_two_ways: "review", differential;
    reviews_only_read: "review_reader", review_reader;
    manifests: "manifest", manifest;
    policies: "policy", policy;
    catalog_overrides: "catalog_override", catalog_override;
    pem: "pem", pem;
    kubeconfigs: "kubeconfig", kubeconfig;
}

/// The number of inputs per run. `DIFFERENTIAL_INPUTS=COUNT` sets another number, and
/// `DIFFERENTIAL_SEED` chooses other inputs.
const MUTATED_REVIEWS: u64 = 4_000;

/// The maximum number of bytes of a mutated file: many small reviews find more than a few large
/// ones.
const LONGEST_SEED: usize = 16 * 1024;

#[test]
fn mutated_reviews_read_in_two_ways() {
    let setting = |name: &str, built_in| {
        std::env::var(name).map_or(built_in, |value| value.parse().expect("a number"))
    };
    let count = setting("DIFFERENTIAL_INPUTS", MUTATED_REVIEWS);
    let first = setting("DIFFERENTIAL_SEED", 0);
    let seeds: Vec<Seed> = (files("review").iter())
        .map(|file| fs::read(file).unwrap())
        .filter(|bytes| bytes.len() < LONGEST_SEED)
        .filter_map(|bytes| Seed::new(&bytes))
        .collect();
    assert!(seeds.len() > 20, "{}", seeds.len());
    for number in first..first + count {
        let seed = &seeds[number as usize % seeds.len()];
        let bytes = seed.mutated(&mut Lot(number));
        let run = std::panic::catch_unwind(|| targets::differential::run(&bytes));
        assert!(run.is_ok(), "input {number}: {}", String::from_utf8_lossy(&bytes));
    }
}
