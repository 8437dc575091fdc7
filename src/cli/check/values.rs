//! Which of a chart's values set how its workloads are replaced.

use std::fs;
use std::path::Path;

use crate::manifest::place::line_and_column;
use crate::manifest::tree::{Id, Tree};

/// What charts call the value that becomes `spec.strategy`.
const NAMES: [&str; 4] = [
    "strategy",
    "updateStrategy",
    "deploymentStrategy",
    "strategyType",
];

/// A value of a chart.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Setting {
    /// Its keys, joined with dots, as `--set` takes them.
    pub(super) path: String,
    /// Its line in the values file, counted from 1.
    pub(super) line: usize,
}

/// The values in the chart's `values.yaml` that may set a strategy; none where the
/// file is not there or cannot be read.
pub(super) fn that_set_a_strategy(chart: &Path) -> Vec<Setting> {
    let text = fs::read_to_string(chart.join("values.yaml")).unwrap_or_default();
    settings(&text)
}

fn settings(text: &str) -> Vec<Setting> {
    let mut found = Vec::new();
    if let Ok(Some(tree)) = Tree::parse(text) {
        collect(&tree, tree.root(), "", &mut found);
    }
    found
}

fn collect(tree: &Tree<'_>, id: Id, above: &str, found: &mut Vec<Setting>) {
    for (key, value) in tree.written_entries(id) {
        let name = tree.key_text(key).unwrap_or_default();
        let path = if above.is_empty() {
            name.clone().into_owned()
        } else {
            format!("{above}.{name}")
        };
        if NAMES.contains(&&*name) {
            let (line, _) = line_and_column(tree.text(), tree.node(key).start as usize);
            found.push(Setting { path, line });
        } else {
            collect(tree, value, &path, found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_named_as_set_takes_them() {
        let text = "image: {tag: a}\nprimary:\n  # how\n  updateStrategy:\n    type: RollingUpdate\nstrategy: {}\nlist:\n- strategy: a\n";
        let found: Vec<(String, usize)> = settings(text)
            .into_iter()
            .map(|it| (it.path, it.line))
            .collect();
        assert_eq!(
            found,
            [
                ("primary.updateStrategy".to_owned(), 4),
                ("strategy".to_owned(), 6)
            ]
        );
        assert!(settings("a: [").is_empty());
    }
}
