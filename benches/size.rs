//! The size of real workloads: the number of entries in the lists that decide where their pods can
//! run. The engine treats objects that are several times larger than all of these as padded
//! (`HONEST_SIZE`).
//!
//! ```text
//! cargo bench --bench size -- DIRECTORY
//! ```
//!
//! reads rendered manifests, for example the output of `helm template` for many charts.

#![allow(clippy::unwrap_used, reason = "a bench that cannot run has nothing else to say")]

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use engine::model::object::Object;
use engine::verdict::size;
use manifest::find::{Exclude, find};
use manifest::objects::read_objects;

fn main() {
    let paths: Vec<PathBuf> = std::env::args_os()
        .skip(1)
        .filter(|argument| argument != "--bench")
        .map(PathBuf::from)
        .collect();
    let found = find(&paths, &Exclude::nothing(), &mut io::empty());
    let objects = read_objects(&found.sources, false);
    let mut sizes: BTreeMap<&str, Vec<(usize, String)>> = BTreeMap::new();
    for item in &objects.items {
        if let Object::Workload(workload) = &item.object {
            let source = &found.sources[item.place.source].name;
            let of_kind = sizes.entry(workload.kind.name()).or_default();
            of_kind.push((size(&item.object), format!("{} in {source}", item.reference)));
        }
    }
    println!("{} files, {} unreadable", found.sources.len(), objects.errors.len());
    println!("{:<24}{:>9}{:>8}{:>6}{:>9}", "kind", "objects", "median", "p99", "largest");
    for (kind, mut of_kind) in sizes {
        of_kind.sort_unstable();
        let at = |percent: usize| &of_kind[(of_kind.len() - 1) * percent / 100];
        let (largest, object) = at(100);
        let (count, median, p99) = (of_kind.len(), at(50).0, at(99).0);
        println!("{kind:<24}{count:>9}{median:>8}{p99:>6}{largest:>9}  {object}");
    }
}
